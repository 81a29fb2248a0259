//! Which hooks a replay asks: one file for all events, or for each event those that were in force.

use std::collections::HashMap;
use std::path::Path;

use hookbus::decide::{Hooks, Mode};
use hookbus::event::Seq;
use hookbus::log::{HooksDraft, LogReader, ReadError};

/// The hooks of a replay.
#[derive(Debug)]
pub enum Policy {
    /// These, whatever was in force.
    Given(Box<Hooks>),
    /// Those that were in force.
    AsRecorded(Box<Recorded>),
}

/// Every version that a log knows.
#[derive(Debug)]
pub struct Recorded {
    /// Where each one came into force; no hash where the row cannot be read.
    places: Vec<(Seq, Option<String>)>,
    versions: HashMap<String, Result<Hooks, String>>,
    none: Hooks,
}

impl Policy {
    /// The versions in this log.
    pub fn as_recorded(log: &LogReader) -> Result<Self, ReadError> {
        let mut recorded = Recorded {
            places: Vec::new(),
            versions: HashMap::new(),
            none: Hooks::none(Path::new("/")),
        };
        for (seq, draft) in log.hooks_loaded()? {
            recorded.places.push((seq, draft.as_ref().map(|draft| draft.hash.clone())));
            if let Some(draft) = draft {
                let hooks = read(&draft);
                recorded.versions.insert(draft.hash, hooks);
            }
        }
        Ok(Self::AsRecorded(Box::new(recorded)))
    }

    /// The hooks for the event at `seq`; `named` is the hash in its decision.
    pub(crate) fn hooks_for(&self, seq: Seq, named: Option<&str>) -> Result<&Hooks, String> {
        match self {
            Self::Given(hooks) => Ok(hooks),
            Self::AsRecorded(recorded) => recorded.hooks_for(seq, named),
        }
    }

    /// Whether any hook of it runs outside of this process.
    pub fn has_commands(&self) -> bool {
        self.versions().any(|hooks| {
            hooks.hooks.iter().any(|hook| hook.runs_outside() && hook.mode() == Mode::Decide)
        })
    }

    fn versions(&self) -> Box<dyn Iterator<Item = &Hooks> + '_> {
        match self {
            Self::Given(hooks) => Box::new(std::iter::once(hooks.as_ref())),
            Self::AsRecorded(recorded) => {
                Box::new(recorded.versions.values().filter_map(|hooks| hooks.as_ref().ok()))
            }
        }
    }

    /// What has to be said about it.
    pub fn remarks(&self) -> Vec<String> {
        let Self::AsRecorded(recorded) = self else { return Vec::new() };
        let unread = recorded.places.iter().filter(|(_, hash)| hash.is_none());
        unread.map(|(seq, _)| format!("row {seq} should hold hooks, and cannot be read")).collect()
    }
}

impl Recorded {
    fn hooks_for(&self, seq: Seq, named: Option<&str>) -> Result<&Hooks, String> {
        let before = self.places.partition_point(|(place, _)| *place <= seq);
        let in_force = before.checked_sub(1).and_then(|at| self.places.get(at));
        let hash = match (named, in_force) {
            (Some(hash), _) => hash,
            (None, Some((_, Some(hash)))) => hash.as_str(),
            (None, None) => return Ok(&self.none),
            (None, Some((_, None))) => {
                return Err("the row with the hooks of then cannot be read".to_owned());
            }
        };
        match self.versions.get(hash) {
            Some(Ok(hooks)) => Ok(hooks),
            Some(Err(why)) => Err(format!("the hooks of then cannot be used any more: {why}")),
            None if hash == self.none.hash => Ok(&self.none),
            None => Err("the hooks of then are not in this log".to_owned()),
        }
    }
}

fn read(draft: &HooksDraft) -> Result<Hooks, String> {
    let base = Path::new(&draft.path).parent().unwrap_or(Path::new("/"));
    if draft.content.is_empty() {
        return Ok(Hooks::none(base));
    }
    Hooks::parse(&draft.content, base).map_err(|problem| problem.to_string())
}
