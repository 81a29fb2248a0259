//! Many seqs, as the ranges that they form: `1-5,9,12-20`.

use std::fmt;
use std::ops::RangeInclusive;

/// Seqs in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::log) struct SeqRanges(Vec<RangeInclusive<i64>>);

impl SeqRanges {
    /// Adds a seq that is larger than all others; any other one is left out.
    pub(in crate::log) fn push(&mut self, seq: i64) {
        match self.0.last_mut() {
            Some(last) if seq <= *last.end() => {}
            Some(last) if last.end().checked_add(1) == Some(seq) => *last = *last.start()..=seq,
            Some(_) | None => self.0.push(seq..=seq),
        }
    }

    /// The seqs of all of these.
    pub(in crate::log) fn merged(all: Vec<Self>) -> Self {
        let mut ranges: Vec<RangeInclusive<i64>> = all.into_iter().flat_map(|it| it.0).collect();
        ranges.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<i64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start() <= last.end() => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                Some(_) | None => merged.push(range),
            }
        }
        Self(merged)
    }

    /// Whether it is one of them.
    pub(in crate::log) fn contains(&self, seq: i64) -> bool {
        let after = self.0.partition_point(|range| *range.start() <= seq);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| range.contains(&seq))
    }

    /// How many there are.
    pub(in crate::log) fn len(&self) -> u64 {
        self.0.iter().map(|range| range.end().abs_diff(*range.start()).saturating_add(1)).sum()
    }

    pub(in crate::log) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::log) fn last(&self) -> Option<i64> {
        self.0.last().map(|range| *range.end())
    }

    /// Each of them, the smallest first.
    pub(in crate::log) fn iter(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.0.iter().cloned().flatten()
    }

    /// Those up to `last`.
    pub(in crate::log) fn up_to(&self, last: i64) -> Self {
        let cut = |range: &RangeInclusive<i64>| *range.start()..=(*range.end()).min(last);
        Self(self.0.iter().map(cut).filter(|range| !range.is_empty()).collect())
    }

    /// Reads what [`fmt::Display`] writes; none if it is anything else.
    pub(in crate::log) fn parse(text: &str) -> Option<Self> {
        let mut ranges: Vec<RangeInclusive<i64>> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = first.parse().ok()?..=last.parse().ok()?;
            let is_after = ranges.last().is_none_or(|before| before.end() < range.start());
            if range.is_empty() || !is_after {
                return None;
            }
            ranges.push(range);
        }
        Some(Self(ranges))
    }
}

impl fmt::Display for SeqRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            if range.start() == range.end() {
                write!(f, "{comma}{}", range.start())?;
            } else {
                write!(f, "{comma}{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(seqs: impl IntoIterator<Item = i64>) -> SeqRanges {
        let mut ranges = SeqRanges::default();
        for seq in seqs {
            ranges.push(seq);
        }
        ranges
    }

    #[test]
    fn ranges_are_written_short() {
        let ranges = of([1, 2, 3, 3, 9, 11, 12]);
        assert_eq!(ranges.to_string(), "1-3,9,11-12");
        assert_eq!(ranges.up_to(11).to_string(), "1-3,9,11");
        assert_eq!((ranges.len(), ranges.last()), (6, Some(12)));
        for wrong in ["1-", "3-1", "2,1", "1-3,3", "x", "1--2"] {
            assert_eq!(SeqRanges::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_contained(seqs in proptest::collection::btree_set(1..200_i64, 0..80)) {
            let ranges = of(seqs.iter().copied());
            prop_assert!((0..202).all(|seq| ranges.contains(seq) == seqs.contains(&seq)));
            prop_assert!(ranges.iter().eq(seqs.iter().copied()));
            let (even, odd) = seqs.iter().partition::<Vec<i64>, _>(|seq| **seq % 2 == 0);
            let merged = SeqRanges::merged(vec![of(even), of(odd), ranges.clone()]);
            prop_assert!(merged.iter().eq(seqs.iter().copied()));
            prop_assert_eq!(SeqRanges::parse(&ranges.to_string()), Some(ranges));
        }
    }
}
