//! Straight from the log of this machine's bus.

use std::os::unix::fs::MetadataExt;

use hookbus::decide::Hooks;
use hookbus::event::{BusId, Seq, Time};
use hookbus::log::{LogPath, LogReader, OpenError, Query, ReadError};

use super::Arrived;
use super::wake::Wake;
use crate::ledger::Trouble;
use crate::position::Position;

/// So many bytes are read in one go, at the most.
const MOST_BYTES: usize = 8 << 20;

/// The end of a log.
#[derive(Debug)]
pub(crate) struct LogTail {
    path: LogPath,
    open: Option<Open>,
    wake: Wake,
}

#[derive(Debug)]
struct Open {
    log: LogReader,
    bus: BusId,
    /// Which file it is: a log may be taken away and another one put in its place.
    inode: Option<u64>,
}

impl LogTail {
    pub(crate) fn new(path: LogPath) -> Self {
        let folder = path.file().parent().unwrap_or(path.file()).to_owned();
        Self { path, open: None, wake: Wake::on(&folder) }
    }

    pub(super) async fn next(
        &mut self,
        position: &mut Position,
        most: usize,
    ) -> Result<Vec<Arrived>, Trouble> {
        let found = self.read(position, most)?;
        if !found.is_empty() {
            return Ok(found);
        }
        self.wake.wait().await;
        self.read(position, most)
    }

    fn read(&mut self, position: &mut Position, most: usize) -> Result<Vec<Arrived>, Trouble> {
        let Some(Open { log, bus, .. }) = self.open()? else {
            return Ok(Vec::new());
        };
        let mut rows = log.after(&Query::default(), done_in(log, *bus, position)?, most)?;
        let bytes = rows.iter().scan(0, |bytes, row| {
            *bytes += row.payload.len();
            Some(*bytes)
        });
        let fit = bytes.take_while(|bytes| *bytes < MOST_BYTES).count();
        rows.truncate(fit.max(1));
        let bus = *bus;
        Ok(rows.into_iter().map(|row| Arrived { bus, row, mark: None, stored: None }).collect())
    }

    /// The log; none if there is none yet.
    fn open(&mut self) -> Result<Option<&Open>, ReadError> {
        let inode = std::fs::metadata(self.path.file()).ok().map(|file| file.ino());
        if self.open.as_ref().is_none_or(|open| open.inode != inode) {
            self.open = match LogReader::open(&self.path) {
                Ok(log) => {
                    let bus = log.bus()?;
                    Some(Open { log, bus, inode })
                }
                Err(OpenError::Missing(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.open.as_ref())
    }

    pub(super) fn lag(&mut self, position: &Position) -> Option<u64> {
        let Open { log, bus, .. } = self.open().ok().flatten()?;
        let head = log.head().ok()?.map_or(0, |(seq, _)| seq.as_i64());
        let seen = position.of(*bus).map_or(0, |place| place.seq.as_i64());
        u64::try_from(head - seen).ok()
    }
}

/// The place that is done. A log that was put back to an older state has other rows at its places:
/// then what happened after the last one seen is still to come, and the position goes back to there.
fn done_in(log: &LogReader, bus: BusId, position: &mut Position) -> Result<Option<Seq>, ReadError> {
    let Some(last) = position.of(bus) else { return Ok(None) };
    let Some(id) = last.id else { return Ok(Some(last.seq)) };
    if log.seq_of(id)? != Some(last.seq)
        && let Some(next) = log.first_after(id)?
    {
        let (seen, from) = (last.seq.as_i64(), next.as_i64());
        tracing::warn!(seen, from, "the log was put back to an older state; going on from there");
        let done = Seq::from_i64(from - 1);
        position.place(bus, done, None);
        return Ok(Some(done));
    }
    Ok(Some(last.seq))
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self(error.to_string())
    }
}

/// Where the observer `name` starts when it is new: where the hooks that have it came into force,
/// so that the first event under them is seen. With the moment, for a stream.
pub(crate) fn start_in_log(path: &LogPath, name: &str, now: Time) -> Result<Position, Trouble> {
    let log = match LogReader::open(path) {
        Ok(log) => log,
        Err(OpenError::Missing(_)) => {
            return Ok(Position::since(now));
        }
        Err(error) => return Err(ReadError::from(error).into()),
    };
    let (mut place, mut since) = (log.head()?.map(|(seq, _)| seq), now);
    let loaded = Query { kind: Some("hooks.loaded".to_owned()), ..Query::default() };
    let folder = path.file().parent().unwrap_or(path.file());
    for row in log.last(&loaded, 1000)?.iter().rev() {
        let payload = row.payload_json();
        if payload["project"] == true {
            continue; // in force there only, and without observers
        }
        let content = payload["content"].as_str().unwrap_or_default();
        if !Hooks::parse(content, folder).is_ok_and(|hooks| hooks.observer(name).is_some()) {
            break;
        }
        (place, since) = (Some(row.seq), row.at);
    }
    let mut position = Position::since(since);
    if let Some(place) = place {
        position.place(log.bus()?, place, None);
    }
    Ok(position)
}
