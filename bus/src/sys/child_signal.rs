//! Waiting for child processes although SIGCHLD is ignored. A process inherits that from its agent, and the system
//! then forgets how a child ended: no hook that runs a program could be asked.

use std::sync::Once;
use std::{fs, io};

use rustix::process::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Makes it possible to wait for children that are started from now on. Call it before each start: after the first
/// time it costs nothing.
pub fn make_children_waitable() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        if is_ignored()
            && let Err(error) = handle()
        {
            tracing::debug!(%error, "cannot handle SIGCHLD, which is ignored");
        }
    });
}

/// Whether this process ignores the signal; false where the system does not tell.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (Signal::CHILD.as_raw() - 1) & 1 == 1)
}

/// Installs a handler, which takes the place of ignoring the signal and stays until this process ends.
fn handle() -> io::Result<()> {
    // Of its own, because the caller may have none.
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let installed = {
        let _inside = runtime.enter();
        signal(SignalKind::child()).map(drop)
    };
    runtime.shutdown_background();
    installed
}
