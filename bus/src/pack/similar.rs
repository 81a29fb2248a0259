//! Texts that were stored lately, to compress others with: an answer that comes again cut short, a file that was read
//! again after a change, a text inside of another one.
//!
//! Finds them by samples: the rolling hash is taken where its own bits say so, so that equal passages give equal samples
//! wherever they stand.

use std::collections::{HashMap, VecDeque};

use super::chunk::{self, roll};
use super::part::PartId;

/// Shorter texts are not worth it.
const SHORTEST: usize = 256;
/// All texts together have at most this many bytes.
const MOST_BYTES: usize = 512 * 1024;
/// A sample is taken where these 6 bits of the hash are zero: every 64 bytes on average.
const MASK: u64 = 0xfc00_0000_0000_0000;
/// So many bytes of a text must be in another for it to be tried, by the number of common samples: an eighth.
const BYTES_PER_COMMON_SAMPLE: usize = 512;
/// zstd takes a text that starts like this for a dictionary of its own making.
const DICTIONARY_MAGIC: u8 = 0x37;

/// The texts, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentTexts {
    texts: VecDeque<RecentText>,
    bytes: usize,
    by_sample: HashMap<u64, PartId>,
}

#[derive(Debug)]
struct RecentText {
    id: PartId,
    text: Vec<u8>,
    samples: Vec<u64>,
}

/// The samples of a text; none if it is too short or too long to compare.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<u64>);

impl Samples {
    pub(super) fn of(text: &[u8]) -> Self {
        let fits = (SHORTEST..=chunk::LONGEST_WHOLE).contains(&text.len());
        if !fits || text.first() == Some(&DICTIONARY_MAGIC) {
            return Self::default();
        }
        let mut hash = 0;
        let mut samples = Vec::new();
        for &byte in text {
            hash = roll(hash, byte);
            if hash & MASK == 0 {
                samples.push(hash);
            }
        }
        Self(samples)
    }
}

impl RecentTexts {
    /// The text that has most in common with one with these samples; none if it is little.
    pub(super) fn most_similar(&self, text: &[u8], samples: &Samples) -> Option<(PartId, &[u8])> {
        let mut common: HashMap<PartId, usize> = HashMap::new();
        for id in samples.0.iter().filter_map(|sample| self.by_sample.get(sample)) {
            *common.entry(*id).or_default() += 1;
        }
        let (id, count) = common.into_iter().max_by_key(|&(id, count)| (count, id))?;
        let found = self.texts.iter().rev().find(|recent| recent.id == id)?;
        (count * BYTES_PER_COMMON_SAMPLE >= text.len()).then_some((id, found.text.as_slice()))
    }

    /// Adds a text that was stored without another.
    pub(super) fn add(&mut self, id: PartId, text: &[u8], samples: Samples) {
        if samples.0.is_empty() {
            return;
        }
        for sample in &samples.0 {
            self.by_sample.insert(*sample, id);
        }
        self.bytes += text.len();
        self.texts.push_back(RecentText { id, text: text.to_vec(), samples: samples.0 });
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.texts.pop_front() else { break };
            self.bytes -= oldest.text.len();
            for sample in oldest.samples {
                if self.by_sample.get(&sample) == Some(&oldest.id) {
                    self.by_sample.remove(&sample);
                }
            }
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
