//! Reading the keys of an entry that only observers have: how they are run, webhooks, archives and analytics.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::EntryReader;
use super::event_key::EventKey;
use super::hook::Hook;
use super::observer::{ObserverSettings, ObserverSource, SecretSource, StartAt, Webhook};
use super::problem::Problem;
use super::yaml::{Node, Pair};

/// Keys that mean something with `mode: observe` only.
pub(super) const KEYS: [&str; 9] =
    ["webhook", "archive", "analytics", "long_lived", "tries", "wait", "share", "source", "from"];

const MOST_TRIES: f64 = 1000.0;

/// The settings of an observer. For an invalid value the default counts, and the user gets a remark.
pub(super) fn settings(entry: &mut EntryReader<'_>, timeout: Duration) -> ObserverSettings {
    let mut settings = ObserverSettings {
        long_lived: entry.flag("long_lived").unwrap_or(false),
        timeout,
        ..ObserverSettings::default()
    };
    if entry.get("webhook").is_some() {
        // An endpoint that is being restarted takes longer to come back than a program.
        settings.tries = 10;
    }
    if let Some(tries) = number(entry, "tries", "tries: 5", 1.0..=MOST_TRIES) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked against its range above"
        )]
        let tries = tries as u32;
        settings.tries = tries;
    }
    if let Some(wait) = number(entry, "wait", "wait: 0.5", 0.0..=3600.0) {
        settings.wait = Duration::from_secs_f64(wait);
    }
    settings.shared = word(entry, "share", &[("session", true)]).unwrap_or(false);
    let sources = [("log", ObserverSource::Log), ("nats", ObserverSource::Nats)];
    settings.source = word(entry, "source", &sources);
    settings.from = word(entry, "from", &[("now", StartAt::Now), ("start", StartAt::First)]);
    settings
}

fn number(
    entry: &mut EntryReader<'_>,
    key: &str,
    example: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Option<f64> {
    let pair = entry.get(key)?;
    let (number, line) = (pair.value.number().filter(|n| range.contains(n)), pair.line);
    if number.is_none() {
        let (low, high) = (range.start(), range.end());
        entry.mistake(line, format!("`{key}` is a number from {low} to {high}; write `{example}`"));
    }
    number
}

fn word<T: Copy>(entry: &mut EntryReader<'_>, key: &str, known: &[(&str, T)]) -> Option<T> {
    let pair = entry.get(key)?;
    let (text, line) = (pair.value.text().unwrap_or_default(), pair.line);
    let found = known.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let words: Vec<String> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
        entry.mistake(line, format!("`{key}` is {}", words.join(" or ")));
    }
    found.map(|(_, value)| *value)
}

/// A decision hook cannot have any of these keys.
pub(super) fn refuse_observer_keys(entry: &EntryReader<'_>) -> Result<(), Problem> {
    let observer_key = KEYS.iter().find_map(|key| entry.get(key));
    observer_key.map_or(Ok(()), |pair| {
        let why = format!("`{}` is for observers; add `mode: observe`", pair.key);
        Err(Problem::broken_entry(pair.line, why))
    })
}

/// Reads `webhook:`, a URL or a mapping.
pub(super) fn webhook(pair: &Pair, base: &Path) -> Result<Webhook, Problem> {
    let broken = |line: usize, why: &str| Problem::broken_entry(line, why);
    let mut webhook =
        Webhook { url: String::new(), secret: None, headers: Vec::new(), headers_env: Vec::new() };
    let Some(fields) = pair.value.pairs() else {
        webhook.url = pair.value.text().unwrap_or_default();
        return checked(webhook, pair.line);
    };
    for field in fields {
        let text = field.value.text().filter(|text| !text.is_empty());
        match (field.key.as_str(), text) {
            ("url", Some(url)) => webhook.url = url,
            ("secret_env", Some(name)) => webhook.secret = Some(SecretSource::Env(name)),
            ("secret_file", Some(file)) => {
                webhook.secret = Some(SecretSource::File(resolve(base, &file)));
            }
            ("headers", _) => webhook.headers = headers(&field.value, field.line)?,
            ("headers_env", _) => webhook.headers_env = headers(&field.value, field.line)?,
            ("secret", _) => {
                return Err(broken(
                    field.line,
                    "this file is recorded in the log, so no secret belongs in it; write `secret_env: NAME` or `secret_file: path`",
                ));
            }
            _ => {
                return Err(broken(
                    field.line,
                    "a webhook has `url`, `secret_env` or `secret_file`, `headers` and `headers_env`",
                ));
            }
        }
    }
    checked(webhook, pair.line)
}

