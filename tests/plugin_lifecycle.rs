//! What becomes of a plugin that is slow, hangs or is not wanted any more: who pays for it, and who is told.

use std::fs;
use std::process::Stdio;

use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::{call, plugin, tool};
use serde_json::{Value, json};

fn hooks(home: &Home, folder: &std::path::Path, more: &str) {
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  '*':\n    - python: {}\n{more}",
        path_text(folder)
    ));
}

/// An event over the bridge, from somebody who waits this many seconds at most.
fn bridged(home: &Home, payload: &Value, deadline: &str) -> Value {
    let command = home.command(["hook", "hermes", "--wire", "bridge", "--deadline", deadline]);
    let heard = feed(command, payload.to_string().as_bytes());
    serde_json::from_str(&heard.stdout).unwrap_or(Value::Null)
}

fn before(command: &str) -> Value {
    tool("pre_tool_call", "terminal", &json!({"command": command}), &json!({}))
}

fn failures(home: &Home) -> Vec<String> {
    let failure = |row: &Value| row["verdicts"][0]["failure"].as_str().map(str::to_owned);
    home.decisions().iter().filter_map(failure).collect()
}

/// Takes its time until there is a file of this name, to load and at an event.
const SLOW: &str = "
import os, time
def until(name):
    while not os.path.exists(os.path.join(WORK, name)):
        time.sleep(0.02)
until('loaded')
count = 0
def before(args, **kwargs):
    global count
    count += 1
    if args['command'] == 'slow':
        until('done')
    return {'action': 'block', 'message': 'no %d' % count}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
";

#[test]
fn who_cannot_wait_costs_nobody_else_the_plugin() {
    let home = Home::with_daemon("running");
    let code = SLOW.replace("WORK", &format!("{:?}", path_text(&home.work())));
    hooks(&home, &plugin(&home, "slow", &code), "");
    let _daemon = home.serve();
    let go_on = |name: &str| fs::write(home.work().join(name), "").expect("a file");
    // It is still loading when the first one has to leave.
    let dispatch = call("pre_gateway_dispatch", &json!({"event": {"text": "hi"}}));
    assert_eq!(bridged(&home, &dispatch, "5"), Value::Null);
    go_on("loaded");
    assert_eq!(bridged(&home, &before("x"), "55")["message"], "no 1");
    // Warm, it keeps what it knows, and an answer that comes too late is nobody's.
    assert_eq!(bridged(&home, &before("slow"), "5"), Value::Null);
    go_on("done");
    assert_eq!(bridged(&home, &before("x"), "55")["message"], "no 3");
    let failures = failures(&home);
    assert!(failures.iter().all(|why| why.contains("all the time there was")), "{failures:?}");
    assert_eq!(failures.len(), 2);
}

#[test]
fn one_that_hangs_costs_a_deadline_once_however_short_it_is() {
    let home = Home::with_daemon("running");
    let code = "import threading\ndef before(**kwargs):\n    threading.Event().wait(3600)\n\
                def register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n";
    hooks(&home, &plugin(&home, "stuck", code), "");
    let _daemon = home.serve();
    for _ in 0..3 {
        assert_eq!(bridged(&home, &before("x"), "5"), Value::Null);
    }
    let failures = failures(&home);
    assert!(failures[0].contains("all the time there was"), "{failures:?}");
    assert!(failures[1..].iter().all(|why| why.contains("somebody gave up on")), "{failures:?}");
}

const HANGS: &str = "
import os, threading
def after(tool_name, **kwargs):
    if tool_name == 'hang':
        threading.Event().wait(3600)
def register(ctx):
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_llm_call', lambda **k: str(os.getpid()))
";

