//! Replay with plugins that keep state: the state is rebuilt from the recorded events, also after restarts, so
//! that with the recorded hooks nothing changes.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use hookbus_tests::agents::{Hermes, Step};
use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::{call, gateway_hook, plugin, tool, write};
use serde_json::{Value, json};

/// Blocks the third call of each session. It counts the calls in an event that it only observes.
const THIRD: &str = "
from collections import Counter
done = Counter()
def after(session_id, **kwargs):
    done[session_id] += 1
def before(session_id, **kwargs):
    if done[session_id] >= 2:
        return {'action': 'block', 'message': '%d were enough' % done[session_id]}
def register(ctx):
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_tool_call', before)
";

/// Adds a note from the start of a session to its first turn; counts the calls of all sessions.
const NOTES: &str = "
notes, calls, helpers = {}, 0, []
def started(session_id, model='', **kwargs):
    notes[session_id] = 'began as %d with %s' % (calls, model)
def turn(session_id, **kwargs):
    note = notes.pop(session_id, None)
    return note and {'context': '%s, helpers: %s' % (note, ' '.join(helpers))}
def request(args, **kwargs):
    global calls
    calls += 1
    return {'args': dict(args, nth=calls)}
def register(ctx):
    ctx.register_hook('on_session_start', started)
    ctx.register_hook('pre_llm_call', turn)
    ctx.register_hook('subagent_start', lambda child_session_id='', **k: helpers.append(child_session_id))
    ctx.register_middleware('tool_request', request)
";

/// Denies every other command.
const EVERY_OTHER: &str = "
seen = []
async def handle(event_type, context):
    seen.append(event_type)
    if event_type.startswith('command:') and len(seen) % 2:
        return {'decision': 'deny', 'message': 'after ' + ' '.join(seen)}
";

fn enable(home: &Home) {
    home.write_hooks(&format!(
        "trust: home\nplugins: {{ enabled: [third, notes] }}\nhooks:\n  '*':\n    - python: {}\n    - python: {}\n",
        path_text(&home.work().join("plugins")),
        path_text(&home.work().join("hooks")),
    ));
}

/// A home with plugins that keep state.
fn home_with_stateful_plugins() -> Home {
    let home = Home::with_daemon("running");
    plugin(&home, "third", THIRD);
    plugin(&home, "notes", NOTES);
    gateway_hook(&home, "every-other", "[agent:end, 'command:*']", EVERY_OTHER);
    enable(&home);
    home
}

fn send(home: &Home, session: &str, mut event: Value) -> Value {
    event["session_id"] = json!(session);
    let command = home.command(["hook", "hermes", "--wire", "bridge"]);
    let output = feed(command, event.to_string().as_bytes());
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
}

/// Runs a session with a sub-agent; returns the answers to the tool calls of the session.
fn session(home: &Home, id: &str) -> Vec<Value> {
    let shell = |name: &str, id: &str| {
        send(home, id, tool(name, "terminal", &json!({"command": "ls"}), &json!({})))
    };
    send(home, id, call("on_session_start", &json!({"model": id})));
    send(home, id, call("pre_llm_call", &json!({"user_message": "go"})));
    send(home, id, call("subagent_start", &json!({"child_session_id": format!("{id}-child")})));
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(shell("pre_tool_call", id));
        shell("post_tool_call", id);
        shell("pre_tool_call", &format!("{id}-child"));
        shell("post_tool_call", &format!("{id}-child"));
        send(home, id, call("command:status", &json!({"command": "status"})));
    }
    send(home, id, call("agent:end", &json!({})));
    send(home, id, call("pre_llm_call", &json!({"user_message": "and again"})));
    send(home, id, call("on_session_finalize", &json!({})));
    answers
}

fn report(home: &Home, arguments: &[&str]) -> Value {
    home.json(&[&["replay", "--yes", "--json"], arguments].concat())
}

fn assert_unchanged(report: &Value) {
    let summary = &report["summary"];
    assert!(summary["events"].as_u64() > Some(0), "{report:#}");
    assert_eq!(summary["events"], summary["unchanged"], "{report:#}");
    assert_eq!(summary["unsteady"], 0, "{report:#}");
}

fn log_files(home: &Home) -> [Vec<u8>; 2] {
    ["log.db", "log.db-wal"].map(|name| fs::read(home.path().join(name)).expect("a file"))
}

