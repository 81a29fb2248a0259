//! What a daemon takes on at once. Everything that it holds open counts against the descriptors of its
//! process; a call beyond these limits is declined, and its client does the work in its own process.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A client that sends or takes nothing for this long has its connection closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(5);

/// A request that takes longer to arrive is given up: it would keep others from being read.
const SLOWEST_REQUEST: Duration = Duration::from_secs(30);

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 1 << 30;

/// A larger request is handled on a thread of its own, so that other agents do not wait for it.
pub(super) const LARGE_REQUEST: u64 = 256 << 10;

/// How many large requests are handled at once: each may need several times its size in memory.
pub(super) const LARGE_AT_ONCE: usize = 2;

/// How long a large request waits for the others. Less than a client waits for the confirmation.
pub(super) const LARGE_WAIT: Duration = Duration::from_secs(1);

/// Descriptors for the log, the relay, observers, plugins and the files that are read.
const RESERVED: usize = 40;

/// Of one command: its three pipes, and the handle on its process.
const PER_COMMAND: usize = 4;

/// More commands or connections at once would not be faster.
const MOST_COMMANDS: usize = 256;
const MOST_CONNECTIONS: usize = 4096;

/// How the descriptors of a process are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) connections: usize,
    /// Commands of hooks that run at the same time.
    pub(super) commands: usize,
}

impl Limits {
    /// For a process that may have `descriptors` open.
    pub(super) fn of(descriptors: usize) -> Self {
        let free = descriptors.saturating_sub(RESERVED.max(descriptors / 4));
        let connections = (free / 3).min(MOST_CONNECTIONS);
        let commands = ((free - connections) / PER_COMMAND).min(MOST_COMMANDS);
        Self { connections, commands }
    }
}

/// The length of the request that a client sends.
pub(super) async fn read_length(stream: &mut UnixStream) -> io::Result<u64> {
    let length = tokio::time::timeout(IDLE_CONNECTION, stream.read_u64()).await??;
    if length > MAX_REQUEST {
        return Err(io::Error::other("the request is too long"));
    }
    Ok(length)
}

/// The request itself. Memory grows with what arrives, not with what was announced.
pub(super) async fn read_body(stream: &mut UnixStream, length: u64) -> io::Result<Vec<u8>> {
    tokio::time::timeout(SLOWEST_REQUEST, read_bytes(stream, length)).await?
}

async fn read_bytes(stream: &mut UnixStream, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut body = stream.take(length);
    while body.limit() > 0 {
        if bytes.len() == bytes.capacity() {
            let more = body.limit().min(LARGE_REQUEST.max(bytes.len() as u64));
            bytes.reserve_exact(usize::try_from(more).map_err(io::Error::other)?);
        }
        if tokio::time::timeout(IDLE_CONNECTION, body.read_buf(&mut bytes)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes)
}

/// Sends a reply, unless the client does not take it.
pub(super) async fn write_reply(stream: &mut UnixStream, reply: &[u8]) -> io::Result<()> {
    for part in reply.chunks(64 << 10) {
        tokio::time::timeout(IDLE_CONNECTION, stream.write_all(part)).await??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_commands_fit_the_descriptors_of_the_process() {
        for descriptors in [0, 20, 64, 256, 1024, 4096, 1 << 20, usize::MAX] {
            let Limits { connections, commands } = Limits::of(descriptors);
            assert!(connections + PER_COMMAND * commands <= descriptors.saturating_sub(RESERVED));
        }
        assert_eq!(Limits::of(64), Limits { connections: 8, commands: 4 });
        assert_eq!(Limits::of(1024), Limits { connections: 256, commands: 128 });
    }
}
