//! The writer: one thread with the only write connection of this process. Jobs that arrive while a
//! commit is being written to disk form the next group commit, so no timer is needed.
//!
//! Every group holds the lock beside the log and reads the last row inside its own transaction, so
//! that several processes can write in turn. While another process holds the lock, callers give up on
//! their jobs one by one and withdraw them.
//!
//! A log that was deleted or replaced, and a write-ahead log that was removed or cut off, are noticed with every group, and
//! before a checkpoint while idle; the group is then appended to the files that are there now.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::append::{AppendCache, AppendTransaction};
use super::open::{self, Durability, Gone, WritableLog, WriterRole};
use super::row::{HooksSnapshot, RowDraft};
use super::{AppendError, LogPath, OpenError};
use crate::event::{BusIdentity, Clock, Seq};
use crate::files::check_private;
use crate::sys::thread::spawn;

/// The most jobs in one commit.
const MAX_GROUP: usize = 512;

/// After this many jobs the daemon checkpoints as soon as it is idle.
const CHECKPOINT_AFTER: usize = 32;

/// The daemon is idle if no job arrives for this long.
const IDLE: Duration = Duration::from_millis(2);

/// After a few jobs the daemon checkpoints when it has been idle for this long: rows that are in `log.db` are not lost if another
/// program removes the write-ahead log.
const LONG_IDLE: Duration = Duration::from_secs(1);

/// How long to wait for a job if there is nothing else to do.
const LONG_WAIT: Duration = Duration::from_hours(1);

/// A group that is not written after this time is stuck: another process holds the log.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// How often a group is appended again because the log was replaced meanwhile.
const MAX_REPLACEMENTS: usize = 8;

/// What to append. Idempotent: a row whose id is already in the log is not added again.
#[derive(Debug)]
pub(super) enum Job {
    /// An event, with its decision if that is known already, and the hooks that made it.
    Event {
        event: Box<RowDraft>,
        decision: Option<Box<RowDraft>>,
        hooks: Vec<Arc<HooksSnapshot>>,
        arrival: Arrival,
        /// Who records it; none in a spool file of an earlier version.
        identity: Option<Arc<BusIdentity>>,
    },
    /// The decision about the event at `cause`.
    Decision { decision: Box<RowDraft>, cause: Seq, identity: Arc<BusIdentity> },
    /// Move the write-ahead log into the file, as far as readers allow.
    Checkpoint,
}

/// When an event is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// When it happened.
    AtOnce,
    /// Later, from the spool. Other hooks may be in force by then.
    Late,
}

impl Job {
    /// The same job with the beginning of each payload only; none if that is what it holds.
    fn cut(&self) -> Option<Self> {
        match self {
            Self::Event { event, decision, hooks, arrival, identity } => {
                let (cut_event, cut_decision) =
                    (event.cut(), decision.as_ref().and_then(|decision| decision.cut()));
                if cut_event.is_none() && cut_decision.is_none() {
                    return None;
                }
                Some(Self::Event {
                    event: cut_event.map_or_else(|| event.clone(), Box::new),
                    decision: cut_decision.map(Box::new).or_else(|| decision.clone()),
                    hooks: hooks.clone(),
                    arrival: *arrival,
                    identity: identity.clone(),
                })
            }
            Self::Decision { decision, cause, identity } => {
                let (decision, identity) = (Box::new(decision.cut()?), Arc::clone(identity));
                Some(Self::Decision { decision, cause: *cause, identity })
            }
            Self::Checkpoint => None,
        }
    }
}

/// The seq of the event, and the decision that the log already held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Appended {
    pub(super) seq: Seq,
    pub(super) earlier_decision: Option<Vec<u8>>,
}

type ReplySender = oneshot::Sender<Result<Appended, AppendError>>;

/// A job in the queue; empty once its caller has withdrawn it.
type Slot = Arc<Mutex<Option<Arc<Job>>>>;

/// A job that was handed to the writer.
#[derive(Debug)]
pub(super) struct Submitted {
    slot: Slot,
    result: oneshot::Receiver<Result<Appended, AppendError>>,
}

