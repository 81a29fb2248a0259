//! Speaking to a program that stays up: an event is one line of JSON, its answer is one line. An
//! answer `{"error": "…"}` says that it failed; any other line says that it is done.

use std::time::Duration;

use hookbus::decide::{Child, Observer, Place, line, start};
use hookbus::log::Row;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// A longer answer is none.
const LONGEST_ANSWER: u64 = 1 << 20;

/// The program, while it runs.
#[derive(Debug, Default)]
pub(super) struct Speaker(Option<Running>);

#[derive(Debug)]
struct Running {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Speaker {
    /// Tells it of one event and waits for its answer. A program that does not answer in time, or
    /// dies over it, is started anew for the next try.
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
        match serde_json::from_str::<Value>(&answer) {
            Ok(answer) => match answer.get("error").filter(|error| !error.is_null()) {
                Some(Value::String(error)) => Err(error.clone()),
                Some(error) => Err(error.to_string()),
                None => Ok(()),
            },
            Err(_) => Ok(()),
        }
    }
}

impl Running {
    fn start(observer: &Observer, place: &Place) -> Result<Self, String> {
        let mut child = start(observer, &place.env)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err("it has no pipes".to_owned()),
        }
    }

    async fn ask(&mut self, line: &[u8], limit: Duration) -> Result<String, String> {
        let mut answer = Vec::new();
        let asked = async {
            self.stdin.write_all(line).await?;
            self.stdin.flush().await?;
            (&mut self.stdout).take(LONGEST_ANSWER).read_until(b'\n', &mut answer).await
        };
        let count = tokio::time::timeout(limit, asked)
            .await
            .map_err(|_| {
                format!("no answer within {:.1} s; it is started anew", limit.as_secs_f64())
            })?
            .map_err(|error| format!("it went away: {error}"))?;
        if count == 0 {
            let status = tokio::time::timeout(Duration::from_secs(1), self.child.wait()).await;
            let how = match status {
                Ok(Ok(status)) => status.to_string(),
                Ok(Err(_)) | Err(_) => "it closed its output".to_owned(),
            };
            return Err(format!("it ended without an answer ({how})"));
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its children with it; `kill_on_drop` would leave them.
        if let Some(group) = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "it is gone already");
        }
    }
}
