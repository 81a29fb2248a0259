//! A real `hermes gateway run`, wired by `hookbus connect hermes`: the gateway's own events arrive, and a
//! policy decides about messages and commands before anybody else.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use hookbus_tests::agents::{Gateway, Hermes, Step, hermes_program};
use hookbus_tests::home::{Home, binary};
use hookbus_tests::wiring::firings;
use serde_json::{Value, json};

fn names(home: &Home) -> Vec<String> {
    firings(home, "hermes").iter().map(|firing| firing.name().to_owned()).collect()
}

const POLICY: &str = "hooks:
  message.in:
    - name: drop
      rule: { when: { text: '^psst' }, block: nobody whispers here }
    - name: polite
      rule: { when: { text: '^rude' }, rewrite: { text: 'good morning to you' } }
  'command:*':
    - name: no-status
      rule: { when: { command: '^status$' }, block: the status is nobody's business }
    - name: help-is-whoami
      rule: { when: { command: '^help$' }, rewrite: { command: whoami } }
  command:profile:
    - { name: mine, command: HANDLED }
";

#[test]
fn a_gateway_says_everything_and_does_as_it_is_told() {
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
    let idle = || wait_until_idle(&gateway, &home);
    gateway.hears("make a file", "FIRST");
    idle();
    gateway.say("psst, secret");
    gateway.hears("rude words", "SECOND");
    let last = gateway.requests().last().map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("good morning to you") && !last.contains("rude words"), "{last}");
    assert!(!last.contains("psst"), "what was dropped never came to the model");
    idle();
    gateway.hears("/status", "nobody's business");
    gateway.hears("/profile", "I did it myself");
    gateway.hears("/help", "u1");
    gateway.hears("/new", "");
    gateway.hears("and again", "THIRD");
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
    what_a_message_says(&home);
    assert!(home.is_sound());
}

/// A message sent to a busy agent would only wait.
fn wait_until_idle(gateway: &Gateway, home: &Home) {
    gateway.until("it has nothing to do", || {
        let names = names(home);
        let count = |name: &str| names.iter().filter(|known| *known == name).count();
        count("agent:start") == count("agent:end")
    });
}

/// Live objects come as what a person can use of them, tied to the session of their chat.
fn what_a_message_says(home: &Home) {
    let all = firings(home, "hermes");
    let message =
        all.iter().find(|firing| firing.name() == "pre_gateway_dispatch").expect("a message");
    let extra = &message.event["payload"]["extra"];
    assert_eq!(extra["event"]["text"], "make a file");
    assert_eq!(extra["event"]["source"]["chat_type"], "dm");
    assert_eq!(extra["event"]["source"]["platform"], "filechat");
    assert_eq!(extra["gateway"], json!({"platforms": ["filechat"]}));
    let sessions: Vec<&Value> = all.iter().map(|firing| &firing.event["session"]).collect();
    let at = |name: &str| all.iter().position(|firing| firing.name() == name).expect("it fired");
    let first = sessions[at("session:start")];
    let messages = all.iter().filter(|firing| firing.name() == "pre_gateway_dispatch");
    let told: Vec<&Value> = messages.map(|firing| &firing.event["session"]).collect();
    assert_eq!((told[0], told[1]), (&json!(""), first), "the first message begins the session");
    assert_eq!(sessions[at("session:end")], first, "a chat's key ties it to its session");
    assert_eq!(sessions[at("transform_terminal_output")], first);
}

