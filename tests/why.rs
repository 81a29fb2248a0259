//! `hookbus why`: explains a recorded decision with the hooks of its time, and tells whether the agent obeyed.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use hookbus_tests::consent::blocking_script;
use hookbus_tests::home::Home;
use serde_json::{Value, json};

const POLICY: &str = r"
hooks:
  tool.before:
    - name: no-force-push
      tool: shell
      rule:
        when: { command: 'git\s+push\s.*--force' }
        unless: { cwd: { under: /srv/scratch } }
        block: Force pushes need a person.
    - name: only-gemini
      agent: gemini
      rule: { when: { command: push }, block: no }
  turn.start:
    - { name: house, rule: { context: be kind } }
";

fn call(event: &str, id: &str, command: &str, status: &str) -> Value {
    json!({
        "hook_event_name": event, "session_id": "20261117_s1", "tool_name": "terminal",
        "tool_input": {"command": command}, "cwd": "/srv/project",
        "extra": {"tool_call_id": id, "status": status},
    })
}

/// A home with a call that was blocked and obeyed, a second try that ran all the same, and a harmless call.
fn home_with_calls() -> Home {
    let home = Home::with_hooks(POLICY);
    for (id, command, status) in [
        ("c1", "git push --force", "blocked"),
        ("c2", "git push --force origin main", "ok"),
        ("c3", "ls", "ok"),
    ] {
        home.answer("hermes", &call("pre_tool_call", id, command, ""));
        home.answer("hermes", &call("post_tool_call", id, command, status));
    }
    home
}

/// The seq of the event with this command.
fn seq_of(home: &Home, command: &str) -> i64 {
    let rows = home.log(&["--kind", "tool.before"]);
    let row = rows.iter().find(|row| row["payload"]["tool_input"]["command"] == command);
    row.and_then(|row| row["seq"].as_i64()).expect("a row")
}

#[test]
fn a_decision_is_explained_by_what_each_condition_saw_and_what_came_of_it() {
    let home = home_with_calls();
    let seq = seq_of(&home, "git push --force");
    let text = home.text(&["why", &seq.to_string()]);
    for part in [
        format!("seq {seq}: pre_tool_call (tool.before) of hermes\n"),
        ", session 20261117_s1\n  terminal git push --force\n".to_owned(),
        "blocked in ".to_owned(),
        "the agent was answered: {\"decision\":\"block\"".to_owned(),
        "no-force-push: block".to_owned(),
        "    Force pushes need a person.\n".to_owned(),
        "when command holds: /git\\s+push\\s.*--force/; it saw `git push --force`\n".to_owned(),
        "unless cwd does not hold: under /srv/scratch; it saw `/srv/project`\n".to_owned(),
        "only-gemini\n      it is for gemini only\n".to_owned(),
        "1 other hook did not match; --all lists them\n".to_owned(),
        "it did not run: seq ".to_owned(),
        "says `denied`\n".to_owned(),
        "a similar call, blocked, it ran all the same\n".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let of_decision = home.text(&["why", &(seq + 1).to_string()]);
    assert_eq!(of_decision, text, "the seq of the decision means the same");
}

#[test]
fn a_blocked_call_that_ran_all_the_same_is_told_first_by_last() {
    let home = home_with_calls();
    let text = home.text(&["why", "last"]);
    assert!(text.contains("terminal git push --force origin main\n"), "{text}");
    assert!(text.contains("it ran all the same: seq "), "{text}");
    assert_eq!(home.text(&["why", "20261117"]), text, "a session by its beginning");
    let json = home.json(&["why", "last", "--json"]);
    assert_eq!((&json["next"]["ran"], &json["next"]["status"]), (&json!(true), &json!("ok")));
    assert_eq!(json["decision"]["verdicts"][0]["hook"], "no-force-push");
    let hook = &json["hooks"][0];
    assert_eq!((&hook["hook"], &hook["matches"]), (&json!("no-force-push"), &json!(true)));
    assert_eq!(hook["rule"]["conditions"][1]["saw"], json!(["/srv/project"]));
}

#[test]
fn an_event_that_no_hook_spoke_about_is_explained_too() {
    let home = home_with_calls();
    let text = home.text(&["why", &seq_of(&home, "ls").to_string()]);
    for part in
        ["no hook had anything to say about it", "`when: command` does not hold", "it ran: seq "]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn the_hooks_of_then_count_not_those_of_now() {
    let home = home_with_calls();
    home.write_hooks("hooks: { tool.before: [{ name: other, rule: { block: now } }] }");
    let text = home.text(&["why", "last"]);
    assert!(text.contains("when command holds") && !text.contains("other\n"), "{text}");
}

#[test]
fn a_command_is_shown_with_its_exit_code_and_its_failure() {
    let home = Home::new();
    let script = home.script("guard.sh", &blocking_script("guarded"));
    let broken = home.script("broken.sh", "#!/bin/sh\nexit 7\n");
    home.write_hooks(&format!(
        "hooks: {{ tool.before: [{{ name: guard, command: {script} }}, {{ name: broken, command: {broken} }}] }}"
    ));
    home.answer("hermes", &call("pre_tool_call", "c1", "ls", ""));
    let text = home.text(&["why", "last"]);
    for part in
        ["guard: block, exit ", "    guarded\n", "broken: no objection, exit 7", "it failed: "]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn what_cannot_be_explained_says_what_to_do() {
    let home = Home::with_hooks(POLICY);
    home.answer("hermes", &call("pre_tool_call", "c1", "ls", ""));
    for (what, message) in [
        ("999", "there is no row or session `999`; the last row is"),
        ("nope", "there is no row or session `nope`"),
        ("1", "row 1 is about hookbus itself (hooks.loaded)"),
        ("last", "no decision is recorded yet"),
        ("20261117_s1", "no hook had anything to say in session 20261117_s1"),
    ] {
        let output = home.run(&["why", what]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(stderr.contains(message), "{what}: {stderr}");
    }
}
