//! Running one program: input on stdin, output and exit code back, never longer than its timeout. When
//! the time is up its whole process group is killed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::hook_environment::find_program;
use super::sandbox::Sandbox;
use crate::caller::Caller;
use crate::dialect::{Ending, LateOutput};
use crate::sys::child_signal::make_children_waitable;
use crate::sys::descriptors::restore_limit;
use crate::sys::process_group::ProcessGroup;
use crate::sys::shortage::is_shortage;

/// How long to read on after the program has ended. Its own output is in the pipe by then, but a child of it
/// may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(100);

/// While the system is short of descriptors or processes, a start is tried again this often, for one part in
/// `SHORTAGE_PART` of the program's time.
const SHORTAGE_RETRY: Duration = Duration::from_millis(20);
const SHORTAGE_PART: u32 = 4;

/// More output than this is a failure.
const LONGEST_OUTPUT: usize = 32 << 20;

/// A program to run, and where.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Program and arguments.
    pub words: &'a [OsString],
    /// Variables that the entry sets.
    pub env: &'a [(String, String)],
    /// Working directory and environment.
    pub caller: &'a Caller,
    /// In a replay: where it runs instead, within limits, without anything left running.
    pub sandbox: Option<&'a Sandbox>,
}

/// The output of a program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Everything on stdout.
    pub stdout: Vec<u8>,
    /// Everything on stderr.
    pub stderr: Vec<u8>,
    /// Its exit code or signal.
    pub ending: Ending,
    /// Another process still holds its output open.
    pub held_open: bool,
}

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It took longer than its timeout.
    #[error("no answer within {:.1} s; it was killed", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The system could not wait for it.
    #[error("cannot wait for it: {0}")]
    Wait(io::Error),
    /// It printed too much.
    #[error("it printed more than {} MiB", LONGEST_OUTPUT >> 20)]
    TooMuchOutput,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There are no words.
    #[error("the command is empty")]
    Empty,
    /// There is no such file, or no such interpreter.
    #[error("`{0}` does not exist; check the path, or the shebang of the script")]
    NotFound(String),
    /// It is a bare name, and no directory of the PATH has it.
    #[error(
        "`{0}` is not on your own PATH, which is where hooks look for programs; write its whole path, or \
         `pass_env: [PATH]` to look on the agent's"
    )]
    NotOnPath(String),
    /// It is not executable.
    #[error("`{0}` is not executable; run `chmod +x {0}`")]
    NotExecutable(String),
    /// It is a script without a first line that names its interpreter.
    #[error("`{0}` has no shebang; start it with `#!/bin/sh` or the like")]
    NoShebang(String),
    /// There are too many open files or processes, or too little memory.
    #[error("cannot start `{program}`, because the system is short of something: {error}")]
    Shortage {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// Anything else.
    #[error("cannot start `{program}`: {error}")]
    Other {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
}

impl RunError {
    /// Whether the program did not start because the system is short of something.
    pub const fn is_shortage(&self) -> bool {
        matches!(self, Self::Start(StartError::Shortage { .. }))
    }
}

impl StartError {
    /// The cause of a failed start, in words for the user.
    pub fn new(program: &OsStr, error: io::Error) -> Self {
        const ENOEXEC: i32 = 8;
        let program = program.display().to_string();
        if error.kind() == io::ErrorKind::NotFound {
            Self::NotFound(program)
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            Self::NotExecutable(program)
        } else if error.raw_os_error() == Some(ENOEXEC) {
            Self::NoShebang(program)
        } else if is_shortage(&error) {
            Self::Shortage { program, error }
        } else {
            Self::Other { program, error }
        }
    }
}

/// Runs a program with `input` on stdin, for `timeout` at most.
pub async fn run(
    program: &Program<'_>,
    input: Vec<u8>,
    timeout: Duration,
    late_output: LateOutput,
) -> Result<Finished, RunError> {
    let started = Instant::now();
    let mut child = start_when_possible(program, timeout / SHORTAGE_PART).await?;
    restore_limit(child.id());
    let (timeout, running_since) = (timeout.saturating_sub(started.elapsed()), Instant::now());
    let group = ProcessGroup::of(child.id());
    if let (Some(sandbox), Some(group)) = (program.sandbox, group) {
        sandbox.enter(group);
    }
    if let Some(mut stdin) = child.stdin.take() {
        // A hook may ignore its input: a broken pipe is not a failure.
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let stdout = child.stdout.take().map(PipeReader::spawn);
    let stderr = child.stderr.take().map(PipeReader::spawn);
    let timed_out = || {
        group.inspect(|group| group.kill());
        RunError::TimedOut(timeout)
    };
    // If this future is dropped while it waits, the whole group has to be killed, not the first process alone.
    let mut guard = KillOnDrop(group);
    let _leave = LeaveSandbox { sandbox: program.sandbox, group };
    let Ok(status) = tokio::time::timeout(timeout, child.wait()).await else {
        return Err(timed_out());
    };
    guard.0 = None;
    let status = status.map_err(RunError::Wait)?;
    let wait = || match late_output {
        LateOutput::Wait => timeout.saturating_sub(running_since.elapsed()),
        LateOutput::Ignore => DRAIN,
    };
    let (stdout, stdout_open) = PipeReader::finish(stdout, wait()).await;
    let (stderr, stderr_open) = PipeReader::finish(stderr, wait()).await;
    let held_open = stdout_open || stderr_open;
    if held_open && late_output == LateOutput::Wait {
        return Err(timed_out());
    }
    if stdout.len() > LONGEST_OUTPUT || stderr.len() > LONGEST_OUTPUT {
        return Err(RunError::TooMuchOutput);
    }
    Ok(Finished { stdout, stderr, ending: ending(status), held_open })
}

struct KillOnDrop(Option<ProcessGroup>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.inspect(|group| group.kill());
    }
}

struct LeaveSandbox<'a> {
    sandbox: Option<&'a Sandbox>,
    group: Option<ProcessGroup>,
}

