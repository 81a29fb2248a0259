//! One plugin's process, and the protocol with it: a JSON line and a payload in, a JSON line out
//! (`host/host.py` is the other side). A process that gave no answer in time, or whose request was dropped,
//! is killed with its whole process group. When to start another one is decided in `instance.rs`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::event_mapping::subscription_covers;
use super::instance::PluginCall;
use super::log::{LogCopy, PluginLog};
use super::plugin_dir::{CodeVersion, PluginDir};
use crate::caller::Caller;
use crate::config::{PythonLaunch, Refusal};
use crate::event::{EventId, PluginHistory};
use crate::exec::find_program;
use crate::json::read_leniently;
use crate::sys::child_signal::make_children_waitable;
use crate::sys::descriptors::restore_limit;
use crate::sys::process_group::ProcessGroup;
use crate::sys::shortage::is_shortage;

const HOST: &str = include_str!("../../host/host.py");

/// A longer answer ends the process.
const LONGEST_ANSWER: usize = 16 << 20;

/// The running process of a plugin.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    /// What it prints.
    printed: Option<Arc<LogCopy>>,
    answers: mpsc::Receiver<Result<Vec<u8>, ReadEnd>>,
    subscriptions: Vec<String>,
    env: Vec<(OsString, OsString)>,
    /// The version of the code that it runs.
    pub(super) code: CodeVersion,
    /// The id of the last request.
    request_id: u64,
    /// The event that it was started for.
    since: EventId,
    /// How many events it was called about.
    events: u64,
    /// Whether a request was begun and has not finished. Still so at the next one: its future was dropped.
    unfinished: bool,
}

/// Why there are no more answers.
#[derive(Debug)]
enum ReadEnd {
    /// A notification took longer than its timeout, and the host's watchdog ended the process.
    Hung(String),
    /// Its stdout was closed, or an answer was too long.
    Closed(io::Error),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum ProcessError {
    /// The process had ended before the request.
    Gone(String),
    /// The process ended during the request.
    Died(String),
    /// The answer cannot be read. The process goes on.
    Garbled(String),
    /// It gave no answer in time.
    Hung(String),
    /// It cannot be loaded.
    Broken(String),
    /// It cannot be started, because the system is short of descriptors, processes or memory.
    Short(String),
    /// It is in back-off.
    BackingOff(String),
    /// The user has not approved what would be started.
    Refused(Refusal),
}

impl Process {
    pub(super) async fn start(
        dir: &PluginDir,
        code: &CodeVersion,
        launch: &PythonLaunch,
        call: &PluginCall,
        log: &PluginLog,
        limit: Duration,
    ) -> Result<Self, ProcessError> {
        let caller = &call.caller;
        let broken = |why: String| ProcessError::Broken(why);
        let Some(interpreter) = find_program(&launch.interpreter, &[], caller) else {
            let name = launch.interpreter.display();
            return Err(broken(format!(
                "`{name}` is not on your own PATH; set `interpreter:` to its whole path"
            )));
        };
        make_children_waitable();
        let (stderr, printed) = log.for_process(&dir.key);
        let mut child = Command::new(interpreter)
            .arg0(&launch.interpreter)
            .args(["-u", "-c", HOST])
            .env_clear()
            .envs(caller.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(|error| start_error(&launch.interpreter, &error))?;
        restore_limit(child.id());
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken("its process has no pipes".to_owned()));
        };
        let mut process = Self {
            child,
            stdin,
            printed,
            answers: read_answers(stdout, &dir.key),
            subscriptions: Vec::new(),
            env: caller.env.clone(),
            code: code.clone(),
            request_id: 0,
            since: call.id,
            events: 0,
            unfinished: false,
        };
        let head = json!({
            "form": dir.form.as_str(), "folder": latin1(dir.folder.as_os_str()), "key": dir.key,
            "manifest": dir.manifest, "memory": launch.memory, "cwd": latin1(caller.cwd.as_os_str()),
        });
        let setup = Request { head, payload: String::new() };
        let loaded = process.exchange(setup, limit).await?;
        if let Some(why) = loaded["error"].as_str() {
            return Err(broken(format!(
                "it cannot be loaded: {why}{}",
                details(&log.path, caller)
            )));
        }
        process.subscriptions = strings(&loaded["hooks"]);
        let unused = strings(&loaded["unused"]);
        if !unused.is_empty() {
            tracing::info!(plugin = %dir.key, unused = unused.join(", "), "a plugin registers more than hooks; the rest is not used");
        }
        Ok(process)
    }

