//! What an agent did after a decision about a tool call: whether the tool ran all the same, and whether the model tried
//! again. Read from the rows that follow in the same session.

use anyhow::Result;
use hookbus::config::did_you_mean;
use hookbus::event::{Kind, Outcome, RecordedDecision, Seq};
use hookbus::log::{LogReader, Query, ReadError, Row};
use hookbus::view::EventView;
use serde_json::{Value, json};

use super::found;

/// How many rows after the decision are looked at.
const MOST_ROWS: usize = 5000;

/// More attempts than a person wants to read.
const MOST_ATTEMPTS: usize = 3;

/// Longer calls are compared by their beginning.
const LONGEST_GIST: usize = 500;

/// What happened to a tool call after the decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Aftermath {
    pub(super) fate: Fate,
    /// Equal or similar calls that came later, if the agent was held back.
    pub(super) attempts: Vec<Attempt>,
}

/// What became of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// A result was recorded, so it ran.
    Ran {
        /// The row of the result.
        seq: Seq,
        /// `ok`, or what the agent says.
        status: String,
    },
    /// The agent reports that it did not run.
    Refused {
        /// The row that says so.
        seq: Seq,
        /// What the agent calls it.
        status: String,
    },
    /// No result was recorded.
    NoResult,
}

/// A later call that is equal or similar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) seq: Seq,
    /// Whether it has the same input.
    pub(super) is_same: bool,
    /// What it is about.
    pub(super) gist: String,
    /// What was decided about it; none if no hook had anything to say.
    pub(super) outcome: Option<Outcome>,
    pub(super) fate: Fate,
}

/// A tool call in the words of its payload.
struct Call {
    tool: Option<String>,
    id: Option<String>,
    input: Value,
    gist: String,
}

impl Call {
    fn new(row: &Row) -> Self {
        let event = EventView::new(row);
        let gist: String = event.subject().chars().take(LONGEST_GIST).collect();
        let (id, input) = (event.call_id().map(str::to_owned), event.tool_input().clone());
        Self { tool: row.tool.clone(), id, input, gist }
    }

    fn has_same_input(&self, other: &Self) -> bool {
        self.tool == other.tool && self.input == other.input
    }

    /// Whether a person would take the other call for another try: much the same text, or the same program and the
    /// same first word behind it.
    fn is_similar(&self, other: &Self) -> bool {
        let start = |call: &Self| {
            let mut words = call.gist.split_whitespace().map(str::to_owned);
            words.next().zip(words.next())
        };
        let has_same_start = || start(self).is_some_and(|own| start(other) == Some(own));
        self.tool == other.tool
            && (did_you_mean(&self.gist, [other.gist.as_str()]).is_some() || has_same_start())
    }

    /// Whether `result` is of this call.
    fn is_result(&self, result: &Self) -> bool {
        match (&self.id, &result.id) {
            (Some(own), Some(other)) => own == other,
            _ => self.has_same_input(result),
        }
    }
}

impl Aftermath {
    /// What followed on `event`; none if it is not the start of a tool call.
    pub(super) fn read(
        log: &LogReader,
        event: &Row,
        decision: Option<&RecordedDecision>,
    ) -> Result<Option<Self>> {
        if event.kind != Kind::ToolBefore.as_str() {
            return Ok(None);
        }
        let query = Query { session: Some(event.session.clone()), ..Query::default() };
        let rows = log.after(&query, Some(event.seq), MOST_ROWS)?;
        let decision_of = |row: &Row| -> Result<Option<Outcome>, ReadError> {
            let Some(seq) = log.seq_of(row.id.of_decision())? else { return Ok(None) };
            let row = found::row(log, seq)?;
            let decision = row.and_then(|it| RecordedDecision::from_json(it.payload_json()).ok());
            Ok(decision.map(|decision| decision.outcome))
        };
        let was_held_back = decision.is_some_and(|decision| held_back(decision.outcome));
        let mut aftermath = Self { fate: fate(event, &rows), attempts: Vec::new() };
        if was_held_back {
            aftermath.attempts = attempts(event, &rows);
            for attempt in &mut aftermath.attempts {
                if let Some(row) = rows.iter().find(|row| row.seq == attempt.seq) {
                    attempt.outcome = decision_of(row)?;
                }
            }
        }
        Ok(Some(aftermath))
    }

