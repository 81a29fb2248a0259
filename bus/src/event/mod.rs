//! The basic types of the bus, without I/O: events, the verdicts of hooks, and the decisions of the bus.
//! Nothing here depends on a file, a socket or an agent's JSON.

mod agent;
mod body;
mod decision;
mod derived;
#[expect(clippy::module_inception, reason = "the room is named after its main type")]
mod event;
mod gist;
mod id;
mod identity;
mod kind;
mod notice;
mod on_failure;
mod payload;
mod plain_text;
mod recorded_decision;
mod subject;
mod time;
mod tool_class;
mod verdict;
mod wire;

pub use agent::{Agent, AgentName, UnknownAgent};
pub use body::{Body, LazyBody};
pub use decision::{Decision, Outcome, PluginHistory, VerdictRecord};
pub use derived::{Column, Derived, DerivedFrom};
pub use event::{Event, Tool};
pub use gist::gist;
pub use id::{BusId, EventId, Seq};
pub use identity::{BusIdentity, IdentityKey};
pub use kind::Kind;
pub use notice::Notice;
pub use on_failure::OnFailure;
pub use payload::{Payload, payload_digest};
pub use plain_text::{is_plain, one_line};
pub use recorded_decision::{DecisionError, RecordedDecision, RecordedVerdict, VerdictFigure};
pub use subject::{bus_subjects, decode_token, encode_token, event_filter, parse_subject, subject};
pub use time::{Clock, SystemClock, Time};
pub use tool_class::ToolClass;
pub use verdict::{Rewrite, Ruling, Verdict};
pub use wire::Wire;
