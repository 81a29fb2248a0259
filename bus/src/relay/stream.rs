//! The stream: made if it is not there, looked at if it is. One that was made otherwise is left
//! alone, and a person is told what differs.

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{Context, ErrorCode};

use super::abilities::Abilities;
use super::settings::NatsSettings;

/// Why there is no stream to publish to.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoStream {
    /// Ask again later.
    #[error("{0}")]
    NotNow(String),
    /// A person has to do something.
    #[error("{0}")]
    Wrong(String),
}

/// The stream, ready to be published to.
pub(super) async fn ready(
    context: &Context,
    settings: &NatsSettings,
    abilities: Abilities,
) -> Result<Stream, NoStream> {
    let wanted = config(settings, abilities);
    let mut stream = match context.get_stream(&settings.stream).await {
        Ok(stream) => stream,
        Err(error) if is_missing(&error.kind()) => context
            .create_stream(wanted.clone())
            .await
            .map_err(|error| NoStream::NotNow(format!("cannot make the stream: {error}")))?,
        Err(error) => return Err(NoStream::NotNow(format!("cannot ask for the stream: {error}"))),
    };
    let found = stream
        .info()
        .await
        .map_err(|error| NoStream::NotNow(format!("cannot ask for the stream: {error}")))?;
    let differences = differences(&wanted, &found.config);
    if differences.is_empty() {
        return Ok(stream);
    }
    Err(NoStream::Wrong(format!(
        "the stream {} is not as hookbus needs it: {}; change it, or name another one with `nats: {{ stream: … }}`",
        settings.stream,
        differences.join(", ")
    )))
}

fn config(settings: &NatsSettings, abilities: Abilities) -> Config {
    Config {
        name: settings.stream.clone(),
        subjects: vec!["hookbus.>".to_owned()],
        num_replicas: settings.replicas,
        max_age: settings.max_age.unwrap_or_default(),
        max_bytes: settings.max_bytes.unwrap_or(-1),
        duplicate_window: settings.duplicate_window,
        allow_atomic_publish: abilities == Abilities::Batches,
        allow_direct: true,
        ..Config::default()
    }
}

/// What would break a promise; limits are the business of whoever runs the server.
fn differences(wanted: &Config, found: &Config) -> Vec<String> {
    let mut all = Vec::new();
    if wanted.allow_atomic_publish && !found.allow_atomic_publish {
        all.push("it does not allow atomic batches (`allow_atomic`)".to_owned());
    }
    if !wanted.subjects.iter().all(|subject| found.subjects.contains(subject)) {
        all.push(format!("its subjects are {} and not hookbus.>", found.subjects.join(" ")));
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
