//! Which hooks a replay asks: one file for all events, or for each event those that were in force.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hookbus::decide::{Hook, Hooks, Mode, plan};
use hookbus::event::{BusId, Event, Seq};
use hookbus::log::{HooksDraft, Loaded, LogReader, ReadError};

/// The hooks of a replay.
#[derive(Debug)]
pub enum Policy {
    /// These, whatever was in force.
    Given(Box<Hooks>),
    /// Those that were in force.
    AsRecorded(Arc<Recorded>),
}

/// Every version that a log knows.
#[derive(Debug)]
pub struct Recorded {
    /// Where each one came into force, by bus; none where the row cannot be read.
    places: HashMap<Option<BusId>, Vec<(Seq, Option<usize>)>>,
    versions: Vec<Version>,
    none: Hooks,
}

/// Hooks at the place where they were: a relative script of two buses is not the same.
#[derive(Debug)]
struct Version {
    path: String,
    hash: String,
    hooks: Result<Hooks, String>,
}

impl Policy {
    /// The hooks for the event recorded at `home`; `named` is the hash in its decision.
    pub(crate) fn hooks_for(
        &self,
        home: (Option<BusId>, Seq),
        named: Option<&str>,
    ) -> Result<&Hooks, String> {
        match self {
            Self::Given(hooks) => Ok(hooks),
            Self::AsRecorded(recorded) => recorded.hooks_for(home, named),
        }
    }

    /// Whether any hook of it runs outside of this process.
    pub fn has_commands(&self) -> bool {
        self.versions().any(|hooks| hooks.hooks.iter().any(decides_outside))
    }

    fn versions(&self) -> Box<dyn Iterator<Item = &Hooks> + '_> {
        match self {
            Self::Given(hooks) => Box::new(std::iter::once(hooks.as_ref())),
            Self::AsRecorded(recorded) => {
                Box::new(recorded.versions.iter().filter_map(|it| it.hooks.as_ref().ok()))
            }
        }
    }

    /// What has to be said about it.
    pub fn remarks(&self) -> Vec<String> {
        let Self::AsRecorded(recorded) = self else { return Vec::new() };
        let unread = recorded.places.values().flatten().filter(|(_, version)| version.is_none());
        unread.map(|(seq, _)| format!("row {seq} should hold hooks, and cannot be read")).collect()
    }
}

fn decides_outside(hook: &Hook) -> bool {
    hook.runs_outside() && hook.mode() == Mode::Decide
}

impl Recorded {
    /// The versions in this log.
    pub fn read(log: &LogReader) -> Result<Self, ReadError> {
        let mut recorded = Self {
            places: HashMap::new(),
            versions: Vec::new(),
            none: Hooks::none(Path::new("/")),
        };
        for Loaded { bus, seq, hooks } in log.hooks_loaded()? {
            let version = hooks.map(|draft| recorded.version(draft));
            recorded.places.entry(bus).or_default().push((seq, version));
        }
        for places in recorded.places.values_mut() {
            places.sort_unstable();
        }
        Ok(recorded)
    }

    fn version(&mut self, draft: HooksDraft) -> usize {
        let same = |it: &Version| it.hash == draft.hash && it.path == draft.path;
        self.versions.iter().position(same).unwrap_or_else(|| {
            let hooks = read(&draft);
            self.versions.push(Version { path: draft.path, hash: draft.hash, hooks });
            self.versions.len() - 1
        })
    }

    /// The hooks that were in force for the event recorded at `home`; `named` is the hash in its
    /// decision.
    pub(crate) fn hooks_for(
        &self,
        (bus, seq): (Option<BusId>, Seq),
        named: Option<&str>,
    ) -> Result<&Hooks, String> {
        let places = self.places.get(&bus).map_or(&[][..], Vec::as_slice);
        let (before, after) = places.split_at(places.partition_point(|(place, _)| *place <= seq));
        let version = match (named, before.last()) {
            (Some(hash), _) => {
                let mut near = before.iter().rev().chain(after);
                let found = near.find_map(|(_, version)| {
                    version.and_then(|at| self.versions.get(at)).filter(|it| it.hash == hash)
                });
                match found {
                    Some(version) => version,
                    None if hash == self.none.hash => return Ok(&self.none),
                    None => return Err("the hooks of then are not in this log".to_owned()),
                }
            }
            (None, None) => return Ok(&self.none),
            (None, Some((_, version))) => version
                .and_then(|at| self.versions.get(at))
                .ok_or("the row with the hooks of then cannot be read")?,
        };
        version
            .hooks
            .as_ref()
            .map_err(|why| format!("the hooks of then cannot be used any more: {why}"))
    }

    /// Whether a command must have been asked about the event recorded at `home`, of which no decision
    /// is known: whoever asked it did not live to write down what it said.
    pub(crate) fn was_cut_short(&self, home: (Option<BusId>, Seq), event: &Event) -> bool {
        self.hooks_for(home, None).is_ok_and(|hooks| {
            hooks.hooks.iter().any(decides_outside)
                && plan(event, hooks).outside().any(Hook::is_command)
        })
    }

    /// Whether the entry of this hook was malformed then.
    pub(crate) fn was_broken(
        &self,
        home: (Option<BusId>, Seq),
        named: Option<&str>,
        name: &str,
    ) -> bool {
        self.hooks_for(home, named).is_ok_and(|hooks| {
            hooks.hooks.iter().any(|hook| hook.is_broken() && hook.name() == name)
        })
    }
}

fn read(draft: &HooksDraft) -> Result<Hooks, String> {
    let base = Path::new(&draft.path).parent().unwrap_or(Path::new("/"));
    if draft.content.is_empty() {
        return Ok(Hooks::none(base));
    }
    Hooks::parse(&draft.content, base).map_err(|problem| problem.to_string())
}
