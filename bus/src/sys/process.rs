//! Looking at processes and users, and signalling one process.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, geteuid, getpgrp, pidfd_open, pidfd_send_signal, setsid, test_kill_process,
};
use rustix::termios::tcgetpgrp;

pub use rustix::process::Signal;

/// The user that this process acts as.
pub fn effective_uid() -> u32 {
    geteuid().as_raw()
}

/// The home directory of the user in the password file, whatever `HOME` says.
pub fn home_directory() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok()??;
    Some(user.dir)
}

/// The name of this machine or container; empty if the system does not tell.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Whether `input` is the terminal that this process belongs to, and this process is in the foreground of it: what is
/// typed there is typed for it.
pub fn has_own_terminal(input: impl AsFd) -> bool {
    tcgetpgrp(input).is_ok_and(|group| group == getpgrp())
}

/// Makes this process the leader of a session of its own: closing the terminal does not end it.
pub fn start_session() {
    if let Err(error) = setsid() {
        tracing::debug!(%error, "already a session leader");
    }
}

/// Whether a process has this id now. True for one that has ended but was not waited for yet.
pub fn is_running(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Without permission to signal it, the process still exists.
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)))
}

/// The process above `pid`; none if that cannot be found out.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything; the parent is the fourth.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// The command line of a process, as words; empty if that cannot be found out.
pub fn arguments(pid: u32) -> Vec<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    raw.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Whether a process reads its stdin from a terminal.
pub fn has_terminal_input(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/fd/0"))
        .is_ok_and(|stdin| stdin.starts_with("/dev/pts") || stdin.starts_with("/dev/tty"))
}

/// A handle on one process. It never refers to another one, even if the id is used again.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    handle: OwnedFd,
}

impl ProcessHandle {
    /// A handle on the process that has this id now; none if there is no such process.
    pub fn open(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        Some(Self { pid, handle: pidfd_open(pid, PidfdFlags::empty()).ok()? })
    }

    /// Its process id.
    pub const fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends it a signal; fails if it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Whether it has ended, waited for by its parent or not.
    pub fn has_ended(&self) -> bool {
        let mut ending = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut ending, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_runs_until_it_is_waited_for() {
        let mut child = Command::new("true").spawn().expect("true starts");
        let handle =
            ProcessHandle::open(i32::try_from(child.id()).expect("a pid")).expect("a handle");
        child.wait().expect("it ends");
        assert!(handle.has_ended());
        assert!(handle.signal(Signal::TERM).is_err());
        assert!(!is_running(u64::from(child.id())));
        assert!(is_running(u64::from(std::process::id())));
        assert!(!is_running(0) && !is_running(u64::MAX));
    }
}
