//! Kills an agent's processes by their ids: at the time limit the agent and all its descendants, and when
//! the [`ProcessGroup`] is dropped what is left of the group of an agent that has ended. A daemon, which has
//! detached itself, is in neither and stays.

use std::fs;
use std::process::{Child, Command, Stdio};

/// The process group that an agent leads.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    id: u32,
    /// What was left of it at its leader's end. Only these are killed: the id of an empty group may have been
    /// reused, and so may the id of a process, but not together with its start time.
    left: Vec<Process>,
}

impl ProcessGroup {
    pub(super) fn of(leader: &Child) -> Self {
        Self { id: leader.id(), left: Vec::new() }
    }

    /// Kills the group and all descendants of its leader, which still runs. Hermes starts tools in their
    /// own sessions, so they are not in the group.
    pub(super) fn kill_with_descendants(&mut self) {
        let processes = running_processes();
        let mut family = vec![self.id];
        while let Some(next) = processes
            .iter()
            .find(|process| family.contains(&process.parent) && !family.contains(&process.id))
        {
            family.push(next.id);
        }
        kill(family.iter().map(u32::to_string).chain([format!("-{}", self.id)]));
    }

    /// Looks for members that are left. Call this right after the leader's end, before its id can be reused.
    pub(super) fn look_for_members(&mut self) {
        self.left = running_processes();
        self.left.retain(|process| process.group == self.id);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let mut running = running_processes();
        running.retain(|process| process.group == self.id);
        // A member that was started since belongs to the group as long as one of the old ones still runs.
        if running.iter().any(|process| self.left.contains(process)) {
            kill(running.iter().map(|process| process.id.to_string()));
        }
    }
}

fn kill(ids: impl IntoIterator<Item = String>) {
    let mut command = Command::new("kill");
    command.args(["-KILL", "--"]).args(ids).stderr(Stdio::null());
    // The exit code does not matter: `kill` fails for a process that has ended in the meantime.
    let started = command.status();
    assert!(started.is_ok(), "`kill` cannot be started: {started:?}");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    group: u32,
    /// In ticks since the system's start.
    started: u64,
}

/// All running processes, without zombies.
fn running_processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| read(&stat)).collect()
}

/// `id (name) state parent group …`, the start time after 16 more fields; a name may contain spaces and
/// brackets.
fn read(stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_running = fields.next()? != "Z";
    let process = Process {
        id: start.split(' ').next()?.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        started: fields.nth(16)?.parse().ok()?,
    };
    is_running.then_some(process)
}
