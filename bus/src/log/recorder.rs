//! Records events and decisions for the pipeline: appends to the log, or writes to the spool if the
//! log cannot be written in time. Recording returns what happened instead of an error, because the
//! agent gets an answer in any case.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::bus_row::BusRow;
use super::identity::local_identity;
use super::open::{Durability, WriterRole};
use super::row::{HooksSnapshot, RowDraft};
use super::spool::{Intake, Spool, SpoolEntry, SpooledEvent};
use super::writer::{Appended, Arrival, Job, Submitted, Writer};
use super::{AppendError, LogPath};
use crate::event::{BusIdentity, Clock, Seq, Time};

/// How long a call waits for a log that another process has held for a while.
const PATIENCE_IF_STUCK: Duration = Duration::from_millis(100);

/// How long a checkpoint at the end of the daemon may take.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// What happened to a row.
#[derive(Debug)]
pub enum RecordOutcome {
    /// It is in the log.
    Logged {
        /// The seq of the event.
        seq: Seq,
        /// The decision that the log already held: this call is a retry.
        earlier_decision: Option<Vec<u8>>,
    },
    /// It is in the spool, and is appended to the log later.
    Spooled {
        /// The spool file.
        file: PathBuf,
        /// Why it is not in the log.
        why: AppendError,
    },
    /// Neither the log nor the spool could be written.
    Lost {
        /// Why.
        why: String,
    },
}

/// Writes to the log of one home. Clones share one writer thread.
#[derive(Debug, Clone)]
pub struct Recorder {
    writer: Writer,
    spool: Spool,
    home: PathBuf,
    identity: Arc<Mutex<Arc<BusIdentity>>>,
}

impl Recorder {
    /// A recorder for the daemon.
    pub fn for_daemon(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::new(log, durability, spool, clock, WriterRole::Daemon)
    }

    /// A recorder for a client that handles one event without the daemon.
    pub fn for_client(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::new(log, durability, spool, clock, WriterRole::Client)
    }

    fn new(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
        role: WriterRole,
    ) -> Self {
        let home = log.file().parent().map_or_else(PathBuf::new, Path::to_owned);
        let identity = Arc::new(Mutex::new(Arc::new(local_identity(&home, None))));
        Self { writer: Writer::start(log, durability, role, clock), spool, home, identity }
    }

    /// The bus has this name from now on; none for `user@host`.
    pub fn set_name(&self, name: Option<&str>) {
        let mut identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let default = || format!("{}@{}", identity.user, identity.host);
        if name.map_or_else(|| identity.name == default(), |name| identity.name == name) {
            return;
        }
        *identity = Arc::new(local_identity(&self.home, name));
    }