/// The same when the daemon has nothing more to do: after a second without events it moves its write-ahead log into the
/// file.
fn log_files_at_rest(home: &Home) -> [Vec<u8>; 2] {
    sleep(Duration::from_secs(3));
    log_files(home)
}

#[test]
fn stateful_plugins_are_unchanged_as_recorded_after_any_restart() {
    let home = home_with_stateful_plugins();
    let daemon = home.serve();
    let answers = session(&home, "one");
    let blocked = |answer: &Value| answer["action"] == "block";
    assert!(!blocked(&answers[1]) && blocked(&answers[2]), "{answers:?}");
    assert_eq!(answers[1]["args"]["nth"], 3, "calls of all sessions are counted: {answers:?}");
    session(&home, "two");
    drop(daemon); // SIGKILL: all state is lost
    // Without a daemon every event starts new plugin processes.
    let without_daemon = session(&home, "three");
    assert!(without_daemon.iter().all(|it| it["args"]["nth"] == 1), "{without_daemon:?}");
    let _daemon = home.serve();
    session(&home, "four");
    // A new hooks file restarts all plugins, an edit of a plugin restarts that one.
    enable(&home);
    session(&home, "five");
    write(&home.work().join("plugins/third"), "more.py", "");
    wait_until("the edit is seen", || {
        let before = home.decisions();
        send(&home, "six", tool("pre_tool_call", "terminal", &json!({}), &json!({})));
        let hash = |row: &Value| {
            let verdicts = row["verdicts"].as_array().cloned().unwrap_or_default();
            verdicts
                .iter()
                .find(|verdict| verdict["hook"].as_str().is_some_and(|it| it.contains("third")))
                .map(|verdict| verdict["script"].clone())
        };
        hash(home.decisions().last().expect("one")) != before.last().and_then(hash)
    });
    session(&home, "six");

    let before = log_files_at_rest(&home);
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    assert_unchanged(&report(&home, &["--all"]));
    assert_unchanged(&report(&home, &["--all", "--jobs", "4", "--repeat", "3"]));
    assert!(before == log_files(&home), "the log stays byte for byte the same");
}

#[test]
fn a_part_of_a_session_is_unchanged_because_plugins_receive_the_events_before_it() {
    let home = home_with_stateful_plugins();
    let _daemon = home.serve();
    for id in ["one", "two", "three"] {
        session(&home, id);
    }
    let calls = home.log(&["--name", "pre_tool_call", "--session", "two"]);
    let last = calls.iter().rfind(|row| row["kind"] == "tool.before").expect("a call");
    for selection in [
        &["two"][..],
        &["-n", "4"],
        &["--kind", "tool.before"],
        &["three", "-n", "1"],
        &["--since", "1h", "--tool", "shell"],
        &["last"],
    ] {
        assert_unchanged(&report(&home, selection));
    }
    let one = home.json(&["replay", "--yes", "--json", "--explain", &last["seq"].to_string()]);
    assert_eq!((&one["what"], &one["now"]), (&json!("unchanged"), &json!("block")), "{one:#}");
}

#[test]
fn a_candidate_with_another_plugin_is_a_difference() {
    let home = home_with_stateful_plugins();
    let daemon = home.serve();
    session(&home, "one");
    session(&home, "two");
    drop(daemon);
    // It counts the same events and allows one call more.
    let other = plugin(&home, "fourth", &THIRD.replace(">= 2", ">= 3"));
    let file = home.work().join("candidate.yaml");
    let plugins = path_text(&home.work().join("plugins"));
    let entry = |folder: &str| format!("trust: home\nhooks:\n  '*': [{{ python: {folder} }}]\n");
    fs::write(&file, entry(&path_text(&other))).expect("a candidate");
    let changed = report(&home, &["--all", "--kind", "tool.before", "--hooks", &path_text(&file)]);
    assert_eq!(changed["summary"]["newly_allowed"], 4, "{:#}", changed["summary"]);
    // The same plugin with fewer events has counted less: a difference, because its state is known.
    let less = entry(&format!("{plugins}/third")).replace("'*'", "pre_tool_call");
    fs::write(&file, less).expect("a candidate");
    let less = report(&home, &["--all", "--kind", "tool.before", "--hooks", &path_text(&file)]);
    let counts = ["newly_allowed", "not_comparable"].map(|key| less["summary"][key].clone());
    assert_eq!(counts, [json!(4), json!(0)], "{:#}", less["summary"]);
    // An edited plugin gives another reason.
    write(&home.work().join("plugins/third"), "__init__.py", &THIRD.replace("enough", "plenty"));
    let edited = report(&home, &["--all", "--as-recorded"]);
    assert_eq!(edited["summary"]["changed"], 4, "{:#}", edited["summary"]);
    assert!(edited["changes"][0]["notes"][0].as_str().is_some_and(|note| note.contains("script")));
}

