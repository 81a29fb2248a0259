//! A message of a stream, read back. Servers give permission for subjects, and hand out sequence numbers; the rest
//! of a message is what its sender wrote. So a message counts only if everything in it agrees with its subject,
//! and nothing in it is impossible.

use async_nats::HeaderMap;

use super::envelope::{HASH, SEQ};
use crate::envelope::{self, EnvelopeError};
use crate::event::{BusId, Seq, subject};
use crate::log::{Received, StoredPayload, row_hash};

/// What the messages of a stream look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamForm {
    /// What comes before the bus in a subject: `hookbus`, or the root of one replay.
    pub root: String,
    /// The bucket of payloads that do not fit a message.
    pub bucket: String,
    /// Whether buses publish all of their rows to this stream, so that the seq of a row is at most the sequence
    /// number of its message. Not so in a replay, and in a stream that takes a part of another.
    pub holds_every_row: bool,
}

/// A message as it was read from a stream.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedMessage<'a> {
    /// Its subject.
    pub subject: &'a str,
    /// Its headers.
    pub headers: Option<&'a HeaderMap>,
    /// Its body.
    pub body: &'a [u8],
    /// Its sequence number in the stream.
    pub sequence: u64,
}

/// Why a message does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its body is not an event.
    #[error(transparent)]
    NotAnEvent(#[from] EnvelopeError),
    /// It says that it is from another bus than the one its subject names.
    #[error("its envelope is of bus {claimed}, but its subject is of bus {subject:?}")]
    WrongBus {
        /// The bus in the envelope.
        claimed: BusId,
        /// The bus in the subject.
        subject: String,
    },
    /// Its agent, session or event name is another one than in its subject.
    #[error("its agent, session or event name is another one than in its subject")]
    WrongSubject,
    /// A header differs from the envelope.
    #[error("its header {0} differs from its envelope")]
    WrongHeader(&'static str),
    /// No row can have this seq.
    #[error("no row can have the seq {seq} in message {sequence} of a stream")]
    ImpossibleSeq {
        /// The seq.
        seq: Seq,
        /// The message.
        sequence: u64,
    },
    /// It is the first row of a log, with a hash that the first row cannot have.
    #[error("its hash is not that of the first row of bus {0}")]
    WrongHash(BusId),
    /// Its payload is said to be somewhere where no bus puts it.
    #[error("its payload is said to be in the object {object:?}, which hookbus did not write")]
    WrongObject {
        /// The object that it names.
        object: String,
    },
}

impl StreamForm {
    /// The stream that relays publish to.
    pub fn live() -> Self {
        Self { root: "hookbus".to_owned(), bucket: super::BUCKET.to_owned(), holds_every_row: true }
    }

    /// The event in a message, if the message can be what it says.
    pub fn read(&self, message: ReceivedMessage<'_>) -> Result<Received, Refusal> {
        let received = envelope::read(message.body)?;
        self.check_subject(&received, message.subject)?;
        check_headers(&received, message.headers)?;
        let Received { bus, row, stored } = &received;
        let seq = row.seq.as_i64();
        let highest = if self.holds_every_row { message.sequence } else { 1 << 53 };
        let is_possible = seq >= 1 && seq.unsigned_abs() <= highest;
        let cause_is_possible =
            row.cause.is_none_or(|cause| cause >= Seq::FIRST && cause < row.seq);
        if !is_possible || !cause_is_possible {
            return Err(Refusal::ImpossibleSeq { seq: row.seq, sequence: message.sequence });
        }
        if row.seq == Seq::FIRST
            && let Some(digest) = received.payload_digest()
            && row_hash(*bus, None, row, &digest) != row.hash
        {
            return Err(Refusal::WrongHash(*bus));
        }
        match stored {
            Some(StoredPayload { object, .. })
                if *object != StoredPayload::object(&self.bucket, row.id) =>
            {
                Err(Refusal::WrongObject { object: object.clone() })
            }
            Some(_) | None => Ok(received),
        }
    }

    fn check_subject(&self, received: &Received, found: &str) -> Result<(), Refusal> {
        let Received { bus, row, .. } = received;
        let expected = subject(*bus, &row.agent, &row.session, &row.name);
        let expected = expected.strip_prefix("hookbus.").unwrap_or(&expected);
        let below_root = found.strip_prefix(&self.root).and_then(|rest| rest.strip_prefix('.'));
        let Some(below_root) = below_root else { return Err(Refusal::WrongSubject) };
        if below_root == expected {
            return Ok(());
        }
        let of_bus = below_root.split('.').next().unwrap_or_default();
        if of_bus == bus.to_string() {
            return Err(Refusal::WrongSubject);
        }
        Err(Refusal::WrongBus { claimed: *bus, subject: of_bus.to_owned() })
    }
}

/// Headers are optional; those that are there have to say the same as the envelope.
fn check_headers(received: &Received, headers: Option<&HeaderMap>) -> Result<(), Refusal> {
    let row = &received.row;
    let expected = [
        (SEQ, row.seq.to_string()),
        (HASH, hex::encode(row.hash)),
        ("Nats-Msg-Id", row.id.to_string()),
    ];
    for (name, expected) in expected {
        let found = headers.and_then(|headers| headers.get(name));
        if found.is_some_and(|found| found.as_str() != expected) {
            return Err(Refusal::WrongHeader(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::envelope::message;
    use super::*;
    use crate::event::{EventId, Time, payload_digest};
    use crate::log::Row;

    fn first_row(bus: BusId) -> Row {
        let at = Time::from_micros(1_700_000_000_123_456);
        let mut row = Row {
            seq: Seq::FIRST,
            id: EventId::mint(at),
            at,
            agent: "hermes".to_owned(),
            session: "s.1".to_owned(),
            turn: None,
            name: "command:deploy".to_owned(),
            kind: "command".to_owned(),
            tool: None,
            tool_class: None,
            cause: None,
            context: None,
            payload: b"{}".to_vec(),
            removed: None,
            redaction: None,
            hash: [0; 32],
            origin: None,
            identity: None,
        };
        row.hash = row_hash(bus, None, &row, &payload_digest(&row.payload));
        row
    }

    fn read(row: &Row, bus: BusId, subject: Option<&str>) -> Result<Received, Refusal> {
        let sent = message(bus, row, None);
        StreamForm::live().read(ReceivedMessage {
            subject: subject.unwrap_or(&sent.subject),
            headers: Some(&sent.headers),
            body: &sent.body,
            sequence: 7,
        })
    }

    #[test]
    fn a_message_counts_only_if_all_of_it_agrees() {
        let bus = BusId::mint(Time::from_micros(1));
        let row = first_row(bus);
        assert_eq!(read(&row, bus, None).map(|read| read.row), Ok(row.clone()));
        let other = BusId::mint(Time::from_micros(2));
        let of_other = subject(other, &row.agent, &row.session, &row.name);
        let wrong_bus = read(&row, bus, Some(&of_other));
        assert!(matches!(wrong_bus, Err(Refusal::WrongBus { claimed, .. }) if claimed == bus));
        let session = subject(bus, &row.agent, "s.2", &row.name);
        assert_eq!(read(&row, bus, Some(&session)), Err(Refusal::WrongSubject));
        let changed = Row { payload: b"[]".to_vec(), ..row.clone() };
        assert_eq!(read(&changed, bus, None), Err(Refusal::WrongHash(bus)));
        for seq in [0, -1, 8, i64::MAX, i64::MIN] {
            let absurd = read(&Row { seq: Seq::from_i64(seq), ..row.clone() }, bus, None);
            assert!(matches!(absurd, Err(Refusal::ImpossibleSeq { .. })), "{seq}");
        }
        let later = Row { seq: Seq::from_i64(7), ..row };
        assert!(read(&later, bus, None).is_ok(), "its hash cannot be judged here");
    }

    #[test]
    fn a_payload_is_fetched_only_from_where_hookbus_puts_it() {
        let bus = BusId::mint(Time::from_micros(1));
        let row = first_row(bus);
        let read = |object: &str| {
            let digest = Some(payload_digest(&row.payload));
            let stored = StoredPayload { object: object.to_owned(), digest };
            let sent = message(bus, &row, Some(&stored));
            StreamForm::live().read(ReceivedMessage {
                subject: &sent.subject,
                headers: None,
                body: &sent.body,
                sequence: 1,
            })
        };
        assert!(read(&StoredPayload::object("HOOKBUS_LARGE", row.id)).is_ok());
        for object in ["SECRETS/plan", "HOOKBUS_LARGE/other", "HOOKBUS_LARGE", "/", ""] {
            assert!(matches!(read(object), Err(Refusal::WrongObject { .. })), "{object}");
        }
    }
}
