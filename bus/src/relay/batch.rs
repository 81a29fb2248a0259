//! Handing messages to the stream so that all of a batch is stored, in order, or nothing is. Guarded
//! by what the stream last holds of this bus, so that no batch can be stored twice or overtake
//! another.
//!
//! The server keeps a batch aside until its last message commits it, and looks at the guard only
//! then. So the next batch is sent while the one before is being stored; just its last message waits
//! for that acknowledgement, which tells what the guard is.

use async_nats::{Client, RequestErrorKind};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::abilities::Abilities;
use super::connect::Connection;
use super::envelope::Message;
use crate::event::{BusId, EventId, subjects_of};

/// Why a batch was not stored, as far as we know.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStored {
    /// The stream is not where we thought.
    #[error("the stream is further than we thought")]
    Overtaken,
    /// The server remembers ids that it does not hold any more (a purge, say), or takes no ids in a
    /// batch at all (2.12.0).
    #[error("the server does not take these ids")]
    NotWithIds,
    /// Nobody knows: look again.
    #[error("{0}")]
    Unknown(String),
    /// The connection is fine, but nothing is acknowledged.
    #[error(
        "the server is connected but acknowledges nothing; is its disk full, or the cluster without \
         a leader? Its own log says more; a stream that a full disk has frozen needs a restart of \
         the server"
    )]
    Silence,
    /// The server says no.
    #[error("the stream refuses: {0}")]
    Refused(String),
}

/// Whether the server shall refuse ids that it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    Sent,
    LeftOut,
}

/// Publishes over one connection.
#[derive(Debug, Clone)]
pub(super) struct Publisher {
    client: Client,
    lost: watch::Receiver<bool>,
    abilities: Abilities,
    bus: BusId,
}

/// A batch that is with the server but for its last message, which commits it.
#[derive(Debug)]
pub(super) struct Staged {
    last: Message,
}

/// A batch that is on its way as a whole.
#[derive(Debug)]
pub(super) struct Committed {
    answer: JoinHandle<Result<u64, NotStored>>,
}

impl Publisher {
    pub(super) fn new(connection: &Connection, bus: BusId) -> Self {
        Self {
            client: connection.client.clone(),
            lost: connection.lost.clone(),
            abilities: connection.abilities,
            bus,
        }
    }

    /// Sends all of a batch but its `last` message.
    pub(super) async fn stage(
        &self,
        batch: EventId,
        messages: Vec<Message>,
        mut last: Message,
        ids: Ids,
    ) -> Result<Staged, NotStored> {
        let (batch, count) = (batch.to_string(), messages.len() + 1);
        let label = |message: &mut Message, place: usize| {
            // A single message is all or nothing by itself, and cheaper so.
            if count > 1 {
                message.headers.insert("Nats-Batch-Id", batch.as_str());
                message.headers.insert("Nats-Batch-Sequence", place.to_string().as_str());
            }
            if ids == Ids::Sent {
                message.headers.insert("Nats-Msg-Id", message.id.to_string().as_str());
            }
        };
        for (index, mut message) in messages.into_iter().enumerate() {
            label(&mut message, index + 1);
            let Message { subject, headers, body, .. } = message;
            let sent = self.client.publish_with_headers(subject, headers, body.into());
            sent.await.map_err(|error| NotStored::Unknown(error.to_string()))?;
        }
        label(&mut last, count);
        if count > 1 {
            last.headers.insert("Nats-Batch-Commit", "1");
        }
        Ok(Staged { last })
    }

    /// Sends the last message of a batch, to be stored after stream place `after`.
    pub(super) fn commit(&self, staged: Staged, after: u64) -> Committed {
        let mut last = staged.last;
        let after = after.to_string();
        match self.abilities {
            Abilities::Batches | Abilities::GuardPerBus => {
                last.headers.insert("Nats-Expected-Last-Subject-Sequence", after.as_str());
                last.headers.insert(
                    "Nats-Expected-Last-Subject-Sequence-Subject",
                    subjects_of(self.bus).as_str(),
                );
            }
            Abilities::GuardPerStream => {
                last.headers.insert("Nats-Expected-Last-Sequence", after.as_str());
            }
        }
        // In a task of its own, so that it is under way while the next batch is sent.
        Committed { answer: tokio::spawn(ask(self.client.clone(), self.lost.clone(), last)) }
    }
}

impl Committed {
    /// Waits for the acknowledgement; gives back the place of the last message in the stream.
    pub(super) async fn acknowledged(self) -> Result<u64, NotStored> {
        self.answer.await.map_err(|error| NotStored::Unknown(error.to_string()))?
    }
}

async fn ask(
    client: Client,
    mut lost: watch::Receiver<bool>,
    last: Message,
) -> Result<u64, NotStored> {
    let asked = client.request_with_headers(last.subject, last.headers, last.body.into());
    let answer = tokio::select! {
        answer = asked => answer,
        // The acknowledgement went down with the connection: waiting for it is in vain.
        _ = lost.wait_for(|lost| *lost) => {
            return Err(NotStored::Unknown("the connection to NATS broke".to_owned()));
        }
    };
    let answer = answer.map_err(|error| match error.kind() {
        RequestErrorKind::TimedOut => NotStored::Silence,
        RequestErrorKind::NoResponders => {
            NotStored::Unknown("no stream takes our events".to_owned())
        }
        RequestErrorKind::InvalidSubject
        | RequestErrorKind::MaxPayloadExceeded
        | RequestErrorKind::Other => NotStored::Unknown(format!("no acknowledgement: {error}")),
    })?;
    read(&answer.payload)
}

fn read(answer: &[u8]) -> Result<u64, NotStored> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|error| NotStored::Unknown(format!("an odd acknowledgement: {error}")))?;
    let error = &answer["error"];
    let said = || error["description"].as_str().unwrap_or("?").to_owned();
    match error["err_code"].as_u64() {
        // Wrong last sequence, and the same while another guarded batch is being replicated.
        Some(10071 | 10164) => Err(NotStored::Overtaken),
        // A duplicate in a batch; ids in a batch are not supported.
        Some(10201 | 10177) => Err(NotStored::NotWithIds),
        // The batch was incomplete, or given up: a part of it went down with a connection.
        Some(10176) => Err(NotStored::Unknown(said())),
        Some(_) => Err(NotStored::Refused(said())),
        None if answer["duplicate"] == true => Err(NotStored::NotWithIds),
        None => {
            answer["seq"].as_u64().ok_or_else(|| NotStored::Unknown("no place in it".to_owned()))
        }
    }
}
