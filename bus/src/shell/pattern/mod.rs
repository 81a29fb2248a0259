//! Command patterns: `git push --force`, `rm -rf /`, `{npm,pnpm} publish`, written as people write commands, and
//! compared as they mean them: options in any order, spelling and bundle.

mod alternative;
mod error;
mod explain;
mod outcome;
mod wanted_option;
mod wildcard;
mod words;

mod command_pattern;

#[cfg(test)]
mod tests;

pub use command_pattern::CommandPattern;
pub use error::PatternError;
pub use outcome::Match;
