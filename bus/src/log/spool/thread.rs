//! The daemon's thread that takes in spool files. It looks at the directories twice a second, and reads files
//! only after a directory has changed, or after a while if files were left.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Spool;
use crate::log::Recorder;
use crate::sys::thread::spawn;

/// How often to look at the directories.
const INTERVAL: Duration = Duration::from_millis(500);

/// The longest wait before files that were left are tried again.
const MAX_RETRY: Duration = Duration::from_secs(8);

/// A directory that changed this recently may change again without a new time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Takes in spool files until it is dropped.
#[derive(Debug)]
pub struct SpoolThread {
    stop: Arc<AtomicBool>,
}

impl SpoolThread {
    /// Starts the thread. It may wait for the log, so the end of the process does not wait for it.
    pub fn start(recorder: Recorder) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let started = spawn("spool", move || {
            let mut watch = SpoolWatch::default();
            while !stopped.load(Ordering::Relaxed) {
                watch.look(&recorder);
                thread::sleep(INTERVAL);
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "cannot start the thread of the spool; the next daemon takes in its files");
        }
        Self { stop }
    }
}

impl Drop for SpoolThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What was seen at the last look.
#[derive(Debug, Default)]
struct SpoolWatch {
    /// When each directory was last changed.
    seen: Option<Vec<Option<SystemTime>>>,
    /// When to try again the files that were left, and how long the wait before that was.
    retry: Option<(Instant, Duration)>,
}

impl SpoolWatch {
    fn look(&mut self, recorder: &Recorder) {
        let now = stamps(recorder.spool());
        let is_due = self.retry.is_some_and(|(at, _)| Instant::now() >= at);
        if self.seen.as_ref() == Some(&now) && !is_due {
            return;
        }
        let left = recorder.append_spooled();
        // Files that are left must not keep us busy: wait longer each time.
        self.retry = (left > 0).then(|| {
            let wait = self.retry.map_or(INTERVAL, |(_, wait)| (wait * 2).min(MAX_RETRY));
            (Instant::now() + wait, wait)
        });
        self.seen = if left > 0 {
            Some(stamps(recorder.spool())) // taking in files has changed the directories itself
        } else {
            Some(now).filter(|now| now.iter().flatten().all(is_settled))
        };
    }
}

fn is_settled(changed: &SystemTime) -> bool {
    changed.elapsed().is_ok_and(|ago| ago >= SETTLED_AFTER)
}

fn stamps(spool: &Spool) -> Vec<Option<SystemTime>> {
    let changed = |directory| fs::metadata(directory).and_then(|found| found.modified()).ok();
    spool.places.iter().map(|place| changed(&place.directory)).collect()
}