    /// The events it has callbacks for.
    pub(super) fn subscriptions(&self) -> &[String] {
        &self.subscriptions
    }

    pub(super) fn is_subscribed_to(&self, name: &str) -> bool {
        self.subscriptions.iter().any(|event| subscription_covers(event, name))
    }

    /// Calls the plugin about one event, for `limit` at most. `caller_waits` is how long the caller still
    /// waits for the answer; zero if it has given up.
    pub(super) async fn call(
        &mut self,
        call: &PluginCall,
        limit: Duration,
        caller_waits: Duration,
    ) -> Result<Value, ProcessError> {
        let mut request = self.request(call);
        let caller_waits = if caller_waits.is_zero() { limit } else { limit.min(caller_waits) };
        request.head["limit"] = json!(caller_waits.as_secs_f64());
        self.exchange(request, limit).await
    }

    /// What the plugin could remember when it answered. Notifications still in its queue do not count.
    pub(super) fn history(&self, answer: &Value) -> PluginHistory {
        let behind = answer["behind"].as_u64().unwrap_or(0);
        PluginHistory { since: self.since, events: self.events.saturating_sub(behind) }
    }

    /// Notifies the plugin of an event where no answer is possible. Waits until the event is written, for
    /// `limit` at most, and not for the plugin, which may take `timeout` to handle it.
    pub(super) async fn notify(
        &mut self,
        call: &PluginCall,
        limit: Duration,
        timeout: Duration,
    ) -> Result<(), ProcessError> {
        let mut request = self.request(call);
        request.head["looks_on"] = json!(true);
        request.head["timeout"] = json!(timeout.as_secs_f64());
        self.begin()?;
        let request = request.bytes();
        let sent = tokio::time::timeout(limit, self.stdin.write_all(&request)).await;
        self.finish(sent.is_ok());
        match sent {
            Ok(sent) => {
                sent.map_err(|error| ProcessError::Gone(format!("its process is gone: {error}")))
            }
            Err(_) => {
                Err(ProcessError::Hung("it does not read its input; it was ended".to_owned()))
            }
        }
    }

    fn request(&mut self, call: &PluginCall) -> Request {
        let PluginCall { name, session, payload, caller, .. } = call;
        self.events += 1;
        let mut head =
            json!({"name": name, "session": session, "cwd": latin1(caller.cwd.as_os_str())});
        if self.env != caller.env {
            let pair =
                |(key, value): &(OsString, OsString)| (latin1(key), Value::String(latin1(value)));
            head["env"] = Value::Object(caller.env.iter().map(pair).collect());
            self.env.clone_from(&caller.env);
        }
        Request { head, payload: payload.to_string() }
    }

    async fn exchange(
        &mut self,
        mut request: Request,
        limit: Duration,
    ) -> Result<Value, ProcessError> {
        let started = Instant::now();
        self.begin()?;
        self.request_id += 1;
        request.head["id"] = json!(self.request_id);
        let mut written = false;
        let request = request.bytes();
        let exchange = async {
            self.stdin.write_all(&request).await.map_err(ReadEnd::Closed)?;
            written = true;
            let ended = || Err(ReadEnd::Closed(io::Error::other("it ended")));
            self.answers.recv().await.unwrap_or_else(ended)
        };
        let answer = match tokio::time::timeout(limit, exchange).await {
            Err(_) => Err(ProcessError::Hung(format!(
                "no answer within {:.1} s; it was ended",
                started.elapsed().as_secs_f64()
            ))),
            // An earlier notification took too long.
            Ok(Err(ReadEnd::Hung(why))) => Err(ProcessError::Gone(why)),
            Ok(Err(ReadEnd::Closed(error))) if !written => {
                Err(ProcessError::Gone(format!("its process is gone: {error}")))
            }
            Ok(Err(ReadEnd::Closed(error))) => {
                Err(ProcessError::Died(format!("its process is gone: {error}")))
            }
            Ok(Ok(line)) => self.answer_in(&line),
        };
        self.finish(matches!(answer, Ok(_) | Err(ProcessError::Garbled(_))));
        answer
    }

