//! A decision as it was recorded: the reader for what [`Decision::to_json`] writes, and for what earlier versions
//! wrote. The only place that reads the JSON of a decision row.

use serde_json::{Map, Value};

use super::{Decision, Notice, Outcome, PluginHistory};

/// A decision, read back from its row.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDecision {
    /// Hash of the user's own hooks that were in force.
    pub hooks: Option<String>,
    /// Strongest effect of the answer.
    pub outcome: Outcome,
    /// What the agent received; none if the answer was empty.
    pub answer: Option<Value>,
    /// The verdict of each hook, in the configured order.
    pub verdicts: Vec<RecordedVerdict>,
    /// Whether the agent was still waiting for the answer.
    pub waited_for: bool,
    /// Whether the user could be asked; none if the row does not say.
    pub can_ask: Option<bool>,
    /// A note about the decision as a whole.
    pub note: Option<String>,
    /// What the bus itself told the user.
    pub notice: Option<Notice>,
    /// How long deciding took, in milliseconds.
    pub ms: Option<f64>,
}

/// The verdict of one hook in a recorded decision.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedVerdict {
    /// Name of the hook.
    pub hook: String,
    /// Name of the verdict's outcome. A later version may have written one that is unknown here.
    pub verdict: String,
    /// The reason that the hook gave.
    pub reason: Option<String>,
    /// Context for the model.
    pub context: Option<Value>,
    /// Changed tool input.
    pub rewrite: Option<Value>,
    /// Fields that only this agent's dialect has.
    pub own: Option<Value>,
    /// The error, if the hook failed.
    pub failure: Option<String>,
    /// Hash of the command's script or the plugin's code.
    pub script: Option<String>,
    /// For plugins: the event its process was started for, and the number of events it had received.
    pub plugin_state: Option<PluginHistory>,
    /// Whether the bus skipped the hook because the user had not approved it.
    pub unapproved: bool,
    /// Whether the hook came from a project's hooks file.
    pub of_project: bool,
    /// Whether the hook was in shadow mode: the verdict had no effect.
    pub shadow: bool,
    /// Which parts of the verdict the agent could not act on.
    pub note: Option<String>,
    /// Its exit code, for commands.
    pub exit: Option<i64>,
    /// How long the hook took, in milliseconds.
    pub ms: Option<f64>,
}

/// What a verdict counts as in figures about hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictFigure {
    /// The hook was not asked, because it is not approved.
    Unapproved,
    /// The hook failed.
    Failed,
    /// It blocked or stopped.
    Blocked,
    /// It wanted the user to be asked.
    Asked,
    /// It changed the input.
    Rewritten,
    /// It added context.
    Context,
    /// It allowed.
    Allowed,
    /// It had nothing to say, or said something that this version does not know.
    Nothing,
}

/// A payload that is not a decision this version can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// It is JSON of another type.
    #[error("not a JSON object")]
    NotAnObject,
    /// The field `outcome` is missing or has an unknown value.
    #[error("`outcome` is missing or unknown to this version of hookbus")]
    UnknownOutcome,
}

impl RecordedDecision {
    /// Reads the payload of a decision row.
    pub fn from_json(payload: Value) -> Result<Self, DecisionError> {
        let Value::Object(fields) = payload else { return Err(DecisionError::NotAnObject) };
        let outcome = fields.get("outcome").and_then(Value::as_str).and_then(Outcome::parse);
        Ok(Self::from_fields(fields, outcome.ok_or(DecisionError::UnknownOutcome)?))
    }

    fn from_fields(mut fields: Map<String, Value>, outcome: Outcome) -> Self {
        let verdicts = match fields.get_mut("verdicts").map(Value::take) {
            Some(Value::Array(verdicts)) => {
                verdicts.into_iter().filter_map(RecordedVerdict::from_json).collect()
            }
            _ => Vec::new(),
        };
        let can_ask = fields.get("can_ask").and_then(Value::as_bool);
        Self {
            hooks: take_text(&mut fields, "hooks"),
            outcome,
            answer: fields.get_mut("answer").map(Value::take).filter(|answer| !answer.is_null()),
            can_ask: can_ask.or_else(|| infer_can_ask(&verdicts)),
            verdicts,
            waited_for: fields.get("waited_for").and_then(Value::as_bool) != Some(false),
            note: take_text(&mut fields, "note"),
            notice: fields.get("notice").and_then(Notice::read),
            ms: fields.get("ms").and_then(Value::as_f64),
        }
    }

    /// The decision as the hooks made it, without the notice of the bus: a replay compares what hooks answer.
    #[must_use]
    pub fn without_notice(mut self) -> Self {
        if let Some(notice) = self.notice.take()
            && notice.in_answer
        {
            self.answer = notice.remove_from(self.answer.take());
        }
        self
    }
}

