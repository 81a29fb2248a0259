//! Recognising that the system is short of something: a state that passes, unlike a missing file.

use std::io;

use rustix::io::Errno;

/// Whether an operation failed because there are too many open files or processes, or too little memory.
pub fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM))
}
