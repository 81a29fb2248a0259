//! Gemini CLI, run for real: its own settings in a scratch project and home, command hooks wired
//! straight in, one headless `gemini -p` per prompt.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::outcome::Wire;
use super::stage::{Stage, Turn};
use super::{Act, ModelServer, Run, Step, gemini_script, scratch};

/// Every event Gemini CLI 0.61 fires hooks for.
pub const EVENTS: [&str; 11] = [
    "SessionStart",
    "BeforeAgent",
    "PreCompress",
    "BeforeModel",
    "BeforeToolSelection",
    "AfterModel",
    "BeforeTool",
    "Notification",
    "AfterTool",
    "AfterAgent",
    "SessionEnd",
];

/// One command hook, run by `bash -c`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hook {
    /// The command line.
    pub command: String,
    /// Which tools (a regular expression) or sources (an exact word) it is for.
    pub matcher: Option<String>,
    /// Its time limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The name it is shown and switched off by.
    pub name: Option<String>,
    /// Whether the hooks of its event run one after the other.
    pub sequential: Option<bool>,
}

/// A Gemini CLI run that is being put together.
#[derive(Debug)]
pub struct Gemini {
    stage: Stage,
    hooks: Vec<(String, Hook)>,
    approval_mode: String,
}

impl Gemini {
    /// A run without hooks whose model says nothing in particular. `label` names it in failures.
    pub fn new(label: &str) -> Self {
        let mut stage = Stage::new(label, defaults());
        stage.env("GEMINI_CLI_HOME", stage.scratch.home());
        stage.env("GEMINI_API_KEY", "none-needed");
        stage.env("GEMINI_CLI_NO_RELAUNCH", "1"); // one process instead of two
        stage.env("GEMINI_PTY_INFO", "child_process"); // plain pipes for shell commands
        Self { stage, hooks: Vec::new(), approval_mode: "yolo".to_owned() }
    }

    /// Runs `command` on `event`.
    #[must_use]
    pub fn hook(self, event: &str, command: &str) -> Self {
        self.hook_with(event, Hook { command: command.to_owned(), ..Hook::default() })
    }

    /// Runs a hook on `event`, in a group of its own.
    #[must_use]
    pub fn hook_with(mut self, event: &str, hook: Hook) -> Self {
        self.hooks.push((event.to_owned(), hook));
        self
    }

    /// Runs `command` on all of [`EVENTS`].
    #[must_use]
    pub fn hook_on_every_event(self, command: &str) -> Self {
        EVENTS.iter().fold(self, |run, event| run.hook(event, command))
    }

    /// Sets a variable in the agent's environment, which its hooks inherit.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.stage.env(name, value);
        self
    }

    /// Sets a value of the project's `settings.json` by its dotted name.
    #[must_use]
    pub fn setting(mut self, name: &str, value: Value) -> Self {
        self.stage.set(name, value);
        self
    }

    /// `default`, `auto_edit`, `plan`, or `yolo`, which is what a run has unless told otherwise.
    #[must_use]
    pub fn approval_mode(mut self, mode: &str) -> Self {
        mode.clone_into(&mut self.approval_mode);
        self
    }

    /// What the model answers.
    #[must_use]
    pub fn script(mut self, script: Vec<Step>) -> Self {
        self.stage.script = script;
        self
    }

    /// Puts a file into the work directory.
    #[must_use]
    pub fn file(self, path: &str, content: &str) -> Self {
        self.stage.file(path, content);
        self
    }

    /// What the user asks; each prompt after the first resumes the session in a new process.
    #[must_use]
    pub fn prompts(mut self, prompts: &[&str]) -> Self {
        self.stage.prompts = prompts.iter().map(|&prompt| prompt.to_owned()).collect();
        self
    }

    /// Writes an executable outside of the work directory, for use as a hook.
    pub fn program(&self, name: &str, content: &str) -> PathBuf {
        self.stage.program(name, content)
    }

    /// The directory the agent will work in.
    pub fn work(&self) -> PathBuf {
        self.stage.scratch.work()
    }

    /// The home directory the agent will have.
    pub fn home(&self) -> PathBuf {
        self.stage.scratch.home()
    }

    /// Runs the agent to its end.
    pub fn run(self) -> Run {
        let (stage, model, mode) = self.prepare();
        let script = gemini_script();
        stage.play(Wire::Google, &model, |prompt, turn| command(&script, &mode, prompt, turn))
    }

    /// Runs the agent at a terminal, before a person who does this.
    pub fn run_at_a_terminal(self, acts: &[Act<'_>]) -> Run {
        let (stage, model, mode) = self.prepare();
        let mut command = Command::new("node");
        command.arg(gemini_script()).args([&mode, "-m", "gemini-2.5-flash"]);
        stage.play_at_a_terminal(Wire::Google, &model, command, acts)
    }

    fn prepare(self) -> (Stage, ModelServer, String) {
        let Self { mut stage, hooks, approval_mode } = self;
        let model = ModelServer::start(std::mem::take(&mut stage.script));
        stage.env("GOOGLE_GEMINI_BASE_URL", model.address());
        for (event, hook) in &hooks {
            stage.append(&format!("hooks.{event}"), group(hook));
        }
        write_settings(&stage, &hooks);
        (stage, model, format!("--approval-mode={approval_mode}"))
    }
}

fn command(script: &Path, mode: &str, prompt: &str, turn: Turn) -> Command {
    let mut command = Command::new("node");
    command.arg(script).args([mode, "-m", "gemini-2.5-flash"]);
    if turn == Turn::Later {
        command.args(["--resume", "latest"]);
    }
    command.args(["-p", prompt]);
    command
}

fn write_settings(stage: &Stage, hooks: &[(String, Hook)]) {
    let (home, work) = (stage.scratch.home(), stage.scratch.work());
    let write = |path: PathBuf, content: Value| scratch::write(&path, &content.to_string());
    write(work.join(".gemini/settings.json"), stage.settings.clone());
    write(home.join(".gemini/settings.json"), defaults());
    // A hook it has not seen before is announced on stderr; these it has seen.
    let name = |hook: &Hook| hook.name.clone().unwrap_or_default();
    let seen = hooks.iter().map(|(_, hook)| format!("{}:{}", name(hook), hook.command));
    let seen: Vec<String> = seen.collect();
    let project = work.canonicalize().unwrap_or(work).display().to_string();
    write(home.join(".gemini/trusted_hooks.json"), json!({project: seen}));
}

fn group(hook: &Hook) -> Value {
    let mut entry = json!({"type": "command", "command": hook.command});
    if let Some(name) = &hook.name {
        entry["name"] = json!(name);
    }
    if let Some(timeout) = hook.timeout_ms {
        entry["timeout"] = json!(timeout);
    }
    let mut group = json!({"hooks": [entry]});
    if let Some(matcher) = &hook.matcher {
        group["matcher"] = json!(matcher);
    }
    if let Some(sequential) = hook.sequential {
        group["sequential"] = json!(sequential);
    }
    group
}

/// Nobody is asked, nothing is fetched, nothing is reported.
fn defaults() -> Value {
    json!({
        "general": {
            "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
        },
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "security": {
            "auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false},
        },
        "ide": {"enabled": false, "hasSeenNudge": true},
        "ui": {"hideTips": true, "hideBanner": true},
        "hooksConfig": {"enabled": true},
        "skills": {"enabled": false}, // they are listed in the order the disk gave them
    })
}
