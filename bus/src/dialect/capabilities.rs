//! Which answers an agent acts on at one event. `decide/capabilities.rs` reduces verdicts to them.

/// The answers that an agent acts on at one event. An answer that it cannot act on becomes a block or is left
/// out, by the hook's failure policy, and that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "five answers, each possible or not")]
pub struct Capabilities {
    /// The action can be refused.
    pub block: bool,
    /// The user can be asked, if there is one.
    pub ask: bool,
    /// The agent can be stopped.
    pub stop: bool,
    /// The model can be given more text.
    pub context: bool,
    /// The tool's input, or the text that the event is about, can be changed.
    pub rewrite: bool,
}

impl Capabilities {
    /// No answer has an effect.
    pub const NONE: Self =
        Self { block: false, ask: false, stop: false, context: false, rewrite: false };
}
