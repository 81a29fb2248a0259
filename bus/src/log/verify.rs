//! Verifies the hash chain of a log: recomputes the hash of every row and compares.

use std::fmt;
use std::ops::RangeInclusive;

use rusqlite::types::ValueRef;

use super::chain::{self, Hash, Identity};
use super::{LogPath, LogReader, ReadError, payload};
use crate::event::{BusId, EventId, Kind, Seq, Time};

/// The result of verifying the rows of one bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// The bus.
    pub bus: BusId,
    /// The number of rows that were verified.
    pub rows: u64,
    /// The first of them. An archive may not hold the rows before it.
    pub first: Option<Seq>,
    /// The last row and its hash, to compare with another copy.
    pub head: Option<(Seq, Hash)>,
    /// What is wrong, in log order; only the first few.
    pub flaws: Vec<ChainFlaw>,
    /// Ranges of rows that an archive does not hold; only the first few. Not an error.
    pub gaps: Vec<RangeInclusive<i64>>,
}

/// Something wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFlaw {
    /// The row.
    pub seq: Seq,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for ChainFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq {}: {}", self.seq, self.what)
    }
}

/// How many flaws, and how many gaps, are listed; the first one matters most.
const MAX_LISTED: usize = 20;

/// The rows of a log that is no archive (?1 is its bus), by seq.
const OWN: &str = "\
    SELECT e.seq, e.id, e.time, e.agent, e.name, e.kind, e.cause, e.context, e.payload, e.hash, c.id \
    FROM events e LEFT JOIN events c ON c.seq = e.cause \
    WHERE ?1 IS NOT NULL AND e.seq >= ?2 AND e.seq < ?2 + 1000 ORDER BY e.seq";

/// The rows of a bus (?1) in an archive, by their seq in the log of that bus.
const ARCHIVED: &str = "\
    SELECT o.bus_seq, e.id, e.time, e.agent, e.name, e.kind, o.bus_cause, e.context, e.payload, \
           e.hash, c.id \
    FROM origins o JOIN events e ON e.seq = o.seq LEFT JOIN events c ON c.seq = e.cause \
    WHERE o.bus = ?1 AND o.bus_seq >= ?2 AND o.bus_seq < ?2 + 1000 ORDER BY o.bus_seq";

/// Verifies the whole log, and calls `progress` with the number of rows done. An archive has a chain
/// and a report for each bus.
pub fn verify(
    log: &LogPath,
    mut progress: impl FnMut(u64),
) -> Result<Vec<VerifyReport>, ReadError> {
    let log = LogReader::open(log)?;
    let mut statement = log.db.prepare(if log.is_archive() { ARCHIVED } else { OWN })?;
    let mut reports = Vec::new();
    let mut done = 0;
    for (bus, last) in log.buses()? {
        let mut walk = ChainWalk {
            before: chain::genesis(bus),
            expected: Seq::FIRST,
            is_archive: log.is_archive(),
            report: VerifyReport {
                bus,
                rows: 0,
                first: None,
                head: None,
                flaws: Vec::new(),
                gaps: Vec::new(),
            },
        };
        let mut from = 1;
        // In pages: a long read transaction would keep the writer from checkpointing.
        while last.is_some_and(|last| from <= last.as_i64()) {
            let mut rows = statement.query((bus.as_bytes(), from))?;
            while let Some(row) = rows.next()? {
                walk.step(row)?;
            }
            from += 1000;
            progress(done + walk.report.rows);
        }
        done += walk.report.rows;
        reports.push(walk.report);
    }
    Ok(reports)
}

struct ChainWalk {
    before: Hash,
    expected: Seq,
    /// In an archive, missing rows are gaps and not flaws.
    is_archive: bool,
    report: VerifyReport,
}

impl ChainWalk {
    fn step(&mut self, row: &rusqlite::Row<'_>) -> Result<(), ReadError> {
        let seq = Seq::from_i64(row.get(0)?);
        let follows = seq == self.expected;
        if !follows {
            let (first, last) = (self.expected.as_i64(), seq.as_i64() - 1);
            if !self.is_archive {
                self.flaw(seq, format!("rows {first} to {last} are missing before it"));
            } else if self.report.gaps.len() < MAX_LISTED {
                self.report.gaps.push(first..=last);
            }
        }
        self.report.first = self.report.first.or(Some(seq));
        let (id, agent, name, context): (_, String, String, Option<String>) =
            (EventId::from_bytes(row.get(1)?), row.get(3)?, row.get(4)?, row.get(7)?);
        let cause = row.get::<_, Option<i64>>(6)?.map(Seq::from_i64);
        let identity = Identity {
            seq,
            id,
            at: Time::from_micros(row.get(2)?),
            agent: &agent,
            name: &name,
            cause,
            context: context.as_deref(),
        };
        let hash = chain::link(&self.before, &identity, &payload::from_sql(row.get_ref(8)?));
        let stored = stored_hash(row.get_ref(9)?);
        if (follows || !self.is_archive) && stored != Some(hash) {
            self.flaw(
                seq,
                "its hash does not match: this row, or one before it, was changed".to_owned(),
            );
        }
        let cause_id = row.get::<_, Option<[u8; 16]>>(10)?.map(EventId::from_bytes);
        let is_decision = row.get::<_, String>(5)? == Kind::Decision.as_str();
        let cause_not_archived = self.is_archive && cause_id.is_none();
        if is_decision && !cause_not_archived && cause_id.map(EventId::of_decision) != Some(id) {
            self.flaw(
                seq,
                "it is a decision, but its id does not belong to the event in its `cause`"
                    .to_owned(),
            );
        }
        // Continue from the stored hash, so that one flaw is reported once.
        self.before = stored.unwrap_or(hash);
        self.expected = seq.next();
        self.report.rows += 1;
        self.report.head = Some((seq, self.before));
        Ok(())
    }

    fn flaw(&mut self, seq: Seq, what: String) {
        if self.report.flaws.len() < MAX_LISTED {
            self.report.flaws.push(ChainFlaw { seq, what });
        }
    }
}

fn stored_hash(value: ValueRef<'_>) -> Option<Hash> {
    match value {
        ValueRef::Blob(bytes) => bytes.try_into().ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => None,
    }
}
