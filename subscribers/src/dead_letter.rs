//! A dead letter: an event that failed every attempt of an observer, and why.

use hookbus::envelope::{self, EnvelopeError};
use hookbus::event::Time;
use hookbus::log::Received;
use serde_json::{Value, json};

/// An event that failed its last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The name of the observer.
    pub observer: String,
    /// When it became a dead letter.
    pub at: Time,
    /// How many attempts there were.
    pub tries: u32,
    /// The error of the last attempt.
    pub error: String,
    /// The event, as a CloudEvents envelope.
    pub envelope: Vec<u8>,
}

/// Errors are cut to this many characters, because on NATS they are part of a header.
const MAX_ERROR_CHARS: usize = 1000;

impl DeadLetter {
    /// An event that failed its last attempt.
    pub(crate) fn new(
        observer: &str,
        at: Time,
        tries: u32,
        error: &str,
        envelope: Vec<u8>,
    ) -> Self {
        let error = error.chars().take(MAX_ERROR_CHARS).collect();
        Self { observer: observer.to_owned(), at, tries, error, envelope }
    }

    /// The event in it.
    pub fn event(&self) -> Result<Received, EnvelopeError> {
        envelope::read(&self.envelope)
    }

    /// Everything but the event, as it is stored.
    pub(crate) fn metadata(&self) -> Value {
        json!({
            "observer": self.observer,
            "at": self.at.micros(),
            "tries": self.tries,
            "error": self.error,
        })
    }

    /// Reads back what [`Self::metadata`] wrote; `None` if a field is missing.
    pub(crate) fn from_parts(metadata: &Value, envelope: Vec<u8>) -> Option<Self> {
        Some(Self {
            observer: metadata["observer"].as_str()?.to_owned(),
            at: Time::from_micros(metadata["at"].as_i64()?),
            tries: u32::try_from(metadata["tries"].as_u64()?).ok()?,
            error: metadata["error"].as_str()?.to_owned(),
            envelope,
        })
    }
}
