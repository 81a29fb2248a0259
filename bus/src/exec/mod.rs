//! Running a hook's program: its arguments, its environment, its time limit, its output; and the sandbox in
//! which a replay runs it.

mod run;
mod sandbox;
mod script;
mod words;

pub use run::{Finished, Program, RunError, StartError, run};
pub use sandbox::Sandbox;
pub(crate) use script::{has_script_ending, is_path, script_hash, script_word};
pub use words::argv;
pub(crate) use words::fill_placeholders;
