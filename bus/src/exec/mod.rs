//! Running a hook's program: its arguments, its environment, its time limit, its output; and the sandbox in
//! which a replay runs it.

mod hook_environment;
mod run;
mod sandbox;
mod script;
mod stripped_variables;
mod user_environment;
mod words;

pub use crate::sys::isolation::Isolation;
pub use hook_environment::{find_program, hook_caller};
pub use run::{Finished, Program, RunError, StartError, run};
pub use sandbox::Sandbox;
pub(crate) use script::{has_script_ending, is_path, script_hash, script_word};
pub use user_environment::UserEnvironment;
pub(crate) use user_environment::{EnvironmentCache, Recorded};
pub use words::argv;
pub(crate) use words::fill_placeholders;
