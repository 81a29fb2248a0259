//! Running a hook's program: its words, its environment, its time and memory limits, its output.

mod run;
mod sandbox;
mod script;
mod words;

pub use run::{Finished, Program, RunError, StartError, run};
pub use sandbox::Sandbox;
pub(crate) use script::is_path;
pub use script::{looks_like_script, script_hash, script_word};
pub use words::{argv, fill_placeholders};
