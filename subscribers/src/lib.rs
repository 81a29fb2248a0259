//! The observer runtime: hooks with `mode: observe`, each in a process of its own.
//!
//! [`observe`] is the entry point: claim a partition, read events, deliver them, save the position.
//! An observer reads from the log or from NATS under the same contract: every event at least once, in
//! order per bus. An event that fails its last attempt becomes a dead letter. Nothing here writes to
//! the log of a bus.

pub mod analytics;

mod assignment;

mod connection;
mod dead_letter;
mod dead_letter_store;
mod deliver;
mod error;
mod observer;
mod partition;
mod position;
mod redeliver;
mod refused;
mod replay_publisher;
mod retry_delay;
mod runtime;
mod source;
mod store;
mod stream_copy;

pub use assignment::{Assignment, ReadFrom};
pub use connection::NatsError;
pub use dead_letter::DeadLetter;
pub use dead_letter_store::{DeadLetterStore, StoredDeadLetter};
pub use deliver::{CommandError, LongLivedError, PluginsError, WebhookError};
pub use error::{DeliveryError, ObserverError};
pub use observer::{Observer, ObserverAction};
pub use redeliver::{Redelivery, observe_replay, retry_dead_letter};
pub use refused::{RefusedMessage, RefusedMessages};
pub use replay_publisher::ReplayPublisher;
pub use runtime::{ObserveSummary, StopSignal, observe};
pub use source::FetchError;
pub use stream_copy::copy_stream;
