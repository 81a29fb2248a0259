//! Recorded sessions through plugins that remember: what they know is rebuilt from the recorded events, so that
//! as recorded nothing changes, whoever was restarted in between.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;

use hookbus_tests::agents::{Hermes, Step};
use hookbus_tests::home::{Home, feed, shown, wait_until};
use hookbus_tests::plugins::{call, gateway_hook, plugin, tool, write};
use serde_json::{Value, json};

/// Blocks the third call of each session; what it looked on at decides.
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

/// Notes something at the start of a session and says it later, once; counts over all sessions.
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

/// Lets a command through every other time.
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
        shown(&home.work().join("plugins")),
        shown(&home.work().join("hooks")),
    ));
}

/// A home whose plugins remember.
fn forgetful_nobody() -> Home {
    let home = Home::with_daemon("running");
    plugin(&home, "third", THIRD);
    plugin(&home, "notes", NOTES);
    gateway_hook(&home, "every-other", "[agent:end, 'command:*']", EVERY_OTHER);
    enable(&home);
    home
}

fn fire(home: &Home, session: &str, mut event: Value) -> Value {
    event["session_id"] = json!(session);
    let command = home.command(["hook", "hermes", "--wire", "bridge"]);
    let heard = feed(command, event.to_string().as_bytes());
    assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&heard.stdout).unwrap_or(Value::Null)
}

/// One session with two in it that it started; gives back what was decided on its tool calls.
fn session(home: &Home, id: &str) -> Vec<Value> {
    let shell = |name: &str, id: &str| {
        fire(home, id, tool(name, "terminal", &json!({"command": "ls"}), &json!({})))
    };
    fire(home, id, call("on_session_start", &json!({"model": id})));
    fire(home, id, call("pre_llm_call", &json!({"user_message": "go"})));
    fire(home, id, call("subagent_start", &json!({"child_session_id": format!("{id}-child")})));
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(shell("pre_tool_call", id));
        shell("post_tool_call", id);
        shell("pre_tool_call", &format!("{id}-child"));
        shell("post_tool_call", &format!("{id}-child"));
        fire(home, id, call("command:status", &json!({"command": "status"})));
    }
    fire(home, id, call("agent:end", &json!({})));
    fire(home, id, call("pre_llm_call", &json!({"user_message": "and again"})));
    fire(home, id, call("on_session_finalize", &json!({})));
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

#[test]
fn plugins_that_remember_are_unchanged_as_recorded_whatever_was_restarted_then() {
    let home = forgetful_nobody();
    let daemon = home.serve();
    let answers = session(&home, "one");
    let blocked = |answer: &Value| answer["action"] == "block";
    assert!(!blocked(&answers[1]) && blocked(&answers[2]), "{answers:?}");
    assert_eq!(answers[1]["args"]["nth"], 3, "calls of all sessions are counted: {answers:?}");
    session(&home, "two");
    drop(daemon); // SIGKILL: everybody forgets
    let alone = session(&home, "three"); // and without a daemon nobody ever knows anything
    assert!(alone.iter().all(|answer| answer["args"]["nth"] == 1), "{alone:?}");
    let _daemon = home.serve();
    session(&home, "four");
    // Another file is another set of processes; an edit is another process of one.
    enable(&home);
    session(&home, "five");
    write(&home.work().join("plugins/third"), "more.py", "");
    wait_until("the edit is seen", || {
        let before = home.decisions();
        fire(&home, "six", tool("pre_tool_call", "terminal", &json!({}), &json!({})));
        let hash = |row: &Value| {
            let verdicts = row["verdicts"].as_array().cloned().unwrap_or_default();
            verdicts
                .iter()
                .find(|said| said["hook"].as_str().is_some_and(|it| it.contains("third")))
                .map(|said| said["script"].clone())
        };
        hash(home.decisions().last().expect("one")) != before.last().and_then(hash)
    });
    session(&home, "six");

    let before = log_files(&home);
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    assert_unchanged(&report(&home, &["--all"]));
    assert_unchanged(&report(&home, &["--all", "--jobs", "4", "--repeat", "3"]));
    assert!(before == log_files(&home), "the log is byte for byte what it was");
}

