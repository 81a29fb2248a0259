//! The limit on the size of files (`ulimit -f`), which a process inherits from its agent. A write beyond it kills the
//! process by a signal, unless the signal is blocked: then the write fails, like one to a full disk.

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Resource, getrlimit};

/// Makes writes beyond the limit fail instead of killing this process. Threads and programs that are started later
/// inherit that. Call it before anything else; costs one system call if there is no limit.
pub fn survive_writes_beyond_limit() {
    if getrlimit(Resource::Fsize).current.is_none() {
        return;
    }
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    if let Err(error) = signals.thread_block() {
        tracing::debug!(%error, "cannot block the signal of the file size limit");
    }
}
