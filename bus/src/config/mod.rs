//! `hookbus.yaml`, the user's own or a project's: from text to types, with a list of problems by line.
//! Pure: no file is opened, nothing runs.

mod approval;
mod conditions;
mod daemon;
mod entry;
mod event_key;
mod examples;
mod hook;
mod hooks_file;
mod last_good;
mod matcher;
mod nats;
mod not_for;
mod observer;
mod observer_entry;
mod packs;
mod parse;
mod plugin_lists;
mod problem;
mod recorded_settings;
mod recording;
mod redaction;
mod retention;
mod rule;
mod yaml;

pub use approval::{Approval, Refusal, Trust};
pub use daemon::{DaemonMode, DaemonSettings};
pub use event_key::{EventKey, wildcard_matches};
pub use examples::{Example, ExampleResult, run_examples};
pub use hook::{Action, Command, Hook, HookSummary, Mode, Placeholders, Python, PythonLaunch};
pub use hooks_file::{HooksFile, IsApproved};
pub(crate) use last_good::KEPT;
pub use matcher::HookMatcher;
pub use nats::{Login, NatsSettings, Secret};
pub use not_for::NotFor;
pub use observer::{
    ObserverSettings, ObserverSource, SecretSource, StartAt, Webhook, observer_folder,
};
pub use packs::PACKS;
pub(crate) use parse::{LARGEST_PROJECT_FILE, is_blank};
pub use plugin_lists::PluginLists;
pub use problem::{Place, Problem, Reach, did_you_mean};
pub(crate) use recorded_settings::changed_secrets;
pub use recording::Recording;
pub use redaction::Redaction;
pub use retention::{
    RetainRule, Retention, parse_duration, parse_kind, parse_pruned_kind, parse_size,
};
pub(crate) use yaml::parse as parse_yaml;
