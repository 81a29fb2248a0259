//! Compares a log with signed checkpoints that were kept elsewhere, all that a place holds: a checkpoint that was edited,
//! forged, or signed after the log had been cut back is told too.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use super::flaw::{Flaw, FlawKind, MAX_LISTED};
use super::reference::hash_at;
use super::verification::{Verification, VerifyReport};
use crate::event::{BusId, Seq, Time};
use crate::log::chain::Hash;
use crate::log::{Checkpoint, CheckpointError, LogReader, PublicKey, ReadError, SignedCheckpoint};

/// What came of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgainstCheckpoints {
    /// How many checkpoints fit the log.
    pub fit: u64,
    /// How many are about rows that were removed on purpose, so that there is nothing to compare with.
    pub removed: u64,
    /// How many are about other buses.
    pub other_buses: u64,
    /// The newest one that fits.
    pub newest: Option<SignedCheckpoint>,
}

impl Verification {
    /// Compares with the checkpoints of one place, the oldest first; `place` names it in messages. They have to be signed with
    /// `trusted`.
    pub fn compare_checkpoints(
        &mut self,
        log: &LogReader,
        checkpoints: &[Result<SignedCheckpoint, CheckpointError>],
        trusted: Option<PublicKey>,
        place: &str,
    ) -> Result<AgainstCheckpoints, ReadError> {
        let mut found = AgainstCheckpoints::default();
        let mut by_bus: HashMap<BusId, OfBus> = HashMap::new();
        let mut unreadable = Vec::new();
        for (number, read) in (1_u64..).zip(checkpoints) {
            let signed = match read {
                Ok(signed) => signed,
                Err(why) => {
                    let what = format!("number {number} in {place}: {why}");
                    unreadable.push(Flaw::of_file(FlawKind::Checkpoint, what));
                    continue;
                }
            };
            let checkpoint = &signed.checkpoint;
            if self.buses.iter().all(|report| report.bus != checkpoint.bus) {
                found.other_buses += 1;
                continue;
            }
            let of_bus = by_bus.entry(checkpoint.bus).or_default();
            if !of_bus.relies_on(signed, trusted, place) {
                continue;
            }
            let own = hash_at(log, checkpoint.bus, checkpoint.seq)?;
            if own == Some(checkpoint.hash) {
                found.fit += 1;
                // One that waited in the spool comes after newer ones.
                let newest = found.newest.filter(|newest| newest.checkpoint.seq > checkpoint.seq);
                found.newest = newest.or(Some(*signed));
            } else if own.is_none() && log.is_removed(checkpoint.seq)? {
                found.removed += 1;
            } else {
                of_bus.differs(checkpoint, own);
            }
        }
        unreadable.truncate(MAX_LISTED);
        self.flaws.extend(unreadable);
        for report in &mut self.buses {
            match by_bus.remove(&report.bus) {
                Some(of_bus) => of_bus.report(report, place),
                None => report.is_unknown(place, !checkpoints.is_empty()),
            }
        }
        Ok(found)
    }
}

/// The rows that the checkpoints so far are about, and when each was signed. A log that was cut back and signed again shows
/// in a lower row that was signed later and that comes later. Neither alone tells: a checkpoint that waited in the spool
/// comes after newer ones, and a clock that was set back makes a later one look older.
#[derive(Debug, Default)]
struct EarlierRows {
    /// Only those that can show something: the higher the row, the later it was signed.
    signed: BTreeMap<Seq, Time>,
}

impl EarlierRows {
    /// A higher row than `seq` that was signed before `time`, if there is one. Notes `seq` for those that follow.
    fn higher_than(&mut self, seq: Seq, time: Time) -> Option<Seq> {
        // The first higher row is the one that was signed first.
        let higher = self
            .signed
            .range((Excluded(seq), Unbounded))
            .next()
            .filter(|(_, signed)| **signed < time);
        let higher = higher.map(|(seq, _)| *seq);
        if higher.is_some() {
            // One cut is told once.
            self.signed.clear();
        }
        if self.signed.range(seq..).next().is_none_or(|(_, signed)| *signed > time) {
            while let Some((lower, _)) =
                self.signed.range(..=seq).next_back().filter(|(_, it)| **it >= time)
            {
                let lower = *lower;
                self.signed.remove(&lower);
            }
            self.signed.insert(seq, time);
        }
        higher
    }
}

