//! A replay asks a rule once about calls that repeat. Here calls with the same command differ in something else, and each
//! rule must still see it.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;

use hookbus_tests::home::{Home, path_text};
use hookbus_tests::payloads::{gemini_shell, hermes_shell};
use serde_json::{Value, json};

/// Five times the same command. The last ones differ from the first in one thing each.
fn recorded() -> Home {
    let home = Home::new();
    home.write_hooks("hooks: {}\n");
    let call = |change: &dyn Fn(&mut Value)| {
        let mut payload = hermes_shell("make");
        payload["session_id"] = json!("first");
        payload["extra"] = json!({"turn_id": "turn-1", "tool_call_id": "call-1", "note": "plain"});
        payload["cwd"] = json!("/home/dev/project");
        change(&mut payload);
        home.answer("hermes", &payload);
    };
    call(&|_| {});
    call(&|payload| payload["session_id"] = json!("second"));
    call(&|payload| payload["extra"]["tool_call_id"] = json!("call-2"));
    call(&|payload| payload["extra"]["note"] = json!("other"));
    call(&|payload| payload["cwd"] = json!("/home/dev/other"));
    home.answer("gemini", &gemini_shell("make"));
    home
}

/// The rows that a candidate with this one rule would block.
fn blocked(home: &Home, rule: &str) -> Vec<u64> {
    let file = home.work().join("candidate.yaml");
    let hooks = format!(
        "hooks:\n  tool.before:\n    - {{ name: one, rule: {{ {rule}, block: no }} }}\n    \
         - {{ name: two, rule: {{ when: {{ runs: make }}, context: be quick }} }}\n"
    );
    fs::write(&file, hooks).expect("a candidate");
    let report = home.json(&["replay", "--all", "--json", "--hooks", &path_text(&file)]);
    let changes = report["changes"].as_array().expect("changes").iter();
    let blocked = changes.filter(|change| change["what"] == "newly_blocked");
    blocked.map(|change| change["seq"].as_u64().expect("a number")).collect()
}

#[test]
fn a_rule_sees_what_tells_repeated_calls_apart() {
    let home = recorded();
    let events = home.log(&["--kind", "tool.before"]);
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let &[first, session, id, note, cwd, gemini] = seqs.as_slice() else {
        unreachable!("six events, not {seqs:?}")
    };
    for (rule, expected) in [
        ("when: { runs: make }", vec![first, session, id, note, cwd, gemini]),
        ("when: { command: '^make$' }", vec![first, session, id, note, cwd, gemini]),
        ("when: { session: second }", vec![session]),
        ("when: { session_id: second }", vec![session]),
        ("when: { tool_call_id: call-2 }", vec![id]),
        ("when: { extra.tool_call_id: call-2 }", vec![id]),
        ("when: { extra: call-2 }", vec![id]),
        ("when: { note: other }", vec![note]),
        ("when: { extra.note: other }", vec![note]),
        ("when: { cwd: { under: /home/dev/other } }", vec![cwd]),
        ("when: { agent: gemini }", vec![gemini]),
        ("if: 'session == \"second\"'", vec![session]),
        ("when: { runs: make }, unless: { session: second }", vec![first, id, note, cwd, gemini]),
    ] {
        assert_eq!(blocked(&home, rule), expected, "{rule}");
    }
}
