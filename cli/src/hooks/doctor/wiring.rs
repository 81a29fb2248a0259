//! Whether Hermes really calls the bus, and once only; whether a daemon is there where one has to be; whether anything
//! has been heard lately.

use std::time::Duration;

use hookbus::event::{Clock, SystemClock};
use hookbus::log::{LogPath, LogReader, Query};

use super::super::{HooksHere, here};
use super::finding::Finding;
use crate::connect::{self, Health, Twice};
use crate::output::spell;
use crate::settings::Settings;
use crate::status::{self, hung_daemon};

/// An agent that said nothing for so long may not be wired any more.
const LATELY: Duration = Duration::from_hours(24 * 7);

/// Whether anything can be heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wired {
    No,
    Yes,
    /// Only while a daemon is up, and none is.
    WithoutDaemon,
}

/// What is found.
pub(super) fn look(settings: &Settings, hooks: &HooksHere) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(
        hung_daemon(settings).map(|hung| Finding::bad("the daemon", format!("it is {hung}"))),
    );
    let (mut wired, mut twice) = (Wired::No, Vec::new());
    for Health { home, wrong, calls, needs_a_daemon } in connect::health(settings) {
        let about = format!("Hermes in {}", home.display());
        let missing = needs_a_daemon.and_then(|otherwise| daemon_missing(settings, &otherwise));
        wired = match (&wrong, &missing, wired) {
            (Some(_), _, wired) => wired,
            (None, Some(Missing::Down(_)), Wired::No) => Wired::WithoutDaemon,
            (None, Some(Missing::Down(_)), wired) => wired,
            (None, Some(Missing::Soon(_)) | None, _) => Wired::Yes,
        };
        let wrong = wrong.or(missing.map(Missing::why));
        findings.push(match wrong {
            None => Finding::well(format!("{about} is connected")),
            Some(wrong) => Finding::bad(about, wrong),
        });
        if calls {
            twice.extend(hooks.files().flat_map(|(source, in_force)| {
                connect::run_twice(&home, &in_force.hooks, source.file(), &here())
            }));
        }
    }
    findings.extend(
        twice
            .into_iter()
            .map(|Twice { plugin, why }| Finding::bad(format!("the plugin {plugin}"), why)),
    );
    findings.push(arrivals(settings, wired));
    findings
}

/// The daemon that a Hermes relies on which starts none.
enum Missing {
    Down(String),
    /// It is up, but not for good.
    Soon(String),
}

impl Missing {
    fn why(self) -> String {
        let (Self::Down(why) | Self::Soon(why)) = self;
        why
    }
}

fn daemon_missing(settings: &Settings, otherwise: &str) -> Option<Missing> {
    let state = status::state(settings);
    let way = format!(
        "and without one every event passes unseen (`--without-daemon allow`); keep `hookbus serve` running, or run `{otherwise}`"
    );
    if !state["hung"].is_null() {
        return None; // there is a finding about that one
    }
    if state["daemon"].is_null() {
        return Some(Missing::Down(format!("no daemon is up, {way}")));
    }
    let leaves = state["daemon"]["leaves_after_idle_s"].as_u64().map(Duration::from_secs)?;
    Some(Missing::Soon(format!("the daemon leaves after {} without calls, {way}", spell(leaves))))
}

fn arrivals(settings: &Settings, wired: Wired) -> Finding {
    let log = LogPath::in_home(&settings.home);
    let last = LogReader::open(&log).ok().and_then(|log| {
        let rows = log.last(&Query::default(), 50).ok()?;
        rows.into_iter().rev().find(|row| row.agent != "hookbus")
    });
    let now = SystemClock.now();
    match last {
        None if wired == Wired::WithoutDaemon => Finding::bad(
            "events",
            "none has arrived yet; start `hookbus serve`, say something to Hermes, then look again",
        ),
        None if wired == Wired::Yes => Finding::bad(
            "events",
            "none has arrived yet; restart Hermes where it runs, say something to it, then look again",
        ),
        None => Finding::bad(
            "events",
            "none has ever arrived; wire an agent with `hookbus connect hermes`, then use it",
        ),
        Some(row) if now.since(row.at) > LATELY => {
            let way = match wired {
                Wired::Yes => "if Hermes was used since, restart it where it runs",
                Wired::WithoutDaemon => "`hookbus serve` has to run while Hermes is used",
                Wired::No => "is the agent still wired? `hookbus connect hermes` mends that",
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
