//! What Hermes is answered, over each of its wires.

use serde_json::{Value, json};

use super::super::{Arrival, Capabilities, Dialect, Ending, HookOutput, decode};
use super::Hermes;
use crate::event::{Agent, Event, EventId, Time, Verdict, Wire};

fn event(wire: Wire, name: &str) -> Event {
    let at = Time::from_micros(1_700_000_000_000_000);
    let raw = json!({"hook_event_name": name, "tool_name": "terminal", "tool_input": {"command": "ls", "tty": true}});
    let (id, agent, raw) = (EventId::mint(at), Agent::Hermes, raw.to_string().into_bytes());
    decode(Arrival { id, at, agent, wire, raw: raw.into(), session_hint: None })
}

/// The answer to a shell hook of Hermes, if hooks printed this: stdout, stderr and exit code of each.
fn shell_answer(name: &str, printed: &[(&str, &str, i32)]) -> Option<Value> {
    answer_over(Wire::Shell, name, printed)
}

/// The answer to the bridge, if hooks printed this on stdout.
fn bridge_answer(name: &str, printed: &[&str]) -> Option<Value> {
    let printed: Vec<(&str, &str, i32)> = printed.iter().map(|text| (*text, "", 0)).collect();
    answer_over(Wire::Bridge, name, &printed)
}

fn answer_over(wire: Wire, name: &str, printed: &[(&str, &str, i32)]) -> Option<Value> {
    let event = event(wire, name);
    let verdicts: Vec<Verdict> = printed
        .iter()
        .map(|(stdout, stderr, exit)| {
            let (stdout, stderr) = (stdout.as_bytes(), stderr.as_bytes());
            let output = HookOutput { stdout, stderr, ending: Ending::Exit(*exit) };
            Hermes.interpret(event.kind, &output).verdict
        })
        .collect();
    Hermes.encode(&event, &Hermes.merge(&event, &verdicts.iter().collect::<Vec<_>>()))
}

#[test]
fn the_first_block_wins() {
    let first = r#"{"action": "block", "message": "first"}"#;
    let second = r#"{"decision": "block", "reason": "second"}"#;
    let expected = Some(json!({"decision": "block", "reason": "first"}));
    assert_eq!(
        shell_answer("pre_tool_call", &[("", "", 0), (first, "", 0), (second, "", 0)]),
        expected
    );
}

#[test]
fn a_block_counts_whatever_the_exit_code_and_without_a_reason() {
    let block = r#"{"decision": "block"}"#;
    assert_eq!(
        shell_answer("pre_tool_call", &[(block, "", 1)]),
        Some(json!({"decision": "block"}))
    );
}

