//! Rows about the bus itself: approvals, revocations, changed settings and daemon starts are in the log, for everyone
//! who reads it, and no hook decides about them.

use std::fs;

use hookbus_tests::consent::{block_reason, blocking_script, tool_call};
use hookbus_tests::home::{Home, path_text, wait_until};
use serde_json::{Value, json};

fn payloads(home: &Home, kind: &str) -> Vec<Value> {
    // Nothing can be read while the daemon creates the log.
    let exists = home.run(&["log", "--json"]).status.success();
    if !exists {
        return Vec::new();
    }
    let rows = home.log(&["--kind", kind]);
    for row in &rows {
        assert_eq!(
            (&row["agent"], &row["session"], &row["name"]),
            (&json!("hookbus"), &json!(""), &json!(kind))
        );
    }
    rows.into_iter().map(|row| row["payload"].clone()).collect()
}

fn guarded() -> (Home, String) {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks_file(&format!(
        "hooks: {{ pre_tool_call: [{{ name: guard, command: {script} }}] }}"
    ));
    (home, script)
}

#[test]
fn approvals_and_revocations_are_rows() {
    let (home, script) = guarded();
    home.approve();
    let [approved] = payloads(&home, "hooks.approved").try_into().expect("one row");
    for (key, value) in [
        ("hook", json!("guard")),
        ("event", json!("pre_tool_call")),
        ("command", json!(script)),
        ("file", json!(path_text(&home.path().join("hookbus.yaml")))),
        ("project", json!(false)),
        ("how", json!("--accept-hooks")),
    ] {
        assert_eq!(approved[key], value, "{approved}");
    }
    assert_eq!(approved["files"][0]["path"], json!(script));
    assert_eq!(approved["files"][0]["hash"].as_str().map(str::len), Some(64), "{approved}");
    assert_eq!(approved["entry"].as_str().map(str::len), Some(64), "{approved}");
    home.text(&["hooks", "revoke", "guard"]);
    let [revoked] = payloads(&home, "hooks.revoked").try_into().expect("one row");
    assert_eq!((&revoked["command"], &revoked["entry"]), (&json!(script), &approved["entry"]));
    let shown = home.text(&["log"]);
    assert!(shown.contains("hooks.approved"), "{shown}");
    assert!(shown.contains("guard on pre_tool_call, in "), "{shown}");
    assert!(home.is_sound());
}

#[test]
fn an_approval_counts_also_when_the_log_cannot_be_written_and_its_row_comes_later() {
    let (home, _) = guarded();
    fs::create_dir(home.path().join("log.db")).expect("a directory in place of the log");
    home.approve();
    fs::remove_dir(home.path().join("log.db")).expect("the directory");
    assert_eq!(block_reason(&home), "guarded");
    // The next hook takes the spool in.
    wait_until("the row is in the log", || {
        block_reason(&home);
        payloads(&home, "hooks.approved").len() == 1
    });
}

#[test]
fn changed_settings_are_rows_and_never_hold_a_secret() {
    let home = Home::new();
    let write = |settings: &str| {
        home.write_hooks_file(&format!(
            "{settings}\nhooks: {{ tool.before: [{{ name: a, rule: {{ context: x }} }}] }}\n"
        ));
        home.answer("hermes", &tool_call());
    };
    write("trust: nobody");
    assert_eq!(payloads(&home, "settings.changed"), Vec::<Value>::new(), "the first version");
    write("trust: home\nmax_continuations: 3");
    let keys = |change: &Value| -> Vec<String> {
        let changes = change["changes"].as_array().expect("changes");
        changes.iter().map(|it| it["key"].as_str().expect("a key").to_owned()).collect()
    };
    let changed = payloads(&home, "settings.changed");
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(keys(&changed[0]), ["max_continuations", "trust"]);
    assert_eq!(
        changed[0]["changes"][1],
        json!({"key": "trust", "before": "nobody", "after": "home"})
    );
    let login = "user: me, password: hush";
    write(&format!("trust: home\nnats: {{ url: 'nats://u:hush@one:4222', {login} }}"));
    write(&format!("trust: home\nnats: {{ url: 'nats://u:hush@two:4222', {login} }}"));
    let changed = payloads(&home, "settings.changed");
    let last = changed.last().expect("a row");
    assert_eq!(
        last["changes"],
        json!([{"key": "nats.url", "before": "nats://one:4222", "after": "nats://two:4222"}])
    );
    // The same settings again are no change, and neither are other hooks.
    let count = changed.len();
    home.write_hooks_file(&format!(
        "trust: home\nnats: {{ url: 'nats://u:hush@two:4222', {login} }}\nhooks: {{}}\n"
    ));
    home.answer("hermes", &tool_call());
    home.answer("hermes", &tool_call());
    assert_eq!(payloads(&home, "settings.changed").len(), count);
    let everything = home.text(&["log", "--json"]);
    assert!(!everything.contains("hush"), "{everything}");
    assert!(home.text(&["log"]).contains("nats.url in "));
}

