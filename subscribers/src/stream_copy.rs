//! Copies a stream into an archive, so that `hookbus replay --nats` can read it like a log.

use hookbus::config::NatsSettings;
use hookbus::event::{Kind, Time, event_filter};
use hookbus::log::{Archive, Received};

use crate::connection::NatsConnection;
use crate::error::ObserverError;
use crate::position::ObserverPosition;
use crate::refused::RefusedMessage;
use crate::source::{SourceEvent, StreamSource};

/// How many events are copied per batch.
const BATCH: usize = 500;

/// Copies what the stream holds now, from `since` on, into `archive`. The hooks files that were in force
/// before `since` are copied as well. `progress` gets the number of copied messages and the total. Returns
/// why rows were left out, one reason per row or message.
pub async fn copy_stream(
    settings: &NatsSettings,
    since: Option<Time>,
    archive: &mut Archive,
    mut progress: impl FnMut(u64, u64),
) -> Result<Vec<String>, ObserverError> {
    let connection = NatsConnection::new(settings.clone());
    let mut refused = Vec::new();
    if since.is_some() {
        let subjects = vec![event_filter(Some("hookbus"), Kind::HooksLoaded.as_str())];
        let source = StreamSource::new(connection.clone(), subjects);
        copy(source, ObserverPosition::start(), archive, &mut refused, |_, _| {}).await?;
    }
    let position = since.map_or_else(ObserverPosition::start, ObserverPosition::since);
    let source = StreamSource::of_all_events(connection);
    copy(source, position, archive, &mut refused, &mut progress).await?;
    Ok(refused)
}

async fn copy(
    mut source: StreamSource,
    mut position: ObserverPosition,
    archive: &mut Archive,
    refused: &mut Vec<String>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), ObserverError> {
    let mut copied = 0;
    while let Some(batch) = source.next_until_end(&position, BATCH).await? {
        position.move_mark(batch.end);
        let describe = |message: &RefusedMessage| {
            format!("message {} of the stream is left out: {}", message.sequence, message.reason)
        };
        refused.extend(batch.refused.iter().map(describe));
        let rows = batch.events.into_iter();
        let rows: Vec<Received> =
            rows.map(|SourceEvent { bus, row, .. }| Received { bus, row, stored: None }).collect();
        add_rows(archive, &rows, refused)?;
        copied += rows.len() as u64;
        progress(copied, copied + source.pending());
    }
    Ok(())
}

/// Adds all rows in one transaction, or one by one if the archive refuses one of them.
fn add_rows(
    archive: &mut Archive,
    rows: &[Received],
    refused: &mut Vec<String>,
) -> Result<(), ObserverError> {
    if archive.append(rows).is_ok() {
        return Ok(());
    }
    for row in rows {
        match archive.append([row]) {
            Ok(_) => {}
            Err(error) if error.is_wrong_row() => {
                refused.push(error.to_string());
            }
            Err(error) => return Err(ObserverError::Archive(error)),
        }
    }
    Ok(())
}
