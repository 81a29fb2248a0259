//! Views of the payloads that the real agents sent, and of rows that no agent would send.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::dialect::{Arrival, decode};
use crate::event::{Agent, EventId, Kind, Outcome, Seq, Time, Wire};
use crate::log::{Row, RowDraft};

/// A recorded payload of a real agent.
pub(super) fn payload(agent: &str, name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/payloads");
    let text = fs::read(folder.join(agent).join(format!("{name}.json"))).expect("a payload");
    serde_json::from_slice(&text).expect("JSON")
}

/// The row that the bus would record for a payload.
pub(super) fn row(seq: i64, agent: &str, payload: &Value) -> Row {
    let at = Time::from_micros(1_700_000_000_000_000 + seq * 1_000_000);
    let id = EventId::mint(at);
    let event = decode(Arrival {
        id,
        at,
        agent: Agent::named(agent).expect("an agent"),
        wire: Wire::Shell,
        raw: payload.to_string().into_bytes().into(),
        session_hint: None,
    });
    let draft = RowDraft::of_event(&event, None, event.raw.clone());
    Row {
        seq: Seq::from_i64(seq),
        id,
        at,
        agent: draft.agent,
        session: draft.session,
        turn: draft.turn,
        name: draft.name,
        kind: draft.kind.as_str().to_owned(),
        tool: draft.tool,
        tool_class: draft.tool_class,
        cause: None,
        context: None,
        payload: draft.payload.to_vec(),
        removed: None,
        redaction: None,
        hash: [0; 32],
        origin: None,
        identity: None,
    }
}

pub(super) fn decision(seq: i64, cause: &Row, outcome: &str) -> Row {
    let verdict = json!({"hook": "guard", "verdict": outcome, "reason": "no"});
    let payload =
        json!({"outcome": outcome, "verdicts": [verdict, {"hook": "quiet", "verdict": "none"}]});
    Row {
        seq: Seq::from_i64(seq),
        kind: Kind::Decision.as_str().to_owned(),
        cause: Some(cause.seq),
        payload: payload.to_string().into_bytes(),
        ..cause.clone()
    }
}

fn removed(row: &Row) -> Row {
    Row { payload: Vec::new(), removed: Some([0; 32]), ..row.clone() }
}

fn outcome(agent: &str, payload: &Value) -> ToolOutcome {
    EventView::new(&row(1, agent, payload)).outcome()
}

#[test]
fn the_results_of_four_agents_are_read_as_they_are() {
    use ToolStatus::{Denied, Failed, Ok, Unknown};
    for (agent, name, status, exit_code, output) in [
        ("hermes", "post_tool_call", Ok, Some(0), Some("hello-from-tool")),
        ("hermes", "post_tool_call.blocked", Denied, None, None),
        ("gemini", "AfterTool.shell", Ok, Some(0), None),
        ("gemini", "AfterTool.mcp", Ok, None, Some("HI")),
        ("claude", "PostToolUse", Ok, Some(0), Some("hello-from-claude")),
        ("claude", "PostToolUseFailure", Failed, Some(3), None),
        ("claude", "PostToolUse.mcp__lab__echo", Ok, None, Some("echo:{'text': 'hi'}")),
        ("codex", "PostToolUse", Unknown, None, Some("hello-from-codex\n")),
        (
            "codex",
            "PostToolUse.apply_patch",
            Ok,
            Some(0),
            Some("Success. Updated the following files:\nA a.txt\n"),
        ),
        ("codex", "PostToolUse.mcp__lab__echo", Unknown, None, None),
    ] {
        let read = outcome(agent, &payload(agent, name));
        assert_eq!((read.status, read.exit_code), (status, exit_code), "{agent} {name}");
        if let Some(output) = output {
            assert_eq!(read.output.as_deref(), Some(output), "{agent} {name}");
        }
    }
    let error = outcome("hermes", &payload("hermes", "post_tool_call.error"));
    assert_eq!((error.status, error.took.map(|it| it.as_millis())), (Failed, Some(60_315)));
    assert!(error.error.is_some());
    let blocked = outcome("hermes", &payload("hermes", "post_tool_call.blocked"));
    assert_eq!((blocked.error.as_deref(), blocked.ran), (Some("NOPE-FROM-HOOK"), Some(false)));
}

