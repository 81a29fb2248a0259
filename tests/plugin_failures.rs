//! Plugins that fail: a plugin that is missing, broken, edited or busy counts as failed and its `on_failure`
//! applies; an event that a plugin cannot handle does not end its process.

use std::fs;
use std::path::Path;
use std::process::Command;

use hookbus_tests::consent::{LAPSED, approve_in, blocking_plugin};
use hookbus_tests::home::{Home, feed, is_alive, path_text, wait_until};
use hookbus_tests::plugins::{call, plugin, tool, write};
use serde_json::{Value, json};

fn before(command: &str) -> Value {
    tool("pre_tool_call", "terminal", &json!({"command": command}), &json!({}))
}

/// The answer to an event of a client with this deadline in seconds.
fn answer_within(home: &Home, deadline: &str, payload: &Value) -> Value {
    let command = home.command(["hook", "hermes", "--deadline", deadline]);
    let output = feed(command, payload.to_string().as_bytes());
    serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
}

/// The context or the reason in the answer; empty if there is no answer.
fn answer_text(home: &Home, payload: &Value) -> String {
    let answer = home.answer("hermes", payload);
    let text = answer["context"].as_str().or_else(|| answer["reason"].as_str());
    text.unwrap_or_default().to_owned()
}

fn failures(home: &Home) -> Vec<String> {
    let failure = |verdict: Value| verdict["failure"].as_str().map(str::to_owned);
    let verdicts = |row: &Value| row["verdicts"].as_array().cloned().unwrap_or_default();
    home.decisions().iter().flat_map(verdicts).filter_map(failure).collect()
}

/// Python code: `wait(folder)` writes the file `seen` and waits for the file `go`.
const WAIT: &str = "
import os, time
def wait(folder):
    open(os.path.join(folder, 'seen'), 'w').close()
    while not os.path.exists(os.path.join(folder, 'go')):
        time.sleep(0.01)
";

#[test]
fn a_plugin_that_is_edited_while_an_event_is_queued_is_not_restarted() {
    let home = Home::with_daemon("running");
    let work = path_text(&home.work());
    let code = |word: &str| {
        format!(
            "{WAIT}
def before(args, **kwargs):
    if args['command'] == 'die':
        wait({work:?})
        os._exit(3)
    return {{'action': 'block', 'message': {word:?}}}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
"
        )
    };
    let folder = plugin(&home, "edited", &code("approved"));
    let arrived = home.script("arrived.sh", &format!("#!/bin/sh\ntouch {work}/arrived\n"));
    home.write_hooks_file(&format!(
        "hooks:\n  tool.before:\n    - {{ name: edited, python: {} }}\n    - command: {arrived}\n",
        path_text(&folder)
    ));
    home.approve();
    let _daemon = home.serve();
    assert_eq!(answer_text(&home, &before("x")), "approved");
    let arrived = home.work().join("arrived");
    fs::remove_file(&arrived).expect("the command ran");
    let answer = std::thread::scope(|scope| {
        let first = scope.spawn(|| answer_text(&home, &before("die")));
        wait_until("the plugin handles the first event", || home.work().join("seen").exists());
        wait_until("the command has run for it", || arrived.exists());
        fs::remove_file(&arrived).expect("the command ran");
        let second = scope.spawn(|| answer_text(&home, &before("x")));
        // The command runs at the same time as the plugin is called, so the second event is queued by now.
        wait_until("the command has run for the second event", || arrived.exists());
        write(&folder, "__init__.py", &code("edited"));
        write(&home.work(), "go", "");
        first.join().expect("the first");
        second.join().expect("the second")
    });
    assert!(answer.contains(LAPSED), "{answer}");
    let last = home.last_decision();
    assert_eq!(last["verdicts"][0]["refused"], "consent", "{last}");
}

