//! Reads rows from the log and turns them into batches of messages, in a blocking thread while the
//! previous batches are being published.

use std::mem;

use tokio::task::JoinHandle;

use super::batch::PublishError;
use super::envelope::{Message, message};
use super::large::{BUCKET, max_body_len};
use crate::event::{BusId, Seq, Time};
use crate::log::{LogReader, Query, ReadError, Row, StoredPayload};

/// The most rows that are read in one query.
const MAX_ROWS: usize = 1000;

/// The most bytes of payload, so that a slow connection delivers them before the acknowledgement
/// times out.
const MAX_BYTES: usize = 4 << 20;

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    /// The server's limit for one message, in bytes.
    pub(super) max_payload: usize,
    /// The most messages in one batch.
    pub(super) max_messages: usize,
}

/// Messages that the stream stores all or none.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) messages: Vec<Message>,
    /// The message after these, which commits the batch.
    pub(super) last: Message,
    /// Rows whose payload has to be stored in the object store first.
    pub(super) large: Vec<Row>,
    /// The seq and the time of the last message.
    pub(super) end: (Seq, Time),
}

/// The next batches of the log; none if there are no new rows.
pub(super) struct NextBatches {
    pub(super) batches: Vec<Batch>,
    /// To read the next ones with.
    pub(super) log: LogReader,
}

/// Reads the rows after `after` and builds batches of them.
pub(super) fn build_next(
    log: LogReader,
    bus: BusId,
    after: Option<Seq>,
    limits: BatchLimits,
) -> JoinHandle<Result<NextBatches, PublishError>> {
    tokio::task::spawn_blocking(move || {
        let rows = log.after(&Query::default(), after, MAX_ROWS);
        let rows = rows.map_err(|error: ReadError| PublishError::Interrupted(error.to_string()))?;
        Ok(NextBatches { batches: build(rows, bus, limits), log })
    })
}

/// Batches of `rows`, up to `MAX_BYTES` in all.
fn build(rows: Vec<Row>, bus: BusId, limits: BatchLimits) -> Vec<Batch> {
    let max_body = max_body_len(limits.max_payload);
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        bytes += row.payload.len();
        if bytes > MAX_BYTES && !batches.is_empty() {
            break;
        }
        let end = (row.seq, row.at);
        let complete = message(bus, &row, None);
        let (message, large) = if complete.body.len() <= max_body {
            (complete, None)
        } else {
            let stored = StoredPayload::new(BUCKET, row.id, &row.payload);
            (message(bus, &row, Some(&stored)), Some(row))
        };
        match batches.last_mut() {
            Some(batch) if batch.messages.len() + 1 < limits.max_messages => {
                batch.messages.push(mem::replace(&mut batch.last, message));
                batch.large.extend(large);
                batch.end = end;
            }
            Some(_) | None => batches.push(Batch {
                messages: Vec::new(),
                last: message,
                large: Vec::from_iter(large),
                end,
            }),
        }
    }
    batches
}
