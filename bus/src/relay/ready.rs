//! Rows as messages, ready to go: read from the log and written up in a thread for such work, while
//! the rows before are on their way.

use std::mem;

use tokio::task::JoinHandle;

use super::batch::NotStored;
use super::envelope::{Message, message};
use super::large::room_in;
use crate::event::{BusId, Seq, Time};
use crate::log::{LogReader, Query, ReadError, Row};

/// How many rows are read in one go.
const MOST_ROWS: usize = 1000;

/// And how many bytes, so that a slow line acknowledges them in time.
const MOST_BYTES: usize = 4 << 20;

/// The bucket for payloads that are larger than a message may be.
pub(super) const BUCKET: &str = "HOOKBUS_LARGE";

/// What fits this connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How large a message may be.
    pub(super) max_payload: usize,
    /// How many messages may be published at once.
    pub(super) most_messages: usize,
}

/// Messages that are published all or none.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) messages: Vec<Message>,
    /// The message after these.
    pub(super) last: Message,
    /// Rows whose payload goes to the object store first.
    pub(super) large: Vec<Row>,
    /// The place in the log of the last message, and its time.
    pub(super) reaches: (Seq, Time),
}

/// What is new in the log.
pub(super) struct Ready {
    pub(super) batches: Vec<Batch>,
    /// To read on with.
    pub(super) log: LogReader,
}

/// Reads the rows after `after` and makes messages of them.
pub(super) fn prepare(
    log: LogReader,
    bus: BusId,
    after: Option<Seq>,
    limits: Limits,
) -> JoinHandle<Result<Ready, NotStored>> {
    tokio::task::spawn_blocking(move || {
        let rows = log.after(&Query::default(), after, MOST_ROWS);
        let rows = rows.map_err(|error: ReadError| NotStored::Unknown(error.to_string()))?;
        Ok(Ready { batches: batches(rows, bus, limits), log })
    })
}

/// As many of `rows` as one go may hold.
fn batches(rows: Vec<Row>, bus: BusId, limits: Limits) -> Vec<Batch> {
    let room = room_in(limits.max_payload);
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        bytes += row.payload.len();
        if bytes > MOST_BYTES && !batches.is_empty() {
            break;
        }
        let reaches = (row.seq, row.at);
        let whole = message(bus, &row, None);
        let (message, large) = if whole.body.len() <= room {
            (whole, None)
        } else {
            let object = format!("{BUCKET}/{}", row.id);
            (message(bus, &row, Some(&object)), Some(row))
        };
        match batches.last_mut() {
            Some(batch) if batch.messages.len() + 1 < limits.most_messages => {
                batch.messages.push(mem::replace(&mut batch.last, message));
                batch.large.extend(large);
                batch.reaches = reaches;
            }
            Some(_) | None => batches.push(Batch {
                messages: Vec::new(),
                last: message,
                large: Vec::from_iter(large),
                reaches,
            }),
        }
    }
    batches
}
