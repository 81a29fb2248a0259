//! Finds the keywords of all detectors in one pass over the text.
//!
//! Each keyword is represented by four neighbouring bytes of it, in lower case. The pass looks at every four bytes of the text
//! in a bit table of 32 KB, which stays in the processor's first caches; only where the bit is set are keywords compared. Unlike
//! an Aho-Corasick automaton of the same keywords, this takes microseconds to build, which counts in a client process that
//! handles one event and exits.

use super::alphabet::Alphabet;

/// Which keyword was found where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// Where the keyword starts in the text.
    pub(super) start: usize,
    /// Its length.
    pub(super) len: usize,
    /// The number that it was added with.
    pub(super) rule: usize,
}

/// All keywords, ready to be searched for. ASCII letters match in either case.
#[derive(Debug)]
pub(super) struct Keywords {
    bits: Vec<u64>,
    all: Vec<Keyword>,
    /// Four bytes, and the index of a keyword that has them. Sorted by hash.
    grams: Vec<(u32, u16)>,
    /// Where the grams of a bucket, the first bits of their hash, begin in `grams`.
    buckets: Vec<u16>,
    /// Keywords of fewer than four bytes that no alphabet extends: compared at every position. Only own settings have such.
    short: Vec<usize>,
}

#[derive(Debug)]
struct Keyword {
    text: Box<[u8]>,
    /// Where the four bytes are in the keyword.
    offset: usize,
    rule: usize,
}

/// 32 KB.
const TABLE_BITS: u32 = 18;
const BUCKET_BITS: u32 = 12;

impl Keywords {
    pub(super) fn new() -> Self {
        Self {
            bits: vec![0; 1 << (TABLE_BITS - 6)],
            all: Vec::with_capacity(1024),
            grams: Vec::with_capacity(4096),
            buckets: Vec::new(),
            short: Vec::new(),
        }
    }

    /// Adds a keyword. If it is shorter than four bytes, `next` says which bytes can follow it.
    pub(super) fn add(&mut self, keyword: &[u8], next: Option<Alphabet>, rule: usize) {
        let text: Box<[u8]> = keyword.to_ascii_lowercase().into();
        let index = self.all.len();
        let mut offset = 0;
        match (text.len(), next) {
            (4.., _) => {
                // The first of the rarest: names of services end alike (`…base`, `…able`), but seldom begin alike.
                let best = text.windows(4).enumerate().rev().max_by_key(|(_, gram)| rarity(gram));
                if let Some((at, gram)) = best {
                    offset = at;
                    self.insert(fold(gram), index);
                }
            }
            (_, Some(next)) => self.insert_extended(&text, next, index),
            (_, None) => self.short.push(index),
        }
        self.all.push(Keyword { text, offset, rule });
    }

    /// Every four bytes that a shorter keyword can begin.
    fn insert_extended(&mut self, keyword: &[u8], next: Alphabet, index: usize) {
        let mut next: Vec<u8> = next.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
        next.sort_unstable();
        next.dedup();
        let mut starts = vec![0_u32];
        for place in 0..4 {
            let bytes = keyword.get(place..=place).unwrap_or(&next);
            let longer = |start: &u32| {
                let start = *start;
                bytes.iter().map(move |byte| start | u32::from(*byte) << (8 * place))
            };
            starts = starts.iter().flat_map(longer).collect();
        }
        for gram in starts {
            self.insert(gram | CASE, index);
        }
    }

    /// To be called once, after the last keyword.
    pub(super) fn finish(&mut self) {
        self.grams.sort_unstable_by_key(|(gram, keyword)| (hash(*gram), *keyword));
        self.grams.dedup();
        self.buckets = vec![0; (1 << BUCKET_BITS) + 1];
        for (gram, _) in &self.grams {
            if let Some(next) = self.buckets.get_mut(bucket(*gram) + 1) {
                *next += 1;
            }
        }
        let mut sum = 0;
        for count in &mut self.buckets {
            sum += *count;
            *count = sum;
        }
    }

    fn insert(&mut self, gram: u32, index: usize) {
        let hash = hash(gram);
        if let Some(word) = self.bits.get_mut((hash >> 6) as usize) {
            *word |= 1 << (hash & 63);
        }
        // There are a few thousand; what does not fit is compared at every position, and still found.
        match u16::try_from(index) {
            Ok(small) if self.grams.len() < usize::from(u16::MAX) => self.grams.push((gram, small)),
            Ok(_) | Err(_) if !self.short.contains(&index) => self.short.push(index),
            Ok(_) | Err(_) => {}
        }
    }

