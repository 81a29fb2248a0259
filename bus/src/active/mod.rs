//! The hooks in force: a hooks file with its approvals and its running plugins, kept up to date with the
//! file on disk, for the user's own file and for each project.

mod hooks;
mod projects;
mod source;

pub use hooks::{ActiveHooks, HookSets, HooksStatus};
pub use projects::{Projects, is_project_file};
pub use source::HooksSource;
