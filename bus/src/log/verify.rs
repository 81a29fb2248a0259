//! Walking the chain: is this log what was written?

use std::fmt;

use rusqlite::types::ValueRef;

use super::chain::{self, Hash, Identity};
use super::{LogPath, ReadError, open, payload};
use crate::event::{BusId, EventId, Kind, Seq, Time};

/// What a walk over the log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whose log it is.
    pub bus: BusId,
    /// How many rows were walked.
    pub rows: u64,
    /// The last row and its hash, to compare with a copy elsewhere.
    pub head: Option<(Seq, Hash)>,
    /// What is wrong, in log order; the first few.
    pub flaws: Vec<Flaw>,
}

/// Something wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// At which row.
    pub seq: Seq,
    /// What.
    pub what: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq {}: {}", self.seq, self.what)
    }
}

/// More flaws than this are not listed: the first one is what matters.
const MOST_FLAWS: usize = 20;

/// Walks the whole log and tells `progress` how many rows are behind it.
pub fn verify(log: &LogPath, mut progress: impl FnMut(u64)) -> Result<Report, ReadError> {
    let db = open::to_read(log)?;
    let bus = open::bus_id(&db)?;
    let mut walk = Walk {
        before: chain::genesis(bus),
        expected: Seq::FIRST,
        report: Report { bus, rows: 0, head: None, flaws: Vec::new() },
    };
    let mut statement = db.prepare(
        "SELECT e.seq, e.id, e.time, e.agent, e.name, e.kind, e.cause, e.context, e.payload, e.hash, \
                c.id FROM events e LEFT JOIN events c ON c.seq = e.cause \
         WHERE e.seq >= ?1 AND e.seq < ?1 + 1000 ORDER BY e.seq",
    )?;
    let last: i64 =
        db.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
    let mut from = 1;
    // In pages, so that a long walk does not hold the writer's tidying up.
    while from <= last {
        let mut rows = statement.query([from])?;
        while let Some(row) = rows.next()? {
            walk.step(row)?;
        }
        from += 1000;
        progress(walk.report.rows);
    }
    Ok(walk.report)
}

struct Walk {
    before: Hash,
    expected: Seq,
    report: Report,
}

impl Walk {
    fn step(&mut self, row: &rusqlite::Row<'_>) -> Result<(), ReadError> {
        let seq = Seq::from_i64(row.get(0)?);
        if seq != self.expected {
            self.flaw(seq, format!("rows {} to {seq} are missing before it", self.expected));
        }
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
        let kept = stored_hash(row.get_ref(9)?);
        if kept != Some(hash) {
            self.flaw(seq, "its hash does not fit: it, or a row before it, was changed".to_owned());
        }
        let cause_id = row.get::<_, Option<[u8; 16]>>(10)?.map(EventId::from_bytes);
        let is_decision = row.get::<_, String>(5)? == Kind::Decision.as_str();
        if is_decision && cause_id.map(EventId::of_decision) != Some(id) {
            self.flaw(seq, "it is a decision, but not about the event it points at".to_owned());
        }
        // Go on from what is stored, so that one flaw is told once.
        self.before = kept.unwrap_or(hash);
        self.expected = seq.next();
        self.report.rows += 1;
        self.report.head = Some((seq, self.before));
        Ok(())
    }

    fn flaw(&mut self, seq: Seq, what: String) {
        if self.report.flaws.len() < MOST_FLAWS {
            self.report.flaws.push(Flaw { seq, what });
        }
    }
}

fn stored_hash(value: ValueRef<'_>) -> Option<Hash> {
    match value {
        ValueRef::Blob(bytes) => bytes.try_into().ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => None,
    }
}
