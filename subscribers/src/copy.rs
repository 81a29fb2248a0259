//! A stream, copied into an archive once: what a replay straight from NATS stands on.

use hookbus::envelope::Travelled;
use hookbus::event::{Kind, Time, event_subjects};
use hookbus::log::{Archive, ArchiveError};
use hookbus::relay::NatsSettings;

use crate::ledger::Trouble;
use crate::line::Line;
use crate::position::Position;
use crate::source::{Arrived, StreamTail};

/// How many events are copied in one go.
const BATCH: usize = 500;

/// Copies what the stream holds now, from `since` on, into `archive`, with the hooks that were in force
/// before; tells `progress` how many messages of how many are behind it. Gives back what is wrong with
/// rows that were left out.
pub async fn copy_stream(
    settings: &NatsSettings,
    since: Option<Time>,
    archive: &mut Archive,
    mut progress: impl FnMut(u64, u64),
) -> Result<Vec<String>, Trouble> {
    let line = Line::to(settings.clone());
    let mut mistakes = Vec::new();
    if since.is_some() {
        let hooks = Kind::HooksLoaded.as_str();
        let subjects = vec![event_subjects(Some("hookbus"), hooks)];
        let tail = StreamTail::new(line.clone(), subjects);
        copy(tail, Position::start(), archive, &mut mistakes, |_, _| {}).await?;
    }
    let position = since.map_or_else(Position::start, Position::since);
    let tail = StreamTail::of_everything(line);
    copy(tail, position, archive, &mut mistakes, &mut progress).await?;
    Ok(mistakes)
}

async fn copy(
    mut tail: StreamTail,
    mut position: Position,
    archive: &mut Archive,
    mistakes: &mut Vec<String>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), Trouble> {
    let mut copied = 0;
    while let Some(arrived) = tail.next_until_end(&position, BATCH).await? {
        let rows: Vec<Travelled> = arrived
            .into_iter()
            .map(|Arrived { bus, row, mark, .. }| {
                position.advance(bus, &row, mark);
                Travelled { bus, row, stored: None }
            })
            .collect();
        take_in(archive, &rows, mistakes)?;
        copied += rows.len() as u64;
        progress(copied, copied + tail.pending());
    }
    Ok(())
}

/// All rows at once; one by one if something is wrong with one of them.
fn take_in(
    archive: &mut Archive,
    rows: &[Travelled],
    mistakes: &mut Vec<String>,
) -> Result<(), Trouble> {
    if archive.take_in(rows).is_ok() {
        return Ok(());
    }
    for row in rows {
        match archive.take_in([row]) {
            Ok(_) => {}
            Err(error @ (ArchiveError::Differs { .. } | ArchiveError::Broken { .. })) => {
                mistakes.push(error.to_string());
            }
            Err(ArchiveError::Append(error)) => return Err(Trouble(error.to_string())),
        }
    }
    Ok(())
}
