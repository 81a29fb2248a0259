//! Plugins that somebody relies on: what is asked is what was agreed to, what fails counts as failed, and nothing
//! that happens to a plugin's process opens a door or closes one for no reason.

use std::fs;
use std::path::Path;
use std::process::Command;

use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::{call, plugin, tool, write};
use serde_json::{Value, json};

fn before(command: &str) -> Value {
    tool("pre_tool_call", "terminal", &json!({"command": command}), &json!({}))
}

/// An event from somebody who waits this many seconds at most.
fn within(home: &Home, deadline: &str, payload: &Value) -> Value {
    let command = home.command(["hook", "hermes", "--deadline", deadline]);
    let heard = feed(command, payload.to_string().as_bytes());
    serde_json::from_str(&heard.stdout).unwrap_or(Value::Null)
}

fn said(home: &Home, payload: &Value) -> String {
    let answer = home.answer("hermes", payload);
    let said = answer["context"].as_str().or_else(|| answer["reason"].as_str());
    said.unwrap_or_default().to_owned()
}

fn failures(home: &Home) -> Vec<String> {
    let failure = |said: &Value| said["failure"].as_str().map(str::to_owned);
    let verdicts = |row: &Value| row["verdicts"].as_array().cloned().unwrap_or_default();
    home.decisions().iter().flat_map(verdicts).filter_map(|said| failure(&said)).collect()
}

fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
}

fn approve(home: &Home, more: &[&str]) {
    home.text(&[&["hooks", "approve", "--accept-hooks"], more].concat());
}

/// Waits until the file `go` is there where a command says so; `seen` says that it has begun to.
const WAITS: &str = "
import os, time
def wait(place):
    open(os.path.join(place, 'seen'), 'w').close()
    while not os.path.exists(os.path.join(place, 'go')):
        time.sleep(0.01)
";

#[test]
fn a_plugin_that_is_edited_while_an_event_waits_in_line_is_not_started() {
    let home = Home::with_daemon("running");
    let place = path_text(&home.work());
    let code = |word: &str| {
        format!(
            "{WAITS}
def before(args, **kwargs):
    if args['command'] == 'die':
        wait({place:?})
        os._exit(3)
    return {{'action': 'block', 'message': {word:?}}}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
"
        )
    };
    let folder = plugin(&home, "edited", &code("as agreed"));
    let arrived = home.script("arrived.sh", &format!("#!/bin/sh\ntouch {place}/arrived\n"));
    home.write_hooks_file(&format!(
        "hooks:\n  tool.before:\n    - {{ name: edited, python: {} }}\n    - command: {arrived}\n",
        path_text(&folder)
    ));
    approve(&home, &[]);
    let _daemon = home.serve();
    assert_eq!(said(&home, &before("x")), "as agreed");
    fs::remove_file(home.work().join("arrived")).expect("it was asked about");
    let heard = std::thread::scope(|scope| {
        let first = scope.spawn(|| said(&home, &before("die")));
        wait_until("the first is at it", || home.work().join("seen").exists());
        wait_until("others are asked", || home.work().join("arrived").exists());
        fs::remove_file(home.work().join("arrived")).expect("it was asked about");
        let second = scope.spawn(|| said(&home, &before("x")));
        // Asked at the same time as the plugin: so the second stands in line by now.
        wait_until("the second waits", || home.work().join("arrived").exists());
        write(&folder, "__init__.py", &code("as edited"));
        write(&home.work(), "go", "");
        first.join().expect("the first");
        second.join().expect("the second")
    });
    assert!(heard.contains("it has changed since it was agreed to"), "{heard}");
    let last = home.decisions().pop().expect("a decision");
    assert_eq!(last["verdicts"][0]["refused"], "consent", "{last}");
}

#[test]
fn what_somebody_gave_up_on_long_ago_is_no_reason_to_give_up_now() {
    let home = Home::with_daemon("running");
    let place = path_text(&home.work());
    let code = format!(
        "{WAITS}
if os.path.exists({place:?} + '/slow'):
    wait({place:?})
def before(args, **kwargs):
    if args['command'] == 'slow':
        wait({place:?})
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
    let process = said(&home, &before("x"));
    let given_up = std::time::Instant::now();
    assert_eq!(within(&home, "1", &before("slow")), Value::Null);
    write(&home.work(), "go", "");
    // It is done with that, and then nothing happens for longer than anybody waits.
    wait_until("it is long ago", || given_up.elapsed() > std::time::Duration::from_secs(7));
    fs::remove_file(home.work().join("go")).expect("it was there");
    fs::remove_file(home.work().join("seen")).expect("it was there");
    write(&home.work(), "slow", "");
    assert!(Command::new("kill").args(["-9", &process]).status().expect("kill").success());
    wait_until("it is gone", || !is_alive(&process));
    // Its next event is one to look on at: it is being started again when a decision comes.
    home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!({})));
    wait_until("it loads", || home.work().join("seen").exists());
    let events = || home.log(&["--name", "pre_tool_call", "--kind", "tool.before"]).len();
    let known = events();
    let heard = std::thread::scope(|scope| {
        let heard = scope.spawn(|| said(&home, &before("x")));
        wait_until("the event has come", || events() > known);
        std::thread::sleep(std::time::Duration::from_millis(300));
        write(&home.work(), "go", "");
        heard.join().expect("an answer")
    });
    let failures = failures(&home);
    assert!(heard.parse::<u32>().is_ok(), "{heard} {failures:?}");
    assert_eq!(failures.len(), 1, "{failures:?}");
}

