//! How far the stream is with this bus. The stream's own last message says so; a cursor of ours
//! could be ahead of a server that was restored to an older state.

use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use super::abilities::Abilities;
use super::envelope::{HASH, SEQ};
use crate::event::{BusId, Seq, subjects_of};
use crate::log::{LogReader, Query};

/// The last message of a bus in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Its place in the log; none if the stream holds nothing of this bus.
    pub(super) logged: Option<Seq>,
    /// The place in the stream that guards the next batch: that of this message, or of the very last
    /// one where the server has no finer guard.
    pub(super) streamed: u64,
}

/// Why that cannot be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    /// Ask again later.
    #[error("{0}")]
    NotNow(String),
    /// A person has to look.
    #[error("{0}")]
    Wrong(String),
}

/// Asks the stream, and checks that it holds our history and not another one.
pub(super) async fn find(
    stream: &mut Stream,
    abilities: Abilities,
    bus: BusId,
    log: &LogReader,
) -> Result<Position, Lost> {
    let cannot_ask = |error: &dyn std::fmt::Display| {
        Lost::NotNow(format!("cannot ask how far the stream is: {error}"))
    };
    // Asked first: whatever comes in after this makes the guard fail, and not lie.
    let end = match abilities {
        Abilities::Batches | Abilities::GuardPerBus => None,
        Abilities::GuardPerStream => {
            let info = stream.info().await.map_err(|error| cannot_ask(&error))?;
            Some(info.state.last_sequence)
        }
    };
    let last = match stream.get_last_raw_message_by_subject(&subjects_of(bus)).await {
        Ok(last) => last,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            return Ok(Position { logged: None, streamed: end.unwrap_or(0) });
        }
        Err(error) => return Err(cannot_ask(&error)),
    };
    let header = |name: &str| last.headers.get(name).map(|value| value.as_str().to_owned());
    let seq = header(SEQ).and_then(|seq| seq.parse().ok()).map(Seq::from_i64);
    let Some(seq) = seq else {
        return Err(Lost::Wrong(format!(
            "message {} on our subjects is not of hookbus",
            last.sequence
        )));
    };
    let rows = log.last(&Query { seq: Some(seq), ..Query::default() }, 1);
    let rows = rows.map_err(|error| Lost::NotNow(error.to_string()))?;
    let ours = rows.first().map(|row| hex::encode(row.hash));
    if ours.is_none() || ours != header(HASH) {
        return Err(Lost::Wrong(format!(
            "the stream holds row {seq} of this bus with another hash than the log: one of them was \
             put back to an older state and written on; nothing is published until a person has looked"
        )));
    }
    Ok(Position { logged: Some(seq), streamed: end.unwrap_or(last.sequence) })
}
