//! Real Hermes with `hookbus hook hermes` on every one of its events: what a policy says happens, and
//! what happened is in the log.

use hookbus_tests::agents::{Hermes, Run, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{
    Agent, Firing, Recorder, decisions_on, firings, leaves_a_daemon_behind, under_policy,
};
use serde_json::{Value, json};

/// Makes `made.txt` with the shell, in the presence of the bus.
fn hermes(home: &Home) -> Run {
    Hermes::working("hermes").through_everywhere(home, "off").go()
}

/// Edits a file, so that `pre_verify` fires, and has more to say if it is sent on.
fn an_edit() -> Vec<Step> {
    let edit = json!({"path": "edited.txt", "content": "edited\n"});
    vec![Step::tool("write_file", edit), Step::text("Done."), Step::text("The tests pass.")]
}

/// The verdict of the only hook on the only tool call.
fn verdict(home: &Home) -> Value {
    decisions_on(home, "hermes", "pre_tool_call")[0]["verdicts"][0].clone()
}

/// A decision without what takes another time each time.
fn timeless(mut decision: Value) -> Value {
    let verdicts = decision["verdicts"].as_array_mut().into_iter().flatten();
    verdicts.for_each(|verdict| verdict["ms"] = Value::Null);
    decision["ms"] = Value::Null;
    decision
}

#[test]
fn a_rule_for_shells_keeps_the_terminal_from_running_and_the_model_hears_why() {
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
    let heard = run.outcome().requests[1].said.last().cloned();
    assert!(format!("{heard:?}").contains("files need a person"), "{heard:?}");

    let calls = firings(&home, "hermes");
    let call = calls.iter().find(|firing| firing.name() == "pre_tool_call").expect("a tool call");
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
    assert!(!firings(&home, "hermes").is_empty() && home.decisions().is_empty());
}

#[test]
fn context_from_a_rule_at_the_start_of_a_turn_is_in_the_models_request() {
    let home =
        Home::with_hooks("hooks: { turn.start: [{ rule: { context: the moon is green } }] }");
    let run = hermes(&home);
    assert!(run.requests[0].to_string().contains("the moon is green"));
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    assert_eq!(decisions_on(&home, "hermes", "pre_llm_call")[0]["outcome"], "context");
}

#[test]
fn a_command_before_the_end_makes_the_agent_go_on_once() {
    let home = Home::new();
    let once = home.script(
        "once",
        "#!/bin/sh\n[ -e \"$0.said\" ] && exit\n: > \"$0.said\"\n\
         echo '{\"action\":\"continue\",\"message\":\"run the tests\"}'\n",
    );
    home.write_hooks(&format!("hooks: {{ turn.verify: [{{ command: {once} }}] }}"));
    let run = Hermes::working("verify").playing(an_edit()).through_everywhere(&home, "off").go();
    assert_eq!((run.exit, run.steps_left), (Some(0), 0));
    let last = run.requests.last().expect("a request").to_string();
    assert!(last.contains("run the tests"), "{last}");
    assert!(run.stdout.contains("The tests pass."), "{}", run.stdout);
    let outcomes = decisions_on(&home, "hermes", "pre_verify");
    let outcomes: Vec<&Value> = outcomes.iter().map(|decision| &decision["outcome"]).collect();
    assert_eq!(outcomes, ["block", "none"]);
}

#[test]
fn a_rewrite_that_hermes_cannot_take_becomes_a_block_and_says_so() {
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
fn a_rewrite_that_may_be_left_out_is_left_out_and_says_so() {
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
fn the_log_holds_every_firing_in_order_as_it_came_each_with_its_decision() {
    let home = Home::with_hooks("hooks: { '*': [{ rule: { allow: true } }] }");
    let recorder = Recorder::beside(&home);
    let make = json!({"command": "echo made > made.txt"});
    let script = [vec![Step::tool("terminal", make)], an_edit()].concat();
    let run = Hermes::working("watched")
        .playing(script)
        .through_everywhere(&home, "off")
        .watched_by(&recorder)
        .go();
    assert_eq!(run.exit, Some(0));

    let (firings, seen) = (firings(&home, "hermes"), recorder.seen());
    let logged: Vec<&str> = firings.iter().map(Firing::name).collect();
    assert_eq!(logged, recorder.names());
    assert!(logged.contains(&"pre_verify") && logged.len() == 20, "{logged:?}");
    for (firing, payload) in firings.iter().zip(&seen) {
        assert_eq!(&firing.payload(&home), payload, "{} is kept byte for byte", firing.name());
        let verdict = &firing.decided()["verdicts"][0]["verdict"];
        assert_eq!(verdict, "allow", "{} was decided on", firing.name());
    }
    let rows = home.log(&["--agent", "hermes"]);
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
        let (run, home) = under_policy::<Hermes>(policy, daemon);
        let decided: Vec<(String, Value)> = firings(&home, "hermes")
            .iter()
            .map(|firing| (firing.name().to_owned(), timeless(firing.decided())))
            .collect();
        (run.outcome(), decided)
    };
    let (outcome, decided) = play("off");
    assert_eq!(outcome.files.get("made.txt"), None);
    assert_eq!((outcome, decided), play("running"));
}

#[test]
fn the_first_hook_starts_a_daemon_and_the_agent_does_not_wait_for_its_end() {
    let (said, home) = leaves_a_daemon_behind::<Hermes>();
    // Hermes waits for the end of a hook's streams; a daemon that held one would time it out.
    assert!(!said.contains("shell hook timed out"), "{said}");
    let last = firings(&home, "hermes").last().map(|last| last.name().to_owned());
    assert_eq!(last.as_deref(), Some("on_session_finalize"));
}
