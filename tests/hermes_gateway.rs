//! A real `hermes gateway run`, connected by `hookbus connect hermes`: the gateway's events arrive, and a policy
//! decides about messages and commands before Hermes handles them.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use hookbus_tests::agents::{Hermes, Step, hermes_program};
use hookbus_tests::home::{Home, binary, wait_until};
use hookbus_tests::wiring::recorded_events;
use serde_json::{Value, json};

fn names(home: &Home) -> Vec<String> {
    recorded_events(home, "hermes").iter().map(|recorded| recorded.name().to_owned()).collect()
}

const POLICY: &str = "hooks:
  message.in:
    - name: drop
      rule: { when: { text: '^psst' }, block: no whispering }
    - name: polite
      rule: { when: { text: '^rude' }, rewrite: { text: 'good morning to you' } }
  'command:*':
    - name: no-status
      rule: { when: { command: '^status$' }, block: the status is private }
    - name: help-is-whoami
      rule: { when: { command: '^help$' }, rewrite: { command: whoami } }
  command:profile:
    - { name: mine, command: HANDLED }
";

#[test]
fn the_events_of_a_gateway_arrive_and_the_answers_take_effect() {
    let home = Home::with_daemon("auto");
    let handled = home.script(
        "handled",
        "#!/bin/sh\necho '{\"decision\":\"handled\",\"message\":\"I did it myself\"}'\n",
    );
    home.write_hooks(&POLICY.replace("HANDLED", &handled));
    let script = vec![
        Step::tool("terminal", json!({"command": "echo made > made.txt"})),
        Step::text("FIRST answer"),
        Step::text("SECOND answer"),
        Step::text("THIRD answer"),
    ];
    let gateway = Hermes::new("gateway").script(script).connected(&home, "auto").gateway();
    let idle = || wait_until_idle(&home);
    gateway.send_and_expect("make a file", "FIRST");
    idle();
    gateway.send("psst, secret");
    gateway.send_and_expect("rude words", "SECOND");
    let last = gateway.requests().last().map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("good morning to you") && !last.contains("rude words"), "{last}");
    assert!(!last.contains("psst"), "the model does not get a dropped message");
    idle();
    gateway.send_and_expect("/status", "the status is private");
    gateway.send_and_expect("/profile", "I did it myself");
    gateway.send_and_expect("/help", "u1");
    gateway.send_and_expect("/new", "");
    gateway.send_and_expect("and again", "THIRD");
    let run = gateway.stop();

    let names = names(&home);
    for name in [
        "gateway:startup",
        "session:start",
        "agent:start",
        "agent:step",
        "agent:end",
        "session:end",
        "session:reset",
        "command:status",
        "command:profile",
        "command:help",
        "command:new",
        "pre_gateway_dispatch",
        "on_session_start",
        "on_session_reset",
        "on_session_finalize",
        "pre_tool_call",
        "transform_llm_output",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}\n{}", run.stdout);
    }
    check_message_events(&home);
    assert!(home.is_sound());
}

/// Waits until the agent is idle; a message to a busy agent would be queued.
fn wait_until_idle(home: &Home) {
    wait_until("the agent is idle", || {
        let names = names(home);
        let count = |name: &str| names.iter().filter(|known| *known == name).count();
        count("agent:start") == count("agent:end")
    });
}

/// Checks that Python objects arrive as JSON, with the session of their chat.
fn check_message_events(home: &Home) {
    let all = recorded_events(home, "hermes");
    let message =
        all.iter().find(|recorded| recorded.name() == "pre_gateway_dispatch").expect("a message");
    let extra = &message.event["payload"]["extra"];
    assert_eq!(extra["event"]["text"], "make a file");
    assert_eq!(extra["event"]["source"]["chat_type"], "dm");
    assert_eq!(extra["event"]["source"]["platform"], "filechat");
    assert_eq!(extra["gateway"], json!({"platforms": ["filechat"]}));
    let sessions: Vec<&Value> = all.iter().map(|recorded| &recorded.event["session"]).collect();
    let at =
        |name: &str| all.iter().position(|recorded| recorded.name() == name).expect("it fired");
    let first = sessions[at("session:start")];
    let messages = all.iter().filter(|recorded| recorded.name() == "pre_gateway_dispatch");
    let of_messages: Vec<&Value> = messages.map(|recorded| &recorded.event["session"]).collect();
    assert_eq!((of_messages[0], of_messages[1]), (&json!(""), first), "the first one starts it");
    assert_eq!(sessions[at("session:end")], first, "found by the key of the chat");
    assert_eq!(sessions[at("transform_terminal_output")], first);
}