#[test]
fn an_event_that_is_too_large_for_a_plugin_costs_itself_and_not_the_plugin() {
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
    let process = said(&home, &before("x"));
    let large = "x".repeat(60 << 20);
    assert_eq!(said(&home, &before(&large)), "");
    let failures = failures(&home);
    assert!(failures.len() == 1 && failures[0].contains("MemoryError"), "{failures:?}");
    home.answer("hermes", &tool("post_tool_call", "x", &json!({"command": large}), &json!({})));
    assert_eq!(said(&home, &before("x")), process, "it lives on");
}

#[test]
fn onlookers_that_wait_do_not_fill_a_plugins_memory() {
    let home = Home::with_daemon("running");
    let place = path_text(&home.work());
    let code = format!(
        "{WAITS}
seen = 0
def after(**kwargs):
    global seen
    wait({place:?})
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
    wait_until("some go by", || printed().contains("post_tool_call goes by unseen"));
    write(&home.work(), "go", "");
    let seen = || said(&home, &call("pre_llm_call", &json!({}))).parse::<u32>().unwrap_or(0);
    wait_until("the others are seen", || seen() > 4);
}

#[test]
fn a_plugin_whose_prints_nobody_can_keep_goes_on() {
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
    let process = said(&home, &before("x"));
    assert!(process.parse::<u32>().is_ok(), "{process} {:?}", failures(&home));
    assert_eq!(said(&home, &before("raise")), "");
    assert_eq!(failures(&home), ["before raised ValueError: oh"]);
    assert_eq!(said(&home, &before("x")), process);
}

const BLOCKS: &str = "
def register(ctx):
    ctx.register_hook('pre_tool_call', lambda **k: {'action': 'block', 'message': 'guarded'})
";

fn guarded_by(home: &Home, folder: &Path, more: &str) {
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - {{ name: guard, python: {}, on_failure: block }}\n{more}",
        path_text(folder)
    ));
}

#[test]
fn a_guard_that_is_not_there_any_more_lets_nothing_pass() {
    let home = Home::new();
    let folder = plugin(&home, "guard", BLOCKS);
    guarded_by(&home, &folder, "");
    assert_eq!(said(&home, &before("x")), "guarded");
    // Switched off on purpose, it is not missed.
    guarded_by(&home, &folder, "plugins: { disabled: [guard] }\n");
    assert_eq!(said(&home, &before("x")), "");
    // One of a directory that is not enabled, or gone from it.
    let all = folder.parent().expect("a directory").to_owned();
    guarded_by(&home, &all, "plugins: { enabled: [guard] }\n");
    assert_eq!(said(&home, &before("x")), "guarded");
    let is_missed = || {
        let said = said(&home, &before("x"));
        ["nothing is loaded; name it", "put one there"].iter().any(|words| said.contains(words))
    };
    guarded_by(&home, &all, "");
    assert!(is_missed(), "{}", said(&home, &before("x")));
    guarded_by(&home, &all, "plugins: { disabled: [guard] }\n");
    assert_eq!(said(&home, &before("x")), "");
    guarded_by(&home, &folder, "");
    fs::remove_file(folder.join("plugin.yaml")).expect("a manifest");
    assert!(is_missed(), "{}", said(&home, &before("x")));
}

#[test]
fn a_guard_that_was_missed_then_is_missed_in_a_replay() {
    for policy in ["block", "allow"] {
        let home = Home::new();
        let folder = home.work().join("plugins");
        fs::create_dir_all(&folder).expect("a directory");
        home.write_hooks(&format!(
            "hooks: {{ tool.before: [{{ name: guard, python: {}, on_failure: {policy} }}] }}",
            path_text(&folder)
        ));
        assert_eq!(said(&home, &before("x")).contains("put one there"), policy == "block");
        assert_eq!(failures(&home).len(), 1);
        let replayed = home.json(&["replay", "--yes", "--json", "--all"]);
        assert_eq!(replayed["summary"]["unchanged"], 1, "{replayed}");
    }
}

