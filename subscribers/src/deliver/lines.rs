//! Speaking to a program that stays up: an event is one line of JSON, its answer is one line. An
//! answer `{"error": "…"}` says that it failed; any other line says that it is done. Whoever breaks
//! off, says more than a line, or says nothing in time has failed, and is started anew.

use std::time::Duration;

use hookbus::decide::{Child, Observer, Place, line, start};
use hookbus::log::Row;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// A longer answer is none.
const LONGEST_ANSWER: u64 = 1 << 20;

/// At the end of its input a program may still have something to put in order.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The program, while it runs.
#[derive(Debug, Default)]
pub(super) struct Speaker(Option<Running>);

#[derive(Debug)]
struct Running {
    child: Child,
    /// Its process group, which goes with it.
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Speaker {
    /// Tells it of one event and waits for its answer.
    pub(super) async fn tell(
        &mut self,
        observer: &Observer,
        row: &Row,
        place: &Place,
    ) -> Result<(), String> {
        let mut running = match self.0.take() {
            Some(running) => running,
            None => Running::start(observer, place)?,
        };
        let limit = observer.terms().timeout;
        let answer = running.ask(&line(row, place), limit).await?;
        self.0 = Some(running);
        match serde_json::from_slice::<Value>(&answer) {
            Ok(answer) => match answer.get("error").filter(|error| !error.is_null()) {
                Some(Value::String(error)) => Err(error.clone()),
                Some(error) => Err(error.to_string()),
                None => Ok(()),
            },
            Err(_) => Ok(()),
        }
    }

    /// Ends its input and lets it finish.
    pub(super) async fn close(&mut self) {
        let Some(mut running) = self.0.take() else { return };
        drop(running.stdin.take());
        if tokio::time::timeout(LAST_WORDS, running.child.wait()).await.is_err() {
            tracing::warn!("a long-lived observer did not end with its input; it is killed");
        }
    }
}

impl Running {
    fn start(observer: &Observer, place: &Place) -> Result<Self, String> {
        let mut child = start(observer, &place.env)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let (stdin, stdout) = (Some(stdin), BufReader::new(stdout));
                Ok(Self { child, group, stdin, stdout })
            }
            _ => Err("it has no pipes".to_owned()),
        }
    }

    async fn ask(&mut self, line: &[u8], limit: Duration) -> Result<Vec<u8>, String> {
        let Some(stdin) = &mut self.stdin else { return Err("it has no input".to_owned()) };
        if !self.stdout.buffer().is_empty() {
            return Err("it answered with more than one line; print one line per event".to_owned());
        }
        let mut answer = Vec::new();
        let asked = async {
            stdin.write_all(line).await?;
            stdin.flush().await?;
            (&mut self.stdout).take(LONGEST_ANSWER).read_until(b'\n', &mut answer).await
        };
        tokio::time::timeout(limit, asked)
            .await
            .map_err(|_| format!("no answer within {:.1} s", limit.as_secs_f64()))?
            .map_err(|error| format!("it went away: {error}"))?;
        if answer.ends_with(b"\n") {
            return Ok(answer);
        }
        if answer.len() as u64 >= LONGEST_ANSWER {
            return Err("its answer is longer than 1 MiB".to_owned());
        }
        let status = tokio::time::timeout(Duration::from_secs(1), self.child.wait()).await;
        let how = match status {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(_)) | Err(_) => "it closed its output".to_owned(),
        };
        Err(format!("it ended without an answer ({how})"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its children with it; `kill_on_drop` would leave them.
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "it is gone already");
        }
    }
}
