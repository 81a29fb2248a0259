//! Secrets that look like any hash or id: they count where the name of their service is part of the name that they are assigned to.

use std::ops::Range;

use super::super::alphabet::Alphabet;
use super::super::look::{Look, Operator, Rank, assignment, is_placeholder, is_words, words};
use super::super::shape::{Piece, match_pieces};

/// How many bytes of words may stand between the service's name and the value: "datadog api key: …".
const WORDS: usize = 30;

/// A secret that is recognised by a name and its shape.
#[derive(Debug)]
pub(in super::super) struct Service {
    pub(in super::super) kind: &'static str,
    /// The keyword: the name of the service.
    pub(in super::super) name: &'static str,
    pub(in super::super) shape: Piece,
    /// The service is called like a common word: the keyword has to be a whole word of the name, and the name not that of an
    /// id or an address.
    is_word: bool,
}

/// Exactly `len` characters.
pub(super) const fn exact(
    kind: &'static str,
    name: &'static str,
    of: Alphabet,
    len: usize,
) -> Service {
    between(kind, name, of, len, len)
}

/// `min` to `max` characters.
pub(super) const fn between(
    kind: &'static str,
    name: &'static str,
    of: Alphabet,
    min: usize,
    max: usize,
) -> Service {
    // Services that issue base64 with `-` and `_` may pad it.
    let of = if of.has(b'-') { of.and(Alphabet::of("=")) } else { of };
    Service { kind, name, shape: Piece::Run(of, min, max), is_word: false }
}

/// Exactly `len` characters, of a service that is called like a common word.
pub(super) const fn word(
    kind: &'static str,
    name: &'static str,
    of: Alphabet,
    len: usize,
) -> Service {
    Service { is_word: true, ..exact(kind, name, of, len) }
}

impl Service {
    pub(in super::super) fn find(&self, look: &mut Look<'_>, keyword: Range<usize>) {
        if self.is_word && !is_whole_word(look.text, &keyword) {
            return;
        }
        let Some(found) = assignment(look, keyword, WORDS) else { return };
        let value = look.slice(found.value.clone());
        let (Some(len), _) = match_pieces(&[self.shape], value) else { return };
        // A name such as `datadog_dashboard` may be given a word; secrets of machines have digits and letters.
        let secret = value.get(..len).unwrap_or_default();
        let has = |class: fn(&u8) -> bool| secret.iter().any(class);
        let random = has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit)
            || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        let rest = value.len() - len;
        let name = look.slice(found.name.clone());
        let is_public = found.operator == Operator::Compares
            || is_about(name)
            || self.is_word && is_of_place(name);
        let is_secret = random && !is_words(secret) && !is_placeholder(secret);
        if is_secret && rest <= 1 && !is_public {
            look.add(found.value.start..found.value.start + len, self.kind, Rank::Service);
        }
    }
}

/// Names of public values: checksums and versions of a package of the service.
fn is_about(name: &[u8]) -> bool {
    let about = [
        "sha",
        "sha1",
        "sha256",
        "hash",
        "checksum",
        "digest",
        "commit",
        "version",
        "integrity",
        "image",
        "tag",
        "revision",
    ];
    words(name).iter().any(|word| about.contains(&word.as_str()))
}

/// Whether the keyword is not a part of a longer word: `box` in `BOX_TOKEN`, `boxToken` and `myBox`, not in `inbox` or `boxes`.
fn is_whole_word(text: &[u8], keyword: &Range<usize>) -> bool {
    let before = keyword.start.checked_sub(1).and_then(|at| text.get(at));
    let (first, last) = (text.get(keyword.start), text.get(keyword.end - 1));
    let is_hump = |front: &u8, back: &u8| front.is_ascii_lowercase() && back.is_ascii_uppercase();
    let joins = |front: Option<&u8>, back: Option<&u8>| match (front, back) {
        (Some(front), Some(back)) => {
            front.is_ascii_alphabetic() && back.is_ascii_alphabetic() && !is_hump(front, back)
        }
        _ => false,
    };
    !joins(before, first) && !joins(last, text.get(keyword.end))
}

/// Names of ids and addresses.
fn is_of_place(name: &[u8]) -> bool {
    let places = ["id", "ids", "uuid", "uid", "url", "uri", "host", "path", "file", "name", "user"];
    words(name).last().is_some_and(|last| places.contains(&last.as_str()))
}
