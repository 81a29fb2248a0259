//! The error of a command line that cannot be split into a program and its arguments.

/// Why a command line cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A quote is open at the end of the line.
    #[error("`{0}` has a quote that is never closed; close it")]
    UnclosedQuote(String),
    /// There is nothing in it.
    #[error("the command is empty; write a program to run")]
    Empty,
}
