//! One plugin's process and the lines to it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::super::consent::Objection;
use super::super::surroundings::Surroundings;
use super::folder::{Code, Found};
use super::log;
use super::moment::hears;
use super::plugin::Question;
use crate::event::{EventId, Heard};
use crate::json::{JsonError, read_leniently};

const HOST: &str = include_str!("../../../host/host.py");

/// No answer is longer.
const LONGEST_ANSWER: usize = 16 << 20;

/// A plugin that runs.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    to: ChildStdin,
    from: mpsc::Receiver<Result<Vec<u8>, Silence>>,
    hooks: Vec<String>,
    env: Vec<(OsString, OsString)>,
    /// What it runs.
    pub(super) code: Code,
    /// How many questions there were.
    asked: u64,
    /// The event that it was started for.
    since: EventId,
    /// How many events it was told of.
    told: u64,
    /// Whether a question was begun and never finished: whoever asked it has gone away.
    open: bool,
}

/// Why nothing more is heard of it.
#[derive(Debug)]
enum Silence {
    /// It was at an event where nobody waited for it, and did not come back in time.
    Over(String),
    Ended(io::Error),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Its process was gone before the question.
    Gone(String),
    /// Its process went away over the question.
    Died(String),
    /// It said something that is no answer, and lives on.
    Garbled(String),
    /// It does not answer.
    Hung(String),
    /// It cannot be loaded.
    Broken(String),
    /// It is not asked for a while.
    Resting(String),
    /// Nobody has agreed to what would be started.
    Refused(Objection),
}

/// What one process is started with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::decide) struct Launch {
    /// The Python to run it with.
    pub(in crate::decide) interpreter: OsString,
    /// How many bytes it may use.
    pub(in crate::decide) memory: u64,
}

impl Process {
    pub(super) async fn start(
        found: &Found,
        code: &Code,
        launch: &Launch,
        question: &Question,
        log: &Path,
        limit: Duration,
    ) -> Result<Self, Trouble> {
        let place = &question.place;
        let broken = |why: String| Trouble::Broken(why);
        let mut child = Command::new(&launch.interpreter)
            .args(["-u", "-c", HOST])
            .env_clear()
            .envs(place.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log::open(log).map_or_else(|_| Stdio::null(), Stdio::from))
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(|error| {
                broken(format!(
                    "cannot start `{}`: {error}; set `interpreter:`",
                    launch.interpreter.display()
                ))
            })?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken("its process has no pipes".to_owned()));
        };
        let mut process = Self {
            child,
            to,
            from: listen(from, &found.key),
            hooks: Vec::new(),
            env: place.env.clone(),
            code: code.clone(),
            asked: 0,
            since: question.id,
            told: 0,
            open: false,
        };
        let hello = json!({
            "form": found.form.as_str(), "folder": bytes(found.folder.as_os_str()), "key": found.key,
            "manifest": found.manifest, "memory": launch.memory, "cwd": bytes(place.cwd.as_os_str()),
        });
        let hello = Asked { head: hello, payload: String::new() };
        let loaded = process.exchange(hello, limit).await?;
        if let Some(why) = loaded["error"].as_str() {
            return Err(broken(format!("it cannot be loaded: {why}{}", details(log, place))));
        }
        process.hooks = texts(&loaded["hooks"]);
        let unused = texts(&loaded["unused"]);
        if !unused.is_empty() {
            tracing::info!(plugin = %found.key, unused = unused.join(", "), "a plugin registers more than hooks; that is not used");
        }
        Ok(process)
    }

    /// What it listens to.
    pub(super) fn hooks(&self) -> &[String] {
        &self.hooks
    }

    pub(super) fn listens_to(&self, name: &str) -> bool {
        self.hooks.iter().any(|pattern| hears(pattern, name))
    }

    /// Asks about one event. Whoever waits does so for no longer than `patience`; nobody, where that is nothing.
    pub(super) async fn ask(
        &mut self,
        question: &Question,
        limit: Duration,
        patience: Duration,
    ) -> Result<Value, Trouble> {
        let mut asked = self.written(question);
        let waited_for = if patience.is_zero() { limit } else { limit.min(patience) };
        asked.head["limit"] = json!(waited_for.as_secs_f64());
        self.exchange(asked, limit).await
    }

    /// What it has heard by now. Onlookers that the answer has overtaken had not been told yet.
    pub(super) fn heard(&self, answer: &Value) -> Heard {
        let behind = answer["behind"].as_u64().unwrap_or(0);
        Heard { since: self.since, events: self.told.saturating_sub(behind) }
    }

    /// Tells about an event where nothing can be said; nobody waits for what it does then, and it may take its
    /// own time.
    pub(super) async fn tell(
        &mut self,
        question: &Question,
        limit: Duration,
        own: Duration,
    ) -> Result<(), Trouble> {
        let mut asked = self.written(question);
        asked.head["looks_on"] = json!(true);
        asked.head["timeout"] = json!(own.as_secs_f64());
        self.begin()?;
        let asked = asked.bytes();
        let sent = tokio::time::timeout(limit, self.to.write_all(&asked)).await;
        self.finish(sent.is_ok());
        match sent {
            Ok(sent) => {
                sent.map_err(|error| Trouble::Gone(format!("its process is gone: {error}")))
            }
            Err(_) => Err(Trouble::Hung("it does not listen; it was ended".to_owned())),
        }
    }

    fn written(&mut self, question: &Question) -> Asked {
        let Question { name, session, payload, place, .. } = question;
        self.told += 1;
        let mut head =
            json!({"name": name, "session": session, "cwd": bytes(place.cwd.as_os_str())});
        if self.env != place.env {
            let pair =
                |(key, value): &(OsString, OsString)| (bytes(key), Value::String(bytes(value)));
            head["env"] = Value::Object(place.env.iter().map(pair).collect());
            self.env.clone_from(&place.env);
        }
        Asked { head, payload: payload.to_string() }
    }

    async fn exchange(&mut self, mut asked: Asked, limit: Duration) -> Result<Value, Trouble> {
        let started = Instant::now();
        self.begin()?;
        self.asked += 1;
        asked.head["id"] = json!(self.asked);
        let mut written = false;
        let asked = asked.bytes();
        let talk = async {
            self.to.write_all(&asked).await.map_err(Silence::Ended)?;
            written = true;
            let ended = || Err(Silence::Ended(io::Error::other("it ended")));
            self.from.recv().await.unwrap_or_else(ended)
        };
        let talked = tokio::time::timeout(limit, talk).await;
        let heard = match talked {
            Err(_) => Err(Trouble::Hung(format!(
                "no answer within {:.1} s; it was ended",
                started.elapsed().as_secs_f64()
            ))),
            // Another event was its end.
            Ok(Err(Silence::Over(why))) => Err(Trouble::Gone(why)),
            Ok(Err(Silence::Ended(error))) if !written => {
                Err(Trouble::Gone(format!("its process is gone: {error}")))
            }
            Ok(Err(Silence::Ended(error))) => {
                Err(Trouble::Died(format!("its process is gone: {error}")))
            }
            Ok(Ok(line)) => self.answer_in(&line),
        };
        self.finish(matches!(heard, Ok(_) | Err(Trouble::Garbled(_))));
        heard
    }

    fn answer_in(&self, line: &[u8]) -> Result<Value, Trouble> {
        let garbled = |why: JsonError| Trouble::Garbled(format!("it answered nonsense: {why}"));
        let answer = read_leniently(line).map_err(garbled)?;
        if answer["id"] != json!(self.asked) {
            // Somebody else speaks in its name, a child of its perhaps: no word of it counts any more.
            return Err(Trouble::Died("it answered another question; it was ended".to_owned()));
        }
        Ok(answer)
    }

    fn begin(&mut self) -> Result<(), Trouble> {
        if self.open || !matches!(self.child.try_wait(), Ok(None)) {
            return Err(Trouble::Gone("its process ended".to_owned()));
        }
        self.open = true;
        Ok(())
    }

    fn finish(&mut self, is_well: bool) {
        if is_well {
            self.open = false;
        } else {
            self.end();
        }
    }

    /// The whole group: a plugin may have started more.
    fn end(&self) {
        let group = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "a plugin that hung is gone already");
        }
    }
}