impl Submitted {
    /// Waits until the job is as durable as configured, for at most `timeout`.
    pub(super) async fn wait(&mut self, timeout: Duration) -> Result<Appended, AppendError> {
        match tokio::time::timeout(timeout, &mut self.result).await {
            Ok(result) => result.unwrap_or(Err(AppendError::Closed)),
            Err(_) if timeout.is_zero() => Err(AppendError::OutOfTime),
            Err(_) => Err(AppendError::Late(timeout)),
        }
    }

    /// Waits for as long as it takes. Must not be called on a thread that runs async tasks.
    pub(super) fn wait_blocking(self) -> Result<Appended, AppendError> {
        self.result.blocking_recv().unwrap_or(Err(AppendError::Closed))
    }

    /// Takes the job out of the queue, unless it is being written right now. For a caller that has put the
    /// event into the spool.
    pub(super) fn withdraw(self) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A handle to the writer thread. The thread ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: Sender<(Slot, ReplySender)>,
    appended: Arc<Notify>,
    busy: Arc<BusySince>,
}

/// Since when the writer thread has been working on one group.
#[derive(Debug)]
struct BusySince {
    epoch: Instant,
    /// Milliseconds after `epoch`, plus one; zero while it is idle.
    millis: AtomicU64,
}

impl BusySince {
    fn new() -> Self {
        Self { epoch: Instant::now(), millis: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn begin(&self) {
        self.millis.store(self.now(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.millis.store(0, Ordering::Relaxed);
    }

    fn duration(&self) -> Duration {
        match self.millis.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_millis(self.now().saturating_sub(since)),
        }
    }
}

impl Writer {
    /// Starts the thread. It opens the file for the first job, and again after an error.
    pub(super) fn start(
        log: LogPath,
        durability: Durability,
        role: WriterRole,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (jobs, queue) = channel();
        let appended = Arc::new(Notify::new());
        let busy = Arc::new(BusySince::new());
        let thread = WriterThread {
            appended: Arc::clone(&appended),
            busy: Arc::clone(&busy),
            log,
            durability,
            role,
            clock,
            open: None,
            since_checkpoint: 0,
            last_error: None,
        };
        if let Err(error) = spawn("log", move || thread.run(&queue)) {
            // Without the thread every append returns `Closed`, and the event goes to the spool.
            tracing::error!(%error, "cannot start the writer thread of the log");
        }
        Self { jobs, appended, busy }
    }

    /// Notified after every commit.
    pub(super) fn appended(&self) -> Arc<Notify> {
        Arc::clone(&self.appended)
    }

    /// Puts a job into the queue.
    pub(super) fn submit(&self, job: Arc<Job>) -> Submitted {
        let (reply, result) = oneshot::channel();
        let slot = Arc::new(Mutex::new(Some(job)));
        if self.jobs.send((Arc::clone(&slot), reply)).is_err() {
            tracing::debug!("the writer thread has ended"); // the reply is `Closed`
        }
        Submitted { slot, result }
    }

    /// Whether a group has been waiting for the log for so long that another process must hold it.
    pub(super) fn is_stuck(&self) -> bool {
        self.busy.duration() >= STUCK_AFTER
    }
}

/// The state of the writer thread.
struct WriterThread {
    appended: Arc<Notify>,
    busy: Arc<BusySince>,
    log: LogPath,
    durability: Durability,
    role: WriterRole,
    clock: Arc<dyn Clock>,
    open: Option<(WritableLog, AppendCache)>,
    /// How many jobs were written since the last checkpoint of the daemon.
    since_checkpoint: usize,
    /// The last error that was logged.
    last_error: Option<String>,
}

impl WriterThread {
    fn run(mut self, queue: &Receiver<(Slot, ReplySender)>) {
        loop {
            let first = match queue.recv_timeout(self.wait_time()) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.checkpoint_when_idle();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let group: Vec<_> =
                std::iter::once(first).chain(queue.try_iter().take(MAX_GROUP)).collect();
            self.handle_group(group);
        }
        // A client's connection does no checkpoint when it is closed.
        if self.role == WriterRole::Daemon
            && let Some((log, _)) = self.open.take_if(|(log, _)| !log.is_at_its_path())
        {
            log.close_without_checkpoint();
        }
    }

    /// How long to wait for a job before it is time for a checkpoint.
    fn wait_time(&self) -> Duration {
        match (self.role, self.since_checkpoint) {
            (WriterRole::Client, _) | (WriterRole::Daemon, 0) => LONG_WAIT,
            (WriterRole::Daemon, 1..CHECKPOINT_AFTER) => LONG_IDLE,
            (WriterRole::Daemon, CHECKPOINT_AFTER..) => IDLE,
        }
    }

    /// After a checkpoint SQLite overwrites the write-ahead log from its start, and a commit that does
    /// not make the file longer reaches the disk in a third of the time. Done while idle, the
    /// checkpoint delays no agent.
    fn checkpoint_when_idle(&mut self) {
        if let Some((log, _)) = &mut self.open
            && self.since_checkpoint > 0
        {
            if log.is_changed() {
                // A group without jobs takes care of files that were removed or cut off; the next look tells whether it
                // could.
                self.handle_group(Vec::new());
                self.since_checkpoint = 1;
            } else {
                checkpoint(&log.db, "PASSIVE");
                log.note_lengths();
                self.since_checkpoint = 0;
            }
        }
    }

    /// Appends a group. Callers whose jobs wait behind it can tell since when it has been waiting for the log.
    fn handle_group(&mut self, group: Vec<(Slot, ReplySender)>) {
        self.busy.begin();
        self.append_group(group);
        self.busy.end();
    }

    fn append_group(&mut self, group: Vec<(Slot, ReplySender)>) {
        let (slots, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        match self.commit(&slots) {
            Ok(appended) => {
                for (reply, appended) in replies.into_iter().zip(appended) {
                    // A withdrawn job has no result, and its caller waits for none.
                    if let Some(appended) = appended {
                        send(reply, Ok(appended));
                    }
                }
            }
            // Another process holds the log: the others would only wait as long again, each.
            Err(AppendError::Locked) => {
                self.log_error(&AppendError::Locked);
                for reply in replies {
                    send(reply, Err(AppendError::Locked));
                }
            }
            // Retry one by one: a job that cannot be appended (too large for the space left) must
            // not fail the others.
            Err(_) if slots.len() > 1 => {
                for (slot, reply) in slots.into_iter().zip(replies) {
                    self.append_group(vec![(slot, reply)]);
                }
            }
            Err(AppendError::TooLarge(_)) if slots.iter().any(cut) => {
                self.append_group(slots.into_iter().zip(replies).collect());
            }
            Err(error) => {
                self.log_error(&error);
                if let Some(reply) = replies.into_iter().next() {
                    send(reply, Err(error));
                }
            }
        }
    }

    /// Logs an error once, not again for every job that fails for the same reason.
    fn log_error(&mut self, error: &AppendError) {
        let text = error.to_string();
        if self.last_error.as_ref() != Some(&text) {
            tracing::warn!(%error, "cannot append to the log");
            self.last_error = Some(text);
        }
    }

    /// Appends all jobs in one commit, except those that were withdrawn. After an error the state of the
    /// connection is unknown, so the next job opens a new one.
    fn commit(&mut self, slots: &[Slot]) -> Result<Vec<Option<Appended>>, AppendError> {
        for _ in 0..MAX_REPLACEMENTS {
            let (mut log, mut cache) = match self.open.take() {
                Some(open) => open,
                None => self.open_log()?,
            };
            let guard = log.lock.acquire();
            let now = self.clock.now();
            let gone = match log.rescue(now) {
                Ok(Some(gone)) => gone,
                Ok(None) => {
                    let appended = append(&mut log, &mut cache, self.clock.as_ref(), slots);
                    if log.is_at_its_path() {
                        let appended = appended?;
                        log.note_lengths();
                        self.appended.notify_one();
                        self.since_checkpoint += slots.len();
                        self.last_error = None;
                        drop(guard);
                        self.open = Some((log, cache));
                        return Ok(appended);
                    }
                    // A file that was deleted in the meantime has taken these rows with it.
                    Gone::Log
                }
                Err(error) => {
                    drop(guard);
                    self.open = Some((log, cache));
                    return Err(error);
                }
            };
            log.leave(gone, now);
            drop(guard);
        }
        Err(AppendError::Replaced)
    }

    fn open_log(&self) -> Result<(WritableLog, AppendCache), AppendError> {
        // A log that other users can write is no evidence, and one of another user is not for our payloads.
        let found = fs::metadata(self.log.file()).ok();
        if let Some(found) = &found {
            check_private(self.log.file(), found).map_err(OpenError::from)?;
        }
        let now = self.clock.now();
        let opened =
            open::for_writing_to(&self.log, found.as_ref(), self.durability, self.role, now);
        Ok((opened.map_err(AppendError::from)?, AppendCache::default()))
    }
}

/// Appends the jobs that were not withdrawn. They are read from their slots only now: waiting for the lock may
/// take longer than their callers wait.
fn append(
    log: &mut WritableLog,
    cache: &mut AppendCache,
    clock: &dyn Clock,
    slots: &[Slot],
) -> Result<Vec<Option<Appended>>, AppendError> {
    let transaction = AppendTransaction::begin(&mut log.db, cache, clock)?;
    let jobs: Vec<Option<Arc<Job>>> = slots.iter().map(job_in).collect();
    let appended = transaction.append_all(&jobs)?;
    if jobs.iter().flatten().any(|job| matches!(**job, Job::Checkpoint)) {
        checkpoint(&log.db, "TRUNCATE");
    }
    Ok(appended)
}

fn job_in(slot: &Slot) -> Option<Arc<Job>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Replaces the job by one that holds only the beginning of its payload; returns whether it did.
fn cut(slot: &Slot) -> bool {
    let mut job = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let shorter = job.as_ref().and_then(|job| job.cut());
    let is_cut = shorter.is_some();
    if let Some(shorter) = shorter {
        *job = Some(Arc::new(shorter));
    }
    is_cut
}

/// A checkpoint may fail while a reader is busy; the next one makes up for it.
fn checkpoint(db: &Connection, mode: &str) {
    let done = db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
    if let Err(error) = done {
        tracing::debug!(%error, "cannot checkpoint the log now");
    }
}

fn send(reply: ReplySender, result: Result<Appended, AppendError>) {
    // The caller's deadline has passed. The row stays in the log.
    if reply.send(result).is_err() {
        tracing::debug!("an append finished after its caller's deadline");
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::limits::Limit;

    use super::*;
    use crate::event::{EventId, Kind, SystemClock};
    use crate::log::lock::WriteLock;
    use crate::log::{LogReader, Query};

    fn event(payload: Vec<u8>) -> Slot {
        event_of("hermes", payload)
    }

    fn event_of(agent: &str, payload: Vec<u8>) -> Slot {
        let at = SystemClock.now();
        let draft = RowDraft {
            id: EventId::mint(at),
            at,
            agent: agent.to_owned(),
            session: "s".to_owned(),
            turn: None,
            name: "pre_tool_call".to_owned(),
            kind: Kind::ToolBefore,
            tool: None,
            tool_class: None,
            context: Some("{\"cwd\":\"/\"}".to_owned()),
            payload: payload.into(),
        };
        let job = Job::Event {
            event: Box::new(draft),
            decision: None,
            hooks: Vec::new(),
            arrival: Arrival::AtOnce,
            identity: None,
        };
        Arc::new(Mutex::new(Some(Arc::new(job))))
    }

    fn writer_thread(log: &LogPath, role: WriterRole) -> WriterThread {
        WriterThread {
            appended: Arc::new(Notify::new()),
            busy: Arc::new(BusySince::new()),
            log: log.clone(),
            durability: Durability::ProcessDeath,
            role,
            clock: Arc::new(SystemClock),
            open: None,
            since_checkpoint: 0,
            last_error: None,
        }
    }

    fn append_one(thread: &mut WriterThread, slot: Slot) -> Result<Appended, AppendError> {
        let (reply, result) = oneshot::channel();
        thread.append_group(vec![(slot, reply)]);
        result.blocking_recv().expect("a reply")
    }

    #[test]
    fn a_loss_that_could_not_be_dealt_with_is_found_again() {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let mut thread = writer_thread(&log, WriterRole::Daemon);
        append_one(&mut thread, event(b"{}".to_vec())).expect("it is appended");
        let [wal, shm] = log.companions();
        let file = fs::OpenOptions::new().write(true).open(&wal).expect("a write-ahead log");
        file.set_len(0).expect("it is cut off");
        // Without the index at its path, the writer cannot reset it.
        let elsewhere = home.path().join("elsewhere");
        fs::rename(&shm, &elsewhere).expect("our file");
        for _ in 0..2 {
            append_one(&mut thread, event(b"[]".to_vec())).expect_err("it goes to the spool");
            thread.checkpoint_when_idle();
            assert!(log.damage().is_empty());
        }
        fs::rename(&elsewhere, &shm).expect("our file");
        append_one(&mut thread, event(b"[]".to_vec())).expect("it is appended");
        assert_eq!(log.damage().len(), 1);
        drop(thread);
        let rows = LogReader::open(&log).expect("a log").last(&Query::default(), 9).expect("rows");
        assert_eq!(rows.len(), 1, "the row that was cut off is lost");
    }

    #[test]
    fn the_writer_is_busy_while_it_waits_for_the_lock_when_idle() {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let mut thread = writer_thread(&log, WriterRole::Daemon);
        append_one(&mut thread, event(b"{}".to_vec())).expect("it is appended");
        let [wal, _] = log.companions();
        fs::remove_file(&wal).expect("our file");
        let guard = WriteLock::open(&log.lock_file()).expect("the lock").acquire();
        let busy = Arc::clone(&thread.busy);
        let waiting = std::thread::spawn(move || thread.checkpoint_when_idle());
        let deadline = Instant::now() + Duration::from_secs(30);
        while busy.duration() < Duration::from_millis(50) {
            assert!(Instant::now() < deadline, "the writer is not busy");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(guard);
        waiting.join().expect("the writer goes on");
        assert_eq!(busy.duration(), Duration::ZERO);
    }

    #[test]
    fn an_event_that_sqlite_refuses_for_its_size_is_cut_and_marked_and_blocks_no_other() {
        let home = tempfile::tempdir().expect("a home");
        let log = LogPath::in_home(home.path());
        let mut thread = writer_thread(&log, WriterRole::Client);
        let large = "é".repeat(2 << 20).into_bytes();
        // A row of the bus itself is stored as it is; that of an agent would be packed.
        let large_event = event_of("hookbus", large.clone());
        let slots = [event(b"{}".to_vec()), large_event, event(b"[]".to_vec())];
        let results: Vec<_> = slots
            .into_iter()
            .map(|slot| {
                // As if SQLite's limit of 1,000,000,000 bytes were 2 MB.
                let opened = thread.open.take().map_or_else(|| thread.open_log(), Ok);
                let (log, cache) = opened.expect("a log");
                log.db.set_limit(Limit::SQLITE_LIMIT_LENGTH, 2_000_000).expect("a limit");
                thread.open = Some((log, cache));
                append_one(&mut thread, slot).expect("it is appended")
            })
            .collect();
        assert_eq!(results.len(), 3);
        let rows = LogReader::open(&log).expect("a log").last(&Query::default(), 9).expect("rows");
        assert_eq!(rows.len(), 3);
        assert!(rows[1].payload.len() <= 1 << 20 && large.starts_with(&rows[1].payload));
        assert!(String::from_utf8(rows[1].payload.clone()).is_ok(), "no character is split");
        let context = rows[1].context.clone().unwrap_or_default();
        assert!(
            context.contains("\"cwd\"") && context.contains("\"cut\":{\"bytes\":4194304"),
            "{context}"
        );
        let verified = crate::log::verify(
            &log,
            crate::log::VerifyOptions::default(),
            &|_| crate::event::Derived {
                kinds: vec!["tool.before".to_owned()],
                ..Default::default()
            },
            |_| {},
        );
        assert!(verified.expect("a readable log").is_sound());
    }
}
