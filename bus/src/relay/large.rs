//! Payloads that do not fit a message are stored in the JetStream object store; the message then names
//! the object.

use async_nats::jetstream::context::CreateObjectStoreError;
use async_nats::jetstream::object_store::{ObjectMetadata, PutError};
use async_nats::jetstream::{Context, object_store};

/// The bucket for payloads of the relay that do not fit a message.
pub const BUCKET: &str = "HOOKBUS_LARGE";

/// Room for the subject and the headers of a message, beside its body.
const HEADROOM: usize = 8 << 10;

/// The longest body of a message, given the server's limit for the whole message.
pub const fn max_body_len(max_payload: usize) -> usize {
    max_payload.saturating_sub(HEADROOM)
}

/// Why a payload cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no bucket, and it cannot be created.
    #[error("cannot create the bucket for large payloads: {0}")]
    Bucket(CreateObjectStoreError),
    /// The server did not store the object.
    #[error("cannot store a large payload: {0}")]
    Put(#[from] PutError),
}

/// Stores a payload in the bucket of `config`, which is created if it does not exist.
pub async fn store_large_payload(
    context: &Context,
    config: object_store::Config,
    object: ObjectMetadata,
    mut payload: &[u8],
) -> Result<(), StoreError> {
    let bucket = match context.get_object_store(&config.bucket).await {
        Ok(bucket) => bucket,
        Err(_) => context.create_object_store(config).await.map_err(StoreError::Bucket)?,
    };
    bucket.put(object, &mut payload).await?;
    Ok(())
}
