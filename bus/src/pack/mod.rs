//! Payloads without what was stored before: each large value once, lists that grow by what is new, compressed.
//!
//! [`Packer::pack`] cuts a payload at JSON value boundaries. Large values become parts, which the store keeps once; what
//! is left is the skeleton: a few bytes and references. [`Unpacker::unpack`] returns the same bytes. Nothing is parsed
//! or written anew, and payloads that are not JSON are welcome.
//!
//! Pure: the store is handed in as [`Parts`] and [`PartSource`]. `README.md` beside this file describes the format.

mod chunk;
mod dictionary;
mod list;
mod nodes;
mod recent;
mod recipe;
mod scan;
mod seen;
mod similar;
mod varint;

mod cache;
mod cut;
mod intern;
mod sealed;

mod bodies;
mod error;
mod memory;
mod packer;
mod part;
mod unpacker;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

pub use error::{UnpackError, Unreadable};
pub use memory::{MemoryParts, NoNumberLeft};
pub use packer::{Packed, Packer};
pub use part::{PartId, PartKey, PartSource, Parts};
pub use sealed::Compression;
pub use unpacker::Unpacker;
