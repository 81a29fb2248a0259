//! From the log to NATS: every row goes to one JetStream stream that all buses share, in log order,
//! each once, whatever is killed. Agents never wait for any of it.
//!
//! What the stream last holds of this bus decides where to go on, not a cursor of ours; each batch
//! is guarded by that place, so that a stale or repeated one is refused as a whole.
//! Servers that know no atomic batches get one message at a time, under the same guard.

mod abilities;
mod batch;
mod connect;
mod envelope;
mod follow;
mod large;
mod line;
mod position;
mod ready;
mod settings;
mod state;
mod stream;

pub use connect::{Connection, connect};
pub use follow::Relay;
pub use large::{room_in, store_large};
pub use settings::{Login, NatsSettings, Secret};
pub use state::{Phase, RelayState};
