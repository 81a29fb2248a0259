//! Opening files in ways that the standard library does not cover.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file for reading; a FIFO or a terminal in its place does not block the caller.
pub fn open_without_blocking(file: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(file)
}
