//! Waking up when a log is written: the kernel tells about its directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rustix::fs::inotify;
use tokio::sync::Notify;

/// If the kernel cannot tell, or forgot to.
const AT_LEAST: Duration = Duration::from_millis(250);

/// The kernel tells of a write a little before its commit can be read, and not of that.
const UNTIL_IT_CAN_BE_READ: [Duration; 4] = [
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(4),
];

/// A watch on a directory, for as long as it lives.
#[derive(Debug)]
pub(super) struct Wake(Arc<Notify>);

impl Wake {
    /// Watches `folder`; without the kernel's help it looks now and then.
    pub(super) fn on(folder: &Path) -> Self {
        let bell = Arc::new(Notify::new());
        let listener = Arc::downgrade(&bell);
        let watching = watch(folder).and_then(|watch| {
            thread::Builder::new().name("wake".to_owned()).spawn(move || ring(&watch, &listener))
        });
        if let Err(error) = watching {
            tracing::debug!(%error, "no word from the kernel; looking now and then");
        }
        Self(bell)
    }

    /// Returns when something was written, or after a while.
    pub(super) async fn wait(&self) {
        if tokio::time::timeout(AT_LEAST, self.0.notified()).await.is_err() {
            tracing::trace!("nothing was written");
        }
    }
}

fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let descriptor = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let written = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
    inotify::add_watch(&descriptor, folder, written)?;
    Ok(descriptor)
}

/// Rings for every write, and again when its commit can be read by all likelihood. Ends with the
/// first one after nobody listens any more.
fn ring(watch: &OwnedFd, listener: &Weak<Notify>) {
    let mut buffer = [0; 4096];
    // What exactly was written does not matter.
    while rustix::io::read(watch, &mut buffer).is_ok() {
        let Some(bell) = listener.upgrade() else { return };
        for pause in UNTIL_IT_CAN_BE_READ {
            thread::sleep(pause);
            bell.notify_one();
        }
    }
}
