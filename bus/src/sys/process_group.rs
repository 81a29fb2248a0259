//! Process groups: everything that a hook has started is killed with it.

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

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
