//! What a row would be without its secrets.

use std::fmt;
use std::rc::Rc;

use crate::event::{EventId, Kind, Seq, Time, payload_digest};
use crate::log::bus_row::SessionHold;
use crate::log::chain::{self, Hash, Identity};
use crate::log::payload::{Change, PayloadReader};

/// Bytes without their secrets, and the kinds of those secrets.
#[derive(Debug, Clone)]
pub struct Found {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The kind of each secret that was in them.
    pub kinds: Vec<String>,
    /// Finds the same secrets in what else the log holds about the event.
    pub elsewhere: Option<Elsewhere>,
}

/// What else the log holds about an event.
#[derive(Debug, Clone, Copy)]
pub enum OtherText<'a> {
    /// A column that follows from the payload, or the name of the event.
    Column(&'a str),
    /// The context.
    Context(&'a str),
    /// The payload of the decision about it.
    Decision(&'a str),
}

/// Finds secrets that are known from the payload of an event: gives the other text without them, or none if it holds none.
#[derive(Clone)]
pub struct Elsewhere(Rc<dyn Fn(OtherText<'_>) -> Option<String>>);

impl Elsewhere {
    /// Asks this function.
    pub fn new(find: impl Fn(OtherText<'_>) -> Option<String> + 'static) -> Self {
        Self(Rc::new(find))
    }

    fn find(&self, text: OtherText<'_>) -> Option<String> {
        (self.0)(text)
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere(…)")
    }
}

/// The columns of [`CleanRow::of_columns`].
pub(super) const COLUMNS: &str = "seq, id, time, agent, name, cause, context, payload, packed, \
    digest, redacted, redacted_columns, session, turn, tool, kind";

/// A row with what is to be changed in it.
#[derive(Debug)]
pub(super) struct CleanRow {
    pub(super) seq: i64,
    pub(super) id: EventId,
    at: Time,
    pub(super) agent: String,
    pub(super) kind: String,
    cause: Option<Seq>,
    /// Finds the secrets of the payload elsewhere.
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) name: String,
    pub(super) context: Option<String>,
    pub(super) session: String,
    /// The session as it is now, by which it may be held.
    pub(super) session_before: String,
    pub(super) turn: Option<String>,
    pub(super) tool: Option<String>,
    /// The new payload; none if it stays.
    pub(super) payload: Option<Vec<u8>>,
    /// The digest of the payload as it will be.
    pub(super) payload_now: Hash,
    /// Whether the hash of the row cannot be computed any more.
    pub(super) of_columns: bool,
    /// Whether anything changes that the hash of the row covers. Derived columns are not in it.
    pub(super) is_in_hash: bool,
    /// The kinds of the secrets.
    pub(super) kinds: Vec<String>,
}

impl CleanRow {
    /// Reads [`COLUMNS`]; none if the row holds no secret, or only one that has to stay. `of_event` finds the secrets of the event
    /// that the row is about.
    pub(super) fn of_columns(
        row: &rusqlite::Row<'_>,
        payloads: &PayloadReader<'_>,
        redact: &dyn Fn(&[u8]) -> Option<Found>,
        of_event: Option<&Elsewhere>,
    ) -> rusqlite::Result<Option<Self>> {
        let kind: String = row.get(15)?;
        let stored = (row.get_ref(7)?, row.get_ref(8)?);
        let was_of_columns = row.get::<_, Option<bool>>(11)?.unwrap_or(false);
        let Change { removed, redaction } =
            Change::of_columns(stored, row.get(9)?, row.get(10)?, was_of_columns);
        let search = Search { redact, known: of_event };
        let CleanPayload { new: payload, digest: payload_now, mut kinds, elsewhere } =
            match (removed, redaction) {
                (Some(digest), None) => CleanPayload::removed(digest),
                (Some(_), Some(redaction)) => CleanPayload::removed(redaction.now),
                (None, _) => search.clean_payload(&kind, &payloads.read(stored.0, stored.1)?),
            };
        let search = Search { redact, known: elsewhere.as_ref().or(of_event) };
        let mut texts = Changes::default();
        let name: String = row.get(4)?;
        let name = search.clean(OtherText::Column(&name), &mut texts);
        let context = row.get::<_, Option<String>>(6)?;
        let context = context.map(|it| search.clean(OtherText::Context(&it), &mut texts));
        let is_text_changed = texts.is_any;
        kinds.extend(texts.kinds);
        // They follow from the payload, whose secrets are counted.
        let mut derived = Changes::default();
        let mut clean_column = |text: &str| search.clean(OtherText::Column(text), &mut derived);
        let session_before: String = row.get(12)?;
        let session = clean_column(&session_before);
        let turn = row.get::<_, Option<String>>(13)?.map(|it| clean_column(&it));
        let tool = row.get::<_, Option<String>>(14)?.map(|it| clean_column(&it));
        let is_in_hash = is_text_changed || payload.is_some();
        if !is_in_hash && !derived.is_any {
            return Ok(None);
        }
        Ok(Some(Self {
            seq: row.get(0)?,
            id: EventId::from_bytes(row.get(1)?),
            at: Time::from_micros(row.get(2)?),
            agent: row.get(3)?,
            cause: row.get::<_, Option<i64>>(5)?.map(Seq::from_i64),
            kind,
            elsewhere,
            name,
            context,
            session,
            session_before,
            turn,
            tool,
            payload,
            payload_now,
            of_columns: was_of_columns || is_text_changed,
            is_in_hash,
            kinds,
        }))
    }

    /// The hash that the row would have after `before` with what it will hold.
    pub(super) fn hash_as_now(&self, before: &Hash) -> Hash {
        let identity = Identity {
            seq: Seq::from_i64(self.seq),
            id: self.id,
            at: self.at,
            agent: &self.agent,
            name: &self.name,
            cause: self.cause,
            context: self.context.as_deref(),
        };
        chain::link(before, &identity, &self.payload_now)
    }
}

/// What changed in some texts.
#[derive(Debug, Default)]
struct Changes {
    is_any: bool,
    /// The kinds of the secrets.
    kinds: Vec<String>,
}

/// A payload without secrets.
struct CleanPayload {
    /// None if it stays.
    new: Option<Vec<u8>>,
    digest: Hash,
    kinds: Vec<String>,
    elsewhere: Option<Elsewhere>,
}

impl CleanPayload {
    const fn removed(digest: Hash) -> Self {
        Self { new: None, digest, kinds: Vec::new(), elsewhere: None }
    }
}

/// Finds secrets in the texts of one row.
struct Search<'a> {
    redact: &'a dyn Fn(&[u8]) -> Option<Found>,
    /// Those of the payload, or of that of the event that the row is about.
    known: Option<&'a Elsewhere>,
}

impl Search<'_> {
    fn clean(&self, text: OtherText<'_>, changes: &mut Changes) -> String {
        let (OtherText::Column(before) | OtherText::Context(before) | OtherText::Decision(before)) =
            text;
        let known = self.known.and_then(|known| known.find(text));
        changes.is_any |= known.is_some();
        let text = known.unwrap_or_else(|| before.to_owned());
        let Some(found) = (self.redact)(text.as_bytes()) else { return text };
        changes.kinds.extend(found.kinds);
        changes.is_any = true;
        String::from_utf8_lossy(&found.bytes).into_owned()
    }

    fn clean_payload(&self, kind: &str, before: &[u8]) -> CleanPayload {
        let known = self.known.and_then(|known| {
            known.find(OtherText::Decision(str::from_utf8(before).ok()?)).map(String::into_bytes)
        });
        let payload = known.as_deref().unwrap_or(before);
        let found = (self.redact)(payload).filter(|found| !must_stay(kind, payload, &found.bytes));
        let (new, kinds, elsewhere) = match found {
            None => (known, Vec::new(), None),
            Some(found) => (Some(found.bytes), found.kinds, found.elsewhere),
        };
        let digest = payload_digest(new.as_deref().unwrap_or(before));
        CleanPayload { new, digest, kinds, elsewhere }
    }
}

/// Whether the bus itself needs the payload as it is: a hold is about the session that it names.
fn must_stay(kind: &str, payload: &[u8], without_secrets: &[u8]) -> bool {
    let session = |payload: &[u8]| {
        let json = serde_json::from_slice(payload).ok()?;
        SessionHold::from_json(&json).map(|hold| hold.session)
    };
    [Kind::SessionHeld, Kind::SessionReleased].iter().any(|it| it.as_str() == kind)
        && session(payload) != session(without_secrets)
}
