//! The `gateway:startup` event that a hook or an observer passes on stdin: its id, whether boot.log says that it was
//! handled before, and whether it is too old.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use hookbus::event::Time;
use hookbus::json::read_leniently;
use serde_json::Value;

use crate::args::parse_time;

/// The words in boot.log for a start that failed and is to be tried again.
pub(super) const NOT_BEGUN: &str = "could not begin";

/// Starts that are older than this are skipped.
const MAX_AGE: Duration = Duration::from_mins(10);

/// The most that is read from stdin.
const MAX_EVENT_SIZE: u64 = 64 << 20;

/// A start of the gateway.
#[derive(Debug)]
pub(super) struct GatewayStart {
    id: Option<String>,
    at: Option<Time>,
    /// The working directory of the gateway.
    pub(super) cwd: Option<PathBuf>,
    /// The event comes from a replay.
    replayed: bool,
}

impl GatewayStart {
    /// Reads the event from stdin; none if a user runs `hookbus boot` by hand.
    pub(super) fn from_stdin() -> Result<Option<Self>> {
        if io::IsTerminal::is_terminal(&io::stdin()) {
            return Ok(None);
        }
        let mut event = Vec::new();
        io::stdin().lock().take(MAX_EVENT_SIZE).read_to_end(&mut event)?;
        let event = read_leniently(&event).unwrap_or_default();
        let text = |key: &str| event["hookbus"][key].as_str().map(str::to_owned);
        Ok(event.get("hookbus").map(|ours| Self {
            id: text("id"),
            at: text("time").and_then(|time| parse_time(&time).ok()),
            cwd: event["cwd"].as_str().map(PathBuf::from).filter(|cwd| cwd.is_dir()),
            replayed: ours.get("replay") == Some(&Value::Bool(true)),
        }))
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("without an id")
    }

    /// Whether boot.log says that this start was handled. One that could not begin is tried again.
    pub(super) fn was_handled(&self, log: &Path) -> bool {
        let log = fs::read_to_string(log).unwrap_or_default();
        let latest = self.id.as_ref().and_then(|id| log.lines().rfind(|line| line.contains(id)));
        latest.is_some_and(|line| !line.contains(NOT_BEGUN))
    }

    /// Why this start must not be handled any more, if so.
    pub(super) fn reason_to_skip(&self, now: Time) -> Option<String> {
        if self.replayed {
            return Some("the event comes from a replay".to_owned());
        }
        let at = self.at.filter(|at| now.since(*at) > MAX_AGE)?;
        Some(format!("the gateway started at {at}, which is more than ten minutes ago"))
    }
}
