//! What Gemini is answered, by event and by the output of several hooks.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Arrival, Dialect, Ending, HookOutput, decode};
use super::Gemini;
use crate::event::{Agent, Event, EventId, Ruling, Time, Verdict, Wire};

fn event(name: &str) -> Event {
    let at = Time::from_micros(1_700_000_000_000_000);
    let payload = json!({
        "hook_event_name": name, "session_id": "s", "tool_name": "write_file", "prompt": "p",
        "tool_input": {"file_path": "a.txt", "content": "c"},
    });
    let raw = payload.to_string().into_bytes();
    let (agent, wire) = (Agent::Gemini, Wire::Shell);
    decode(Arrival { id: EventId::mint(at), at, agent, wire, raw: raw.into(), session_hint: None })
}

/// Gemini's answer if hooks printed these, in this order, each with exit code 0.
fn answer_to(name: &str, printed: &[Value]) -> Option<Value> {
    let event = event(name);
    let verdicts: Vec<Verdict> = printed
        .iter()
        .map(|answer| {
            let stdout = answer.to_string().into_bytes();
            let output = HookOutput { stdout: &stdout, stderr: b"", ending: Ending::Exit(0) };
            Gemini.interpret(event.kind, &output).verdict
        })
        .collect();
    Gemini.encode(&event, &Gemini.merge(&event, &verdicts.iter().collect::<Vec<_>>()))
}

#[test]
fn any_deny_wins_and_all_reasons_are_joined() {
    assert_eq!(
        answer_to(
            "BeforeTool",
            &[
                json!({"decision": "allow", "reason": "fine"}),
                json!({"decision": "block", "reason": "no"})
            ]
        ),
        Some(json!({"decision": "deny", "reason": "fine\nno"})),
    );
}

#[test]
fn ask_beats_allow_and_deny_beats_ask() {
    let (ask, allow, deny) =
        (json!({"decision": "ask"}), json!({"decision": "allow"}), json!({"decision": "deny"}));
    assert_eq!(answer_to("BeforeTool", &[ask.clone(), allow]), Some(json!({"decision": "ask"})));
    assert_eq!(answer_to("BeforeTool", &[ask, deny]), Some(json!({"decision": "deny"})));
}

#[test]
fn the_input_is_always_sent_whole_and_the_last_one_counts() {
    let input = |file: &str| json!({"hookSpecificOutput": {"tool_input": {"file_path": file, "content": "c"}}});
    assert_eq!(
        answer_to("BeforeTool", &[input("one"), input("two")]),
        Some(
            json!({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"file_path": "two", "content": "c"}}})
        ),
    );
    let changed = json!({"decision": "modify", "tool_input": {"file_path": "b.txt"}});
    assert_eq!(
        answer_to("BeforeTool", &[changed]),
        Some(
            json!({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"file_path": "b.txt", "content": "c"}}})
        ),
    );
}

#[test]
fn at_model_events_later_fields_replace_earlier_ones() {
    let deny = json!({"decision": "deny", "reason": "no", "hookSpecificOutput": {"llm_response": {"text": "x"}}});
    assert_eq!(
        answer_to("BeforeModel", &[deny.clone(), json!({"decision": "allow"})]),
        Some(
            json!({"hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_response": {"text": "x"}}})
        )
    );
    assert_eq!(
        answer_to("BeforeModel", &[json!({"decision": "allow"}), deny]),
        Some(
            json!({"decision": "deny", "reason": "no", "hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_response": {"text": "x"}}})
        ),
    );
}

#[test]
fn tool_selection_gets_a_tool_config_or_no_output() {
    let config = |mode: &str, names: &[&str]| json!({"systemMessage": "m", "hookSpecificOutput": {"toolConfig": {"mode": mode, "allowedFunctionNames": names}}});
    let merged = |mode: &str, names: &[&str]| {
        Some(json!({"hookSpecificOutput": {"hookEventName": "BeforeToolSelection",
                    "toolConfig": {"mode": mode, "allowedFunctionNames": names}}}))
    };
    let select = "BeforeToolSelection";
    assert_eq!(answer_to(select, &[json!({})]), None);
    assert_eq!(answer_to(select, &[json!({"decision": "deny", "systemMessage": "m"})]), None);
    assert_eq!(
        answer_to(select, &[config("ANY", &["b"]), config("AUTO", &["a"])]),
        merged("ANY", &["a", "b"])
    );
    assert_eq!(
        answer_to(select, &[config("ANY", &["b"]), config("NONE", &["a"])]),
        merged("NONE", &[])
    );
}

