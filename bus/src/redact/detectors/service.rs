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
    Service { kind, name, shape: Piece::Run(of, min, max) }
}

impl Service {
    pub(in super::super) fn find(&self, look: &mut Look<'_>, keyword: Range<usize>) {
        let Some(found) = assignment(look, keyword, WORDS) else { return };
        let value = look.slice(found.value.clone());
        let (Some(len), _) = match_pieces(&[self.shape], value) else { return };
        // A name such as `datadog_dashboard` may be given a word; secrets of machines have digits and letters.
        let secret = value.get(..len).unwrap_or_default();
        let has = |class: fn(&u8) -> bool| secret.iter().any(class);
        let random = has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit)
            || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && !is_words(secret);
        let rest = value.len() - len;
        let is_public =
            found.operator == Operator::Compares || is_about(look.slice(found.name.clone()));
        if random && rest <= 1 && !is_public && !is_placeholder(secret) {
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
