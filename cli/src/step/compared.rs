//! What a replay says about an event: what today's hooks, or those of a candidate file, would decide.

use hookbus::event::{Decision, RecordedDecision};
use hookbus_replay::{Category, ReplayedEvent};
use serde_json::{Value, json};

/// The keys of a line of `replay --json` that say what differs.
const KEYS: [&str; 10] = [
    "what",
    "hook",
    "then",
    "now",
    "reason_then",
    "reason_now",
    "answer_then",
    "answer_now",
    "why",
    "notes",
];

/// What would be decided now, compared with what was recorded.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) category: Category,
    /// The hook that causes the difference.
    pub(crate) hook: Option<String>,
    /// Why it failed, or why it cannot be compared.
    pub(crate) why: Option<String>,
    pub(crate) notes: Vec<String>,
    /// The decision now; none if no hook has anything to say.
    pub(crate) now: Option<RecordedDecision>,
    json: Value,
}

impl Compared {
    pub(crate) fn new(event: &ReplayedEvent) -> Self {
        let told = event.to_json();
        let mut json: Value =
            KEYS.iter().map(|key| ((*key).to_owned(), told[*key].clone())).collect();
        json["decision_now"] = json!(event.replayed.as_ref().map(Decision::to_json));
        let comparison = &event.comparison;
        Self {
            category: comparison.category,
            hook: comparison.hook.clone(),
            why: comparison.why.clone(),
            notes: comparison.notes.clone(),
            now: event.replayed.as_ref().map(RecordedDecision::from),
            json,
        }
    }

    /// Whether something else would happen, or cannot be told.
    pub(crate) fn differs(&self) -> bool {
        self.category != Category::Unchanged
    }

    /// One character for lists.
    pub(crate) const fn mark(&self) -> char {
        match self.category {
            Category::Unchanged => ' ',
            Category::NewlyBlocked => '+',
            Category::NewlyAllowed => '-',
            Category::Changed => '~',
            Category::Failed => '!',
            Category::NotComparable => '·',
        }
    }

    pub(crate) const fn to_json(&self) -> &Value {
        &self.json
    }
}
