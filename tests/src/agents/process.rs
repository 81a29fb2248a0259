//! Runs one agent process with a time limit, in its own process group. Its output goes to files, so that a
//! background child that keeps it open does not delay a test.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::process_group::ProcessGroup;
use super::scratch::Scratch;

const POLL: Duration = Duration::from_millis(10);

/// The result of a process.
#[derive(Debug)]
pub(super) struct ProcessResult {
    /// `None` if the time limit ended it, or a signal that a test sent.
    pub(super) exit: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) group: ProcessGroup,
}

/// Runs `command` to its end or to the limit. Panics if a signal ended it: no test sends one, and without its
/// number and the output nobody could say why.
pub(super) fn run(mut command: Command, scratch: &Scratch, limit: Duration) -> ProcessResult {
    let (stdout, stderr) = (scratch.root().join("stdout"), scratch.root().join("stderr"));
    command.stdin(Stdio::null()).stdout(file(&stdout)).stderr(file(&stderr)).process_group(0);
    let started = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut group = ProcessGroup::of(&child);
    let ended = wait(&mut child, started, limit);
    if ended.is_none() {
        group.kill_with_descendants();
        child.wait().expect("our own child");
    }
    group.look_for_members();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    if let Some(status) = ended.filter(|status| status.signal().is_some()) {
        let after = started.elapsed();
        panic!("{command:?} ended by {status} after {after:?}\n{stdout}\n{stderr}");
    }
    let exit = ended.and_then(|status| status.code());
    ProcessResult { exit, timed_out: ended.is_none(), stdout, stderr, group }
}

/// `None` at the limit.
pub(super) fn wait(child: &mut Child, started: Instant, limit: Duration) -> Option<ExitStatus> {
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("our own child") {
            return Some(status);
        }
        thread::sleep(POLL);
    }
    None
}

fn file(path: &Path) -> Stdio {
    File::create(path).expect("an output file").into()
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("an output file")).into_owned()
}
