//! A connection in good order, and publishing over it, batch after batch.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::{Context, object_store};

use super::batch::{Committed, Ids, NotStored, Publisher};
use super::follow::Follower;
use super::large::store_large;
use super::position::Position;
use super::ready::{BUCKET, Batch, Limits, prepare};
use crate::event::{BusId, EventId, Seq, Time};
use crate::log::LogReader;

/// In quiet times the stream is asked this often whether it still holds what it held.
const LOOK_AT_STREAM: Duration = Duration::from_secs(3);

/// Where the events of one bus go out.
pub(super) struct Line<'a> {
    pub(super) relay: &'a Follower,
    pub(super) publisher: Publisher,
    pub(super) context: Context,
    pub(super) bus: BusId,
    pub(super) limits: Limits,
}

/// A batch under way.
struct UnderWay {
    committed: Committed,
    reaches: (Seq, Time),
}

impl Line<'_> {
    /// Publishes what comes after `position`, until it cannot or shall not. While one batch is being
    /// stored the next is sent, and the one after it is read and written up.
    pub(super) async fn publish_from(
        &self,
        mut position: Position,
        ids: Ids,
        log: LogReader,
        tries: &mut usize,
    ) -> Result<(), NotStored> {
        let mut looked = Instant::now();
        let mut under_way = None;
        let mut next = prepare(log, self.bus, position.logged, self.limits);
        while !self.relay.stop.load(Ordering::Relaxed) {
            let ready = next.await.map_err(|error| NotStored::Unknown(error.to_string()))??;
            let read = ready.batches.last().map(|batch| batch.reaches.0);
            if let Some(read) = read {
                next = prepare(ready.log, self.bus, Some(read), self.limits);
                for batch in ready.batches {
                    under_way = Some(self.send(batch, ids, under_way, &mut position).await?);
                    *tries = 0;
                }
                looked = Instant::now();
                continue;
            }
            if under_way.is_some() {
                self.settle(under_way.take(), &mut position).await?;
            } else {
                self.relay.state.published(position.logged, None);
                *tries = 0;
                // Somebody may have emptied the stream: without new events nothing else would tell.
                if looked.elapsed() > LOOK_AT_STREAM {
                    return Err(NotStored::Overtaken);
                }
                self.relay.wait().await;
            }
            next = prepare(ready.log, self.bus, position.logged, self.limits);
        }
        Ok(())
    }

    /// Sends a batch, and commits it once the one before is stored.
    async fn send(
        &self,
        batch: Batch,
        ids: Ids,
        before: Option<UnderWay>,
        position: &mut Position,
    ) -> Result<UnderWay, NotStored> {
        for row in &batch.large {
            self.store(&row.id.to_string(), &row.payload).await?;
        }
        let id = EventId::mint(self.relay.clock.now());
        let staged = self.publisher.stage(id, batch.messages, batch.last, ids).await?;
        self.settle(before, position).await?;
        Ok(UnderWay {
            committed: self.publisher.commit(staged, position.streamed),
            reaches: batch.reaches,
        })
    }

    /// Waits until a batch under way is stored.
    async fn settle(
        &self,
        under_way: Option<UnderWay>,
        position: &mut Position,
    ) -> Result<(), NotStored> {
        let Some(UnderWay { committed, reaches: (seq, at) }) = under_way else { return Ok(()) };
        let streamed = committed.acknowledged().await?;
        *position = Position { logged: Some(seq), streamed };
        self.relay.state.published(Some(seq), Some(at));
        Ok(())
    }

    async fn store(&self, object: &str, payload: &[u8]) -> Result<(), NotStored> {
        let config = object_store::Config {
            bucket: BUCKET.to_owned(),
            num_replicas: self.relay.settings.replicas,
            ..object_store::Config::default()
        };
        let stored = store_large(&self.context, config, object, payload).await;
        stored.map_err(NotStored::Unknown)
    }
}
