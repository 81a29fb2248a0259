//! A program that stays up: it reads one event per line of JSON and answers each with one line. The answer
//! `{"error": "…"}` means that the event failed; any other line means success. A program that exits, writes
//! more than one line, or does not answer in time has failed and is started again.

use std::io;
use std::time::Duration;

use hookbus::decide::{Child, Observer, Place, line, start};
use hookbus::log::Row;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// A longer answer is an error.
const MAX_ANSWER: u64 = 1 << 20;

/// How long a program may run on after its stdin was closed.
const EXIT_LIMIT: Duration = Duration::from_secs(3);

/// How long to wait for the exit status of a program that closed its stdout.
const STATUS_LIMIT: Duration = Duration::from_secs(1);

/// Why a long-lived program did not handle an event.
#[derive(Debug, thiserror::Error)]
pub enum LongLivedError {
    /// It cannot be started; the bus says why.
    #[error("{0}")]
    Start(String),
    /// It answered with an error.
    #[error("{0}")]
    Reported(String),
    /// It wrote more than one line for the event before.
    #[error("the program answered with more than one line; print one line per event")]
    ExtraOutput,
    /// Its answer is too long.
    #[error("the answer of the program is longer than 1 MiB")]
    TooLong,
    /// It did not answer in time.
    #[error("no answer within {:.1} s; raise `timeout` if the program needs longer", .0.as_secs_f64())]
    TimedOut(Duration),
    /// Its pipes broke.
    #[error("the program closed its input or output: {0}")]
    Pipe(io::Error),
    /// It exited, or closed its stdout, in the middle of an event.
    #[error("the program ended without an answer ({0})")]
    Ended(String),
}

/// The program; `None` while it does not run.
#[derive(Debug, Default)]
pub(super) struct LongLivedProgram(Option<Running>);

#[derive(Debug)]
struct Running {
    child: Child,
    /// Its process group, which is killed with it.
    group: Option<Pid>,
    /// `None` once it is closed.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl LongLivedProgram {
    /// Sends it one event and waits for the answer. After a failure the program is not reused.
    pub(super) async fn send(
        &mut self,
        observer: &Observer,
        row: &Row,
        place: &Place,
    ) -> Result<(), LongLivedError> {
        let mut running = match self.0.take() {
            Some(running) => running,
            None => Running::start(observer, place)?,
        };
        let answer = running.exchange(&line(row, place), observer.terms().timeout).await?;
        self.0 = Some(running);
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        match answer.get("error") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(error)) => Err(LongLivedError::Reported(error.clone())),
            Some(error) => Err(LongLivedError::Reported(error.to_string())),
        }
    }

    /// Closes its stdin and waits until it exits.
    pub(super) async fn close(&mut self) {
        let Some(mut running) = self.0.take() else { return };
        drop(running.stdin.take());
        if tokio::time::timeout(EXIT_LIMIT, running.child.wait()).await.is_err() {
            tracing::warn!("killed a long-lived observer that did not exit when its stdin closed");
        }
    }
}

impl Running {
    fn start(observer: &Observer, place: &Place) -> Result<Self, LongLivedError> {
        let mut child = start(observer, &place.env).map_err(LongLivedError::Start)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        match (child.stdin.take(), child.stdout.take()) {
            (stdin @ Some(_), Some(stdout)) => {
                Ok(Self { child, group, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err(LongLivedError::Start("the program has no pipes".to_owned())),
        }
    }

    async fn exchange(&mut self, line: &[u8], limit: Duration) -> Result<Vec<u8>, LongLivedError> {
        if !self.stdout.buffer().is_empty() {
            return Err(LongLivedError::ExtraOutput);
        }
        let mut answer = Vec::new();
        let exchanged = async {
            let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            stdin.write_all(line).await?;
            stdin.flush().await?;
            (&mut self.stdout).take(MAX_ANSWER).read_until(b'\n', &mut answer).await
        };
        tokio::time::timeout(limit, exchanged)
            .await
            .map_err(|_| LongLivedError::TimedOut(limit))?
            .map_err(LongLivedError::Pipe)?;
        if answer.ends_with(b"\n") {
            return Ok(answer);
        }
        if answer.len() as u64 >= MAX_ANSWER {
            return Err(LongLivedError::TooLong);
        }
        let how = match tokio::time::timeout(STATUS_LIMIT, self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(_)) | Err(_) => "it closed its stdout".to_owned(),
        };
        Err(LongLivedError::Ended(how))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `kill_on_drop` would kill the program, but not its children.
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "the process group has ended already");
        }
    }
}