fn checked(webhook: Webhook, line: usize) -> Result<Webhook, Problem> {
    let rest = ["http://", "https://"].iter().find_map(|start| webhook.url.strip_prefix(start));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let secret = |(name, _): &(String, String)| {
        ["authorization", "cookie", "x-api-key"].contains(&name.to_ascii_lowercase().as_str())
    };
    if host.contains('@') || webhook.headers.iter().any(secret) {
        return Err(Problem::broken_entry(
            line,
            "this file is recorded in the log, so no secret belongs in it; write `headers_env: { Authorization: NAME }`",
        ));
    }
    if !host.is_empty() && !webhook.url.contains(char::is_whitespace) {
        return Ok(webhook);
    }
    Err(Problem::broken_entry(
        line,
        "a webhook needs an address; write `webhook: { url: https://example.org/events, secret_env: NAME }`",
    ))
}

fn headers(node: &Node, line: usize) -> Result<Vec<(String, String)>, Problem> {
    let malformed = || {
        Problem::broken_entry(
            line,
            "`headers` maps names to texts; write `headers: { X-Team: ops }`",
        )
    };
    let pairs = node.pairs().ok_or_else(malformed)?;
    pairs
        .iter()
        .map(|pair| {
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let name = Some(pair.key.clone()).filter(|name| name.bytes().all(token));
            let value = pair.value.text().filter(|value| !value.contains(char::is_control));
            name.zip(value).ok_or_else(malformed)
        })
        .collect()
}

/// A path as written: a relative one is beside the hooks file, and `~` stays until the observer runs.
fn resolve(base: &Path, written: &str) -> PathBuf {
    if written == "~" || written.starts_with("~/") { written.into() } else { base.join(written) }
}

/// Reads `archive:`, a directory.
pub(super) fn archive(pair: &Pair, base: &Path) -> Result<PathBuf, Problem> {
    match pair.value.text().filter(|text| !text.is_empty()) {
        Some(folder) => Ok(resolve(base, &folder)),
        None => Err(Problem::broken_entry(
            pair.line,
            "`archive` is a directory; write `archive: /srv/hookbus-archive`",
        )),
    }
}

/// The database of an analytics observer that names none.
const ANALYTICS_FILE: &str = "analytics.db";

/// Reads `analytics:`: `true`, the name of a database beside the hooks file, or its path.
pub(super) fn analytics(pair: &Pair, hook: &Hook, base: &Path) -> Result<PathBuf, Problem> {
    let is_of_all = matches!(&hook.on, EventKey::Pattern(pattern) if pattern == "*");
    let has_filters = hook.agent.is_some()
        || hook.session.is_some()
        || !hook.tools.is_empty()
        || !hook.tool_names.is_empty()
        || hook.matcher.is_some();
    if !is_of_all || has_filters || hook.observer.shared {
        return Err(Problem::broken_entry(
            pair.line,
            "analytics counts every event, in one process; put it under `\"*\"`, without filters and without `share`",
        ));
    }
    let wrong = || {
        Problem::broken_entry(
            pair.line,
            "`analytics` is `true`, a name or a path; write `analytics: true`, or remove the entry",
        )
    };
    match (pair.value.flag(), pair.value.text().filter(|text| !text.trim().is_empty())) {
        (Some(true), _) => Ok(base.join(ANALYTICS_FILE)),
        (Some(false), _) | (None, None) => Err(wrong()),
        (None, Some(name)) if name.contains(['/', '.']) => Ok(resolve(base, &name)),
        (None, Some(name)) => Ok(base.join(format!("{name}.db"))),
    }
}
