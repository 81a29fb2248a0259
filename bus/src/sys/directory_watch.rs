//! Waiting for writes to the files of a directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify;

/// A watch on a directory. A system without such watches may refuse to create one; then poll.
#[derive(Debug)]
pub struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Watches the files in `folder`.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let descriptor = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let written = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
        inotify::add_watch(&descriptor, folder, written)?;
        Ok(Self(descriptor))
    }

    /// Blocks until a file in the directory was written or created.
    pub fn wait(&self) -> io::Result<()> {
        // Which file it was does not matter.
        rustix::io::read(&self.0, &mut [0; 4096])?;
        Ok(())
    }
}
