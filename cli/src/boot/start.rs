//! The start of a gateway, as a hook or an observer tells of it on stdin: which one, and whether it is still to be
//! seen to.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use hookbus::event::Time;
use hookbus::json::read_leniently;
use serde_json::Value;

use crate::args::parse_time;

/// In `boot.log`, about a start that is still to be seen to.
pub(super) const NOT_BEGUN: &str = "could not begin";

/// What a start that is longer ago than this would have needed, it has needed then.
const PAST: Duration = Duration::from_mins(10);

/// No event is longer.
const LONGEST_EVENT: u64 = 64 << 20;

/// The start of a gateway, as a hook or an observer tells of it.
#[derive(Debug)]
pub(super) struct Start {
    id: Option<String>,
    at: Option<Time>,
    /// Where the gateway was started.
    pub(super) place: Option<PathBuf>,
    /// It is told once more, for others to rebuild what they keep.
    replayed: bool,
}

impl Start {
    /// The one on stdin; whoever runs this by hand gives none.
    pub(super) fn told() -> Result<Option<Self>> {
        if io::IsTerminal::is_terminal(&io::stdin()) {
            return Ok(None);
        }
        let mut event = Vec::new();
        io::stdin().lock().take(LONGEST_EVENT).read_to_end(&mut event)?;
        let event = read_leniently(&event).unwrap_or_default();
        let text = |key: &str| event["hookbus"][key].as_str().map(str::to_owned);
        Ok(event.get("hookbus").map(|ours| Self {
            id: text("id"),
            at: text("time").and_then(|time| parse_time(&time).ok()),
            place: event["cwd"].as_str().map(PathBuf::from).filter(|place| place.is_dir()),
            replayed: ours.get("replay") == Some(&Value::Bool(true)),
        }))
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("without an id")
    }

    /// Whether it was seen to before. What could not be begun was not.
    pub(super) fn is_known(&self, log: &Path) -> bool {
        let known = fs::read_to_string(log).unwrap_or_default();
        let told = self.id.as_ref().and_then(|id| known.lines().rfind(|line| line.contains(id)));
        told.is_some_and(|line| !line.contains(NOT_BEGUN))
    }

    /// Why it is too late for it.
    pub(super) fn is_past(&self, now: Time) -> Option<String> {
        if self.replayed {
            return Some("it is replayed".to_owned());
        }
        let at = self.at.filter(|at| now.since(*at) > PAST)?;
        Some(format!("the gateway started at {at}, which is more than ten minutes ago"))
    }
}
