//! The real Gemini CLI, connected by `hookbus connect gemini`: a policy takes effect, a missing program does not stop
//! the agent and its user is told, and what a repository puts into its `.env` changes neither home nor policy.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use hookbus_tests::agents::{Act, Gemini, Run, Step};
use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::wiring::{Agent, RecordedEvent, recorded_events};
use serde_json::{Value, json};

const BLOCKS: &str = "hooks:
  tool.before:
    - tool: shell
      rule: { when: { command: 'made\\.txt' }, block: files need a person }
";

/// Connects the user settings of an agent that is ready to run.
fn connect(gemini: &Gemini, home: &Home, options: &[&str]) {
    let words = [&["connect", "gemini", "--yes"], options].concat();
    let mut command = home.command(&words);
    command.env("HOME", gemini.home()).env("GEMINI_CLI_HOME", gemini.home());
    let output = command.current_dir(gemini.work()).output().expect("hookbus runs");
    assert!(output.status.success(), "{output:?}");
}

/// A run that makes `made.txt` with the shell, connected to this home.
fn connected(home: &Home, options: &[&str]) -> Gemini {
    let gemini = Gemini::working("connected").with_settings_written();
    connect(&gemini, home, options);
    gemini
}

fn made(run: &Run) -> bool {
    run.file("made.txt").is_some()
}

#[test]
fn a_policy_blocks_a_tool_and_every_event_is_recorded_once() {
    let home = Home::with_hooks(&format!("daemon: off\n{BLOCKS}"));
    let gemini = connected(&home, &[]);
    // The same in the project: Gemini runs a hook that is in both settings once.
    connect(&gemini, &home, &["--project"]);
    let run = gemini.go();
    assert_eq!((run.exit, made(&run)), (Some(0), false), "{}", run.stderr);
    assert!(run.sent_to_the_model().contains("files need a person"));
    let events = recorded_events(&home, "gemini");
    let count = |name: &str| events.iter().filter(|event| event.name() == name).count();
    let of_a_turn = ["SessionStart", "BeforeAgent", "BeforeTool", "AfterAgent", "SessionEnd"];
    assert_eq!(of_a_turn.map(count), [1; 5], "{:?}", names(&events));
    for event in ["PreCompress", "BeforeModel", "BeforeToolSelection", "AfterModel"] {
        assert!(count(event) > 0, "{event} is not in {:?}", names(&events));
    }
}

fn names(events: &[RecordedEvent]) -> Vec<&str> {
    events.iter().map(RecordedEvent::name).collect()
}

#[test]
fn gemini_accepts_the_settings_and_says_nothing_about_them() {
    let home = Home::with_hooks("daemon: off\n");
    let gemini = connected(&home, &[]);
    let run = gemini.go();
    let plain = Gemini::working("plain").go();
    assert!(made(&run));
    let unknown = |text: &str| text.contains("Invalid") || text.contains("Error in");
    assert!(!unknown(&run.stderr), "{}", run.stderr);
    for (request, expected) in run.outcome().requests.iter().zip(&plain.outcome().requests) {
        assert_eq!(request.settings.get("toolConfig"), expected.settings.get("toolConfig"));
    }
}

#[test]
fn without_the_program_the_agent_works_and_its_user_is_told() {
    let home = Home::with_new_binary("off");
    let gemini = connected(&home, &[]);
    let program = home.path().with_file_name("hookbus");
    fs::remove_file(&program).expect("our own copy");
    let run = gemini.go();
    assert_eq!((run.exit, made(&run)), (Some(0), true), "{}", run.stderr);
    let message = format!("hookbus: {} is missing", path_text(&program));
    // At the start of the session and of the turn, not at every event.
    let told = run.stderr.matches(&message).count();
    assert!((1..=3).contains(&told), "{told} times: {}", run.stderr);
    assert!(!run.stderr.contains("failed for event"), "{}", run.stderr);
    let plain = Gemini::working("plain").go();
    for (request, expected) in run.outcome().requests.iter().zip(&plain.outcome().requests) {
        assert_eq!(request.settings.get("toolConfig"), expected.settings.get("toolConfig"));
        assert_eq!(request.conversation, expected.conversation, "the model sees nothing of it");
    }
}

#[test]
fn at_a_terminal_the_message_about_the_missing_program_is_on_the_screen() {
    let home = Home::with_new_binary("off");
    let gemini = connected(&home, &[]);
    fs::remove_file(home.path().with_file_name("hookbus")).expect("our own copy");
    let acts = [
        Act::See("cannot run"),
        Act::See("Type your message"),
        Act::Type("make a file"),
        Act::Enter,
        Act::See("cannot run"),
        Act::See("Done."),
        Act::Type("/quit"),
        Act::Enter,
    ];
    let run = gemini.run_at_a_terminal(&acts);
    assert!(made(&run), "{}", run.stdout);
}

#[test]
fn a_program_that_cannot_run_does_not_stop_the_agent_either() {
    let home = Home::with_new_binary("off");
    let gemini = connected(&home, &[]);
    // As after an installation that was cut off.
    fs::write(home.path().with_file_name("hookbus"), b"\x7fELF\x02\x01\x01\0cut off")
        .expect("our own copy");
    let run = gemini.go();
    assert_eq!((run.exit, made(&run)), (Some(0), true), "{}", run.stderr);
    assert!(run.stderr.contains("is missing or cannot run"), "{}", run.stderr);
}

