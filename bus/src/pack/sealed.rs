//! How one part or skeleton body is stored: a tag byte, then the body, compressed where that pays.
//!
//! Tag: bit 0 is set if the body is a recipe (else it is text), bit 1 if it is compressed; the other six bits are the
//! number of the dictionary. Number 63 means that another part is the dictionary: its number follows as a varint. A
//! compressed body is a zstd frame with its content size and without the four magic bytes.

use std::fmt;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, CParameter};

use super::dictionary;
use super::error::Unreadable;
use super::part::PartId;
use super::varint;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// Bytes of a payload.
    Text,
    /// How to put bytes of a payload together.
    Recipe,
}

const RECIPE: u8 = 1;
const COMPRESSED: u8 = 2;
/// The number of the dictionary starts at this bit.
const DICTIONARY_SHIFT: u32 = 2;

/// The number that says that the dictionary is a part.
const A_PART: u8 = 63;

/// zstd's frames start with these bytes, which we do not store.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Shorter bodies are stored as they are.
const SHORTEST_COMPRESSED: usize = 24;

/// Whether bodies are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Where it makes them smaller.
    WhereItPays,
    /// Never. To train a dictionary with what would be compressed.
    Off,
}

/// Writes bodies. Keeps zstd's working memory, which is made at the first use.
pub(super) struct Sealer {
    compression: Compression,
    compressor: Option<Compressor<'static>>,
    with_base: Option<Compressor<'static>>,
    frame: Vec<u8>,
}

impl Sealer {
    pub(super) const fn new(compression: Compression) -> Self {
        Self { compression, compressor: None, with_base: None, frame: Vec::new() }
    }

    /// Appends `body` with its tag to `out`.
    pub(super) fn seal(&mut self, kind: Body, body: &[u8], out: &mut Vec<u8>) {
        let tag = match kind {
            Body::Text => 0,
            Body::Recipe => RECIPE,
        };
        match self.compress(body) {
            Some(frame) if frame.len() < body.len() => {
                out.push(tag | COMPRESSED | (dictionary::CURRENT << DICTIONARY_SHIFT));
                out.extend_from_slice(frame);
            }
            Some(_) | None => {
                out.push(tag);
                out.extend_from_slice(body);
            }
        }
    }

    /// Replaces `sealed`, which is `text`, if it is smaller when compressed with the text of `base` as the dictionary.
    /// Returns whether it was.
    pub(super) fn seal_like(
        &mut self,
        text: &[u8],
        base: PartId,
        base_text: &[u8],
        sealed: &mut Vec<u8>,
    ) -> bool {
        if self.compression == Compression::Off {
            return false;
        }
        let compressor = self.with_base.get_or_insert_default();
        let compressed = compressor
            .set_dictionary(dictionary::LEVEL, base_text)
            .and_then(|()| compressor.compress(text));
        let Ok(frame) = compressed else { return false };
        let Some(frame) = frame.strip_prefix(&MAGIC) else { return false };
        let smaller = frame.len() + 1 + varint::MAX_LEN < sealed.len();
        if smaller {
            sealed.clear();
            sealed.push(COMPRESSED | (A_PART << DICTIONARY_SHIFT));
            varint::write(base.as_i64().cast_unsigned(), sealed);
            sealed.extend_from_slice(frame);
        }
        smaller
    }

    /// The zstd frame of `body`, without the magic bytes; none if it cannot be smaller, or zstd has no memory.
    fn compress(&mut self, body: &[u8]) -> Option<&[u8]> {
        if body.len() < SHORTEST_COMPRESSED || self.compression == Compression::Off {
            return None;
        }
        if self.compressor.is_none() {
            self.compressor = new_compressor();
        }
        let compressor = self.compressor.as_mut()?;
        self.frame.clear();
        self.frame.reserve(zstd_safe::compress_bound(body.len()));
        compressor.compress_to_buffer(body, &mut self.frame).ok()?;
        self.frame.strip_prefix(&MAGIC)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("compression", &self.compression).finish_non_exhaustive()
    }
}

fn new_compressor() -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(dictionary::encoder()?).ok()?;
    compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
    Some(compressor)
}

