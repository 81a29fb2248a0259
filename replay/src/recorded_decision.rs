//! Reads decisions back from their rows.

use hookbus::event::{DecisionError as BadDecision, RecordedDecision};
use hookbus::json::{JsonError, read_leniently};

/// Why the payload of a decision row cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The payload is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The payload is not a decision.
    #[error(transparent)]
    Decision(#[from] BadDecision),
}

/// Reads the payload of a decision row. What the bus itself told the user is left out: it depends on the state of
/// the bus at that time, not on the hooks' answers.
pub(crate) fn read_decision(payload: &[u8]) -> Result<RecordedDecision, DecisionError> {
    Ok(RecordedDecision::from_json(read_leniently(payload)?)?.without_notice())
}
