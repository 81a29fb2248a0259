//! From candidates to the redacted payload: leads them back to the raw bytes, leaves out marks and allowed values, joins what
//! overlaps, keeps JSON valid, and writes the marks.

use std::borrow::Cow;
use std::ops::Range;

use super::fingerprint::{Fingerprint, FingerprintKey};
use super::json_walk::{Node, Segment, What, starts_like_json, walk};
use super::known::SecretText;
use super::look::{Candidate, Rank};
use super::mark::{self, Mark};
use super::own::Own;
use super::redactor::Redacted;
use super::unescape::Unescaped;

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// What it is, such as `aws-access-key`.
    pub kind: String,
    /// How many characters it had, without escapes.
    pub chars: usize,
    /// Which secret it is.
    pub fingerprint: Fingerprint,
    /// The secret itself, for as long as the event is handled.
    pub text: SecretText,
    /// Which string of the payload it was in: `tool_input.env.API_KEY`, `messages.3.content`.
    pub path: Option<String>,
}

/// What the search noticed besides candidates, as positions in the text.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) has_marks: bool,
    /// Keywords that were found after the limit of work was reached.
    pub(super) unexamined: Vec<usize>,
}

/// A range of the raw bytes that a mark replaces.
#[derive(Debug, Clone)]
struct Cut {
    raw: Range<usize>,
    kind: Cow<'static, str>,
    rank: Rank,
    path: Option<String>,
    /// The range is a number, so the mark needs quotes.
    is_number: bool,
}

/// A path is shown up to this depth.
const MAX_PATH: usize = 24;

pub(super) fn replace<'a>(
    raw: &'a [u8],
    view: &Unescaped<'_>,
    found: Vec<Candidate>,
    places: &Places,
    own: &Own,
    key: &FingerprintKey,
) -> Redacted<'a> {
    let unexamined = places.unexamined.iter().map(|at| view.raw_range(*at..*at + 1).start);
    let unexamined: Vec<usize> = unexamined.collect();
    if found.is_empty() && unexamined.is_empty() && !own.has_places() {
        return Redacted { bytes: Cow::Borrowed(raw), found: Vec::new() };
    }
    let marks = if places.has_marks { marks(raw) } else { Vec::new() };
    let mut cuts: Vec<Cut> = found
        .into_iter()
        .filter(|candidate| {
            !own.allows(view.text().get(candidate.range.clone()).unwrap_or_default())
        })
        .map(|candidate| Cut {
            raw: view.raw_range(candidate.range),
            kind: candidate.kind,
            rank: candidate.rank,
            path: None,
            is_number: false,
        })
        .filter(|cut| !overlaps_any(&marks, &cut.raw, |mark| mark))
        .collect();
    let is_json = starts_like_json(raw);
    cuts = join(cuts);
    let walked = if is_json { fit_json(raw, &mut cuts, &unexamined, own) } else { 0 };
    coarse_rest(raw, walked, &unexamined, &mut cuts);
    let cuts: Vec<Cut> = join(cuts)
        .into_iter()
        .filter(|cut| cut.rank != Rank::Own || !own.allows(secret(raw, cut).text()))
        .collect();
    write(raw, cuts, key)
}

/// The places of marks of an earlier run.
fn marks(raw: &[u8]) -> Vec<Range<usize>> {
    let at = |start: usize| {
        let rest = raw.get(start..)?;
        let ascii = rest.iter().take(mark::MAX_LEN).take_while(|byte| byte.is_ascii()).count();
        let text = str::from_utf8(rest.get(..ascii)?).ok()?;
        let (range, _) =
            Mark::find_all(text).into_iter().next().filter(|(range, _)| range.start == 0)?;
        Some(start..start + range.end)
    };
    memchr::memmem::find_iter(raw, mark::OPENING).filter_map(at).collect()
}

/// Whether one of `sorted`, which do not overlap each other, overlaps `range`.
fn overlaps_any<T>(sorted: &[T], range: &Range<usize>, of: impl Fn(&T) -> &Range<usize>) -> bool {
    let first = sorted.partition_point(|other| of(other).end <= range.start);
    sorted.get(first).is_some_and(|other| of(other).start < range.end)
}

/// Sorted, and what overlaps as one; the kind is that of the rule that knows most.
fn join(mut cuts: Vec<Cut>) -> Vec<Cut> {
    cuts.sort_by_key(|cut| (cut.raw.start, std::cmp::Reverse(cut.raw.end)));
    let mut joined: Vec<Cut> = Vec::with_capacity(cuts.len());
    for cut in cuts {
        match joined.last_mut() {
            Some(last) if cut.raw.start < last.raw.end => {
                last.raw.end = last.raw.end.max(cut.raw.end);
                last.path = last.path.take().or(cut.path);
                last.is_number |= cut.is_number;
                if cut.rank > last.rank {
                    (last.kind, last.rank) = (cut.kind, cut.rank);
                }
            }
            Some(_) | None => joined.push(cut),
        }
    }
    joined
}

