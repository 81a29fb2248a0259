//! Reads events from the log of this machine's bus.

use std::os::unix::fs::MetadataExt;

use hookbus::config::HooksFile;
use hookbus::event::{BusId, Seq, Time};
use hookbus::log::{LogPath, LogReader, OpenError, Query, ReadError};

use super::event_source::{MAX_BATCH_BYTES, SourceEvent};
use super::log_watch::LogWatch;
use crate::error::ObserverError;
use crate::position::ObserverPosition;

/// A log that is read as it grows.
#[derive(Debug)]
pub(crate) struct LogSource {
    path: LogPath,
    open: Option<OpenLog>,
    watch: LogWatch,
}

#[derive(Debug)]
struct OpenLog {
    log: LogReader,
    bus: BusId,
    /// Tells when the file was replaced by another one.
    inode: Option<u64>,
}

impl LogSource {
    pub(crate) fn new(path: LogPath) -> Self {
        let folder = path.file().parent().unwrap_or(path.file()).to_owned();
        Self { path, open: None, watch: LogWatch::on(&folder) }
    }

    pub(super) async fn next(
        &mut self,
        position: &mut ObserverPosition,
        limit: usize,
    ) -> Result<Vec<SourceEvent>, ObserverError> {
        let events = self.read(position, limit)?;
        if !events.is_empty() {
            return Ok(events);
        }
        self.watch.wait().await;
        Ok(self.read(position, limit)?)
    }

    /// After an error the next call opens the log again: its write-ahead log may have been replaced.
    fn read(
        &mut self,
        position: &mut ObserverPosition,
        limit: usize,
    ) -> Result<Vec<SourceEvent>, ReadError> {
        let events = self.read_open(position, limit);
        if events.is_err() {
            self.open = None;
        }
        events
    }

    fn read_open(
        &mut self,
        position: &mut ObserverPosition,
        limit: usize,
    ) -> Result<Vec<SourceEvent>, ReadError> {
        let Some(OpenLog { log, bus, .. }) = self.open()? else {
            return Ok(Vec::new());
        };
        let mut rows = log.after(&Query::default(), last_handled(log, *bus, position)?, limit)?;
        let bytes = rows.iter().scan(0, |bytes, row| {
            *bytes += row.payload.len();
            Some(*bytes)
        });
        let fit = bytes.take_while(|bytes| *bytes < MAX_BATCH_BYTES).count();
        rows.truncate(fit.max(1));
        let bus = *bus;
        let event = |row| SourceEvent { bus, row, mark: None, stored: None };
        Ok(rows.into_iter().map(event).collect())
    }

    /// The log; `None` while there is none.
    fn open(&mut self) -> Result<Option<&OpenLog>, ReadError> {
        let inode = std::fs::metadata(self.path.file()).ok().map(|file| file.ino());
        if self.open.as_ref().is_none_or(|open| open.inode != inode) {
            self.open = match LogReader::open(&self.path) {
                Ok(log) => {
                    let bus = log.bus()?;
                    Some(OpenLog { log, bus, inode })
                }
                Err(OpenError::Missing(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.open.as_ref())
    }

    pub(super) fn lag(&mut self, position: &ObserverPosition) -> Option<u64> {
        let OpenLog { log, bus, .. } = self.open().ok().flatten()?;
        let head = log.head().ok()?.map_or(0, |(seq, _)| seq.as_i64());
        let handled = position.of(*bus).map_or(0, |last| last.seq.as_i64());
        u64::try_from(head - handled).ok()
    }
}

/// The last handled row. A log that was restored from a backup and written on has other rows at the
/// same seqs: then the position moves back to before the first row that is newer than the last handled one.
fn last_handled(
    log: &LogReader,
    bus: BusId,
    position: &mut ObserverPosition,
) -> Result<Option<Seq>, ReadError> {
    let Some(last) = position.of(bus) else { return Ok(None) };
    let Some(id) = last.id else { return Ok(Some(last.seq)) };
    if log.seq_of(id)? != Some(last.seq)
        && let Some(next) = log.first_after(id)?
    {
        let (position_was, from) = (last.seq.as_i64(), next.as_i64());
        tracing::warn!(
            position_was,
            from,
            "the log was restored to an older state; reading on from there"
        );
        let done = Seq::from_i64(from - 1);
        position.set(bus, done, None);
        return Ok(Some(done));
    }
    Ok(Some(last.seq))
}

/// Where the new observer `name` starts: at the row that brought the hooks file with it into force, so
/// that the first event after it is seen. The time of that row is the start for other buses.
pub(crate) fn start_in_log(
    path: &LogPath,
    name: &str,
    now: Time,
) -> Result<ObserverPosition, ObserverError> {
    let log = match LogReader::open(path) {
        Ok(log) => log,
        Err(OpenError::Missing(_)) => return Ok(ObserverPosition::since(now)),
        Err(error) => return Err(ReadError::from(error).into()),
    };
    let (mut seq, mut since) = (log.head()?.map(|(seq, _)| seq), now);
    let folder = path.file().parent().unwrap_or(path.file());
    // Only the user's own hooks files: those of projects have no observers.
    for row in log.user_hooks(1000)?.iter().rev() {
        let payload = row.payload_json();
        let content = payload["content"].as_str().unwrap_or_default();
        if !HooksFile::parse(content, folder)
            .is_ok_and(|file| file.observer_names().contains(&name))
        {
            break;
        }
        (seq, since) = (Some(row.seq), row.at);
    }
    let mut position = ObserverPosition::since(since);
    if let Some(seq) = seq {
        position.set(log.bus()?, seq, None);
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hookbus::event::{Clock, EventId, Kind, SystemClock};
    use hookbus::log::{Durability, HooksSnapshot, RecordOutcome, Recorder, RowDraft, Spool};

    use super::*;

    #[tokio::test]
    async fn many_hooks_files_of_projects_do_not_hide_where_an_observer_starts() {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let spool = Spool::new(home.path(), &[]);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let recorder =
            Recorder::for_client(log.clone(), Durability::ProcessDeath, spool, Arc::clone(&clock));
        let own = "trust: home\nhooks: { '*': [{ name: look, mode: observe, command: 'true' }] }\n";
        let hooks = |path: String, content: &str, of_project: bool| {
            let content = content.to_owned();
            let hash = format!("of {path}");
            Arc::new(HooksSnapshot { hash, path, content, of_project, settings: None })
        };
        let event = || RowDraft {
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
            payload: b"{}".to_vec().into(),
        };
        let own = hooks("/h/hookbus.yaml".to_owned(), own, false);
        let recorded = recorder.event(event(), None, vec![own], Duration::MAX).await;
        assert!(matches!(recorded, RecordOutcome::Logged { .. }), "{recorded:?}");
        let of_projects =
            (0..1100).map(|at| hooks(format!("/p{at}/.hookbus/hookbus.yaml"), "x: 1", true));
        recorder.event(event(), None, of_projects.collect(), Duration::MAX).await;
        let bus = LogReader::open(&log).map(|log| log.bus()).expect("a log").expect("a bus");
        let start = start_in_log(&log, "look", clock.now()).expect("a start");
        assert_eq!(start.of(bus).map(|last| last.seq), Some(Seq::FIRST));
    }
}
