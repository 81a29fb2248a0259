//! One atomic batch: all of it is stored, in order, or nothing is. Guarded by what the stream last
//! holds of this bus, so that no batch can be stored twice or overtake another.

use std::time::Duration;

use async_nats::Client;
use serde_json::Value;

use super::envelope::Message;
use crate::event::{BusId, EventId, subjects_of};

/// A server that does not acknowledge by then may be gone.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Why a batch was not stored, as far as we know.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStored {
    /// The stream is not where we thought.
    #[error("the stream is further than we thought")]
    Overtaken,
    /// The server remembers ids that it does not hold any more (a purge, say).
    #[error("the server remembers these events")]
    Remembered,
    /// Nobody knows: look again.
    #[error("no acknowledgement: {0}")]
    Unknown(String),
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

/// Publishes `messages` after stream place `after`; gives back the place of the last one.
pub(super) async fn publish(
    client: &Client,
    bus: BusId,
    batch: EventId,
    after: u64,
    messages: Vec<Message>,
    ids: Ids,
) -> Result<u64, NotStored> {
    let lost = |error: &dyn std::fmt::Display| NotStored::Unknown(error.to_string());
    let count = messages.len();
    for (index, mut message) in messages.into_iter().enumerate() {
        let headers = &mut message.headers;
        headers.insert("Nats-Batch-Id", batch.to_string().as_str());
        headers.insert("Nats-Batch-Sequence", (index + 1).to_string().as_str());
        if ids == Ids::Sent {
            headers.insert("Nats-Msg-Id", message.id.to_string().as_str());
        }
        if index == 0 {
            headers.insert("Nats-Expected-Last-Subject-Sequence", after.to_string().as_str());
            headers
                .insert("Nats-Expected-Last-Subject-Sequence-Subject", subjects_of(bus).as_str());
        }
        if index + 1 < count {
            let sent =
                client.publish_with_headers(message.subject, message.headers, message.body.into());
            sent.await.map_err(|error| lost(&error))?;
            continue;
        }
        message.headers.insert("Nats-Batch-Commit", "1");
        let asked =
            client.request_with_headers(message.subject, message.headers, message.body.into());
        let answer =
            tokio::time::timeout(ACKNOWLEDGED, asked).await.map_err(|error| lost(&error))?;
        return read(&answer.map_err(|error| lost(&error))?.payload);
    }
    Ok(after)
}

fn read(answer: &[u8]) -> Result<u64, NotStored> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|error| NotStored::Unknown(format!("an odd acknowledgement: {error}")))?;
    let error = &answer["error"];
    match error["err_code"].as_u64() {
        Some(10071) => Err(NotStored::Overtaken),
        Some(10201) => Err(NotStored::Remembered),
        Some(_) => Err(NotStored::Refused(error["description"].as_str().unwrap_or("?").to_owned())),
        None => {
            answer["seq"].as_u64().ok_or_else(|| NotStored::Unknown("no place in it".to_owned()))
        }
    }
}
