//! Whether a pattern matches: yes, no, or perhaps.

/// Whether a pattern matches an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    /// It does not.
    No,
    /// That depends on a part of the line that is not known before it runs.
    Maybe,
    /// It does.
    Yes,
}

impl Match {
    /// Both must match.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// One of them must match.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }
}