    fn answer_in(&self, line: &[u8]) -> Result<Value, ProcessError> {
        let garbled = |why| ProcessError::Garbled(format!("its answer cannot be read: {why}"));
        let answer = read_leniently(line).map_err(garbled)?;
        if answer["id"] != json!(self.request_id) {
            // Another process, perhaps a child, writes to the same stdout: no answer can be trusted any more.
            return Err(ProcessError::Died("it answered another request; it was ended".to_owned()));
        }
        Ok(answer)
    }

    fn begin(&mut self) -> Result<(), ProcessError> {
        if self.unfinished || !matches!(self.child.try_wait(), Ok(None)) {
            return Err(ProcessError::Gone("its process ended".to_owned()));
        }
        self.unfinished = true;
        Ok(())
    }

    /// A process that did not complete its request is killed.
    fn finish(&mut self, completed: bool) {
        self.printed.iter().for_each(|printed| printed.copy());
        if completed {
            self.unfinished = false;
        } else {
            self.kill();
        }
    }

    /// Kills its whole process group: a plugin may have started other processes.
    fn kill(&self) {
        ProcessGroup::of(self.child.id()).inspect(|group| group.kill());
    }
}

impl Drop for Process {
    /// Closes the stdin of a healthy process, which then ends by itself within seconds: the plugin may have
    /// exit handlers. Kills a process with an unfinished request.
    fn drop(&mut self) {
        if self.unfinished {
            self.kill();
        }
        self.printed.iter().for_each(|printed| printed.finish());
    }
}

fn start_error(interpreter: &OsStr, error: &io::Error) -> ProcessError {
    let interpreter = interpreter.display();
    if is_shortage(error) {
        let why = "because the system is short of something";
        ProcessError::Short(format!("cannot start `{interpreter}`, {why}: {error}"))
    } else {
        ProcessError::Broken(format!("cannot start `{interpreter}`: {error}; set `interpreter:`"))
    }
}

/// A request on the wire: a line of JSON with the payload's size in it, then the payload.
struct Request {
    head: Value,
    payload: String,
}

impl Request {
    fn bytes(mut self) -> Vec<u8> {
        self.head["size"] = json!(self.payload.len());
        format!("{}\n{}", self.head, self.payload).into_bytes()
    }
}

/// Where the user can read more. Nowhere in a replay: its log is deleted with the sandbox.
fn details(log: &Path, caller: &Caller) -> String {
    match caller.var("HOOKBUS_REPLAY") {
        Some(_) => String::new(),
        None => format!("; {} has the details", log.display()),
    }
}

/// Bytes that need not be UTF-8 as a JSON string: one character for each byte.
fn latin1(text: &OsStr) -> String {
    text.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

/// Reads answers line by line in a task of its own, so that a hang is logged at once.
fn read_answers(stdout: ChildStdout, plugin: &str) -> mpsc::Receiver<Result<Vec<u8>, ReadEnd>> {
    let (sender, receiver) = mpsc::channel(1);
    let plugin = plugin.to_owned();
    drop(tokio::spawn(async move {
        let mut stdout = BufReader::new(stdout);
        loop {
            let line = read_line(&mut stdout).await.map_err(ReadEnd::Closed);
            let line = line.and_then(|line| {
                hang_notice(&line).map_or(Ok(line), |why| Err(ReadEnd::Hung(why)))
            });
            if let Err(ReadEnd::Hung(why)) = &line {
                tracing::warn!(plugin, why, "a plugin hung; its next event starts it again");
            }
            let is_last = line.is_err();
            if sender.send(line).await.is_err() || is_last {
                return;
            }
        }
    }));
    receiver
}

/// The text in the line that the host's watchdog writes when a notification took too long.
fn hang_notice(line: &[u8]) -> Option<String> {
    let notice = line.starts_with(b"{\"over\"").then(|| read_leniently(line).ok())??;
    notice["over"].as_str().map(str::to_owned)
}

async fn read_line(stdout: &mut BufReader<ChildStdout>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let chunk = stdout.fill_buf().await?;
        if chunk.is_empty() {
            return Err(io::Error::other("it ended"));
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if line.len() + part.len() > LONGEST_ANSWER {
            return Err(io::Error::other("its answer is longer than 16 MiB; it was ended"));
        }
        line.extend_from_slice(part);
        let used = part.len() + usize::from(end.is_some());
        stdout.consume(used);
        if end.is_some() {
            return Ok(line);
        }
    }
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
