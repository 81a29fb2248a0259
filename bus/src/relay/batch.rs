//! Publishes a batch so that the stream stores all of it, in order, or nothing. Each batch carries the
//! expected position of the last message of this bus, so that the server stores no batch twice and none
//! out of order.
//!
//! The server keeps a batch aside until its last message commits it, and only then compares the
//! position. So the next batch is sent while the previous one is being stored; only its last message
//! has to wait for the previous acknowledgement, which contains the position to expect.

use async_nats::{Client, RequestErrorKind};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connect::Connection;
use super::envelope::Message;
use super::server_features::ServerFeatures;
use crate::event::{BusId, EventId, bus_subjects};

/// Why a batch was not stored, as far as the relay knows.
#[derive(Debug, thiserror::Error)]
pub(super) enum PublishError {
    /// The last message of this bus is not the expected one: read the position again.
    #[error("the position in the stream has changed")]
    StalePosition,
    /// The server remembers the ids of messages that it no longer holds (after a purge), or does not
    /// support ids in a batch (2.12.0).
    #[error("the server refuses the message ids")]
    IdsRefused,
    /// The batch may or may not be stored: read the position again.
    #[error("{0}")]
    Interrupted(String),
    /// The connection works, but the server acknowledges nothing.
    #[error(
        "the server is connected but acknowledges nothing; is its disk full, or is its cluster \
         without a leader? See the server's log; after a full disk, restart the server"
    )]
    NoAcknowledgement,
    /// The server refuses the batch.
    #[error("the stream refuses the events: {0}")]
    Refused(String),
}

/// Whether messages carry their id, by which the server refuses duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageIds {
    Sent,
    LeftOut,
}

/// Publishes over one connection.
#[derive(Debug, Clone)]
pub(super) struct Publisher {
    client: Client,
    lost: watch::Receiver<bool>,
    features: ServerFeatures,
    bus: BusId,
}

/// A batch that the server has except for the last message, which commits it.
#[derive(Debug)]
pub(super) struct Staged {
    last: Message,
}

/// A batch that was sent completely.
#[derive(Debug)]
pub(super) struct Committed {
    acknowledgement: JoinHandle<Result<u64, PublishError>>,
}

impl Publisher {
    pub(super) fn new(connection: &Connection, bus: BusId) -> Self {
        Self {
            client: connection.client.clone(),
            lost: connection.lost.clone(),
            features: connection.features,
            bus,
        }
    }

    /// Sends the messages of a batch; `last` is prepared but not sent.
    pub(super) async fn stage(
        &self,
        batch: EventId,
        messages: Vec<Message>,
        mut last: Message,
        ids: MessageIds,
    ) -> Result<Staged, PublishError> {
        let (batch, count) = (batch.to_string(), messages.len() + 1);
        let add_headers = |message: &mut Message, number: usize| {
            // A single message needs no batch, and is cheaper without.
            if count > 1 {
                message.headers.insert("Nats-Batch-Id", batch.as_str());
                message.headers.insert("Nats-Batch-Sequence", number.to_string().as_str());
            }
            if ids == MessageIds::Sent {
                message.headers.insert("Nats-Msg-Id", message.id.to_string().as_str());
            }
        };
        for (index, mut message) in messages.into_iter().enumerate() {
            add_headers(&mut message, index + 1);
            let Message { subject, headers, body, .. } = message;
            let sent = self.client.publish_with_headers(subject, headers, body.into());
            sent.await.map_err(|error| PublishError::Interrupted(error.to_string()))?;
        }
        add_headers(&mut last, count);
        if count > 1 {
            last.headers.insert("Nats-Batch-Commit", "1");
        }
        Ok(Staged { last })
    }

    /// Sends the last message of a batch. The server stores the batch only if the last message is at
    /// the stream sequence `expected`.
    pub(super) fn commit(&self, staged: Staged, expected: u64) -> Committed {
        let mut last = staged.last;
        let expected = expected.to_string();
        match self.features {
            ServerFeatures::AtomicBatches | ServerFeatures::CheckPerBus => {
                last.headers.insert("Nats-Expected-Last-Subject-Sequence", expected.as_str());
                last.headers.insert(
                    "Nats-Expected-Last-Subject-Sequence-Subject",
                    bus_subjects(self.bus).as_str(),
                );
            }
            ServerFeatures::CheckPerStream => {
                last.headers.insert("Nats-Expected-Last-Sequence", expected.as_str());
            }
        }
        // In a task of its own, so that the next batch is sent meanwhile.
        let request = request(self.client.clone(), self.lost.clone(), last);
        Committed { acknowledgement: tokio::spawn(request) }
    }
}

impl Committed {
    /// Waits for the acknowledgement; returns the stream sequence of the batch's last message.
    pub(super) async fn acknowledged(self) -> Result<u64, PublishError> {
        self.acknowledgement.await.map_err(|error| PublishError::Interrupted(error.to_string()))?
    }
}

async fn request(
    client: Client,
    mut lost: watch::Receiver<bool>,
    last: Message,
) -> Result<u64, PublishError> {
    let request = client.request_with_headers(last.subject, last.headers, last.body.into());
    let reply = tokio::select! {
        reply = request => reply,
        // The acknowledgement cannot arrive over a new connection, so do not wait for it.
        _ = lost.wait_for(|lost| *lost) => {
            return Err(PublishError::Interrupted("the connection to NATS broke".to_owned()));
        }
    };
    let reply = reply.map_err(|error| match error.kind() {
        RequestErrorKind::TimedOut => PublishError::NoAcknowledgement,
        RequestErrorKind::NoResponders => {
            PublishError::Interrupted("no stream has our subjects".to_owned())
        }
        RequestErrorKind::InvalidSubject
        | RequestErrorKind::MaxPayloadExceeded
        | RequestErrorKind::Other => {
            PublishError::Interrupted(format!("no acknowledgement: {error}"))
        }
    })?;
    read_acknowledgement(&reply.payload)
}

fn read_acknowledgement(reply: &[u8]) -> Result<u64, PublishError> {
    let invalid = |why: &str| PublishError::Interrupted(format!("invalid acknowledgement: {why}"));
    let reply: Value =
        serde_json::from_slice(reply).map_err(|error| invalid(&error.to_string()))?;
    let error = &reply["error"];
    let description = || error["description"].as_str().unwrap_or("?").to_owned();
    match error["err_code"].as_u64() {
        // Wrong last sequence, and the same while another checked batch is being replicated.
        Some(10071 | 10164) => Err(PublishError::StalePosition),
        // A duplicate id in a batch; ids in a batch are not supported.
        Some(10201 | 10177) => Err(PublishError::IdsRefused),
        // The batch is incomplete or abandoned: a part of it was lost with a connection.
        Some(10176) => Err(PublishError::Interrupted(description())),
        Some(_) => Err(PublishError::Refused(description())),
        None if reply["duplicate"] == true => Err(PublishError::IdsRefused),
        None => reply["seq"].as_u64().ok_or_else(|| invalid("it has no `seq`")),
    }
}
