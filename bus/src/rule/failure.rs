//! A rule that cannot be evaluated.

use crate::dialect::PatternFailure;

/// Why it cannot be told whether a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFailure {
    /// A regex could not be run.
    #[error(transparent)]
    Pattern(#[from] PatternFailure),
    /// The call names more files than are looked at.
    #[error("the call names too many files to look at all of them")]
    TooManyFiles,
    /// The expression of `if` has no value for this event.
    #[error("`if` cannot be evaluated: {0}")]
    Expression(String),
}
