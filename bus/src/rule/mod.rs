//! What a rule says about an event: its conditions, what they see of the event, and why they hold or do not. Pure, but
//! for following links on disk, which [`Place`] does.

mod field;
mod place;

mod commands;
mod directory;
mod files;
mod hosts;

mod facts;

mod path_match;
mod program_match;
mod text_match;
mod wildcard;

mod condition;
mod evaluate;
mod explain;
mod expression;
mod expression_values;
mod failure;
mod same_call;

pub use commands::CommandFact;
pub use condition::{Condition, FileKey, HostMatch, SizeMatch, ToolMatch};
pub use directory::Directory;
pub use evaluate::Rule;
pub use explain::{ConditionReport, RuleReport};
pub use expression::Expression;
pub use facts::{Facts, McpTool, ShellLines};
pub use failure::RuleFailure;
pub use field::misspelled;
pub use files::{FileFact, ProgramIndex};
pub use hosts::HostFact;
pub use path_match::{PathGlob, PathMatch};
pub use place::Place;
pub use program_match::{ProgramMatch, ProgramMatches, REASONS, RunSubject, SOURCES};
pub use same_call::{LARGEST_CALL, hash_call, hash_fields};
pub use text_match::TextMatch;
