//! Opening a file that somebody else may have put there: a pipe or a device in its place would be waited on for
//! ever, and is not even opened, unless it was put there this moment.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it.
pub(super) fn open(file: &Path) -> io::Result<File> {
    let not_regular = || Err(io::Error::other("it is not a regular file"));
    if !fs::metadata(file)?.is_file() {
        return not_regular();
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if opened.metadata()?.is_file() { Ok(opened) } else { not_regular() }
}
