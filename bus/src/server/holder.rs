//! The process that has a home to itself, found by the lock it holds on it: whether or not it answers.
//!
//! Nothing is taken on trust. The system says who holds the lock, and a signal goes to the very process that was
//! looked at, never to one that got its number since.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The list of all locks is read in parts, and can change in between.
const TRIES: usize = 5;

/// The file that a daemon locks for as long as it has its home to itself.
pub(super) fn lock_file(home: &Path) -> PathBuf {
    home.join("serve.lock")
}

/// A process that holds the lock of a home.
#[derive(Debug)]
pub struct Holder {
    pid: Pid,
    process: OwnedFd,
    lock: PathBuf,
}

impl Holder {
    /// Whoever has `home` to itself; none if nobody does, or nobody that can be seen from here.
    pub fn of(home: &Path) -> Option<Self> {
        let lock = lock_file(home);
        let inode = fs::metadata(&lock).ok()?.ino();
        let look = || lockers(inode).into_iter().find_map(|pid| Self::at(pid, &lock));
        std::iter::repeat_with(look).take(TRIES).flatten().next()
    }

    fn at(pid: Pid, lock: &Path) -> Option<Self> {
        // First a handle on the process, then the look: what was seen is true of what we have.
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let holder = Self { pid, process, lock: lock.to_owned() };
        (holder.still_holds() && !holder.has_ended()).then_some(holder)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        pidfd_send_signal(&self.process, signal).map_err(Into::into)
    }

    /// Whether it is gone. A process that has ended but that nobody has buried yet is.
    pub fn has_ended(&self) -> bool {
        let mut ending = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut ending, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Whether it has not given the home back yet.
    pub fn still_holds(&self) -> bool {
        let Ok(lock) = fs::metadata(&self.lock) else { return false };
        let about = PathBuf::from(format!("/proc/{}", self.pid()));
        let open = fs::read_dir(about.join("fd")).into_iter().flatten().flatten();
        let mut open =
            open.filter(|file| fs::metadata(file.path()).is_ok_and(|file| is_same(&file, &lock)));
        open.any(|file| {
            let told = fs::read_to_string(about.join("fdinfo").join(file.file_name()));
            told.is_ok_and(|told| told.lines().any(is_held))
        })
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A line such as `lock: 1: FLOCK ADVISORY WRITE 4711 fe:00:815 0 EOF`.
fn is_held(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&"lock:") && words.contains(&"FLOCK") && words.contains(&"WRITE")
}

/// The processes that have locked a file with this inode, on any disk.
fn lockers(inode: u64) -> Vec<Pid> {
    let all = fs::read_to_string("/proc/locks").unwrap_or_default();
    all.lines().filter_map(|line| locker(line, inode)).collect()
}

/// A line such as `6: FLOCK ADVISORY WRITE 4711 fe:00:815 0 EOF`.
fn locker(line: &str, inode: u64) -> Option<Pid> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
    let (pid, place) = (words.next()?, words.next()?);
    let (_, locked) = place.rsplit_once(':')?;
    let pid: u32 = pid.parse().ok()?; // another container's has no number here
    Pid::from_raw(i32::try_from(pid).ok()?).filter(|_| locked.parse() == Ok(inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_on_that_file_names_a_process() {
        let pid = |line| locker(line, 815).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE 4711 fe:00:815 0 EOF"), Some(4711));
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE 4711 fe:00:816 0 EOF"), None);
        assert_eq!(pid("9: POSIX  ADVISORY  READ 4711 fe:00:815 128 128"), None);
        assert_eq!(pid("6: FLOCK  ADVISORY  WRITE -1 fe:00:815 0 EOF"), None);
        assert_eq!(pid(""), None);
    }
}
