//! What programs print as far as it can be told, and what code in other languages does: which programs it starts,
//! which files it deletes or writes.

mod calls;
mod decode;
mod downloads;
mod embedded;
mod interpreters;
mod languages;
mod listing;
mod literals;
mod output;
mod printing;
mod tables;

pub(crate) use languages::language;
pub(crate) use output::known_output;
pub(crate) use printing::printf;
