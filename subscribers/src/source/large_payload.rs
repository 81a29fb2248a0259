//! Fetches payloads that did not fit a message from the object store. What is there was written by others: its
//! size is limited, and its digest has to be the one that the event names.

use std::time::Duration;

use async_nats::jetstream::{self, Context};
use hookbus::event::payload_digest;
use hookbus::log::StoredPayload;
use tokio::io::AsyncReadExt;

use crate::connection::{NatsConnection, NatsError, within};

/// How long fetching may take while bytes arrive.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

/// How long the server may take to answer, and how long no byte may arrive. A reference can be forged, and events wait
/// behind it. The client would wait for ever for an object whose chunks are gone.
const STALL_LIMIT: Duration = Duration::from_secs(3);

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
    let failed = |reason: String| NatsError::Failed {
        action: format!("fetch the payload {object} from the object store"),
        reason,
    };
    let payload = tokio::time::timeout(FETCH_LIMIT, read_object(&context, object))
        .await
        .map_err(|_| failed(format!("it is not complete after {} s", FETCH_LIMIT.as_secs())))?
        .map_err(|reason| failed(reason.to_string()))?;
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
    let bucket = within(STALL_LIMIT, context.get_object_store(bucket)).await??;
    let object = within(STALL_LIMIT, bucket.get(object)).await??;
    if object.info.size as u64 > MAX_PAYLOAD {
        return Ok(None);
    }
    // The size in the object's description may be wrong, so the bytes are counted too.
    let (mut object, mut payload) = (object.take(MAX_PAYLOAD + 1), Vec::new());
    loop {
        let arrived = tokio::time::timeout(STALL_LIMIT, object.read_buf(&mut payload)).await;
        match arrived {
            Ok(Ok(0)) => break,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => {
                let seconds = STALL_LIMIT.as_secs();
                return Err(
                    format!("nothing arrived for {seconds} s; its parts are missing").into()
                );
            }
        }
    }
    Ok((payload.len() as u64 <= MAX_PAYLOAD).then_some(payload))
}
