//! `plugins.log`: what plugins print. It is for this user only, and does not grow without end.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// When it is larger than this, what is in it is put aside, in place of what was put aside before.
const LARGEST: u64 = 8 << 20;

/// Where plugins write.
pub(super) fn open(path: &Path) -> io::Result<File> {
    make_room(path);
    // What plugins print may hold secrets.
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    log.set_permissions(Permissions::from_mode(0o600))?;
    Ok(log)
}

/// Puts what is in a log file aside where that is too much. Those who write there hold it open and write at its end,
/// wherever that is: so it is copied and emptied, and stays the same file.
pub fn make_room(path: &Path) {
    if fs::metadata(path).is_ok_and(|file| file.len() > LARGEST)
        && let Err(error) = put_aside(path)
    {
        tracing::warn!(log = %path.display(), %error, "a log file grows on");
    }
}

fn put_aside(path: &Path) -> io::Result<()> {
    let log = OpenOptions::new().write(true).open(path)?;
    // The daemon and each observer look after it: one of them at a time.
    if flock(&log, FlockOperation::NonBlockingLockExclusive).is_ok()
        && log.metadata()?.len() > LARGEST
    {
        fs::copy(path, path.with_extension("log.old"))?;
        log.set_len(0)?;
    }
    Ok(())
}
