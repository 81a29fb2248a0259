//! The failure policy of a hook, and of the bus itself.

/// What happens when a hook cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The agent goes on as if the hook were not there.
    Allow,
    /// The action is refused.
    Block,
}

impl OnFailure {
    /// The word in `hookbus.yaml` and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
        }
    }

    /// The policy with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Block].into_iter().find(|policy| policy.as_str() == text)
    }
}
