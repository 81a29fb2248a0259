//! The signed checkpoints of a bus that a stream holds, for `hookbus verify --against` and `hookbus anchor --to nats`. They are
//! rows of the log like all others, so that the relay publishes them, and a bus needs no other permission.

use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;

use super::connect::connect;
use super::error::RelayError;
use super::own_messages::for_each_message;
use super::published_head::PublishedHeadError;
use super::received_message::{ReceivedMessage, StreamForm};
use crate::config::NatsSettings;
use crate::event::{BusId, Kind, subject};
use crate::log::{CheckpointError, SignedCheckpoint};

/// Reads the checkpoints of `bus` in the stream, the oldest first. A message that is no row of this bus is left out: a person
/// with the password of the server can publish it.
pub async fn published_checkpoints(
    settings: &NatsSettings,
    bus: BusId,
) -> Result<Vec<Result<SignedCheckpoint, CheckpointError>>, PublishedHeadError> {
    let connection = connect(settings, "hookbus verify").await.map_err(RelayError::from)?;
    let stream = jetstream::new(connection.client)
        .get_stream(&settings.stream)
        .await
        .map_err(|error| RelayError::LookUpStream(error.to_string()))?;
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::All,
        filter_subject: subject(bus, "hookbus", "", Kind::LogCheckpoint.as_str()),
        ..OrderedConfig::default()
    };
    let mut found = Vec::new();
    for_each_message(&stream, config, u64::MAX, |sequence, message| {
        let received = StreamForm::live().read(ReceivedMessage {
            subject: message.subject.as_str(),
            headers: message.headers.as_ref(),
            body: &message.payload,
            sequence,
        });
        if let Some(received) = received.ok().filter(|received| received.bus == bus) {
            found.push(SignedCheckpoint::from_json(&received.row.payload_json()));
        }
        Ok(())
    })
    .await?;
    Ok(found)
}
