//! The real Gemini CLI with `hookbus hook gemini` as a hook on every event: the policy takes effect, and every
//! event is in the log.

use hookbus_tests::agents::{ConversationPart, Gemini, Run, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{
    Agent, RecordedEvent, Recorder, decisions_on, leaves_a_daemon_behind, recorded_events,
    under_policy,
};
use serde_json::{Value, json};

/// Runs Gemini, which makes `made.txt` with the shell, with these hooks of the bus.
fn gemini(hooks: &str) -> (Run, Home) {
    let home = Home::with_hooks(hooks);
    let run = Gemini::working("gemini").through_everywhere(&home, "off").go();
    (run, home)
}

/// Runs Gemini with this script and one command hook, a shell script with these lines.
fn gemini_with(event: &str, lines: &str, script: Vec<Step>) -> (Run, Home) {
    let home = Home::new();
    let hook = home.script("hook", &format!("#!/bin/sh\ncat > /dev/null\n{lines}\n"));
    home.write_hooks(&format!("hooks: {{ {event}: [{{ command: {hook} }}] }}"));
    let run = Gemini::working(event).playing(script).through_everywhere(&home, "off").go();
    (run, home)
}

/// The last result of a tool that the model got.
fn last_tool_result(run: &Run) -> String {
    let outcome = run.outcome();
    let parts = outcome.requests.iter().flat_map(|request| &request.conversation);
    let mut results = parts.filter_map(|part| match part {
        ConversationPart::Result { content, .. } => Some(content.to_string()),
        ConversationPart::System(_)
        | ConversationPart::Text { .. }
        | ConversationPart::Call { .. } => None,
    });
    results.next_back().unwrap_or_default()
}

fn outcomes(home: &Home, event: &str) -> Vec<Value> {
    let decisions = decisions_on(home, "gemini", event);
    decisions.iter().map(|decision| decision["outcome"].clone()).collect()
}

#[test]
fn hooks_without_an_answer_do_not_change_the_run() {
    let (run, home) = gemini("hooks: { '*': [{ rule: { allow: true } }] }");
    let plain = Gemini::working("without hooks").go().outcome();
    let outcome = run.outcome();
    assert_eq!(outcome.notices, plain.notices, "nothing more on stderr");
    for (request, expected) in outcome.requests.iter().zip(&plain.requests) {
        assert_eq!(request.settings.get("toolConfig"), expected.settings.get("toolConfig"));
    }
    assert_eq!(outcome, plain);
    let selection = decisions_on(&home, "gemini", "BeforeToolSelection");
    assert!(selection.len() == 2 && selection[0]["answer"].is_null(), "{selection:?}");
}

#[test]
fn a_rule_for_shells_blocks_the_command_and_the_model_gets_the_reason() {
    let (run, home) = gemini(
        "hooks:
  tool.before:
    - name: no-files
      tool: shell
      rule: { when: { command: 'made\\.txt' }, block: files need a person }
",
    );
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert!(last_tool_result(&run).contains("files need a person"), "{}", last_tool_result(&run));
    let events = recorded_events(&home, "gemini");
    let call = events.iter().find(|recorded| recorded.name() == "BeforeTool").expect("a tool call");
    let decision = call.decision.clone().expect("a decision about it");
    assert_eq!(decision["payload"]["outcome"], "block");
    assert_eq!(decision["payload"]["verdicts"][0]["hook"], "no-files");
    assert_eq!(decision["cause"], call.event["seq"]);
    assert!(home.is_sound());
}

#[test]
fn context_for_a_session_a_turn_and_a_result_reaches_the_model() {
    let (run, _home) = gemini(
        "hooks:
  session.start: [{ rule: { context: the moon is green } }]
  turn.start: [{ rule: { context: the sun is blue } }]
  tool.after: [{ rule: { context: the sea is red } }]
",
    );
    let first = run.requests[0].to_string();
    assert!(first.contains("the moon is green") && first.contains("the sun is blue"), "{first}");
    assert!(last_tool_result(&run).contains("it is made"), "{}", last_tool_result(&run));
    assert!(run.requests[1].to_string().contains("the sea is red"), "{}", run.requests[1]);
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
}

#[test]
fn a_rewrite_changes_the_command_that_runs() {
    let (run, home) = gemini(
        "hooks: { tool.before: [{ tool: shell, rule: { rewrite: { command: echo > other.txt } } }] }",
    );
    assert_eq!(run.file("made.txt"), None);
    assert_eq!(run.file("other.txt").as_deref(), Some("\n"));
    assert_eq!(outcomes(&home, "BeforeTool"), ["rewrite"]);
}

#[test]
fn a_rewrite_of_one_argument_keeps_the_others() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: file.write, rule: { rewrite: { file_path: other.txt } } }] }",
    );
    let write = json!({"file_path": "made.txt", "content": "as the model wrote it\n"});
    let script = vec![Step::tool("write_file", write), Step::text("Done.")];
    let run = Gemini::working("rewrite").playing(script).through_everywhere(&home, "off").go();
    assert_eq!(run.file("made.txt"), None);
    assert_eq!(run.file("other.txt").as_deref(), Some("as the model wrote it\n"));
}

