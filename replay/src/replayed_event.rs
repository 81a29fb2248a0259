//! The result for one event: what it was, both decisions, and their comparison.

use hookbus::decide::without_rule_names;
use hookbus::event::{Decision, Event, Outcome, Rewrite, Seq, Time, Verdict, VerdictRecord};
use hookbus::log::RecordedEvent;
use hookbus::view::subject;
use serde_json::{Value, json};

use crate::compare::Comparison;
use hookbus::event::RecordedDecision;

/// Longest summary of an event, in characters.
const GIST_LENGTH: usize = 200;

/// An event after its replay.
#[derive(Debug)]
pub struct ReplayedEvent {
    /// Its position in the log.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's name for the event.
    pub name: String,
    /// Our name for it.
    pub kind: String,
    /// The tool, for tool calls.
    pub tool: Option<String>,
    /// A short summary, such as the shell command; may be empty if nothing changed.
    pub gist: String,
    /// The recorded decision; none if no hook had a verdict.
    pub recorded: Option<RecordedDecision>,
    /// The decision of this replay.
    pub replayed: Option<Decision>,
    /// What differs.
    pub comparison: Comparison,
    /// A hook that answered differently to the same input.
    pub nondeterministic: Option<NondeterministicHook>,
    /// How often in a row hooks had made the agent continue before this event; counted only with
    /// [`crate::Detail::Payloads`].
    pub continuations: u32,
    /// The row itself, with [`crate::Detail::Payloads`].
    pub row: Option<Box<RecordedEvent>>,
}

/// A hook that answered differently to the same input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NondeterministicHook {
    /// Name of the hook.
    pub hook: String,
    /// Two of its answers.
    pub answers: [String; 2],
}

impl ReplayedEvent {
    /// Outcome of the recorded decision.
    pub fn recorded_outcome(&self) -> Outcome {
        self.recorded.as_ref().map_or(Outcome::None, |decision| decision.outcome)
    }

    /// Outcome of the replayed decision.
    pub fn replayed_outcome(&self) -> Outcome {
        self.replayed.as_ref().map_or(Outcome::None, |decision| decision.outcome)
    }

    /// An element of `changes` in the JSON report.
    pub fn to_json(&self) -> Value {
        let recorded = self.recorded.as_ref().and_then(|decision| decision.answer.as_ref());
        let replayed = self.replayed.as_ref().and_then(|decision| decision.answer.as_ref());
        json!({
            "seq": self.seq.as_i64(),
            "time": self.at.to_string(),
            "agent": self.agent,
            "session": self.session,
            "name": self.name,
            "kind": self.kind,
            "tool": self.tool,
            "gist": self.gist,
            "what": self.comparison.category.key(),
            "hook": self.comparison.hook,
            "then": self.recorded_outcome().as_str(),
            "now": self.replayed_outcome().as_str(),
            "reason_then": recorded.and_then(answer_text).map(without_rule_names),
            "reason_now": replayed.and_then(answer_text).map(without_rule_names),
            "answer_then": recorded,
            "answer_now": replayed,
            "why": self.comparison.why,
            "notes": self.comparison.notes,
        })
    }
}

impl NondeterministicHook {
    /// The first hook whose verdict in `again` differs from `first`, or is missing there.
    pub(crate) fn find(first: &[&VerdictRecord], again: &[&VerdictRecord]) -> Option<Self> {
        // Hooks may share a name: the first of a name is compared with the first, and so on.
        let mut unmatched = again.to_vec();
        let silent = Verdict::silent();
        let mut ran = first.iter().filter(|record| !record.refused);
        ran.find_map(|record| {
            let index = unmatched.iter().position(|other| other.hook == record.hook);
            let other = index.map(|index| unmatched.remove(index));
            let (verdict, failure) =
                other.map_or((&silent, None), |it| (&it.verdict, it.failure.as_deref()));
            let differs =
                record.verdict != *verdict || record.failure.is_some() != failure.is_some();
            differs.then(|| Self {
                hook: record.hook.clone(),
                answers: [
                    verdict_text(&record.verdict, record.failure.as_deref()),
                    verdict_text(verdict, failure),
                ],
            })
        })
    }
}

fn verdict_text(verdict: &Verdict, failure: Option<&str>) -> String {
    let reason = verdict.reason.as_deref().or(verdict.stop_reason.as_deref());
    let rewrite = verdict.rewrite.as_ref().map(|rewrite| match rewrite {
        Rewrite::Whole(input) => Value::Object(input.clone()).to_string(),
        Rewrite::Paths(paths) => paths.iter().cloned().collect::<Value>().to_string(),
    });
    let text = failure.or(reason).or(verdict.context.as_deref()).or(rewrite.as_deref());
    let outcome = Outcome::of(verdict);
    text.map_or_else(|| outcome.to_string(), |text| format!("{outcome} ({text})"))
}

/// The text in an answer, in any dialect.
fn answer_text(answer: &Value) -> Option<&str> {
    let fields = [
        &answer["reason"],
        &answer["message"],
        &answer["stopReason"],
        &answer["context"],
        &answer["hookSpecificOutput"]["additionalContext"],
        &answer["systemMessage"],
    ];
    fields.into_iter().find_map(Value::as_str)
}

/// What an event is about, as the other verbs say it, shortened.
pub(crate) fn short_gist(event: &Event) -> String {
    let class = event.tool.as_ref().map(|tool| tool.class);
    let text = event.fields().map(|fields| subject(class, fields)).unwrap_or_default();
    text.chars().take(GIST_LENGTH).collect()
}
