//! Compares a log with signed checkpoints that were kept elsewhere, all that a place holds: a checkpoint that was edited,
//! forged, or signed after the log had been cut back is told too.

use std::collections::HashMap;

use super::flaw::{Flaw, FlawKind, MAX_LISTED};
use super::reference::hash_at;
use super::verification::{Verification, VerifyReport};
use crate::event::{BusId, Seq};
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
                found.newest = Some(*signed);
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

/// What the checkpoints about one bus come to. A cut or a change makes all later checkpoints differ, and is told once.
#[derive(Debug, Default)]
struct OfBus {
    latest: Option<Seq>,
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
        if let Some(before) = self.latest.replace(seq).filter(|before| *before > seq) {
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
