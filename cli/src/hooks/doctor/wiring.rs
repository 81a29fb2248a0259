//! Whether Hermes really calls the bus, and once only; whether anything has been heard lately.

use std::path::PathBuf;
use std::time::Duration;

use hookbus::event::{Clock, SystemClock};
use hookbus::log::{LogPath, LogReader, Query};

use super::finding::Finding;
use crate::connect;
use crate::output::spell;
use crate::settings::Settings;

/// An agent that said nothing for so long may not be wired any more.
const LATELY: Duration = Duration::from_hours(24 * 7);

/// What is found.
pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let health = connect::health(settings);
    let is_wired = health.iter().any(|(_, wrong)| wrong.is_none());
    let wires = health.into_iter().map(|(home, wrong): (PathBuf, Option<String>)| {
        let about = format!("Hermes in {}", home.display());
        match wrong {
            None => Finding::well(format!("{about} is connected")),
            Some(wrong) => Finding::bad(about, wrong),
        }
    });
    wires.chain([arrivals(settings, is_wired)]).collect()
}

fn arrivals(settings: &Settings, is_wired: bool) -> Finding {
    let log = LogPath::in_home(&settings.home);
    let last = LogReader::open(&log).ok().and_then(|log| {
        let rows = log.last(&Query::default(), 50).ok()?;
        rows.into_iter().rev().find(|row| row.agent != "hookbus")
    });
    let now = SystemClock.now();
    match last {
        None if is_wired => Finding::bad(
            "events",
            "none has arrived yet; restart Hermes where it runs, say something to it, then look again",
        ),
        None => Finding::bad(
            "events",
            "none has ever arrived; wire an agent with `hookbus connect hermes`, then use it",
        ),
        Some(row) if now.since(row.at) > LATELY => {
            let way = if is_wired {
                "if Hermes was used since, restart it where it runs"
            } else {
                "is the agent still wired? `hookbus connect hermes` mends that"
            };
            Finding::bad(
                "events",
                format!("the last one is {} old; {way}", spell(now.since(row.at))),
            )
        }
        Some(row) => Finding::well(format!(
            "the last event came from {} {} ago",
            row.agent,
            spell(now.since(row.at))
        )),
    }
}
