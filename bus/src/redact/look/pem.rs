//! Private keys in PEM form, in a file, in one JSON string, with `\n` as text, or base64 once more (kubeconfig files); `PuTTY`'s
//! form. Public keys and certificates stay.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem;

use super::super::alphabet::{ALNUM, Alphabet, BASE64};
use super::{Look, Rank};

/// A key is at most so long; 16384 bit RSA has 13 KB.
const MAX_KEY: usize = 32 * 1024;
/// Characters of the body, and of the quotes and signs that join lines of it in source code.
const BODY: Alphabet = BASE64.and(Alphabet::of(" \t\r\n:,-\"'\\.()_"));

/// The key whose `-----BEGIN` (or another opening) is at `keyword`.
pub(crate) fn private_key(look: &mut Look<'_>, keyword: Range<usize>) {
    match look.slice(keyword.clone()).first() {
        Some(b'-') => pem(look, keyword),
        Some(b'L' | b'l') => encoded(look, keyword),
        Some(_) | None => putty(look, keyword),
    }
}

fn pem(look: &mut Look<'_>, keyword: Range<usize>) {
    let header = look.from(keyword.end);
    let header = header.get(..80).unwrap_or(header);
    let Some(label) = memmem::find(header, b"-----").and_then(|len| header.get(..len)) else {
        return;
    };
    if !memmem::find(label, b"PRIVATE KEY").is_some_and(|_| label.starts_with(b" ")) {
        return;
    }
    let body = keyword.end + label.len() + 5;
    let end = end_of(look, body, b"-----END");
    let footer = look.from(end).strip_prefix(b"-----END").unwrap_or_default();
    let footer = footer.get(..80).unwrap_or(footer);
    let footer = memmem::find(footer, b"-----").map_or(0, |len| len + 13);
    if has_key_material(look.slice(body..end)) {
        look.add(keyword.start..end + footer, "private-key", Rank::Token);
    }
}

/// `PuTTY-User-Key-File-3: …`, with the key behind `Private-Lines:`.
fn putty(look: &mut Look<'_>, keyword: Range<usize>) {
    let end = end_of(look, keyword.end, b"Private-MAC");
    if has_key_material(look.slice(keyword.end..end)) {
        look.add(keyword.end..end, "private-key", Rank::Token);
    }
}

/// A PEM file that was base64-encoded as a whole.
fn encoded(look: &mut Look<'_>, keyword: Range<usize>) {
    let rest = look.from(keyword.start);
    let len = BASE64.prefix(rest, MAX_KEY);
    look.spend(len);
    let start = rest.get(..64.min(len) / 4 * 4).unwrap_or_default();
    let Ok(header) = STANDARD_NO_PAD.decode(start) else { return };
    if memmem::find(&header, b"PRIVATE KEY").is_some() {
        look.add(keyword.start..keyword.start + len, "private-key", Rank::Token);
    }
}

/// Where the key ends: at `footer`, or where characters come that no key has (a truncated text).
fn end_of(look: &mut Look<'_>, start: usize, footer: &[u8]) -> usize {
    let rest = look.from(start);
    let rest = rest.get(..MAX_KEY).unwrap_or(rest);
    let is_end =
        |at: usize| look.is_json && look.byte(at) == Some(b'"') && look.view.quote_level(at) == 0;
    let string =
        memchr::memchr_iter(b'"', rest).find(|at| is_end(start + at)).unwrap_or(rest.len());
    let rest = rest.get(..string).unwrap_or_default();
    let len = memmem::find(rest, footer).unwrap_or_else(|| BODY.prefix(rest, rest.len()));
    look.spend(len);
    start + len
}

/// Whether there is a key and not `...` or `<your key>`: a run of base64 characters in it.
fn has_key_material(body: &[u8]) -> bool {
    let runs = body.split(|byte| !(ALNUM.has(*byte) || *byte == b'+' || *byte == b'/'));
    runs.into_iter().any(|run| run.len() >= 16 && run.iter().any(u8::is_ascii_digit))
}