#[test]
fn every_field_that_gemini_acts_on_is_sent() {
    for (name, answer) in [
        (
            "AfterTool",
            json!({"hookSpecificOutput": {"hookEventName": "AfterTool", "tailToolCallRequest": {"name": "read_file", "args": {}}}}),
        ),
        (
            "AfterTool",
            json!({"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "more"}}),
        ),
        (
            "AfterAgent",
            json!({"decision": "deny", "reason": "again", "hookSpecificOutput": {"hookEventName": "AfterAgent", "clearContext": true}}),
        ),
        (
            "AfterModel",
            json!({"hookSpecificOutput": {"hookEventName": "AfterModel", "llm_response": {"candidates": []}}}),
        ),
        (
            "BeforeModel",
            json!({"hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_request": {"model": "m"}}}),
        ),
        ("BeforeAgent", json!({"continue": false, "stopReason": "enough"})),
        ("SessionEnd", json!({"systemMessage": "bye"})),
        (
            "SessionStart",
            json!({"systemMessage": "hello", "suppressOutput": true, "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "c"}}),
        ),
    ] {
        assert_eq!(answer_to(name, std::slice::from_ref(&answer)), Some(answer), "{name}");
    }
}

#[test]
fn exit_codes_and_plain_text_are_read_as_gemini_reads_them() {
    let read = |stdout: &str, stderr: &str, ending| {
        let output = HookOutput { stdout: stdout.as_bytes(), stderr: stderr.as_bytes(), ending };
        Gemini.interpret(event("BeforeTool").kind, &output)
    };
    let deny = Some(Ruling::Block);
    for (stdout, stderr, exit, ruling, failed) in [
        ("plain", "", 0, None, false),
        ("plain", "", 1, None, true),
        ("plain", "", 2, deny, false),
        ("", "not found", 127, deny, false),
        ("", "", 2, None, true),
        (r#"{"decision":"allow"}"#, "", 2, Some(Ruling::Allow), false),
        (r#"{"decision":"deny"}"#, "", 1, deny, true),
        ("", r#"{"decision":"deny"}"#, 0, deny, false),
        (r#""{\"decision\":\"deny\"}""#, "", 0, deny, false),
        ("42", "", 0, None, false),
        ("noise {\"decision\":\"deny\"}", "", 0, None, false),
    ] {
        let interpretation = read(stdout, stderr, Ending::Exit(exit));
        assert_eq!(interpretation.verdict.ruling, ruling, "{stdout} {stderr} {exit}");
        assert_eq!(interpretation.failure.is_some(), failed, "{stdout} {stderr} {exit}");
    }
    let both = read("out", "err", Ending::Exit(2));
    assert_eq!(both.verdict.reason.as_deref(), Some("out"), "stdout comes first");
    assert!(read("", "", Ending::Signal(9)).failure.is_some());
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let text = || prop::option::of("[a-z]{0,5}");
    let ruling =
        prop::option::of(prop::sample::select(vec![Ruling::Allow, Ruling::Ask, Ruling::Block]));
    (ruling, text(), any::<bool>(), text(), text()).prop_map(
        |(ruling, reason, stop, context, notice)| Verdict {
            ruling,
            reason,
            stop,
            stop_reason: None,
            context,
            rewrite: None,
            notice,
            quiet: false,
            own: Map::new(),
        },
    )
}

proptest! {
    #[test]
    fn a_denied_tool_stays_denied_whatever_other_hooks_answer(
        before in prop::collection::vec(any_verdict(), 0..4),
        after in prop::collection::vec(any_verdict(), 0..4),
    ) {
        let denial = Verdict::block("no");
        let all: Vec<&Verdict> = before.iter().chain([&denial]).chain(&after).collect();
        let event = event("BeforeTool");
        let answer = Gemini.encode(&event, &Gemini.merge(&event, &all)).expect("an answer");
        prop_assert_eq!(&answer["decision"], &json!("deny"));
        prop_assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("no")));
    }
}