#[test]
fn a_stop_ends_the_run() {
    let (run, home) = gemini("hooks: { tool.before: [{ rule: { stop: enough for today } }] }");
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert_eq!((run.requests.len(), run.steps_left), (1, 1));
    assert!(run.stderr.contains("enough for today"), "{}", run.stderr);
    assert_eq!(outcomes(&home, "BeforeTool"), ["stop"]);
}

#[test]
fn a_question_that_cannot_be_asked_becomes_a_block_and_the_turn_continues() {
    let (run, home) = gemini("hooks: { tool.before: [{ rule: { ask: shall it be made? } }] }");
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let result = last_tool_result(&run);
    assert!(result.contains("shall it be made? (no person can be asked here"), "{result}");
    assert!(run.stdout.contains("Done."), "{}", run.stdout);
    let decision = &decisions_on(&home, "gemini", "BeforeTool")[0];
    assert_eq!(decision["outcome"], "block");
    let note = decision["verdicts"][0]["note"].as_str().expect("a note");
    assert!(note.contains("no person can be asked: blocked instead"), "{note}");
}

#[test]
fn a_choice_of_tools_is_in_the_request() {
    let config = json!({"mode": "ANY", "allowedFunctionNames": ["read_file"]});
    let answer = json!({"hookSpecificOutput": {"toolConfig": config}});
    let (run, _home) =
        gemini_with("tool.select", &format!("echo '{answer}'"), vec![Step::text("Done.")]);
    let settings = &run.outcome().requests[0].settings;
    assert_eq!(settings["toolConfig"]["functionCallingConfig"], config, "{settings}");
}

#[test]
fn a_hook_can_answer_instead_of_the_model() {
    let content = json!({"role": "model", "parts": ["Answer of a hook."]});
    let response = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
    let answer = json!({
        "decision": "deny", "reason": "no model today",
        "hookSpecificOutput": {"llm_response": response},
    });
    let (run, home) =
        gemini_with("model.before", &format!("echo '{answer}'"), vec![Step::text("Done.")]);
    assert_eq!((run.exit, run.requests.len()), (Some(0), 0));
    assert!(run.stdout.contains("Answer of a hook."), "{}", run.stdout);
    assert_eq!(outcomes(&home, "BeforeModel"), ["block"]);
}

#[test]
fn a_hook_can_request_another_tool_call_after_one() {
    let write = json!({"file_path": "tail.txt", "content": "by the hook\n"});
    let tail = json!({"name": "write_file", "args": write});
    let answer = json!({"hookSpecificOutput": {"tailToolCallRequest": tail}});
    // Only once, or the second call would request a third one.
    let lines = format!("[ -e \"$0.done\" ] || {{ : > \"$0.done\"; echo '{answer}'; }}");
    let make = json!({"command": "echo made > made.txt"});
    let script = vec![Step::tool("run_shell_command", make), Step::text("Done.")];
    let (run, home) = gemini_with("tool.after", &lines, script);
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    assert_eq!(run.file("tail.txt").as_deref(), Some("by the hook\n"));
    assert!(last_tool_result(&run).contains("tail.txt"), "{}", last_tool_result(&run));
    assert_eq!(outcomes(&home, "AfterTool"), ["rewrite", "none"]);
}