#[test]
fn a_directory_of_which_nothing_is_enabled_is_no_news() {
    let home = Home::new();
    let all = plugin(&home, "guard", BLOCKS).parent().expect("a directory").to_owned();
    home.write_hooks(&format!("hooks: {{ '*': [{{ python: {} }}] }}", path_text(&all)));
    assert_eq!(said(&home, &before("x")), "");
    assert_eq!(failures(&home), [""; 0]);
    fs::remove_dir_all(all.join("guard")).expect("a plugin");
    assert_eq!(said(&home, &before("x")), "");
    assert!(failures(&home)[0].contains("put one there"), "{:?}", failures(&home));
}

#[test]
fn of_two_entries_for_one_plugin_the_stricter_policy_holds() {
    let home = Home::new();
    let folder = path_text(&plugin(&home, "broken", "import nothing_of_that_name\n"));
    for (first, second) in [("", ", on_failure: block"), (", on_failure: block", "")] {
        home.write_hooks(&format!(
            "hooks:\n  '*':\n    - {{ name: lax, python: {folder}{first} }}\n  tool.before:\n    - {{ name: strict, python: {folder}{second} }}\n"
        ));
        let heard = said(&home, &before("x"));
        assert!(heard.contains("nothing_of_that_name"), "{heard}");
    }
    let decisions = home.decisions();
    assert!(decisions.iter().all(|row| row["verdicts"].as_array().expect("some").len() == 1));
}

#[test]
fn of_two_entries_for_one_plugin_one_that_is_agreed_to_is_enough() {
    let home = Home::new();
    let folder = path_text(&plugin(&home, "guard", BLOCKS));
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - {{ name: first, python: {folder} }}\n  tool.before:\n    - {{ name: second, python: {folder} }}\n"
    ));
    assert_eq!(said(&home, &before("x")), "");
    assert_eq!(failures(&home).len(), 1, "{:?}", failures(&home));
    approve(&home, &["second"]);
    assert_eq!(said(&home, &before("x")), "guarded");
}

#[test]
fn a_plugin_with_another_interpreter_is_another_one() {
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
    approve(&home, &["plain"]);
    let _daemon = home.serve();
    let ask = || said(&home, &call("pre_llm_call", &json!({})));
    let first = ask();
    assert!(first.starts_with("plain ") && !first.contains('\n'), "{first}");
    assert_eq!(ask(), first, "nobody agreed to the other, and this one stays what it is");
    approve(&home, &[]);
    assert_eq!(ask().lines().filter(|line| line.starts_with("plain ")).count(), 2, "{}", ask());
}

#[test]
fn the_plugins_of_a_project_that_is_gone_do_not_stay() {
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
    let approved = run(&["hooks", "approve", "--accept-hooks"], "");
    assert_eq!(approved.exit, Some(0), "{approved:?}");
    let _daemon = home.serve();
    let heard = run(&["hook", "hermes"], &call("pre_llm_call", &json!({})).to_string()).stdout;
    let heard: Value = serde_json::from_str(&heard).expect("an answer");
    let process = heard["context"].as_str().expect("its process").to_owned();
    assert!(is_alive(&process));
    fs::remove_dir_all(&project).expect("a project");
    wait_until("it is gone", || !is_alive(&process));
}

#[test]
fn nobody_waits_for_a_plugin_that_has_no_ear_for_the_event() {
    let home = Home::with_daemon("running");
    let code = format!(
        "{WAITS}
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
    within(&home, "1", &call("pre_llm_call", &json!({"user_message": "x"})));
    wait_until("it is at work", || home.work().join("seen").exists());
    // It is still at it, and this is none of its business.
    assert_eq!(within(&home, "20", &before("ls")), Value::Null);
    assert_eq!(home.decisions().len(), 1, "only the first one was about it");
    assert!(!home.work().join("go").exists());
    write(&home.work(), "go", "");
}

#[test]
fn what_plugins_print_has_a_time_and_a_name() {
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
        let said = line.split_once(" chatty: ").map(|(time, said)| (time.len(), said));
        assert!(said.is_some_and(|(time, _)| time == "2026-11-16 15:00:00".len()), "{line}");
    }
    assert!(log().contains(" chatty: one\n") && log().contains(" chatty: two\n"), "{}", log());
}

#[test]
fn a_plugin_that_is_started_anew_may_listen_to_something_else() {
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
    wait_until("it listens", || said(&home, &before("x")) == "guarded");
}
