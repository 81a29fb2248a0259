//! Calling the daemon. Plain blocking I/O: the front door is a small program that makes one call.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

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
    match ask(socket, &request, call.patience)? {
        Reply::Answer(text) => Ok(text),
        Reply::Declined | Reply::Status(_) => Err(NoDaemon::Declined),
    }
}

/// Puts a request to the daemon, and waits for `patience` at the most.
pub fn ask(socket: &SocketPath, request: &Request, patience: Duration) -> Result<Reply, NoDaemon> {
    let end = Instant::now() + patience;
    let mut stream =
        socket.reach(|path| UnixStream::connect(path)).map_err(|_| NoDaemon::Absent)?;
    let mut received = [0];
    let sent = stream
        .set_write_timeout(Some(HUNG))
        .and_then(|()| stream.set_read_timeout(Some(HUNG)))
        .and_then(|()| stream.write_all(&request.to_bytes()))
        .and_then(|()| stream.read_exact(&mut received));
    sent.map_err(NoDaemon::BrokeOff)?;
    if received != [RECEIVED] {
        return Err(NoDaemon::Declined);
    }
    let late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    read_reply(&mut stream, end).map_err(|error| {
        if late.contains(&error.kind()) { NoDaemon::OutOfTime } else { NoDaemon::BrokeOff(error) }
    })
}

fn read_reply(stream: &mut UnixStream, end: Instant) -> io::Result<Reply> {
    let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_read_timeout(Some(left))?;
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    Reply::from_bytes(&bytes).ok_or_else(|| io::Error::other("the reply makes no sense"))
}