/// Runs three turns and then a tool call at which the context is nearly full. Returns the home and the event of
/// the compression.
fn run_until_compression(label: &str, in_place: bool) -> (Home, Value) {
    let home = Home::with_daemon("auto");
    let script = vec![
        Step::text("FIRST answer"),
        Step::text("SECOND answer"),
        Step::text("THIRD answer"),
        Step::tool("terminal", json!({"command": "echo here"})).nearly_full(),
        Step::text("FOURTH answer"),
    ];
    let compression = json!({
        "enabled": true, "in_place": in_place, "protect_first_n": 1, "protect_last_n": 2,
    });
    let gateway = Hermes::new(label)
        .script(script)
        .setting("compression", compression)
        .connected(&home, "auto")
        .gateway();
    for (message, answer) in
        [("one", "FIRST"), ("two", "SECOND"), ("three", "THIRD"), ("four", "FOURTH")]
    {
        gateway.send_and_expect(message, answer);
        wait_until_idle(&home);
    }
    wait_until("the event arrives", || names(&home).iter().any(|name| name == "session:compress"));
    let run = gateway.stop();
    assert_eq!(run.side_requests.len(), 1, "the agent requested a summary");
    let all = recorded_events(&home, "hermes");
    let events: Vec<_> =
        all.iter().filter(|recorded| recorded.name() == "session:compress").collect();
    assert_eq!(events.len(), 1);
    let event = events[0].event.clone();
    assert_eq!(
        (&event["kind"], &event["context"]["wire"]),
        (&json!("compact.after"), &json!("bridge"))
    );
    assert_eq!(event["session"], event["payload"]["session_id"]);
    assert!(home.is_sound());
    (home, event)
}

/// The sessions of events with this name, in order.
fn sessions_of(home: &Home, name: &str) -> Vec<Value> {
    let all = recorded_events(home, "hermes");
    all.iter()
        .filter(|recorded| recorded.name() == name)
        .map(|one| one.event["session"].clone())
        .collect()
}

#[test]
fn compression_in_place_is_reported_and_keeps_the_session() {
    let (home, event) = run_until_compression("in place", true);
    let session = &sessions_of(&home, "session:start")[0];
    assert_eq!(&event["session"], session);
    assert_eq!(
        event["payload"]["extra"],
        json!({"platform": "filechat", "old_session_id": "", "in_place": true, "compression_count": 1})
    );
    assert!(sessions_of(&home, "post_llm_call").iter().all(|one| one == session));
}

#[test]
fn compression_into_a_new_session_is_reported_with_both_sessions() {
    let (home, event) = run_until_compression("rotated", false);
    let session = &sessions_of(&home, "session:start")[0];
    assert_ne!(&event["session"], session);
    assert_eq!(
        event["payload"]["extra"],
        json!({"platform": "filechat", "old_session_id": session, "in_place": false, "compression_count": 1})
    );
    let answers = sessions_of(&home, "post_llm_call");
    assert_eq!(answers, [session, session, session, &event["session"]].map(Clone::clone));
}