#[test]
fn a_plugin_with_unknown_state_is_not_comparable_and_the_report_says_why() {
    let home = Home::with_daemon("running");
    let counts = "
count = 0
def turn(**kwargs):
    global count
    count += 1
    return 'call %d' % count
def after(tool_name, **kwargs):
    global count
    import os, time
    while tool_name == 'slow' and not os.environ.get('HOOKBUS_REPLAY') and not os.path.exists(DONE):
        time.sleep(0.02)
    count += 10
def register(ctx):
    ctx.register_hook('pre_llm_call', turn)
    ctx.register_hook('post_tool_call', after)
";
    let done = home.work().join("done");
    let counts = counts.replace("DONE", &format!("{:?}", path_text(&done)));
    let folder = plugin(&home, "counts", &counts);
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  '*': [{{ python: {} }}]\n",
        path_text(&folder)
    ));
    let daemon = home.serve();
    let turn = |session: &str| send(&home, session, call("pre_llm_call", &json!({})));
    assert_eq!(turn("first")["context"], "call 1");
    assert_eq!(turn("second")["context"], "call 2");
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    // An export of the second session lacks the events before it.
    let export = path_text(&home.work().join("second.jsonl"));
    home.text(&["export", "second", "-o", &export]);
    let partly =
        report(&home, &["--all", "--as-recorded", "--run", &path_text(&folder), "--log", &export]);
    assert_eq!(partly["summary"]["not_comparable"], 1, "{partly:#}");
    assert!(partly.to_string().contains("events that are not in this log"), "{partly:#}");
    // The decision overtook a slow observer, so the plugin had received one event less than in the replay.
    send(&home, "third", tool("post_tool_call", "slow", &json!({}), &json!({})));
    assert_eq!(turn("third")["context"], "call 3");
    fs::write(done, "").expect("a file");
    drop(daemon);
    let overtaken = report(&home, &["third", "--as-recorded"]);
    assert_eq!(overtaken["summary"]["not_comparable"], 1, "{overtaken:#}");
    assert!(
        overtaken.to_string().contains("had received 3 events then and 4 events now"),
        "{overtaken:#}"
    );
}

#[test]
fn plugins_of_two_buses_have_separate_state() {
    let homes = [Home::with_daemon("running"), Home::with_daemon("running")];
    let counts = "
count = 0
def turn(**kwargs):
    global count
    count += 1
    return 'call %d' % count
def register(ctx):
    ctx.register_hook('pre_llm_call', turn)
";
    let folder = path_text(&plugin(&homes[0], "counts", counts));
    let hooks = format!("trust: home\nhooks:\n  '*': [{{ python: {folder} }}]\n");
    let _daemons = homes.each_ref().map(|home| {
        home.write_hooks(&hooks);
        home.serve()
    });
    let archive = path_text(&homes[0].work().join("archive"));
    for round in 1..=3 {
        for home in &homes {
            let answer = send(home, "s", call("pre_llm_call", &json!({})));
            assert_eq!(answer["context"], format!("call {round}"));
            let export = path_text(&home.work().join("all.jsonl"));
            home.text(&["export", "-o", &export]);
            home.text(&["import", &export, "--into", &archive]);
        }
    }
    let both = report(&homes[0], &["--all", "--as-recorded", "--run", &folder, "--log", &archive]);
    assert_unchanged(&both);
    assert_eq!(both["summary"]["events"], 6);
}

