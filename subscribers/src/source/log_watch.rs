//! Wakes a reader when the log is written, by a watch on its directory.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use hookbus::sys::directory_watch::DirectoryWatch;
use hookbus::sys::thread::spawn;
use tokio::sync::Notify;

/// The log is read again after this long even without a notification.
const POLL: Duration = Duration::from_millis(250);

/// The system reports the write a little before the commit is visible to readers, and does not report when
/// it becomes visible. So the reader is woken several times after each write.
const WAKE_AFTER_WRITE: [Duration; 4] = [
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(4),
];

/// A watch on a directory.
#[derive(Debug)]
pub(super) struct LogWatch(Arc<Notify>);

impl LogWatch {
    /// Watches `folder`; where that is not possible it only polls.
    pub(super) fn on(folder: &Path) -> Self {
        let written = Arc::new(Notify::new());
        let reader = Arc::downgrade(&written);
        let watching = DirectoryWatch::new(folder)
            .and_then(|watch| spawn("log watch", move || notify_on_write(&watch, &reader)));
        if let Err(error) = watching {
            tracing::debug!(%error, "cannot watch the log's directory; polling instead");
        }
        Self(written)
    }

    /// Returns after a write, or after the polling interval.
    pub(super) async fn wait(&self) {
        if tokio::time::timeout(POLL, self.0.notified()).await.is_err() {
            tracing::trace!("no write within the polling interval");
        }
    }
}

/// Notifies the reader of every write. Ends at the first write after the reader was dropped.
fn notify_on_write(watch: &DirectoryWatch, reader: &Weak<Notify>) {
    while watch.wait().is_ok() {
        let Some(reader) = reader.upgrade() else { return };
        for pause in WAKE_AFTER_WRITE {
            thread::sleep(pause);
            reader.notify_one();
        }
    }
}
