//! Compares a log with signed checkpoints that were kept elsewhere, all that a place holds: a checkpoint that was edited,
//! forged, or signed after the log had been cut back is told too.

use std::collections::{HashMap, HashSet};

use super::flaw::{Flaw, FlawKind};
use super::reference::hash_at;
use super::verification::Verification;
use crate::event::{BusId, Seq};
use crate::log::{CheckpointError, LogReader, PublicKey, ReadError, SignedCheckpoint};

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
        let mut latest: HashMap<BusId, Seq> = HashMap::new();
        let mut known: HashSet<BusId> = HashSet::new();
        for (number, read) in (1_u64..).zip(checkpoints) {
            let signed = match read {
                Ok(signed) => signed,
                Err(why) => {
                    let what = format!("number {number} in {place}: {why}");
                    self.flaws.push(Flaw::of_file(FlawKind::Checkpoint, what));
                    continue;
                }
            };
            let checkpoint = &signed.checkpoint;
            let Some(report) = self.buses.iter_mut().find(|it| it.bus == checkpoint.bus) else {
                found.other_buses += 1;
                continue;
            };
            known.insert(checkpoint.bus);
            let flaw =
                |what: String| Flaw::of_row(FlawKind::Checkpoint, checkpoint.seq.as_i64(), what);
            if let Err(why) = signed.check(trusted) {
                report.add(flaw(format!(
                    "the checkpoint of this row in {place} is not to be relied on: {why}"
                )));
                continue;
            }
            let before = latest.insert(report.bus, checkpoint.seq);
            if let Some(before) = before.filter(|before| *before > checkpoint.seq) {
                report.add(flaw(format!(
                    "{place} has a checkpoint of row {before} before this one, of {}: rows were cut off, and the log was signed \
                     again",
                    checkpoint.time
                )));
            }
            let own = hash_at(log, report.bus, checkpoint.seq)?;
            if report.compare_row(checkpoint.seq, &checkpoint.hash, own.as_ref(), place) {
                found.fit += 1;
                found.newest = Some(*signed);
            } else if own.is_none() && log.is_removed(checkpoint.seq)? {
                found.removed += 1;
            }
        }
        for report in &mut self.buses {
            if !known.contains(&report.bus) {
                report.is_unknown(place, !checkpoints.is_empty());
            }
        }
        Ok(found)
    }
}
