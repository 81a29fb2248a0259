//! Replay: decides on recorded events again, by the same steps as the live bus, and compares the result
//! with the recorded decisions.
//!
//! Data flows one way: an [`EventSource`] reads recorded events, a [`Redecider`] decides on each of them
//! again with the [`ReplayHooks`], [`compare()`] finds the difference, [`drive()`] does that for all events
//! in log order, and a [`Tally`] adds up the results. Nothing here writes to a log.

mod source;

mod expectations;

mod recorded_hooks;

mod replay_hooks;

mod recorded_decision;

mod unapproved;

mod foreign;

mod command_runner;

mod plugin_warmup;

mod rule_memory;

mod redecide;

mod compare;

mod replayed_event;

mod ordered;

mod dry_run;

mod drive;

mod calls;

mod tally;

mod shadow;

mod sessions;

mod junit;

pub use calls::{AffectedCall, CallCounts};
pub use command_runner::Commands;
pub use compare::{Category, Comparison, compare};
pub use drive::{ChunkResult, Drive, drive};
pub use dry_run::{DryRun, PlannedCommand, dry_run};
pub use expectations::{Expectations, ExpectationsError, ExpectationsWriter};
pub use junit::{CaseResult, Finding, JUnitReport};
pub use recorded_decision::DecisionError;
pub use recorded_hooks::{HooksError, RecordedHooks, canonical_hooks_path};
pub use redecide::{Detail, Redecider, decode_recorded};
pub use replay_hooks::ReplayHooks;
pub use replayed_event::{NondeterministicHook, ReplayedEvent};
pub use sessions::{SessionChecks, SessionMark};
pub use shadow::{ShadowHook, ShadowTally, ShadowedEvent};
pub use source::{EventReader, EventSource, LogSource};
pub use tally::{HookTally, NotComparableReason, Tally};
