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
const MAX_LINE: usize = 256;
/// Characters of the body, and of the quotes and signs that join lines of it in source code.
const BODY: Alphabet = BASE64.and(Alphabet::of(" \t\r\n:,-\"'\\.()_"));

/// The key whose `-----BEGIN` (or another opening) is at `keyword`.
pub(crate) fn private_key(look: &mut Look<'_>, keyword: Range<usize>) {
    match look.slice(keyword.clone()) {
        [b'-', b'-', b'-', b'-', b'-', b'E' | b'e', ..] => tail(look, keyword),
        [b'-', b'-', b'-', b'-', b'-', ..] => pem(look, keyword),
        [b'L' | b'l', ..] => encoded(look, keyword),
        [b'<', ..] => xml(look, keyword),
        [b'B' | b'b', ..] => ssh2(look, keyword),
        _ => putty(look, keyword),
    }
}

fn pem(look: &mut Look<'_>, keyword: Range<usize>) {
    let header = look.from(keyword.end);
    let header = header.get(..80).unwrap_or(header);
    let Some(label) = memmem::find(header, b"-----").and_then(|len| header.get(..len)) else {
        return;
    };
    let is_private =
        memmem::find(label, b"PRIVATE KEY").is_some() || label == b" OpenVPN Static key V1";
    if !is_private || !label.starts_with(b" ") {
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
    if footer == 0 && look.is_json {
        lines_in_list(look, end);
    }
}

/// The lines of a key that are strings of a JSON list, behind the string that ends at `at`: a patch, a notebook.
fn lines_in_list(look: &mut Look<'_>, mut at: usize) {
    for _ in 0..MAX_KEY / 64 {
        let rest = look.from(at);
        let gap = rest.iter().take(24).take_while(|byte| b"\" ,\n\r\t".contains(byte)).count();
        let is_next = rest.first() == Some(&b'"')
            && rest.get(..gap).is_some_and(|gap| gap.contains(&b',') && gap.ends_with(b"\""));
        if !is_next {
            return;
        }
        let line = look.quoted(at + gap - 1);
        let text = look.slice(line.clone()).trim_ascii();
        let text = text.strip_prefix(b"+").unwrap_or(text).trim_ascii();
        if text.is_empty() || BASE64.prefix(text, text.len()) < text.len() {
            return;
        }
        at = line.end;
        look.add(line, "private-key", Rank::Token);
    }
}

/// The end of a key whose beginning is missing: the lines of base64 in front of `-----END … PRIVATE KEY`.
fn tail(look: &mut Look<'_>, keyword: Range<usize>) {
    let label = look.from(keyword.end);
    let label = label.get(..60).unwrap_or(label);
    let is_known =
        look.found.iter().rev().take(8).any(|found| found.range.contains(&keyword.start));
    if is_known || memmem::find(label, b"PRIVATE KEY").is_none() {
        return;
    }
    let before = look.before(keyword.start);
    // Lines of keys are short: without a line break nearby, only the end of the text can belong to a key.
    let near = before.get(before.len().saturating_sub(MAX_LINE)..).unwrap_or_default();
    let has_lines = memchr::memchr(b'\n', near).is_some();
    let limit = if has_lines { MAX_KEY } else { MAX_LINE };
    let before = before.get(before.len().saturating_sub(limit)..).unwrap_or_default();
    look.spend(near.len());
    let mut start = keyword.start;
    for (index, line) in lines_from_the_end(before).enumerate() {
        let text = line.trim_ascii();
        let text = text.strip_prefix(b"> ").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        let is_body =
            BASE64.prefix(text, text.len()) == text.len() && (text.len() >= 16 || index < 2);
        if !is_body {
            // The first line may stand behind a quote, a number or a colon.
            let line = line.trim_ascii_end();
            let run = BASE64.suffix(line, line.len());
            let trimmed = before.len() - (keyword.start - start);
            let blanks = before.get(..trimmed).map_or(0, |it| it.len() - it.trim_ascii_end().len());
            if run >= 40 {
                start -= run + blanks;
            }
            break;
        }
        start -= line.len();
    }
    look.spend(keyword.start - start);
    if has_key_material(look.slice(start..keyword.start)) {
        look.add(start..keyword.start, "private-key", Rank::Token);
    }
}

/// `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----`.
fn ssh2(look: &mut Look<'_>, keyword: Range<usize>) {
    let end = end_of(look, keyword.end, b"---- END");
    if has_key_material(look.slice(keyword.end..end)) {
        look.add(keyword.end..end, "private-key", Rank::Token);
    }
}

/// `<RSAKeyValue>`: the elements that are only in a private key.
fn xml(look: &mut Look<'_>, keyword: Range<usize>) {
    let rest = look.from(keyword.end);
    let rest = rest.get(..MAX_KEY).unwrap_or(rest);
    let end = memmem::find(rest, b"</RSAKeyValue").unwrap_or(rest.len());
    look.spend(end);
    for tag in ["<D>", "<P>", "<Q>", "<DP>", "<DQ>", "<InverseQ>"] {
        let Some(at) = rest.get(..end).and_then(|rest| memmem::find(rest, tag.as_bytes())) else {
            continue;
        };
        let start = keyword.end + at + tag.len();
        let len = BASE64.prefix(look.from(start), MAX_KEY);
        if len >= 16 {
            look.add(start..start + len, "private-key", Rank::Token);
        }
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

/// The lines of a text with their line breaks, the last one first.
fn lines_from_the_end(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, inner) = rest.split_last()?;
        let start = memchr::memrchr(b'\n', inner).map_or(0, |at| at + 1);
        let (front, line) = rest.split_at_checked(start)?;
        rest = front;
        Some(line)
    })
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
