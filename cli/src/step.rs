//! The events of a session one by one on the screen: for `hookbus replay --step`, and for a session that is opened in
//! `hookbus top`. Reading the log is in `load.rs`; the rest is pure: `model.rs` holds what is shown and what keys do,
//! `detail.rs` says everything about one event, `draw.rs` draws.

mod compared;
mod detail;
mod draw;
mod load;
mod model;

#[cfg(test)]
mod tests;

pub(crate) use compared::Compared;
pub(crate) use draw::draw;
pub(crate) use load::SessionEvents;
pub(crate) use model::{StepModel, StepNext};