impl Drop for LeaveSandbox<'_> {
    fn drop(&mut self) {
        if let (Some(sandbox), Some(group)) = (self.sandbox, self.group) {
            sandbox.leave(group);
        }
    }
}

/// Tries again for `patience` while the system is short of something: other hooks end and free it.
async fn start_when_possible(
    program: &Program<'_>,
    patience: Duration,
) -> Result<Child, StartError> {
    let begun = Instant::now();
    loop {
        match start(program) {
            Err(StartError::Shortage { .. }) if begun.elapsed() < patience => {
                tokio::time::sleep(SHORTAGE_RETRY).await;
            }
            started => return started,
        }
    }
}

fn start(program: &Program<'_>) -> Result<Child, StartError> {
    let Program { words, env, caller, sandbox } = *program;
    let wrapped = sandbox.and_then(|sandbox| sandbox.wrap(words, env));
    let env = if wrapped.is_some() { &[] } else { env };
    let words = wrapped.as_deref().unwrap_or(words);
    let [program, arguments @ ..] = words else { return Err(StartError::Empty) };
    let Some(file) = find_program(program, env, caller) else {
        return Err(StartError::NotOnPath(program.display().to_string()));
    };
    let mut command = Command::new(file);
    command
        .arg0(program)
        .args(arguments)
        .env_clear()
        .envs(caller.env.iter().map(|(key, value)| (key, value)))
        .envs(env.iter().map(|(key, value)| (key, value)))
        .envs(sandbox.iter().flat_map(|sandbox| sandbox.env()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // Hermes deletes workspaces; a guard must run even if the working directory is gone.
    let cwd = sandbox.map_or(caller.cwd.as_path(), Sandbox::cwd);
    command.current_dir(if cwd.is_dir() { cwd } else { "/".as_ref() });
    make_children_waitable();
    command.spawn().map_err(|error| StartError::new(program, error))
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, signal) => Ending::Signal(signal.unwrap_or(0)),
    }
}

/// Reads a pipe while the program runs.
struct PipeReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl PipeReader {
    fn spawn(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let task = tokio::spawn(async move {
            let mut chunk = vec![0; 64 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
                let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if sink.len() <= LONGEST_OUTPUT {
                    sink.extend_from_slice(&chunk[..count]);
                }
            }
        });
        Self { bytes, task }
    }

    /// What came within `wait`, and whether the pipe is still open.
    async fn finish(reader: Option<Self>, wait: Duration) -> (Vec<u8>, bool) {
        let Some(mut reader) = reader else { return (Vec::new(), false) };
        let open = tokio::time::timeout(wait.max(DRAIN), &mut reader.task).await.is_err();
        if open {
            reader.task.abort();
        }
        let bytes =
            std::mem::take(&mut *reader.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        (bytes, open)
    }
}
