//! The real Gemini CLI, with its own settings in a temporary project and home, command hooks in them, and
//! one headless `gemini -p` per prompt.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::outcome::Protocol;
use super::setup::{RunSetup, Turn};
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

/// A run of Gemini CLI, before it starts.
#[derive(Debug)]
pub struct Gemini {
    setup: RunSetup,
    hooks: Vec<(String, Hook)>,
    approval_mode: String,
    has_settings: bool,
}

impl Gemini {
    /// A run without hooks and without a script. `label` names it in failures.
    pub fn new(label: &str) -> Self {
        let mut setup = RunSetup::new(label, defaults());
        setup.env("GEMINI_CLI_HOME", setup.scratch.home());
        setup.env("GEMINI_API_KEY", "none-needed");
        setup.env("GEMINI_CLI_NO_RELAUNCH", "1"); // one process instead of two
        setup.env("GEMINI_PTY_INFO", "child_process"); // plain pipes for shell commands
        Self { setup, hooks: Vec::new(), approval_mode: "yolo".to_owned(), has_settings: false }
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
        self.setup.env(name, value);
        self
    }

    /// Sets a value of the project's `settings.json` by its dotted name.
    #[must_use]
    pub fn setting(mut self, name: &str, value: Value) -> Self {
        self.setup.set(name, value);
        self
    }

    /// `default`, `auto_edit`, `plan` or `yolo` [default: `yolo`].
    #[must_use]
    pub fn approval_mode(mut self, mode: &str) -> Self {
        mode.clone_into(&mut self.approval_mode);
        self
    }

    /// Sets the answers of the model.
    #[must_use]
    pub fn script(mut self, script: Vec<Step>) -> Self {
        self.setup.script = script;
        self
    }

    /// Writes a file in the working directory.
    #[must_use]
    pub fn file(self, path: &str, content: &str) -> Self {
        self.setup.file(path, content);
        self
    }

    /// Sets the prompts; each prompt after the first resumes the session in a new process.
    #[must_use]
    pub fn prompts(mut self, prompts: &[&str]) -> Self {
        self.setup.prompts = prompts.iter().map(|&prompt| prompt.to_owned()).collect();
        self
    }

    /// Writes an executable outside of the working directory, for use as a hook.
    pub fn program(&self, name: &str, content: &str) -> PathBuf {
        self.setup.program(name, content)
    }

    /// The directory the agent will work in.
    pub fn work(&self) -> PathBuf {
        self.setup.scratch.work()
    }

    /// The home directory the agent will have.
    pub fn home(&self) -> PathBuf {
        self.setup.scratch.home()
    }

    /// Writes its settings now, so that a program such as `hookbus connect` can edit them before it runs. Hooks and
    /// settings that are added later have no effect.
    #[must_use]
    pub fn with_settings_written(mut self) -> Self {
        self.write_settings();
        self.has_settings = true;
        self
    }

    /// Runs the agent to its end.
    pub fn run(self) -> Run {
        let (setup, model, mode) = self.prepare();
        let script = gemini_script();
        setup.run_prompts(Protocol::Google, &model, |prompt, turn| {
            command(&script, &mode, prompt, turn)
        })
    }

    /// Runs the agent at a terminal, with a user who does `acts`.
    pub fn run_at_a_terminal(self, acts: &[Act<'_>]) -> Run {
        let (setup, model, mode) = self.prepare();
        let mut command = Command::new("node");
        command.arg(gemini_script()).args([&mode, "-m", "gemini-2.5-flash"]);
        setup.run_at_a_terminal(Protocol::Google, &model, command, acts)
    }

    fn prepare(mut self) -> (RunSetup, ModelServer, String) {
        if !self.has_settings {
            self.write_settings();
        }
        let Self { mut setup, approval_mode, .. } = self;
        let model = ModelServer::start(std::mem::take(&mut setup.script));
        setup.env("GOOGLE_GEMINI_BASE_URL", model.address());
        (setup, model, format!("--approval-mode={approval_mode}"))
    }

    fn write_settings(&mut self) {
        for (event, hook) in &self.hooks {
            self.setup.append(&format!("hooks.{event}"), group(hook));
        }
        write_settings(&self.setup, &self.hooks);
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

fn write_settings(setup: &RunSetup, hooks: &[(String, Hook)]) {
    let (home, work) = (setup.scratch.home(), setup.scratch.work());
    let write = |path: PathBuf, content: Value| scratch::write(&path, &content.to_string());
    write(work.join(".gemini/settings.json"), setup.settings.clone());
    write(home.join(".gemini/settings.json"), defaults());
    // Gemini announces a hook that is not in this file on stderr.
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

/// No questions to the user, no downloads, no telemetry.
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
        "skills": {"enabled": false}, // they are listed in directory order, which varies
    })
}
