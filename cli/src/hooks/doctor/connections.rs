//! Checks the connections: does each Hermes and each Gemini call the bus, and once only? Does a daemon run where one is needed? Do events
//! arrive?

use std::time::Duration;

use hookbus::event::{Clock, SystemClock};
use hookbus::log::{LogPath, LogReader, Query};

use super::super::{EffectiveHooks, current_caller};
use super::finding::Finding;
use super::gateway;
use crate::connect::{self, DoubleLoaded, GeminiHealth, Health};
use crate::output::format_duration;
use crate::settings::Settings;
use crate::status::{self, describe_hung_daemon};

/// If the last event is older than this, the agent may not be connected any more.
const RECENT: Duration = Duration::from_hours(24 * 7);

/// Whether events can arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connected {
    No,
    Yes,
    /// Only while a daemon runs, and none does.
    WithoutDaemon,
}

/// Checks everything about connections.
pub(super) fn check(settings: &Settings, hooks: &EffectiveHooks) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(
        describe_hung_daemon(settings)
            .map(|hung| Finding::bad("the daemon", format!("it is {hung}"))),
    );
    let (mut connected, mut double) = (Connected::No, Vec::new());
    for Health { home, wrong, calls, needs_a_daemon, gateway_deadline } in connect::health(settings)
    {
        let about = format!("Hermes in {}", home.display());
        let missing = needs_a_daemon.and_then(|command| daemon_missing(settings, &command));
        connected = match (&wrong, &missing, connected) {
            (Some(_), _, connected) => connected,
            (None, Some(DaemonMissing::Now(_)), Connected::No) => Connected::WithoutDaemon,
            (None, Some(DaemonMissing::Now(_)), connected) => connected,
            (None, Some(DaemonMissing::Soon(_)) | None, _) => Connected::Yes,
        };
        let wrong = wrong.or(missing.map(DaemonMissing::why));
        findings.push(match wrong {
            None => Finding::ok(format!("{about} is connected")),
            Some(wrong) => Finding::bad(about, wrong),
        });
        if let Some(deadline) = gateway_deadline {
            findings.extend(gateway::check(hooks, deadline));
        }
        if calls {
            double.extend(hooks.files().flat_map(|(source, active)| {
                connect::double_loaded(&home, &active.file, source.file(), &current_caller())
            }));
        }
    }
    findings.extend(
        double
            .into_iter()
            .map(|DoubleLoaded { plugin, why }| Finding::bad(format!("the plugin {plugin}"), why)),
    );
    for GeminiHealth { file, wrong } in connect::gemini_health(settings) {
        let about = format!("Gemini CLI by {}", file.display());
        if wrong.is_empty() {
            connected = Connected::Yes;
            findings.push(Finding::ok(format!("{about} is connected{}", last_of_gemini(settings))));
        }
        findings.extend(wrong.into_iter().map(|wrong| Finding::bad(about.clone(), wrong)));
    }
    findings.push(check_events(settings, connected));
    findings
}

/// When the last event of Gemini came, for the finding about it.
fn last_of_gemini(settings: &Settings) -> String {
    let of_gemini = Query { agent: Some("gemini".to_owned()), ..Query::default() };
    let log = LogReader::open(&LogPath::in_home(&settings.home)).ok();
    let last = log.and_then(|log| log.last(&of_gemini, 1).ok()?.pop());
    last.map_or_else(
        || "; no event of it has arrived yet".to_owned(),
        |row| {
            format!(
                "; its last event came {} ago",
                format_duration(SystemClock.now().since(row.at))
            )
        },
    )
}

/// A Hermes that starts no daemon itself needs one, and none is running for good.
enum DaemonMissing {
    Now(String),
    /// One runs, but exits when it is idle.
    Soon(String),
}

impl DaemonMissing {
    fn why(self) -> String {
        let (Self::Now(why) | Self::Soon(why)) = self;
        why
    }
}

fn daemon_missing(settings: &Settings, command: &str) -> Option<DaemonMissing> {
    let state = status::state(settings);
    let advice = format!(
        "and without one every event passes unrecorded (`--without-daemon allow`); keep `hookbus serve` running, or run `{command}`"
    );
    if !state["hung"].is_null() {
        return None; // has a finding of its own
    }
    if state["daemon"].is_null() {
        return Some(DaemonMissing::Now(format!("no daemon runs, {advice}")));
    }
    let idle = state["daemon"]["leaves_after_idle_s"].as_u64().map(Duration::from_secs)?;
    let idle = format_duration(idle);
    Some(DaemonMissing::Soon(format!("the daemon exits after {idle} without calls, {advice}")))
}

fn check_events(settings: &Settings, connected: Connected) -> Finding {
    let log = LogPath::in_home(&settings.home);
    let last = LogReader::open(&log).ok().and_then(|log| {
        let rows = log.last(&Query::default(), 50).ok()?;
        rows.into_iter().rev().find(|row| row.agent != "hookbus")
    });
    let Some(last) = last else {
        return Finding::bad(
            "events",
            match connected {
                Connected::WithoutDaemon => {
                    "none has arrived yet; start `hookbus serve`, send Hermes a message, then check again"
                }
                Connected::Yes => {
                    "none has arrived yet; restart every agent that runs, send it a message, then check again"
                }
                Connected::No => {
                    "none has ever arrived; connect an agent with `hookbus connect hermes` or `hookbus connect gemini`, then use it"
                }
            },
        );
    };
    let age = SystemClock.now().since(last.at);
    if age <= RECENT {
        let agent = last.agent;
        return Finding::ok(format!(
            "the last event came from {agent} {} ago",
            format_duration(age)
        ));
    }
    let advice = match connected {
        Connected::Yes => "if you have used the agent since, restart every one that runs",
        Connected::WithoutDaemon => "`hookbus serve` has to run while you use Hermes",
        Connected::No => {
            "if the agent is not connected any more, run `hookbus connect hermes` or `hookbus connect gemini`"
        }
    };
    Finding::bad("events", format!("the last one is {} old; {advice}", format_duration(age)))
}
