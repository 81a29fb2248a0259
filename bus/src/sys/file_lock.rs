//! Advisory locks on whole files (`flock`). A lock belongs to the open file: closing it, or the death
//! of the process, releases it. [`lock_owner`](super::lock_owner) finds the process that holds one.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Waits until the exclusive lock on `file` is ours.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::LockExclusive)?)
}

/// Takes the exclusive lock on `file`; fails at once if another process holds it.
pub fn try_lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Releases the lock on `file`.
pub fn unlock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}