/// Three turns of talk and then a tool call, at which the model says that its context is nearly full.
fn compressed(label: &str, in_place: bool) -> (Home, Value) {
    let home = Home::with_daemon("auto");
    let script = vec![
        Step::text("FIRST answer"),
        Step::text("SECOND answer"),
        Step::text("THIRD answer"),
        Step::tool("terminal", json!({"command": "echo here"})).crowded(),
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
    for (said, answer) in
        [("one", "FIRST"), ("two", "SECOND"), ("three", "THIRD"), ("four", "FOURTH")]
    {
        gateway.hears(said, answer);
        wait_until_idle(&gateway, &home);
    }
    gateway.until("it is told", || names(&home).iter().any(|name| name == "session:compress"));
    let run = gateway.stop();
    assert_eq!(run.side_requests.len(), 1, "a summary was asked for");
    let told = firings(&home, "hermes");
    let told: Vec<_> = told.iter().filter(|firing| firing.name() == "session:compress").collect();
    assert_eq!(told.len(), 1);
    let event = told[0].event.clone();
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
    let all = firings(home, "hermes");
    all.iter()
        .filter(|firing| firing.name() == name)
        .map(|one| one.event["session"].clone())
        .collect()
}

#[test]
fn a_conversation_that_is_compressed_in_place_says_so_and_stays_one_session() {
    let (home, event) = compressed("in place", true);
    let session = &sessions_of(&home, "session:start")[0];
    assert_eq!(&event["session"], session);
    assert_eq!(
        event["payload"]["extra"],
        json!({"platform": "filechat", "old_session_id": "", "in_place": true, "compression_count": 1})
    );
    assert!(sessions_of(&home, "post_llm_call").iter().all(|one| one == session));
}

#[test]
fn a_conversation_that_goes_on_in_a_new_session_after_compression_names_both() {
    let (home, event) = compressed("rotated", false);
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
fn a_task_board_tells_of_what_is_claimed_completed_and_blocked() {
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
    let happened = |name: &str| names(&home).iter().filter(|known| *known == name).count();
    gateway.until("it is up", || home.path().join("log.db").exists());
    gateway.beside(&["kanban", "init"]);
    for (title, end) in
        [("water the plants", "kanban_task_completed"), ("and again", "kanban_task_blocked")]
    {
        gateway.beside(&["kanban", "create", title, "--assignee", "default"]);
        let started = std::time::Instant::now();
        while happened(end) == 0 {
            assert!(started.elapsed().as_secs() < 90, "no {end}: {:?}", names(&home));
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
    assert_eq!(happened("kanban_task_claimed"), 2);
    gateway.stop();
}

#[test]
fn a_checklist_is_worked_through_while_the_gateway_is_at_work_already() {
    let home = Home::with_daemon("auto");
    let (go, delivered) = (home.work().join("go"), home.work().join("delivered"));
    let agent = home.script(
        "agent",
        &format!("#!/bin/sh\nuntil [ -e {} ]; do sleep 0.1; done\nexec \"$@\"\n", go.display()),
    );
    home.write_hooks(&format!(
        "trust: home\nhooks:\n  gateway:startup: [{{ name: boot, mode: observe, source: log, \
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
    gateway.hears("hello", "FIRST");
    let log = || std::fs::read_to_string(home.path().join("boot.log")).unwrap_or_default();
    gateway.until("the checklist was begun", || log().contains("begins"));
    wait_until_idle(&gateway, &home);
    assert!(!delivered.exists(), "the agent that works through it still waits");
    std::fs::write(&go, "").expect("a file");
    gateway.until("the report is delivered", || {
        std::fs::read_to_string(&delivered)
            .is_ok_and(|report| report.contains("The cactus is dry."))
    });
    let asked = gateway.requests().last().map(ToString::to_string).unwrap_or_default();
    assert!(asked.contains("Look after the plants."), "{asked:.500}");
    gateway.stop();
    assert_eq!(log().matches("begins").count(), 1, "{}", log());
}

#[test]
fn a_hook_that_hangs_and_a_daemon_that_dies_do_not_silence_a_gateway() {
    let home = Home::with_daemon("auto");
    home.write_hooks("hooks: { message.in: [{ name: hangs, command: sleep 600 }] }");
    let script = vec![Step::text("FIRST answer"), Step::text("SECOND answer")];
    // Its deadline is all that ends the hook, and long enough to get as far as that without a daemon too.
    let patience = ["--gateway-deadline", "10"];
    let hermes = Hermes::new("hanging").script(script);
    let gateway = hermes.connected_with(&home, "auto", &patience).gateway();
    gateway.hears("hello", "FIRST");
    wait_until_idle(&gateway, &home);
    let pid = home.json(&["status", "--json"])["daemon"]["pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.expect("`kill` runs").success());
    gateway.hears("hello again", "SECOND");
    gateway.stop();
    let decisions = home.decisions();
    let failures = decisions.iter().map(|row| row["verdicts"][0]["failure"].to_string());
    assert!(failures.filter(|why| why.contains("no answer within")).count() == 2, "{decisions:?}");
    assert!(home.is_sound());
}
