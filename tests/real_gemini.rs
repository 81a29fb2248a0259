//! Real Gemini CLI with `hookbus hook gemini` on every one of its events: what a policy says happens,
//! and what happened is in the log.

use hookbus_tests::agents::{Gemini, Run, Said, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{
    Agent, Firing, Recorder, decisions_on, firings, leaves_a_daemon_behind, under_policy,
};
use serde_json::{Value, json};

/// Makes `made.txt` with the shell, in the presence of a bus with these hooks.
fn gemini(hooks: &str) -> (Run, Home) {
    let home = Home::with_hooks(hooks);
    let run = Gemini::working("gemini").through_everywhere(&home, "off").go();
    (run, home)
}

/// The same with one command hook, which does these lines of shell.
fn gemini_with(event: &str, lines: &str, script: Vec<Step>) -> (Run, Home) {
    let home = Home::new();
    let hook = home.script("hook", &format!("#!/bin/sh\ncat > /dev/null\n{lines}\n"));
    home.write_hooks(&format!("hooks: {{ {event}: [{{ command: {hook} }}] }}"));
    let run = Gemini::working(event).playing(script).through_everywhere(&home, "off").go();
    (run, home)
}

/// The last thing the model was told about a tool.
fn result(run: &Run) -> String {
    let outcome = run.outcome();
    let said = outcome.requests.iter().flat_map(|request| &request.said);
    let mut results = said.filter_map(|said| match said {
        Said::Result { content, .. } => Some(content.to_string()),
        Said::System(_) | Said::Text { .. } | Said::Call { .. } => None,
    });
    results.next_back().unwrap_or_default()
}

fn outcomes(home: &Home, event: &str) -> Vec<Value> {
    let decisions = decisions_on(home, "gemini", event);
    decisions.iter().map(|decision| decision["outcome"].clone()).collect()
}

#[test]
fn hooks_with_nothing_to_say_leave_no_trace_on_the_agent() {
    let (run, home) = gemini("hooks: { '*': [{ rule: { allow: true } }] }");
    let plain = Gemini::working("without hooks").go().outcome();
    let outcome = run.outcome();
    assert_eq!(outcome.notices, plain.notices, "not a word on stderr");
    for (request, same) in outcome.requests.iter().zip(&plain.requests) {
        assert_eq!(request.settings.get("toolConfig"), same.settings.get("toolConfig"));
    }
    assert_eq!(outcome, plain);
    let selection = decisions_on(&home, "gemini", "BeforeToolSelection");
    assert!(selection.len() == 2 && selection[0]["answer"].is_null(), "{selection:?}");
}

#[test]
fn a_rule_for_shells_keeps_the_command_from_running_and_the_model_hears_why() {
    let (run, home) = gemini(
        "hooks:
  tool.before:
    - name: no-files
      tool: shell
      rule: { when: { command: 'made\\.txt' }, block: files need a person }
",
    );
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert!(result(&run).contains("files need a person"), "{}", result(&run));
    let calls = firings(&home, "gemini");
    let call = calls.iter().find(|firing| firing.name() == "BeforeTool").expect("a tool call");
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
    assert!(result(&run).contains("it is made"), "{}", result(&run));
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
fn a_question_that_nobody_can_be_asked_is_a_block_and_not_the_silent_end() {
    let (run, home) = gemini("hooks: { tool.before: [{ rule: { ask: shall it be made? } }] }");
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let told = result(&run);
    assert!(told.contains("shall it be made? (nobody can be asked here"), "{told}");
    assert!(run.stdout.contains("Done."), "the turn goes on: {}", run.stdout);
    let decision = &decisions_on(&home, "gemini", "BeforeTool")[0];
    assert_eq!(decision["outcome"], "block");
    let note = decision["verdicts"][0]["note"].as_str().expect("a note");
    assert!(note.contains("nobody can be: blocked instead"), "{note}");
}

#[test]
fn a_choice_of_tools_reaches_the_request() {
    let config = json!({"mode": "ANY", "allowedFunctionNames": ["read_file"]});
    let answer = json!({"hookSpecificOutput": {"toolConfig": config}});
    let (run, _home) =
        gemini_with("tool.select", &format!("echo '{answer}'"), vec![Step::text("Done.")]);
    let asked = &run.outcome().requests[0].settings;
    assert_eq!(asked["toolConfig"]["functionCallingConfig"], config, "{asked}");
}

#[test]
fn a_hook_can_answer_in_the_models_place() {
    let content = json!({"role": "model", "parts": ["Played by a hook."]});
    let response = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
    let answer = json!({
        "decision": "deny", "reason": "no model today",
        "hookSpecificOutput": {"llm_response": response},
    });
    let (run, home) =
        gemini_with("model.before", &format!("echo '{answer}'"), vec![Step::text("Done.")]);
    assert_eq!((run.exit, run.requests.len()), (Some(0), 0));
    assert!(run.stdout.contains("Played by a hook."), "{}", run.stdout);
    assert_eq!(outcomes(&home, "BeforeModel"), ["block"]);
}

#[test]
fn a_hook_can_have_another_tool_run_after_one() {
    let write = json!({"file_path": "tail.txt", "content": "by the hook\n"});
    let tail = json!({"name": "write_file", "args": write});
    let answer = json!({"hookSpecificOutput": {"tailToolCallRequest": tail}});
    // Only after the shell, or the tail would have a tail of its own.
    let lines = format!("[ -e \"$0.said\" ] || {{ : > \"$0.said\"; echo '{answer}'; }}");
    let make = json!({"command": "echo made > made.txt"});
    let script = vec![Step::tool("run_shell_command", make), Step::text("Done.")];
    let (run, home) = gemini_with("tool.after", &lines, script);
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    assert_eq!(run.file("tail.txt").as_deref(), Some("by the hook\n"));
    assert!(result(&run).contains("tail.txt"), "{}", result(&run));
    assert_eq!(outcomes(&home, "AfterTool"), ["rewrite", "none"]);
}

#[test]
fn a_hook_can_send_the_agent_on_with_a_clear_head() {
    let answer = json!({
        "decision": "deny", "reason": "start over", "hookSpecificOutput": {"clearContext": true},
    });
    let lines = format!("[ -e \"$0.said\" ] || {{ : > \"$0.said\"; echo '{answer}'; }}");
    let script = vec![Step::text("Nonsense."), Step::text("Done.")];
    let (run, home) = gemini_with("turn.end", &lines, script);
    assert_eq!((run.exit, run.requests.len()), (Some(0), 2));
    let last = run.requests[1].to_string();
    assert!(last.contains("start over") && !last.contains("Nonsense."), "{last}");
    assert_eq!(outcomes(&home, "AfterAgent"), ["block", "none"]);
}

#[test]
fn a_hook_that_never_lets_the_agent_finish_is_ended_by_the_bus() {
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
fn the_log_holds_every_firing_in_order_as_it_came_each_with_its_decision() {
    let home = Home::with_hooks("hooks: { '*': [{ rule: { allow: true } }] }");
    let recorder = Recorder::beside(&home);
    let agent = Gemini::working("watched").through_everywhere(&home, "off");
    let run = agent.watched_by(&recorder).go();
    assert_eq!(run.exit, Some(0));

    // Gemini CLI runs us and the recorder side by side, but one event after the other.
    let (firings, seen) = (firings(&home, "gemini"), recorder.seen());
    let logged: Vec<&str> = firings.iter().map(Firing::name).collect();
    assert_eq!(logged, recorder.names());
    for event in Gemini::EVENTS.iter().filter(|event| **event != "Notification") {
        assert!(logged.contains(event), "{event} is not in {logged:?}");
    }
    for (firing, payload) in firings.iter().zip(&seen) {
        assert_eq!(&firing.payload(&home), payload, "{} is kept byte for byte", firing.name());
        let verdict = &firing.decided()["verdicts"][0]["verdict"];
        assert_eq!(verdict, "allow", "{} was decided on", firing.name());
    }
    let rows = home.log(&["--agent", "gemini"]);
    assert_eq!(rows.len(), 2 * firings.len(), "nothing else is in the log");
    assert!(home.is_sound());
}

#[test]
fn a_policy_holds_the_same_with_a_daemon_and_without() {
    let policy = "hooks:
  turn.start: [{ rule: { context: the moon is green } }]
  tool.before: [{ tool: shell, rule: { when: { command: made }, block: not today } }]
";
    let play = |daemon| {
        let (run, home) = under_policy::<Gemini>(policy, daemon);
        let firings = firings(&home, "gemini");
        let names: Vec<String> = firings.iter().map(|firing| firing.name().to_owned()).collect();
        (run.outcome(), names)
    };
    let (outcome, names) = play("off");
    assert_eq!(outcome.files.get("made.txt"), None);
    assert_eq!((outcome, names), play("running"));
}

#[test]
fn the_first_hook_starts_a_daemon_and_the_agent_does_not_wait_for_its_end() {
    let (said, _home) = leaves_a_daemon_behind::<Gemini>();
    // Gemini waits for the end of a hook's streams; a daemon that held one would fail the hook.
    assert!(!said.contains("failed for event"), "{said}");
}
