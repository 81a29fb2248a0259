//! The relay: publishes every row of the log to one JetStream stream that all buses share, in log
//! order and each once, even if processes are killed. Agents never wait for it.
//!
//! The relay keeps no cursor. It continues after the last message of this bus in the stream, stepping over messages
//! on its subjects that it did not publish, and every batch carries the expected position of the last message
//! there, so that the server refuses a batch that is stale or repeated. Servers without atomic batches get one message at a time, with the same check.

mod batch;
mod batch_builder;
mod connect;
mod envelope;
mod error;
mod follow;
mod large;
mod object_sweep;
mod own_messages;
mod position;
mod publish_loop;
mod published_checkpoints;
mod published_head;
mod received_message;
mod server_features;
mod state;
mod stream;

pub use connect::{ConnectError, Connection, connect};
pub use follow::Relay;
pub use large::{BUCKET, StoreError, max_body_len, store_large_payload};
pub use published_checkpoints::published_checkpoints;
pub use published_head::{PublishedHeadError, published_head};
pub use received_message::{ReceivedMessage, Refusal, StreamForm};
pub use server_features::UnsupportedServer;

pub use state::{Phase, RelayState};