impl RecordedVerdict {
    fn from_json(value: Value) -> Option<Self> {
        let Value::Object(mut fields) = value else { return None };
        let failed = fields.get("failed").and_then(Value::as_bool) == Some(true);
        let failure = take_text(&mut fields, "failure");
        Some(Self {
            hook: take_text(&mut fields, "hook")?,
            verdict: take_text(&mut fields, "verdict").unwrap_or_default(),
            reason: take_text(&mut fields, "reason"),
            context: fields.remove("context"),
            rewrite: fields.remove("rewrite"),
            own: fields.remove("own"),
            failure: failure.or_else(|| failed.then(|| "it failed".to_owned())),
            script: take_text(&mut fields, "script"),
            plugin_state: fields.get("heard").and_then(PluginHistory::read),
            unapproved: fields.contains_key("refused"),
            of_project: fields.get("project").and_then(Value::as_bool) == Some(true),
            shadow: fields.get("shadow").and_then(Value::as_bool) == Some(true),
            note: take_text(&mut fields, "note"),
            exit: fields.get("exit").and_then(Value::as_i64),
            ms: fields.get("ms").and_then(Value::as_f64),
        })
    }

    /// What it counts as in figures about hooks.
    pub fn figure(&self) -> VerdictFigure {
        if self.unapproved {
            return VerdictFigure::Unapproved;
        }
        if self.failure.is_some() {
            return VerdictFigure::Failed;
        }
        match Outcome::parse(&self.verdict) {
            Some(Outcome::Block | Outcome::Stop) => VerdictFigure::Blocked,
            Some(Outcome::Ask) => VerdictFigure::Asked,
            Some(Outcome::Rewrite) => VerdictFigure::Rewritten,
            Some(Outcome::Context) => VerdictFigure::Context,
            Some(Outcome::Allow) => VerdictFigure::Allowed,
            Some(Outcome::None) | None => VerdictFigure::Nothing,
        }
    }

    /// Whether the hook gave no answer.
    pub fn is_silent(&self) -> bool {
        self.verdict.is_empty() || self.verdict == Outcome::None.as_str()
    }

    /// Whether the verdict stops the agent's action.
    pub fn refuses(&self) -> bool {
        Outcome::parse(&self.verdict).is_some_and(Outcome::refuses)
    }

    /// Whether `other` is by the same hook and has the same effect and wording.
    pub fn is_same_as(&self, other: &Self) -> bool {
        (&self.hook, &self.verdict, &self.reason) == (&other.hook, &other.verdict, &other.reason)
            && (&self.context, &self.rewrite, &self.own)
                == (&other.context, &other.rewrite, &other.own)
    }

    /// Whether the hook `name` gave this verdict, or a plugin in the directory that `name` loads.
    pub fn is_by(&self, name: &str) -> bool {
        let rest = self.hook.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    }
}

impl From<&Decision> for RecordedDecision {
    fn from(decision: &Decision) -> Self {
        let mut row = decision.to_json();
        let fields = row.as_object_mut().map(std::mem::take).unwrap_or_default();
        Self::from_fields(fields, decision.outcome)
    }
}

/// Older rows have no `can_ask`. There the note beside an `ask` verdict says if it became a block.
fn infer_can_ask(verdicts: &[RecordedVerdict]) -> Option<bool> {
    let asked = verdicts.iter().find(|verdict| verdict.verdict == "ask")?;
    // The wording of those older rows.
    Some(!asked.note.as_ref().is_some_and(|note| note.contains("nobody can be")))
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
    fn without_can_ask_the_note_of_a_question_says_whether_the_user_could_be_asked() {
        let can_ask = |verdict: &str| {
            let row = format!(r#"{{"outcome":"block","verdicts":[{verdict}]}}"#);
            let json = serde_json::from_str(&row).expect("JSON");
            RecordedDecision::from_json(json).expect("a decision").can_ask
        };
        assert_eq!(can_ask(r#"{"hook":"a","verdict":"ask"}"#), Some(true));
        let note = "wanted a person to be asked, and nobody can be: blocked instead";
        let noted = format!(r#"{{"hook":"a","verdict":"ask","note":"{note}"}}"#);
        assert_eq!(can_ask(&noted), Some(false));
        assert_eq!(can_ask(r#"{"hook":"a","verdict":"block"}"#), None);
    }

    #[test]
    fn damaged_decisions_are_errors() {
        for payload in ["[]", "{}", r#"{"outcome":"later"}"#] {
            let json = serde_json::from_str(payload).expect("JSON");
            assert!(RecordedDecision::from_json(json).is_err(), "{payload}");
        }
    }
}
