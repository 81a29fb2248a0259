//! A turn: everything from one prompt to the next.

/// A row of `p_turns`.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) bus: i64,
    pub(super) session: String,
    /// Counted from 1.
    pub(super) number: i64,
    pub(super) id: Option<String>,
    pub(super) seq: i64,
    pub(super) started: i64,
    pub(super) ended: Option<i64>,
    pub(super) prompt: Option<String>,
    pub(super) events: i64,
    pub(super) tool_calls: i64,
    pub(super) failed: i64,
    pub(super) blocked: i64,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) cost: i64,
}
