//! The hooks in force: a hooks file with its approvals and its running plugins, for the user's own file and for
//! each project. A change of the file on disk counts from the next event on.

mod clean_payloads;
mod hooks;
mod projects;
mod redaction;
mod source;

pub use hooks::{ActiveHooks, HookSets, HooksStatus, NotInForce};
pub use projects::{Projects, is_project_file};
pub use redaction::ActiveRedaction;
pub use source::HooksSource;
