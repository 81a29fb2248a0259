//! The end of the log without payloads, for readers that look often: a look costs as much as there is new. Payloads are read
//! only of the rows that tell how things ended.

use rusqlite::Row as SqlRow;

use super::bus_row::BUS_AGENT;
use super::{DamagedRow, LogReader, Query, ReadError, Row};
use crate::event::{Kind, Seq, Time};

/// The kinds of rows that tell how things ended: results, decisions, ends of turns.
pub const ENDINGS: [Kind; 5] =
    [Kind::Decision, Kind::ToolAfter, Kind::ToolFailed, Kind::TurnEnd, Kind::TurnFailed];

const COLUMNS: &str = "seq, time, agent, session, name, kind, tool";

/// A row without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowHead {
    /// Its place in the log.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's name for the event.
    pub name: String,
    /// Our kind of it; `other` if a later version wrote one that this one does not know.
    pub kind: Kind,
    /// The tool that it is about.
    pub tool: Option<String>,
}

impl RowHead {
    /// Whether it is an event of an agent: no decision, and not about the bus itself.
    pub fn is_event(&self) -> bool {
        self.kind != Kind::Decision && self.agent != BUS_AGENT
    }

    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let kind: String = row.get(5)?;
        Ok(Self {
            seq: Seq::from_i64(row.get(0)?),
            at: Time::from_micros(row.get(1)?),
            agent: row.get(2)?,
            session: row.get(3)?,
            name: row.get(4)?,
            kind: Kind::parse(&kind).unwrap_or(Kind::Other),
            tool: row.get(6)?,
        })
    }
}

impl LogReader {
    /// The next `count` rows after `after`, in log order.
    pub fn heads_after(&self, after: Seq, count: usize) -> Result<Vec<RowHead>, ReadError> {
        let sql = format!("SELECT {COLUMNS} FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        let mut statement = self.db.prepare_cached(&sql)?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = statement.query_map((after.as_i64(), count), RowHead::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The last `count` rows, in log order.
    pub fn last_heads(&self, count: usize) -> Result<Vec<RowHead>, ReadError> {
        let sql = format!("SELECT {COLUMNS} FROM events ORDER BY seq DESC LIMIT ?1");
        let mut statement = self.db.prepare_cached(&sql)?;
        let rows =
            statement.query_map([i64::try_from(count).unwrap_or(i64::MAX)], RowHead::read)?;
        let mut heads = rows.collect::<Result<Vec<_>, _>>()?;
        heads.reverse();
        Ok(heads)
    }

    /// The rows of these that tell how things ended, with their payloads, in log order. A damaged row is an error of its own.
    pub fn endings_of(&self, heads: &[RowHead]) -> Result<Vec<Result<Row, DamagedRow>>, ReadError> {
        let wanted = heads.iter().filter(|head| ENDINGS.contains(&head.kind)).count();
        let (Some(first), Some(last)) = (heads.first(), heads.last()) else {
            return Ok(Vec::new());
        };
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let query = Query { kinds: ENDINGS.to_vec(), ..Query::default() };
        let before = Seq::from_i64(first.seq.as_i64() - 1);
        let mut rows = self.after_with_damage(&query, Some(before), wanted)?;
        // Rows of these may have been removed meanwhile; then later ones came in their place.
        rows.retain(|row| {
            row.as_ref().map_or_else(|damaged| damaged.seq, |row| row.seq) <= last.seq
        });
        Ok(rows)
    }
}
