//! What is wrong with a pattern, and what to write instead.

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing is in it.
    #[error("the pattern is empty; write a command, like `git push --force`")]
    Empty,
    /// It begins with an option.
    #[error(
        "the pattern begins with `{option}`; write the program first, or `*` for any: `* {option}`"
    )]
    NoProgram {
        /// The option.
        option: String,
    },
    /// It joins several commands.
    #[error(
        "`{operator}` joins commands; write one pattern for each command, or quote it: `'{operator}'`"
    )]
    SeveralCommands {
        /// What joins them.
        operator: char,
    },
    /// It redirects.
    #[error(
        "`{operator}` redirects to a file; leave it out and write a rule about files, or quote it: `'{operator}'`"
    )]
    Redirection {
        /// `<` or `>`.
        operator: char,
    },
    /// It has something that the shell replaces.
    #[error(
        "`{sign}` would be replaced by the shell; write `*` for a part that may differ, or quote it: `'{sign}'`"
    )]
    Expansion {
        /// `$` or a backtick.
        sign: char,
    },
    /// A quote has no end.
    #[error(
        "the quote {quote} has no end; write another {quote} behind the text, or `\\{quote}` for the sign itself"
    )]
    UnclosedQuote {
        /// The quote.
        quote: char,
    },
    /// A group of alternatives has no end.
    #[error("`{{` has no end; write `{{a,b}}` for alternatives, or quote it: `'{{'`")]
    UnclosedBrace,
    /// It stands for too many patterns.
    #[error("the alternatives make more than {limit} patterns; split it into several")]
    TooManyAlternatives {
        /// How many it may be.
        limit: usize,
    },
}
