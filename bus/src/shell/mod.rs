//! What a shell line does, told without running it. Pure: text in, [`ShellView`] out.

mod effects;
mod pattern;
mod programs;
mod view;
mod word;

pub use effects::add_effects;
pub use pattern::{CommandPattern, Match, PatternError};
pub use programs::ParsedInvocation;
pub use view::{
    Access, CodeSource, Directory, FileUse, ForeignCode, HostUse, Invocation, Opaque, OpaqueKind,
    ShellView,
};
pub use word::{UNKNOWN, Word};
