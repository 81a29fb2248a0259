//! How each agent speaks: its payloads, its answers, its merging rules. Values in, values out.
//!
//! An agent's JSON never leaves this folder by another way than [`decode()`] and [`encode`]; what a
//! hook printed comes in through [`understand()`].

mod decode;
mod gemini;
mod hermes;
mod speak;
mod takes;
mod understand;

pub use decode::{Arrival, decode};
pub use speak::{encode, is_continuation, merge, takes};
pub use takes::Takes;
pub use understand::{Ending, Manner, Said, Understood, returned, understand};
