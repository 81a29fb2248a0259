//! Where the socket is. A socket's address holds about a hundred bytes; a home may be deeper than
//! that, so a long one is reached through an open handle on its directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const NAME: &str = "bus.sock";

/// What fits an address on every Unix.
const LONGEST: usize = 100;

/// The daemon's socket in one home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPath {
    home: PathBuf,
}

impl SocketPath {
    /// The socket in `home`.
    pub fn in_home(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// The socket's file.
    pub fn file(&self) -> PathBuf {
        self.home.join(NAME)
    }

    /// Calls `with` with an address that is short enough.
    pub(super) fn reach<T>(&self, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let file = self.file();
        if file.as_os_str().len() <= LONGEST {
            return with(&file);
        }
        let home = File::open(&self.home)?;
        with(&PathBuf::from(format!("/proc/self/fd/{}/{NAME}", home.as_raw_fd())))
    }
}
