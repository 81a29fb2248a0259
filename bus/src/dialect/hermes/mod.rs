//! Hermes Agent as 0.19 really behaves. Over its own shell-hook wire three events take an answer; over
//! our bridge it takes what its Python plugins can say.

mod encode;
mod hears;
mod merge;

pub(super) use encode::encode;
pub(super) use hears::takes;
pub(super) use merge::merge;

#[cfg(test)]
mod tests;
