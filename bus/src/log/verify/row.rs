//! A row as `verify` reads it: what its hash covers, its derived columns, and those of the event that it is about.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::event::{
    Column, Derived, DerivedFrom, EventId, IdentityKey, Kind, Seq, Time, payload_digest,
};
use crate::log::bus_row::BUS_AGENT;
use crate::log::chain::{self, Hash, Identity};
use crate::log::identity;
use crate::log::payload::{Change, ELSEWHERE, PayloadReader};
use crate::log::prune::RecordedRemoval;
use crate::log::redact::read_record;
use crate::log::row::Redaction;
use crate::log::{payload, schema};

/// The columns of [`ReadRow`] without the packed payload, from the tables `e` (the row) and `c` (the row that it names as its cause).
const COLUMNS: &str = "e.id, e.time, e.agent, e.name, e.context, e.payload, e.hash, \
    e.kind, e.session, e.turn, e.tool, e.tool_class, c.id, c.session, c.turn, c.tool, c.tool_class";

/// The columns of [`ReadRow`] in an open file.
pub(super) fn columns(db: &Connection) -> rusqlite::Result<String> {
    let (packed, digest) = (schema::packed_column(db, "e")?, schema::digest_column(db, "e")?);
    let redaction = schema::redaction_columns(db, "e")?;
    Ok(format!("{COLUMNS}, {packed}, {digest}, {redaction}"))
}

/// One row.
#[derive(Debug)]
pub(super) struct ReadRow {
    /// Its place in the log of its own bus.
    pub(super) seq: i64,
    pub(super) stored: Hash,
    pub(super) covered: Covered,
    columns: Columns,
    kind: String,
    payload: Vec<u8>,
    /// Whether the payload was removed, and only its digest is there.
    pub(super) is_removed: bool,
    /// What was redacted on purpose.
    pub(super) redaction: Option<Redaction>,
    /// Whether the payload has the type in SQLite that hookbus writes.
    payload_type_is_right: bool,
    /// The id and the columns of the event that it is about.
    cause: Option<(EventId, Columns)>,
}

/// What the hash of a row covers, except its place.
#[derive(Debug, Clone)]
pub(super) struct Covered {
    pub(super) id: EventId,
    at: Time,
    agent: String,
    name: String,
    cause: Option<Seq>,
    context: Option<String>,
    payload: Hash,
}

/// The derived columns that a decision shares with its event.
#[derive(Debug, PartialEq, Eq)]
struct Columns {
    session: String,
    turn: Option<String>,
    tool: Option<String>,
    tool_class: Option<String>,
}

impl Covered {
    /// The digest of the payload, also of one that was removed or redacted.
    pub(super) const fn payload_digest(&self) -> &Hash {
        &self.payload
    }

    /// The hash that the row has at `seq` after a row with the hash `before`.
    pub(super) fn hash(&self, before: &Hash, seq: i64) -> Hash {
        let identity = Identity {
            seq: Seq::from_i64(seq),
            id: self.id,
            at: self.at,
            agent: &self.agent,
            name: &self.name,
            cause: self.cause,
            context: self.context.as_deref(),
        };
        chain::link(before, &identity, &self.payload)
    }
}

impl ReadRow {
    /// The key of the identity that recorded it.
    pub(super) fn identity_key(&self) -> Option<IdentityKey> {
        identity::key_of(&self.kind, self.covered.context.as_deref(), &self.payload)
    }

    /// Reads seq and cause, then [`columns`].
    pub(super) fn read(row: &Row<'_>, payloads: &PayloadReader<'_>) -> rusqlite::Result<Self> {
        let digest = digest_in(row.get_ref(20)?);
        let of_columns = row.get_ref(22)? == ValueRef::Integer(1);
        let Change { removed, redaction } = Change::of_columns(
            (row.get_ref(7)?, row.get_ref(19)?),
            digest,
            digest_in(row.get_ref(21)?),
            of_columns,
        );
        let payload = payloads.read(row.get_ref(7)?, row.get_ref(19)?)?;
        let payload_type_is_right = payload::is_as_written(row.get_ref(7)?, row.get_ref(19)?)
            && (removed.is_none() || row.get_ref(7)? == ValueRef::Text(ELSEWHERE.as_bytes()))
            && (removed.is_none() || row.get_ref(19)? == ValueRef::Null);
        let columns = |from: usize| -> rusqlite::Result<Columns> {
            Ok(Columns {
                session: row.get(from)?,
                turn: row.get(from + 1)?,
                tool: row.get(from + 2)?,
                tool_class: row.get(from + 3)?,
            })
        };
        let cause = match row.get::<_, Option<[u8; 16]>>(14)? {
            Some(id) => Some((EventId::from_bytes(id), columns(15)?)),
            None => None,
        };
        Ok(Self {
            seq: row.get(0)?,
            stored: stored_hash(row)?,
            covered: Covered {
                id: EventId::from_bytes(row.get(2)?),
                at: Time::from_micros(row.get(3)?),
                agent: row.get(4)?,
                name: row.get(5)?,
                cause: row.get::<_, Option<i64>>(1)?.map(Seq::from_i64),
                context: row.get(6)?,
                payload: digest.unwrap_or_else(|| payload_digest(&payload)),
            },
            columns: columns(10)?,
            kind: row.get(9)?,
            payload,
            payload_type_is_right,
            is_removed: removed.is_some(),
            redaction,
            cause,
        })
    }

    /// What a record of removed payloads and rows says; none if the row is no such record.
    pub(super) fn recorded_removal(&self) -> Option<RecordedRemoval> {
        if self.is_record(Kind::LogPruned) { RecordedRemoval::read(&self.payload) } else { None }
    }

