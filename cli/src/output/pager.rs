//! The pager: while one runs, the lines of the result go to it instead of to stdout.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::StdoutClosed;

/// Where the lines go while a pager runs.
static TO_PAGER: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// A running pager. Dropping it waits until the user has left it.
#[derive(Debug)]
pub(crate) struct Pager {
    child: Child,
}

impl Pager {
    /// Starts a pager, as the shell of the user reads the command; none if it cannot be started.
    pub(crate) fn start(command: &str) -> Option<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped());
        // As git does it: colours, and no page for a text that fits the window.
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        let mut child = shell.spawn().ok()?;
        *lock() = child.stdin.take();
        Some(Self { child })
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(lock().take());
        if let Err(error) = self.child.wait() {
            tracing::debug!(%error, "cannot wait for the pager");
        }
    }
}

/// Writes a line to the pager; none if there is no pager.
pub(super) fn line(text: &str) -> Option<Result<(), StdoutClosed>> {
    let mut pager = lock();
    let pager = pager.as_mut()?;
    let written = pager.write_all(text.as_bytes()).and_then(|()| pager.write_all(b"\n"));
    Some(written.map_err(|_| StdoutClosed))
}

fn lock() -> MutexGuard<'static, Option<ChildStdin>> {
    TO_PAGER.lock().unwrap_or_else(PoisonError::into_inner)
}
