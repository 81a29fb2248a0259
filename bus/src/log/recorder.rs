//! What the pipeline records with: append if the log can take it, spool if it cannot. Recording
//! never fails towards the agent; it says what became of the event.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::open::{Durability, WrittenBy};
use super::row::{Draft, HooksDraft};
use super::spool::Spool;
use super::writer::{Job, Placed, Writer};
use super::{AppendError, LogPath};
use crate::event::{Clock, Seq};

/// What became of a row.
#[derive(Debug)]
pub enum Kept {
    /// It is in the log.
    Logged {
        /// Where.
        seq: Seq,
        /// The decision that was there before: this call is a retry.
        earlier_decision: Option<Vec<u8>>,
    },
    /// It waits in a file.
    Spooled {
        /// Which one.
        file: PathBuf,
        /// Why it is not in the log.
        why: AppendError,
    },
    /// It could not even be spooled.
    Lost {
        /// Why.
        why: String,
    },
}

/// A handle to the log of one home, to write with.
#[derive(Debug, Clone)]
pub struct Recorder {
    writer: Writer,
    spool: Spool,
}

impl Recorder {
    /// For the daemon.
    pub fn for_daemon(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { writer: Writer::start(log, durability, WrittenBy::Daemon, clock), spool }
    }

    /// For a client that handles one event by itself.
    pub fn for_client(
        log: LogPath,
        durability: Durability,
        spool: Spool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { writer: Writer::start(log, durability, WrittenBy::Client, clock), spool }
    }

    /// Records an event, together with its decision if there is one already. Waits for the log
    /// for `patience` at the most.
    pub async fn event(
        &self,
        event: Draft,
        decision: Option<Draft>,
        hooks: Vec<Arc<HooksDraft>>,
        patience: Duration,
    ) -> Kept {
        let job = Job::Event {
            event: Box::new(event.clone()),
            decision: decision.clone().map(Box::new),
            hooks: hooks.clone(),
        };
        match within(patience, self.writer.append(job)).await {
            Ok(Placed { seq, earlier_decision }) => Kept::Logged { seq, earlier_decision },
            Err(why) => self.keep_in_spool(&event, decision.as_ref(), &hooks, why),
        }
    }

    /// Records the decision about the event at `cause`, if that is in the log, or beside its
    /// event in the spool.
    pub async fn decision(
        &self,
        event: &Draft,
        decision: Draft,
        hooks: &[Arc<HooksDraft>],
        cause: Option<Seq>,
        patience: Duration,
    ) -> Kept {
        let Some(cause) = cause else {
            return self.keep_in_spool(event, Some(&decision), hooks, AppendError::Closed);
        };
        let job = Job::Decision { decision: Box::new(decision.clone()), cause };
        match within(patience, self.writer.append(job)).await {
            Ok(Placed { seq, earlier_decision }) => Kept::Logged { seq, earlier_decision },
            Err(why) => self.keep_in_spool(event, Some(&decision), hooks, why),
        }
    }

    /// Notified after every append of this process.
    pub fn appended(&self) -> Arc<Notify> {
        self.writer.appended()
    }

    /// Takes in what waits in the spool. A file goes only when its event is in the log.
    pub async fn take_in(&self) {
        if self.spool.is_empty() {
            return;
        }
        for waiting in self.spool.waiting() {
            let job = Job::Event {
                event: Box::new(waiting.event),
                decision: waiting.decision.map(Box::new),
                hooks: waiting.hooks.into_iter().map(Arc::new).collect(),
            };
            if self.writer.append(job).await.is_err() {
                return; // not yet; there will be another try
            }
            if let Err(error) = fs::remove_file(&waiting.file) {
                tracing::debug!(%error, "a spooled event was taken in twice; the log holds it once");
            }
        }
    }

    /// Tidies up the write-ahead log.
    pub async fn checkpoint(&self) {
        if let Err(error) = self.writer.append(Job::Checkpoint).await {
            tracing::debug!(%error, "no checkpoint");
        }
    }

    /// Keeps an event out of the log, for a caller that has no time left to wait for it.
    pub fn set_aside(
        &self,
        event: &Draft,
        decision: Option<&Draft>,
        hooks: &[Arc<HooksDraft>],
    ) -> Kept {
        self.keep_in_spool(event, decision, hooks, AppendError::OutOfTime)
    }

    fn keep_in_spool(
        &self,
        event: &Draft,
        decision: Option<&Draft>,
        hooks: &[Arc<HooksDraft>],
        why: AppendError,
    ) -> Kept {
        match self.spool.keep(event, decision, hooks) {
            Ok(file) => Kept::Spooled { file, why },
            Err(error) => Kept::Lost { why: format!("{why}; and it cannot be spooled: {error}") },
        }
    }
}

async fn within<T>(
    patience: Duration,
    append: impl Future<Output = Result<T, AppendError>>,
) -> Result<T, AppendError> {
    let late =
        if patience.is_zero() { AppendError::OutOfTime } else { AppendError::Late(patience) };
    tokio::time::timeout(patience, append).await.unwrap_or(Err(late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_is_blamed_only_where_there_was_time_to_wait_for_it() {
        let never = std::future::pending::<Result<(), AppendError>>;
        let used_up = within(Duration::ZERO, never()).await;
        assert!(matches!(used_up, Err(AppendError::OutOfTime)), "{used_up:?}");
        let waited = within(Duration::from_millis(1), never()).await.map_err(|why| why.to_string());
        assert!(waited.is_err_and(|why| why.contains("may have it locked")));
        let in_time = within(Duration::ZERO, std::future::ready(Ok(()))).await;
        assert!(in_time.is_ok(), "what is done is done");
    }
}
