//! The examples of Hermes' documentation, in our own words (`examples/`), each run for real under the bus: plugins,
//! gateway hooks and shell scripts.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    fn of(path: &str) -> Self {
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

    /// What Hermes hears about an event, over the bridge.
    fn hears(&self, payload: &Value) -> Value {
        let mut command = self.home.command(["hook", "hermes", "--wire", "bridge"]);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let heard = feed(command, payload.to_string().as_bytes());
        assert_eq!((heard.exit, heard.stderr.as_str()), (Some(0), ""));
        serde_json::from_str(&heard.stdout).unwrap_or(Value::Null)
    }

    /// Waits until a file of the example holds this.
    fn notes(&self, file: &str, text: &str) {
        let path = self.home.work().join(file);
        wait_until(&format!("{file} holds `{text}`"), || {
            fs::read_to_string(&path).is_ok_and(|held| held.contains(text))
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

/// A service on this machine that keeps what it is told.
struct Service {
    address: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
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
                kept.lock().expect("nobody panics here").push((path, body));
                let answer = r#"{"found": ["they like tea"]}"#;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    answer.len()
                );
                reader.get_mut().write_all((head + answer).as_bytes()).expect("somebody listens");
            }
        });
        Self { address, heard }
    }

    fn hears(&self, path: &str, body: &Value) {
        let wanted = (path.to_owned(), body.clone());
        wait_until(&format!("{path} is told {body}"), || {
            self.heard.lock().expect("nobody panics here").contains(&wanted)
        });
    }
}

#[test]
fn audit_log() {
    let example = Example::of("plugins/audit-log");
    assert_eq!(
        example.hears(&tool("pre_tool_call", "terminal", &json!({"command": "ls"}), &json!({}))),
        Value::Null
    );
    example.notes("audit.log", "s1 terminal {\"command\": \"ls\"}");
}

#[test]
fn dangerous_tool_block() {
    let example = Example::of("plugins/dangerous-tools");
    let blocked = example.hears(&tool("pre_tool_call", "computer_use", &json!({}), &json!({})));
    assert_eq!(blocked, json!({"action": "block", "message": "computer_use is switched off here"}));
    assert_eq!(
        example.hears(&tool("pre_tool_call", "read_file", &json!({}), &json!({}))),
        Value::Null
    );
}

