//! Rotating a log file, so that it does not grow without limit.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::sys::file_lock::try_lock;

/// A larger log file is rotated.
const LARGEST: u64 = 8 << 20;

/// If a log file is too large, moves its content to `<name>.log.old` and replaces what was there. Writers hold
/// the file open and append, so the content is copied and the file truncated, not renamed.
pub fn rotate_if_large(path: &Path) {
    if fs::metadata(path).is_ok_and(|file| file.len() > LARGEST)
        && let Err(error) = rotate(path)
    {
        tracing::warn!(log = %path.display(), %error, "cannot rotate a log file; it keeps growing");
    }
}

fn rotate(path: &Path) -> io::Result<()> {
    let log = OpenOptions::new().write(true).open(path)?;
    // The daemon and every observer rotate the same file: one of them at a time.
    if try_lock(&log).is_ok() && log.metadata()?.len() > LARGEST {
        fs::copy(path, path.with_extension("log.old"))?;
        log.set_len(0)?;
    }
    Ok(())
}
