//! Where a client stood when it heard an event: hooks run with its directory and environment,
//! never with the daemon's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::event::{Agent, Wire};
use crate::log::HooksDraft;

/// Only these variables are recorded: ids, never secrets.
const RECORDED: [&str; 14] = [
    "HERMES_HOME",
    "HERMES_SESSION_ID",
    "HERMES_INTERACTIVE",
    "_HERMES_GATEWAY",
    "HERMES_YOLO_MODE",
    "GEMINI_SESSION_ID",
    "GEMINI_PROJECT_DIR",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_PID",
    "CODEX_HOME",
];

/// A client's directory, environment and process.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its process id, to look for the agent above it.
    pub pid: Option<u32>,
    /// How it hears its agent.
    pub wire: Wire,
}

impl Surroundings {
    /// A variable of the client's environment.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// Whether a variable of this name is recorded with each event.
    pub(super) fn is_recorded(name: &str) -> bool {
        RECORDED.contains(&name)
    }

    /// The session that the agent's environment names.
    pub fn session(&self, agent: Agent) -> Option<String> {
        let name = match agent {
            Agent::Hermes => "HERMES_SESSION_ID",
            Agent::Gemini => "GEMINI_SESSION_ID",
            Agent::Claude => "CLAUDE_CODE_SESSION_ID",
            Agent::Codex => return None,
        };
        let session = self.var(name)?.to_string_lossy().into_owned();
        (!session.is_empty()).then_some(session)
    }

    /// The wire in what was recorded of an event.
    pub fn recorded_wire(context: &str) -> Wire {
        let context: Value = serde_json::from_str(context).unwrap_or_default();
        context.get("wire").and_then(Value::as_str).and_then(Wire::parse).unwrap_or_default()
    }

    /// The file of the project's hooks in what was recorded of an event, and their hash.
    pub fn recorded_project(context: &str) -> Option<(String, String)> {
        // Most events happen in no project; they need not be read for it.
        if !context.contains("\"project\"") {
            return None;
        }
        let context: Value = serde_json::from_str(context).ok()?;
        let text = |key: &str| Some(context.get("project")?.get(key)?.as_str()?.to_owned());
        Some((text("file")?, text("hooks")?))
    }

    /// What is recorded of all this: the directory, a few ids, the wire, and the hooks of the project.
    pub fn recorded(&self, project: Option<&HooksDraft>) -> String {
        let env: Map<String, Value> = RECORDED
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), json!(self.var(name)?.to_string_lossy()))))
            .collect();
        let mut recorded = json!({"cwd": self.cwd.to_string_lossy(), "env": env});
        // The usual wire goes without saying.
        if self.wire != Wire::Shell {
            recorded["wire"] = json!(self.wire.as_str());
        }
        if let Some(HooksDraft { path, hash, .. }) = project {
            recorded["project"] = json!({"file": path, "hooks": hash});
        }
        recorded.to_string()
    }

    /// The other way round, for a replay: the directory and ids of then, in the environment `now`,
    /// of which the variables that would have been recorded count no more.
    pub fn from_recorded(text: &str, now: &[(OsString, OsString)]) -> Self {
        let context: Value = serde_json::from_str(text).unwrap_or_default();
        let then = context.get("env").and_then(Value::as_object).into_iter().flatten();
        // A log may come from anywhere: no other variable has a say in what runs here.
        let then = then.filter(|(name, _)| RECORDED.contains(&name.as_str()));
        let then = then.filter_map(|(name, value)| Some((name.into(), value.as_str()?.into())));
        let kept = |(name, _): &&(OsString, OsString)| !RECORDED.iter().any(|known| name == known);
        let cwd = context.get("cwd").and_then(Value::as_str).unwrap_or("/");
        let env = now.iter().filter(kept).cloned().chain(then).collect();
        Self { cwd: PathBuf::from(cwd), env, pid: None, wire: Self::recorded_wire(text) }
    }

    /// Whether a person sits before the agent. Gemini says nothing about it and, told to ask
    /// without one, ends the whole session; so look at the process above us: on a terminal, and
    /// not started for one prompt. Hermes, asked over the bridge, finds its person itself and takes
    /// silence for a no, unless it was told to say yes to everything.
    pub fn can_ask(&self) -> bool {
        if self.wire == Wire::Bridge {
            let yes_to_all = self.var("HERMES_YOLO_MODE").map(OsStr::to_ascii_lowercase);
            return !yes_to_all
                .is_some_and(|word| ["1", "true", "yes", "on"].iter().any(|yes| word == *yes));
        }
        let mut pid = self.pid;
        for _ in 0..5 {
            let Some(parent) = pid.and_then(parent_of) else { return false };
            if is_gemini(parent) {
                return is_interactive(parent);
            }
            pid = Some(parent);
        }
        false
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything; the parent is the fourth.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn arguments(pid: u32) -> Vec<String> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    raw.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

fn is_gemini(pid: u32) -> bool {
    let runs = |argument: &String| {
        Path::new(argument).file_name().is_some_and(|name| name == "gemini" || name == "gemini.js")
    };
    arguments(pid).iter().take(4).any(runs)
}

fn is_interactive(pid: u32) -> bool {
    let for_one_prompt = |argument: &String| {
        matches!(argument.as_str(), "-p" | "--prompt" | "--acp" | "--experimental-acp")
            || argument.starts_with("--prompt=")
    };
    let on_a_terminal = fs::read_link(format!("/proc/{pid}/fd/0"))
        .is_ok_and(|stdin| stdin.starts_with("/dev/pts") || stdin.starts_with("/dev/tty"));
    on_a_terminal && !arguments(pid).iter().any(for_one_prompt)
}
