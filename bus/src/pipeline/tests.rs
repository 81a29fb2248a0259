//! Any bytes give a recorded event and a valid answer, a retry gets the recorded answer, and a broken hooks
//! file falls back to its last good version.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::dialect::derive;
use crate::event::{Clock, SystemClock};
use crate::log::{Query, ReadError, Row, VerifyOptions, verify};

const HOOKS: &str = "hooks:\n  '*':\n    - rule: {when: {command: rm}, block: no}\n      on_failure: block\n  \
                     turn.start:\n    - rule: {context: news}\n";

/// Hooks in shadow mode that would change every answer, to be added to [`HOOKS`].
const SHADOW_HOOKS: &str = "    - { mode: shadow, rule: {context: more} }
  tool.before:
    - { mode: shadow, on_failure: block, command: /nonexistent }
    - { mode: shadow, rule: {block: never}, sequential: true }
    - { mode: shadow, rule: {ask: sure?} }
    - { mode: shadow, rule: {rewrite: {command: ls}} }
    - { mode: shadow, rule: {stop: now} }
";

/// Sends these payloads to a new bus with these hooks; returns the answers and the rows of the log.
fn handle_all(hooks: &str, payloads: &[(Agent, Vec<u8>)]) -> (Vec<Answer>, Vec<Row>) {
    let home = tempfile::tempdir().expect("a scratch home");
    std::fs::write(home.path().join("hookbus.yaml"), hooks).expect("hooks");
    let bus = Bus::for_client(home.path(), &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answers = runtime.expect("a runtime").block_on(async {
        let mut answers = Vec::new();
        for (agent, raw) in payloads {
            let at = bus.clock.now();
            let (id, raw, deadline) =
                (EventId::mint(at), raw.clone().into(), Duration::from_secs(5));
            let caller = Caller::default();
            let call = Call { id, at, agent: *agent, raw, caller, deadline };
            answers.push(handle(call, &bus).await);
        }
        answers
    });
    let verified =
        verify(&bus.log, VerifyOptions::default(), &derive, |_| {}).expect("a readable log");
    assert!(verified.is_sound(), "{verified:?}");
    let mut rows = Vec::new();
    let log = LogReader::open(&bus.log).expect("a log");
    log.each(&Query::default(), None, |row| {
        rows.push(row);
        Ok::<_, ReadError>(())
    })
    .expect("a readable log");
    (answers, rows)
}

fn any_payload() -> impl Strategy<Value = (Agent, Vec<u8>)> {
    let agent = prop::sample::select(Agent::ALL.to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..80);
    let name = prop::sample::select(vec![
        "pre_tool_call",
        "pre_llm_call",
        "BeforeTool",
        "AfterAgent",
        "PreToolUse",
        "?",
    ]);
    let jsonish = (name, r#"[\{\}\[\]",:rm0-9.eENa\\ \-]{0,40}"#).prop_map(|(name, tail)| {
        format!("{{\"hook_event_name\":\"{name}\",\"tool_input\":{tail}}}").into_bytes()
    });
    (agent, prop_oneof![bytes, jsonish])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_bytes_give_a_recorded_event_and_a_valid_answer(
        payloads in prop::collection::vec(any_payload(), 1..20),
    ) {
        let (answers, rows) = handle_all(HOOKS, &payloads);
        let events: Vec<&Row> =
            rows.iter().filter(|row| row.kind != "decision" && row.kind != "hooks.loaded").collect();
        prop_assert_eq!(events.len(), payloads.len());
        for (row, (agent, raw)) in events.iter().zip(&payloads) {
            prop_assert_eq!((row.agent.as_str(), &row.payload), (agent.as_str(), raw));
        }
        for Answer { text: answer, .. } in answers {
            if let Some(text) = answer {
                let object = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object());
                prop_assert!(object, "{}", text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn hooks_in_shadow_mode_change_no_answer(
        payloads in prop::collection::vec(any_payload(), 1..20),
    ) {
        let call = br#"{"hook_event_name":"pre_tool_call","tool_input":{"command":"ls"}}"#;
        let payloads: Vec<_> = payloads.into_iter().chain([(Agent::Hermes, call.to_vec())]).collect();
        let (answers, rows) = handle_all(&format!("{HOOKS}{SHADOW_HOOKS}"), &payloads);
        prop_assert_eq!(answers, handle_all(HOOKS, &payloads).0);
        let decision = rows.last().map(Row::payload_json).unwrap_or_default();
        prop_assert_eq!((&decision["outcome"], &decision["answer"]), (&"none".into(), &Value::Null));
        let decision = RecordedDecision::from_json(decision).expect("a decision");
        let verdicts: Vec<&str> = decision.verdicts.iter().map(|it| it.verdict.as_str()).collect();
        prop_assert_eq!(verdicts, ["block", "block", "ask", "rewrite", "stop"]);
        prop_assert!(decision.verdicts.iter().all(|verdict| verdict.shadow));
        prop_assert!(decision.verdicts[0].unapproved);
        let note = decision.verdicts[2].note.as_deref().unwrap_or_default();
        prop_assert!(note.ends_with("blocked instead"), "{}", note);
    }
}

#[test]
fn a_retry_gets_the_recorded_answer_and_is_not_recorded_again() {
    let home = tempfile::tempdir().expect("a scratch home");
    std::fs::write(home.path().join("hookbus.yaml"), HOOKS).expect("hooks");
    let raw = br#"{"hook_event_name":"pre_tool_call","tool_input":{"command":"rm"}}"#.to_vec();
    let at = SystemClock.now();
    let call = Call {
        id: EventId::mint(at),
        at,
        agent: Agent::Hermes,
        raw: raw.into(),
        caller: Caller::default(),
        deadline: Duration::from_secs(5),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let bus = Bus::for_client(home.path(), &[]);
    let first = runtime.block_on(handle(call.clone(), &bus));
    // Another process, and hooks that would answer something else now.
    std::fs::write(home.path().join("hookbus.yaml"), "hooks: {}").expect("hooks");
    let bus = Bus::for_client(home.path(), &[]);
    let again = runtime.block_on(handle(call, &bus));
    assert!(first.text.is_some());
    assert_eq!(first, again);
    let log = LogReader::open(&bus.log).expect("a log");
    let kinds: Vec<String> =
        log.last(&Query::default(), 10).expect("rows").into_iter().map(|row| row.kind).collect();
    assert_eq!(kinds, ["hooks.loaded", "tool.before", "decision", "hooks.loaded"]);
}

#[test]
fn a_broken_file_of_a_project_is_read_once_per_change() {
    let home = tempfile::tempdir().expect("a scratch home");
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join(".hookbus")).expect("a project");
    std::fs::write(project.join(".hookbus/hookbus.yaml"), "hooks: [").expect("hooks");
    let bus = Bus::for_client(&home.path().join("home"), &[]);
    let caller = Caller { cwd: project, ..Caller::default() };
    let source = bus.projects.source(&caller).expect("a project");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let call = Call {
        id: EventId::mint(bus.clock.now()),
        at: bus.clock.now(),
        agent: Agent::Hermes,
        raw: b"{}".to_vec().into(),
        caller,
        deadline: Duration::from_secs(5),
    };
    assert!(
        !Arc::ptr_eq(&source.active(), &source.active()),
        "without a log the file is read again"
    );
    runtime.expect("a runtime").block_on(handle(call, &bus));
    assert!(Arc::ptr_eq(&source.active(), &source.active()), "the log has no good version either");
}

#[test]
fn without_a_readable_log_a_broken_file_is_not_recorded_as_the_last_hooks() {
    let home = tempfile::tempdir().expect("a scratch home");
    let file = home.path().join("hookbus.yaml");
    std::fs::write(&file, HOOKS).expect("hooks");
    let call = |bus: &Bus| Call {
        id: EventId::mint(bus.clock.now()),
        at: bus.clock.now(),
        agent: Agent::Hermes,
        raw: b"{}".to_vec().into(),
        caller: Caller::default(),
        deadline: Duration::from_secs(5),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let first = Bus::for_client(home.path(), &[]);
    runtime.block_on(handle(call(&first), &first));
    drop(first);
    // The file is broken, and the log that holds its last good version cannot be read.
    std::fs::write(&file, "hooks: [").expect("hooks");
    let (log, away) = (home.path().join("log.db"), home.path().join("away.db"));
    std::fs::rename(&log, &away).expect("a log");
    let second = Bus::for_client(home.path(), &[]);
    answer_by_rules_alone(call(&second), &second, RulesAlone::NoTime);
    std::fs::rename(&away, &log).expect("a log");
    assert_eq!(second.recorder.append_spooled(), 0);
    let reader = LogReader::open(&second.log).expect("a log");
    let events = reader.last(&Query { name: Some("*".to_owned()), ..Query::default() }, 9);
    let kinds: Vec<String> = events.expect("rows").into_iter().map(|row| row.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "hooks.loaded").count(), 1, "{kinds:?}");
    assert!(kinds.len() > 2, "the second event is there: {kinds:?}");
    assert_eq!(second.hooks.active().file.hooks.len(), 2, "its last good version is in force");
}
