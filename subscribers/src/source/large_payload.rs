//! Fetches payloads that did not fit a message from the object store. What is there was written by others: its
//! size is limited, and its digest has to be the one that the event names.

use std::time::Duration;

use async_nats::jetstream::{self, Context};
use hookbus::log::{StoredPayload, payload_digest};
use tokio::io::AsyncReadExt;

use crate::connection::{NatsConnection, NatsError};

/// How long fetching may take.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

/// The largest payload that is fetched. SQLite holds no larger one.
const MAX_PAYLOAD: u64 = 1_000_000_000;

/// Why a payload was not fetched.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// NATS does not answer, or does not have it: retry.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// It is not the payload of this event, or is too large; retrying does not help.
    #[error("the object {object} is not the payload of this event: {reason}")]
    Refused {
        /// The object.
        object: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Fetches a payload.
pub(crate) async fn fetch_payload(
    connection: &NatsConnection,
    stored: &StoredPayload,
) -> Result<Vec<u8>, FetchError> {
    let object = &stored.object;
    let context = jetstream::new(connection.client().await?);
    let action = || format!("fetch the payload {object} from the object store");
    // The client would wait for ever for an object whose chunks are gone.
    let payload = tokio::time::timeout(FETCH_LIMIT, read_object(&context, object))
        .await
        .map_err(NatsError::failed(action()))?
        .map_err(|reason| NatsError::Failed { action: action(), reason: reason.to_string() })?;
    let refused =
        |reason: &str| FetchError::Refused { object: object.clone(), reason: reason.to_owned() };
    let payload = payload.ok_or_else(|| refused("it is larger than 1 GB"))?;
    match stored.digest {
        Some(digest) if digest != payload_digest(&payload) => {
            Err(refused("its digest is another one than the event names"))
        }
        Some(_) | None => Ok(payload),
    }
}

/// The bytes of an object; none if there are too many.
async fn read_object(
    context: &Context,
    stored: &str,
) -> Result<Option<Vec<u8>>, async_nats::Error> {
    let (bucket, object) = stored.split_once('/').unwrap_or((stored, stored));
    let object = context.get_object_store(bucket).await?.get(object).await?;
    let mut payload = Vec::new();
    // The size in the object's description may be wrong, so the bytes are counted too.
    if object.info.size as u64 > MAX_PAYLOAD
        || object.take(MAX_PAYLOAD + 1).read_to_end(&mut payload).await? as u64 > MAX_PAYLOAD
    {
        return Ok(None);
    }
    Ok(Some(payload))
}
