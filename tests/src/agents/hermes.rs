//! The real Hermes Agent, with its own configuration in a temporary home, accepted shell hooks in it, and one
//! `hermes chat -Q -q` per prompt.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::gateway;
use super::outcome::Protocol;
use super::setup::{RunSetup, Turn};
use super::{
    Act, Gateway, ModelServer, RpcProcess, Run, Step, hermes_extras, hermes_program, hermes_python,
    openai, scratch,
};
use crate::home::{Home, path_text};

/// Every event Hermes 0.19 fires hooks for.
pub const EVENTS: [&str; 23] = [
    "on_session_start",
    "pre_llm_call",
    "pre_api_request",
    "post_api_request",
    "api_request_error",
    "pre_tool_call",
    "pre_approval_request",
    "post_approval_response",
    "transform_terminal_output",
    "post_tool_call",
    "transform_tool_result",
    "pre_verify",
    "transform_llm_output",
    "post_llm_call",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "subagent_start",
    "subagent_stop",
    "pre_gateway_dispatch",
    "kanban_task_claimed",
    "kanban_task_completed",
    "kanban_task_blocked",
];

/// Passes lines to and from the socket of a web server.
const SOCKET_CLIENT: &str = include_str!("serve.py");

/// One shell hook. Hermes splits the command into words and runs it without a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hook {
    /// The command line.
    pub command: String,
    /// Which tools it is for; a regular expression on the whole name.
    pub matcher: Option<String>,
    /// Its time limit in seconds.
    pub timeout: Option<u64>,
}

/// A run of Hermes, before it starts.
#[derive(Debug)]
pub struct Hermes {
    setup: RunSetup,
    hooks: Vec<(String, Hook)>,
    connect: Option<Command>,
    invocation: Invocation,
}

/// How Hermes is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invocation {
    Chat,
    OneShot,
}

impl Hermes {
    /// A run without hooks and without a script. `label` names it in failures.
    pub fn new(label: &str) -> Self {
        let mut setup = RunSetup::new(label, defaults());
        setup.env("HERMES_HOME", setup.scratch.home().join(".hermes"));
        Self { setup, hooks: Vec::new(), connect: None, invocation: Invocation::Chat }
    }

    /// Runs `command` on `event`.
    #[must_use]
    pub fn hook(self, event: &str, command: &str) -> Self {
        self.hook_with(event, Hook { command: command.to_owned(), ..Hook::default() })
    }

    /// Runs a hook on `event`. Hooks of one event run in the order they were added.
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

    /// Connects it to `home` with `hookbus connect hermes`; `daemon` is what the home's file says about the daemon,
    /// because the environment of a connected Hermes says nothing.
    #[must_use]
    pub fn connected(self, home: &Home, daemon: &str) -> Self {
        self.connected_with(home, daemon, &[])
    }

    /// The same with more options.
    #[must_use]
    pub fn connected_with(mut self, home: &Home, daemon: &str, options: &[&str]) -> Self {
        let mut connect = home.command([&["connect", "hermes", "--yes"], options].concat());
        connect.env("HERMES_HOME", self.setup.scratch.home().join(".hermes"));
        self.connect = Some(connect);
        home.set_daemon_mode(daemon);
        self.env("BUS_HOME", &path_text(&home.path()))
    }

    /// Starts it as `hermes -z`.
    #[must_use]
    pub fn one_shot(mut self) -> Self {
        self.invocation = Invocation::OneShot;
        self
    }

    /// Writes a plugin into its home and enables it.
    #[must_use]
    pub fn plugin(mut self, name: &str, files: &[(&str, &str)]) -> Self {
        let folder = self.setup.scratch.home().join(".hermes/plugins").join(name);
        for (file, content) in files {
            scratch::write(&folder.join(file), content);
        }
        self.setup.append("plugins.enabled", name.into());
        self
    }

