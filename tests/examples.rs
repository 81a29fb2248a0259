//! The kinds of examples in Hermes' documentation, written anew (`examples/`) and run under the bus: plugins, gateway
//! hooks and shell scripts.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use hookbus_tests::home::{Daemon, Home, feed, path_text, wait_until};
use serde_json::{Value, json};

/// One example in a home with a daemon.
struct Example {
    home: Home,
    env: Vec<(String, String)>,
    _daemon: Daemon,
}

impl Example {
    fn new(path: &str) -> Self {
        Self::with_hooks(&format!(
            "hooks: {{ '*': [{{ python: {} }}] }}",
            path_text(&examples(path))
        ))
    }

    fn with_hooks(yaml: &str) -> Self {
        let home = Home::with_daemon("running");
        home.write_hooks(yaml);
        let daemon = home.serve();
        let env = vec![("EXAMPLE_OUT".to_owned(), path_text(&home.work()))];
        Self { home, env, _daemon: daemon }
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The answer to an event over the bridge.
    fn answer(&self, payload: &Value) -> Value {
        let mut command = self.home.command(["hook", "hermes", "--wire", "bridge"]);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let output = feed(command, payload.to_string().as_bytes());
        assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
        serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
    }

    /// Waits until the example has written this to a file.
    fn wait_for_text(&self, file: &str, text: &str) {
        let path = self.home.work().join(file);
        wait_until(&format!("{file} contains `{text}`"), || {
            fs::read_to_string(&path).is_ok_and(|content| content.contains(text))
        });
    }
}

fn examples(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(path)
}

fn event(name: &str, extra: &Value) -> Value {
    json!({"hook_event_name": name, "tool_name": null, "tool_input": null, "session_id": "s1", "cwd": "/", "extra": extra})
}

fn tool(name: &str, tool: &str, input: &Value, extra: &Value) -> Value {
    json!({"hook_event_name": name, "tool_name": tool, "tool_input": input, "session_id": "s1", "cwd": "/", "extra": extra})
}

fn message(text: &str, user: &str, chat_type: &str) -> Value {
    let source =
        json!({"platform": "chat", "chat_id": "c1", "chat_type": chat_type, "user_id": user});
    event("pre_gateway_dispatch", &json!({"event": {"text": text, "source": source}}))
}

/// An HTTP server that keeps the requests it gets.
struct Service {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut first, mut length) = (String::new(), 0);
                reader.read_line(&mut first).expect("a request");
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("a header");
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                let body = serde_json::from_slice(&body).expect("JSON");
                sink.lock().expect("no thread panics with the lock").push((path, body));
                let answer = r#"{"found": ["they like tea"]}"#;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    answer.len()
                );
                reader.get_mut().write_all((head + answer).as_bytes()).expect("a connection");
            }
        });
        Self { address, requests }
    }

    fn wait_for_request(&self, path: &str, body: &Value) {
        let wanted = (path.to_owned(), body.clone());
        wait_until(&format!("{path} gets {body}"), || {
            self.requests.lock().expect("no thread panics with the lock").contains(&wanted)
        });
    }
}

#[test]
fn audit_log() {
    let example = Example::new("plugins/audit-log");
    assert_eq!(
        example.answer(&tool("pre_tool_call", "terminal", &json!({"command": "ls"}), &json!({}))),
        Value::Null
    );
    example.wait_for_text("audit.log", "s1 terminal {\"command\": \"ls\"}");
}

#[test]
fn a_dangerous_tool_is_blocked() {
    let example = Example::new("plugins/dangerous-tools");
    let blocked = example.answer(&tool("pre_tool_call", "computer_use", &json!({}), &json!({})));
    assert_eq!(blocked, json!({"action": "block", "message": "computer_use is switched off here"}));
    assert_eq!(
        example.answer(&tool("pre_tool_call", "read_file", &json!({}), &json!({}))),
        Value::Null
    );
}