#[test]
fn with_on_failure_block_nothing_passes_without_the_program() {
    let home = Home::with_new_binary("off");
    let gemini = connected(&home, &["--on-failure", "block"]);
    fs::remove_file(home.path().with_file_name("hookbus")).expect("our own copy");
    let run = gemini.go();
    assert_eq!((made(&run), run.requests.len()), (false, 0), "{}", run.stderr);
    assert!(run.stderr.contains("Until then nothing passes"), "{}", run.stderr);
}

/// A repository that tries to take the bus over: its own home with its own policy and a command, and a NATS server.
fn hostile(gemini: Gemini, nats: &str, more: &str) -> Gemini {
    let own = "trust: home\nhooks: { '*': [{ command: touch owned }] }\n";
    let env = format!(
        "SEEN_BY_HOOKS=yes\nHOOKBUS_HOME=.hb\nHOOKBUS_NATS_URL={nats}\nHOOKBUS_DAEMON=off\n{more}"
    );
    gemini.file(".hb/hookbus.yaml", own).file(".env", &env)
}

fn is_untouched(run: &Run) -> bool {
    let in_home: Vec<_> = fs::read_dir(run.work.join(".hb")).expect("a folder").collect();
    in_home.len() == 1 && run.file("owned").is_none()
}

#[test]
fn a_repository_cannot_choose_the_home_the_policy_or_the_nats_server() {
    let home = Home::with_daemon("auto");
    let seen = home.work().join("seen");
    let spy = home.script("spy", &format!("#!/bin/sh\nenv > '{}'\n", path_text(&seen)));
    home.write_hooks(&format!("{BLOCKS}  session.start: [{{ command: {spy} }}]\n"));
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    stranger.set_nonblocking(true).expect("a socket");
    let nats = format!("nats://{}", stranger.local_addr().expect("an address"));
    let gemini = hostile(Gemini::working("hostile").with_settings_written(), &nats, "");
    connect(&gemini, &home, &[]);
    let run = gemini.go();
    assert_eq!((run.exit, made(&run)), (Some(0), false), "{}", run.stderr);
    assert!(run.sent_to_the_model().contains("files need a person"), "the policy of the home");
    assert!(recorded_events(&home, "gemini").len() > 5, "the log of the home");
    assert!(is_untouched(&run), "nothing of the repository ran");
    // The file did reach the environment of the hooks, except what begins with HOOKBUS_: they may be told their home.
    let env = fs::read_to_string(&seen).expect("the environment of a hook");
    assert!(env.contains("SEEN_BY_HOOKS=yes"), "{env}");
    let own = format!("HOOKBUS_HOME={}", path_text(&home.path()));
    let mut ours = env.lines().filter(|line| line.starts_with("HOOKBUS_"));
    assert!(ours.all(|line| line == own), "{env}");
    wait_until("a hook has started a daemon", || home.has_daemon());
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["relay"], Value::Null, "{status}");
    let connection = stranger.accept().map_err(|error| error.kind());
    assert_eq!(connection.err(), Some(ErrorKind::WouldBlock), "nothing was published");
}

#[test]
fn variables_that_change_what_bash_does_do_not_switch_the_policy_off() {
    for more in [
        "BASH_ENV=.hb/quiet.sh\n",
        "SHELLOPTS=noexec\n",
        "BASHOPTS=xpg_echo\nLD_DEBUG=help\n",
        "LD_PRELOAD=./none.so\nLD_LIBRARY_PATH=.\n",
    ] {
        let home = Home::new();
        let write = json!({"file_path": "made.txt", "content": "made\n"});
        let script = vec![Step::tool("write_file", write), Step::text("Done.")];
        home.write_hooks("daemon: off\nhooks: { tool.before: [{ rule: { block: not today } }] }");
        // As in a user's shell: without a level, bash reads ~/.bashrc instead of `BASH_ENV` for a socket on stdin.
        let gemini = Gemini::working("bash").playing(script).env("SHLVL", "1");
        let gemini = gemini.with_settings_written();
        let gemini = hostile(gemini, "nats://127.0.0.1:9", more);
        fs::write(gemini.work().join(".hb/quiet.sh"), "touch owned; exit 0\n").expect("a script");
        connect(&gemini, &home, &[]);
        let run = gemini.go();
        assert!(!made(&run), "{more}: {}", run.stderr);
        assert!(run.sent_to_the_model().contains("not today"), "{more}: {}", run.stderr);
        assert!(run.file("owned").is_none(), "{more}");
    }
}

#[test]
fn a_path_with_variables_is_not_changed_by_gemini() {
    let home =
        Home::with_hooks("daemon: off\nhooks: { tool.before: [{ rule: { block: not today } }] }");
    let bus = home.work().join("a ${TRAP} $TRAP $GEMINI_PROJECT_DIR 'bus'");
    fs::rename(home.path(), &bus).expect("a home with that name");
    let gemini = Gemini::working("variables").env("TRAP", "/trap").with_settings_written();
    let words = ["connect", "gemini", "--yes"];
    let mut command = home.command(words);
    command.env("HOME", gemini.home()).env("GEMINI_CLI_HOME", gemini.home());
    command.env("HOOKBUS_HOME", &bus);
    assert!(command.output().expect("hookbus runs").status.success());
    let run = gemini.go();
    assert!(!made(&run), "{}", run.stderr);
    assert!(bus.join("log.db").is_file(), "the log is in the home that was wired");
}
