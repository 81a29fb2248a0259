//! The other processes that Hermes runs agents in: the backend of its terminal UI, its ACP server, its web
//! servers, and programs that use it as a library. Hermes' own shell hooks never fire in these; the bridge that
//! `hookbus connect hermes` installs carries their events, and what the bus answers takes effect.

use hookbus_tests::agents::{Act, Hermes, Run, Step, Talk};
use hookbus_tests::home::{Home, path_text};
use hookbus_tests::wiring::{Agent, Firing, Recorder, decisions_on, firings};
use serde_json::{Value, json};

const POLICY: &str = "hooks:
  tool.before: [{ name: no, tool: shell, rule: { when: { command: secret }, block: secrets need a person } }]
  turn.start: [{ rule: { context: the moon is green } }]
  transform_llm_output: [{ rule: { rewrite: { text: All is well. } } }]
";

/// A Hermes that wants to make two files, of which one is not allowed; wired to the bus and to a shell hook.
struct Scene {
    home: Home,
    recorder: Recorder,
}

impl Scene {
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

    /// Everything arrived once and in order, in one session, and every answer took effect.
    fn is_played(&self, run: &Run, platform: &str, around: Around) {
        assert_eq!(run.steps_left, 0, "{}", run.stdout);
        assert_eq!(run.file("made.txt").as_deref(), Some("made\n"), "{}", run.stdout);
        assert_eq!(run.file("secret.txt"), None);
        let sent = |n: usize| run.requests[n].to_string();
        assert!(sent(0).contains("the moon is green"), "{}", sent(0));
        assert!(sent(2).contains("secrets need a person"), "{}", sent(2));
        let all = firings(&self.home, "hermes");
        let names: Vec<&str> = all.iter().map(Firing::name).collect();
        assert_eq!(names, [around.before, &TURN, around.after].concat());
        assert_eq!(self.recorder.names(), [""; 0], "shell hooks do not fire here");
        let first = &all[0].event;
        assert!(first["session"].as_str().is_some_and(|session| !session.is_empty()), "{first}");
        for firing in &all {
            assert_eq!(firing.event["session"], first["session"], "{}", firing.name());
            assert_eq!(firing.event["context"]["wire"], "bridge");
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

/// What else a process fires, before the turn and after it.
#[derive(Clone, Copy)]
struct Around {
    before: &'static [&'static str],
    after: &'static [&'static str],
}

const NOTHING_ELSE: Around = Around { before: &[], after: &[] };

/// A session is opened and closed by whoever sits before the screen.
const BEFORE_A_SCREEN: Around =
    Around { before: &["on_session_reset"], after: &["on_session_end", "on_session_finalize"] };

/// What a terminal UI and a desktop say: open a session, send a prompt, wait for the answer.
fn one_turn(talk: &mut Talk, work: &str) -> String {
    talk.until("a hello", |message| message["params"]["type"] == "gateway.ready");
    let session = talk.ask("session.create", &json!({"cwd": work}))["session_id"].clone();
    talk.ask("prompt.submit", &json!({"session_id": session, "text": "Make files."}));
    let answer =
        talk.until("the prompt", |message| message["params"]["type"] == "message.complete");
    talk.ask("session.close", &json!({"session_id": session}));
    answer["params"]["payload"]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_backend_of_the_terminal_ui_is_on_the_bus() {
    let scene = Scene::new();
    let hermes = scene.hermes("tui");
    let work = path_text(&hermes.work());
    let mut talk = hermes.tui_backend();
    assert_eq!(one_turn(&mut talk, &work), "All is well.");
    scene.is_played(&talk.end(), "tui", BEFORE_A_SCREEN);
}

#[test]
fn the_terminal_ui_itself_is_on_the_bus() {
    let scene = Scene::new();
    // The screen is drawn in bits and pieces; how far it is can be read in the log.
    let has_come = |name: &str| {
        let log = scene.home.run(&["log", "--json", "--name", name]);
        log.status.success() && !log.stdout.is_empty()
    };
    let (is_ready, is_over) = (|| has_come("on_session_reset"), || has_come("on_session_end"));
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
    let run = scene.hermes("tui").run_at_a_terminal_with(&["--tui"], &acts);
    scene.is_played(&run, "tui", BEFORE_A_SCREEN);
}

#[test]
fn a_headless_web_server_as_the_desktop_runs_it_is_on_the_bus() {
    let scene = Scene::new();
    let hermes = scene.hermes("serve");
    let work = path_text(&hermes.work());
    let mut talk = hermes.web_server(&["serve"]);
    assert_eq!(one_turn(&mut talk, &work), "All is well.");
    scene.is_played(&talk.end(), "tui", BEFORE_A_SCREEN);
}

#[test]
fn a_dashboard_is_on_the_bus() {
    let scene = Scene::new();
    let hermes = scene.hermes("dashboard");
    let work = path_text(&hermes.work());
    let mut talk = hermes.web_server(&["dashboard", "--skip-build", "--no-open"]);
    assert_eq!(one_turn(&mut talk, &work), "All is well.");
    scene.is_played(&talk.end(), "tui", BEFORE_A_SCREEN);
}

#[test]
fn an_editor_over_acp_is_on_the_bus() {
    let scene = Scene::new();
    let hermes = scene.hermes("acp");
    let work = path_text(&hermes.work());
    let mut talk = hermes.acp_server();
    talk.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let session = talk.ask("session/new", &json!({"cwd": work, "mcpServers": []}));
    let prompt = json!({
        "sessionId": session["sessionId"], "prompt": [{"type": "text", "text": "Make files."}],
    });
    assert_eq!(talk.ask("session/prompt", &prompt)["stopReason"], "end_turn");
    let run = talk.end();
    assert!(run.stdout.contains("All is well."), "{}", run.stdout);
    scene.is_played(&run, "acp", NOTHING_ELSE);
}

const LIBRARY: &str = "
from hermes_cli.config import load_config
from run_agent import AIAgent
model = load_config()['model']
agent = AIAgent(base_url=model['base_url'], api_key='none-needed', provider='custom', model=model['default'],
                quiet_mode=True, platform='mine')
print('heard:', agent.run_conversation('Make files.')['final_response'])
";

#[test]
fn a_program_that_uses_hermes_as_a_library_is_on_the_bus() {
    let scene = Scene::new();
    let run = scene.hermes("library").run_python(LIBRARY);
    assert!(run.stdout.contains("heard: All is well."), "{} {}", run.stdout, run.stderr);
    scene.is_played(&run, "mine", NOTHING_ELSE);
}