    /// Calls `found` for every keyword in the text.
    pub(super) fn search(&self, text: &[u8], mut found: impl FnMut(Hit)) {
        let Ok(bits) = <&[u64; 1 << (TABLE_BITS - 6)]>::try_from(self.bits.as_slice()) else {
            return;
        };
        for (at, window) in text.windows(4).enumerate() {
            let gram = fold(window);
            let hash = hash(gram);
            let word = bits.get((hash >> 6) as usize).copied().unwrap_or_default();
            if word >> (hash & 63) & 1 == 1 {
                self.compare(text, at, gram, &mut found);
            }
        }
        for keyword in self.short.iter().filter_map(|index| self.all.get(*index)) {
            let len = keyword.text.len();
            let same = |(_, window): &(usize, &[u8])| window.eq_ignore_ascii_case(&keyword.text);
            for (start, _) in text.windows(len.max(1)).enumerate().filter(same) {
                found(Hit { start, len, rule: keyword.rule });
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn compare(&self, text: &[u8], at: usize, gram: u32, found: &mut impl FnMut(Hit)) {
        let bucket = bucket(gram);
        let (Some(first), Some(end)) = (self.buckets.get(bucket), self.buckets.get(bucket + 1))
        else {
            return;
        };
        let near = self.grams.get(usize::from(*first)..usize::from(*end)).unwrap_or_default();
        let same = near.iter().filter(|(other, _)| *other == gram);
        for keyword in same.filter_map(|(_, index)| self.all.get(usize::from(*index))) {
            let Some(start) = at.checked_sub(keyword.offset) else { continue };
            let len = keyword.text.len();
            let here = text.get(start..start + len);
            if here.is_some_and(|here| here.eq_ignore_ascii_case(&keyword.text)) {
                found(Hit { start, len, rule: keyword.rule });
            }
        }
    }
}

/// The bit that tells small letters from capital ones, four times.
const CASE: u32 = 0x2020_2020;

/// Four bytes as a number, letters in lower case. Some other characters become equal too, which costs a comparison.
fn fold(window: &[u8]) -> u32 {
    match *window {
        [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]) | CASE,
        _ => 0,
    }
}

fn hash(gram: u32) -> u32 {
    gram.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)
}

fn bucket(gram: u32) -> usize {
    (hash(gram) >> (TABLE_BITS - BUCKET_BITS)) as usize
}

/// How seldom four bytes are in English text and code, roughly.
fn rarity(gram: &[u8]) -> u32 {
    let of_byte = |byte: &u8| match byte {
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b'l' | b'd' | b'c' | b'y' => 0,
        b'j' | b'q' | b'x' | b'z' | b'k' | b'w' | b'v' => 3,
        b'a'..=b'z' => 1,
        b' ' | b'=' | b'"' => 0,
        _ => 3,
    };
    if FREQUENT.iter().any(|frequent| frequent.as_bytes() == gram) {
        return 0;
    }
    gram.iter().map(of_byte).sum()
}

/// Four bytes that code and logs are full of, although their letters are not.
const FREQUENT: [&str; 24] = [
    "type", "code", "line", "able", "word", "base", "inst", "----", "port", "name", "data", "test",
    "file", "this", "self", "func", "publ", "stru", "impl", "valu", "obje", "stri", "http", "comm",
];

#[cfg(test)]
mod tests {
    use super::super::alphabet::HEX;
    use super::*;
    use proptest::prelude::*;

    fn found(keywords: &[&str], text: &str) -> Vec<(usize, usize)> {
        let mut search = Keywords::new();
        for (rule, keyword) in keywords.iter().enumerate() {
            search.add(keyword.as_bytes(), None, rule);
        }
        search.finish();
        let mut hits = Vec::new();
        search.search(text.as_bytes(), |hit| hits.push((hit.start, hit.rule)));
        hits.sort_unstable();
        hits
    }

    #[test]
    fn short_keywords_are_extended_by_what_can_follow() {
        let mut search = Keywords::new();
        search.add(b"SK", Some(HEX), 7);
        search.finish();
        let mut hits = Vec::new();
        search.search(b"sky SK0f1 task", |hit| hits.push((hit.start, hit.len, hit.rule)));
        assert_eq!(hits, [(4, 2, 7)]);
    }

    proptest! {
        #[test]
        fn finds_what_a_comparison_at_every_position_finds(
            keywords in proptest::collection::vec("[ab_-]{1,7}", 1..6), text in "[abAB_-]{0,60}",
        ) {
            let keywords: Vec<&str> = keywords.iter().map(String::as_str).collect();
            let mut expected = Vec::new();
            for start in 0..text.len() {
                for (rule, keyword) in keywords.iter().enumerate() {
                    if text[start..].to_ascii_lowercase().starts_with(keyword) {
                        expected.push((start, rule));
                    }
                }
            }
            prop_assert_eq!(found(&keywords, &text), expected);
        }
    }
}
