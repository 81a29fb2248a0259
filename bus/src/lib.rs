//! hookbus: what happens to one event of an AI agent.
//!
//! [`pipeline::handle`] is the map: decode, append, decide, append, encode. Data goes one way, and
//! the log is the only truth.

pub mod backoff;
pub mod sys;

pub mod event;

pub mod json;

pub mod dialect;

pub mod log;

pub mod envelope;

pub mod decide;

pub mod bus;

pub mod pipeline;

pub mod relay;

pub mod server;
mod sessions;
