//! A decision as a reader wants it: what came of it, and what each hook contributed that said something.

use std::time::Duration;

use crate::decide::effect_of;
use crate::event::{Kind, Outcome, RecordedDecision, RecordedVerdict, Seq, Time};
use crate::log::Row;

/// A decision about an event.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionView {
    /// Its row.
    pub seq: Seq,
    /// When it was made.
    pub at: Time,
    /// The kind of the event that it is about; none if that event is not in the log.
    pub about: Option<Kind>,
    /// What was decided; none if its payload was removed, or a later version wrote an outcome that this one does not know.
    pub outcome: Option<Outcome>,
    /// Whether its payload was removed on purpose.
    pub is_removed: bool,
    /// What the hooks said, without those that had nothing to say.
    pub said: Vec<HookSaid>,
    /// The hooks that were asked and had nothing to say.
    pub silent: Vec<String>,
    /// A remark on the decision as a whole.
    pub note: Option<String>,
    /// What the bus told the user.
    pub notice: Option<String>,
    /// Whether the agent was still waiting for the answer.
    pub waited_for: bool,
    /// How long it took.
    pub took: Option<Duration>,
}

/// What one hook contributed to a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct HookSaid {
    /// Its name.
    pub hook: String,
    /// The verdict, in the words of the log.
    pub verdict: String,
    /// What that came to with this agent; for a hook in shadow mode, what it would have come to.
    pub effect: Outcome,
    /// The failure, else the reason of the verdict, else the context that it adds.
    pub reason: Option<String>,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it did not run because it is not approved.
    pub unapproved: bool,
    /// Whether it was in shadow mode: the verdict had no effect.
    pub shadow: bool,
    /// Whether it comes from a project's file.
    pub of_project: bool,
    /// What the agent does not support of this verdict, and what happened instead.
    pub note: Option<String>,
    /// How long it took.
    pub took: Option<Duration>,
}

impl DecisionView {
    /// The decision in `row`, about an event of this kind.
    pub fn new(row: &Row, about: Option<Kind>) -> Self {
        let empty = Self {
            seq: row.seq,
            at: row.at,
            about,
            outcome: None,
            is_removed: row.removed.is_some(),
            said: Vec::new(),
            silent: Vec::new(),
            note: None,
            notice: None,
            waited_for: true,
            took: None,
        };
        // A later version may write outcomes that this one does not know.
        let Ok(decision) = RecordedDecision::from_json(row.payload_json()) else { return empty };
        let (mut said, mut silent) = (Vec::new(), Vec::new());
        for verdict in decision.verdicts {
            match HookSaid::new(verdict) {
                Ok(hook) if said.contains(&hook) => {}
                Ok(hook) => said.push(hook),
                Err(hook) => silent.push(hook),
            }
        }
        Self {
            outcome: Some(decision.outcome),
            said,
            silent,
            note: decision.note,
            notice: decision.notice.map(|notice| notice.text),
            waited_for: decision.waited_for,
            took: decision.ms.and_then(duration),
            ..empty
        }
    }

    /// Whether it refused what the agent was about to do.
    pub fn refuses(&self) -> bool {
        self.outcome.is_some_and(Outcome::refuses)
    }

    /// Whether the user had to be asked.
    pub fn asks(&self) -> bool {
        self.outcome == Some(Outcome::Ask)
    }

    /// Whether a reader learns nothing from it.
    pub fn is_silent(&self) -> bool {
        let nothing = matches!(self.outcome, Some(Outcome::None | Outcome::Allow));
        nothing && self.said.is_empty() && self.note.is_none() && self.notice.is_none()
    }

    /// Whether a hook in shadow mode would have refused.
    pub fn would_refuse(&self) -> bool {
        self.said.iter().any(|hook| hook.shadow && hook.effect.refuses())
    }
}

impl HookSaid {
    /// What the hook said; its name if it had nothing to say.
    fn new(recorded: RecordedVerdict) -> Result<Self, String> {
        let effect = effect_of(&recorded);
        let is_silent = recorded.is_silent();
        let RecordedVerdict { hook, verdict, reason, context, failure, .. } = recorded;
        let context = context.and_then(|context| context.as_str().map(str::to_owned));
        let failed = failure.is_some();
        let reason = failure.or(reason).or(context);
        if is_silent && reason.is_none() && recorded.note.is_none() && !recorded.unapproved {
            return Err(hook);
        }
        Ok(Self {
            hook,
            verdict,
            effect,
            reason,
            failed,
            unapproved: recorded.unapproved,
            shadow: recorded.shadow,
            of_project: recorded.of_project,
            note: recorded.note,
            took: recorded.ms.and_then(duration),
        })
    }
}

fn duration(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}
