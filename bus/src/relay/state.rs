//! The state of the relay, for `hookbus status`.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::event::{Seq, Time};
use crate::log::LogReader;

/// What the relay is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has no working connection to a server, and retries.
    Connecting,
    /// Events are published.
    Publishing,
    /// A server answers, but publishing fails until the user changes something.
    Stuck,
}

#[derive(Debug, Clone)]
struct Inner {
    phase: Phase,
    published: Option<Seq>,
    error: Option<String>,
    note: Option<&'static str>,
    /// How many messages on the subjects of this bus are not its own.
    foreign: u64,
}

/// A shared handle: the relay writes, other threads read.
#[derive(Debug, Clone)]
pub struct RelayState(Arc<Mutex<Inner>>);

impl RelayState {
    pub(super) fn new() -> Self {
        let inner = Inner {
            phase: Phase::Connecting,
            published: None,
            error: None,
            note: None,
            foreign: 0,
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn failed(&self, phase: Phase, error: &str) {
        self.change(|inner| {
            inner.phase = phase;
            inner.error = Some(error.to_owned());
        });
    }

    /// The position in the stream is known. The phase and the error stay until a message is
    /// acknowledged, because the stream may still refuse everything.
    pub(super) fn position_found(
        &self,
        seq: Option<Seq>,
        note: Option<&'static str>,
        foreign: u64,
    ) {
        self.change(|inner| {
            inner.published = seq;
            inner.note = note;
            inner.foreign = foreign;
        });
    }

    pub(super) fn published(&self, seq: Option<Seq>) {
        self.change(|inner| {
            inner.phase = Phase::Publishing;
            inner.published = seq.or(inner.published);
            inner.error = None;
        });
    }

    /// The state, with the number of rows in the log that wait, and the age of the oldest of them.
    pub fn report(&self, log: Option<&LogReader>, now: Time) -> Value {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let published = inner.published.map_or(0, Seq::as_i64);
        let head = log.and_then(|log| log.head().ok()).flatten();
        let lag = head.map_or(0, |(seq, _)| seq.as_i64() - published);
        let oldest = log.filter(|_| lag > 0).and_then(|log| log.time_after(inner.published).ok());
        let lag_s = oldest.flatten().map_or(0, |oldest| now.since(oldest).as_secs());
        json!({
            "connected": inner.phase != Phase::Connecting,
            "phase": match inner.phase {
                Phase::Connecting => "connecting",
                Phase::Publishing => "publishing",
                Phase::Stuck => "stuck",
            },
            "published": published,
            "lag_events": lag.max(0),
            "lag_s": lag_s,
            "error": inner.error,
            "note": inner.note,
            "foreign": inner.foreign,
        })
    }
}
