//! The real Hermes with `hookbus hook hermes` as a shell hook on every event: the policy takes effect, and every
//! event is in the log.

use hookbus_tests::agents::{Hermes, Run, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{
    Agent, RecordedEvent, Recorder, decisions_on, leaves_a_daemon_behind, recorded_events,
    under_policy,
};
use serde_json::{Value, json};

/// Runs Hermes, which makes `made.txt` with the shell.
fn hermes(home: &Home) -> Run {
    Hermes::working("hermes").through_everywhere(home, "off").go()
}

/// Edits a file, so that `pre_verify` fires, and answers again if it is told to continue.
fn edit_script() -> Vec<Step> {
    let edit = json!({"path": "edited.txt", "content": "edited\n"});
    vec![Step::tool("write_file", edit), Step::text("Done."), Step::text("The tests pass.")]
}

/// The verdict of the only hook on the only tool call.
fn verdict(home: &Home) -> Value {
    decisions_on(home, "hermes", "pre_tool_call")[0]["verdicts"][0].clone()
}

/// A decision without times.
fn without_times(mut decision: Value) -> Value {
    let verdicts = decision["verdicts"].as_array_mut().into_iter().flatten();
    verdicts.for_each(|verdict| verdict["ms"] = Value::Null);
    decision["ms"] = Value::Null;
    decision
}

#[test]
fn a_rule_for_shells_blocks_the_terminal_and_the_model_gets_the_reason() {
    let home = Home::with_hooks(
        "hooks:
  tool.before:
    - name: no-files
      tool: shell
      rule: { when: { command: 'made\\.txt' }, block: files need a person }
",
    );
    let run = hermes(&home);
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let last = run.outcome().requests[1].conversation.last().cloned();
    assert!(format!("{last:?}").contains("files need a person"), "{last:?}");

    let events = recorded_events(&home, "hermes");
    let call =
        events.iter().find(|recorded| recorded.name() == "pre_tool_call").expect("a tool call");
    let decision = call.decision.clone().expect("a decision about it");
    assert_eq!(decision["payload"]["outcome"], "block");
    assert_eq!(decision["cause"], call.event["seq"]);
    assert_eq!(verdict(&home)["hook"], "no-files");
    assert!(home.is_sound());
}

#[test]
fn a_rule_that_does_not_apply_changes_nothing() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: shutdown }, block: no } }] }",
    );
    assert_eq!(hermes(&home).outcome(), Hermes::working("without hooks").go().outcome());
    assert!(!recorded_events(&home, "hermes").is_empty() && home.decisions().is_empty());
}

#[test]
fn context_of_a_rule_at_the_start_of_a_turn_is_in_the_request_to_the_model() {
    let home =
        Home::with_hooks("hooks: { turn.start: [{ rule: { context: the moon is green } }] }");
    let run = hermes(&home);
    assert!(run.requests[0].to_string().contains("the moon is green"));
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    assert_eq!(decisions_on(&home, "hermes", "pre_llm_call")[0]["outcome"], "context");
}

#[test]
fn a_command_at_the_end_makes_the_agent_continue_once() {
    let home = Home::new();
    let once = home.script(
        "once",
        "#!/bin/sh\n[ -e \"$0.done\" ] && exit\n: > \"$0.done\"\n\
         echo '{\"action\":\"continue\",\"message\":\"run the tests\"}'\n",
    );
    home.write_hooks(&format!("hooks: {{ turn.verify: [{{ command: {once} }}] }}"));
    let run =
        Hermes::working("verify").playing(edit_script()).through_everywhere(&home, "off").go();
    assert_eq!((run.exit, run.steps_left), (Some(0), 0));
    let last = run.requests.last().expect("a request").to_string();
    assert!(last.contains("run the tests"), "{last}");
    assert!(run.stdout.contains("The tests pass."), "{}", run.stdout);
    let outcomes = decisions_on(&home, "hermes", "pre_verify");
    let outcomes: Vec<&Value> = outcomes.iter().map(|decision| &decision["outcome"]).collect();
    assert_eq!(outcomes, ["block", "none"]);
}

#[test]
fn a_rewrite_that_hermes_does_not_accept_becomes_a_block_with_a_note() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { rewrite: { command: 'true' } } }] }",
    );
    let run = hermes(&home);
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert!(run.requests[1].to_string().contains("wanted another tool input"));
    let verdict = verdict(&home);
    assert_eq!(verdict["rewrite"], json!({"command": "true"}));
    let note = verdict["note"].as_str().expect("a note");
    assert!(note.contains("blocked instead"), "{note}");
}

#[test]
fn a_rewrite_that_hermes_does_not_accept_is_left_out_if_on_failure_is_allow() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, on_failure: allow, rule: { rewrite: { command: 'true' } } }] }",
    );
    let run = hermes(&home);
    assert_eq!(run.outcome(), Hermes::working("without hooks").go().outcome());
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    let verdict = verdict(&home);
    let note = verdict["note"].as_str().expect("a note");
    assert!(note.contains("left out"), "{note}");
}

#[test]
fn the_log_holds_every_event_in_order_byte_for_byte_with_its_decision() {
    let home = Home::with_hooks("hooks: { '*': [{ rule: { allow: true } }] }");
    let recorder = Recorder::beside(&home);
    let make = json!({"command": "echo made > made.txt"});
    let script = [vec![Step::tool("terminal", make)], edit_script()].concat();
    let run = Hermes::working("watched")
        .playing(script)
        .through_everywhere(&home, "off")
        .watched_by(&recorder)
        .go();
    assert_eq!(run.exit, Some(0));

    let (events, seen) = (recorded_events(&home, "hermes"), recorder.seen());
    let logged: Vec<&str> = events.iter().map(RecordedEvent::name).collect();
    assert_eq!(logged, recorder.names());
    assert!(logged.contains(&"pre_verify") && logged.len() == 20, "{logged:?}");
    for (recorded, payload) in events.iter().zip(&seen) {
        assert_eq!(&recorded.payload(&home), payload, "{} byte for byte", recorded.name());
        let verdict = &recorded.decided()["verdicts"][0]["verdict"];
        assert_eq!(verdict, "allow", "{} has a decision", recorded.name());
    }
    let rows = home.log(&["--agent", "hermes"]);
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
        let (run, home) = under_policy::<Hermes>(policy, daemon);
        let decided: Vec<(String, Value)> = recorded_events(&home, "hermes")
            .iter()
            .map(|recorded| (recorded.name().to_owned(), without_times(recorded.decided())))
            .collect();
        (run.outcome(), decided)
    };
    let (outcome, decided) = run("off");
    assert_eq!(outcome.files.get("made.txt"), None);
    assert_eq!((outcome, decided), run("running"));
}

#[test]
fn the_first_hook_starts_a_daemon_and_the_agent_does_not_wait_for_it() {
    let (output, home) = leaves_a_daemon_behind::<Hermes>();
    // Hermes reads a hook's output to its end; a daemon that kept it open would cause a timeout.
    assert!(!output.contains("shell hook timed out"), "{output}");
    let last = recorded_events(&home, "hermes").last().map(|last| last.name().to_owned());
    assert_eq!(last.as_deref(), Some("on_session_finalize"));
}
