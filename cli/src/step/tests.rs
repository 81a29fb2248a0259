//! The stepper, drawn without a terminal: where keys lead, and what is said about an event.

use std::collections::HashMap;

use hookbus::event::{Kind, RecordedDecision, Seq, Time};
use hookbus::log::Row;
use hookbus::view::{Step, Steps};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::detail::Sources;
use super::{StepModel, StepNext, draw};
use crate::screen::Theme;

fn row(seq: i64, name: &str, kind: Kind, payload: &Value) -> Row {
    Row {
        seq: Seq::from_i64(seq),
        id: hookbus::event::EventId::mint(Time::from_micros(seq)),
        at: Time::from_micros(1_800_000_000_000_000 + seq * 1_000_000),
        agent: "hermes".to_owned(),
        session: "s".to_owned(),
        turn: None,
        name: name.to_owned(),
        kind: kind.as_str().to_owned(),
        tool: matches!(kind, Kind::ToolBefore | Kind::ToolAfter).then(|| "terminal".to_owned()),
        tool_class: Some("shell".to_owned()),
        cause: (kind == Kind::Decision).then(|| Seq::from_i64(seq - 1)),
        context: None,
        payload: payload.to_string().into_bytes(),
        removed: None,
        redaction: None,
        hash: [0; 32],
        origin: None,
        identity: None,
    }
}

fn decision() -> Value {
    json!({"outcome": "block", "ms": 2.5, "answer": {"action": "block"}, "verdicts": [
        {"hook": "guard", "verdict": "block", "reason": "Not \u{1b}[2Jhere.", "exit": 2, "ms": 1.5},
        {"hook": "quiet", "verdict": "none"},
    ]})
}

/// A prompt, a call that fails, a call that is blocked, and one more.
fn steps() -> Vec<Step> {
    let call = |id: &str, command: &str| json!({"tool_input": {"command": command}, "extra": {"tool_call_id": id}});
    let failed = json!({"tool_input": {"command": "make"}, "extra": {"tool_call_id": "a", "status": "error",
        "result": json!({"output": "line one\nboom", "exit_code": 3, "error": null}).to_string()}});
    let mut steps = Steps::new("s");
    for row in [
        row(1, "pre_llm_call", Kind::TurnStart, &json!({"extra": {"user_message": "Do it"}})),
        row(2, "pre_tool_call", Kind::ToolBefore, &call("a", "make")),
        row(3, "post_tool_call", Kind::ToolAfter, &failed),
        row(4, "pre_tool_call", Kind::ToolBefore, &call("b", "rm -rf \u{202e}/")),
        row(5, "decision", Kind::Decision, &decision()),
        row(6, "pre_tool_call", Kind::ToolBefore, &call("c", "ls")),
    ] {
        steps.add(&row);
    }
    steps.steps().to_vec()
}

fn model() -> StepModel {
    StepModel::new("7a3d78".to_owned(), steps(), HashMap::new())
}

fn press(model: &mut StepModel, keys: &str) -> StepNext {
    let mut next = StepNext::Stay;
    for key in keys.chars() {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        next = model.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    next
}

fn screen(model: &mut StepModel, columns: u16, rows: u16) -> String {
    let payload = (0..50).map(|at| format!("payload line {at}")).collect::<Vec<_>>().join("\n");
    let decision = RecordedDecision::from_json(decision()).ok();
    model.set_sources(&Sources { payload, decision });
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal.draw(|frame| draw(frame, model, Theme { colour: false })).expect("drawn");
    terminal.backend().to_string()
}

#[test]
fn keys_lead_to_events_blocks_failures_and_texts() {
    let mut model = model();
    for (keys, at) in [
        ("n", 1),
        ("nn", 3),
        ("p", 2),
        ("g", 0),
        ("p", 0),
        ("G", 4),
        ("n", 4),
        ("g", 0),
        ("b", 3),
        ("b", 3),
        ("F", 2),
        ("B", 2),
        ("G", 4),
        ("B", 3),
        ("g", 0),
        ("f", 2),
        ("f", 2),
        ("g", 0),
        ("/BOOM\n", 1),
        ("/\n", 2),
        ("/\n", 1),
        ("/nowhere\n", 1),
        ("d", 1),
    ] {
        press(&mut model, keys);
        assert_eq!(model.current, at, "{keys:?}");
    }
    assert_eq!(model.message.as_deref(), Some("no further difference"));
    assert_eq!(press(&mut model, "/q"), StepNext::Stay, "typed");
    assert_eq!(model.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), StepNext::Stay);
    assert_eq!(press(&mut model, "q"), StepNext::Back);
    model.go_to_row(Seq::from_i64(5));
    assert_eq!(model.current, 3, "a decision is shown with its event");
}

#[test]
fn an_event_is_told_with_its_decision_its_result_and_its_payload() {
    let mut model = model();
    press(&mut model, "n");
    let call = screen(&mut model, 100, 30);
    for text in
        ["2/5", "2  pre_tool_call (tool.before)", "result (row 3)", "failed, exit code 3", "│ boom"]
    {
        assert!(call.contains(text), "{text:?} in\n{call}");
    }
    press(&mut model, "b");
    let blocked = screen(&mut model, 100, 30);
    for text in [
        "recorded decision (row 5)",
        "block  2.5 ms",
        "guard: block, exit 2, 1.5 ms",
        "Not \u{fffd}[2Jhere.",
        "quiet: none",
        "rm -rf \u{fffd}/",
        "payload line 0",
    ] {
        assert!(blocked.contains(text), "{text:?} in\n{blocked}");
    }
    assert!(!blocked.contains("payload line 49"));
    press(&mut model, "          ");
    assert!(screen(&mut model, 100, 30).contains("payload line 49"));
    let end = model.scroll;
    press(&mut model, " ");
    screen(&mut model, 100, 30);
    assert_eq!(model.scroll, end, "it stops at the end");
}

#[test]
fn any_size_can_be_drawn() {
    for (columns, rows) in [(1, 1), (5, 3), (30, 8), (69, 20), (80, 24), (250, 70)] {
        screen(&mut model(), columns, rows);
        screen(&mut StepModel::new(String::new(), Vec::new(), HashMap::new()), columns, rows);
        let mut help = model();
        press(&mut help, "?");
        screen(&mut help, columns, rows);
    }
}

#[test]
fn new_events_move_only_a_reader_who_is_at_the_end() {
    let (all, mut model) = (steps(), model());
    model.steps.truncate(3);
    model.go_to_end();
    model.set_steps(all.clone());
    assert_eq!(model.current, 4);
    press(&mut model, "p");
    model.set_steps(all);
    assert_eq!(model.current, 3);
}
