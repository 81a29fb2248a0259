//! The approvals that the log recorded, in its rows of kind `hooks.approved` and `hooks.revoked`. They are read when
//! `consent.json` does not answer whether an entry was approved.
//!
//! Another program can lock the log, and then each attempt to read it takes a while. So an attempt that failed is
//! remembered for a moment: a tool call with many hooks waits once, not once per hook.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::record::ApprovalRecord;
use super::store::Stamps;
use crate::log::{BusRow, LogPath, LogReader, OpenError, ReadError};

/// How long the log is not tried again after it could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why the log cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnreadableLog(Arc<str>);

/// The approvals in the log of one home.
#[derive(Debug, Default)]
pub(super) struct LoggedApprovals {
    /// None if there is no log to ask.
    log: Option<LogPath>,
    cached: Mutex<Cache>,
    /// Held while the log is read: a second thread waits for the result instead of reading too.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct Cache {
    /// What the log held when `consent.json` had these stamps. A program that adds a row changes that file too.
    read: Option<(Stamps, Arc<[ApprovalRecord]>)>,
    /// When the last attempt failed, and why; none if it succeeded.
    failed: Option<(Instant, UnreadableLog)>,
}

impl LoggedApprovals {
    pub(super) fn of(log: LogPath) -> Self {
        Self { log: Some(log), ..Self::default() }
    }

    /// What the log held when it was last read, if `consent.json` still has the same stamps.
    pub(super) fn earlier(&self, stamps: Stamps) -> Option<Arc<[ApprovalRecord]>> {
        let cache = self.cache();
        let (_, records) = cache.read.as_ref().filter(|(read_at, _)| *read_at == stamps)?;
        Some(Arc::clone(records))
    }

    /// What the log holds now. Fails at once if it could not be read a moment ago.
    pub(super) fn now(&self, stamps: Stamps) -> Result<Arc<[ApprovalRecord]>, UnreadableLog> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = self.recent_failure() {
            return Err(error);
        }
        // Not locked while it is read: `earlier` must not wait for a locked log.
        let found = self.read();
        let mut cache = self.cache();
        match found {
            Ok(records) => {
                let records: Arc<[ApprovalRecord]> = records.into();
                *cache = Cache { read: Some((stamps, Arc::clone(&records))), failed: None };
                Ok(records)
            }
            Err(error) => {
                let error = UnreadableLog(error.to_string().into());
                cache.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The same, read only if it is not known from earlier.
    pub(super) fn earlier_or_now(
        &self,
        stamps: Stamps,
    ) -> Result<Arc<[ApprovalRecord]>, UnreadableLog> {
        self.earlier(stamps).map_or_else(|| self.now(stamps), Ok)
    }

    /// Why the log could not be read a moment ago, if so.
    pub(super) fn recent_failure(&self) -> Option<UnreadableLog> {
        let cache = self.cache();
        let (at, error) = cache.failed.as_ref()?;
        (at.elapsed() < RETRY_AFTER).then(|| error.clone())
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The approvals that were recorded and not revoked since.
    fn read(&self) -> Result<Vec<ApprovalRecord>, ReadError> {
        let Some(log) = &self.log else { return Ok(Vec::new()) };
        let log = match LogReader::open(log) {
            Ok(log) => log,
            Err(OpenError::Missing(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        if log.is_archive() {
            return Ok(Vec::new());
        }
        let mut records: Vec<ApprovalRecord> = Vec::new();
        for row in log.approvals()? {
            match row {
                BusRow::HooksApproved(approval) => {
                    records.push(ApprovalRecord::from_recorded(approval));
                }
                BusRow::HooksRevoked(approval) => {
                    let revoked = ApprovalRecord::from_recorded(approval);
                    records.retain(|it| !it.is_for(revoked.key()));
                }
                BusRow::SettingsChanged(_)
                | BusRow::DaemonStarted(_)
                | BusRow::SessionHeld(_)
                | BusRow::SessionReleased(_)
                | BusRow::LogCheckpoint(_) => {}
            }
        }
        Ok(records)
    }
}
