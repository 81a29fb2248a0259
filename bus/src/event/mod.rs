//! The words of the bus as types, without I/O: what an event is, what a hook said about it, and
//! what the bus answered. Nothing here knows a file, a socket, a clock or an agent's JSON.

mod agent;
mod decision;
mod id;
mod kind;
mod lifecycle;
mod names;
mod subject;
mod time;
mod tool_class;
mod verdict;
mod wire;

pub use agent::{Agent, UnknownAgent};
pub use decision::{Decision, Heard, Outcome, VerdictRecord};
pub use id::{BusId, EventId, Seq};
pub use kind::Kind;
pub use lifecycle::{Body, Event, Tool};
pub use names::{event_names, is_event_of, kind_of, tool_class_of};
pub use subject::{event_subjects, read_subject, subject, subjects_of, token, untoken};
pub use time::{Clock, SystemClock, Time};
pub use tool_class::ToolClass;
pub use verdict::{Rewrite, Ruling, Verdict};
pub use wire::Wire;
