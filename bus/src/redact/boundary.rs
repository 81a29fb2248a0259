//! Where a token may start and end. A prefix such as `AKIA` turns up by chance in long base64 data, so a token inside such
//! data does not count; a token behind a percent escape or a colour of a terminal does.

use std::ops::Range;

use super::alphabet::{ALNUM, ANY_HEX, Alphabet, DIGIT};

const BLOB: Alphabet = ALNUM.and(Alphabet::of("+/_-"));
/// How much of the data around a token is looked at.
const SAMPLE: usize = 48;

/// Whether a token can start at `start`.
pub(super) fn starts_word(text: &[u8], start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    match before.last() {
        None => true,
        Some(byte) if ALNUM.has(*byte) => {
            is_percent_escape(before) || is_terminal_colour(before) || before.ends_with(b"/bot")
        }
        Some(b'+' | b'/' | b'_' | b'-') => {
            let run = BLOB.suffix(before, SAMPLE);
            !is_blob(before.get(before.len() - run..).unwrap_or_default())
        }
        Some(_) => true,
    }
}

/// Whether a token can end where `token` ends.
pub(super) fn ends_word(text: &[u8], token: Range<usize>) -> bool {
    let behind = text.get(token.end..).unwrap_or_default();
    match behind.first() {
        Some(byte) if ALNUM.has(*byte) => false,
        Some(b'+' | b'/') => {
            let run = BLOB.prefix(behind, SAMPLE);
            !is_blob(behind.get(..run).unwrap_or_default())
        }
        Some(_) | None => true,
    }
}

/// Whether a run of base64 characters looks like data rather than like a path or words.
fn is_blob(run: &[u8]) -> bool {
    let count = |class: fn(&u8) -> bool| run.iter().filter(|byte| class(byte)).count();
    run.len() >= 40
        && count(u8::is_ascii_uppercase) >= 6
        && count(u8::is_ascii_lowercase) >= 6
        && count(u8::is_ascii_digit) >= 2
}

/// `%3D` in front of a token, as in an encoded URL.
fn is_percent_escape(before: &[u8]) -> bool {
    matches!(before, [.., b'%', high, low] if ANY_HEX.has(*high) && ANY_HEX.has(*low))
}

/// `[31m` in front of a token, as a terminal writes colours.
fn is_terminal_colour(before: &[u8]) -> bool {
    let Some(codes) = before.strip_suffix(b"m") else { return false };
    let len = DIGIT.and(Alphabet::of(";")).suffix(codes, 12);
    codes.get(..codes.len() - len).is_some_and(|front| front.ends_with(b"["))
}

/// The longest colour code, such as `38;5;208m`, without its bracket.
pub(super) const MAX_COLOUR: usize = 12;

/// How many bytes at the start of `run` are a colour of a terminal, if `front` ends with its bracket.
pub(super) fn colour_len(front: &[u8], run: &[u8]) -> usize {
    let codes = DIGIT.and(Alphabet::of(";")).prefix(run, MAX_COLOUR);
    if front.ends_with(b"[") && run.get(codes) == Some(&b'm') { codes + 1 } else { 0 }
}
