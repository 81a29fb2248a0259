//! The other processes in which Hermes runs agents: the backend of its terminal UI, its ACP server, its web servers,
//! and programs that use it as a library. Hermes runs no shell hooks in these; the bridge that `hookbus connect hermes`
//! installs sends their events, and the answers take effect.

use hookbus_tests::agents::{Act, Hermes, RpcProcess, Run, Step};
use hookbus_tests::home::{Home, path_text};
use hookbus_tests::wiring::{Agent, RecordedEvent, Recorder, decisions_on, recorded_events};
use serde_json::{Value, json};

const POLICY: &str = "hooks:
  tool.before: [{ name: no, tool: shell, rule: { when: { command: secret }, block: secrets need a person } }]
  turn.start: [{ rule: { context: the moon is green } }]
  transform_llm_output: [{ rule: { rewrite: { text: All is well. } } }]
";

/// A Hermes that makes two files, one of which the policy blocks, connected to the bus and with a shell hook.
struct Setup {
    home: Home,
    recorder: Recorder,
}

impl Setup {
    fn new() -> Self {
        let home = Home::with_daemon("auto");
        home.write_hooks(POLICY);
        let recorder = Recorder::beside(&home);
        Self { home, recorder }
    }

    fn hermes(&self, label: &str) -> Hermes {
        let make = |name: &str| {
            Step::tool("terminal", json!({"command": format!("echo {name} > {name}.txt")}))
        };
        Hermes::working(label)
            .script(vec![make("made"), make("secret"), Step::text("Done.")])
            .watched_by(&self.recorder)
            .connected(&self.home, "auto")
    }

    /// Checks that every event arrived once, in order and in one session, and that every answer took effect.
    fn check(&self, run: &Run, platform: &str, others: OtherEvents) {
        assert_eq!(run.steps_left, 0, "{}", run.stdout);
        assert_eq!(run.file("made.txt").as_deref(), Some("made\n"), "{}", run.stdout);
        assert_eq!(run.file("secret.txt"), None);
        let sent = |n: usize| run.requests[n].to_string();
        assert!(sent(0).contains("the moon is green"), "{}", sent(0));
        assert!(sent(2).contains("secrets need a person"), "{}", sent(2));
        let all = recorded_events(&self.home, "hermes");
        let names: Vec<&str> = all.iter().map(RecordedEvent::name).collect();
        assert_eq!(names, [others.before, &TURN, others.after].concat());
        assert_eq!(self.recorder.names(), [""; 0], "shell hooks do not fire here");
        let first = &all[0].event;
        assert!(first["session"].as_str().is_some_and(|session| !session.is_empty()), "{first}");
        for recorded in &all {
            assert_eq!(recorded.event["session"], first["session"], "{}", recorded.name());
            assert_eq!(recorded.event["context"]["wire"], "bridge");
        }
        assert_eq!(first["payload"]["extra"]["platform"], platform);
        let outcomes: Vec<Value> = decisions_on(&self.home, "hermes", "pre_tool_call")
            .iter()
            .map(|decision| decision["outcome"].clone())
            .collect();
        assert_eq!(outcomes, [Value::Null, json!("block")]);
        assert!(self.home.is_sound());
    }
}

/// A turn with two tool calls, of which the second is blocked.
const TURN: [&str; 17] = [
    "on_session_start",
    "pre_llm_call",
    "pre_api_request",
    "post_api_request",
    "pre_tool_call",
    "transform_terminal_output",
    "post_tool_call",
    "transform_tool_result",
    "pre_api_request",
    "post_api_request",
    "pre_tool_call",
    "post_tool_call",
    "pre_api_request",
    "post_api_request",
    "transform_llm_output",
    "post_llm_call",
    "on_session_end",
];

/// The events of a process before and after the turn.
#[derive(Clone, Copy)]
struct OtherEvents {
    before: &'static [&'static str],
    after: &'static [&'static str],
}

const NONE: OtherEvents = OtherEvents { before: &[], after: &[] };

/// A user interface opens and closes the session.
const OF_A_USER_INTERFACE: OtherEvents = OtherEvents {
    before: &["on_session_reset"],
    after: &["on_session_end", "on_session_finalize"],
};

