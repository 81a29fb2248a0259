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
    let folder = path.file().parent().unwrap_or(path.file());
    // A project's are in force there only, and without observers.
    for row in log.own_hooks(1000)?.iter().rev() {
        let payload = row.payload_json();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hookbus::event::{Clock, EventId, Kind, SystemClock};
    use hookbus::log::{Draft, Durability, HooksDraft, Kept, Recorder, Spool};

    use super::*;

    #[tokio::test]
    async fn the_hooks_of_projects_do_not_hide_where_an_observer_starts() {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let spool = Spool::new(home.path(), &[]);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let recorder =
            Recorder::for_client(log.clone(), Durability::ProcessDeath, spool, Arc::clone(&clock));
        let own = "trust: home\nhooks: { '*': [{ name: look, mode: observe, command: 'true' }] }\n";
        let hooks = |path: String, content: &str, of_project: bool| {
            let content = content.to_owned();
            Arc::new(HooksDraft { hash: format!("of {path}"), path, content, of_project })
        };
        let event = || Draft {
            id: EventId::mint(clock.now()),
            at: clock.now(),
            agent: "hermes".to_owned(),
            session: String::new(),
            turn: None,
            name: "agent:step".to_owned(),
            kind: Kind::AgentStep,
            tool: None,
            tool_class: None,
            context: None,
            payload: b"{}".to_vec(),
        };
        let own = hooks("/h/hookbus.yaml".to_owned(), own, false);
        let mine = recorder.event(event(), None, vec![own], Duration::MAX).await;
        assert!(matches!(mine, Kept::Logged { .. }), "{mine:?}");
        let theirs =
            (0..1100).map(|at| hooks(format!("/p{at}/.hookbus/hookbus.yaml"), "x: 1", true));
        recorder.event(event(), None, theirs.collect(), Duration::MAX).await;
        let bus = LogReader::open(&log).map(|log| log.bus()).expect("a log").expect("a bus");
        let start = start_in_log(&log, "look", clock.now()).expect("a start");
        assert_eq!(start.of(bus).map(|place| place.seq), Some(Seq::FIRST));
    }
}
