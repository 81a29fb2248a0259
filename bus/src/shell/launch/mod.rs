//! Starts programs: lists each one and, if it starts others (`sudo`, `xargs`, `ssh`) or runs code (`sh -c`,
//! `python -c`), goes on with those.

mod containers;
mod dispatch;
mod files;
mod kinds;
mod options;
mod remote;
mod runners;
mod selection;
mod shells;
mod users;
mod wrappers;
mod xargs;

pub(crate) use selection::find_selection;
pub(crate) use shells::CodeRun;
