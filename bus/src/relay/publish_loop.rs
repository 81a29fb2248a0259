//! Publishes batch after batch over one connection, until it breaks or the relay stops.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::object_store::ObjectMetadata;
use async_nats::jetstream::{Context, object_store};

use super::batch::{Committed, MessageIds, PublishError, Publisher};
use super::batch_builder::{Batch, BatchLimits, build_next};
use super::follow::Follower;
use super::large::{BUCKET, store_large_payload};
use super::object_sweep;
use super::position::StreamPosition;
use crate::event::{BusId, EventId, Seq, Time};
use crate::log::{LogReader, Row};

/// While there are no new events, the position in the stream is checked this often.
const CHECK_STREAM: Duration = Duration::from_secs(3);

/// How much longer than a message its payload stays in the bucket, where the stream has a maximum age.
const AFTER_MESSAGE: Duration = Duration::from_hours(1);

/// Publishes the events of one bus.
pub(super) struct PublishLoop<'a> {
    pub(super) relay: &'a Follower,
    pub(super) publisher: Publisher,
    pub(super) context: Context,
    pub(super) bus: BusId,
    pub(super) limits: BatchLimits,
}

/// A batch that was sent and is not acknowledged yet.
struct InFlightBatch {
    committed: Committed,
    end: (Seq, Time),
}

impl PublishLoop<'_> {
    /// Publishes what comes after `position`, until it fails or the relay stops. While one batch is
    /// being stored, the next one is sent, and the one after that is read from the log. Resets
    /// `failures` with every success.
    pub(super) async fn publish_from(
        &self,
        mut position: StreamPosition,
        ids: MessageIds,
        log: LogReader,
        failures: &mut u32,
    ) -> Result<(), PublishError> {
        let mut checked = Instant::now();
        let mut in_flight = None;
        let mut next = build_next(log, self.bus, position.seq, self.limits);
        while !self.relay.stop.load(Ordering::Relaxed) {
            let built =
                next.await.map_err(|error| PublishError::Interrupted(error.to_string()))??;
            let read_up_to = built.batches.last().map(|batch| batch.end.0);
            if let Some(read_up_to) = read_up_to {
                next = build_next(built.log, self.bus, Some(read_up_to), self.limits);
                for batch in built.batches {
                    in_flight = Some(self.send(batch, ids, in_flight, &mut position).await?);
                    *failures = 0;
                }
                checked = Instant::now();
                continue;
            }
            if in_flight.is_some() {
                self.acknowledge(in_flight.take(), &mut position).await?;
            } else {
                self.relay.state.published(position.seq);
                *failures = 0;
                // The stream may have been emptied, which shows only in its position as long as there
                // are no new events.
                if checked.elapsed() > CHECK_STREAM {
                    return Err(PublishError::StalePosition);
                }
                self.relay.wait().await;
            }
            next = build_next(built.log, self.bus, position.seq, self.limits);
        }
        Ok(())
    }

    /// Sends a batch, and commits it once the previous one is stored.
    async fn send(
        &self,
        batch: Batch,
        ids: MessageIds,
        previous: Option<InFlightBatch>,
        position: &mut StreamPosition,
    ) -> Result<InFlightBatch, PublishError> {
        for row in &batch.large {
            self.store(row).await?;
        }
        let id = EventId::mint(self.relay.clock.now());
        let staged = self.publisher.stage(id, batch.messages, batch.last, ids).await?;
        self.acknowledge(previous, position).await?;
        Ok(InFlightBatch {
            committed: self.publisher.commit(staged, position.stream_sequence),
            end: batch.end,
        })
    }

    /// Waits until a batch is stored, and advances the position.
    async fn acknowledge(
        &self,
        in_flight: Option<InFlightBatch>,
        position: &mut StreamPosition,
    ) -> Result<(), PublishError> {
        let Some(InFlightBatch { committed, end: (seq, _) }) = in_flight else { return Ok(()) };
        let stream_sequence = committed.acknowledged().await?;
        *position = StreamPosition { seq: Some(seq), stream_sequence };
        self.relay.state.published(Some(seq));
        Ok(())
    }

    async fn store(&self, row: &Row) -> Result<(), PublishError> {
        let settings = &self.relay.settings;
        let config = object_store::Config {
            bucket: BUCKET.to_owned(),
            num_replicas: settings.replicas,
            // A payload is stored before its message, and must not be gone before it.
            max_age: settings
                .max_age
                .map_or(Duration::ZERO, |age| age.saturating_add(AFTER_MESSAGE)),
            ..object_store::Config::default()
        };
        let object = ObjectMetadata {
            name: row.id.to_string(),
            description: Some(object_sweep::description(self.bus, row.seq)),
            ..ObjectMetadata::default()
        };
        let stored = store_large_payload(&self.context, config, object, &row.payload).await;
        stored.map_err(|error| PublishError::Interrupted(error.to_string()))
    }
}