impl Drop for Process {
    /// One that is well is hung up on, and ends by itself within seconds: a plugin may have something to
    /// bring to an end, and nobody waits for that.
    fn drop(&mut self) {
        if self.open {
            self.end();
        }
    }
}

/// A question as it is written: a line that says what it is and how much follows, and the payload.
struct Asked {
    head: Value,
    payload: String,
}

impl Asked {
    fn bytes(mut self) -> Vec<u8> {
        self.head["size"] = json!(self.payload.len());
        format!("{}\n{}", self.head, self.payload).into_bytes()
    }
}

/// Where to read more. What is printed in a replay goes with its scratch place.
fn details(log: &Path, place: &Surroundings) -> String {
    match place.var("HOOKBUS_REPLAY") {
        Some(_) => String::new(),
        None => format!("; {} has the details", log.display()),
    }
}

/// A name or value that need not be UTF-8, one character for each byte.
fn bytes(text: &OsStr) -> String {
    text.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

/// Hears all that it says, and at once that an onlooker was its end.
fn listen(from: ChildStdout, plugin: &str) -> mpsc::Receiver<Result<Vec<u8>, Silence>> {
    let (hand_over, heard) = mpsc::channel(1);
    let plugin = plugin.to_owned();
    drop(tokio::spawn(async move {
        let mut from = BufReader::new(from);
        loop {
            let said = read_line(&mut from).await.map_err(Silence::Ended);
            let said =
                said.and_then(|line| over(&line).map_or(Ok(line), |why| Err(Silence::Over(why))));
            if let Err(Silence::Over(why)) = &said {
                tracing::warn!(plugin, why, "a plugin hung; its next event starts it again");
            }
            let is_last = said.is_err();
            if hand_over.send(said).await.is_err() || is_last {
                return;
            }
        }
    }));
    heard
}

fn over(line: &[u8]) -> Option<String> {
    let said = line.starts_with(b"{\"over\"").then(|| read_leniently(line).ok())??;
    said["over"].as_str().map(str::to_owned)
}

async fn read_line(from: &mut BufReader<ChildStdout>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let more = from.fill_buf().await?;
        if more.is_empty() {
            return Err(io::Error::other("it ended"));
        }
        let end = more.iter().position(|byte| *byte == b'\n');
        let part = &more[..end.unwrap_or(more.len())];
        if line.len() + part.len() > LONGEST_ANSWER {
            return Err(io::Error::other("its answer is longer than 16 MiB; it was ended"));
        }
        line.extend_from_slice(part);
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(line);
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
