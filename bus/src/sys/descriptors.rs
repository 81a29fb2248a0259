//! Open file descriptors: waiting for input with a timeout, closing those that were inherited, and how many
//! this process may have open.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The limit that this process was started with, once it was raised.
static ORIGINAL_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Raises the number of descriptors that this process may have open to the most that the system allows;
/// returns that number. Programs that it starts from now on need [`restore_limit`].
pub fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum {
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => drop(ORIGINAL_LIMIT.set(limit)),
            Err(error) => tracing::debug!(%error, "cannot raise the limit of open files"),
        }
    }
    let current = getrlimit(Resource::Nofile).current;
    current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Gives a process that was just started the limit that this one was started with: some programs close
/// every descriptor up to their limit, or cannot use one above 1,024.
pub fn restore_limit(pid: Option<u32>) {
    let Some(original) = ORIGINAL_LIMIT.get() else { return };
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let Some(pid) = pid
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *original)
    {
        tracing::debug!(%error, "the process ended before its limit could be set");
    }
}

/// Waits until there is something to read, or the end of it, for `limit` at most. False on timeout.
pub fn wait_readable(descriptor: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut ready, limit.as_ref())? > 0)
}

/// Appends what there is to read; if `to` is full, it gets room for at least `room` bytes. Waits if there is nothing; 0 at the end.
pub fn read_more(descriptor: &impl AsFd, to: &mut Vec<u8>, room: usize) -> io::Result<usize> {
    if to.len() == to.capacity() {
        to.reserve(room.max(1));
    }
    Ok(rustix::io::read(descriptor, rustix::buffer::spare_capacity(to))?)
}

/// Lets a pipe hold `bytes` if it holds less, so that the system switches less often between the process that writes and the
/// one that reads. Nothing happens if it is no pipe, or if this user's pipes hold as much as they may.
pub fn widen_pipe(descriptor: &impl AsFd, bytes: usize) {
    if rustix::pipe::fcntl_getpipe_size(descriptor).is_ok_and(|now| now >= bytes) {
        return;
    }
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(descriptor, bytes) {
        tracing::trace!(%error, "the pipe stays as it is");
    }
}

/// Reads what there is now from a descriptor that does not block.
pub fn read_now(descriptor: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(descriptor, buffer)?)
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
