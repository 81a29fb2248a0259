//! Opening a file that another user or an agent may have put there: a FIFO or a device in its place
//! would block the reader for ever.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

use crate::sys::fs::open_without_blocking;

/// Opens a regular file for reading; anything else is an error. A FIFO that appears between the two checks is
/// opened without blocking, and refused.
pub fn open_regular(file: &Path) -> io::Result<File> {
    open_with_metadata(file).map(|(opened, _)| opened)
}

/// The same, with the metadata of the file that was opened.
pub(super) fn open_with_metadata(file: &Path) -> io::Result<(File, Metadata)> {
    let not_regular = || Err(io::Error::other("it is not a regular file"));
    if !fs::metadata(file)?.is_file() {
        return not_regular();
    }
    let opened = open_without_blocking(file)?;
    let metadata = opened.metadata()?;
    if metadata.is_file() { Ok((opened, metadata)) } else { not_regular() }
}