/// Keeps each cut inside one string of the JSON, gives it its path, and adds what the settings name by place. Returns how
/// far the payload was JSON.
fn fit_json(raw: &[u8], cuts: &mut Vec<Cut>, unexamined: &[usize], own: &Own) -> usize {
    let wanted = std::mem::take(cuts);
    let (mut next, mut next_unexamined) = (0, 0);
    let has_places = own.has_places();
    let walked = walk(raw, |node| {
        let place = (has_places && matches!(node.what, What::Text | What::Number))
            .then(|| own.names_place(raw, node.path))
            .flatten();
        let skipped = unexamined.get(next_unexamined..).unwrap_or_default();
        let passed = skipped.iter().take_while(|at| **at < node.range.end).count();
        let is_unexamined = skipped.iter().take(passed).any(|at| node.range.contains(at));
        next_unexamined += passed;
        let is_mark = || {
            marks(raw.get(node.range.clone()).unwrap_or_default()).first()
                == Some(&(0..node.range.len()))
        };
        let whole = match (place, is_unexamined) {
            (Some(place), _) => Some((place, Rank::Own)),
            (None, true) => Some(("unexamined", Rank::Unexamined)),
            (None, false) => None,
        };
        if let Some((kind, rank)) = whole.filter(|_| !node.range.is_empty() && !is_mark()) {
            cuts.push(cut_in(raw, &node, node.range.clone(), kind.into(), rank, &wanted));
        }
        while let Some(cut) = wanted.get(next).filter(|cut| cut.raw.start < node.range.end) {
            let part = cut.raw.start.max(node.range.start)..cut.raw.end.min(node.range.end);
            // A match over several strings leaves the keys between them alone; one inside a key does not.
            let is_key_between = node.what == What::Key && part != cut.raw;
            if part.start < part.end && node.what != What::Word && !is_key_between {
                let part = if node.what == What::Number { node.range.clone() } else { part };
                cuts.push(cut_in(raw, &node, part, cut.kind.clone(), cut.rank, &wanted));
            }
            if cut.raw.end > node.range.end {
                break;
            }
            next += 1;
        }
    });
    // Behind the end of the JSON the text is taken as it is.
    cuts.extend(wanted.into_iter().filter(|cut| cut.raw.start >= walked));
    walked
}

fn cut_in(
    raw: &[u8],
    node: &Node<'_>,
    range: Range<usize>,
    kind: Cow<'static, str>,
    rank: Rank,
    secrets: &[Cut],
) -> Cut {
    let is_number = node.what == What::Number;
    Cut { raw: range, kind, rank, path: Some(dotted(raw, node.path, secrets)), is_number }
}

/// `messages.3.content`. A key that is itself a secret shows as `*`.
fn dotted(raw: &[u8], path: &[Segment], secrets: &[Cut]) -> String {
    let parts = path.iter().take(MAX_PATH).map(|segment| match segment {
        Segment::Index(index) => index.to_string(),
        Segment::Key(range) if overlaps_any(secrets, range, |cut| &cut.raw) => "*".to_owned(),
        Segment::Key(range) => {
            let key = Unescaped::new(raw.get(range.clone()).unwrap_or_default());
            String::from_utf8_lossy(key.text()).chars().take(80).collect()
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Where the text is not JSON and the limit of work was reached: everything from the first keyword that was not examined.
fn coarse_rest(raw: &[u8], walked: usize, unexamined: &[usize], cuts: &mut Vec<Cut>) {
    let Some(first) = unexamined.iter().find(|at| **at >= walked) else { return };
    cuts.push(Cut {
        raw: *first..raw.len(),
        kind: "unexamined".into(),
        rank: Rank::Unexamined,
        path: None,
        is_number: false,
    });
}

fn secret<'a>(raw: &'a [u8], cut: &Cut) -> Unescaped<'a> {
    Unescaped::new(raw.get(cut.raw.clone()).unwrap_or_default())
}

fn write<'a>(raw: &'a [u8], cuts: Vec<Cut>, key: &FingerprintKey) -> Redacted<'a> {
    if cuts.is_empty() {
        return Redacted { bytes: Cow::Borrowed(raw), found: Vec::new() };
    }
    let mut bytes = Vec::with_capacity(raw.len() + cuts.len() * 32);
    let mut found = Vec::with_capacity(cuts.len());
    let mut copied = 0;
    for cut in cuts {
        let text = secret(raw, &cut);
        let secret_text = SecretText::new(text.text());
        let mark = Mark {
            kind: cut.kind.into_owned(),
            chars: String::from_utf8_lossy(text.text()).chars().count(),
            fingerprint: key.fingerprint(text.text()),
        };
        bytes.extend_from_slice(raw.get(copied..cut.raw.start).unwrap_or_default());
        let quote: &[u8] = if cut.is_number { b"\"" } else { b"" };
        bytes.extend_from_slice(quote);
        bytes.extend_from_slice(mark.to_string().as_bytes());
        bytes.extend_from_slice(quote);
        copied = cut.raw.end;
        let Mark { kind, chars, fingerprint } = mark;
        found.push(FoundSecret { kind, chars, fingerprint, text: secret_text, path: cut.path });
    }
    bytes.extend_from_slice(raw.get(copied..).unwrap_or_default());
    Redacted { bytes: Cow::Owned(bytes), found }
}
