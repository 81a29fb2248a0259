//! Looking at other processes and ending process groups.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

/// The process above `pid`; none if that cannot be found out.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything; the parent is the fourth.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// The command line of a process, as words; empty if that cannot be found out.
pub fn arguments(pid: u32) -> Vec<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    raw.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Whether a process reads its stdin from a terminal.
pub fn has_terminal_input(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/fd/0"))
        .is_ok_and(|stdin| stdin.starts_with("/dev/pts") || stdin.starts_with("/dev/tty"))
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A process group, by the id of its first process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group that the process with this id leads.
    pub fn of(leader: Option<u32>) -> Option<Self> {
        Pid::from_raw(i32::try_from(leader?).ok()?).map(Self)
    }

    /// Kills every process of the group. That none is left is not an error.
    pub fn kill(self) {
        if let Err(error) = kill_process_group(self.0, Signal::KILL) {
            tracing::debug!(%error, "the process group has ended already");
        }
    }

    /// Limits the memory that the group's first process may write to. Not what it may reserve: some
    /// runtimes reserve far more than they use.
    pub fn limit_memory(self, bytes: u64) {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        if let Err(error) = prlimit(Some(self.0), Resource::Data, limit) {
            tracing::debug!(%error, "the process ended before its memory could be limited");
        }
    }
}
