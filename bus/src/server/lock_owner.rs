//! The process that owns a home, found by the lock that it holds on it, whether or not it answers.
//!
//! The operating system says which process holds the lock, and signals go to exactly that process, never
//! to another one that got its id later.

use std::io;
use std::path::{Path, PathBuf};

use crate::sys::lock_owner::{candidates, holds_lock};
use crate::sys::process::{ProcessHandle, Signal};

/// How often to look: the system's list of locks may be incomplete, because it changes while it is read.
const ATTEMPTS: usize = 5;

/// The file that a daemon locks for as long as it owns its home.
pub(super) fn lock_file(home: &Path) -> PathBuf {
    home.join("serve.lock")
}

/// A process that holds the lock of a home.
#[derive(Debug)]
pub struct LockOwner {
    process: ProcessHandle,
    lock: PathBuf,
}

impl LockOwner {
    /// The process that owns `home`; none if there is none, or if it is not visible from here (in
    /// another container, or of another user).
    pub fn find(home: &Path) -> Option<Self> {
        let lock = lock_file(home);
        let find = || candidates(&lock).into_iter().find_map(|pid| Self::open(pid, &lock));
        std::iter::repeat_with(find).take(ATTEMPTS).flatten().next()
    }

    fn open(pid: i32, lock: &Path) -> Option<Self> {
        // Open the handle before the check, so that the check is about the process behind it.
        let owner = Self { process: ProcessHandle::open(pid)?, lock: lock.to_owned() };
        (owner.still_holds() && !owner.has_ended()).then_some(owner)
    }

    /// Its process id.
    pub const fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }

    /// Whether it has ended, waited for by its parent or not.
    pub fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// Whether it still holds the lock.
    pub fn still_holds(&self) -> bool {
        holds_lock(self.pid(), &self.lock)
    }
}