    /// Who records what is recorded from now on.
    pub fn identity(&self) -> Arc<BusIdentity> {
        Arc::clone(&self.identity.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an event, with its decision if there is one already. Waits for the log for at most
    /// `timeout`; the event is in the spool then.
    pub async fn event(
        &self,
        event: RowDraft,
        decision: Option<RowDraft>,
        hooks: Vec<Arc<HooksSnapshot>>,
        timeout: Duration,
    ) -> RecordOutcome {
        let event = Box::new(event.fit());
        let decision = decision.map(|decision| Box::new(decision.fit()));
        let (arrival, identity) = (Arrival::AtOnce, Some(self.identity()));
        let job = Arc::new(Job::Event { event, decision, hooks, arrival, identity });
        let mut submitted = self.writer.submit(Arc::clone(&job));
        match submitted.wait(self.patience(timeout)).await {
            Ok(Appended { seq, earlier_decision }) => {
                RecordOutcome::Logged { seq, earlier_decision }
            }
            Err(why) => {
                let identity = self.identity();
                let outcome = self.write_to_spool(why, move |spool, why| match job.as_ref() {
                    Job::Event { event, decision, hooks, .. } => {
                        let decision = decision.as_deref();
                        let identity = identity.as_ref();
                        spool.write(&SpoolEntry { event, decision, hooks, why, identity })
                    }
                    Job::Decision { .. } | Job::Checkpoint => {
                        Err(io::ErrorKind::Unsupported.into())
                    }
                });
                let outcome = outcome.await;
                withdraw_if_spooled(submitted, &outcome);
                outcome
            }
        }
    }

    /// Records the decision about `event`: in the log if `cause` is the event's seq there, else in
    /// the spool, together with the event.
    pub async fn decision(
        &self,
        event: RowDraft,
        decision: RowDraft,
        hooks: Vec<Arc<HooksSnapshot>>,
        cause: Option<Seq>,
        timeout: Duration,
    ) -> RecordOutcome {
        let decision = decision.fit();
        let Some(cause) = cause else {
            return self.spool_decision(event, decision, hooks, AppendError::EventSpooled).await;
        };
        let (row, identity) = (Box::new(decision.clone()), self.identity());
        let job = Job::Decision { decision: row, cause, identity };
        let mut submitted = self.writer.submit(Arc::new(job));
        match submitted.wait(self.patience(timeout)).await {
            Ok(Appended { seq, earlier_decision }) => {
                RecordOutcome::Logged { seq, earlier_decision }
            }
            Err(why) => {
                let outcome = self.spool_decision(event, decision, hooks, why).await;
                withdraw_if_spooled(submitted, &outcome);
                outcome
            }
        }
    }

    async fn spool_decision(
        &self,
        event: RowDraft,
        decision: RowDraft,
        hooks: Vec<Arc<HooksSnapshot>>,
        why: AppendError,
    ) -> RecordOutcome {
        let (event, identity) = (event.fit(), self.identity());
        self.write_to_spool(why, move |spool, why| {
            let (event, decision, hooks) = (&event, Some(&decision), hooks.as_slice());
            spool.write(&SpoolEntry { event, decision, hooks, why, identity: &identity })
        })
        .await
    }

    /// How long to wait for the log. While another process holds it, the calls after the first do not wait for
    /// their whole share again.
    fn patience(&self, timeout: Duration) -> Duration {
        if self.writer.is_stuck() { timeout.min(PATIENCE_IF_STUCK) } else { timeout }
    }

    /// Records something about the bus itself. Waits for the log for at most `timeout`.
    pub async fn bus_row(&self, row: &BusRow, at: Time, timeout: Duration) -> RecordOutcome {
        self.event(row.to_draft(at), None, Vec::new(), timeout).await
    }

    /// Notified after every append of this process.
    pub fn appended(&self) -> Arc<Notify> {
        self.writer.appended()
    }

    /// The spool of this home.
    pub const fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Appends the spooled events to the log, and returns how many files are left. A file is removed once its
    /// event is in the log. Blocks, so it must not be called on a thread that runs async tasks.
    pub fn append_spooled(&self) -> usize {
        let mut intake = self.spool.take_in();
        loop {
            let batch = intake.next_batch();
            if batch.is_empty() {
                return intake.left;
            }
            let submitted: Vec<_> = batch.into_iter().map(|spooled| self.submit(spooled)).collect();
            let mut stopped = None;
            for (file, submitted) in submitted {
                match submitted.wait_blocking() {
                    Ok(_) => Intake::done(&file),
                    // Only this event: those behind it may fit.
                    Err(
                        AppendError::Full
                        | AppendError::TooLarge(_)
                        | AppendError::LeftOut
                        | AppendError::Sqlite(_),
                    ) => {
                        intake.left += 1;
                    }
                    Err(why) => {
                        intake.left += 1;
                        stopped = Some(why);
                    }
                }
            }
            if let Some(why) = stopped {
                tracing::debug!(%why, "spooled events stay where they are");
                return intake.left;
            }
        }
    }

    fn submit(&self, spooled: SpooledEvent) -> (PathBuf, Submitted) {
        let job = Job::Event {
            event: Box::new(spooled.event),
            decision: spooled.decision.map(Box::new),
            hooks: spooled.hooks.into_iter().map(Arc::new).collect(),
            arrival: Arrival::Late,
            identity: spooled.identity.map(Arc::new),
        };
        (spooled.file, self.writer.submit(Arc::new(job)))
    }

    /// Checkpoints the write-ahead log.
    pub async fn checkpoint(&self) {
        let mut submitted = self.writer.submit(Arc::new(Job::Checkpoint));
        if let Err(error) = submitted.wait(CHECKPOINT_TIMEOUT).await {
            tracing::debug!(%error, "cannot checkpoint the log");
        }
    }

    /// Writes an event to the spool, for a caller that has no time left to wait for the log.
    pub fn spool_event(
        &self,
        event: RowDraft,
        decision: Option<RowDraft>,
        hooks: &[Arc<HooksSnapshot>],
    ) -> RecordOutcome {
        let (event, decision, why) =
            (event.fit(), decision.map(RowDraft::fit), AppendError::OutOfTime);
        let reason = why.to_string();
        let (event, decision, identity) = (&event, decision.as_ref(), &self.identity());
        let entry = SpoolEntry { event, decision, hooks, why: &reason, identity };
        spooled(self.spool.write(&entry), why)
    }

    /// Writes to the spool on another thread: a slow disk must not stop the other calls.
    async fn write_to_spool(
        &self,
        why: AppendError,
        write: impl FnOnce(&Spool, &str) -> io::Result<PathBuf> + Send + 'static,
    ) -> RecordOutcome {
        let (spool, reason) = (self.spool.clone(), why.to_string());
        let written = tokio::task::spawn_blocking(move || write(&spool, &reason)).await;
        spooled(written.unwrap_or_else(|error| Err(io::Error::other(error))), why)
    }
}

fn spooled(written: io::Result<PathBuf>, why: AppendError) -> RecordOutcome {
    match written {
        Ok(file) => RecordOutcome::Spooled { file, why },
        Err(error) => {
            RecordOutcome::Lost { why: format!("{why}; and the event cannot be spooled: {error}") }
        }
    }
}

/// An event in the spool must not be appended a second time without the mark `late`. One that could not be
/// spooled stays in the queue: it may still be written.
fn withdraw_if_spooled(submitted: Submitted, outcome: &RecordOutcome) {
    match outcome {
        RecordOutcome::Spooled { .. } => submitted.withdraw(),
        RecordOutcome::Logged { .. } | RecordOutcome::Lost { .. } => {}
    }
}
