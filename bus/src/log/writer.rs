//! The writer: one thread with the only write connection of this process. Jobs that arrive while a
//! commit is being written to disk form the next group commit, so no timer is needed.
//!
//! Every group holds the lock beside the log and reads the last row inside its own transaction, so
//! that several processes can write in turn.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::append::{AppendCache, AppendTransaction};
use super::lock::WriteLock;
use super::open::{self, Durability, WriterRole};
use super::row::{HooksSnapshot, RowDraft};
use super::{AppendError, LogPath};
use crate::event::{Clock, Seq};

/// The most jobs in one commit.
const MAX_GROUP: usize = 512;

/// After this many jobs the daemon checkpoints as soon as it is idle.
const CHECKPOINT_AFTER: usize = 32;

/// The daemon is idle if no job arrives for this long.
const IDLE: Duration = Duration::from_millis(2);

/// How long to wait for a job if there is nothing else to do.
const LONG_WAIT: Duration = Duration::from_hours(1);

/// What to append. Idempotent: a row whose id is already in the log is not added again.
#[derive(Debug)]
pub(super) enum Job {
    /// An event, with its decision if that is known already, and the hooks that made it.
    Event { event: Box<RowDraft>, decision: Option<Box<RowDraft>>, hooks: Vec<Arc<HooksSnapshot>> },
    /// The decision about the event at `cause`.
    Decision { decision: Box<RowDraft>, cause: Seq },
    /// Move the write-ahead log into the file, as far as readers allow.
    Checkpoint,
}

/// The seq of the event, and the decision that the log already held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Appended {
    pub(super) seq: Seq,
    pub(super) earlier_decision: Option<Vec<u8>>,
}

type ReplySender = oneshot::Sender<Result<Appended, AppendError>>;

/// A handle to the writer thread. The thread ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: Sender<(Job, ReplySender)>,
    appended: Arc<Notify>,
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
        let thread = WriterThread {
            appended: Arc::clone(&appended),
            log,
            durability,
            role,
            clock,
            open: None,
            since_checkpoint: 0,
            last_error: None,
        };
        let started =
            thread::Builder::new().name("log".to_owned()).spawn(move || thread.run(&queue));
        if let Err(error) = started {
            // Without the thread every append returns `Closed`, and the event goes to the spool.
            tracing::error!(%error, "cannot start the writer thread of the log");
        }
        Self { jobs, appended }
    }

    /// Notified after every commit.
    pub(super) fn appended(&self) -> Arc<Notify> {
        Arc::clone(&self.appended)
    }

    /// Returns once the job is as durable as configured.
    pub(super) async fn append(&self, job: Job) -> Result<Appended, AppendError> {
        let (reply, result) = oneshot::channel();
        self.jobs.send((job, reply)).map_err(|_| AppendError::Closed)?;
        result.await.map_err(|_| AppendError::Closed)?
    }
}

/// The state of the writer thread.
struct WriterThread {
    appended: Arc<Notify>,
    log: LogPath,
    durability: Durability,
    role: WriterRole,
    clock: Arc<dyn Clock>,
    open: Option<(Connection, WriteLock, AppendCache)>,
    /// How many jobs were written since the last checkpoint.
    since_checkpoint: usize,
    /// The last error that was logged.
    last_error: Option<String>,
}

impl WriterThread {
    fn run(mut self, queue: &Receiver<(Job, ReplySender)>) {
        loop {
            let first = match queue.recv_timeout(self.wait_time()) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.checkpoint_when_idle();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let group: Vec<_> =
                std::iter::once(first).chain(queue.try_iter().take(MAX_GROUP)).collect();
            self.append_group(group);
        }
    }

    /// How long to wait for a job before it is time for a checkpoint.
    fn wait_time(&self) -> Duration {
        let is_due = self.role == WriterRole::Daemon && self.since_checkpoint >= CHECKPOINT_AFTER;
        if is_due { IDLE } else { LONG_WAIT }
    }

    /// After a checkpoint SQLite overwrites the write-ahead log from its start, and a commit that does
    /// not make the file longer reaches the disk in a third of the time. Done while idle, the
    /// checkpoint delays no agent.
    fn checkpoint_when_idle(&mut self) {
        if let Some((db, ..)) = &self.open
            && self.since_checkpoint >= CHECKPOINT_AFTER
        {
            checkpoint(db, "PASSIVE");
            self.since_checkpoint = 0;
        }
    }

    fn append_group(&mut self, group: Vec<(Job, ReplySender)>) {
        let (jobs, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        match self.commit(&jobs) {
            Ok(appended) => {
                for (reply, appended) in replies.into_iter().zip(appended) {
                    send(reply, Ok(appended));
                }
            }
            // Retry one by one: a job that cannot be appended (too large for the space left) must
            // not fail the others.
            Err(_) if jobs.len() > 1 => {
                for (job, reply) in jobs.into_iter().zip(replies) {
                    self.append_group(vec![(job, reply)]);
                }
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

    /// Appends all jobs in one commit. After an error the state of the connection is unknown, so the
    /// next job opens a new one.
    fn commit(&mut self, jobs: &[Job]) -> Result<Vec<Appended>, AppendError> {
        let (mut db, lock, mut cache) = match self.open.take() {
            Some(open) => open,
            None => self.open_log()?,
        };
        let guard = lock.acquire();
        let transaction = AppendTransaction::begin(&mut db, &mut cache, self.clock.as_ref());
        let appended = transaction.and_then(|transaction| transaction.append_all(jobs))?;
        if jobs.iter().any(|job| matches!(job, Job::Checkpoint)) {
            checkpoint(&db, "TRUNCATE");
        }
        self.appended.notify_one();
        self.since_checkpoint += jobs.len();
        self.last_error = None;
        drop(guard);
        self.open = Some((db, lock, cache));
        Ok(appended)
    }

    fn open_log(&self) -> Result<(Connection, WriteLock, AppendCache), AppendError> {
        let now = self.clock.now();
        let opened = open::for_writing(&self.log, self.durability, self.role, now);
        let (db, lock) = opened.map_err(AppendError::from)?;
        Ok((db, lock, AppendCache::default()))
    }
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
