//! What happened, computed from rows of the log: sessions, turns, tool calls with their results, model requests, decisions,
//! sub-agents. Pure, so that `show`, `sessions`, `log`, projections and pages tell the same story: rows go in one by one, in
//! log order, and nothing is read from anywhere else.
//!
//! [`EventView`] reads one row; [`SessionView`] is the fold over the rows of one session, and [`Activity`] over the latest
//! rows of all. They cope with anything that a log
//! can hold: results without a call, calls without a result, rows in another order, removed payloads, agents without a
//! dialect, rows of several buses.

mod event_view;
mod subject;

mod decision_view;
mod effects;
mod effects_memory;
mod item;

mod session_view;
mod steps;
mod subagent;
mod totals;

mod activity;

mod json;

#[cfg(test)]
mod tests;

pub use activity::{Activity, HeldBack, HookFigures, Rates};
pub use decision_view::{DecisionView, HookSaid};
pub use effects::{Effects, FileTouched};
pub use effects_memory::EffectsMemory;
pub use event_view::{EventView, REMOVED};
pub use item::{CallResult, Item, ModelCall, QuestionAsked, ToolCall, What};
pub use json::{ITEM_KINDS, SHAPE};
pub use session_view::{SessionView, Turn};
pub use steps::{Step, Steps};
pub use subagent::Subagent;
pub use subject::subject;
pub use totals::Totals;

pub use crate::dialect::{
    Answer, AnswerStanding, Question, QuestionAnswer, ReportedUsage, SubagentReport, ToolOutcome,
    ToolStatus, Usage, UsageScope,
};
