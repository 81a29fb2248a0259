//! What an observer does with an event: run a command, write it to a long-lived program, post it, archive
//! it, count it, or call plugins. One call delivers one event; the error says why it failed.

mod analytics;
mod archive;
mod command;
mod delivery;
mod home_path;
mod input;
mod long_lived;
mod plugins;
mod webhook;

pub use command::CommandError;
pub(crate) use delivery::{Attempt, Delivery};
pub use long_lived::LongLivedError;
pub use plugins::PluginsError;
pub use webhook::WebhookError;
