//! The path of the daemon's socket. A socket address holds about a hundred bytes and a home may have a
//! longer path; such a socket is reached through an open handle on its directory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::socket::{LONGEST_PATH, short_path};

const NAME: &str = "bus.sock";

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

    /// Calls `with` with a path to the socket that fits a socket address.
    pub(super) fn with_short_path<T>(
        &self,
        with: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let file = self.file();
        if file.as_os_str().len() <= LONGEST_PATH {
            return with(&file);
        }
        let home = File::open(&self.home)?;
        with(&short_path(&home, NAME))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_in_a_deep_home_can_be_reached() {
        let folder = tempfile::tempdir().expect("a directory");
        let home = folder.path().join("deep".repeat(40));
        std::fs::create_dir(&home).expect("a home");
        let socket = SocketPath::in_home(&home);
        assert!(UnixListener::bind(socket.file()).is_err(), "its path is too long");
        let listener = socket.with_short_path(|path| UnixListener::bind(path)).expect("it listens");
        socket.with_short_path(|path| UnixStream::connect(path)).expect("it answers");
        drop(listener);
    }
}
