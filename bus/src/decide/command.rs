//! Running one command: JSON in, output and an ending out, never longer than its limit. The whole
//! process group goes down with it when the time is up.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::rehearsal::Scratch;
use super::surroundings::Surroundings;
use crate::dialect::Ending;

/// What the command itself wrote is there at once; a child of its may hold its output open.
const DRAIN: Duration = Duration::from_millis(100);

/// Whether output that comes after a command's own end is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Latecomers {
    /// As long as the command's time lasts: that is what agents do.
    WaitedFor,
    /// Not: a child in the background must not hold the agent.
    LeftBehind,
}

/// More than this is no answer.
const LONGEST_OUTPUT: usize = 32 << 20;

/// What a command left behind.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) ending: Ending,
    /// Something else holds its output open still.
    pub(super) held_open: bool,
}

/// A program to run, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    pub(super) words: &'a [OsString],
    pub(super) env: &'a [(String, String)],
    pub(super) surroundings: &'a Surroundings,
    /// In a replay it runs here, within limits, and nothing of it stays.
    pub(super) scratch: Option<&'a Scratch>,
}

/// Runs a program with `input` on stdin; the error says why there is no answer.
pub(super) async fn run(
    program: &Program<'_>,
    input: Vec<u8>,
    limit: Duration,
    latecomers: Latecomers,
) -> Result<Ran, String> {
    let started = Instant::now();
    let mut child = start(program)?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(scratch), Some(process)) = (program.scratch, group) {
        scratch.limit(process);
        scratch.entered(process);
    }
    if let Some(mut stdin) = child.stdin.take() {
        // A hook may ignore its input: a broken pipe is no failure.
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let stdout = child.stdout.take().map(Output::collect);
    let stderr = child.stderr.take().map(Output::collect);
    let end_group = || {
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "nothing of a hook is left to be ended");
        }
    };
    let killed = || {
        end_group();
        format!("no answer within {:.1} s; it was killed", limit.as_secs_f64())
    };
    let mut unfinished = Unfinished(group);
    // In a replay nothing of it stays, however this ends.
    let _leaves = Leaves { scratch: program.scratch, group };
    let Ok(status) = tokio::time::timeout(limit, child.wait()).await else { return Err(killed()) };
    unfinished.0 = None;
    let status = status.map_err(|error| format!("cannot wait for it: {error}"))?;
    let wait = || match latecomers {
        Latecomers::WaitedFor => limit.saturating_sub(started.elapsed()),
        Latecomers::LeftBehind => DRAIN,
    };
    let (stdout, stdout_open) = Output::take(stdout, wait()).await;
    let (stderr, stderr_open) = Output::take(stderr, wait()).await;
    let held_open = stdout_open || stderr_open;
    if held_open && latecomers == Latecomers::WaitedFor {
        return Err(killed());
    }
    if stdout.len() > LONGEST_OUTPUT || stderr.len() > LONGEST_OUTPUT {
        return Err(format!("it printed more than {} MiB", LONGEST_OUTPUT >> 20));
    }
    Ok(Ran { stdout, stderr, ending: ending(status), held_open })
}

/// A command that nobody waits for any more: its whole group goes, not the first process alone.
struct Unfinished(Option<Pid>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(group) = self.0
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "it has ended already");
        }
    }
}

/// Takes a process group out of a scratch place when dropped.
struct Leaves<'a> {
    scratch: Option<&'a Scratch>,
    group: Option<Pid>,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if let (Some(scratch), Some(group)) = (self.scratch, self.group) {
            scratch.left(group);
        }
    }
}

fn start(program: &Program<'_>) -> Result<Child, String> {
    let Program { words, env, surroundings, scratch } = *program;
    let [program, arguments @ ..] = words else { return Err("the command is empty".to_owned()) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(surroundings.env.iter().map(|(key, value)| (key, value)))
        .envs(env.iter().map(|(key, value)| (key, value)))
        .envs(scratch.iter().flat_map(|scratch| scratch.env()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // A directory that is gone (Hermes deletes workspaces) must not keep a guard from running.
    let cwd = scratch.map_or(surroundings.cwd.as_path(), Scratch::cwd);
    if cwd.is_dir() {
        command.current_dir(cwd);
    } else {
        command.current_dir("/");
    }
    command.spawn().map_err(|error| why_not(program, &error))
}

/// What to do about a program that does not start.
pub(super) fn why_not(program: &OsStr, error: &io::Error) -> String {
    const NO_SHEBANG: i32 = 8; // ENOEXEC
    let program = program.display();
    if error.kind() == io::ErrorKind::NotFound {
        format!("`{program}` does not exist; check the path, or the shebang of the script")
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        format!("`{program}` is not executable; run `chmod +x {program}`")
    } else if error.raw_os_error() == Some(NO_SHEBANG) {
        format!("`{program}` has no shebang; start it with `#!/bin/sh` or the like")
    } else {
        format!("cannot start `{program}`: {error}")
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, signal) => Ending::Signal(signal.unwrap_or(0)),
    }
}

/// A pipe that is read while the command runs, and can be cut off afterwards.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn collect(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; 64 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
                let mut kept = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() <= LONGEST_OUTPUT {
                    kept.extend_from_slice(&chunk[..count]);
                }
            }
        });
        Self { bytes, reader }
    }

    /// What came within `wait`, and whether more could.
    async fn take(output: Option<Self>, wait: Duration) -> (Vec<u8>, bool) {
        let Some(mut output) = output else { return (Vec::new(), false) };
        let open = tokio::time::timeout(wait.max(DRAIN), &mut output.reader).await.is_err();
        if open {
            output.reader.abort();
        }
        let bytes =
            std::mem::take(&mut *output.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        (bytes, open)
    }
}