/// What the checkpoints about one bus come to. A cut or a change makes all later checkpoints differ, and is told once.
#[derive(Debug, Default)]
struct OfBus {
    earlier: EarlierRows,
    /// The lowest row that differs.
    altered: Option<(Seq, Hash, Hash)>,
    /// The highest row that is not there.
    missing: Option<(Seq, Hash)>,
    flaws: Vec<Flaw>,
}

impl OfBus {
    /// Whether a checkpoint is signed with the right key.
    fn relies_on(
        &mut self,
        signed: &SignedCheckpoint,
        trusted: Option<PublicKey>,
        place: &str,
    ) -> bool {
        let Checkpoint { seq, time, .. } = signed.checkpoint;
        let flaw = |what| Flaw::of_row(FlawKind::Checkpoint, seq.as_i64(), what);
        if let Err(why) = signed.check(trusted) {
            let what =
                format!("the checkpoint of this row in {place} is not to be relied on: {why}");
            self.flaws.push(flaw(what));
            return false;
        }
        if let Some(before) = self.earlier.higher_than(seq, time) {
            let what = format!(
                "{place} has a checkpoint of row {before} before this one, of {time}: rows were cut off, and the log was signed \
                 again"
            );
            self.flaws.push(flaw(what));
        }
        true
    }

    /// The log has another row at this place, or none.
    fn differs(&mut self, checkpoint: &Checkpoint, own: Option<Hash>) {
        let Checkpoint { seq, hash, .. } = *checkpoint;
        match own {
            Some(own) if self.altered.is_none_or(|(known, ..)| seq < known) => {
                self.altered = Some((seq, hash, own));
            }
            None if self.missing.is_none_or(|(known, _)| seq > known) => {
                self.missing = Some((seq, hash));
            }
            Some(_) | None => {}
        }
    }

    fn report(self, report: &mut VerifyReport, place: &str) {
        if let Some((seq, hash, own)) = self.altered {
            report.compare_row(seq, &hash, Some(&own), place);
        }
        if let Some((seq, hash)) = self.missing {
            report.compare_row(seq, &hash, None, place);
        }
        for flaw in self.flaws.into_iter().take(MAX_LISTED) {
            report.add(flaw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the checkpoints, given as row and time, that come after a higher row that was signed earlier.
    fn told(checkpoints: &[(i64, i64)]) -> Vec<usize> {
        let mut earlier = EarlierRows::default();
        let is_told = |&(seq, time): &(i64, i64)| {
            earlier.higher_than(Seq::from_i64(seq), Time::from_micros(time)).is_some()
        };
        let told: Vec<bool> = checkpoints.iter().map(is_told).collect();
        told.iter().enumerate().filter(|(_, told)| **told).map(|(at, _)| at).collect()
    }

    #[test]
    fn a_log_that_was_signed_again_after_a_cut_is_told_once() {
        assert_eq!(told(&[(100, 1), (200, 2), (100, 3), (150, 4), (250, 5)]), [2]);
        assert_eq!(told(&[(200, 1), (100, 2), (300, 3), (50, 4)]), [1, 3]);
    }

    #[test]
    fn one_that_waited_in_the_spool_or_a_clock_that_was_set_back_is_no_cut() {
        assert!(told(&[(200, 2), (100, 1), (300, 3)]).is_empty());
        assert!(told(&[(300, 3), (100, 1), (200, 2), (400, 4)]).is_empty());
        assert!(told(&[(100, 9), (200, 5), (300, 6)]).is_empty());
        // And a cut beside it is told all the same.
        assert_eq!(told(&[(200, 2), (100, 1), (150, 3)]), [2]);
        assert_eq!(told(&[(100, 9), (200, 5), (150, 6)]), [2]);
    }
}
