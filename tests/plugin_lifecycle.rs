//! The life of a plugin's process: slow and hanging plugins, their timeouts, their child processes, their log,
//! and when the process is ended.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use hookbus_tests::consent::NOT_APPROVED;
use hookbus_tests::home::{Home, feed, is_alive, path_text, wait_until};
use hookbus_tests::plugins::{call, plugin, tool};
use serde_json::{Value, json};

/// Writes a hooks file with one plugin and this setting.
fn write_plugin_entry(home: &Home, folder: &Path, setting: &str) {
    home.write_hooks(&format!("hooks:\n  '*':\n    - python: {}\n{setting}", path_text(folder)));
}

/// The answer to an event over the bridge, of a client with this deadline in seconds.
fn answer_within(home: &Home, payload: &Value, deadline: &str) -> Value {
    let command = home.command(["hook", "hermes", "--wire", "bridge", "--deadline", deadline]);
    let output = feed(command, payload.to_string().as_bytes());
    serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
}

fn before(command: &str) -> Value {
    tool("pre_tool_call", "terminal", &json!({"command": command}), &json!({}))
}

fn failures(home: &Home) -> Vec<String> {
    let failure = |row: &Value| row["verdicts"][0]["failure"].as_str().map(str::to_owned);
    home.decisions().iter().filter_map(failure).collect()
}

/// Waits for the file `loaded` when it is loaded, and for the file `done` at the command `slow`.
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
fn a_client_that_gives_up_does_not_end_the_plugin() {
    let home = Home::with_daemon("running");
    let code = SLOW.replace("WORK", &format!("{:?}", path_text(&home.work())));
    write_plugin_entry(&home, &plugin(&home, "slow", &code), "");
    let _daemon = home.serve();
    let create = |name: &str| fs::write(home.work().join(name), "").expect("a file");
    // The plugin is still loading when the first client gives up.
    let dispatch = call("pre_gateway_dispatch", &json!({"event": {"text": "hi"}}));
    assert_eq!(answer_within(&home, &dispatch, "5"), Value::Null);
    create("loaded");
    assert_eq!(answer_within(&home, &before("x"), "55")["message"], "no 1");
    // The process stays, and its late answer is discarded.
    assert_eq!(answer_within(&home, &before("slow"), "5"), Value::Null);
    create("done");
    assert_eq!(answer_within(&home, &before("x"), "55")["message"], "no 3");
    let failures = failures(&home);
    assert!(failures.iter().all(|why| why.contains("all the time there was")), "{failures:?}");
    assert_eq!(failures.len(), 2);
}

#[test]
fn a_hanging_plugin_delays_only_the_first_client() {
    let home = Home::with_daemon("running");
    let code = "import threading\ndef before(**kwargs):\n    threading.Event().wait(3600)\n\
                def register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n";
    write_plugin_entry(&home, &plugin(&home, "stuck", code), "");
    let _daemon = home.serve();
    for _ in 0..3 {
        assert_eq!(answer_within(&home, &before("x"), "5"), Value::Null);
    }
    let failures = failures(&home);
    assert!(failures[0].contains("all the time there was"), "{failures:?}");
    assert!(
        failures[1..]
            .iter()
            .all(|why| why.contains("it is still busy with an event whose caller has given up")),
        "{failures:?}"
    );
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
fn a_plugin_that_hangs_at_a_notification_is_ended_and_this_is_logged() {
    let home = Home::with_daemon("auto");
    // Long enough for a decision in between, also on a slow machine.
    write_plugin_entry(&home, &plugin(&home, "hangs", HANGS), "      timeout: 20\n");
    let process = || {
        let answer = home.answer("hermes", &call("pre_llm_call", &json!({})));
        answer["context"].as_str().unwrap_or_default().to_owned()
    };
    let first = process();
    home.answer("hermes", &tool("post_tool_call", "hang", &json!({}), &json!({})));
    assert_eq!(process(), first, "a decision does not wait for it");
    wait_until("it is gone", || !is_alive(&first));
    for log in ["plugins.log", "hookbus.log"] {
        let text = || fs::read_to_string(home.path().join(log)).unwrap_or_default();
        wait_until(log, || text().contains("post_tool_call took longer"));
    }
    let second = process();
    assert!(is_alive(&second) && second != first, "{second}");
    assert_eq!(failures(&home), [""; 0]);
}

/// A regular expression that never ends and does not release Python's lock.
const HOLDS_THE_LOCK: &str = "
import os, re, subprocess
def after(tool_name, **kwargs):
    re.match(r'(a+)+$', 'a' * 60 + 'b')
def register(ctx):
    child = subprocess.Popen(['sleep', '600'])
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_llm_call', lambda **k: '%d %d' % (os.getpid(), child.pid))
";

#[test]
fn a_plugin_that_holds_pythons_lock_is_ended_with_its_children() {
    for daemon_lives in [true, false] {
        let home = Home::with_daemon("running");
        let timeout = if daemon_lives { "      timeout: 10\n" } else { "" };
        write_plugin_entry(&home, &plugin(&home, "holds", HOLDS_THE_LOCK), timeout);
        let mut daemon = home.serve();
        let answer = home.answer("hermes", &call("pre_llm_call", &json!({})));
        let processes = answer["context"].as_str().expect("its processes").split(' ');
        let processes: Vec<String> = processes.map(str::to_owned).collect();
        home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!({})));
        if !daemon_lives {
            daemon.kill();
        }
        wait_until("it is gone", || !processes.iter().any(|pid| is_alive(pid)));
    }
}

