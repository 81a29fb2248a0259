//! A dead letter: an event that an observer failed on to its last try, and why.

use hookbus::envelope::{self, NotOurs, Travelled};
use hookbus::event::Time;
use serde_json::{Value, json};

/// An event that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Whose it is.
    pub observer: String,
    /// When it was set aside.
    pub at: Time,
    /// After how many tries.
    pub tries: u32,
    /// What went wrong the last time.
    pub error: String,
    /// The event, as it travels.
    pub envelope: Vec<u8>,
}

/// A longer error is cut: it travels in a header.
const LONGEST_ERROR: usize = 1000;

impl DeadLetter {
    /// An event that failed for the last time.
    pub(crate) fn new(
        observer: &str,
        at: Time,
        tries: u32,
        error: &str,
        envelope: Vec<u8>,
    ) -> Self {
        let error = error.chars().take(LONGEST_ERROR).collect();
        Self { observer: observer.to_owned(), at, tries, error, envelope }
    }

    /// The event in it.
    pub fn event(&self) -> Result<Travelled, NotOurs> {
        envelope::read(&self.envelope)
    }

    /// What is said about it besides its event.
    pub(crate) fn about(&self) -> Value {
        json!({
            "observer": self.observer,
            "at": self.at.micros(),
            "tries": self.tries,
            "error": self.error,
        })
    }

    /// The other way round.
    pub(crate) fn from_parts(about: &Value, envelope: Vec<u8>) -> Option<Self> {
        Some(Self {
            observer: about["observer"].as_str()?.to_owned(),
            at: Time::from_micros(about["at"].as_i64()?),
            tries: u32::try_from(about["tries"].as_u64()?).ok()?,
            error: about["error"].as_str()?.to_owned(),
            envelope,
        })
    }
}
