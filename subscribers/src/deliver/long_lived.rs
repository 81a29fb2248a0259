//! A program that stays up: it reads one event per line of JSON and answers each with one line. The answer
//! `{"error": "…"}` means that the event failed; any other line means success. A program that exits, writes
//! more than one line, or does not answer in time has failed and is started again.

use std::io;
use std::time::Duration;

use hookbus::log::Row;
use hookbus::sys::process_group::ProcessGroup;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::command::{CommandError, start_long_lived};
use super::input::DeliveryContext;
use crate::observer::Observer;

/// A longer answer is an error.
const MAX_ANSWER: u64 = 1 << 20;

/// How long a program may run on after its stdin was closed.
const EXIT_LIMIT: Duration = Duration::from_secs(3);

/// How long to wait for the exit status of a program that closed its stdout.
const STATUS_LIMIT: Duration = Duration::from_secs(1);

/// Why a long-lived program did not handle an event.
#[derive(Debug, thiserror::Error)]
pub enum LongLivedError {
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] CommandError),
    /// It was started without pipes.
    #[error("the program has no pipes")]
    NoPipes,
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
    group: Option<ProcessGroup>,
    /// `None` once it is closed.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl LongLivedProgram {
    /// Sends it one event and waits for the answer. After a failure of its own (not a reported error) the program is not reused.
    pub(super) async fn send(
        &mut self,
        observer: &Observer,
        row: &Row,
        context: &DeliveryContext,
    ) -> Result<(), LongLivedError> {
        let mut running = match self.0.take() {
            Some(running) => running,
            None => Running::start(observer, context)?,
        };
        let answer =
            running.exchange(&context.input_line(row), observer.settings().timeout).await?;
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
    fn start(observer: &Observer, context: &DeliveryContext) -> Result<Self, LongLivedError> {
        let mut child = start_long_lived(observer, context)?;
        let group = ProcessGroup::of(child.id());
        match (child.stdin.take(), child.stdout.take()) {
            (stdin @ Some(_), Some(stdout)) => {
                Ok(Self { child, group, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err(LongLivedError::NoPipes),
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
        self.group.inspect(|group| group.kill());
    }
}