#[test]
fn metrics() {
    let example = Example::of("plugins/metrics");
    for result in ["{}", "{\"error\": \"no\"}"] {
        example.hears(&tool("post_tool_call", "terminal", &json!({}), &json!({"result": result})));
    }
    example.notes("metrics.json", r#"{"failed": {"terminal": 1}, "used": {"terminal": 2}}"#);
}

#[test]
fn memory_recall_and_sync() {
    let service = Service::start();
    let example = Example::of("plugins/memory-recall").env("EXAMPLE_URL", &service.address);
    let turn =
        event("pre_llm_call", &json!({"user_message": "tea or coffee?", "is_first_turn": true}));
    assert_eq!(example.hears(&turn), json!({"context": "Remembered:\n- they like tea"}));
    service.hears("/recall", &json!({"session": "s1", "question": "tea or coffee?"}));
    let gone = Example::of("plugins/memory-recall").env("EXAMPLE_URL", "http://127.0.0.1:9");
    assert_eq!(gone.hears(&turn), Value::Null, "a service that is away costs nothing");
    let example = Example::of("plugins/memory-sync").env("EXAMPLE_URL", &service.address);
    example.hears(&event(
        "post_llm_call",
        &json!({"user_message": "hi", "assistant_response": "hello"}),
    ));
    service.hears("/store", &json!({"session": "s1", "user": "hi", "assistant": "hello"}));
}

#[test]
fn guardrail_context() {
    let example = Example::of("plugins/guardrail");
    let answer = example.hears(&event("pre_llm_call", &json!({"user_message": "x"})));
    assert_eq!(answer, json!({"context": "House rule: ask before anything is deleted."}));
}

#[test]
fn redaction_and_spongebob_and_find_summary() {
    let redact = Example::of("plugins/redact");
    let result = |text: &str| {
        tool("transform_tool_result", "read_file", &json!({}), &json!({"result": text}))
    };
    assert_eq!(redact.hears(&result("key sk-abcdef123456.")), json!("key [key removed]."));
    assert_eq!(redact.hears(&result("nothing")), Value::Null);
    let answer = event("transform_llm_output", &json!({"response_text": "Hello!"}));
    assert_eq!(Example::of("plugins/spongebob").hears(&answer), Value::Null);
    let voice = Example::of("plugins/spongebob").env("SPONGEBOB_MODE", "on");
    assert_eq!(voice.hears(&answer), json!("Hello! Tartar sauce!"));
    let output = "/some/file\n".repeat(500);
    let listing = |command: &str| {
        event(
            "transform_terminal_output",
            &json!({"command": command, "output": output, "returncode": 0}),
        )
    };
    let find = Example::of("plugins/find-summary");
    let short = find.hears(&listing("find / -type f"));
    assert!(
        short.as_str().is_some_and(|text| text.ends_with("(500 paths, 10 shown, exit code 0)")),
        "{short}"
    );
    assert_eq!(find.hears(&listing("ls -R /")), Value::Null);
}

#[test]
fn gateway_examples() {
    let service = Service::start();
    let alert = Example::of("hooks/long-task-alert").env("EXAMPLE_URL", &service.address);
    for iteration in [9, 10, 11] {
        alert.hears(&event(
            "agent:step",
            &json!({"iteration": iteration, "tool_names": ["terminal", "patch"]}),
        ));
    }
    service.hears("/alert", &json!({"text": "10 steps; last: terminal, patch"}));
    let logger = Example::of("hooks/command-logger");
    let context = json!({"command": "model", "args": "fast", "user_id": "u1", "platform": "chat"});
    assert_eq!(logger.hears(&event("command:model", &context)), Value::Null);
    logger.notes("commands.log", "model fast by u1 on chat");
    let webhook = Example::of("hooks/session-webhook").env("EXAMPLE_URL", &service.address);
    webhook.hears(&event("session:start", &json!({"platform": "chat"})));
    service.hears(
        "/session",
        &json!({"platform": "chat", "session_id": "s1", "event": "session:start"}),
    );
}

#[test]
fn messages_are_buffered_until_the_agent_is_meant() {
    let example = Example::of("plugins/ambient-buffer");
    let kept = json!({"action": "skip", "reason": "kept for later"});
    assert_eq!(example.hears(&message("it rains", "u1", "group")), kept);
    assert_eq!(example.hears(&message("and pours", "u2", "group")), kept);
    let whole = json!({"action": "rewrite", "text": "it rains\nand pours\n@agent will it stop?"});
    assert_eq!(example.hears(&message("@agent will it stop?", "u1", "group")), whole);
}

#[test]
fn strangers_are_dropped_in_silence() {
    let example = Example::of("plugins/quiet-door").env("KNOWN_USERS", "ann,bob");
    assert_eq!(
        example.hears(&message("hi", "eve", "dm")),
        json!({"action": "skip", "reason": "a stranger"})
    );
    assert_eq!(example.hears(&message("hi", "ann", "dm")), Value::Null);
    assert_eq!(example.hears(&message("hi", "eve", "group")), Value::Null);
}

#[test]
fn logs_of_sub_agents_answers_sessions_and_sums() {
    let example = Example::of("plugins/orchestration-log");
    example.hears(&event(
        "subagent_stop",
        &json!({"child_role": "reader", "child_status": "completed", "duration_ms": 42}),
    ));
    example.notes("orchestration.log", "s1: reader completed after 42 ms");
    let example = Example::of("plugins/response-length");
    example.hears(&event("post_llm_call", &json!({"assistant_response": "hello", "model": "m"})));
    example.notes("lengths.log", "s1 m 5");
    let example = Example::of("plugins/session-cache");
    example.hears(&event("on_session_start", &json!({"model": "m", "platform": "cli"})));
    example.hears(&tool("post_tool_call", "terminal", &json!({}), &json!({"result": "{}"})));
    example.hears(&event("on_session_end", &json!({"completed": true, "interrupted": false})));
    example.notes("sessions.log", "s1 on m: done, 1 calls, timed");
    let example = Example::of("plugins/calculator");
    example.hears(&tool(
        "post_tool_call",
        "terminal",
        &json!({}),
        &json!({"result": "{}", "task_id": "t"}),
    ));
    example.notes("calculator.log", "1 calls, terminal last; two and two is {\"result\": 4}");
}

#[test]
fn approvals_are_announced_and_kept() {
    let example = Example::of("plugins/approvals");
    let notifier = example.home.script(
        "notify",
        &format!("#!/bin/sh\necho \"$1\" > {}/notified\n", path_text(&example.home.work())),
    );
    let example = example.env("EXAMPLE_NOTIFIER", &notifier);
    let request = json!({"command": "rm -rf build", "description": "deletes a tree", "session_key": "k", "surface": "cli"});
    example.hears(&event("pre_approval_request", &request));
    example.notes("notified", "deletes a tree: rm -rf build");
    example.hears(&event(
        "post_approval_response",
        &json!({"command": "rm -rf build", "choice": "deny", "session_key": "k"}),
    ));
    example.notes("approvals.log", "deny: rm -rf build");
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
        example.hears(&call("rm -rf /")),
        json!({"action": "block", "message": "whole trees are deleted by people"})
    );
    assert_eq!(example.hears(&call("ls")), Value::Null);

    let file = example.home.work().join("made.py");
    fs::write(&file, "x = 1   \n\n\n").expect("a file");
    example.hears(&tool(
        "post_tool_call",
        "write_file",
        &json!({"path": path_text(&file)}),
        &json!({"result": "{}"}),
    ));
    assert_eq!(
        fs::read_to_string(&file).expect("a file"),
        "x = 1\n",
        "it is tidy before the agent goes on"
    );

    let git = Command::new("git").args(["init", "-q"]).current_dir(example.home.work()).status();
    assert!(git.expect("git runs").success());
    assert_eq!(
        example.hears(&event("pre_llm_call", &json!({"user_message": "x"}))),
        json!({"context": "uncommitted: ?? made.py;"})
    );
}