#[test]
fn an_onlooker_that_hangs_is_ended_and_that_is_said() {
    let home = Home::with_daemon("auto");
    // Long enough for a decision to come in between, on any machine.
    hooks(&home, &plugin(&home, "hangs", HANGS), "      timeout: 20\n");
    let process = || {
        let said = home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
        said.as_str().unwrap_or_default().to_owned()
    };
    let first = process();
    home.answer("hermes", &tool("post_tool_call", "hang", &json!({}), &json!({})));
    assert_eq!(process(), first, "a decision overtakes it");
    wait_until("it is gone", || !is_alive(&first));
    for log in ["plugins.log", "hookbus.log"] {
        let said = || fs::read_to_string(home.path().join(log)).unwrap_or_default();
        wait_until(log, || said().contains("post_tool_call took longer"));
    }
    let second = process();
    assert!(is_alive(&second) && second != first, "{second}");
    assert_eq!(failures(&home), [""; 0]);
}

fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
}

/// Lets no other thread run, for longer than anybody lives.
const HOLDS_ALL: &str = "
import os, re, subprocess
def after(tool_name, **kwargs):
    re.match(r'(a+)+$', 'a' * 60 + 'b')
def register(ctx):
    child = subprocess.Popen(['sleep', '600'])
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_llm_call', lambda **k: '%d %d' % (os.getpid(), child.pid))
";

#[test]
fn a_plugin_that_lets_no_other_thread_run_ends_all_the_same() {
    for kept_by_the_daemon in [true, false] {
        let home = Home::with_daemon("running");
        let timeout = if kept_by_the_daemon { "      timeout: 10\n" } else { "" };
        hooks(&home, &plugin(&home, "holds", HOLDS_ALL), timeout);
        let mut daemon = home.serve();
        let said = home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
        let processes = said.as_str().expect("its processes").split(' ');
        let processes: Vec<String> = processes.map(str::to_owned).collect();
        home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!({})));
        if !kept_by_the_daemon {
            daemon.kill();
        }
        wait_until("it is gone", || !processes.iter().any(|pid| is_alive(pid)));
    }
}

#[test]
fn what_a_plugin_started_goes_with_it_however_it_ends() {
    let home = Home::with_daemon("running");
    let code = "
import os, subprocess
def step(user_message, **kwargs):
    if user_message == 'die':
        os._exit(3)
    return str(child.pid)
def register(ctx):
    global child
    child = subprocess.Popen(['sleep', '600'])
    ctx.register_hook('pre_llm_call', step)
";
    hooks(&home, &plugin(&home, "starts", code), "");
    let _daemon = home.serve();
    let ask = |message: &str| {
        let payload = call("pre_llm_call", &json!({"user_message": message}));
        home.answer("hermes", &payload)["context"].as_str().unwrap_or_default().to_owned()
    };
    let child = ask("x");
    assert!(is_alive(&child), "{child}");
    assert_eq!(ask("die"), "");
    wait_until("its child is gone", || !is_alive(&child));
}

#[test]
fn an_event_that_is_not_as_it_should_be_costs_itself_and_not_what_the_plugin_knows() {
    let home = Home::with_daemon("running");
    let code = "
seen = []
def register(ctx):
    ctx.register_hook('pre_llm_call', lambda **k: seen.append('asked') or ' '.join(seen))
    ctx.register_hook('post_tool_call', lambda **k: seen.append('tool'))
    ctx.register_hook('post_api_request', lambda assistant_message, **k: seen.append(repr(assistant_message)))
";
    hooks(&home, &plugin(&home, "knows", code), "");
    let _daemon = home.serve();
    let ask =
        |extra: &Value| home.answer("hermes", &call("pre_llm_call", extra))["context"].clone();
    assert_eq!(ask(&json!({})), "asked");
    assert_eq!(ask(&json!(["x"])), Value::Null);
    let why = failures(&home);
    assert!(why.len() == 1 && why[0].contains("it could not be asked: "), "{why:?}");
    home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!(["x"])));
    for printed in ["{[]: 1}", "a b"] {
        let response = json!({"assistant_message": {"tool_calls": [{"function": "none"}]}});
        let extra = json!({"assistant_message": printed, "response": response});
        home.answer("hermes", &call("post_api_request", &extra));
    }
    assert_eq!(ask(&json!({})), "asked '{[]: 1}' 'a b' asked");
}

