//! How far the stream is with this bus, read from the stream's last message of this bus. A cursor of
//! our own could be ahead of a server that was restored from an older copy.

use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use super::envelope::{HASH, SEQ};
use super::error::RelayError;
use super::server_features::ServerFeatures;
use crate::event::{BusId, Seq, bus_subjects};
use crate::log::{LogReader, Query};

/// The last message of a bus in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamPosition {
    /// Its seq in the log; none if the stream holds nothing of this bus.
    pub(super) seq: Option<Seq>,
    /// The stream sequence that the next batch has to expect: that of this message, or of the last
    /// message of any bus if the server can only check the whole stream.
    pub(super) stream_sequence: u64,
}

/// Reads the position, and checks that the stream and the log have the same history.
pub(super) async fn find(
    stream: &mut Stream,
    features: ServerFeatures,
    bus: BusId,
    log: &LogReader,
) -> Result<StreamPosition, RelayError> {
    let failed = |error: &dyn std::fmt::Display| RelayError::ReadPosition(error.to_string());
    // Read before our last message: whatever is published in between makes the server refuse the next
    // batch. In the other order, a row that another relay of this bus publishes would be stored twice.
    let end = match features {
        ServerFeatures::AtomicBatches | ServerFeatures::CheckPerBus => None,
        ServerFeatures::CheckPerStream => {
            let info = stream.info().await.map_err(|error| failed(&error))?;
            Some(info.state.last_sequence)
        }
    };
    let last = match stream.get_last_raw_message_by_subject(&bus_subjects(bus)).await {
        Ok(last) => last,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            return Ok(StreamPosition { seq: None, stream_sequence: end.unwrap_or(0) });
        }
        Err(error) => return Err(failed(&error)),
    };
    let header = |name: &str| last.headers.get(name).map(|value| value.as_str().to_owned());
    let seq = header(SEQ).and_then(|seq| seq.parse().ok()).map(Seq::from_i64);
    let seq = seq.ok_or(RelayError::ForeignMessage(last.sequence))?;
    let rows = log.last(&Query { seq: Some(seq), ..Query::default() }, 1)?;
    let logged_hash = rows.first().map(|row| hex::encode(row.hash));
    if logged_hash.is_none() || logged_hash != header(HASH) {
        return Err(RelayError::Diverged(seq));
    }
    Ok(StreamPosition { seq: Some(seq), stream_sequence: end.unwrap_or(last.sequence) })
}
