//! Unix sockets: connecting without waiting, binding for one user, and the user on the other side.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::umask;

/// The longest path that fits a socket address on every Unix.
pub const LONGEST_PATH: usize = 100;

/// A path to the file `name` in an open directory that is shorter than [`LONGEST_PATH`]. Valid in
/// this process for as long as `directory` is open.
pub fn short_path(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// Connects to the socket at `path`. Fails at once if the listener's queue is full.
pub fn connect_without_waiting(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Runs `create` so that the files it creates are readable and writable by their owner only, from
/// the moment they exist. Changes the umask of the whole process meanwhile.
pub fn create_private<T>(create: impl FnOnce() -> T) -> T {
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let created = create();
    umask(before);
    created
}

/// The user that the process on the other side of `stream` acts as.
pub fn peer_uid(stream: &tokio::net::UnixStream) -> io::Result<u32> {
    Ok(stream.peer_cred()?.uid())
}
