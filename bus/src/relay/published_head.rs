//! The last row of a bus that a stream holds, for `hookbus verify --against`: a copy of the log's end that is not
//! on this machine.
//!
//! A person with the password of the server can publish on the subjects of this bus: garbage, and copies of old
//! rows, which must not hide the last one. So all messages of the bus are looked at, first only their headers, and
//! of those with the highest row the first one counts that is a row of this bus in all its parts.

use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use super::connect::connect;
use super::envelope::SEQ;
use super::error::RelayError;
use super::own_messages::for_each_message;
use super::received_message::{ReceivedMessage, StreamForm};
use crate::config::NatsSettings;
use crate::event::{BusId, Seq, bus_subjects};
use crate::log::Received;

/// Why the last row cannot be read from the stream.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PublishedHeadError(#[from] pub(super) RelayError);

/// Reads the last row of `bus` in the stream, with its hash; none if the stream holds nothing of it.
pub async fn published_head(
    settings: &NatsSettings,
    bus: BusId,
) -> Result<Option<(Seq, [u8; 32])>, PublishedHeadError> {
    let connection = connect(settings, "hookbus verify").await.map_err(RelayError::from)?;
    let stream = jetstream::new(connection.client)
        .get_stream(&settings.stream)
        .await
        .map_err(|error| RelayError::LookUpStream(error.to_string()))?;
    for Candidate { sequence, .. } in candidates(&stream, bus).await? {
        if let Some(Received { row, .. }) = read(&stream, bus, sequence).await? {
            return Ok(Some((row.seq, row.hash)));
        }
    }
    Ok(None)
}

/// A message that says which row it holds.
struct Candidate {
    seq: Seq,
    sequence: u64,
}

/// All candidates, the highest row first; of the messages with one row, the one that was published first.
async fn candidates(stream: &Stream, bus: BusId) -> Result<Vec<Candidate>, RelayError> {
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::All,
        filter_subject: bus_subjects(bus),
        headers_only: true,
        ..OrderedConfig::default()
    };
    let mut candidates = Vec::new();
    for_each_message(stream, config, u64::MAX, |sequence, message| {
        let seq = message.headers.as_ref().and_then(header_seq);
        candidates.extend(seq.map(|seq| Candidate { seq, sequence }));
        Ok(())
    })
    .await?;
    candidates.sort_by(|one, other| {
        other.seq.cmp(&one.seq).then_with(|| one.sequence.cmp(&other.sequence))
    });
    Ok(candidates)
}

fn header_seq(headers: &HeaderMap) -> Option<Seq> {
    headers.get(SEQ)?.as_str().parse().ok().map(Seq::from_i64)
}

/// The row of `bus` that a message holds; none if it holds none, or was deleted in the meantime.
async fn read(stream: &Stream, bus: BusId, sequence: u64) -> Result<Option<Received>, RelayError> {
    let message = match stream.get_raw_message(sequence).await {
        Ok(message) => message,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
        Err(error) => return Err(RelayError::ReadPosition(error.to_string())),
    };
    let received = StreamForm::live().read(ReceivedMessage {
        subject: message.subject.as_str(),
        headers: Some(&message.headers),
        body: &message.payload,
        sequence,
    });
    Ok(received.ok().filter(|received| received.bus == bus))
}
