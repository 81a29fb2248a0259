//! Payloads that are larger than a message may be: they are kept in the object store, and the message
//! says where.

use async_nats::jetstream::{Context, object_store};

/// What subject and headers may need beside a body.
const HEADROOM: usize = 8 << 10;

/// How large a body may be where a message may be this large.
pub const fn room_in(max_payload: usize) -> usize {
    max_payload.saturating_sub(HEADROOM)
}

/// Puts a payload into the bucket of `config`, which is made if it is not there.
pub async fn store_large(
    context: &Context,
    config: object_store::Config,
    object: &str,
    mut payload: &[u8],
) -> Result<(), String> {
    let bucket = match context.get_object_store(&config.bucket).await {
        Ok(bucket) => bucket,
        Err(_) => context.create_object_store(config).await.map_err(|error| error.to_string())?,
    };
    bucket.put(object, &mut payload).await.map_err(|error| error.to_string())?;
    Ok(())
}