#[test]
fn metrics() {
    let example = Example::new("plugins/metrics");
    for result in ["{}", "{\"error\": \"no\"}"] {
        example.answer(&tool("post_tool_call", "terminal", &json!({}), &json!({"result": result})));
    }
    example
        .wait_for_text("metrics.json", r#"{"failed": {"terminal": 1}, "used": {"terminal": 2}}"#);
}

#[test]
fn memory_recall_and_sync() {
    let service = Service::start();
    let example = Example::new("plugins/memory-recall").env("EXAMPLE_URL", &service.address);
    let turn =
        event("pre_llm_call", &json!({"user_message": "tea or coffee?", "is_first_turn": true}));
    assert_eq!(example.answer(&turn), json!({"context": "Remembered:\n- they like tea"}));
    service.wait_for_request("/recall", &json!({"session": "s1", "question": "tea or coffee?"}));
    let gone = Example::new("plugins/memory-recall").env("EXAMPLE_URL", "http://127.0.0.1:9");
    assert_eq!(gone.answer(&turn), Value::Null, "a service that does not answer is no failure");
    let example = Example::new("plugins/memory-sync").env("EXAMPLE_URL", &service.address);
    example.answer(&event(
        "post_llm_call",
        &json!({"user_message": "hi", "assistant_response": "hello"}),
    ));
    service
        .wait_for_request("/store", &json!({"session": "s1", "user": "hi", "assistant": "hello"}));
}

#[test]
fn guardrail_context() {
    let example = Example::new("plugins/guardrail");
    let answer = example.answer(&event("pre_llm_call", &json!({"user_message": "x"})));
    assert_eq!(answer, json!({"context": "House rule: ask before anything is deleted."}));
}

#[test]
fn redaction_and_spongebob_and_find_summary() {
    let redact = Example::new("plugins/redact");
    let result = |text: &str| {
        tool("transform_tool_result", "read_file", &json!({}), &json!({"result": text}))
    };
    assert_eq!(redact.answer(&result("key sk-abcdef123456.")), json!("key [key removed]."));
    assert_eq!(redact.answer(&result("nothing")), Value::Null);
    let answer = event("transform_llm_output", &json!({"response_text": "Hello!"}));
    assert_eq!(Example::new("plugins/spongebob").answer(&answer), Value::Null);
    let voice = Example::new("plugins/spongebob").env("SPONGEBOB_MODE", "on");
    assert_eq!(voice.answer(&answer), json!("Hello! Tartar sauce!"));
    let output = "/some/file\n".repeat(500);
    let listing = |command: &str| {
        event(
            "transform_terminal_output",
            &json!({"command": command, "output": output, "returncode": 0}),
        )
    };
    let find = Example::new("plugins/find-summary");
    let short = find.answer(&listing("find / -type f"));
    assert!(
        short.as_str().is_some_and(|text| text.ends_with("(500 paths, 10 shown, exit code 0)")),
        "{short}"
    );
    assert_eq!(find.answer(&listing("ls -R /")), Value::Null);
}

#[test]
fn gateway_examples() {
    let service = Service::start();
    let alert = Example::new("hooks/long-task-alert").env("EXAMPLE_URL", &service.address);
    for iteration in [9, 10, 11] {
        alert.answer(&event(
            "agent:step",
            &json!({"iteration": iteration, "tool_names": ["terminal", "patch"]}),
        ));
    }
    service.wait_for_request("/alert", &json!({"text": "10 steps; last: terminal, patch"}));
    let logger = Example::new("hooks/command-logger");
    let context = json!({"command": "model", "args": "fast", "user_id": "u1", "platform": "chat"});
    assert_eq!(logger.answer(&event("command:model", &context)), Value::Null);
    logger.wait_for_text("commands.log", "model fast by u1 on chat");
    let webhook = Example::new("hooks/session-webhook").env("EXAMPLE_URL", &service.address);
    webhook.answer(&event("session:start", &json!({"platform": "chat"})));
    service.wait_for_request(
        "/session",
        &json!({"platform": "chat", "session_id": "s1", "event": "session:start"}),
    );
}

#[test]
fn messages_are_buffered_until_the_agent_is_mentioned() {
    let example = Example::new("plugins/ambient-buffer");
    let kept = json!({"action": "skip", "reason": "kept for later"});
    assert_eq!(example.answer(&message("it rains", "u1", "group")), kept);
    assert_eq!(example.answer(&message("and pours", "u2", "group")), kept);
    let whole = json!({"action": "rewrite", "text": "it rains\nand pours\n@agent will it stop?"});
    assert_eq!(example.answer(&message("@agent will it stop?", "u1", "group")), whole);
}

#[test]
fn messages_of_strangers_are_dropped() {
    let example = Example::new("plugins/quiet-door").env("KNOWN_USERS", "ann,bob");
    assert_eq!(
        example.answer(&message("hi", "eve", "dm")),
        json!({"action": "skip", "reason": "a stranger"})
    );
    assert_eq!(example.answer(&message("hi", "ann", "dm")), Value::Null);
    assert_eq!(example.answer(&message("hi", "eve", "group")), Value::Null);
}

#[test]
fn logs_of_sub_agents_answers_sessions_and_tool_calls() {
    let example = Example::new("plugins/orchestration-log");
    example.answer(&event(
        "subagent_stop",
        &json!({"child_role": "reader", "child_status": "completed", "duration_ms": 42}),
    ));
    example.wait_for_text("orchestration.log", "s1: reader completed after 42 ms");
    let example = Example::new("plugins/response-length");
    example.answer(&event("post_llm_call", &json!({"assistant_response": "hello", "model": "m"})));
    example.wait_for_text("lengths.log", "s1 m 5");
    let example = Example::new("plugins/session-cache");
    example.answer(&event("on_session_start", &json!({"model": "m", "platform": "cli"})));
    example.answer(&tool("post_tool_call", "terminal", &json!({}), &json!({"result": "{}"})));
    example.answer(&event("on_session_end", &json!({"completed": true, "interrupted": false})));
    example.wait_for_text("sessions.log", "s1 on m: done, 1 calls, timed");
    let example = Example::new("plugins/calculator");
    example.answer(&tool(
        "post_tool_call",
        "terminal",
        &json!({}),
        &json!({"result": "{}", "task_id": "t"}),
    ));
    example
        .wait_for_text("calculator.log", "1 calls, terminal last; two and two is {\"result\": 4}");
}

#[test]
fn approval_requests_are_announced_and_logged() {
    let example = Example::new("plugins/approvals");
    let notifier = example.home.script(
        "notify",
        &format!("#!/bin/sh\necho \"$1\" > {}/notified\n", path_text(&example.home.work())),
    );
    let example = example.env("EXAMPLE_NOTIFIER", &notifier);
    let request = json!({"command": "rm -rf build", "description": "deletes a tree", "session_key": "k", "surface": "cli"});
    example.answer(&event("pre_approval_request", &request));
    example.wait_for_text("notified", "deletes a tree: rm -rf build");
    example.answer(&event(
        "post_approval_response",
        &json!({"command": "rm -rf build", "choice": "deny", "session_key": "k"}),
    ));
    example.wait_for_text("approvals.log", "deny: rm -rf build");
}

#[test]
fn shell_examples() {
    let script = |name: &str| path_text(&examples(&format!("scripts/{name}")));
    let example = Example::with_hooks(&format!(
        "hooks:\n  pre_tool_call: [{{ matcher: terminal, command: {} }}]\n  post_tool_call: [{{ matcher: 'write_file|patch', command: {} }}]\n  pre_llm_call: [{{ command: {} }}]\n",
        script("no-rm-rf.sh"),
        script("auto-format.py"),
        script("git-status.sh")
    ));
    let call =
        |command: &str| tool("pre_tool_call", "terminal", &json!({"command": command}), &json!({}));
    assert_eq!(
        example.answer(&call("rm -rf /")),
        json!({"action": "block", "message": "whole trees are deleted by people"})
    );
    assert_eq!(example.answer(&call("ls")), Value::Null);

    let file = example.home.work().join("made.py");
    fs::write(&file, "x = 1   \n\n\n").expect("a file");
    example.answer(&tool(
        "post_tool_call",
        "write_file",
        &json!({"path": path_text(&file)}),
        &json!({"result": "{}"}),
    ));
    assert_eq!(
        fs::read_to_string(&file).expect("a file"),
        "x = 1\n",
        "it is formatted before the agent continues"
    );

    let git = Command::new("git").args(["init", "-q"]).current_dir(example.home.work()).status();
    assert!(git.expect("git runs").success());
    assert_eq!(
        example.answer(&event("pre_llm_call", &json!({"user_message": "x"}))),
        json!({"context": "uncommitted: ?? made.py;"})
    );
}
