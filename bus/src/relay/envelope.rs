//! A row of the log as a NATS message: subject, headers, and the envelope as its body.

use async_nats::HeaderMap;

use crate::envelope;
use crate::event::{BusId, EventId, subject};
use crate::log::{Row, StoredPayload};

/// The header with the row's seq, from which the relay continues.
pub(super) const SEQ: &str = "Hookbus-Seq";

/// The header with the row's hash.
pub(super) const HASH: &str = "Hookbus-Hash";

/// A message to publish.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: EventId,
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The message for a row. `stored` says where the payload is, if it is too large for a message.
pub(super) fn message(bus: BusId, row: &Row, stored: Option<&StoredPayload>) -> Message {
    let mut headers = HeaderMap::new();
    headers.insert(SEQ, row.seq.to_string().as_str());
    headers.insert(HASH, hex::encode(row.hash).as_str());
    headers.insert("Content-Type", "application/cloudevents+json");
    let subject = subject(bus, &row.agent, &row.session, &row.name);
    Message { id: row.id, subject, headers, body: envelope::write(bus, row, stored) }
}