    /// The rows that a record of redactions names; none if the row is no such record.
    pub(super) fn recorded_redaction(&self) -> Option<Vec<(i64, Hash)>> {
        if self.is_record(Kind::LogRedacted) { read_record(&self.payload) } else { None }
    }

    fn is_record(&self, kind: Kind) -> bool {
        self.covered.agent == BUS_AGENT
            && self.covered.name == kind.as_str()
            && !self.is_removed
            && self.redaction.is_none()
    }

    /// What the hash of a redacted row would cover with what it holds now; none if it was not redacted.
    pub(super) fn covered_now(&self) -> Option<Covered> {
        let redaction = self.redaction?;
        let now = if self.is_removed { redaction.now } else { payload_digest(&self.payload) };
        Some(Covered { payload: now, ..self.covered.clone() })
    }

    pub(super) fn is_decision(&self) -> bool {
        self.covered.id == self.covered.id.of_decision()
    }

    /// What no hookbus has ever written, though the hash is the same as without it; none if there is no such thing.
    pub(super) fn never_written(&self) -> Option<&'static str> {
        if self.covered.context.as_deref() == Some("") {
            return Some("its `context` is an empty text, where hookbus writes none");
        }
        if !self.payload_type_is_right {
            return Some(
                "its `payload` has another type than hookbus writes: TEXT for text, BLOB for other bytes, '{}' for one that \
                 was removed",
            );
        }
        if self
            .redaction
            .is_some_and(|it| !self.is_removed && it.now != payload_digest(&self.payload))
        {
            return Some("its payload is not the one that took the place of the recorded one");
        }
        let is_before_first = |cause: Seq| cause < Seq::FIRST;
        self.covered
            .cause
            .is_some_and(is_before_first)
            .then_some("its `cause` is not the number of a row, where hookbus writes none")
    }

    /// Why a decision is not one about the event that it names; none if it is, or if an archive does not hold
    /// that event.
    pub(super) fn wrong_cause(&self, is_archive: bool) -> Option<&'static str> {
        if !self.is_decision() {
            return None;
        }
        match &self.cause {
            Some((event, _)) if event.of_decision() == self.covered.id => None,
            None if is_archive => None,
            Some(_) | None => {
                Some("it is a decision, but its id does not belong to the event in its `cause`")
            }
        }
    }

    /// The derived columns that do not follow from the rest of the row, with what they hold.
    pub(super) fn wrong_columns(
        &self,
        derive: &dyn Fn(&DerivedFrom<'_>) -> Derived,
    ) -> Option<String> {
        let Columns { session, turn, tool, tool_class } = &self.columns;
        let expected = self.expected(derive);
        let mut wrong = Vec::new();
        if !expected.kinds.contains(&self.kind) {
            let kinds = expected.kinds.join(" or ");
            wrong.push(format!("kind is {:?} instead of {kinds:?}", self.kind));
        }
        let mut check = |column: &str, fits: bool, value: &Option<String>| {
            if !fits {
                let value = value.as_deref().unwrap_or("NULL");
                wrong.push(format!("{column} is {:?}", shortened(value)));
            }
        };
        check("session", expected.session.allows(|it| it == session), &Some(session.clone()));
        check("turn", expected.turn.allows(|it| it == turn), turn);
        check("tool", expected.tool.allows(|it| it == tool), tool);
        check("tool_class", expected.tool_classes.allows(|it| it.contains(tool_class)), tool_class);
        if wrong.is_empty() { None } else { Some(wrong.join(", ")) }
    }

    /// The derived columns to set. A kind that an earlier hookbus wrote for such a row stays.
    pub(super) fn mended(&self, derive: &dyn Fn(&DerivedFrom<'_>) -> Derived) -> Derived {
        let mut derived = self.expected(derive);
        if derived.kinds.contains(&self.kind) {
            derived.kinds.clear();
        }
        derived
    }

    /// The derived columns as they should be. A decision has those of its event.
    fn expected(&self, derive: &dyn Fn(&DerivedFrom<'_>) -> Derived) -> Derived {
        if self.is_decision() {
            let known = |columns: &Columns| Derived {
                kinds: Vec::new(),
                session: Column::Known(columns.session.clone()),
                turn: Column::Known(columns.turn.clone()),
                tool: Column::Known(columns.tool.clone()),
                tool_classes: Column::Known(vec![columns.tool_class.clone()]),
            };
            let of_event = self.cause.as_ref().map(|(_, columns)| known(columns));
            let kinds = vec![Kind::Decision.as_str().to_owned()];
            return Derived { kinds, ..of_event.unwrap_or_default() };
        }
        derive(&DerivedFrom {
            agent: &self.covered.agent,
            name: &self.covered.name,
            context: self.covered.context.as_deref(),
            payload: (!self.is_removed).then_some(&self.payload),
        })
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    text.chars().take(60).chain(['…']).collect()
}

/// The digest in a column. One that is no digest becomes zeros, which no payload has.
fn digest_in(column: ValueRef<'_>) -> Option<Hash> {
    match column {
        ValueRef::Null => None,
        ValueRef::Blob(bytes) => Some(bytes.try_into().unwrap_or_default()),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => Some([0; 32]),
    }
}

/// A hash that is not one becomes zeros, which no row has.
fn stored_hash(row: &Row<'_>) -> rusqlite::Result<Hash> {
    Ok(match row.get_ref(8)? {
        ValueRef::Blob(bytes) => bytes.try_into().unwrap_or_default(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => [0; 32],
    })
}
