//! What the end-to-end tests stand on: a scratch home with the real binary, and real agents.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set its scene has failed"
)]

pub mod accounts;
pub mod agents;
pub mod caller;
pub mod difference;
pub mod docs;
pub mod home;
pub mod nats;
pub mod payloads;
pub mod plugins;
pub mod port;
pub mod recording;
pub mod timing;
pub mod wiring;
