//! Support for the end-to-end tests: a temporary home with the real binary, real agents, real NATS servers.

#![expect(clippy::expect_used, clippy::panic, reason = "a test whose setup fails has failed")]

pub mod accounts;
pub mod agents;
pub mod broken_daemon;
pub mod client;
pub mod consent;
pub mod difference;
pub mod docs;
pub mod duckdb;
pub mod home;
pub mod log_holder;
pub mod long_session;
pub mod mounts;
pub mod nats;
pub mod payloads;
pub mod plugins;
pub mod port;
pub mod pty;
pub mod recording;
pub mod screen;
pub mod secrets;
pub mod shapes;
pub mod timing;
pub mod told;
pub mod told_sessions;
pub mod wiring;
pub mod words;
