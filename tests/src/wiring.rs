//! Real agents with hooks: directly, or with the real `hookbus` between. One trait covers both agents, so that a test
//! can run with either.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::agents::{Gemini, Hermes, Run, Step, gemini, hermes};
use crate::home::{Home, binary, path_text};

/// A command hook, with the settings that agents and `hookbus.yaml` have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandHook {
    /// The command line.
    pub command: String,
    /// Which tools it is for.
    pub matcher: Option<&'static str>,
    /// Its time limit in seconds.
    pub timeout: Option<u64>,
}

/// An agent that hooks can be added to.
pub trait Agent: Sized {
    /// Its name in `hookbus hook <agent>`.
    const NAME: &'static str;
    /// Every event it has.
    const EVENTS: &'static [&'static str];

    /// A run without hooks that makes `made.txt` with the shell tool and ends with `Done.`
    fn working(label: &str) -> Self;
    /// Adds a hook.
    #[must_use]
    fn wire(self, event: &str, entry: &CommandHook) -> Self;
    /// Sets an environment variable.
    #[must_use]
    fn with(self, name: &str, value: &str) -> Self;
    /// Sets the answers of its model.
    #[must_use]
    fn playing(self, script: Vec<Step>) -> Self;
    /// Writes an executable that is removed with the run.
    fn executable(&self, name: &str, content: &str) -> String;
    /// Runs it to its end.
    fn go(self) -> Run;

    /// Adds `hookbus hook` to these events; `daemon` is the value of `HOOKBUS_DAEMON`.
    #[must_use]
    fn through(self, home: &Home, daemon: &str, events: &[&str]) -> Self {
        let command = format!("{} hook {}", path_text(&binary()), Self::NAME);
        let entry = CommandHook { command, ..CommandHook::default() };
        let path = path_text(&home.path());
        let agent = self.with("HOOKBUS_HOME", &path).with("HOOKBUS_DAEMON", daemon);
        events.iter().fold(agent, |agent, event| agent.wire(event, &entry))
    }

    /// Adds `hookbus hook` to every event.
    #[must_use]
    fn through_everywhere(self, home: &Home, daemon: &str) -> Self {
        self.through(home, daemon, Self::EVENTS)
    }

    /// Adds a hook to every event that records its payloads, beside all other hooks.
    #[must_use]
    fn watched_by(self, recorder: &Recorder) -> Self {
        let command = self.executable("recorder", &recorder.script());
        let entry = CommandHook { command, ..CommandHook::default() };
        Self::EVENTS.iter().fold(self, |agent, event| agent.wire(event, &entry))
    }
}

impl Agent for Hermes {
    const NAME: &'static str = "hermes";
    const EVENTS: &'static [&'static str] = &hermes::EVENTS;

    fn working(label: &str) -> Self {
        let make = serde_json::json!({"command": "echo made > made.txt; echo it is made"});
        let script = vec![Step::tool("terminal", make), Step::text("Done.")];
        Self::new(label).prompts(&["Make a file."]).script(script)
    }

    fn wire(self, event: &str, entry: &CommandHook) -> Self {
        let CommandHook { command, matcher, timeout } = entry.clone();
        let matcher = matcher.map(str::to_owned);
        self.hook_with(event, hermes::Hook { command, matcher, timeout })
    }

    fn with(self, name: &str, value: &str) -> Self {
        self.env(name, value)
    }

    fn playing(self, script: Vec<Step>) -> Self {
        self.script(script)
    }

    fn executable(&self, name: &str, content: &str) -> String {
        path_text(&self.program(name, content))
    }

    fn go(self) -> Run {
        self.run()
    }
}

impl Agent for Gemini {
    const NAME: &'static str = "gemini";
    const EVENTS: &'static [&'static str] = &gemini::EVENTS;

    fn working(label: &str) -> Self {
        let make = serde_json::json!({"command": "echo made > made.txt; echo it is made"});
        let script = vec![Step::tool("run_shell_command", make), Step::text("Done.")];
        Self::new(label).prompts(&["Make a file."]).script(script)
    }

    fn wire(self, event: &str, entry: &CommandHook) -> Self {
        let CommandHook { command, matcher, timeout } = entry.clone();
        let hook = gemini::Hook {
            command,
            matcher: matcher.map(str::to_owned),
            timeout_ms: timeout.map(|seconds| seconds * 1000),
            ..gemini::Hook::default()
        };
        self.hook_with(event, hook)
    }

    fn with(self, name: &str, value: &str) -> Self {
        self.env(name, value)
    }

    fn playing(self, script: Vec<Step>) -> Self {
        self.script(script)
    }

    fn executable(&self, name: &str, content: &str) -> String {
        path_text(&self.program(name, content))
    }

    fn go(self) -> Run {
        self.run()
    }
}

