//! Calls the daemon. Blocking I/O, because `hookbus hook` is a short process that makes one call.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::message::RECEIVED;
use super::{BuildVersion, DaemonReply, DaemonRequest, SocketPath};
use crate::pipeline::{Answer, Call};
use crate::sys::socket::connect_without_waiting;

/// A daemon that does not confirm a request within this time is hung.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the daemon gave no reply.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// No process listens on the socket.
    #[error("no daemon is listening")]
    NotRunning,
    /// The daemon does not handle this request: it exits for a newer version, or does not understand it.
    #[error("the daemon declined the request")]
    Declined,
    /// The connection failed before the reply, or the daemon did not confirm the request.
    #[error("the connection to the daemon failed: {0}")]
    Failed(io::Error),
    /// The daemon confirmed the request, but did not reply in time.
    #[error("the daemon did not reply in time")]
    TimedOut,
}

/// Lets the daemon handle a call; returns the answer for the agent.
pub fn call(socket: &SocketPath, build: BuildVersion, call: &Call) -> Result<Answer, DaemonError> {
    let request = DaemonRequest::Call { build, call: Box::new(call.clone()) };
    match ask(socket, &request, call.deadline)? {
        DaemonReply::Answer { text, notice } => {
            let text_of = |bytes: Vec<u8>| {
                let text = String::from_utf8(bytes).map_err(io::Error::other);
                text.map(|text| Some(text).filter(|text| !text.is_empty()))
            };
            let answer =
                text_of(text).and_then(|text| Ok(Answer { text, notice: text_of(notice)? }));
            answer.map_err(DaemonError::Failed)
        }
        DaemonReply::Declined | DaemonReply::Status(_) => Err(DaemonError::Declined),
    }
}

/// Sends a request to the daemon, and waits for the reply for at most `timeout`.
pub fn ask(
    socket: &SocketPath,
    request: &DaemonRequest,
    timeout: Duration,
) -> Result<DaemonReply, DaemonError> {
    let started = Instant::now();
    let left = || timeout.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
    let mut stream =
        socket.with_short_path(connect_without_waiting).map_err(|_| DaemonError::NotRunning)?;
    let mut confirmation = [0];
    let sent = stream
        .set_write_timeout(Some(left().min(CONFIRM_TIMEOUT)))
        .and_then(|()| stream.set_read_timeout(Some(left().min(CONFIRM_TIMEOUT))))
        .and_then(|()| request.write_to(&stream))
        .and_then(|()| stream.read_exact(&mut confirmation));
    sent.map_err(DaemonError::Failed)?;
    if confirmation != [RECEIVED] {
        return Err(DaemonError::Declined);
    }
    let timed_out = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    read_reply(&mut stream, left()).map_err(|error| {
        if timed_out.contains(&error.kind()) {
            DaemonError::TimedOut
        } else {
            DaemonError::Failed(error)
        }
    })
}

fn read_reply(stream: &mut UnixStream, timeout: Duration) -> io::Result<DaemonReply> {
    stream.set_read_timeout(Some(timeout))?;
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_be_bytes(length)).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    DaemonReply::from_bytes(&bytes).ok_or_else(|| io::Error::other("the reply is malformed"))
}