#[test]
fn events_of_the_task_board_arrive() {
    let home = Home::with_daemon("auto");
    let script = vec![
        Step::tool("kanban_complete", json!({"summary": "watered"})),
        Step::text("Done."),
        Step::tool("kanban_block", json!({"reason": "no water"})),
        Step::text("Stuck."),
    ];
    let gateway = Hermes::new("kanban")
        .script(script)
        .setting("kanban.dispatch_interval_seconds", json!(1))
        .connected(&home, "auto")
        .gateway();
    let count = |name: &str| names(&home).iter().filter(|known| *known == name).count();
    wait_until("it has started", || home.path().join("log.db").exists());
    gateway.run_hermes(&["kanban", "init"]);
    for (title, end) in
        [("water the plants", "kanban_task_completed"), ("and again", "kanban_task_blocked")]
    {
        gateway.run_hermes(&["kanban", "create", title, "--assignee", "default"]);
        let started = std::time::Instant::now();
        while count(end) == 0 {
            assert!(started.elapsed().as_secs() < 90, "no {end}: {:?}", names(&home));
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
    assert_eq!(count("kanban_task_claimed"), 2);
    gateway.stop();
}

#[test]
fn the_gateway_works_while_a_boot_checklist_is_processed() {
    let home = Home::with_daemon("auto");
    let (go, delivered) = (home.work().join("go"), home.work().join("delivered"));
    let agent = home.script(
        "agent",
        &format!("#!/bin/sh\nuntil [ -e {} ]; do sleep 0.1; done\nexec \"$@\"\n", go.display()),
    );
    home.write_hooks(&format!(
        "hooks:\n  gateway:startup: [{{ name: boot, mode: observe, source: log, \
         command: \"{} boot --deliver 'cat >> {}' -- {agent} {} -z\" }}]\n",
        binary().display(),
        delivered.display(),
        hermes_program().display(),
    ));
    let script = vec![Step::text("FIRST answer"), Step::text("The cactus is dry.")];
    let hermes = Hermes::new("boot").script(script);
    let checklist = hermes.home().join(".hermes/BOOT.md");
    std::fs::create_dir_all(checklist.parent().expect("a folder")).expect("a folder");
    std::fs::write(&checklist, "1. Look after the plants.\n").expect("a checklist");
    let gateway = hermes.connected(&home, "auto").gateway();
    gateway.send_and_expect("hello", "FIRST");
    let log = || std::fs::read_to_string(home.path().join("boot.log")).unwrap_or_default();
    wait_until("the checklist has begun", || log().contains("begins"));
    wait_until_idle(&home);
    assert!(!delivered.exists(), "its agent is still waiting");
    std::fs::write(&go, "").expect("a file");
    wait_until("the report is delivered", || {
        std::fs::read_to_string(&delivered)
            .is_ok_and(|report| report.contains("The cactus is dry."))
    });
    let request = gateway.requests().last().map(ToString::to_string).unwrap_or_default();
    assert!(request.contains("Look after the plants."), "{request:.500}");
    gateway.stop();
    assert_eq!(log().matches("begins").count(), 1, "{}", log());
}

#[test]
fn a_gateway_answers_despite_a_hanging_hook_and_a_killed_daemon() {
    let home = Home::with_daemon("auto");
    home.write_hooks("hooks: { message.in: [{ name: hangs, command: sleep 600 }] }");
    let script = vec![Step::text("FIRST answer"), Step::text("SECOND answer")];
    // Only this deadline ends the hook. It is long enough for the hook to start without a daemon too.
    let deadline = ["--gateway-deadline", "10"];
    let hermes = Hermes::new("hanging").script(script);
    let gateway = hermes.connected_with(&home, "auto", &deadline).gateway();
    gateway.send_and_expect("hello", "FIRST");
    wait_until_idle(&home);
    let pid = home.json(&["status", "--json"])["daemon"]["pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.expect("`kill` runs").success());
    gateway.send_and_expect("hello again", "SECOND");
    gateway.stop();
    let decisions = home.decisions();
    let failures = decisions.iter().map(|row| row["verdicts"][0]["failure"].to_string());
    assert!(failures.filter(|why| why.contains("no answer within")).count() == 2, "{decisions:?}");
    assert!(home.is_sound());
}

#[test]
fn a_hook_that_takes_nearly_the_whole_deadline_of_the_gateway_is_waited_for() {
    let home = Home::with_daemon("auto");
    // Of the five seconds one part in nine is left when it answers.
    let slow = home.script("slow", "#!/bin/sh\nsleep 4.4\necho 'no whispering' >&2\nexit 2\n");
    home.write_hooks(&format!(
        "hooks: {{ message.in: [{{ name: slow, command: {slow}, timeout: 30 }}] }}"
    ));
    let script = vec![Step::text("FIRST answer")];
    let hermes = Hermes::new("slow-hook").script(script);
    let gateway = hermes.connected_with(&home, "auto", &["--gateway-deadline", "5"]).gateway();
    gateway.send("psst");
    let decisions = ["log", "--json", "--kind", "decision"];
    wait_until("the hook has answered", || !home.run(&decisions).stdout.is_empty());
    let verdict = &home.decisions()[0]["verdicts"][0];
    assert_eq!(verdict["failure"], Value::Null, "{verdict}");
    assert_eq!(verdict["reason"], "no whispering", "{verdict}");
    assert_eq!(gateway.requests(), Vec::<Value>::new(), "the model does not get the message");
    gateway.stop();
}
