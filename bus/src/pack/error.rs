//! Why a payload cannot be put together.

use super::part::PartId;

/// Why [`Unpacker::unpack`](super::Unpacker::unpack) failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError<E> {
    /// The store of parts failed.
    #[error("cannot read a part of the payload")]
    Store(#[source] E),
    /// The store has no such part.
    #[error("part {} of the payload is missing; restore the log from a backup", .0.as_i64())]
    MissingPart(PartId),
    /// The stored bytes do not say how to put the payload together.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What is wrong with stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A later version wrote it.
    #[error("the payload is stored in format {0}, this version reads format 1; update hookbus")]
    UnknownFormat(u8),
    /// A later version wrote it.
    #[error(
        "the payload is compressed with dictionary {0}, which this version lacks; update hookbus"
    )]
    UnknownDictionary(u8),
    /// More than SQLite can store.
    #[error(
        "the payload claims to have {0} bytes, more than a log can hold; it is damaged, restore the log from a backup"
    )]
    TooLong(u64),
    /// Not what we write.
    #[error("the stored payload is damaged ({0}); restore the log from a backup")]
    Damaged(&'static str),
    /// zstd got no memory.
    #[error("no memory to decompress the payload; try again")]
    NoMemory,
}
