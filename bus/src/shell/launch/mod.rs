//! Starts programs: lists each one and, if it starts others (`sudo`, `xargs`, `ssh`) or runs code (`sh -c`,
//! `python -c`), goes on with those.

mod containers;
mod copied_programs;
mod dispatch;
mod files;
mod git_lines;
mod kinds;
mod makefiles;
mod odd_wrappers;
mod option_lines;
mod options;
mod powershell;
mod remote;
mod runners;
mod schedulers;
mod sed;
mod selection;
mod shells;
mod terminals;
mod users;
mod variable_lines;
mod wrapper_table;
mod wrappers;
mod xargs;

pub(crate) use copied_programs::CopiedProgram;
pub(crate) use selection::find_selection;
pub(crate) use shells::CodeRun;
