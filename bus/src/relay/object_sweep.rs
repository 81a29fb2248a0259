//! Deletes the objects of this bus whose messages the stream does not hold any more: messages age out of the stream, and
//! without this the payloads that were too large for them would stay for ever.
//!
//! The rows of a bus are in the stream in log order. So the messages of all rows before the first one that it holds are gone. That
//! one counts only if the log holds the same row: other people may write to the subjects. An object is ours if the log
//! holds its row, or if it says that it is of this bus. It runs between two batches, never beside one, so that no object
//! is deleted whose message is just being published.

use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::ObjectInfo;
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt;

use super::large::BUCKET;
use super::own_messages::own_seq;
use crate::event::{BusId, EventId, Seq, bus_subjects};
use crate::log::{LogReader, ReadError};

/// Between two sweeps.
const INTERVAL: Duration = Duration::from_mins(10);

/// How long one may take: nothing is published meanwhile.
const LONGEST: Duration = Duration::from_secs(5);

/// How many messages at the beginning of the stream are looked at for one of ours.
const MOST_FOREIGN: usize = 20;

/// When objects are deleted again.
#[derive(Debug, Default)]
pub(super) struct ObjectSweep {
    next: Option<Instant>,
}

/// What an object of this bus says about itself.
pub(super) fn description(bus: BusId, seq: Seq) -> String {
    format!("{PREFIX}{bus} row {seq}")
}

const PREFIX: &str = "hookbus bus ";

impl ObjectSweep {
    /// Deletes what is to be deleted, if it is time for that. Without the permission nothing is deleted, which is no failure
    /// of the relay.
    pub(super) async fn run(
        &mut self,
        context: &Context,
        stream: &Stream,
        (bus, log): (BusId, &LogReader),
    ) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        self.next = Some(Instant::now() + INTERVAL);
        match tokio::time::timeout(LONGEST, sweep(context, stream, bus, log)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(deleted)) => tracing::info!(deleted, "deleted payloads of old messages"),
            Ok(Err(error)) => tracing::debug!(%error, "payloads of old messages are not deleted"),
            // The next one goes on where this one was.
            Err(_) => self.next = None,
        }
    }
}

async fn sweep(
    context: &Context,
    stream: &Stream,
    bus: BusId,
    log: &LogReader,
) -> Result<usize, async_nats::Error> {
    // There is no bucket before the first large payload.
    let Ok(bucket) = context.get_object_store(BUCKET).await else { return Ok(0) };
    let Some(first) = first_own_row(stream, bus, log).await? else { return Ok(0) };
    let mut old = Vec::new();
    let mut objects = bucket.list().await?;
    while let Some(object) = objects.next().await {
        let object = object?;
        if !object.deleted && row_of(&object, bus, log)?.is_some_and(|seq| seq < first) {
            old.push(object.name);
        }
    }
    for name in &old {
        bucket.delete(name).await?;
    }
    Ok(old.len())
}

/// The first row of this bus that the stream holds; none if it holds none, or if too many others are before it.
async fn first_own_row(
    stream: &Stream,
    bus: BusId,
    log: &LogReader,
) -> Result<Option<Seq>, async_nats::Error> {
    let mut sequence = 1;
    for _ in 0..MOST_FOREIGN {
        let found = stream.get_first_raw_message_by_subject(bus_subjects(bus), sequence).await;
        let Ok(message) = found else { return Ok(None) };
        if let Some(seq) = own_seq(log, bus, &message)? {
            return Ok(Some(seq));
        }
        sequence = message.sequence.saturating_add(1);
    }
    Ok(None)
}

/// The row whose payload an object is; none if it is not one of this bus.
fn row_of(object: &ObjectInfo, bus: BusId, log: &LogReader) -> Result<Option<Seq>, ReadError> {
    let Ok(id) = object.name.parse::<EventId>() else { return Ok(None) };
    if let Some(seq) = log.seq_of(id)? {
        return Ok(Some(seq));
    }
    // Its row was removed from the log on purpose.
    let said = object.description.as_deref().and_then(|text| text.strip_prefix(PREFIX));
    let said = said.and_then(|text| text.split_once(" row "));
    Ok(said.and_then(|(of, seq)| {
        let is_ours = of == bus.to_string();
        seq.parse().ok().filter(|_| is_ours).map(Seq::from_i64)
    }))
}
