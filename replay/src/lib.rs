//! Replay: recorded events go through the very same decide step as live ones, and what comes out is
//! compared with what was decided then.
//!
//! Data goes one way: a [`Source`] gives cases, a [`Judge`] decides on each of them again,
//! [`compare()`] says what is different, [`drive()`] does that for all of them in recorded order, and a
//! [`Tally`] adds it up. Nothing here writes to a log.

mod source;

mod expectations;

mod policy;

mod recorded;

mod refused;

mod judge;

mod memory;

mod compare;

mod drive;

mod survey;

mod tally;

mod sessions;

mod junit;

pub use compare::{Class, Comparison, compare};
pub use drive::{Drive, Part, drive};
pub use expectations::{BadExpectations, Expectations, ExpectationsWriter};
pub use judge::{Commands, Detail, Judge, Judged, Unsteady};
pub use junit::JUnit;
pub use policy::{Policy, Recorded, real_place};
pub use recorded::{Then, ThenVerdict};
pub use sessions::SessionWatch;
pub use source::{LogSource, Reading, Source};
pub use survey::{Planned, Survey, survey};
pub use tally::{HookTally, Reason, Tally};