    /// Whether the tool ran; none if the log does not tell.
    pub(super) const fn ran(&self, outcome: Option<Outcome>) -> Option<bool> {
        self.fate.ran(outcome)
    }

    pub(super) fn to_json(&self, outcome: Option<Outcome>) -> Value {
        let attempt = |it: &Attempt| {
            json!({
                "seq": it.seq.as_i64(),
                "same_input": it.is_same,
                "about": it.gist,
                "outcome": it.outcome.map_or("none", Outcome::as_str),
                "ran": it.fate.ran(it.outcome),
            })
        };
        let (result, status) = match &self.fate {
            Fate::Ran { seq, status } | Fate::Refused { seq, status } => (Some(seq), Some(status)),
            Fate::NoResult => (None, None),
        };
        json!({
            "ran": self.ran(outcome),
            "result": result.map(|seq| seq.as_i64()),
            "status": status,
            "tried_again": self.attempts.iter().map(attempt).collect::<Vec<_>>(),
        })
    }
}

impl Fate {
    /// Whether the tool ran. Without a result it did not if it was held back; else the log does not tell.
    pub(super) const fn ran(&self, outcome: Option<Outcome>) -> Option<bool> {
        match (self, outcome) {
            (Self::Ran { .. }, _) => Some(true),
            (Self::Refused { .. }, _) => Some(false),
            (Self::NoResult, Some(outcome)) if held_back(outcome) => Some(false),
            (Self::NoResult, _) => None,
        }
    }
}

const fn held_back(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Block | Outcome::Ask | Outcome::Stop)
}

/// What became of the call that `event` begins.
fn fate(event: &Row, rows: &[Row]) -> Fate {
    let call = Call::new(event);
    for row in rows.iter().filter(|row| row.seq > event.seq) {
        let kind = Kind::parse(&row.kind);
        let is_result = matches!(kind, Some(Kind::ToolAfter | Kind::ToolFailed | Kind::ToolOutput));
        let is_call = kind == Some(Kind::ToolBefore);
        if !is_result && !is_call {
            continue;
        }
        let other = Call::new(row);
        // Without ids, results from here on are those of the second call.
        if is_call && (call.id.is_none() || other.id.is_none()) && call.has_same_input(&other) {
            return Fate::NoResult;
        }
        if is_result && call.is_result(&other) {
            let (outcome, seq) = (EventView::new(row).outcome(), row.seq);
            let status = outcome.status.as_str().to_owned();
            // What is before the model sees it, a result of the same call, has no status of its own.
            let has_run = outcome.ran.is_none_or(|ran| ran) && !is_cancelled(row);
            return if has_run { Fate::Ran { seq, status } } else { Fate::Refused { seq, status } };
        }
    }
    Fate::NoResult
}

/// Whether the agent says that the call was cancelled.
fn is_cancelled(row: &Row) -> bool {
    row.payload_json()["extra"]["status"] == "cancelled"
}

/// Equal and similar calls that came later.
fn attempts(event: &Row, rows: &[Row]) -> Vec<Attempt> {
    let call = Call::new(event);
    let calls = rows.iter().filter(|row| row.kind == Kind::ToolBefore.as_str());
    let similar = calls.filter_map(|row| {
        let other = Call::new(row);
        let is_same = call.has_same_input(&other);
        (is_same || call.is_similar(&other)).then(|| Attempt {
            seq: row.seq,
            is_same,
            gist: other.gist,
            outcome: None,
            fate: fate(row, rows),
        })
    });
    similar.take(MOST_ATTEMPTS).collect()
}

