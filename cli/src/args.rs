//! Arguments that several verbs share: the log of the home, agents, kinds, buses, NATS servers, and times as people
//! write them.

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeZone};
use hookbus::active::HooksSource;
use hookbus::config::{self, NatsSettings, parse_duration};
use hookbus::event::{Agent, BusId, Clock, Kind, SystemClock, Time};
use hookbus::log::{LogPath, LogReader, ReadError};

use crate::bus_names::BusNames;
use crate::settings::Settings;

/// Opens the log of the home for reading.
pub(crate) fn open_log(settings: &Settings) -> Result<LogReader> {
    Ok(LogReader::open(&LogPath::in_home(&settings.home))?)
}

/// The full id of the session that the user means: `last`, the start of an id, or the short form in which sessions are
/// listed.
pub(crate) fn find_session(log: &LogReader, text: &str) -> Result<String> {
    if text == "last" {
        let last = log.last_session()?;
        return last.context("no sessions are recorded yet; `hookbus connect` wires an agent");
    }
    match log.find_session(text) {
        Err(ReadError::NoSession(_)) => {
            let mut short = log.sessions_where(|session| short_session(session) == text, 2)?;
            match (short.pop(), short.is_empty()) {
                (Some(only), true) => Ok(only),
                (Some(_), false) | (None, _) => Err(ReadError::NoSession(text.to_owned()).into()),
            }
        }
        found => Ok(found?),
    }
}

/// A session's id in a few characters that tell it from others: what is random in it. Sessions of one agent that begin
/// at the same time begin with the same characters.
pub(crate) fn short_session(session: &str) -> String {
    const LONGEST: usize = 12;
    let length = session.chars().count();
    if length <= LONGEST {
        return session.to_owned();
    }
    let is_hex = |it: char| it.is_ascii_hexdigit();
    let parts: Vec<&str> = session.split('-').collect();
    if let [first, _, third, _, last] = parts.as_slice()
        && session.is_ascii()
        && length == 36
        && parts.iter().all(|part| part.chars().all(is_hex))
    {
        // A UUID that begins with its time ends with what is random.
        let is_by_time = third.starts_with('7');
        return if is_by_time { last[4..].to_owned() } else { (*first).to_owned() };
    }
    // Hermes: date, time, random.
    match session.rsplit_once('_') {
        Some((_, random)) if (6..=8).contains(&random.len()) && random.chars().all(is_hex) => {
            random.to_owned()
        }
        Some(_) | None => {
            let end: String = session.chars().skip(length - 7).collect();
            session.chars().take(4).chain(['…']).collect::<String>() + &end
        }
    }
}

/// Checks the name of an agent: an unknown one would match no row, without saying why.
pub(crate) fn parse_agent(name: &str) -> Result<String> {
    if name != "hookbus" {
        name.parse::<Agent>()?;
    }
    Ok(name.to_owned())
}

/// Checks a kind or a pattern of kinds: an unknown one would match no row, without saying why.
pub(crate) fn parse_kind(kind: &str) -> Result<String> {
    let start = kind.split('*').next().unwrap_or_default();
    if kind.contains('*') && !Kind::ALL.iter().any(|known| known.as_str().starts_with(start)) {
        bail!("there is no kind `{kind}`; `hookbus log` shows the kinds of recorded events");
    }
    config::parse_kind(kind).map_err(anyhow::Error::msg)
}

/// The NATS settings of hookbus.yaml; `urls` or `HOOKBUS_NATS_URL` replace the servers.
pub(crate) fn nats_settings(urls: Option<&str>, settings: &Settings) -> Option<NatsSettings> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let urls = settings.nats_urls(urls);
    NatsSettings::with_servers(hooks.active().file.nats.clone(), urls.as_deref())
}

/// Finds the bus of an archive with this name, or whose id starts with `text`.
pub(crate) fn find_bus(log: &LogReader, text: &str) -> Result<BusId> {
    if !log.is_archive() {
        bail!("this log holds one bus only; --bus is for archives");
    }
    let names = BusNames::read(log)?;
    match names.matching(text).as_slice() {
        [only] => Ok(*only),
        [] => bail!("`{text}` matches no bus; this archive holds {}", names.all()),
        several => {
            let several: Vec<String> = several.iter().map(|bus| names.describe(*bus)).collect();
            bail!("`{text}` matches several buses: {}; write more of the id", several.join(", "))
        }
    }
}

/// Parses a time: `2h` (ago), `today`, a date, a local date and time, or RFC 3339.
pub(crate) fn parse_time(text: &str) -> Result<Time> {
    let now = SystemClock.now();
    if let Some(ago) = parse_duration(text) {
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
    let local = date.and_then(|date| date.and_hms_opt(0, 0, 0)).or_else(|| {
        ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"]
            .into_iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
    });
    let Some(local) = local else {
        bail!(
            "cannot read `{text}` as a time; write `2h`, `30m`, `7d`, `today`, `2026-11-16` or `2026-11-16 14:05`"
        );
    };
    let exact = Local.from_local_datetime(&local).earliest();
    let exact = exact.with_context(|| {
        format!("`{text}` does not exist in the local time zone: clocks were moved forward")
    })?;
    Ok(Time::from(exact.to_utc()))
}

/// Parses a size: `500MB`, `2GB`, `1.5 GiB`, or a number of bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64> {
    config::parse_size(text).map_err(anyhow::Error::msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_hour_do_not_look_alike() {
        for (session, short) in [
            ("20261116_003429_2e141a", "2e141a"),
            ("20261116_004030_5aa7c2fa", "5aa7c2fa"),
            ("7f6c2a1e-0d3b-4c55-9a41-5b0a7d1f9e10", "7f6c2a1e"),
            ("01a1e1c7-2d2c-7013-825d-08a436ea3ac2", "36ea3ac2"),
            ("alpha-1", "alpha-1"),
            ("my-own-session-number-1", "my-o…umber-1"),
            ("漢字漢字漢字漢字漢字漢字漢字", "漢字漢字…漢字漢字漢字漢"),
        ] {
            let told = short_session(session);
            assert!(told == short || !session.is_ascii(), "{session}: {told}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("512", 512),
            ("500MB", 500_000_000),
            ("2gb", 2_000_000_000),
            ("1.5 GB", 1_500_000_000),
            ("1GiB", 1 << 30),
            ("0.5k", 500),
        ] {
            assert_eq!(parse_size(text).expect("a size"), bytes, "{text}");
        }
        for text in ["", "GB", "2 apples", "-1MB", "1.2.3MB", "99999999999999TB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
