//! What of a row counts, beyond what [`EventView`] tells: which payloads are read at all, and how long texts are kept.

use hookbus::event::Kind;
use hookbus::view::EventView;
use sha2::{Digest, Sha256};

/// How many characters of prompts, commands, reasons and errors are kept.
pub(super) const TEXT: usize = 500;

/// How many characters of names are kept: tools, models, hooks, directories.
pub(super) const NAME: usize = 300;

/// Whether figures depend on the payload of an event of this kind.
pub(super) const fn is_read(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::SessionStart
            | Kind::TurnStart
            | Kind::TurnEnd
            | Kind::ModelChunk
            | Kind::ModelAfter
            | Kind::ToolBefore
            | Kind::ToolAfter
            | Kind::ToolFailed
            | Kind::SubagentStart
            | Kind::SubagentStop
    )
}

/// A number by which a result is joined with its call where the agent sends no id.
pub(super) fn input_hash(event: &EventView<'_>) -> i64 {
    let digest = Sha256::digest(event.tool_input().to_string().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

/// Microseconds of a span in milliseconds, as decisions record them.
pub(super) fn micros_of(ms: Option<f64>) -> Option<i64> {
    let micros = (ms?.clamp(0.0, 1e12) * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1e15")]
    let micros = micros as i64;
    Some(micros)
}