#[test]
fn contexts_are_joined_by_a_blank_line() {
    let printed =
        [(r#"{"context": "one"}"#, "", 0), ("{}", "", 0), (r#"{"context": "two"}"#, "", 0)];
    assert_eq!(shell_answer("pre_llm_call", &printed), Some(json!({"context": "one\n\ntwo"})));
}

#[test]
fn an_agent_that_wants_to_finish_can_be_told_to_continue() {
    for answer in [
        r#"{"action": "continue", "message": "test it"}"#,
        r#"{"decision": "BLOCK", "reason": "test it"}"#,
    ] {
        let expected = Some(json!({"action": "continue", "message": "test it"}));
        assert_eq!(shell_answer("pre_verify", &[(answer, "", 0)]), expected, "{answer}");
    }
    let without_message = (r#"{"action": "continue"}"#, "", 0);
    assert_eq!(shell_answer("pre_verify", &[without_message]), None, "it needs a message");
    let next = (r#"{"action": "continue", "message": "next"}"#, "", 0);
    let expected = Some(json!({"action": "continue", "message": "next"}));
    assert_eq!(shell_answer("pre_verify", &[without_message, next]), expected);
}

#[test]
fn at_other_events_hermes_gets_no_output() {
    for name in
        ["post_tool_call", "transform_llm_output", "on_session_end", "kanban_task_claimed", "news"]
    {
        assert_eq!(
            shell_answer(name, &[(r#"{"decision": "block", "context": "x"}"#, "no", 2)]),
            None,
            "{name}"
        );
    }
}

#[test]
fn a_block_in_the_spelling_of_another_agent_counts() {
    for (stdout, stderr, exit) in [
        (r#"{"decision": "deny", "reason": "no"}"#, "", 0),
        (
            r#"{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}"#,
            "",
            0,
        ),
        ("", "no", 2),
    ] {
        let expected = Some(json!({"decision": "block", "reason": "no"}));
        assert_eq!(shell_answer("pre_tool_call", &[(stdout, stderr, exit)]), expected, "{stdout}");
    }
    assert_eq!(
        shell_answer("pre_tool_call", &[("", "", 2)]),
        None,
        "without a reason it is only a failure"
    );
}

#[test]
fn over_the_bridge_a_tool_call_can_be_blocked_asked_about_and_changed() {
    let block = r#"{"decision": "block", "reason": "no"}"#;
    let ask = r#"{"action": "approve", "message": "sure?"}"#;
    let change = r#"{"action": "modify", "args": {"command": "ls -l"}}"#;
    assert_eq!(
        bridge_answer("pre_tool_call", &[block]),
        Some(json!({"action": "block", "message": "no"}))
    );
    let asked =
        json!({"action": "approve", "message": "sure?", "rule_key": "hookbus:terminal:sure?"});
    assert_eq!(bridge_answer("pre_tool_call", &[ask]), Some(asked.clone()));
    let changed = json!({"args": {"command": "ls -l", "tty": true}});
    assert_eq!(bridge_answer("pre_tool_call", &[change]), Some(changed.clone()));
    let mut both = asked;
    both["args"] = changed["args"].clone();
    assert_eq!(bridge_answer("pre_tool_call", &[change, ask]), Some(both));
    let blocked = Some(json!({"action": "block", "message": "no"}));
    assert_eq!(
        bridge_answer("pre_tool_call", &[ask, change, block]),
        blocked,
        "a blocked tool needs no input"
    );
    let without_reason = bridge_answer("pre_tool_call", &[r#"{"decision": "block"}"#]);
    assert_eq!(without_reason, Some(json!({"action": "block", "message": "Blocked by a hook."})));
}

#[test]
fn of_several_changes_to_one_key_the_last_counts() {
    let first = r#"{"action": "modify", "args": {"command": "a", "cwd": "/"}}"#;
    let second = r#"{"decision": "modify", "tool_input": {"command": "b"}}"#;
    let expected = json!({"args": {"command": "b", "tty": true, "cwd": "/"}});
    assert_eq!(bridge_answer("pre_tool_call", &[first, second]), Some(expected));
}

#[test]
fn over_the_bridge_the_first_text_replaces_the_transformed_one() {
    for name in ["transform_terminal_output", "transform_tool_result", "transform_llm_output"] {
        let printed = ["{}", r#"{"action": "rewrite", "text": "one"}"#, r#""two""#];
        assert_eq!(bridge_answer(name, &printed), Some(json!("one")), "{name}");
        assert_eq!(bridge_answer(name, &[r#""two""#]), Some(json!("two")), "{name}");
        assert_eq!(
            shell_answer(name, &[(r#""two""#, "", 0)]),
            None,
            "{name} over Hermes' own wire"
        );
    }
}

#[test]
fn over_the_bridge_a_message_can_be_dropped_changed_or_allowed() {
    let skip = r#"{"action": "skip", "reason": "spam"}"#;
    let rewrite = r#"{"action": "rewrite", "text": "hello"}"#;
    let allow = r#"{"action": "allow"}"#;
    for (printed, expected) in [
        ([skip, rewrite], json!({"action": "skip", "reason": "spam"})),
        ([rewrite, skip], json!({"action": "rewrite", "text": "hello"})),
        ([allow, skip], json!({"action": "allow"})),
    ] {
        assert_eq!(bridge_answer("pre_gateway_dispatch", &printed), Some(expected), "{printed:?}");
    }
}

#[test]
fn over_the_bridge_a_command_can_be_denied_handled_or_changed() {
    let deny = r#"{"decision": "deny", "message": "not you"}"#;
    let handled = r#"{"decision": "handled", "message": "done"}"#;
    let rewrite = r#"{"decision": "rewrite", "command_name": "status", "raw_args": "-v"}"#;
    let allow = r#"{"decision": "allow"}"#;
    for (printed, expected) in [
        ([deny, handled], json!({"decision": "deny", "message": "not you"})),
        ([allow, handled], json!({"decision": "handled", "message": "done"})),
        (
            [rewrite, deny],
            json!({"decision": "rewrite", "command_name": "status", "raw_args": "-v"}),
        ),
    ] {
        assert_eq!(bridge_answer("command:deploy", &printed), Some(expected), "{printed:?}");
    }
    assert_eq!(bridge_answer("agent:start", &[deny]), None, "only commands can be answered");
}

#[test]
fn the_bridge_accepts_answers_that_shell_hooks_do_not() {
    for name in ["pre_tool_call", "transform_tool_result", "pre_gateway_dispatch", "command:x"] {
        let (shell, bridge) = (
            Hermes.capabilities(&event(Wire::Shell, name)),
            Hermes.capabilities(&event(Wire::Bridge, name)),
        );
        assert!(!shell.rewrite && bridge.rewrite, "{name}");
    }
    assert_eq!(Hermes.capabilities(&event(Wire::Bridge, "post_tool_call")), Capabilities::NONE);
}