#[test]
fn a_checklist_is_worked_through_once_whenever_the_gateway_starts() {
    let home = Home::with_daemon("running");
    let work = home.work();
    let agent = home.script(
        "agent",
        &format!(
            "#!/bin/sh\nprintf '%s\\n---\\n' \"$2\" >> {0}/prompts\ncat {0}/answer\n",
            path_text(&work)
        ),
    );
    let deliver = format!("cat > {}/delivered", path_text(&work));
    let boot = format!(
        "{} boot --deliver '{deliver}' -- {agent} -z",
        path_text(&hookbus_tests::home::binary())
    );
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  gateway:startup: [{{ name: boot, mode: observe, source: log, command: \"{boot}\" }}]\n"
    ));
    let daemon = home.serve();
    let start = || {
        let mut command = home.command(["hook", "hermes", "--wire", "bridge"]);
        command.env("HERMES_HOME", &work);
        let heard = feed(
            command,
            event("gateway:startup", &json!({"platforms": ["chat"]})).to_string().as_bytes(),
        );
        assert_eq!((heard.exit, heard.stdout.as_str()), (Some(0), ""));
    };
    let read = |file: &str| fs::read_to_string(work.join(file)).unwrap_or_default();
    let log = || fs::read_to_string(home.path().join("boot.log")).unwrap_or_default();
    let handled = || home.json(&["status", "--json"])["observers"][0]["handled"].clone();
    start();
    wait_until("it was looked at", || handled() == 1);
    assert_eq!(
        (read("prompts"), log()),
        (String::new(), String::new()),
        "no checklist, nothing happens"
    );
    fs::write(work.join("BOOT.md"), "1. Water the plants.\n").expect("a checklist");
    fs::write(work.join("answer"), "[SILENT]").expect("an answer");
    start();
    wait_until("the agent was asked", || log().contains("nothing to report"));
    assert!(read("prompts").contains("Water the plants."));
    assert!(!work.join("delivered").exists());
    fs::write(work.join("answer"), "The cactus is dry.").expect("an answer");
    start();
    wait_until("the report was delivered", || read("delivered") == "The cactus is dry.");
    wait_until("it is kept", || log().contains("The cactus is dry."));
    // Told once more by a replay, or twice, a start is still one start.
    let pid = home.json(&["status", "--json"])["observers"][0]["pid"].to_string();
    drop(daemon);
    wait_until("it is gone", || !Path::new("/proc").join(&pid).exists());
    home.text(&["replay", "--all", "--to-observers", "--yes"]);
    assert!(log().contains("it is replayed"), "the one without a checklist then: {}", log());
    fs::remove_dir_all(home.path().join("observers/boot")).expect("its position");
    let again = home.json(&["observe", "boot", "--drain", "--from", "start", "--json"]);
    assert_eq!(again["handled"], 3, "{again}");
    assert_eq!(read("prompts").matches("---").count(), 2, "{}", log());
}

#[test]
fn a_start_that_is_long_past_is_left_alone() {
    let home = Home::new();
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let checklist = home.work().join("BOOT.md");
    fs::write(&checklist, "1. Water the plants.\n").expect("a checklist");
    let boot = |ours: &Value| {
        let file = path_text(&checklist);
        let command = home.command(["boot", "--wait", "--file", &file, "--", &agent]);
        feed(
            command,
            json!({"hook_event_name": "gateway:startup", "hookbus": ours}).to_string().as_bytes(),
        )
        .stdout
    };
    fs::create_dir_all(home.path()).expect("a home");
    home.answer("hermes", &event("gateway:startup", &json!({})));
    let now = home.log(&["--name", "gateway:startup"])[0]["time"].clone();
    assert_eq!(boot(&json!({"id": "early", "time": "2026-01-02T03:04:05Z", "replay": false})), "");
    let log = fs::read_to_string(home.path().join("boot.log")).expect("a log");
    assert!(log.contains("for event early") && log.contains("more than ten minutes ago"), "{log}");
    assert_eq!(boot(&json!({"id": "now", "time": now, "replay": false})), "asked\n");
    assert_eq!(boot(&json!({"id": "now", "time": now, "replay": false})), "", "once");
}

#[test]
fn a_start_that_could_not_be_seen_to_is_seen_to_at_the_next_try() {
    let home = Home::with_new_binary("off");
    let agent = home.script("agent", "#!/bin/sh\necho asked\n");
    let checklist = home.work().join("BOOT.md");
    fs::write(&checklist, "1. Water the plants.\n").expect("a checklist");
    fs::create_dir_all(home.path()).expect("a home");
    let told = json!({"hook_event_name": "gateway:startup", "hookbus": {"id": "once"}});
    let boot = || {
        let mut command = home.command(["boot", "--file", &path_text(&checklist), "--", &agent]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("hookbus starts")
    };
    let tell = |mut child: Child| {
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(told.to_string().as_bytes()).expect("it listens");
        drop(stdin);
        child.wait_with_output().expect("hookbus ends")
    };
    let log = || fs::read_to_string(home.path().join("boot.log")).unwrap_or_default();
    // It runs already when its program is taken away, and so cannot start another in the background.
    let (first, program) = (boot(), home.path().with_file_name("hookbus"));
    fs::copy(&program, home.work().join("copy")).expect("a copy");
    fs::remove_file(&program).expect("no program");
    let failed = tell(first);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("in the background"), "{failed:?}");
    fs::rename(home.work().join("copy"), &program).expect("the program again");
    for _ in 0..2 {
        assert!(tell(boot()).status.success(), "{}", log());
    }
    wait_until("the agent was asked", || log().contains("asked"));
    let told = ["begins", "could not begin"].map(|words| log().matches(words).count());
    assert_eq!(told, [2, 1], "{}", log());
}
