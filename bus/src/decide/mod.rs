//! Deciding: which hooks are in force, which of them are for an event, what they say, and what
//! that comes to. Reading files and running commands happen at the edges (`in_force`, `run`).

mod checkup;
mod code_files;
mod command;
mod conclude;
mod consent;
mod due;
mod entry;
mod event_key;
mod field;
mod fit;
mod hook;
mod hooks_file;
mod host;
mod hosts_of_then;
mod idle;
mod in_force;
mod launch;
mod matcher;
mod observe;
mod observe_plugins;
mod observer;
mod observer_entry;
mod plan;
mod problem;
mod project_file;
mod projects;
mod regular;
mod rehearsal;
mod roll_call;
mod rule;
mod run;
mod run_plugins;
mod script;
mod shell_line;
mod stamp;
mod surroundings;
mod unasked;
mod yaml;

pub use checkup::look_on;
pub use conclude::{Circumstances, conclude};
pub use consent::{Agreeable, Agreement, Consents, Exhibit, News, Trust};
pub use due::tell_the_rest;
pub use event_key::EventKey;
pub use fit::{became_a_block, without_our_words};
pub use hook::{Hook, HookSummary, Mode, OnFailure};
pub use hooks_file::Hooks;
pub use host::{Ailment, Attempt, Checkup, Exam, LoadedPlugin, is_bridge, make_room};
pub use hosts_of_then::Starts;
pub use idle::Idle;
pub use in_force::{HooksSource, InForce, Standing};
pub use observe::{Child, Place, input, line, run_once, start};
pub use observe_plugins::Onlookers;
pub use observer::{
    Deed, Observer, SecretPlace, Source, Start, Terms, Webhook, heard, observer_folder,
};
pub use plan::{Asked, Plan, plan};
pub use problem::{Problem, Reach, did_you_mean};
pub use projects::{Projects, is_of_a_project};
pub use rehearsal::{Scratch, WouldRun};
pub use run::{
    Spoken, rehearse, rehearse_again, run_all, run_out_of_time, run_rules, tell_plugins,
};
pub use surroundings::Surroundings;