#[test]
fn an_old_timeout_does_not_shorten_the_wait_for_a_restarted_plugin() {
    let home = Home::with_daemon("running");
    let work = path_text(&home.work());
    let code = format!(
        "{WAIT}
if os.path.exists({work:?} + '/slow'):
    wait({work:?})
def before(args, **kwargs):
    if args['command'] == 'slow':
        wait({work:?})
    return {{'action': 'block', 'message': str(os.getpid())}}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
    ctx.register_hook('post_tool_call', lambda **k: None)
"
    );
    home.write_hooks(&format!(
        "hooks:\n  '*':\n    - python: {}\n      timeout: 5\n",
        path_text(&plugin(&home, "slow", &code))
    ));
    let _daemon = home.serve();
    let process = answer_text(&home, &before("x"));
    let timed_out = std::time::Instant::now();
    assert_eq!(answer_within(&home, "1", &before("slow")), Value::Null);
    write(&home.work(), "go", "");
    // The plugin finishes that event, and then nothing happens for longer than its timeout.
    wait_until("it is long ago", || timed_out.elapsed() > std::time::Duration::from_secs(7));
    fs::remove_file(home.work().join("go")).expect("a file");
    fs::remove_file(home.work().join("seen")).expect("a file");
    write(&home.work(), "slow", "");
    assert!(Command::new("kill").args(["-9", &process]).status().expect("kill").success());
    wait_until("it is gone", || !is_alive(&process));
    // An event that it only observes restarts it, so that it is still starting when a decision is needed.
    home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!({})));
    wait_until("it loads", || home.work().join("seen").exists());
    let events = || home.log(&["--name", "pre_tool_call", "--kind", "tool.before"]).len();
    let known = events();
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| answer_text(&home, &before("x")));
        wait_until("the event is recorded", || events() > known);
        std::thread::sleep(std::time::Duration::from_millis(300));
        write(&home.work(), "go", "");
        answer.join().expect("an answer")
    });
    let failures = failures(&home);
    assert!(answer.parse::<u32>().is_ok(), "{answer} {failures:?}");
    assert_eq!(failures.len(), 1, "{failures:?}");
}

#[test]
fn an_event_that_is_too_large_for_a_plugin_fails_and_the_plugin_stays() {
    let home = Home::with_daemon("running");
    let code = "
import os
def before(args, **kwargs):
    return {'action': 'block', 'message': str(os.getpid())}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
    ctx.register_hook('post_tool_call', lambda **k: None)
";
    home.write_hooks(&format!(
        "hooks:\n  '*':\n    - python: {}\n      memory: 128\n",
        path_text(&plugin(&home, "small", code))
    ));
    let _daemon = home.serve();
    let process = answer_text(&home, &before("x"));
    let large = "x".repeat(60 << 20);
    assert_eq!(answer_text(&home, &before(&large)), "");
    let failures = failures(&home);
    assert!(failures.len() == 1 && failures[0].contains("MemoryError"), "{failures:?}");
    home.answer("hermes", &tool("post_tool_call", "x", &json!({"command": large}), &json!({})));
    assert_eq!(answer_text(&home, &before("x")), process, "the same process");
}

#[test]
fn queued_notifications_do_not_fill_the_memory() {
    let home = Home::with_daemon("running");
    let work = path_text(&home.work());
    let code = format!(
        "{WAIT}
seen = 0
def after(**kwargs):
    global seen
    wait({work:?})
    seen += 1
def register(ctx):
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_llm_call', lambda **k: str(seen))
"
    );
    home.write_hooks(&format!(
        "hooks:\n  '*':\n    - python: {}\n",
        path_text(&plugin(&home, "busy", &code))
    ));
    let _daemon = home.serve();
    let large = json!({"text": "x".repeat(16 << 20)});
    for _ in 0..8 {
        home.answer("hermes", &tool("post_tool_call", "x", &large, &json!({})));
    }
    let printed = || fs::read_to_string(home.path().join("plugins.log")).unwrap_or_default();
    wait_until("some are dropped", || {
        printed().contains("the queue is full; post_tool_call was dropped")
    });
    write(&home.work(), "go", "");
    let seen = || answer_text(&home, &call("pre_llm_call", &json!({}))).parse::<u32>().unwrap_or(0);
    wait_until("the others are delivered", || seen() > 4);
}

#[test]
fn a_plugin_whose_output_cannot_be_written_goes_on() {
    let home = Home::with_daemon("running");
    let code = "
import os, sys
full = os.open('/dev/full', os.O_WRONLY)
os.dup2(full, 1)
os.dup2(full, 2)
def before(args, **kwargs):
    print('asked')
    print('asked', file=sys.stderr, flush=True)
    sys.stdout.buffer.write(b'asked')
    if args['command'] == 'raise':
        raise ValueError('oh')
    return {'action': 'block', 'message': str(os.getpid())}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
";
    home.write_hooks(&format!(
        "hooks:\n  '*':\n    - python: {}\n",
        path_text(&plugin(&home, "prints", code))
    ));
    let _daemon = home.serve();
    let process = answer_text(&home, &before("x"));
    assert!(process.parse::<u32>().is_ok(), "{process} {:?}", failures(&home));
    assert_eq!(answer_text(&home, &before("raise")), "");
    assert_eq!(failures(&home), ["before raised ValueError: oh"]);
    assert_eq!(answer_text(&home, &before("x")), process);
}

/// A home that trusts its hooks file, with this directory as a guard that fails closed.
fn write_guard(home: &Home, folder: &Path, more: &str) {
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{ name: guard, python: {}, on_failure: block }}\n{more}",
        path_text(folder)
    ));
}

