//! The decision: what the bus answered to an event, and the verdicts that led to it. It is the payload of a
//! decision row, so old logs depend on its keys.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{EventId, Notice, OnFailure, Rewrite, Ruling, Verdict};

/// The strongest effect that an answer, or one hook's verdict, has on the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing.
    None,
    /// The action is allowed explicitly.
    Allow,
    /// The model gets more text.
    Context,
    /// The tool runs with other input.
    Rewrite,
    /// The user is asked.
    Ask,
    /// The action is refused.
    Block,
    /// The agent stops.
    Stop,
}

impl Outcome {
    /// Every outcome, weakest first.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Allow, Self::Context, Self::Rewrite, Self::Ask, Self::Block, Self::Stop];

    /// The word in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Context => "context",
            Self::Rewrite => "rewrite",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Stop => "stop",
        }
    }

    /// Whether it stops the agent's action.
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Block | Self::Stop)
    }

    /// The outcome with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }

    /// The strongest effect that a verdict asks for.
    pub fn of(verdict: &Verdict) -> Self {
        if verdict.stop {
            return Self::Stop;
        }
        match verdict.ruling {
            Some(Ruling::Block) => Self::Block,
            Some(Ruling::Ask) => Self::Ask,
            Some(Ruling::Allow) | None => {
                if verdict.rewrite.is_some() || !verdict.own.is_empty() {
                    Self::Rewrite
                } else if verdict.context.is_some() {
                    Self::Context
                } else if verdict.ruling.is_some() {
                    Self::Allow
                } else {
                    Self::None
                }
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a plugin could remember when it answered: since when its process was up, and how many events it
/// had been called about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginHistory {
    /// The event that its process was started for.
    pub since: EventId,
    /// How many events it had been called about, this one included.
    pub events: u64,
}

impl PluginHistory {
    /// Reads it from a decision row.
    pub fn read(value: &Value) -> Option<Self> {
        let since = value.get("since")?.as_str()?.parse().ok()?;
        Some(Self { since, events: value.get("events")?.as_u64()? })
    }

    fn to_json(self) -> Value {
        json!({"since": self.since.to_string(), "events": self.events})
    }
}

/// One hook's verdict as it is recorded: what the hook answered, how it ended, and which policy applied.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictRecord {
    /// The hook's name in `hookbus.yaml`.
    pub hook: String,
    /// What it answered; after the failure policy, if it failed.
    pub verdict: Verdict,
    /// Its exit code; none for a rule, after a signal, or if it never ran.
    pub exit: Option<i32>,
    /// How long it took.
    pub took: Duration,
    /// What went wrong with it.
    pub failure: Option<String>,
    /// Its failure policy.
    pub policy: OnFailure,
    /// The hash of the script or plugin that ran.
    pub script: Option<String>,
    /// What the plugin could remember, if it is one.
    pub history: Option<PluginHistory>,
    /// Whether it was not asked because it was not approved: a replay must not ask it either.
    pub refused: bool,
    /// Whether the hook is a project's.
    pub of_project: bool,
    /// Whether the hook is in shadow mode: the verdict has no effect.
    pub shadow: bool,
    /// Which parts of the verdict the agent cannot act on, and what was done instead.
    pub note: Option<String>,
}

impl VerdictRecord {
    fn to_json(&self) -> Value {
        let mut record = Map::new();
        let verdict = &self.verdict;
        record.insert("hook".into(), json!(self.hook));
        record.insert("verdict".into(), json!(Outcome::of(verdict).as_str()));
        let reason = verdict.reason.as_ref().or(verdict.stop_reason.as_ref());
        record.insert("reason".into(), json!(reason));
        record.insert("exit".into(), json!(self.exit));
        record.insert("ms".into(), millis(self.took));
        record.insert("failed".into(), json!(self.failure.is_some()));
        record.insert("policy".into(), json!(self.policy.as_str()));
        record.insert("script".into(), json!(self.script));
        // The other keys are optional. `heard` is the name that earlier versions gave the history.
        if let Some(history) = self.history {
            record.insert("heard".into(), history.to_json());
        }
        if let Some(failure) = &self.failure {
            record.insert("failure".into(), json!(failure));
        }
        if self.refused {
            record.insert("refused".into(), json!("consent"));
        }
        if self.of_project {
            record.insert("project".into(), json!(true));
        }
        if self.shadow {
            record.insert("shadow".into(), json!(true));
        }
        if let Some(note) = &self.note {
            record.insert("note".into(), json!(note));
        }
        if let Some(context) = &verdict.context {
            record.insert("context".into(), json!(context));
        }
        match &verdict.rewrite {
            Some(Rewrite::Whole(input)) => {
                record.insert("rewrite".into(), Value::Object(input.clone()));
            }
            Some(Rewrite::Paths(paths)) => {
                record.insert("rewrite".into(), paths.iter().cloned().collect());
            }
            None => {}
        }
        if !verdict.own.is_empty() {
            record.insert("own".into(), Value::Object(verdict.own.clone()));
        }
        Value::Object(record)
    }
}

/// The answer to one event, merged from the verdicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The hash of the hooks in force.
    pub hooks: String,
    /// What each hook answered, in the configured order.
    pub verdicts: Vec<VerdictRecord>,
    /// The strongest effect of the answer.
    pub outcome: Outcome,
    /// What the agent was answered, if anything.
    pub answer: Option<Value>,
    /// How long deciding took.
    pub took: Duration,
    /// Whether the agent still waited for it.
    pub waited_for: bool,
    /// Whether the user could be asked, if the answer depended on it: a replay cannot find that out.
    pub can_ask: Option<bool>,
    /// A remark on the decision as a whole, such as a limit that was reached.
    pub note: Option<String>,
    /// What the bus itself tells the user.
    pub notice: Option<Notice>,
}

impl Decision {
    /// Adds what the bus itself tells the user.
    pub fn add_notice(&mut self, notice: Notice) {
        self.answer = notice.add_to(self.answer.take());
        self.notice = Some(notice);
    }

    /// The payload of its row in the log.
    pub fn to_json(&self) -> Value {
        let mut row = Map::new();
        row.insert("hooks".into(), json!(self.hooks));
        let verdicts = self.verdicts.iter().map(VerdictRecord::to_json).collect();
        row.insert("verdicts".into(), Value::Array(verdicts));
        row.insert("outcome".into(), json!(self.outcome.as_str()));
        row.insert("answer".into(), self.answer.clone().unwrap_or(Value::Null));
        row.insert("ms".into(), millis(self.took));
        if !self.waited_for {
            row.insert("waited_for".into(), json!(false));
        }
        if let Some(can_ask) = self.can_ask {
            row.insert("can_ask".into(), json!(can_ask));
        }
        if let Some(note) = &self.note {
            row.insert("note".into(), json!(note));
        }
        if let Some(notice) = &self.notice {
            row.insert("notice".into(), notice.to_json());
        }
        Value::Object(row)
    }
}

/// Milliseconds with three decimals.
fn millis(took: Duration) -> Value {
    let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    json!(f64::from(micros) / 1000.0)
}
