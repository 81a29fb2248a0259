//! A decision as it was recorded, read back from its row.

use hookbus::event::{Decision, Heard, Outcome};
use hookbus::json::read_leniently;
use serde_json::{Map, Value};

/// What was decided then.
#[derive(Debug, Clone, PartialEq)]
pub struct Then {
    /// The hash of the hooks in force.
    pub hooks: Option<String>,
    /// What it came to.
    pub outcome: Outcome,
    /// What the agent was told.
    pub answer: Option<Value>,
    /// What each hook said.
    pub verdicts: Vec<ThenVerdict>,
    /// Whether the agent was still there to hear it.
    pub waited_for: bool,
    /// Whether a person could be asked, as far as that is known.
    pub can_ask: Option<bool>,
    /// Something about the decision as a whole.
    pub note: Option<String>,
    /// How long deciding took, in milliseconds.
    pub ms: Option<f64>,
}

/// What one hook said then.
#[derive(Debug, Clone, PartialEq)]
pub struct ThenVerdict {
    /// The hook's name.
    pub hook: String,
    /// What it said.
    pub verdict: String,
    /// Why.
    pub reason: Option<String>,
    /// What else it said: context, a rewrite, what only its agent has a word for.
    pub more: [Option<Value>; 3],
    /// What went wrong with it.
    pub failure: Option<String>,
    /// The hash of its script.
    pub script: Option<String>,
    /// What it could remember, for plugins.
    pub heard: Option<Heard>,
    /// Whether it was not asked for want of consent.
    pub refused: bool,
    /// Whether the hook was a project's.
    pub of_project: bool,
    /// What the agent could not take of it.
    pub note: Option<String>,
    /// How long it took, in milliseconds.
    pub ms: Option<f64>,
}

impl Then {
    /// Reads the payload of a decision row; the error says what is wrong with it.
    pub fn read(payload: &[u8]) -> Result<Self, String> {
        match read_leniently(payload).map_err(|error| error.to_string())? {
            Value::Object(fields) => Self::from_fields(fields),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err("it is no JSON object".to_owned()),
        }
    }

    /// What is decided now, in the same form.
    pub(crate) fn of(decision: &Decision) -> Option<Self> {
        let mut row = decision.to_json();
        let fields = row.as_object_mut().map(std::mem::take)?;
        Self::from_fields(fields).ok()
    }

    fn from_fields(mut fields: Map<String, Value>) -> Result<Self, String> {
        let outcome = fields.get("outcome").and_then(Value::as_str).and_then(Outcome::parse);
        let outcome = outcome.ok_or("it has no outcome that is known here")?;
        let verdicts = match fields.get_mut("verdicts").map(Value::take) {
            Some(Value::Array(verdicts)) => verdicts.into_iter().filter_map(verdict).collect(),
            _ => Vec::new(),
        };
        let can_ask = fields.get("can_ask").and_then(Value::as_bool);
        Ok(Self {
            hooks: take_text(&mut fields, "hooks"),
            outcome,
            answer: fields.get_mut("answer").map(Value::take).filter(|answer| !answer.is_null()),
            can_ask: can_ask.or_else(|| could_be_asked(&verdicts)),
            verdicts,
            waited_for: fields.get("waited_for").and_then(Value::as_bool) != Some(false),
            note: take_text(&mut fields, "note"),
            ms: fields.get("ms").and_then(Value::as_f64),
        })
    }
}

/// Rows from before this was recorded say it by what became of a question.
fn could_be_asked(verdicts: &[ThenVerdict]) -> Option<bool> {
    let asked = verdicts.iter().find(|verdict| verdict.verdict == "ask")?;
    Some(!asked.note.as_ref().is_some_and(|note| note.contains("nobody can be")))
}

fn verdict(value: Value) -> Option<ThenVerdict> {
    let Value::Object(mut fields) = value else { return None };
    let failed = fields.get("failed").and_then(Value::as_bool) == Some(true);
    let failure = take_text(&mut fields, "failure");
    Some(ThenVerdict {
        hook: take_text(&mut fields, "hook")?,
        verdict: take_text(&mut fields, "verdict").unwrap_or_default(),
        reason: take_text(&mut fields, "reason"),
        more: ["context", "rewrite", "own"].map(|key| fields.remove(key)),
        failure: failure.or_else(|| failed.then(|| "it failed".to_owned())),
        script: take_text(&mut fields, "script"),
        heard: fields.get("heard").and_then(Heard::read),
        refused: fields.contains_key("refused"),
        of_project: fields.get("project").and_then(Value::as_bool) == Some(true),
        note: take_text(&mut fields, "note"),
        ms: fields.get("ms").and_then(Value::as_f64),
    })
}

fn take_text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    match fields.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_rows_say_by_the_outcome_whether_a_person_could_be_asked() {
        let row = |verdict: &str| {
            Then::read(format!(r#"{{"outcome":"block","verdicts":[{verdict}]}}"#).as_bytes())
                .expect("a decision")
                .can_ask
        };
        assert_eq!(row(r#"{"hook":"a","verdict":"ask"}"#), Some(true));
        let note = "wanted a person to be asked, and nobody can be: blocked instead";
        assert_eq!(row(&format!(r#"{{"hook":"a","verdict":"ask","note":"{note}"}}"#)), Some(false));
        assert_eq!(row(r#"{"hook":"a","verdict":"block"}"#), None);
    }

    #[test]
    fn a_damaged_decision_says_what_is_wrong_with_it() {
        for payload in [&b"{\"outcome\": \"bl"[..], b"[]", b"{}", br#"{"outcome":"later"}"#] {
            assert!(Then::read(payload).is_err(), "{payload:?}");
        }
    }
}
