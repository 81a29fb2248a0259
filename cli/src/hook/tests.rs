//! What the agent is answered when this process panics.

use serde_json::Value;

use super::*;

fn client(home: &Path, on_failure: OnFailure) -> HookClient {
    HookClient {
        settings: Settings::load(Some(home.to_owned())),
        started: Instant::now(),
        deadline: Duration::from_secs(20),
        wire: Wire::Shell,
        id: None,
        on_failure,
        without_daemon: true,
        own_hooks: OnceLock::new(),
    }
}

const TOOL: &str = r#"{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"run_shell_command","tool_input":{}}"#;

fn panics(_: &Call) -> Answered {
    panic!("a bug")
}

fn json(answer: &Answer) -> Value {
    answer.text.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

#[test]
fn after_a_panic_the_next_way_is_tried_and_no_other() {
    let home = tempfile::tempdir().expect("a home");
    let client = client(home.path(), OnFailure::Block);
    let call = client.call(Agent::Gemini, TOOL.into());
    let says = |text: &'static str| {
        move |_: &Call| Answered::only(Answer { text: Some(text.to_owned()), notice: None })
    };
    let ways: [&dyn Fn(&Call) -> Answered; 3] = [&panics, &says("second"), &says("third")];
    let Answered { answer, .. } = client.first_answer(Agent::Gemini, Some(&call), &ways);
    assert_eq!(answer.text.as_deref(), Some("second"));
}

#[test]
fn if_everything_panics_the_wiring_decides_and_the_user_is_told() {
    let home = tempfile::tempdir().expect("a home");
    for agent in [Agent::Gemini, Agent::Hermes] {
        let client = client(home.path(), OnFailure::Block);
        let name = if agent == Agent::Gemini { "BeforeTool" } else { "pre_tool_call" };
        let call = client.call(agent, TOOL.replace("BeforeTool", name).into());
        // The second time not even the payload can be read.
        for call in [Some(&call), None] {
            let answer = json(&client.first_answer(agent, call, &[&panics, &panics]).answer);
            assert_eq!(answer["reason"], PANICKED, "{agent:?}: {answer}");
        }
    }
    let client = client(home.path(), OnFailure::Allow);
    let call = client.call(Agent::Gemini, TOOL.into());
    let answer = json(&client.first_answer(Agent::Gemini, Some(&call), &[&panics]).answer);
    assert_eq!(answer, serde_json::json!({"systemMessage": PANICKED}));
}

#[test]
fn a_panic_before_the_answer_still_asks_the_rules() {
    let home = tempfile::tempdir().expect("a home");
    let rule = "hooks: { tool.before: [{ rule: { block: guarded } }] }";
    fs::write(home.path().join("hookbus.yaml"), rule).expect("hooks");
    let client = client(home.path(), OnFailure::Allow);
    let call = client.call(Agent::Gemini, TOOL.into());
    let by_rules = |call: &Call| Answered::only(client.answer_by_rules(call, RulesAlone::Panicked));
    let answered = client.first_answer(Agent::Gemini, Some(&call), &[&panics, &by_rules]);
    assert_eq!(json(&answered.answer)["reason"], "guarded (hookbus rule tool.before#1)");
}
