//! Expands words as bash would, as far as the result is known: quotes, `~`, braces, variables, substitutions,
//! calculations. What is not known becomes [`UNKNOWN`](super::word::UNKNOWN).

mod arithmetic;
mod braces;
mod fields;
mod parameters;
mod patterns;
mod quotes;
mod subscripts;
mod substitutions;
mod words;

pub(crate) use quotes::unescape_ansi;