    /// Sets a variable in the agent's environment, which its hooks inherit.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.setup.env(name, value);
        self
    }

    /// Sets a value of `config.yaml` by its dotted name.
    #[must_use]
    pub fn setting(mut self, name: &str, value: Value) -> Self {
        self.setup.set(name, value);
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

    /// Sets the prompts; each prompt after the first continues the session in a new process.
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

    /// The home directory the agent will have; its configuration is in `.hermes`.
    pub fn home(&self) -> PathBuf {
        self.setup.scratch.home()
    }

    /// Runs the agent to its end.
    pub fn run(self) -> Run {
        let (program, invocation) = (hermes_program(), self.invocation);
        let (setup, model) = self.set_up();
        let command = |prompt: &str, turn| command(&program, invocation, prompt, turn);
        setup.run_prompts(Protocol::OpenAi, &model, command)
    }

    /// Runs it at a terminal, with a user who does `acts`.
    pub fn run_at_a_terminal(self, acts: &[Act<'_>]) -> Run {
        self.run_at_a_terminal_with(&["chat"], acts)
    }

    /// The same with other arguments.
    pub fn run_at_a_terminal_with(self, words: &[&str], acts: &[Act<'_>]) -> Run {
        let (setup, model) = self.set_up();
        let mut command = Command::new(hermes_program());
        command.args(words);
        setup.run_at_a_terminal(Protocol::OpenAi, &model, command, acts)
    }

    /// Starts it as a gateway with one chat.
    pub fn gateway(self) -> Gateway {
        let run = self
            .plugin("filechat", &gateway::PLUGIN)
            .setting("platforms.filechat.enabled", true.into())
            .setting("display.busy_input_mode", "queue".into())
            .setting("approvals.destructive_slash_confirm", false.into());
        let (mut setup, model) = {
            let mut run = run;
            run.setup.append("plugins.enabled", "filechat-platform".into());
            run.set_up()
        };
        setup.env("PYTHONUNBUFFERED", "1");
        Gateway::start(setup, model)
    }

    /// Starts the backend of its terminal UI, as the UI does.
    pub fn tui_backend(self) -> RpcProcess {
        let (setup, model) = self.set_up();
        let mut command = Command::new(hermes_python());
        command.args(["-m", "tui_gateway.entry"]);
        RpcProcess::start(setup, model, command)
    }

    /// Starts its ACP server (`hermes-acp`), as an editor does.
    pub fn acp_server(self) -> RpcProcess {
        let (setup, model) = self.with_extras().set_up();
        RpcProcess::start(setup, model, Command::new(hermes_program().with_file_name("hermes-acp")))
    }

    /// Starts one of its web servers, `serve` or `dashboard`, as a desktop does, and connects to its socket.
    pub fn web_server(self, words: &[&str]) -> RpcProcess {
        let (setup, model) = self.set_up();
        let mut command = Command::new(hermes_python());
        command.args(["-c", SOCKET_CLIENT]).arg(hermes_program()).args(words).args(["--port", "0"]);
        RpcProcess::start(setup, model, command)
    }

    /// Adds the packages that its optional parts need to `PYTHONPATH`.
    #[must_use]
    pub fn with_extras(self) -> Self {
        self.env("PYTHONPATH", &path_text(&hermes_extras()))
    }

    /// Runs a Python program with Hermes' interpreter, in its working directory and with its configuration.
    pub fn run_python(self, code: &str) -> Run {
        let (setup, model) = self.set_up();
        let python = hermes_python();
        let code = code.to_owned();
        setup.run_prompts(Protocol::OpenAi, &model, |_, _| {
            let mut command = Command::new(&python);
            command.args(["-c", &code]);
            command
        })
    }

    fn set_up(mut self) -> (RunSetup, ModelServer) {
        let mut setup = self.setup;
        let model = ModelServer::start(std::mem::take(&mut setup.script));
        setup.set("model.base_url", format!("{}/v1", model.address()).into());
        for (event, hook) in &self.hooks {
            setup.append(&format!("hooks.{event}"), entry(hook));
        }
        // JSON is valid YAML.
        let config = setup.scratch.home().join(".hermes/config.yaml");
        scratch::write(&config, &setup.settings.to_string());
        if let Some(connect) = &mut self.connect {
            let connected = connect.output().expect("hookbus runs");
            assert!(connected.status.success(), "{connected:?}");
        }
        (setup, model)
    }
}

fn command(program: &Path, invocation: Invocation, prompt: &str, turn: Turn) -> Command {
    let mut command = Command::new(program);
    if invocation == Invocation::OneShot {
        command.args(["-z", prompt]);
        return command;
    }
    command.args(["chat", "-Q"]);
    if turn == Turn::Later {
        command.arg("--continue");
    }
    command.args(["-q", prompt]);
    command
}

fn entry(hook: &Hook) -> Value {
    let mut entry = json!({"command": hook.command});
    if let Some(matcher) = &hook.matcher {
        entry["matcher"] = json!(matcher);
    }
    if let Some(timeout) = hook.timeout {
        entry["timeout"] = json!(timeout);
    }
    entry
}

/// No questions to the user, no downloads, no memory.
fn defaults() -> Value {
    json!({
        "model": {
            "provider": "custom", "default": openai::MODEL, "api_key": "none-needed",
            "context_length": openai::CONTEXT,
        },
        "hooks_auto_accept": true,
        "approvals": {"mode": "off"},
        "plugins": {"enabled": []},
        "agent": {"max_turns": 12, "environment_probe": false},
        "display": {"interface": "cli"},
        "compression": {"enabled": false},
        "security": {"tirith_enabled": false, "allow_lazy_installs": false},
        "memory": {"memory_enabled": false, "user_profile_enabled": false},
        "auxiliary": {"title_generation": {"enabled": false}},
    })
}