/// Does what a terminal UI and a desktop do: opens a session, sends a prompt, waits for the answer.
fn run_turn(process: &mut RpcProcess, work: &str) -> String {
    process.wait_for("the start", |message| message["params"]["type"] == "gateway.ready");
    let session = process.request("session.create", &json!({"cwd": work}))["session_id"].clone();
    process.request("prompt.submit", &json!({"session_id": session, "text": "Make files."}));
    let answer =
        process.wait_for("the prompt", |message| message["params"]["type"] == "message.complete");
    process.request("session.close", &json!({"session_id": session}));
    answer["params"]["payload"]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_backend_of_the_terminal_ui_is_connected() {
    let setup = Setup::new();
    let hermes = setup.hermes("tui");
    let work = path_text(&hermes.work());
    let mut process = hermes.tui_backend();
    assert_eq!(run_turn(&mut process, &work), "All is well.");
    setup.check(&process.stop(), "tui", OF_A_USER_INTERFACE);
}

#[test]
fn the_terminal_ui_is_connected() {
    let setup = Setup::new();
    // The screen is drawn in pieces, so the log tells how far the run is.
    let has_arrived = |name: &str| {
        let log = setup.home.run(&["log", "--json", "--name", name]);
        log.status.success() && !log.stdout.is_empty()
    };
    let (is_ready, is_over) =
        (|| has_arrived("on_session_reset"), || has_arrived("on_session_end"));
    let acts = [
        Act::Until(&is_ready),
        Act::See("❯"),
        Act::Type("Make files."),
        Act::Enter,
        Act::Until(&is_over),
        Act::See("✓"),
        Act::Type("/exit"),
        Act::Enter,
    ];
    let run = setup.hermes("tui").run_at_a_terminal_with(&["--tui"], &acts);
    setup.check(&run, "tui", OF_A_USER_INTERFACE);
}

#[test]
fn a_headless_web_server_as_the_desktop_runs_it_is_connected() {
    let setup = Setup::new();
    let hermes = setup.hermes("serve");
    let work = path_text(&hermes.work());
    let mut process = hermes.web_server(&["serve"]);
    assert_eq!(run_turn(&mut process, &work), "All is well.");
    setup.check(&process.stop(), "tui", OF_A_USER_INTERFACE);
}

#[test]
fn a_dashboard_is_connected() {
    let setup = Setup::new();
    let hermes = setup.hermes("dashboard");
    let work = path_text(&hermes.work());
    let mut process = hermes.web_server(&["dashboard", "--skip-build", "--no-open"]);
    assert_eq!(run_turn(&mut process, &work), "All is well.");
    setup.check(&process.stop(), "tui", OF_A_USER_INTERFACE);
}

#[test]
fn an_editor_over_acp_is_connected() {
    let setup = Setup::new();
    let hermes = setup.hermes("acp");
    let work = path_text(&hermes.work());
    let mut process = hermes.acp_server();
    process.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let session = process.request("session/new", &json!({"cwd": work, "mcpServers": []}));
    let prompt = json!({
        "sessionId": session["sessionId"], "prompt": [{"type": "text", "text": "Make files."}],
    });
    assert_eq!(process.request("session/prompt", &prompt)["stopReason"], "end_turn");
    let run = process.stop();
    assert!(run.stdout.contains("All is well."), "{}", run.stdout);
    setup.check(&run, "acp", NONE);
}

const LIBRARY: &str = "
from hermes_cli.config import load_config
from run_agent import AIAgent
model = load_config()['model']
agent = AIAgent(base_url=model['base_url'], api_key='none-needed', provider='custom', model=model['default'],
                quiet_mode=True, platform='mine')
print('answer:', agent.run_conversation('Make files.')['final_response'])
";

#[test]
fn a_program_that_uses_hermes_as_a_library_is_connected() {
    let setup = Setup::new();
    let run = setup.hermes("library").run_python(LIBRARY);
    assert!(run.stdout.contains("answer: All is well."), "{} {}", run.stdout, run.stderr);
    setup.check(&run, "mine", NONE);
}
