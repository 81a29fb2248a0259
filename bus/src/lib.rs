//! hookbus: what happens to one event of an AI agent.
//!
//! [`pipeline::handle`] is the map: decode, append, decide, append, encode. Data goes one way, and
//! the log is the only truth. `README.md` beside this crate shows the rooms and who may use whom.

pub mod sys;

pub mod files;

pub mod json;

pub mod redact;

pub mod record;

pub mod shell;

pub mod backoff;

pub mod pack;

pub mod event;

pub mod caller;

pub mod dialect;

pub mod rule;

pub mod log;

pub mod envelope;

pub mod config;

pub mod exec;

pub mod plugins;

pub mod consent;

pub mod active;

pub mod decide;

pub mod view;

pub mod notice;

pub mod bus;

pub mod pipeline;

pub mod relay;

pub mod anchor;

pub mod server;
