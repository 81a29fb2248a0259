//! The `retain:` part of `hookbus.yaml`: what the daemon removes from the log by itself, by age and size. The words are those
//! of `hookbus prune`, which reads its values with the functions here.
//!
//! A mistake removes nothing: no rule counts as long as one of them cannot be read, and an earlier version never counts in
//! its place.

use std::time::Duration;

use super::problem::did_you_mean;
use super::yaml::{Data, Node};
use crate::event::{Agent, Kind, Time};
use crate::log::{OtherRun, PruneRequest, Query, Strength};

/// Rules never remove events that are younger: a program that can write to the file must not be able to have the last day removed
/// at once. `hookbus prune` can.
const YOUNGEST: Duration = Duration::from_hours(24);

/// One rule: events for which all of its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainRule {
    /// Events that are older.
    pub older_than: Option<Duration>,
    /// The oldest events, until the log has at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Events of this agent.
    pub agent: Option<String>,
    /// Events of this kind; `*` matches any characters.
    pub kind: Option<String>,
    /// What is removed of them.
    pub strength: Strength,
    /// Its line in the file.
    pub line: usize,
}

/// The rules of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retention {
    /// These rules; payloads first, then rows.
    Rules(Vec<RetainRule>),
    /// They cannot be read, so that nothing is removed.
    Broken {
        /// The line of the mistake.
        line: usize,
        /// What is wrong, ending with what to write instead.
        why: String,
    },
}

impl Default for Retention {
    fn default() -> Self {
        Self::Rules(Vec::new())
    }
}

impl RetainRule {
    /// What is to be pruned at the time `now`.
    pub fn to_request(&self, now: Time, by: &str, other_run: OtherRun) -> PruneRequest {
        let query = Query {
            agent: self.agent.clone(),
            kind: self.kind.clone(),
            until: Some(now.before(self.older_than.unwrap_or(YOUNGEST))),
            ..Query::default()
        };
        PruneRequest {
            query,
            strength: self.strength,
            up_to: None,
            max_bytes: self.max_bytes,
            by: by.to_owned(),
            other_run,
        }
    }
}

const WHY: &str = "`retain` is a list of rules with `older_than`, `max_size`, `agent`, `kind`, and `rows: true` or `keep: rows`; \
                   write `retain: [{ older_than: 90d }]`";

/// Reads the rules. An error says what is wrong, by line.
pub(super) fn read(node: &Node, line: usize) -> Result<Vec<RetainRule>, (usize, String)> {
    let items = match &node.data {
        Data::List(items) => items,
        Data::Scalar(_) if node.is_null() => return Ok(Vec::new()),
        Data::Scalar(_) | Data::Map(_) => return Err((line, WHY.to_owned())),
    };
    let mut rules = items.iter().map(read_rule).collect::<Result<Vec<_>, _>>()?;
    // Payloads first, then rows.
    rules.sort_by_key(|rule| rule.strength == Strength::Rows);
    Ok(rules)
}

fn read_rule(node: &Node) -> Result<RetainRule, (usize, String)> {
    let pairs = node.pairs().ok_or_else(|| (node.line, WHY.to_owned()))?;
    let mut rule = RetainRule {
        older_than: None,
        max_bytes: None,
        agent: None,
        kind: None,
        strength: Strength::Payloads,
        line: node.line,
    };
    let (mut rows, mut keep) = (None, None);
    for pair in pairs {
        let wrong = |why: String| (pair.line, why);
        let text = || pair.value.text().ok_or_else(|| wrong(WHY.to_owned()));
        match pair.key.as_str() {
            "older_than" => {
                let age = parse_duration(&text()?).filter(|age| *age >= YOUNGEST);
                let why = "`older_than` is an age of at least a day; write `90d` or `2w`";
                rule.older_than = Some(age.ok_or_else(|| wrong(why.to_owned()))?);
            }
            "max_size" => rule.max_bytes = Some(parse_size(&text()?).map_err(wrong)?),
            "agent" => {
                let agent = text()?;
                agent.parse::<Agent>().map_err(|error| wrong(error.to_string()))?;
                rule.agent = Some(agent);
            }
            "kind" => rule.kind = Some(parse_pruned_kind(&text()?).map_err(wrong)?),
            "rows" => rows = Some(pair.value.flag().ok_or_else(|| wrong(WHY.to_owned()))?),
            "keep" if text()? == "rows" => keep = Some(()),
            _ => return Err(wrong(WHY.to_owned())),
        }
    }
    if rows == Some(true) && keep.is_some() {
        let why =
            "a rule that keeps the rows does not remove them; write `keep: rows` or `rows: true`";
        return Err((node.line, why.to_owned()));
    }
    if rule.older_than.is_none() && rule.max_bytes.is_none() {
        // Such a rule would remove events as soon as they are recorded.
        let why =
            "a rule of `retain` needs an age or a size; write `older_than: 14d` or `max_size: 2GB`";
        return Err((node.line, why.to_owned()));
    }
    if rows == Some(true) {
        rule.strength = Strength::Rows;
    }
    Ok(rule)
}

