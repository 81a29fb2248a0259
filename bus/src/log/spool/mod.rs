//! The spool: events that could not be appended to the log, one file each, which are appended later with
//! their own time and the mark `late`.
//!
//! [`Spool`] knows the directories, `file` the format of a file, `intake` how files are taken in and
//! [`Backlog`] what waits. Each file is complete and on disk before it has its final name, and it is removed
//! only after its event is in the log; appends are idempotent, so that a crash at any point loses nothing and
//! doubles nothing.

mod backlog;
mod file;
mod intake;
mod places;
mod thread;

pub use self::backlog::Backlog;
pub(super) use self::file::{SpoolEntry, SpooledEvent};
pub(super) use self::intake::Intake;
pub use self::places::Spool;
pub use self::thread::SpoolThread;