#[test]
fn a_part_of_a_session_is_unchanged_as_what_came_before_is_told() {
    let home = forgetful_nobody();
    let _daemon = home.serve();
    for id in ["one", "two", "three"] {
        session(&home, id);
    }
    let last_block = home.log(&["--name", "pre_tool_call", "--session", "two"]);
    let last = last_block.iter().rfind(|row| row["kind"] == "tool.before").expect("a call");
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
fn a_candidate_with_another_plugin_is_found_out() {
    let home = forgetful_nobody();
    let daemon = home.serve();
    session(&home, "one");
    session(&home, "two");
    drop(daemon);
    // One more is allowed by it; it counts from the same events.
    let other = plugin(&home, "fourth", &THIRD.replace(">= 2", ">= 3"));
    let file = home.work().join("candidate.yaml");
    let plugins = shown(&home.work().join("plugins"));
    let entry = |folder: &str| format!("trust: home\nhooks:\n  '*': [{{ python: {folder} }}]\n");
    fs::write(&file, entry(&shown(&other))).expect("a candidate");
    let changed = report(&home, &["--all", "--kind", "tool.before", "--hooks", &shown(&file)]);
    assert_eq!(changed["summary"]["newly_allowed"], 4, "{:#}", changed["summary"]);
    // The same plugin that hears less has counted less: that is a difference, and it is known.
    let less = entry(&format!("{plugins}/third")).replace("'*'", "pre_tool_call");
    fs::write(&file, less).expect("a candidate");
    let less = report(&home, &["--all", "--kind", "tool.before", "--hooks", &shown(&file)]);
    let counts = ["newly_allowed", "not_comparable"].map(|key| less["summary"][key].clone());
    assert_eq!(counts, [json!(4), json!(0)], "{:#}", less["summary"]);
    // And edited, it says something else.
    write(&home.work().join("plugins/third"), "__init__.py", &THIRD.replace("enough", "plenty"));
    let edited = report(&home, &["--all", "--as-recorded"]);
    assert_eq!(edited["summary"]["changed"], 4, "{:#}", edited["summary"]);
    assert!(edited["changes"][0]["notes"][0].as_str().is_some_and(|note| note.contains("script")));
}

#[test]
fn what_cannot_be_known_is_not_comparable_and_says_why() {
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
    let counts = counts.replace("DONE", &format!("{:?}", shown(&done)));
    let folder = plugin(&home, "counts", &counts);
    home.write_hooks(&format!("trust: home\nhooks:\n  '*': [{{ python: {} }}]\n", shown(&folder)));
    let daemon = home.serve();
    let turn = |session: &str| fire(&home, session, call("pre_llm_call", &json!({})));
    assert_eq!(turn("first")["context"], "call 1");
    assert_eq!(turn("second")["context"], "call 2");
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    // In an export of the second session nothing says what came before it.
    let export = shown(&home.work().join("second.jsonl"));
    home.text(&["export", "second", "-o", &export]);
    let partly = report(&home, &["--all", "--as-recorded", "--log", &export]);
    assert_eq!(partly["summary"]["not_comparable"], 1, "{partly:#}");
    assert!(partly.to_string().contains("events then that are not here"), "{partly:#}");
    // A decision that overtook a slow onlooker knew less than one that waited.
    fire(&home, "third", tool("post_tool_call", "slow", &json!({}), &json!({})));
    assert_eq!(turn("third")["context"], "call 3");
    fs::write(done, "").expect("a file");
    drop(daemon);
    let overtaken = report(&home, &["third", "--as-recorded"]);
    assert_eq!(overtaken["summary"]["not_comparable"], 1, "{overtaken:#}");
    assert!(
        overtaken.to_string().contains("had heard 3 events then, and 4 events now"),
        "{overtaken:#}"
    );
}

#[test]
fn plugins_of_two_buses_know_nothing_of_each_other() {
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
    let folder = shown(&plugin(&homes[0], "counts", counts));
    let hooks = format!("trust: home\nhooks:\n  '*': [{{ python: {folder} }}]\n");
    let _daemons = homes.each_ref().map(|home| {
        home.write_hooks(&hooks);
        home.serve()
    });
    let archive = shown(&homes[0].work().join("archive"));
    for round in 1..=3 {
        for home in &homes {
            let said = fire(home, "s", call("pre_llm_call", &json!({})));
            assert_eq!(said["context"], format!("call {round}"));
            let export = shown(&home.work().join("all.jsonl"));
            home.text(&["export", "-o", &export]);
            home.text(&["import", &export, "--into", &archive]);
        }
    }
    let both = report(&homes[0], &["--all", "--as-recorded", "--log", &archive]);
    assert_unchanged(&both);
    assert_eq!(both["summary"]["events"], 6);
}

#[test]
fn plugins_of_a_replay_touch_nothing_of_the_persons() {
    let home = Home::with_daemon("running");
    let (hermes, person) = (home.work().join("hermes"), home.work().join("person"));
    for folder in [&hermes, &person] {
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
    home.write_hooks(&format!("trust: home\nhooks:\n  '*': [{{ python: {} }}]\n", shown(&folder)));
    let daemon = home.serve();
    let fire = |event: Value| {
        let mut command = home.command(["hook", "hermes"]);
        command.env("HERMES_HOME", &hermes).env("HOME", &person);
        feed(command, event.to_string().as_bytes()).stdout
    };
    fire(tool("post_tool_call", "terminal", &json!({}), &json!({})));
    wait_until("it was seen", || hermes.join("kept").exists() && home.work().join("kept").exists());
    assert!(fire(call("pre_llm_call", &json!({}))).contains("seen 2"));
    drop(daemon);
    let kept = || {
        let files = [hermes.join("kept"), person.join("kept"), home.work().join("kept")];
        let log = home.path().join("plugins.log");
        files
            .into_iter()
            .chain([log])
            .map(|file| fs::read(file).expect("a file"))
            .collect::<Vec<_>>()
    };
    let before = kept();
    // What it keeps in files is rebuilt as well.
    assert_unchanged(&report(&home, &["--all", "--as-recorded"]));
    assert!(before == kept());
}

#[test]
fn a_session_with_plugins_becomes_a_policy_test() {
    let home = forgetful_nobody();
    let daemon = home.serve();
    session(&home, "one");
    session(&home, "two");
    drop(daemon);
    let file = shown(&home.work().join("expected.jsonl"));
    report(&home, &["--check", "--update", "two", "--expect", &file]);
    assert_unchanged(&report(&home, &["--check", "--expect", &file]));
    let third = home.work().join("plugins/third");
    write(&third, "__init__.py", &THIRD.replace(">= 2", ">= 3"));
    let checked = home.run(&["replay", "--yes", "--check", "--expect", &file]);
    assert_eq!(checked.status.code(), Some(1), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_real_hermes_session_through_plugins_that_remember_is_unchanged_as_recorded() {
    let home = Home::with_daemon("running");
    plugin(&home, "third", THIRD);
    plugin(&home, "notes", NOTES);
    enable(&home);
    // The first event of all would start one, and be answered before that is up.
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
    assert!(run.sent_to_the_model().contains("began as 0"), "the model hears the note");
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
fn a_report_tells_plugins_without_a_name_apart() {
    let home = forgetful_nobody();
    fire(&home, "s", tool("pre_tool_call", "terminal", &json!({"command": "ls"}), &json!({})));
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