#[test]
fn a_command_that_exits_with_3_has_failed_whatever_the_agent_calls_it() {
    let mut hermes = payload("hermes", "post_tool_call");
    hermes["extra"]["result"] = json!(r#"{"output": "boom", "exit_code": 3, "error": null}"#);
    let read = outcome("hermes", &hermes);
    assert_eq!((read.status, read.exit_code), (ToolStatus::Failed, Some(3)));
    assert_eq!(read.output.as_deref(), Some("boom"));
    let mut gemini = payload("gemini", "AfterTool.shell");
    gemini["tool_response"]["llmContent"] = json!(
        "<untrusted_context>\nOutput: boom\nExit Code: 3\nProcess Group PGID: 1\n</untrusted_context>"
    );
    let read = outcome("gemini", &gemini);
    assert_eq!((read.status, read.exit_code), (ToolStatus::Failed, Some(3)));
    // The user refused it in Hermes' own prompt.
    hermes["extra"]["status"] = json!("error");
    hermes["extra"]["result"] = json!(
        r#"{"output": "", "exit_code": -1, "error": "BLOCKED: denied", "status": "blocked"}"#
    );
    let read = outcome("hermes", &hermes);
    assert_eq!((read.status, read.exit_code, read.ran), (ToolStatus::Denied, None, Some(false)));
}

#[test]
fn prompts_answers_models_and_tokens_are_read() {
    let read = |agent: &str, name: &str| row(1, agent, &payload(agent, name));
    for (agent, name, prompt) in [
        ("hermes", "pre_llm_call", "[[scenario:terminal]] please run the terminal scenario"),
        ("gemini", "BeforeAgent", "Write hello.txt then read notes.txt"),
        ("claude", "UserPromptSubmit", "MAIN: create marker.txt"),
        ("codex", "UserPromptSubmit", "Create marker.txt"),
    ] {
        let row = read(agent, name);
        assert_eq!(EventView::new(&row).prompt().as_deref(), Some(prompt), "{agent}");
    }
    for (agent, name, answer) in [
        ("hermes", "post_llm_call", "FINAL: terminal scenario done."),
        ("claude", "Stop", "All done, marker created."),
        ("codex", "Stop", "All done, marker created."),
    ] {
        let row = read(agent, name);
        assert_eq!(EventView::new(&row).answer().map(|it| it.text), Some(answer), "{agent}");
    }
    let hermes = read("hermes", "post_api_request");
    let usage = EventView::new(&hermes).usage().expect("usage");
    assert_eq!((usage.usage.input_tokens, usage.usage.total_tokens), (Some(100), Some(110)));
    let gemini = read("gemini", "AfterModel");
    let usage = EventView::new(&gemini).usage().expect("usage");
    assert_eq!((usage.usage.output_tokens, usage.scope), (Some(7), UsageScope::SoFar));
    assert_eq!(EventView::new(&gemini).model(), Some("gemini-2.5-flash"));
    let claude = read("claude", "PostToolUse.Agent");
    let usage = EventView::new(&claude).usage().expect("usage");
    assert_eq!((usage.usage.total_tokens, usage.scope), (Some(15), UsageScope::Subagent));
    assert_eq!(EventView::new(&read("codex", "Stop")).model(), Some("gpt-5.1-codex"));
    for (agent, name, has_failed) in [
        ("codex", "Stop", false),
        ("claude", "Stop", false),
        ("claude", "StopFailure", true),
        ("hermes", "on_session_end", false),
        ("hermes", "api_request_error", true),
        ("gemini", "AfterAgent", false),
    ] {
        let row = read(agent, name);
        assert_eq!(EventView::new(&row).has_failed(), has_failed, "{agent} {name}");
    }
}

#[test]
fn a_call_is_joined_with_its_result_and_its_decisions_in_any_order() {
    let before = row(1, "hermes", &payload("hermes", "pre_tool_call"));
    let about_before = decision(2, &before, "context");
    let after = row(3, "hermes", &payload("hermes", "post_tool_call"));
    let about_after = decision(4, &after, "block");
    for rows in [
        [&before, &about_before, &after, &about_after],
        [&after, &about_after, &before, &about_before],
    ] {
        let view = SessionView::of_rows("s", rows);
        let items: Vec<&Item> = view.items().collect();
        assert_eq!(items.len(), 1, "{items:?}");
        let call = items[0].tool_call().expect("a call");
        assert_eq!(
            (call.status(), call.subject.as_str()),
            (ToolStatus::Ok, "echo hello-from-tool")
        );
        assert_eq!(call.effects.programs, ["echo"]);
        assert_eq!(items[0].decisions.len(), 2);
        assert!(!items[0].ran_despite_block(), "only its result was refused");
        let totals = Totals::of(&view);
        assert_eq!((totals.events, totals.decisions, totals.blocked), (2, 2, 1));
    }
}

#[test]
fn a_denied_call_that_ran_all_the_same_stands_out_and_one_that_did_not_does_not() {
    let before = row(1, "hermes", &payload("hermes", "pre_tool_call"));
    let denied = decision(2, &before, "block");
    let ran = row(3, "hermes", &payload("hermes", "post_tool_call"));
    let refused = row(3, "hermes", &payload("hermes", "post_tool_call.blocked"));
    let gone = removed(&ran);
    for (result, expected) in [(&ran, 1), (&refused, 0), (&gone, 0)] {
        let view = SessionView::of_rows("s", [&before, &denied, result]);
        assert_eq!(Totals::of(&view).ran_despite_block, expected);
    }
    let view = SessionView::of_rows("s", [&before, &denied]);
    let totals = Totals::of(&view);
    assert_eq!((totals.blocked, totals.ran_despite_block), (1, 0));
    let said = &view.items().next().expect("a call").decisions[0];
    assert_eq!((said.outcome, said.said.len()), (Some(Outcome::Block), 1));
    assert_eq!(said.silent, ["quiet"]);
}

#[test]
fn calls_without_ids_are_joined_oldest_first() {
    let call = payload("gemini", "BeforeTool.shell");
    let result = payload("gemini", "AfterTool.shell");
    let rows: Vec<Row> = [&call, &call, &result]
        .iter()
        .zip(1..)
        .map(|(payload, seq)| row(seq, "gemini", payload))
        .collect();
    let view = SessionView::of_rows("s", &rows);
    let ended: Vec<bool> =
        view.items().filter_map(Item::tool_call).map(|call| call.result.is_some()).collect();
    assert_eq!(ended, [true, false]);
}

#[test]
fn the_answer_of_a_turn_is_there_once_and_whole() {
    let chunk = |text: &str| {
        let mut chunk = payload("gemini", "AfterModel");
        chunk["llm_response"]["text"] = json!(text);
        chunk
    };
    let payloads = [
        payload("gemini", "BeforeAgent"),
        payload("gemini", "BeforeModel"),
        chunk("I will write. "),
        payload("gemini", "BeforeModel"),
        chunk("Both steps "),
        chunk("are done."),
        payload("gemini", "AfterAgent"),
    ];
    let rows: Vec<Row> =
        payloads.iter().zip(1..).map(|(payload, seq)| row(seq, "gemini", payload)).collect();
    let view = SessionView::of_rows("s", &rows);
    assert_eq!(view.turns[0].answer.as_deref(), Some("Both steps are done."));
    let totals = Totals::of(&view);
    assert_eq!((totals.model_requests, totals.usage.input_tokens), (2, Some(2468)));
    // A last request that was denied has no chunks, and Gemini's own text has the end of the answer twice.
    let mut denied = payloads.to_vec();
    denied.insert(6, payload("gemini", "BeforeModel"));
    let rows: Vec<Row> =
        denied.iter().zip(1..).map(|(payload, seq)| row(seq, "gemini", payload)).collect();
    let answer = SessionView::of_rows("s", &rows).turns[0].answer.clone();
    assert_eq!(answer.as_deref(), Some("I will write the file. \nBoth steps are done."));
    let hermes = ["pre_llm_call", "transform_llm_output", "post_llm_call", "on_session_end"];
    let rows: Vec<Row> = hermes
        .iter()
        .zip(1..)
        .map(|(name, seq)| row(seq, "hermes", &payload("hermes", name)))
        .collect();
    let view = SessionView::of_rows("s", &rows);
    assert_eq!(view.turns[0].answer.as_deref(), Some("FINAL: terminal scenario done."));
    assert!(view.turns[0].ended.is_some() && view.turns[0].failure.is_none());
}

#[test]
fn sub_agents_are_inside_of_their_parents() {
    let codex = ["SubagentStart", "UserPromptSubmit.subagent", "SubagentStop"];
    let rows: Vec<Row> = codex
        .iter()
        .zip(1..)
        .map(|(name, seq)| row(seq, "codex", &payload("codex", name)))
        .collect();
    let refused = decision(9, &rows[1], "block");
    let view = SessionView::of_rows("s", rows.iter().chain([&refused]));
    let subagent = view.subagents().next().expect("a sub-agent");
    assert_eq!((subagent.answer.as_deref(), view.events), (Some("done"), 2));
    let inside = subagent.inside.as_ref().expect("what happened inside");
    assert_eq!(inside.first_prompt(), Some("SUB: say hi"));
    assert_eq!((Totals::of(&view).blocked, Totals::of_subagents(&view).blocked), (0, 1));

    let start = row(1, "hermes", &payload("hermes", "subagent_start"));
    let mut view = SessionView::of_rows("s", [&start]);
    assert_eq!(view.child_sessions(), ["20261116_003600_00ead1"]);
    let call = row(2, "hermes", &payload("hermes", "pre_tool_call"));
    view.attach(SessionView::of_rows("20261116_003600_00ead1", [&call]));
    assert_eq!(Totals::of_subagents(&view).tool_calls, 1);
    assert!(view.child_sessions().is_empty());
}

#[test]
fn a_question_has_its_answer() {
    let rows: Vec<Row> = ["pre_approval_request", "post_approval_response"]
        .iter()
        .zip(1..)
        .map(|(name, seq)| row(seq, "hermes", &payload("hermes", name)))
        .collect();
    let view = SessionView::of_rows("s", &rows);
    let Some(Item { what: What::Question(asked), .. }) = view.items().next() else {
        panic!("a question");
    };
    assert_eq!(asked.question.about, "rm -rf /home/dev/project/victim");
    assert_eq!(asked.answer.as_ref().and_then(|answer| answer.yes), Some(false));
}

#[test]
fn removed_payloads_and_unknown_agents_are_told_as_such() {
    let before = row(1, "hermes", &payload("hermes", "pre_tool_call"));
    let after = row(3, "hermes", &payload("hermes", "post_tool_call"));
    let gone = [removed(&before), removed(&decision(2, &before, "block")), removed(&after)];
    let view = SessionView::of_rows("s", &gone);
    let call = view.items().next().and_then(Item::tool_call).expect("a call");
    assert_eq!((call.subject.as_str(), call.status()), (REMOVED, ToolStatus::Unknown));
    assert!(call.result.is_some());
    let other = json!({"hook_event_name": "x", "tool_name": "t", "session_id": "s"});
    let view = SessionView::of_rows("s", [&row(1, "opencode", &other)]);
    assert_eq!((view.events, view.agent.as_str()), (1, "opencode"));
}

/// A row for every recorded payload.
static RECORDED: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/payloads");
    let of_agent = |agent: &Agent| {
        let files = fs::read_dir(folder.join(agent.as_str())).expect("payloads");
        let read = |file: std::io::Result<fs::DirEntry>| {
            let text = fs::read(file.expect("a file").path()).expect("a payload");
            row(1, agent.as_str(), &serde_json::from_slice(&text).expect("JSON"))
        };
        files.map(read).collect::<Vec<_>>()
    };
    Agent::ALL.iter().flat_map(of_agent).collect()
});

proptest! {
    #[test]
    fn any_rows_in_any_order_are_counted_and_shown(picks in prop::collection::vec((0_usize..1000, 0_u8..4), 0..40)) {
        let all = &*RECORDED;
        let (mut view, mut events, mut decisions, mut last) = (SessionView::new("s"), 0, 0, None);
        for (place, (pick, what)) in picks.iter().enumerate() {
            let seq = i64::try_from(place).expect("small") + 1;
            let event = Row { seq: Seq::from_i64(seq), ..all[pick % all.len()].clone() };
            match (what, &last) {
                (0, Some(cause)) => {
                    view.add(&decision(seq, cause, "block"));
                    decisions += 1;
                }
                (1, _) => { view.add(&removed(&event)); events += 1; }
                _ => { view.add(&event); events += 1; last = Some(event); }
            }
        }
        let mut totals = Totals::of(&view);
        totals.add(&Totals::of_subagents(&view));
        prop_assert_eq!((totals.events, totals.decisions, totals.blocked), (events, decisions, decisions));
        prop_assert_eq!(&view.to_json()["shape"], SHAPE);
    }
}
