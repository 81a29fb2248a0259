//! Records events and decisions for the pipeline: appends to the log, or writes to the spool if the
//! log cannot be written in time. Recording returns what happened instead of an error, because the
//! agent gets an answer in any case.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::open::{Durability, WriterRole};
use super::row::{HooksSnapshot, RowDraft};
use super::spool::Spool;
use super::writer::{Appended, Job, Writer};
use super::{AppendError, LogPath};
use crate::event::{Clock, Seq};

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
}

impl Recorder {
    /// A recorder for the daemon.
    pub fn for_daemon(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { writer: Writer::start(log, durability, WriterRole::Daemon, clock), spool }
    }

    /// A recorder for a client that handles one event without the daemon.
    pub fn for_client(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { writer: Writer::start(log, durability, WriterRole::Client, clock), spool }
    }

    /// Records an event, with its decision if there is one already. Waits for the log for at most
    /// `timeout`.
    pub async fn event(
        &self,
        event: RowDraft,
        decision: Option<RowDraft>,
        hooks: Vec<Arc<HooksSnapshot>>,
        timeout: Duration,
    ) -> RecordOutcome {
        let job = Job::Event {
            event: Box::new(event.clone()),
            decision: decision.clone().map(Box::new),
            hooks: hooks.clone(),
        };
        match within(timeout, self.writer.append(job)).await {
            Ok(Appended { seq, earlier_decision }) => {
                RecordOutcome::Logged { seq, earlier_decision }
            }
            Err(why) => self.write_to_spool(&event, decision.as_ref(), &hooks, why),
        }
    }

    /// Records the decision about `event`: in the log if `cause` is the event's seq there, else in
    /// the spool, together with the event.
    pub async fn decision(
        &self,
        event: &RowDraft,
        decision: RowDraft,
        hooks: &[Arc<HooksSnapshot>],
        cause: Option<Seq>,
        timeout: Duration,
    ) -> RecordOutcome {
        let Some(cause) = cause else {
            return self.write_to_spool(event, Some(&decision), hooks, AppendError::Closed);
        };
        let job = Job::Decision { decision: Box::new(decision.clone()), cause };
        match within(timeout, self.writer.append(job)).await {
            Ok(Appended { seq, earlier_decision }) => {
                RecordOutcome::Logged { seq, earlier_decision }
            }
            Err(why) => self.write_to_spool(event, Some(&decision), hooks, why),
        }
    }

    /// Notified after every append of this process.
    pub fn appended(&self) -> Arc<Notify> {
        self.writer.appended()
    }

    /// Appends the spooled events to the log. A spool file is removed once its event is in the log.
    pub async fn append_spooled(&self) {
        if self.spool.is_empty() {
            return;
        }
        for spooled in self.spool.claim() {
            let job = Job::Event {
                event: Box::new(spooled.event),
                decision: spooled.decision.map(Box::new),
                hooks: spooled.hooks.into_iter().map(Arc::new).collect(),
            };
            if self.writer.append(job).await.is_err() {
                return; // the log still cannot be written; the caller tries again later
            }
            if let Err(error) = fs::remove_file(&spooled.file) {
                tracing::debug!(%error, "cannot remove a spool file; its event is in the log and is not appended twice");
            }
        }
    }

    /// Checkpoints the write-ahead log.
    pub async fn checkpoint(&self) {
        if let Err(error) = self.writer.append(Job::Checkpoint).await {
            tracing::debug!(%error, "cannot checkpoint the log");
        }
    }

    /// Writes an event to the spool, for a caller that has no time left to wait for the log.
    pub fn spool_event(
        &self,
        event: &RowDraft,
        decision: Option<&RowDraft>,
        hooks: &[Arc<HooksSnapshot>],
    ) -> RecordOutcome {
        self.write_to_spool(event, decision, hooks, AppendError::OutOfTime)
    }

    fn write_to_spool(
        &self,
        event: &RowDraft,
        decision: Option<&RowDraft>,
        hooks: &[Arc<HooksSnapshot>],
        why: AppendError,
    ) -> RecordOutcome {
        match self.spool.write(event, decision, hooks) {
            Ok(file) => RecordOutcome::Spooled { file, why },
            Err(error) => RecordOutcome::Lost {
                why: format!("{why}; and the event cannot be spooled: {error}"),
            },
        }
    }
}

async fn within<T>(
    timeout: Duration,
    append: impl Future<Output = Result<T, AppendError>>,
) -> Result<T, AppendError> {
    let late = if timeout.is_zero() { AppendError::OutOfTime } else { AppendError::Late(timeout) };
    tokio::time::timeout(timeout, append).await.unwrap_or(Err(late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timeout_blames_a_lock_only_if_there_was_time_to_wait() {
        let never = std::future::pending::<Result<(), AppendError>>;
        let used_up = within(Duration::ZERO, never()).await;
        assert!(matches!(used_up, Err(AppendError::OutOfTime)), "{used_up:?}");
        let waited = within(Duration::from_millis(1), never()).await.map_err(|why| why.to_string());
        assert!(waited.is_err_and(|why| why.contains("may have the log locked")));
        let in_time = within(Duration::ZERO, std::future::ready(Ok(()))).await;
        assert!(in_time.is_ok(), "an append that is done has no timeout");
    }
}
