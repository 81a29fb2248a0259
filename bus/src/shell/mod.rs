//! What a shell line does, told without running it. Pure: text in, [`ShellView`] out.

mod code;
mod expand;
mod follow;
mod launch;
mod limits;
mod read;
mod start;
mod syntax;
mod view;
mod word;

#[cfg(test)]
mod tests;

pub use read::read;
pub use start::Start;
pub use view::{
    Access, CodeSource, Directory, FileUse, ForeignCode, HostUse, Invocation, Opaque, OpaqueKind,
    ShellView,
};
pub use word::{UNKNOWN, Word};
