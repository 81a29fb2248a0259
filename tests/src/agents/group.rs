//! Ends an agent's processes, by their ids and no others: at the time limit the whole family, and
//! what a finished agent left in its process group once the [`Group`] is dropped. A process that
//! detached itself (a daemon) is in neither and lives on.

use std::fs;
use std::process::{Child, Command, Stdio};

/// The process group that an agent leads.
#[derive(Debug)]
pub(super) struct Group {
    id: u32,
    /// Only a group that has members is killed: the id of an empty one may belong to someone else.
    has_members: bool,
}

impl Group {
    pub(super) fn of(leader: &Child) -> Self {
        Self { id: leader.id(), has_members: true }
    }

    /// Ends a group whose leader still runs. Hermes gives its tools sessions of their own, so the
    /// group alone would leave them running.
    pub(super) fn kill_with_descendants(&mut self) {
        let everyone = everyone();
        let mut family = vec![self.id];
        while let Some(next) = everyone
            .iter()
            .find(|process| family.contains(&process.parent) && !family.contains(&process.id))
        {
            family.push(next.id);
        }
        kill(family.iter().map(u32::to_string).chain([format!("-{}", self.id)]));
    }

    /// To be asked right after the leader's end, while nobody else can have taken its id.
    pub(super) fn look_for_members(&mut self) {
        self.has_members = everyone().iter().any(|process| process.group == self.id);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.has_members {
            kill([format!("-{}", self.id)]);
        }
    }
}

fn kill(ids: impl IntoIterator<Item = String>) {
    let mut command = Command::new("kill");
    command.args(["-KILL", "--"]).args(ids).stderr(Stdio::null());
    // Its exit code is no news: a process that ended by itself meanwhile makes it fail.
    let started = command.status();
    assert!(started.is_ok(), "`kill` is needed to end what an agent left behind: {started:?}");
}

struct Process {
    id: u32,
    parent: u32,
    group: u32,
}

/// Every process that runs; those that have ended and only wait to be read are left out.
fn everyone() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| read(&stat)).collect()
}

/// `id (name) state parent group …`, where a name may hold spaces and brackets.
fn read(stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_running = fields.next()? != "Z";
    let process = Process {
        id: start.split(' ').next()?.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    };
    is_running.then_some(process)
}