/// A part or the body of a skeleton, before it is decompressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed<'a> {
    pub(super) kind: Body,
    /// The part that it is compressed with.
    pub(super) base: Option<PartId>,
    /// The dictionary that it is compressed with; none if `base` is it, or it is not compressed.
    dictionary: Option<u8>,
    stored: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// Reads the tag.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let (&tag, mut stored) = bytes.split_first().ok_or(Unreadable::Damaged("it is empty"))?;
        let kind = if tag & RECIPE == 0 { Body::Text } else { Body::Recipe };
        let number = tag >> DICTIONARY_SHIFT;
        let (base, dictionary) = match (tag & COMPRESSED, number) {
            (0, 0) => (None, None),
            (0, _) => return Err(Unreadable::Damaged("it has a dictionary without compression")),
            (_, A_PART) => {
                let number = varint::read(&mut stored).map(u64::cast_signed);
                let base = number.and_then(PartId::new);
                (Some(base.ok_or(Unreadable::Damaged("its base has no number"))?), None)
            }
            (_, number) => (None, Some(number)),
        };
        Ok(Self { kind, base, dictionary, stored })
    }
}

/// Reads bodies. Keeps zstd's working memory, which is made at the first use.
#[derive(Default)]
pub(super) struct Opener {
    decompressor: Option<(u8, Decompressor<'static>)>,
    with_base: Option<Decompressor<'static>>,
    frame: Vec<u8>,
}

impl Opener {
    /// Appends the body to `out`. One that is longer than `longest` is an error, not an allocation. `base_text` is the
    /// text of the part that it is compressed with.
    pub(super) fn open(
        &mut self,
        sealed: &Sealed<'_>,
        base_text: &[u8],
        longest: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        let decompressor = match (sealed.base, sealed.dictionary) {
            (None, None) if sealed.stored.len() > longest => return Err(TOO_LONG),
            (None, None) => {
                out.extend_from_slice(sealed.stored);
                return Ok(());
            }
            (Some(_), _) => ready_with_base(&mut self.with_base, base_text)?,
            (None, Some(number)) => ready(&mut self.decompressor, number)?,
        };
        self.frame.clear();
        self.frame.extend_from_slice(&MAGIC);
        self.frame.extend_from_slice(sealed.stored);
        let size = zstd_safe::get_frame_content_size(&self.frame).ok().flatten();
        let size = size.ok_or(Unreadable::Damaged("it has no zstd frame with a size"))?;
        let size = usize::try_from(size).map_err(|_| TOO_LONG)?;
        if size > longest {
            return Err(TOO_LONG);
        }
        let start = out.len();
        out.resize(start + size, 0);
        let place = out.get_mut(start..).unwrap_or_default();
        match decompressor.decompress_to_buffer(&self.frame, place) {
            Ok(written) if written == size => Ok(()),
            Ok(_) => Err(Unreadable::Damaged("zstd found fewer bytes than it was told")),
            Err(_) => Err(Unreadable::Damaged("zstd cannot decompress it")),
        }
    }
}

const TOO_LONG: Unreadable = Unreadable::Damaged("a part is longer than what it belongs to");

/// The decompressor in `slot` if it is for this dictionary, else a new one.
fn ready<'a>(
    slot: &'a mut Option<(u8, Decompressor<'static>)>,
    number: u8,
) -> Result<&'a mut Decompressor<'static>, Unreadable> {
    if slot.as_ref().is_none_or(|(ready, _)| *ready != number) {
        let dictionary =
            dictionary::decoder(number).ok_or(Unreadable::UnknownDictionary(number))?;
        let made = Decompressor::with_prepared_dictionary(dictionary);
        *slot = Some((number, made.map_err(|_| Unreadable::NoMemory)?));
    }
    slot.as_mut().map(|(_, made)| made).ok_or(Unreadable::NoMemory)
}

/// The decompressor in `slot`, with this text as its dictionary.
fn ready_with_base<'a>(
    slot: &'a mut Option<Decompressor<'static>>,
    text: &[u8],
) -> Result<&'a mut Decompressor<'static>, Unreadable> {
    if slot.is_none() {
        *slot = Some(Decompressor::new().map_err(|_| Unreadable::NoMemory)?);
    }
    let decompressor = slot.as_mut().ok_or(Unreadable::NoMemory)?;
    decompressor.set_dictionary(text).map_err(|_| Unreadable::NoMemory)?;
    Ok(decompressor)
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}
