//! What the reading verbs share: the log of a home, and times as people write them.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeZone};
use hookbus::decide::HooksSource;
use hookbus::event::{Agent, BusId, Clock, SystemClock, Time};
use hookbus::log::{LogPath, LogReader};
use hookbus::relay::NatsSettings;

use crate::settings::Settings;

/// The log of this home, to read.
pub(crate) fn open_log(settings: &Settings) -> Result<LogReader> {
    Ok(LogReader::open(&LogPath::in_home(&settings.home))?)
}

/// An agent that events are recorded of; any other would find nothing and say nothing about why.
pub(crate) fn parse_agent(name: &str) -> Result<String> {
    if name != "hookbus" {
        name.parse::<Agent>()?;
    }
    Ok(name.to_owned())
}

/// The way to NATS: what is configured, with the servers in `said` or the environment before it.
pub(crate) fn nats(said: Option<&str>, settings: &Settings) -> Option<NatsSettings> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let urls = settings.nats_urls(said);
    NatsSettings::chosen(hooks.in_force().hooks.nats.clone(), urls.as_deref())
}

/// The bus in an archive whose id starts like this.
pub(crate) fn find_bus(log: &LogReader, start: &str) -> Result<BusId> {
    if !log.is_archive() {
        bail!("this log has one bus only; --bus is for archives");
    }
    let buses: Vec<BusId> = log.buses()?.into_iter().map(|(bus, _)| bus).collect();
    let fits: Vec<&BusId> = buses.iter().filter(|bus| bus.to_string().starts_with(start)).collect();
    match fits.as_slice() {
        [only] => Ok(**only),
        [] | [..] => {
            let all: Vec<String> = buses.iter().map(ToString::to_string).collect();
            bail!("`{start}` is not one bus; this archive holds {}", all.join(", "))
        }
    }
}

/// A moment: `2h` ago, `today`, a date, a date and time here, or RFC 3339.
pub(crate) fn parse_time(text: &str) -> Result<Time> {
    let now = SystemClock.now();
    if let Some(ago) = span(text) {
        return Ok(now.before(ago));
    }
    if let Ok(exact) = DateTime::parse_from_rfc3339(text) {
        return Ok(Time::from(exact.to_utc()));
    }
    let today = now.to_utc().with_timezone(&Local).date_naive();
    let date = match text {
        "today" => Some(today),
        "yesterday" => today.pred_opt(),
        _ => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok(),
    };
    let here = date.and_then(|date| date.and_hms_opt(0, 0, 0)).or_else(|| {
        ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"]
            .into_iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
    });
    let Some(here) = here else {
        bail!(
            "`{text}` is no time; write `2h`, `30m`, `7d`, `today`, `2026-11-16` or `2026-11-16 14:05`"
        );
    };
    let local =
        Local.from_local_datetime(&here).earliest().context("that hour does not exist here")?;
    Ok(Time::from(local.to_utc()))
}

/// `90s`, `30m`, `2h`, `7d`, `1w`.
fn span(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        'w' => 604_800,
        _ => return None,
    };
    let count: u64 = text[..text.len() - 1].parse().ok()?;
    Some(Duration::from_secs(count.checked_mul(unit)?))
}
