//! Where a payload repeats an earlier one of its session: agents send the whole conversation again with many events. Compares
//! bytes, so a stretch that is called repeated is exactly the same.

use std::ops::{Deref, Range};

/// Shorter stretches are not worth it: their ends are searched again anyway.
const SHORTEST: usize = 16 << 10;
/// The earlier payload is known by one sample of `SAMPLE` bytes per `STEP` bytes.
const STEP: usize = 1024;
const SAMPLE: usize = 32;

/// Bits of the filter over the samples, a power of two: most places of a new text are in no sample, and the filter says so without
/// a search.
const FILTER: usize = 1 << 16;

/// A payload that later ones may repeat.
#[derive(Debug)]
pub(super) struct Earlier<B> {
    raw: B,
    /// The hashes of the samples and where they are, sorted.
    samples: Vec<(u64, usize)>,
    /// A bit for each hash.
    filter: Vec<u64>,
}

impl<B: Deref<Target = [u8]>> Earlier<B> {
    pub(super) fn new(raw: B) -> Self {
        let places = (0..raw.len()).step_by(STEP);
        let mut samples: Vec<_> = places.filter_map(|at| Some((hash(&raw, at)?, at))).collect();
        samples.sort_unstable();
        let mut filter = vec![0; FILTER / 64];
        for (hash, _) in &samples {
            let (word, bit) = bit_of(*hash);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        Self { raw, samples, filter }
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// The first sample with this hash that is not before `least`.
    fn find(&self, hash: u64, least: usize) -> Option<usize> {
        let (word, bit) = bit_of(hash);
        if self.filter.get(word)? & bit == 0 {
            return None;
        }
        let next = self.samples.partition_point(|sample| *sample < (hash, least));
        self.samples.get(next).filter(|(found, _)| *found == hash).map(|(_, at)| *at)
    }

    /// The stretches of `raw` that repeat stretches of this payload in the same order. Takes time in proportion to the
    /// length of both.
    pub(super) fn repeated_in(&self, raw: &[u8]) -> Vec<Range<usize>> {
        let mut repeated: Vec<Range<usize>> = Vec::new();
        let (mut at, mut done, mut done_here) = (0, 0, 0);
        while let Some(hash) = hash(raw, at) {
            let Some(here) = self.find(hash, done) else {
                at += 1;
                continue;
            };
            let ahead = same_ahead(rest(&self.raw, here), rest(raw, at));
            let most = (at - done_here).min(here - done);
            let behind = same_behind(&self.raw, here, raw, at, most);
            if ahead + behind >= SHORTEST {
                repeated.push(at - behind..at + ahead);
                (done, done_here) = (here + ahead, at + ahead);
            }
            at += ahead.max(1);
        }
        repeated
    }
}

/// The word of the filter that a hash is in, and its bit there.
fn bit_of(hash: u64) -> (usize, u64) {
    let at = usize::try_from(hash >> 32).unwrap_or_default() % FILTER;
    (at / 64, 1 << (at % 64))
}

fn rest(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn hash(bytes: &[u8], at: usize) -> Option<u64> {
    let sample: &[u8; SAMPLE] = rest(bytes, at).first_chunk()?;
    let (words, _) = sample.as_chunks::<8>();
    Some(words.iter().fold(0, |hash: u64, word| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }))
}

/// How many bytes are the same from the start on.
fn same_ahead(one: &[u8], other: &[u8]) -> usize {
    let mut same = 0;
    for size in [4096, 64, 1] {
        let pairs = rest(one, same).chunks_exact(size).zip(rest(other, same).chunks_exact(size));
        same += size * pairs.take_while(|(one, other)| one == other).count();
    }
    same
}

/// How many bytes before the two places are the same, at most `most`.
fn same_behind(one: &[u8], at: usize, other: &[u8], other_at: usize, most: usize) -> usize {
    let before = one.get(..at).unwrap_or_default().iter().rev();
    let other_before = other.get(..other_at).unwrap_or_default().iter().rev();
    before.zip(other_before).take(most).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + u8::try_from(state >> 60).unwrap_or_default()
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn lists_that_grew_are_repeated_up_to_what_is_new() {
        let (one, two) = (text(1, 100_000), text(2, 50_000));
        let before = [b"turn 1 ".to_vec(), one.clone(), b"]".to_vec(), two.clone()].concat();
        let after =
            [b"the second turn ".to_vec(), one, text(3, 5_000), b"]".to_vec(), two].concat();
        let repeated = Earlier::new(before).repeated_in(&after);
        // A byte before each stretch may be the same by chance.
        assert!(
            matches!(repeated.as_slice(), [one, two]
            if (15..=16).contains(&one.start) && one.end >= 100_016 && one.end < 100_100
                && two.end == after.len() && two.start <= 105_017),
            "{repeated:?}"
        );
    }

    proptest! {
        #[test]
        fn what_is_called_repeated_stands_in_the_earlier_payload(
            parts in proptest::collection::vec((0_u64..4, 1_usize..40_000), 0..8),
            others in proptest::collection::vec((0_u64..4, 1_usize..40_000), 0..8),
        ) {
            let join = |parts: &[(u64, usize)]| {
                parts.iter().flat_map(|(seed, len)| text(*seed, *len)).collect::<Vec<u8>>()
            };
            let (before, after) = (join(&parts), join(&others));
            let mut end = 0;
            for range in Earlier::new(before.clone()).repeated_in(&after) {
                prop_assert!(range.start >= end && range.len() >= SHORTEST);
                prop_assert!(memchr::memmem::find(&before, &after[range.clone()]).is_some());
                end = range.end;
            }
        }
    }
}
