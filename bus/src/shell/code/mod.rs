//! What programs print as far as it can be told, and what code in other languages does: which programs it starts,
//! which files it deletes or writes.

mod aliases;
mod calls;
mod context;
mod decode;
mod downloads;
mod embedded;
mod evaluation;
mod indirect_names;
mod interpreters;
mod languages;
mod listing;
mod literals;
mod output;
mod path_methods;
mod paths;
mod printing;
mod received;
mod tables;
mod terms;

pub(crate) use languages::language;
pub(crate) use output::{known_output, source_and_target};
pub(crate) use paths::plain as plain_path;
pub(crate) use printing::printf;
