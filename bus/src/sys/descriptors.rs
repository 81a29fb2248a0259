//! Open file descriptors: waiting for input with a timeout, and closing those that were inherited.

use std::os::fd::AsFd;
use std::time::Duration;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until there is something to read, or the end of it, for `limit` at most. False on timeout.
pub fn wait_readable(descriptor: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut ready, limit.as_ref())? > 0)
}

/// Closes all descriptors but stdin, stdout and stderr: the process at the other end of an inherited pipe
/// would wait for this one. Call it before anything else is opened.
pub fn close_inherited() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let open: Vec<i32> =
        open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        if let Err(error) = nix::unistd::close(descriptor) {
            tracing::trace!(%error, descriptor, "already closed: it was the directory listing itself");
        }
    }
}
