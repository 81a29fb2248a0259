//! Gemini CLI, as 0.61 really behaves (its own documentation differs in places; the code wins).

mod encode;
mod merge;
mod moment;

pub(super) use encode::encode;
pub(super) use merge::merge;
pub(super) use moment::takes;

#[cfg(test)]
mod tests;
