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

    /// The stricter one of two policies. None is between the two: such a hook allows when it fails, and blocks when
    /// its approval has lapsed.
    pub fn stricter(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let strictness = |policy: &Option<Self>| match policy {
            Some(Self::Allow) => 0,
            None => 1,
            Some(Self::Block) => 2,
        };
        [one, other].into_iter().max_by_key(strictness).flatten()
    }

    /// The policy with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Block].into_iter().find(|policy| policy.as_str() == text)
    }
}