/// Records events without the bus: a shell hook that writes each payload to a file.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
}

impl Recorder {
    /// A recorder that writes its files beside `home`.
    pub fn beside(home: &Home) -> Self {
        let folder = home.work().join("seen");
        fs::create_dir_all(&folder).expect("a directory for payloads");
        Self { folder }
    }

    /// The recorded payloads, in order.
    pub fn seen(&self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(&self.folder).expect("the directory of payloads");
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("a readable folder").path()).collect();
        files.sort();
        files.iter().map(|file| fs::read(file).expect("a readable file")).collect()
    }

    /// The names of the recorded events, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |payload: &Vec<u8>| {
            let payload: Value = serde_json::from_slice(payload).expect("agents send JSON");
            payload["hook_event_name"].as_str().expect("an event has a name").to_owned()
        };
        self.seen().iter().map(name).collect()
    }

    fn script(&self) -> String {
        // Agents send one event after the other, so the time gives the order.
        format!("#!/bin/sh\ncat > \"{}/$(date +%s%N)-$$\"\n", path_text(&self.folder))
    }
}

/// The rows of `agent` in a home's log: its events, each with the decision about it.
pub fn recorded_events(home: &Home, agent: &str) -> Vec<RecordedEvent> {
    let rows = home.log(&["--agent", agent]);
    let (decisions, events): (Vec<Value>, Vec<Value>) =
        rows.into_iter().partition(|row| row["kind"] == "decision");
    let of = |event: &Value| decisions.iter().find(|row| row["cause"] == event["seq"]).cloned();
    events.into_iter().map(|event| RecordedEvent { decision: of(&event), event }).collect()
}

/// An event in the log and the decision that points at it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// The event's row.
    pub event: Value,
    /// The decision's row.
    pub decision: Option<Value>,
}

impl RecordedEvent {
    /// The event's own name.
    pub fn name(&self) -> &str {
        self.event["name"].as_str().unwrap_or_default()
    }

    /// The payload as it arrived.
    pub fn payload(&self, home: &Home) -> Vec<u8> {
        home.run(&["log", "--raw", "--seq", &self.event["seq"].to_string()]).stdout
    }

    /// The decision; `Null` if no hook had an opinion.
    pub fn decided(&self) -> Value {
        self.decision.as_ref().map_or(Value::Null, |row| row["payload"].clone())
    }
}

/// The decisions about events of this name, in order.
pub fn decisions_on(home: &Home, agent: &str, event: &str) -> Vec<Value> {
    let recorded_events = recorded_events(home, agent);
    recorded_events
        .iter()
        .filter(|recorded| recorded.name() == event)
        .map(RecordedEvent::decided)
        .collect()
}

/// Runs an agent under a policy, with a daemon (`running`) or without (`off`).
pub fn under_policy<A: Agent>(policy: &str, daemon: &'static str) -> (Run, Home) {
    let home = Home::with_daemon(daemon);
    home.write_hooks(policy);
    let running = (daemon == "running").then(|| home.serve());
    let run = A::working(daemon).through_everywhere(&home, daemon).go();
    drop(running);
    assert!(home.is_sound());
    (run, home)
}

/// Checks that the first hook of a run starts a daemon that outlives the agent. Returns the agent's log and stderr, where
/// hooks that timed out would show.
pub fn leaves_a_daemon_behind<A: Agent>() -> (String, Home) {
    let home = Home::with_daemon("auto");
    home.write_hooks("hooks: { tool.before: [{ tool: shell, rule: { block: not today } }] }");
    let run = A::working("auto").through_everywhere(&home, "auto").go();
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let output = format!("{}{}", run.agent_log(), run.stderr);
    // Ends all processes of the agent; the daemon is not one of them.
    drop(run);
    assert!(home.has_daemon(), "the daemon outlives the agent");
    home.text(&["stop"]);
    assert!(!home.has_daemon());
    assert!(home.is_sound());
    (output, home)
}
