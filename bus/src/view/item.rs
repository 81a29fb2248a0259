//! One entry of a session: a tool call with its result, a model request with its chunks, a question, a sub-agent, or any
//! other event, each with the decisions about it.

use std::time::Duration;

use serde_json::Value;

use super::{DecisionView, Effects, Subagent};
use crate::dialect::{Question, QuestionAnswer, ToolOutcome, ToolStatus, Usage};
use crate::event::{Kind, Seq, Time, ToolClass};

/// One entry of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The row that it begins with.
    pub seq: Seq,
    /// When that happened.
    pub at: Time,
    /// The agent's name for that event.
    pub name: String,
    /// Our kind of it.
    pub kind: Kind,
    /// What it is.
    pub what: What,
    /// The decisions about it, and about its result.
    pub decisions: Vec<DecisionView>,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The prompt of a turn, which the turn has.
    Prompt,
    /// A tool call.
    Tool(Box<ToolCall>),
    /// A request to the model.
    Model(Box<ModelCall>),
    /// A question to the user.
    Question(QuestionAsked),
    /// A sub-agent.
    Subagent(Box<Subagent>),
    /// The answer or the end of a turn, which the turn has.
    TurnEnd,
    /// Another event, and what it is about.
    Event {
        /// What it is about, in a few words.
        text: String,
    },
    /// An event that a reader does not miss: it is shown only for the decision about it.
    Quiet,
    /// A decision about an event that is not in the log.
    LostEvent,
}

/// A tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The agent's name for the tool.
    pub tool: String,
    /// What it does.
    pub class: Option<ToolClass>,
    /// What it is about: the command, the path, what is searched for.
    pub subject: String,
    /// Its arguments.
    pub input: Value,
    /// The agent's id for the call.
    pub call_id: Option<String>,
    /// Whether its start is recorded; if not, only its result is.
    pub is_start_recorded: bool,
    /// Whether the payload of its start was removed on purpose.
    pub is_removed: bool,
    /// What it does, as far as its input tells.
    pub effects: Effects,
    /// Its result, if one is recorded.
    pub result: Option<CallResult>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Its row.
    pub seq: Seq,
    /// When it was there.
    pub at: Time,
    /// How the call ended.
    pub outcome: ToolOutcome,
    /// Whether its payload was removed on purpose.
    pub is_removed: bool,
}

/// A request to the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelCall {
    /// The model.
    pub model: Option<String>,
    /// The agent's id for it.
    pub request_id: Option<String>,
    /// How often it was sent: more than once if it was tried again.
    pub attempts: usize,
    /// How many chunks of an answer came.
    pub chunks: usize,
    /// The text of the chunks.
    pub text: String,
    /// What an inexact answer repeats behind this text: the chunks after the first, each behind a space.
    pub(super) repeated: String,
    /// Tokens and cost.
    pub usage: Option<Usage>,
    /// The errors, one for each failed attempt.
    pub errors: Vec<String>,
    /// When the last part of the answer came.
    pub answered: Option<Time>,
}

/// A question to the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuestionAsked {
    /// The question.
    pub question: Question,
    /// The tool call that it is about.
    pub call_id: Option<String>,
    /// The answer, if one is recorded.
    pub answer: Option<QuestionAnswer>,
}

impl Item {
    /// The tool call, if it is one.
    pub fn tool_call(&self) -> Option<&ToolCall> {
        match &self.what {
            What::Tool(call) => Some(call),
            What::Prompt
            | What::Model(_)
            | What::Question(_)
            | What::Subagent(_)
            | What::TurnEnd
            | What::Event { .. }
            | What::Quiet
            | What::LostEvent => None,
        }
    }

    /// Whether a tool call was denied by a decision that the agent waited for, and ran all the same.
    pub fn ran_despite_block(&self) -> bool {
        let is_denied = |decision: &DecisionView| {
            decision.about == Some(Kind::ToolBefore) && decision.refuses() && decision.waited_for
        };
        let ran = self.tool_call().and_then(|call| call.result.as_ref()?.outcome.ran);
        ran == Some(true) && self.decisions.iter().any(is_denied)
    }

    /// How long a tool call took: what the agent says, else the time between its two events.
    pub fn took(&self) -> Option<Duration> {
        let call = self.tool_call()?;
        let result = call.result.as_ref()?;
        let between = || call.is_start_recorded.then(|| result.at.since(self.at));
        result.outcome.took.or_else(between)
    }

    /// Whether a reader learns something from it beside what its turn says.
    pub fn is_visible(&self) -> bool {
        match &self.what {
            What::Tool(_)
            | What::Question(_)
            | What::Subagent(_)
            | What::Event { .. }
            | What::LostEvent => true,
            What::Model(call) => !call.errors.is_empty() || self.has_spoken_decision(),
            What::Prompt | What::TurnEnd | What::Quiet => self.has_spoken_decision(),
        }
    }

    fn has_spoken_decision(&self) -> bool {
        self.decisions.iter().any(|decision| !decision.is_silent())
    }
}

impl ToolCall {
    /// How it ended; unknown if no result is recorded.
    pub fn status(&self) -> ToolStatus {
        self.result.as_ref().map_or(ToolStatus::Unknown, |result| result.outcome.status)
    }
}
