//! Calling the daemon. Plain blocking I/O: the front door is a small program that makes one call.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::message::RECEIVED;
use super::{Build, Reply, Request, SocketPath};
use crate::pipeline::Call;

/// A daemon that does not say "I am on it" by then is hung.
const HUNG: Duration = Duration::from_secs(2);

/// Why the daemon cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum NoDaemon {
    /// Nobody listens.
    #[error("no daemon answers")]
    Absent,
    /// One listens, but is of no use for this call.
    #[error("the daemon declined")]
    Declined,
    /// One listens, but broke off or hangs.
    #[error("the daemon broke off: {0}")]
    BrokeOff(io::Error),
    /// It has the call, and did not answer in time.
    #[error("the daemon did not answer in time")]
    OutOfTime,
}

/// Has the daemon handle a call; gives back what the agent hears.
pub fn call(socket: &SocketPath, build: Build, call: &Call) -> Result<Vec<u8>, NoDaemon> {
    let request = Request::Call { build, call: Box::new(call.clone()) };
    match ask(socket, &request, call.deadline)? {
        Reply::Answer(text) => Ok(text),
        Reply::Declined | Reply::Status(_) => Err(NoDaemon::Declined),
    }
}

/// Puts a request to the daemon, and waits for `patience` at the most.
pub fn ask(socket: &SocketPath, request: &Request, patience: Duration) -> Result<Reply, NoDaemon> {
    let started = Instant::now();
    let left = || patience.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
    let mut stream = socket.reach(connect).map_err(|_| NoDaemon::Absent)?;
    let mut received = [0];
    let sent = stream
        .set_write_timeout(Some(left().min(HUNG)))
        .and_then(|()| stream.set_read_timeout(Some(left().min(HUNG))))
        .and_then(|()| stream.write_all(&request.to_bytes()))
        .and_then(|()| stream.read_exact(&mut received));
    sent.map_err(NoDaemon::BrokeOff)?;
    if received != [RECEIVED] {
        return Err(NoDaemon::Declined);
    }
    let late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    read_reply(&mut stream, left()).map_err(|error| {
        if late.contains(&error.kind()) { NoDaemon::OutOfTime } else { NoDaemon::BrokeOff(error) }
    })
}

/// Does not wait for a place in the queue of a daemon that has stopped taking calls.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn read_reply(stream: &mut UnixStream, left: Duration) -> io::Result<Reply> {
    stream.set_read_timeout(Some(left))?;
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    Reply::from_bytes(&bytes).ok_or_else(|| io::Error::other("the reply makes no sense"))
}