#[test]
fn the_child_processes_of_a_plugin_are_ended_with_it() {
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
    write_plugin_entry(&home, &plugin(&home, "starts", code), "");
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
fn a_malformed_event_fails_and_the_plugin_keeps_its_state() {
    let home = Home::with_daemon("running");
    let code = "
seen = []
def register(ctx):
    ctx.register_hook('pre_llm_call', lambda **k: seen.append('asked') or ' '.join(seen))
    ctx.register_hook('post_tool_call', lambda **k: seen.append('tool'))
    ctx.register_hook('post_api_request', lambda assistant_message, **k: seen.append(repr(assistant_message)))
";
    write_plugin_entry(&home, &plugin(&home, "knows", code), "");
    let _daemon = home.serve();
    let ask =
        |extra: &Value| home.answer("hermes", &call("pre_llm_call", extra))["context"].clone();
    assert_eq!(ask(&json!({})), "asked");
    assert_eq!(ask(&json!(["x"])), Value::Null);
    let why = failures(&home);
    assert!(why.len() == 1 && why[0].contains("it could not be called: "), "{why:?}");
    home.answer("hermes", &tool("post_tool_call", "x", &json!({}), &json!(["x"])));
    for printed in ["{[]: 1}", "a b"] {
        let response = json!({"assistant_message": {"tool_calls": [{"function": "none"}]}});
        let extra = json!({"assistant_message": printed, "response": response});
        home.answer("hermes", &call("post_api_request", &extra));
    }
    assert_eq!(ask(&json!({})), "asked '{[]: 1}' 'a b' asked");
}

#[test]
fn pending_notifications_are_delivered_before_the_daemon_exits() {
    let home = Home::with_daemon("running");
    let received = home.work().join("received");
    let code = format!(
        "{}def after(tool_name, **kwargs):\n    open({:?}, 'a').write(tool_name + '\\n')\n\
         def register(ctx):\n    ctx.register_hook('post_tool_call', after)\n",
        SLOW.split("count = 0").next().unwrap_or_default(),
        path_text(&received)
    );
    let code = code.replace("WORK", &format!("{:?}", path_text(&home.work())));
    write_plugin_entry(&home, &plugin(&home, "late", &code), "");
    let mut daemon = home.serve();
    for name in ["a", "b", "c"] {
        home.answer("hermes", &tool("post_tool_call", name, &json!({}), &json!({})));
    }
    assert_eq!(home.json(&["status", "--json"])["daemon"]["calls"], 3, "it has accepted all three");
    let mut stop = home.command(["stop"]).stdout(Stdio::null()).spawn().expect("hookbus starts");
    // The daemon accepts no more calls, and has not exited: the plugin is still loading.
    wait_until("it is stopping", || !home.path().join("bus.sock").exists());
    assert!(!daemon.has_exited() && !received.exists());
    fs::write(home.work().join("loaded"), "").expect("a file");
    assert!(stop.wait().expect("hookbus ends").success());
    let text = || fs::read_to_string(&received).unwrap_or_default();
    wait_until("all three are delivered", || text() == "a\nb\nc\n");
}

#[test]
fn a_plugin_whose_approval_is_revoked_is_ended_at_the_next_event() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "warm", HANGS);
    home.write_hooks_file(&format!(
        "hooks:\n  '*':\n    - {{ name: warm, python: {} }}\n",
        path_text(&folder)
    ));
    home.approve();
    let _daemon = home.serve();
    let ask = || home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
    let process = ask().as_str().expect("its process").to_owned();
    assert!(is_alive(&process));
    home.text(&["hooks", "revoke", "warm"]);
    assert_eq!(ask(), Value::Null);
    let verdict = home.last_decision()["verdicts"][0].clone();
    assert_eq!(
        (&verdict["refused"], &verdict["failure"]),
        (&json!("consent"), &json!(NOT_APPROVED))
    );
    wait_until("it is gone", || !is_alive(&process));
    home.approve();
    let another = ask().as_str().expect("its process").to_owned();
    assert!(is_alive(&another) && another != process);
}

#[test]
fn the_log_of_plugins_is_rotated() {
    let home = Home::with_daemon("running");
    let code = "
import sys
def step(**kwargs):
    print('x' * (3 << 20))
    return 'printed'
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";
    write_plugin_entry(&home, &plugin(&home, "prints", code), "");
    let _daemon = home.serve();
    let size = |name: &str| fs::metadata(home.path().join(name)).map_or(0, |file| file.len());
    // One process prints all of it: the file is rotated while the process has it open.
    wait_until("it is rotated", || {
        assert_eq!(home.answer("hermes", &call("pre_llm_call", &json!({})))["context"], "printed");
        size("plugins.log.old") > 8 << 20
    });
    let mode = fs::metadata(home.path().join("plugins.log.old")).expect("a file").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    assert!(size("plugins.log") < size("plugins.log.old"));
}

#[test]
fn a_plugin_that_cannot_be_loaded_is_logged_once() {
    let home = Home::with_daemon("auto");
    write_plugin_entry(&home, &plugin(&home, "broken", "raise RuntimeError('not today')\n"), "");
    let after = tool("post_tool_call", "terminal", &json!({}), &json!({}));
    answer_within(&home, &after, "55");
    wait_until("a daemon answers", || home.has_daemon());
    for _ in 0..20 {
        answer_within(&home, &after, "55");
    }
    home.text(&["stop"]);
    let log = fs::read_to_string(home.path().join("hookbus.log")).expect("a log");
    assert_eq!(log.matches("not today").count(), 1, "{log}");
}
