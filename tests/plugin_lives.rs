//! What becomes of a plugin that is slow, hangs or is not wanted any more: who pays for it, and who is told.

use hookbus_tests::home::{Home, feed, shown};
use hookbus_tests::plugins::{call, plugin, tool};
use serde_json::{Value, json};

fn hooks(home: &Home, folder: &std::path::Path, more: &str) {
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  '*':\n    - python: {}\n{more}",
        shown(folder)
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

const SLOW: &str = "
import time
time.sleep(3)
count = 0
def before(args, **kwargs):
    global count
    count += 1
    if args['command'] == 'slow':
        time.sleep(3)
    return {'action': 'block', 'message': 'no %d' % count}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
";

#[test]
fn who_cannot_wait_costs_nobody_else_the_plugin() {
    let home = Home::with_daemon("running");
    hooks(&home, &plugin(&home, "slow", SLOW), "");
    let _daemon = home.serve();
    // It is still loading when the first one has to leave.
    let dispatch = call("pre_gateway_dispatch", &json!({"event": {"text": "hi"}}));
    assert_eq!(bridged(&home, &dispatch, "2"), Value::Null);
    assert_eq!(bridged(&home, &before("x"), "55")["message"], "no 1");
    // Warm, it keeps what it knows, and an answer that comes too late is nobody's.
    assert_eq!(bridged(&home, &before("slow"), "1.5"), Value::Null);
    assert_eq!(bridged(&home, &before("x"), "55")["message"], "no 3");
    let failures = failures(&home);
    assert!(failures.iter().all(|why| why.contains("all the time there was")), "{failures:?}");
    assert_eq!(failures.len(), 2);
}