#[test]
fn a_missing_plugin_blocks_if_on_failure_says_so() {
    let home = Home::new();
    let folder = plugin(&home, "guard", &blocking_plugin("guarded"));
    write_guard(&home, &folder, "");
    assert_eq!(answer_text(&home, &before("x")), "guarded");
    // A plugin that the user has disabled is not missing.
    write_guard(&home, &folder, "plugins: { disabled: [guard] }\n");
    assert_eq!(answer_text(&home, &before("x")), "");
    // In a directory of plugins: not enabled, or removed.
    let all = folder.parent().expect("a directory").to_owned();
    write_guard(&home, &all, "plugins: { enabled: [guard] }\n");
    assert_eq!(answer_text(&home, &before("x")), "guarded");
    let is_missed = || {
        let text = answer_text(&home, &before("x"));
        ["is loaded; name it", "put one there"].iter().any(|words| text.contains(words))
    };
    write_guard(&home, &all, "");
    assert!(is_missed(), "{}", answer_text(&home, &before("x")));
    write_guard(&home, &all, "plugins: { disabled: [guard] }\n");
    assert_eq!(answer_text(&home, &before("x")), "");
    write_guard(&home, &folder, "");
    fs::remove_file(folder.join("plugin.yaml")).expect("a manifest");
    assert!(is_missed(), "{}", answer_text(&home, &before("x")));
}

#[test]
fn a_plugin_that_was_missing_is_missing_in_a_replay() {
    for policy in ["block", "allow"] {
        let home = Home::new();
        let folder = home.work().join("plugins");
        fs::create_dir_all(&folder).expect("a directory");
        home.write_hooks(&format!(
            "hooks: {{ tool.before: [{{ name: guard, python: {}, on_failure: {policy} }}] }}",
            path_text(&folder)
        ));
        assert_eq!(answer_text(&home, &before("x")).contains("put one there"), policy == "block");
        assert_eq!(failures(&home).len(), 1);
        let replayed = home.json(&["replay", "--yes", "--json", "--all"]);
        assert_eq!(replayed["summary"]["unchanged"], 1, "{replayed}");
    }
}

#[test]
fn a_directory_without_enabled_plugins_is_no_failure_and_an_empty_one_is() {
    let home = Home::new();
    let all = plugin(&home, "guard", &blocking_plugin("guarded"))
        .parent()
        .expect("a directory")
        .to_owned();
    home.write_hooks(&format!("hooks: {{ '*': [{{ python: {} }}] }}", path_text(&all)));
    assert_eq!(answer_text(&home, &before("x")), "");
    assert_eq!(failures(&home), [""; 0]);
    fs::remove_dir_all(all.join("guard")).expect("a plugin");
    assert_eq!(answer_text(&home, &before("x")), "");
    assert!(failures(&home)[0].contains("put one there"), "{:?}", failures(&home));
}

#[test]
fn of_two_entries_for_one_plugin_the_stricter_on_failure_applies() {
    let home = Home::new();
    let folder = path_text(&plugin(&home, "broken", "import nothing_of_that_name\n"));
    for (first, second) in [("", ", on_failure: block"), (", on_failure: block", "")] {
        home.write_hooks(&format!(
            "hooks:\n  '*':\n    - {{ name: lax, python: {folder}{first} }}\n  tool.before:\n    - {{ name: strict, python: {folder}{second} }}\n"
        ));
        let text = answer_text(&home, &before("x"));
        assert!(text.contains("nothing_of_that_name"), "{text}");
    }
    let decisions = home.decisions();
    assert!(decisions.iter().all(|row| row["verdicts"].as_array().expect("some").len() == 1));
}

#[test]
fn of_two_entries_for_one_plugin_one_approved_entry_is_enough() {
    let home = Home::new();
    let folder = path_text(&plugin(&home, "guard", &blocking_plugin("guarded")));
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - {{ name: first, python: {folder} }}\n  tool.before:\n    - {{ name: second, python: {folder} }}\n"
    ));
    assert_eq!(answer_text(&home, &before("x")), "");
    assert_eq!(failures(&home).len(), 1, "{:?}", failures(&home));
    assert_eq!(home.approve_with(&["second"]).0, Some(0));
    assert_eq!(answer_text(&home, &before("x")), "guarded");
}

