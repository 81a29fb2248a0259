//! What an observer does with an event: run a command, write it to a long-lived program, post it, archive
//! it, or call plugins. One call delivers one event; the error says why it failed.

mod archive;
mod delivery;
mod long_lived;
mod webhook;

pub(crate) use delivery::{Attempt, Delivery};
pub use long_lived::LongLivedError;
pub use webhook::WebhookError;
