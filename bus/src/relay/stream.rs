//! Creates the stream if it does not exist, and checks its configuration if it does. An existing stream
//! is never changed; the user is told what has to be different.

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{Context, ErrorCode};

use super::error::RelayError;
use super::server_features::ServerFeatures;
use crate::config::NatsSettings;

/// The stream to publish to, created if necessary.
pub(super) async fn get_or_create(
    context: &Context,
    settings: &NatsSettings,
    features: ServerFeatures,
) -> Result<Stream, RelayError> {
    let wanted = config(settings, features);
    let mut stream = match context.get_stream(&settings.stream).await {
        Ok(stream) => stream,
        Err(error) if is_missing(&error.kind()) => context
            .create_stream(wanted.clone())
            .await
            .map_err(|error| RelayError::CreateStream(error.to_string()))?,
        Err(error) => return Err(RelayError::LookUpStream(error.to_string())),
    };
    let found = stream.info().await.map_err(|error| RelayError::LookUpStream(error.to_string()))?;
    let differences = differences(&wanted, &found.config);
    if differences.is_empty() {
        return Ok(stream);
    }
    Err(RelayError::UnfitStream { stream: settings.stream.clone(), differences })
}

fn config(settings: &NatsSettings, features: ServerFeatures) -> Config {
    Config {
        name: settings.stream.clone(),
        subjects: vec!["hookbus.>".to_owned()],
        num_replicas: settings.replicas,
        max_age: settings.max_age.unwrap_or_default(),
        max_bytes: settings.max_bytes.unwrap_or(-1),
        duplicate_window: settings.duplicate_window,
        allow_atomic_publish: features == ServerFeatures::AtomicBatches,
        allow_direct: true,
        ..Config::default()
    }
}

/// What would break a promise of the relay. Limits may differ: the operator of the server sets them.
fn differences(wanted: &Config, found: &Config) -> Vec<String> {
    let mut all = Vec::new();
    if wanted.allow_atomic_publish && !found.allow_atomic_publish {
        all.push("it does not allow atomic batches (`allow_atomic`)".to_owned());
    }
    if !wanted.subjects.iter().all(|subject| found.subjects.contains(subject)) {
        all.push(format!("its subjects are {} instead of hookbus.>", found.subjects.join(" ")));
    }
    if found.num_replicas != wanted.num_replicas {
        all.push(format!(
            "it has {} replicas, {} are configured",
            found.num_replicas, wanted.num_replicas
        ));
    }
    all
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}
