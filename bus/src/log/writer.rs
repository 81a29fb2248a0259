//! The writer: one thread with the only write connection of this process. Jobs that arrive while
//! a commit is on its way to the disk form the next group by themselves; no timer is needed.
//!
//! Every group holds the lock beside the log, and reads the head of the chain inside its own
//! transaction, so that any number of processes can take turns.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::append::{Group, Memory};
use super::lock::WriteLock;
use super::open::{self, Durability, WrittenBy};
use super::row::{Draft, HooksDraft};
use super::{AppendError, LogPath};
use crate::event::{Clock, Seq};

/// How many jobs share a commit at the most.
const GROUP: usize = 512;

/// After so many jobs the write-ahead log is worth moving, in the next lull.
const MOVE_AFTER: usize = 32;

/// Nobody calls for this long: a lull.
const LULL: Duration = Duration::from_millis(2);

/// As good as for ever.
const NO_HURRY: Duration = Duration::from_hours(1);

/// What is to be appended. Idempotent: a row whose id is in the log already is not added again.
#[derive(Debug)]
pub(super) enum Job {
    /// An event, with its decision if that is known already, and the hooks that made it.
    Event { event: Box<Draft>, decision: Option<Box<Draft>>, hooks: Vec<Arc<HooksDraft>> },
    /// The decision about the event at `cause`.
    Decision { decision: Box<Draft>, cause: Seq },
    /// Move the write-ahead log into the file, as far as readers allow.
    Checkpoint,
}

/// Where an event stands, and the decision that was there before us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) seq: Seq,
    pub(super) earlier_decision: Option<Vec<u8>>,
}

type Reply = oneshot::Sender<Result<Placed, AppendError>>;

/// A handle to the writer thread. The thread ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: Sender<(Job, Reply)>,
    appended: Arc<Notify>,
}

impl Writer {
    /// Starts the thread. The file is opened with the first job, and again after an error.
    pub(super) fn start(
        log: LogPath,
        durability: Durability,
        by: WrittenBy,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (jobs, queue) = channel();
        let appended = Arc::new(Notify::new());
        let bell = Arc::clone(&appended);
        let desk =
            Desk { bell, log, durability, by, clock, open: None, unmoved: 0, complaint: None };
        let started =
            thread::Builder::new().name("log".to_owned()).spawn(move || desk.work(&queue));
        if let Err(error) = started {
            // Without the thread every append answers `Closed`, and goes to the spool.
            tracing::error!(%error, "cannot start the log's thread");
        }
        Self { jobs, appended }
    }

    /// Notified after every commit.
    pub(super) fn appended(&self) -> Arc<Notify> {
        Arc::clone(&self.appended)
    }

    /// Returns once the job is as durable as promised.
    pub(super) async fn append(&self, job: Job) -> Result<Placed, AppendError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send((job, reply)).map_err(|_| AppendError::Closed)?;
        answer.await.map_err(|_| AppendError::Closed)?
    }
}

struct Desk {
    bell: Arc<Notify>,
    log: LogPath,
    durability: Durability,
    by: WrittenBy,
    clock: Arc<dyn Clock>,
    open: Option<(Connection, WriteLock, Memory)>,
    /// How many jobs were written since the write-ahead log was last moved into the file.
    unmoved: usize,
    /// What went wrong last.
    complaint: Option<String>,
}

impl Desk {
    fn work(mut self, queue: &Receiver<(Job, Reply)>) {
        loop {
            let first = match queue.recv_timeout(self.patience()) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.tidy_up();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let group: Vec<_> =
                std::iter::once(first).chain(queue.try_iter().take(GROUP)).collect();
            self.serve(group);
        }
    }

    /// How long to wait for a job before there is something better to do.
    fn patience(&self) -> Duration {
        if self.by == WrittenBy::Daemon && self.unmoved >= MOVE_AFTER { LULL } else { NO_HURRY }
    }

    /// Moves what was written into the file itself. The write-ahead log is then written over from
    /// its start, and a commit that does not make a file longer reaches the disk in a third of
    /// the time. Done in a lull, it costs no agent anything.
    fn tidy_up(&mut self) {
        if let Some((db, ..)) = &self.open
            && self.unmoved >= MOVE_AFTER
        {
            checkpoint(db, "PASSIVE");
            self.unmoved = 0;
        }
    }

    fn serve(&mut self, group: Vec<(Job, Reply)>) {
        let (jobs, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        match self.commit(&jobs) {
            Ok(placed) => {
                for (reply, place) in replies.into_iter().zip(placed) {
                    answer(reply, Ok(place));
                }
            }
            // One job that cannot be kept (too large for what is left) must not take others down.
            Err(_) if jobs.len() > 1 => {
                for (job, reply) in jobs.into_iter().zip(replies) {
                    self.serve(vec![(job, reply)]);
                }
            }
            Err(error) => {
                self.complain(&error);
                if let Some(reply) = replies.into_iter().next() {
                    answer(reply, Err(error));
                }
            }
        }
    }

    /// The same trouble is told once, not with every event that waits for its end.
    fn complain(&mut self, error: &AppendError) {
        let said = error.to_string();
        if self.complaint.as_ref() != Some(&said) {
            tracing::warn!(%error, "cannot append");
            self.complaint = Some(said);
        }
    }

    /// All of the jobs in one commit. After an error nothing is known about the file any more, so
    /// it is opened anew for the next job.
    fn commit(&mut self, jobs: &[Job]) -> Result<Vec<Placed>, AppendError> {
        let (mut db, lock, mut memory) = match self.open.take() {
            Some(open) => open,
            None => self.open_anew()?,
        };
        let held = lock.acquire();
        let group = Group::begin(&mut db, &mut memory, self.clock.as_ref());
        let placed = group.and_then(|group| group.append_all(jobs))?;
        if jobs.iter().any(|job| matches!(job, Job::Checkpoint)) {
            checkpoint(&db, "TRUNCATE");
        }
        self.bell.notify_one();
        self.unmoved += jobs.len();
        self.complaint = None;
        drop(held);
        self.open = Some((db, lock, memory));
        Ok(placed)
    }

    fn open_anew(&self) -> Result<(Connection, WriteLock, Memory), AppendError> {
        let now = self.clock.now();
        let opened = open::to_write(&self.log, self.durability, self.by, now);
        let (db, lock) = opened.map_err(AppendError::from)?;
        Ok((db, lock, Memory::default()))
    }
}

/// A checkpoint that cannot be had (a reader is busy) is no loss: the next one will do.
fn checkpoint(db: &Connection, how: &str) {
    let done = db.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()));
    if let Err(error) = done {
        tracing::debug!(%error, "no checkpoint this time");
    }
}

fn answer(reply: Reply, result: Result<Placed, AppendError>) {
    // Nobody listens any more: the caller's deadline is over. The row is kept all the same.
    if reply.send(result).is_err() {
        tracing::debug!("an append outlived its caller");
    }
}
