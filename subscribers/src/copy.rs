//! A stream, copied into an archive once: what a replay straight from NATS stands on.

use hookbus::envelope::Travelled;
use hookbus::event::Time;
use hookbus::log::Archive;
use hookbus::relay::NatsSettings;

use crate::ledger::Trouble;
use crate::line::Line;
use crate::position::Position;
use crate::source::{Arrived, StreamTail, Tail};

/// How many events are copied in one go.
const BATCH: usize = 500;

/// Copies what the stream holds now, from `since` on, into `archive`; tells `progress` how many
/// messages of how many are behind it. Gives back how many rows there were.
pub async fn copy_stream(
    settings: &NatsSettings,
    since: Option<Time>,
    archive: &mut Archive,
    mut progress: impl FnMut(u64, u64),
) -> Result<u64, Trouble> {
    let mut position = since.map_or_else(Position::start, Position::since);
    let mut tail = Tail::Nats(Box::new(StreamTail::of_everything(Line::to(settings.clone()))));
    let (mut copied, mut whole) = (0, None);
    loop {
        let arrived = tail.next(&mut position, BATCH).await?;
        if arrived.is_empty() {
            if tail.is_at_end() {
                return Ok(copied);
            }
            continue;
        }
        let mut rows = Vec::with_capacity(arrived.len());
        for Arrived { bus, mut row, mark, stored } in arrived {
            position.advance(bus, &row, mark);
            if let Some(stored) = stored {
                row.payload = tail.fetch(&stored).await?;
            }
            rows.push(Travelled { bus, row, stored: None });
        }
        archive.take_in(&rows).map_err(|error| Trouble(error.to_string()))?;
        copied += rows.len() as u64;
        if whole.is_none() {
            whole = tail.lag(&position).await.map(|lag| lag + copied);
        }
        progress(copied, whole.unwrap_or(copied));
    }
}
