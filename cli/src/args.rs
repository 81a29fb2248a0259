//! Arguments that several verbs share: the log of the home, agents, kinds, buses, NATS servers, and times as people
//! write them.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeZone};
use hookbus::active::HooksSource;
use hookbus::config::{NatsSettings, did_you_mean};
use hookbus::event::{Agent, BusId, Clock, Kind, SystemClock, Time};
use hookbus::log::{LogPath, LogReader, ReadError};

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
    let is_pattern = kind.contains('*');
    let is_known = if is_pattern {
        Kind::ALL.iter().any(|known| known.as_str().starts_with(start))
    } else {
        Kind::parse(kind).is_some()
    };
    if !is_known {
        let near = did_you_mean(kind, Kind::ALL.iter().map(|kind| kind.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        bail!("there is no kind `{kind}`{hint}");
    }
    Ok(kind.to_owned())
}

/// The NATS settings of hookbus.yaml; `urls` or `HOOKBUS_NATS_URL` replace the servers.
pub(crate) fn nats_settings(urls: Option<&str>, settings: &Settings) -> Option<NatsSettings> {
    let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
    let urls = settings.nats_urls(urls);
    NatsSettings::with_servers(hooks.active().file.nats.clone(), urls.as_deref())
}

/// Finds the bus in an archive whose id starts with `prefix`.
pub(crate) fn find_bus(log: &LogReader, prefix: &str) -> Result<BusId> {
    if !log.is_archive() {
        bail!("this log holds one bus only; --bus is for archives");
    }
    let buses: Vec<BusId> = log.buses()?.into_iter().map(|(bus, _)| bus).collect();
    let matching: Vec<&BusId> =
        buses.iter().filter(|bus| bus.to_string().starts_with(prefix)).collect();
    match matching.as_slice() {
        [only] => Ok(**only),
        [] | [..] => {
            let all: Vec<String> = buses.iter().map(ToString::to_string).collect();
            let how_many = if matching.is_empty() { "no bus" } else { "several buses" };
            bail!("`{prefix}` matches {how_many}; this archive holds {}", all.join(", "))
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
    let wrong =
        || format!("cannot read `{text}` as a size; write `500MB`, `2GB` or a number of bytes");
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "tb" | "t" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => bail!(wrong()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        u32::try_from(part.len()).ok().filter(|digits| *digits <= 9).with_context(wrong)?;
    let whole: u64 = whole.parse().with_context(wrong)?;
    let part: u64 = part.parse().with_context(wrong)?;
    let part = u128::from(part) * u128::from(unit) / u128::from(10_u64.pow(digits));
    let size = u128::from(whole) * u128::from(unit) + part;
    u64::try_from(size).with_context(wrong)
}

/// Parses `90s`, `30m`, `2h`, `7d` or `1w`.
fn parse_duration(text: &str) -> Option<Duration> {
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
