//! Where a payload repeats an earlier one of its session: agents send the whole conversation again with many events. Compares
//! bytes, so a stretch that is called repeated is exactly the same.

use std::collections::HashMap;
use std::ops::Range;

/// Shorter stretches are not worth it: their ends are searched again anyway.
const SHORTEST: usize = 16 << 10;
/// The earlier payload is known by one sample of `SAMPLE` bytes per `STEP` bytes.
const STEP: usize = 1024;
const SAMPLE: usize = 32;

/// A payload that later ones may repeat.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    raw: Vec<u8>,
    /// Where the samples are, in order, by their hash.
    samples: HashMap<u64, Vec<usize>>,
}

impl Earlier {
    /// Makes `raw` the earlier payload.
    pub(super) fn set(&mut self, raw: &[u8]) {
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.samples.clear();
        for at in (0..raw.len()).step_by(STEP) {
            if let Some(hash) = hash(raw, at) {
                self.samples.entry(hash).or_default().push(at);
            }
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.raw.len()
    }

    /// The stretches of `raw` that repeat stretches of this payload in the same order. Takes time in proportion to the
    /// length of both.
    pub(super) fn repeated_in(&self, raw: &[u8]) -> Vec<Range<usize>> {
        let mut repeated: Vec<Range<usize>> = Vec::new();
        let (mut at, mut done, mut done_here) = (0, 0, 0);
        while let Some(hash) = hash(raw, at) {
            let next = self.samples.get(&hash).and_then(|places| {
                places.get(places.partition_point(|place| *place < done)).copied()
            });
            let Some(here) = next else {
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

    fn earlier(raw: &[u8]) -> Earlier {
        let mut earlier = Earlier::default();
        earlier.set(raw);
        earlier
    }

    #[test]
    fn lists_that_grew_are_repeated_up_to_what_is_new() {
        let (one, two) = (text(1, 100_000), text(2, 50_000));
        let before = [b"turn 1 ".to_vec(), one.clone(), b"]".to_vec(), two.clone()].concat();
        let after =
            [b"the second turn ".to_vec(), one, text(3, 5_000), b"]".to_vec(), two].concat();
        let repeated = earlier(&before).repeated_in(&after);
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
            for range in earlier(&before).repeated_in(&after) {
                prop_assert!(range.start >= end && range.len() >= SHORTEST);
                prop_assert!(memchr::memmem::find(&before, &after[range.clone()]).is_some());
                end = range.end;
            }
        }
    }
}