#[test]
fn two_entries_with_different_interpreters_have_a_process_each() {
    let home = Home::with_daemon("running");
    let code = "
import os
def register(ctx):
    ctx.register_hook('pre_llm_call', lambda **k: os.environ.get('WHICH', 'plain') + ' ' + str(os.getpid()))
";
    let folder = path_text(&plugin(&home, "asked", code));
    let wrapper = home.script("py", "#!/bin/sh\nexec python3 \"$@\"\n");
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - {{ name: plain, python: {folder} }}\n    - {{ name: own, python: {folder}, interpreter: {wrapper} }}\n"
    ));
    assert_eq!(home.approve_with(&["plain"]).0, Some(0));
    let _daemon = home.serve();
    let ask = || answer_text(&home, &call("pre_llm_call", &json!({})));
    let first = ask();
    assert!(first.starts_with("plain ") && !first.contains('\n'), "{first}");
    assert_eq!(ask(), first, "the other entry is not approved, and the process stays the same");
    home.approve();
    assert_eq!(ask().lines().filter(|line| line.starts_with("plain ")).count(), 2, "{}", ask());
}

#[test]
fn the_plugins_of_a_removed_project_are_stopped() {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: {}");
    let code = "
import os
def register(ctx):
    ctx.register_hook('pre_llm_call', lambda **k: str(os.getpid()))
";
    let folder = plugin(&home, "warm", code);
    let project = home.work().join("project");
    let hooks = format!("hooks:\n  '*':\n    - {{ name: warm, python: {} }}\n", path_text(&folder));
    write(&project.join(".hookbus"), "hookbus.yaml", &hooks);
    let run = |arguments: &[&str], stdin: &str| {
        let mut command = home.command(arguments);
        command.current_dir(&project);
        feed(command, stdin.as_bytes())
    };
    approve_in(&home, &project);
    let _daemon = home.serve();
    let answer = run(&["hook", "hermes"], &call("pre_llm_call", &json!({})).to_string()).stdout;
    let answer: Value = serde_json::from_str(&answer).expect("an answer");
    let process = answer["context"].as_str().expect("its process").to_owned();
    assert!(is_alive(&process));
    fs::remove_dir_all(&project).expect("a project");
    wait_until("it is gone", || !is_alive(&process));
}

#[test]
fn an_event_does_not_wait_for_a_busy_plugin_that_does_not_listen_to_it() {
    let home = Home::with_daemon("running");
    let code = format!(
        "{WAIT}
def register(ctx):
    ctx.register_hook('pre_llm_call', lambda **k: wait({:?}))
",
        path_text(&home.work())
    );
    let folder = plugin(&home, "slow", &code);
    home.write_hooks(&format!(
        "hooks: {{ '*': [{{ name: slow, python: {}, on_failure: block }}] }}",
        path_text(&folder)
    ));
    let _daemon = home.serve();
    answer_within(&home, "1", &call("pre_llm_call", &json!({"user_message": "x"})));
    wait_until("it is busy", || home.work().join("seen").exists());
    // The plugin is still busy, and does not listen to this event.
    assert_eq!(answer_within(&home, "20", &before("ls")), Value::Null);
    assert_eq!(home.decisions().len(), 1, "only for the first event");
    assert!(!home.work().join("go").exists());
    write(&home.work(), "go", "");
}

#[test]
fn lines_that_plugins_print_have_a_time_and_a_name() {
    let home = Home::with_daemon("running");
    let code = "import sys
def after(**k):
    print('one\\ntwo', end='')
    print()
    raise ValueError('three')
def register(ctx):
    ctx.register_hook('post_tool_call', after)
";
    let folder = plugin(&home, "chatty", code);
    home.write_hooks(&format!("hooks: {{ '*': [{{ python: {} }}] }}", path_text(&folder)));
    let _daemon = home.serve();
    home.answer("hermes", &tool("post_tool_call", "terminal", &json!({}), &json!({})));
    let log = || fs::read_to_string(home.path().join("plugins.log")).unwrap_or_default();
    wait_until("it raised", || log().contains("ValueError: three"));
    for line in log().lines() {
        let time = line.split_once(" chatty: ").map(|(time, _)| time.len());
        assert_eq!(time, Some("2026-11-16 15:00:00".len()), "{line}");
    }
    assert!(log().contains(" chatty: one\n") && log().contains(" chatty: two\n"), "{}", log());
}

#[test]
fn a_restarted_plugin_may_listen_to_other_events() {
    let home = Home::with_daemon("running");
    let code = "import os
def die(**k):
    os._exit(1)
def register(ctx):
    if os.path.exists(os.path.join(os.path.dirname(__file__), 'rules.json')):
        ctx.register_hook('pre_tool_call', lambda **k: {'action': 'block', 'message': 'guarded'})
    else:
        ctx.register_hook('pre_llm_call', die)
";
    let folder = plugin(&home, "turns", code);
    home.write_hooks(&format!("hooks: {{ '*': [{{ python: {} }}] }}", path_text(&folder)));
    let _daemon = home.serve();
    home.answer("hermes", &call("pre_llm_call", &json!({"user_message": "x"})));
    write(&folder, "rules.json", "{}");
    wait_until("it listens to tool calls", || answer_text(&home, &before("x")) == "guarded");
}