#[test]
fn what_onlookers_are_due_they_hear_before_the_daemon_leaves() {
    let home = Home::with_daemon("running");
    let heard = home.work().join("heard");
    let code = format!(
        "{}def after(tool_name, **kwargs):\n    open({:?}, 'a').write(tool_name + '\\n')\n\
         def register(ctx):\n    ctx.register_hook('post_tool_call', after)\n",
        SLOW.split("count = 0").next().unwrap_or_default(),
        path_text(&heard)
    );
    let code = code.replace("WORK", &format!("{:?}", path_text(&home.work())));
    hooks(&home, &plugin(&home, "late", &code), "");
    let mut daemon = home.serve();
    for name in ["a", "b", "c"] {
        home.answer("hermes", &tool("post_tool_call", name, &json!({}), &json!({})));
    }
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 3, "it has all three");
    let mut stop = home.command(["stop"]).stdout(Stdio::null()).spawn().expect("hookbus starts");
    // It takes no more calls, and has not left: the plugin is still loading.
    wait_until("it is leaving", || !home.path().join("bus.sock").exists());
    assert!(!daemon.has_exited() && !heard.exists());
    fs::write(home.work().join("loaded"), "").expect("a file");
    assert!(stop.wait().expect("hookbus ends").success());
    let said = || fs::read_to_string(&heard).unwrap_or_default();
    wait_until("all three are heard", || said() == "a\nb\nc\n");
}

#[test]
fn a_plugin_that_is_not_agreed_to_any_more_does_not_stay() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "warm", HANGS);
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - {{ name: warm, python: {} }}\n",
        path_text(&folder)
    ));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    let _daemon = home.serve();
    let ask = || home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
    let process = ask().as_str().expect("its process").to_owned();
    assert!(is_alive(&process));
    home.text(&["hooks", "revoke", "warm"]);
    // The event that would have been its is its end, and nothing is started for it.
    assert_eq!(ask(), Value::Null);
    let refused = home.decisions().pop().expect("a decision")["verdicts"][0].clone();
    let why = refused["failure"].as_str().unwrap_or_default();
    assert!(refused["refused"] == "consent" && why.contains("nobody has agreed"), "{refused}");
    wait_until("it is gone", || !is_alive(&process));
    home.text(&["hooks", "approve", "--accept-hooks"]);
    let another = ask().as_str().expect("its process").to_owned();
    assert!(is_alive(&another) && another != process);
}

#[test]
fn what_plugins_print_does_not_grow_without_end() {
    let home = Home::with_daemon("running");
    let code = "
import sys
def step(**kwargs):
    print('x' * (3 << 20))
    return 'printed'
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";
    hooks(&home, &plugin(&home, "prints", code), "");
    let _daemon = home.serve();
    let size = |name: &str| fs::metadata(home.path().join(name)).map_or(0, |file| file.len());
    // One process prints all of it: room is made while it runs.
    wait_until("it is put aside", || {
        assert_eq!(home.answer("hermes", &call("pre_llm_call", &json!({})))["context"], "printed");
        size("plugins.log.old") > 8 << 20
    });
    let mode = fs::metadata(home.path().join("plugins.log.old")).expect("a file").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    assert!(size("plugins.log") < size("plugins.log.old"));
}

#[test]
fn a_plugin_that_is_left_alone_is_complained_about_once() {
    let home = Home::with_daemon("auto");
    hooks(&home, &plugin(&home, "broken", "raise RuntimeError('not today')\n"), "");
    let after = tool("post_tool_call", "terminal", &json!({}), &json!({}));
    bridged(&home, &after, "55");
    wait_until("a daemon answers", || home.has_daemon());
    for _ in 0..20 {
        bridged(&home, &after, "55");
    }
    home.text(&["stop"]);
    let log = fs::read_to_string(home.path().join("hookbus.log")).expect("a log");
    assert_eq!(log.matches("not today").count(), 1, "{log}");
}