#[test]
fn a_daemon_names_a_changed_password_and_does_not_show_it() {
    let home = Home::with_daemon("running");
    let write = |password: &str| {
        home.write_hooks(&format!(
            "nats: {{ url: 'nats://127.0.0.1:1', user: me, password: {password} }}\nhooks: {{}}\n"
        ));
    };
    write("hush-one");
    let _daemon = home.serve();
    wait_until("the daemon has read it", || payloads(&home, "hooks.loaded").len() == 1);
    write("hush-two");
    let changed = || payloads(&home, "settings.changed");
    wait_until("the change is recorded", || changed().len() == 1);
    assert_eq!(changed()[0]["changes"], json!([{"key": "nats.password"}]));
    assert!(!home.text(&["log", "--json"]).contains("hush"));
}

#[test]
fn each_start_of_a_daemon_is_a_row() {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: {}");
    for starts in 1..=2 {
        let mut daemon = home.serve();
        wait_until("the start is recorded", || payloads(&home, "daemon.started").len() == starts);
        let last = payloads(&home, "daemon.started").pop().expect("a row");
        assert_eq!(last["pid"], json!(daemon.pid()));
        assert_eq!(last["how"], "foreground");
        assert!(last["version"].is_string() && last["host"].is_string(), "{last}");
        daemon.kill();
    }
    let auto = Home::with_daemon("auto");
    auto.answer("hermes", &tool_call());
    wait_until("a hook has started one", || {
        payloads(&auto, "daemon.started").iter().any(|it| it["how"] == "background")
    });
}

#[test]
fn rows_about_the_bus_are_no_session_and_are_not_replayed() {
    let (home, _) = guarded();
    home.approve();
    block_reason(&home);
    home.text(&["hooks", "revoke", "guard"]);
    let sessions = home.text(&["sessions", "--json"]);
    assert_eq!(sessions.lines().count(), 1, "{sessions}");
    let shown = home.text(&["show", "last"]);
    assert!(shown.starts_with("s  "), "the agent's session is the last one: {shown}");
    let report = home.json(&["replay", "--all", "--as-recorded", "--yes", "--json"]);
    assert_eq!(report["summary"]["events"], 1, "{report}");
}

#[test]
fn an_observer_of_everything_gets_them_and_one_of_a_kind_only_its_kind() {
    let home = Home::new();
    let seen = home.work().join("seen");
    let script = format!("cat >> {}", path_text(&seen));
    home.write_hooks(&format!(
        "hooks:\n  hooks.approved:\n    - {{ name: audit, mode: observe, command: sh -c '{script}' }}\n"
    ));
    let guard = home.script("guard.sh", &blocking_script("guarded"));
    home.write_hooks_file(&format!(
        "hooks_auto_accept: true\nhooks:\n  hooks.approved:\n    - {{ name: audit, mode: observe, command: \"sh -c '{script}'\" }}\n  \
         pre_tool_call:\n    - {{ name: guard, command: {guard} }}\n"
    ));
    home.text(&["hooks", "approve"]);
    block_reason(&home);
    home.text(&["observe", "audit", "--source", "log", "--from", "start", "--drain"]);
    let seen = fs::read_to_string(&seen).expect("it ran");
    assert_eq!(seen.matches("\"kind\":\"hooks.approved\"").count(), 2, "{seen}");
    assert!(!seen.contains("pre_tool_call\",\"tool_name"), "{seen}");
}