#[test]
fn plugins_of_a_replay_do_not_touch_the_users_files() {
    let home = Home::with_daemon("running");
    // A home directory below the working directory would not count as the user's own.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let (hermes, user) = (home.work().join("hermes"), elsewhere.path().join("user"));
    for folder in [&hermes, &user] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let code = "
import os
def keep(**kwargs):
    print('noise')
    for folder in (os.environ['HERMES_HOME'], os.path.expanduser('~'), '.'):
        with open(os.path.join(folder, 'kept'), 'a') as kept:
            kept.write('x')
    return len(open(os.path.join(os.environ['HERMES_HOME'], 'kept')).read())
def register(ctx):
    ctx.register_hook('post_tool_call', keep)
    ctx.register_hook('pre_llm_call', lambda **k: 'seen %d' % keep())
";
    let folder = plugin(&home, "keeps", code);
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  '*': [{{ python: {} }}]\n",
        path_text(&folder)
    ));
    let daemon = home.serve();
    let send = |event: Value| {
        let mut command = home.command(["hook", "hermes"]);
        command.env("HERMES_HOME", &hermes).env("HOME", &user);
        feed(command, event.to_string().as_bytes()).stdout
    };
    send(tool("post_tool_call", "terminal", &json!({}), &json!({})));
    wait_until("it was seen", || hermes.join("kept").exists() && home.work().join("kept").exists());
    assert!(send(call("pre_llm_call", &json!({}))).contains("seen 2"));
    drop(daemon);
    let kept = || {
        let files = [hermes.join("kept"), user.join("kept"), home.work().join("kept")];
        let log = home.path().join("plugins.log");
        files
            .into_iter()
            .chain([log])
            .map(|file| fs::read(file).expect("a file"))
            .collect::<Vec<_>>()
    };
    let before = kept();
    // Files that it writes are part of the rebuilt state.
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    assert!(before == kept());
}

#[test]
fn a_session_with_plugins_becomes_a_policy_test() {
    let home = home_with_stateful_plugins();
    let daemon = home.serve();
    session(&home, "one");
    session(&home, "two");
    drop(daemon);
    let file = path_text(&home.work().join("expected.jsonl"));
    report(&home, &["--check", "--update", "two", "--expect", &file]);
    assert_unchanged(&report(&home, &["--check", "--expect", &file]));
    let third = home.work().join("plugins/third");
    write(&third, "__init__.py", &THIRD.replace(">= 2", ">= 3"));
    let checked = home.run(&["replay", "--yes", "--check", "--expect", &file]);
    assert_eq!(checked.status.code(), Some(1), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_real_hermes_session_with_stateful_plugins_is_unchanged_as_recorded() {
    let home = Home::with_daemon("running");
    plugin(&home, "third", THIRD);
    plugin(&home, "notes", NOTES);
    enable(&home);
    // Otherwise the first event starts a daemon and is answered before that is ready.
    let daemon = home.serve();
    let script = vec![
        Step::tool("terminal", json!({"command": "echo one > one.txt"})),
        Step::tool("terminal", json!({"command": "echo two > two.txt"})),
        Step::tool("terminal", json!({"command": "echo three > three.txt"})),
        Step::text("Done."),
    ];
    let run = Hermes::new("remembered").script(script).prompts(&["Make files."]);
    let run = run.connected(&home, "running").run();
    assert_eq!(
        (run.exit, run.file("two.txt").as_deref()),
        (Some(0), Some("two\n")),
        "{}",
        run.stderr
    );
    assert_eq!(run.file("three.txt"), None, "the third call was blocked");
    assert!(run.sent_to_the_model().contains("began as 0"), "the model receives the note");
    let outcomes: Vec<Value> =
        home.decisions().iter().map(|decision| decision["outcome"].clone()).collect();
    for outcome in ["block", "context", "rewrite"] {
        assert!(outcomes.contains(&json!(outcome)), "{outcomes:?}");
    }
    drop(daemon);
    let before = log_files(&home);
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    assert_unchanged(&report(&home, &["last"]));
    assert!(before == log_files(&home));
}

#[test]
fn a_report_distinguishes_plugins_of_a_hook_without_a_name() {
    let home = home_with_stateful_plugins();
    send(&home, "s", tool("pre_tool_call", "terminal", &json!({"command": "ls"}), &json!({})));
    let text = home.text(&["replay", "--all", "--as-recorded", "--yes"]);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains(" → ") && !line.contains("hooks (")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for plugin in ["(third)", "(notes)"] {
        assert_eq!(lines.iter().filter(|line| line.contains(plugin)).count(), 1, "{text}");
    }
    let arrows: Vec<Option<usize>> =
        lines.iter().map(|line| line.chars().position(|letter| letter == '→')).collect();
    assert_eq!(arrows[0], arrows[1], "one column: {text}");
}