#[cfg(test)]
mod tests {
    use hookbus::event::{EventId, Time};

    use super::*;

    fn row(seq: i64, kind: Kind, command: &str, more: &Value) -> Row {
        let mut payload = json!({"tool_input": {"command": command}});
        if let (Value::Object(payload), Value::Object(more)) = (&mut payload, more.clone()) {
            payload.extend(more);
        }
        Row {
            seq: Seq::from_i64(seq),
            id: EventId::mint(Time::from_micros(seq)),
            at: Time::from_micros(seq),
            agent: "hermes".to_owned(),
            session: "s".to_owned(),
            turn: None,
            name: kind.as_str().to_owned(),
            kind: kind.as_str().to_owned(),
            tool: Some("terminal".to_owned()),
            tool_class: Some("shell".to_owned()),
            cause: None,
            context: None,
            payload: payload.to_string().into_bytes(),
            removed: None,
            redaction: None,
            hash: [0; 32],
            origin: None,
            identity: None,
        }
    }

    fn with_id(id: &str, status: &str) -> Value {
        json!({"extra": {"tool_call_id": id, "status": status}})
    }

    #[test]
    fn a_result_of_the_same_call_shows_that_it_ran() {
        let before = row(1, Kind::ToolBefore, "rm a", &with_id("c1", "ok"));
        let other = row(3, Kind::ToolAfter, "rm a", &with_id("c2", "ok"));
        let own = row(4, Kind::ToolAfter, "rm a", &with_id("c1", "error"));
        assert_eq!(fate(&before, std::slice::from_ref(&other)), Fate::NoResult);
        let (seq, status) = (Seq::from_i64(4), "failed".to_owned());
        let ran = fate(&before, &[other, own]);
        assert_eq!(ran, Fate::Ran { seq, status });
        assert_eq!(ran.ran(Some(Outcome::Block)), Some(true));
    }

    #[test]
    fn a_result_that_says_blocked_shows_that_it_did_not_run() {
        let before = row(1, Kind::ToolBefore, "rm a", &with_id("c1", "ok"));
        let after = row(3, Kind::ToolAfter, "rm a", &with_id("c1", "blocked"));
        let refused = fate(&before, &[after]);
        assert!(matches!(refused, Fate::Refused { .. }), "{refused:?}");
        assert_eq!(refused.ran(Some(Outcome::Block)), Some(false));
        assert_eq!(Fate::NoResult.ran(Some(Outcome::Block)), Some(false));
        assert_eq!(Fate::NoResult.ran(Some(Outcome::Context)), None);
    }

    #[test]
    fn without_ids_a_result_belongs_to_the_last_call_with_its_input() {
        let none = json!({});
        let before = row(1, Kind::ToolBefore, "rm a", &none);
        let rows = [
            row(3, Kind::ToolAfter, "ls", &none),
            row(5, Kind::ToolBefore, "rm a", &none),
            row(7, Kind::ToolAfter, "rm a", &none),
        ];
        assert_eq!(fate(&before, &rows), Fate::NoResult);
        let found = attempts(&before, &rows);
        assert_eq!(found.len(), 1);
        assert!(found[0].is_same && matches!(found[0].fate, Fate::Ran { .. }), "{found:?}");
    }

    #[test]
    fn a_similar_call_is_another_attempt_and_another_command_is_not() {
        let none = json!({});
        let before = row(1, Kind::ToolBefore, "git push --force origin main", &none);
        let rows = [
            row(3, Kind::ToolBefore, "cargo test --workspace", &none),
            row(5, Kind::ToolBefore, "git push -f origin main", &none),
            row(7, Kind::ToolBefore, "git push +HEAD", &none),
        ];
        let found = attempts(&before, &rows);
        assert_eq!(found.iter().map(|it| it.seq.as_i64()).collect::<Vec<_>>(), [5, 7]);
        assert!(!found[0].is_same);
    }
}
