//! How each agent behaves: its names, its payloads and answers, how it launches, matches and merges
//! hooks. Each agent has a folder that implements [`Dialect`].
//!
//! An agent's JSON is read and written here only: payloads in [`decode()`], a hook's output in
//! [`Dialect::interpret`], answers in [`Dialect::encode`].

mod answer;
mod capabilities;
mod claude;
mod claude_family;
mod codex;
mod common;
mod decode;
mod derived;
mod gemini;
mod hermes;
mod hook_output;
mod interface;
mod launch;
mod matcher;
mod names;
mod notice_place;
mod pattern;
mod recorded_context;
mod reports;

pub use capabilities::Capabilities;
pub use common::Common;
pub use decode::{Arrival, decode, session_hint, session_to_record};
pub use derived::derive;
pub use hermes::{SessionLinks, plugin_verdict};
pub use hook_output::{Ending, HookOutput, Interpretation, LateOutput};
pub use interface::{Dialect, dialect_of};
pub use launch::LaunchError;
pub use matcher::{Matcher, ParsedMatcher};
pub use names::{can_be_event_of, event_names, is_event_of, kind_of, tool_class_of, tools_of};
pub use notice_place::NoticePlace;
pub use pattern::{Pattern, PatternFailure, PatternSize, is_cheap_regex};
pub use recorded_context::{
    RecordedProject, is_recorded_variable, mark_recorded, record_caller, recorded_choice,
    recorded_project, recorded_wire, redact_context, restore_caller,
};
pub use reports::{
    Answer, AnswerStanding, Question, QuestionAnswer, Reported, ReportedUsage, Reports,
    SubagentReport, ToolOutcome, ToolStatus, Usage, UsageScope,
};