#[test]
fn a_hook_can_make_the_agent_continue_with_an_empty_context() {
    let answer = json!({
        "decision": "deny", "reason": "start over", "hookSpecificOutput": {"clearContext": true},
    });
    let lines = format!("[ -e \"$0.done\" ] || {{ : > \"$0.done\"; echo '{answer}'; }}");
    let script = vec![Step::text("Nonsense."), Step::text("Done.")];
    let (run, home) = gemini_with("turn.end", &lines, script);
    assert_eq!((run.exit, run.requests.len()), (Some(0), 2));
    let last = run.requests[1].to_string();
    assert!(last.contains("start over") && !last.contains("Nonsense."), "{last}");
    assert_eq!(outcomes(&home, "AfterAgent"), ["block", "none"]);
}

#[test]
fn a_hook_that_always_makes_the_agent_continue_is_stopped_at_the_limit() {
    let home = Home::with_hooks(
        "max_continuations: 2\nhooks: { turn.end: [{ rule: { block: not good enough } }] }",
    );
    let script = (1..9).map(|round| Step::text(&format!("Answer {round}."))).collect();
    let run = Gemini::working("runaway").playing(script).through_everywhere(&home, "off").go();
    assert_eq!((run.exit, run.requests.len()), (Some(0), 3), "{}", run.stderr);
    assert_eq!(outcomes(&home, "AfterAgent"), ["block", "block", "none"]);
    let last = &decisions_on(&home, "gemini", "AfterAgent")[2];
    let note = last["note"].as_str().expect("a note");
    assert!(note.contains("max_continuations"), "{note}");
}

#[test]
fn the_log_holds_every_event_in_order_byte_for_byte_with_its_decision() {
    let home = Home::with_hooks("hooks: { '*': [{ rule: { allow: true } }] }");
    let recorder = Recorder::beside(&home);
    let agent = Gemini::working("watched").through_everywhere(&home, "off");
    let run = agent.watched_by(&recorder).go();
    assert_eq!(run.exit, Some(0));

    // Gemini CLI runs both hooks of an event concurrently, but one event after the other.
    let (events, seen) = (recorded_events(&home, "gemini"), recorder.seen());
    let logged: Vec<&str> = events.iter().map(RecordedEvent::name).collect();
    assert_eq!(logged, recorder.names());
    for event in Gemini::EVENTS.iter().filter(|event| **event != "Notification") {
        assert!(logged.contains(event), "{event} is not in {logged:?}");
    }
    for (recorded, payload) in events.iter().zip(&seen) {
        assert_eq!(&recorded.payload(&home), payload, "{} byte for byte", recorded.name());
        let verdict = &recorded.decided()["verdicts"][0]["verdict"];
        assert_eq!(verdict, "allow", "{} has a decision", recorded.name());
    }
    let rows = home.log(&["--agent", "gemini"]);
    assert_eq!(rows.len(), 2 * events.len(), "nothing else is in the log");
    assert!(home.is_sound());
}

#[test]
fn a_policy_has_the_same_effect_with_and_without_a_daemon() {
    let policy = "hooks:
  turn.start: [{ rule: { context: the moon is green } }]
  tool.before: [{ tool: shell, rule: { when: { command: made }, block: not today } }]
";
    let run = |daemon| {
        let (run, home) = under_policy::<Gemini>(policy, daemon);
        let events = recorded_events(&home, "gemini");
        let names: Vec<String> = events.iter().map(|recorded| recorded.name().to_owned()).collect();
        (run.outcome(), names)
    };
    let (outcome, names) = run("off");
    assert_eq!(outcome.files.get("made.txt"), None);
    assert_eq!((outcome, names), run("running"));
}

#[test]
fn the_first_hook_starts_a_daemon_and_the_agent_does_not_wait_for_it() {
    let (output, _home) = leaves_a_daemon_behind::<Gemini>();
    // Gemini reads a hook's output to its end; a daemon that kept it open would make the hook fail.
    assert!(!output.contains("failed for event"), "{output}");
}
