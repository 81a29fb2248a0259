//! What a shell line does, told without running it. Pure: text in, [`ShellView`] out.

mod view;
mod word;

mod limits;
mod start;

mod syntax;

mod code;
mod expand;
mod follow;
mod launch;

mod effects;
mod programs;

mod read;

mod pattern;

#[cfg(test)]
mod tests;

pub use pattern::{CommandPattern, Match, PatternError};
pub use programs::ParsedInvocation;
pub use read::read;
pub use start::Start;
pub use view::{
    Access, CodeSource, Container, Directory, FileUse, ForeignCode, HostUse, Invocation, Opaque,
    OpaqueKind, ShellView,
};
pub use word::{UNKNOWN, Word};
