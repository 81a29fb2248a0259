//! One plugin's process and the lines to it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::surroundings::Surroundings;
use super::folder::Found;
use super::moment::hears;

const HOST: &str = include_str!("../../../host/host.py");

/// A plugin that runs.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    hooks: Vec<String>,
    env: Vec<(OsString, OsString)>,
    pub(super) hash: String,
    pub(super) edited: Option<SystemTime>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Its process is gone.
    Died(String),
    /// It does not answer.
    Hung(String),
    /// It cannot be loaded.
    Broken(String),
    /// It is not asked for a while.
    Resting(String),
}

/// What one process is started with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::decide) struct Launch {
    /// The Python to run it with.
    pub(in crate::decide) interpreter: String,
    /// How many bytes it may use.
    pub(in crate::decide) memory: u64,
}

impl Process {
    pub(super) async fn start(
        found: &Found,
        launch: &Launch,
        place: &Surroundings,
        log: &Path,
        limit: Duration,
    ) -> Result<Self, Trouble> {
        let broken = |why: String| Trouble::Broken(why);
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let mut child = Command::new(&launch.interpreter)
            .args(["-u", "-c", HOST])
            .env_clear()
            .envs(place.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr.map_or_else(|_| Stdio::null(), Stdio::from))
            .current_dir("/")
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                broken(format!(
                    "cannot start `{}`: {error}; set `interpreter:`",
                    launch.interpreter
                ))
            })?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken("its process has no pipes".to_owned()));
        };
        let mut process = Self {
            child,
            to,
            from: BufReader::new(from).lines(),
            hooks: Vec::new(),
            env: place.env.clone(),
            hash: found.hash(),
            edited: found.edited(),
        };
        let hello = json!({
            "form": found.form.as_str(), "folder": found.folder.to_string_lossy(), "key": found.key,
            "manifest": found.manifest, "memory": launch.memory, "cwd": place.cwd.to_string_lossy(),
        });
        let loaded = process.exchange(&hello, limit).await?;
        if let Some(why) = loaded["error"].as_str() {
            return Err(broken(format!(
                "it cannot be loaded: {why}; {} has the details",
                log.display()
            )));
        }
        process.hooks = texts(&loaded["hooks"]);
        let unused = texts(&loaded["unused"]);
        if !unused.is_empty() {
            tracing::info!(plugin = %found.key, unused = unused.join(", "), "a plugin registers more than hooks; that is not used");
        }
        Ok(process)
    }

    pub(super) fn listens_to(&self, name: &str) -> bool {
        self.hooks.iter().any(|pattern| hears(pattern, name))
    }

    /// Asks about one event.
    pub(super) async fn ask(
        &mut self,
        name: &str,
        payload: &Value,
        place: &Surroundings,
        limit: Duration,
    ) -> Result<Value, Trouble> {
        let mut question =
            json!({"name": name, "payload": payload, "cwd": place.cwd.to_string_lossy()});
        if self.env != place.env {
            let pair = |(key, value): &(OsString, OsString)| {
                (key.to_string_lossy().into_owned(), json!(value.to_string_lossy()))
            };
            question["env"] = Value::Object(place.env.iter().map(pair).collect());
            self.env.clone_from(&place.env);
        }
        self.exchange(&question, limit).await
    }

    async fn exchange(&mut self, question: &Value, limit: Duration) -> Result<Value, Trouble> {
        let started = Instant::now();
        let line = question.to_string() + "\n";
        let talk = async {
            self.to.write_all(line.as_bytes()).await?;
            self.from.next_line().await
        };
        let died = |why: String| Trouble::Died(why);
        match tokio::time::timeout(limit, talk).await {
            Err(_) => {
                self.end();
                Err(Trouble::Hung(format!(
                    "no answer within {:.1} s; it was ended",
                    started.elapsed().as_secs_f64()
                )))
            }
            Ok(Ok(Some(line))) => serde_json::from_str(&line)
                .map_err(|error| died(format!("it answered nonsense: {error}"))),
            Ok(Ok(None)) => Err(died("its process ended".to_owned())),
            Ok(Err(error)) => Err(died(format!("its process is gone: {error}"))),
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
    fn drop(&mut self) {
        self.end();
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