/// Checks a kind or a pattern of kinds: an unknown one would match no row, without saying why.
pub fn parse_kind(kind: &str) -> Result<String, String> {
    if !kind.contains('*') && Kind::parse(kind).is_none() {
        let near = did_you_mean(kind, Kind::ALL.iter().map(|kind| kind.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!("there is no kind `{kind}`{hint}"));
    }
    Ok(kind.to_owned())
}

/// A kind of events that can be pruned.
pub fn parse_pruned_kind(kind: &str) -> Result<String, String> {
    if kind == Kind::Decision.as_str() {
        return Err("a decision goes with its event; name the kind of the event".to_owned());
    }
    parse_kind(kind)
}

/// Parses a size: `500MB`, `2GB`, `1.5 GiB`, or a number of bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
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
        _ => return Err(wrong()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 9).ok_or_else(wrong)?;
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = part.parse().map_err(|_| wrong())?;
    let part = u128::from(part) * u128::from(unit) / u128::from(10_u64.pow(digits));
    let size = u128::from(whole) * u128::from(unit) + part;
    u64::try_from(size).map_err(|_| wrong())
}

/// Parses `90s`, `30m`, `2h`, `7d` or `1w`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        'w' => 604_800,
        _ => return None,
    };
    let count: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    Some(Duration::from_secs(count.checked_mul(unit)?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::HooksFile;

    fn parsed(text: &str) -> (Retention, usize) {
        let file = HooksFile::parse(text, Path::new("/")).expect("a file");
        (file.retention, file.problems.len())
    }

    #[test]
    fn rules_remove_payloads_first_and_then_rows() {
        let text = "hooks: {}\nretain:\n  - { agent: gemini, older_than: 30d, rows: true }\n  - { older_than: 90d, keep: rows }\n  \
                    - { kind: model.*, older_than: 2w }\n  - { max_size: 2GB }\n";
        let (Retention::Rules(rules), 0) = parsed(text) else { panic!("no rules") };
        let lines: Vec<usize> = rules.iter().map(|rule| rule.line).collect();
        assert_eq!(lines, [4, 5, 6, 3]);
        assert_eq!(rules[0].older_than, Some(Duration::from_hours(90 * 24)));
        assert_eq!(
            (rules[1].kind.as_deref(), rules[2].max_bytes),
            (Some("model.*"), Some(2_000_000_000))
        );
        assert_eq!(rules[3].strength, Strength::Rows);
    }

    #[test]
    fn no_rule_counts_as_long_as_one_cannot_be_read() {
        for wrong in [
            "90d",
            "{ older_than: 90d }",
            "[{ older_than: 90 }]",
            "[{ older_than: 0d }]",
            "[{ older_than: 12h }]",
            "[{ older_then: 90d }]",
            "[{ older_than: 90d }, { agent: gemini }]",
            "[{ max_size: many }]",
            "[{ older_than: 90d, kind: model.befor }]",
            "[{ older_than: 90d, kind: decision }]",
            "[{ older_than: 90d, agent: gemni }]",
            "[{ older_than: 90d, keep: rows, rows: true }]",
            "[{ older_than: 90d, keep: payloads }]",
        ] {
            let (retention, problems) = parsed(&format!("hooks: {{}}\nretain: {wrong}\n"));
            assert!(
                matches!(retention, Retention::Broken { line: 2, .. }),
                "{wrong} {retention:?}"
            );
            assert_eq!(problems, 1, "{wrong}");
        }
    }

    #[test]
    fn an_earlier_version_never_counts_in_place_of_a_mistake() {
        let good = "hooks: {}\nretain: [{ older_than: 90d }]\n";
        for bad in [
            "hooks: {}\nretain: [{ older_than: 90 }]\n",
            "hooks: {}\nretian: [{ older_than: 900d }]\n",
        ] {
            let earlier = HooksFile::parse(good, Path::new("/")).expect("a file");
            let file = HooksFile::parse(bad, Path::new("/")).expect("a file");
            let merged = file.with_last_good(bad, &earlier, &|_, _| true);
            let is_any = matches!(&merged.retention, Retention::Rules(rules) if !rules.is_empty());
            assert!(!is_any && !merged.problems.is_empty(), "{bad} {:?}", merged.retention);
        }
    }

    #[test]
    fn a_project_cannot_set_it() {
        let file = Path::new("/p/.hookbus/hookbus.yaml");
        let file =
            HooksFile::parse_project("hooks: {}\nretain: [{ older_than: 1s }]\n", file, &|_, _| {
                true
            });
        assert_eq!(file.expect("a file").retention, Retention::default());
    }
}
