//! What can be said to an agent at one event.

/// The answers that an agent acts on at one event. What it cannot take is never lost: it becomes
/// a block or is dropped by the hook's failure policy, and both are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "five answers, each taken or not")]
pub struct Takes {
    /// The action can be refused.
    pub block: bool,
    /// A person can be asked, if there is one.
    pub ask: bool,
    /// The agent can be stopped.
    pub stop: bool,
    /// The model can be told more.
    pub context: bool,
    /// The tool's input can be changed.
    pub rewrite: bool,
}

impl Takes {
    /// Nothing said here changes anything.
    pub const NOTHING: Self =
        Self { block: false, ask: false, stop: false, context: false, rewrite: false };
}
