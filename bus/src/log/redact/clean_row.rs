//! What a row would be without its secrets.

use rusqlite::types::ValueRef;

use crate::event::{EventId, Kind, Seq, Time, payload_digest};
use crate::log::bus_row::SessionHold;
use crate::log::chain::{self, Hash, Identity};
use crate::log::payload::{Change, PayloadReader};

/// Bytes without their secrets, and the kinds of those secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The kind of each secret that was in them.
    pub kinds: Vec<String>,
}

/// The columns of [`CleanRow::of_columns`].
pub(super) const COLUMNS: &str = "seq, id, time, agent, name, cause, context, payload, packed, \
    digest, redacted, redacted_columns, session, turn, tool, kind";

/// A row with what is to be changed in it.
#[derive(Debug)]
pub(super) struct CleanRow {
    pub(super) seq: i64,
    id: EventId,
    at: Time,
    pub(super) agent: String,
    pub(super) kind: String,
    cause: Option<Seq>,
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
    /// Reads [`COLUMNS`]; none if the row holds no secret, or only one that has to stay.
    pub(super) fn of_columns(
        row: &rusqlite::Row<'_>,
        payloads: &PayloadReader<'_>,
        redact: &dyn Fn(&[u8]) -> Option<Found>,
    ) -> rusqlite::Result<Option<Self>> {
        let mut kinds = Vec::new();
        let (mut is_text_changed, mut is_column_changed) = (false, false);
        let clean = |text: String, kinds: &mut Vec<String>, is_changed: &mut bool| {
            let Some(found) = redact(text.as_bytes()) else { return text };
            kinds.extend(found.kinds);
            *is_changed = true;
            String::from_utf8_lossy(&found.bytes).into_owned()
        };
        let name = clean(row.get(4)?, &mut kinds, &mut is_text_changed);
        let context = row.get::<_, Option<String>>(6)?;
        let context = context.map(|it| clean(it, &mut kinds, &mut is_text_changed));
        // They follow from the payload, whose secrets are counted.
        let mut derived = Vec::new();
        let session_before: String = row.get(12)?;
        let session = clean(session_before.clone(), &mut derived, &mut is_column_changed);
        let turn = row.get::<_, Option<String>>(13)?;
        let turn = turn.map(|it| clean(it, &mut derived, &mut is_column_changed));
        let tool = row.get::<_, Option<String>>(14)?;
        let tool = tool.map(|it| clean(it, &mut derived, &mut is_column_changed));
        let stored = (row.get_ref(7)?, row.get_ref(8)?);
        let was_of_columns = row.get::<_, Option<bool>>(11)?.unwrap_or(false);
        let Change { removed, redaction } =
            Change::of_columns(stored, row.get(9)?, row.get(10)?, was_of_columns);
        let kind: String = row.get(15)?;
        let (payload, payload_now) = match (removed, redaction) {
            (Some(removed), None) => (None, removed),
            (Some(_), Some(redaction)) => (None, redaction.now),
            (None, _) => clean_payload(&kind, stored, payloads, redact, &mut kinds)?,
        };
        let is_in_hash = is_text_changed || payload.is_some();
        if !is_in_hash && !is_column_changed {
            return Ok(None);
        }
        Ok(Some(Self {
            seq: row.get(0)?,
            id: EventId::from_bytes(row.get(1)?),
            at: Time::from_micros(row.get(2)?),
            agent: row.get(3)?,
            cause: row.get::<_, Option<i64>>(5)?.map(Seq::from_i64),
            kind,
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

/// The payload without secrets, or none if it stays, and its digest.
fn clean_payload(
    kind: &str,
    (payload, packed): (ValueRef<'_>, ValueRef<'_>),
    payloads: &PayloadReader<'_>,
    redact: &dyn Fn(&[u8]) -> Option<Found>,
    kinds: &mut Vec<String>,
) -> rusqlite::Result<(Option<Vec<u8>>, Hash)> {
    let payload = payloads.read(payload, packed)?;
    match redact(&payload).filter(|found| !must_stay(kind, &payload, &found.bytes)) {
        None => Ok((None, payload_digest(&payload))),
        Some(found) => {
            kinds.extend(found.kinds);
            let digest = payload_digest(&found.bytes);
            Ok((Some(found.bytes), digest))
        }
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
