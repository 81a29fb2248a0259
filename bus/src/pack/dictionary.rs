//! The zstd dictionaries, by number. A number that was released keeps its bytes for ever, because logs hold parts that
//! were compressed with it. `dictionary/README.md` says how they are made.

use std::sync::LazyLock;

use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// What new parts are compressed with.
pub(super) const CURRENT: u8 = 1;

/// zstd's own default: the next levels take longer, and parts are too small for them to find more.
pub(super) const LEVEL: i32 = 3;

/// Dictionary 1.
pub(super) static FIRST: &[u8] = include_bytes!("dictionary/1.dict");

/// Dictionary [`CURRENT`], ready to compress with; none if zstd refuses it.
pub(super) fn encoder() -> Option<&'static EncoderDictionary<'static>> {
    static PREPARED: LazyLock<Option<EncoderDictionary<'static>>> =
        LazyLock::new(|| EncoderDictionary::try_copy(FIRST, LEVEL).ok());
    PREPARED.as_ref()
}

/// A dictionary ready to decompress with; none if this version does not know the number.
pub(super) fn decoder(number: u8) -> Option<&'static DecoderDictionary<'static>> {
    static PREPARED: LazyLock<Option<DecoderDictionary<'static>>> =
        LazyLock::new(|| DecoderDictionary::try_copy(FIRST).ok());
    match number {
        1 => PREPARED.as_ref(),
        _ => None,
    }
}
