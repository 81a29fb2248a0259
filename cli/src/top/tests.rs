//! The screen of `hookbus top`, drawn without a terminal: what keys do, and what is on it.

use std::time::Duration;

use hookbus::event::{Kind, Outcome, Seq, Time};
use hookbus::log::RowCounts;
use hookbus::view::{HeldBack, HookFigures};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::draw::draw;
use super::live_session::LiveSession;
use super::log_tail::LogFigures;
use super::model::{Model, Next, Panel};
use crate::screen::Theme;
use crate::sessions::SessionSummary;

fn now() -> Time {
    Time::from_micros(1_800_000_000_000_000)
}

fn session(id: &str, prompt: &str, ago: u64) -> LiveSession {
    let mut summary = SessionSummary::empty(id, "hermes", now().before(Duration::from_hours(2)));
    summary.prompt = Some(prompt.to_owned());
    summary.project = Some("/home/jane/shop".to_owned());
    summary.last = now().before(Duration::from_secs(ago));
    summary.rows = RowCounts { events: 1234, decisions: 5, has_more: false };
    summary.blocked = 2;
    let last_event = Some((Kind::ToolAfter, Some("terminal".to_owned())));
    LiveSession { summary, last_event, last_seq: Seq::from_i64(9) }
}

fn held(seq: i64, about: &str) -> HeldBack {
    HeldBack {
        seq: Seq::from_i64(seq),
        cause: Some(Seq::from_i64(seq - 1)),
        at: now(),
        agent: "hermes".to_owned(),
        session: "one".to_owned(),
        outcome: Outcome::Block,
        hook: Some("no-force-push".to_owned()),
        reason: Some("Never.".to_owned()),
        tool: Some("terminal".to_owned()),
        about: Some(about.to_owned()),
    }
}

fn figures() -> LogFigures {
    let hook = HookFigures {
        hook: "no-force-push".to_owned(),
        calls: 7,
        blocked: 1,
        p50: Some(Duration::from_micros(300)),
        p95: Some(Duration::from_millis(12)),
        ..HookFigures::default()
    };
    LogFigures {
        head: Some(Seq::from_i64(12_345)),
        sessions: vec![session("one", "Fix the build", 5), session("two", "Old work", 3600)],
        held: vec![held(8, "git push --force"), held(4, "rm -rf /")],
        hooks: vec![hook],
        ..LogFigures::empty(now())
    }
}

fn model() -> Model {
    let mut model = Model::new(figures());
    model.set_state(json!({
        "bus": {"name": "jane@box"},
        "daemon": {"pid": 4, "uptime_s": 7200, "calls": 99},
        "relay": {"phase": "publishing", "lag_events": 0},
        "observers": [{"name": "audit", "state": "working", "lag_events": 12, "lag_s": 3}],
    }));
    model
}

fn screen(model: &Model, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal.draw(|frame| draw(frame, model, Theme { colour: true })).expect("drawn");
    terminal.backend().to_string()
}

fn press(model: &mut Model, keys: &[KeyCode]) -> Next {
    let mut next = Next::Stay;
    for key in keys {
        next = model.press(KeyEvent::new(*key, KeyModifiers::NONE));
    }
    next
}

#[test]
fn everything_is_on_a_screen_of_80_by_24() {
    let shown = screen(&model(), 80, 24);
    for text in [
        "jane@box  daemon running, pid 4, up 2h, 99 calls",
        "0 events/s, 0.0/s in the last minute, 1 session live, 12,345 rows",
        "relay publishing, no lag · observer audit working, 12 rows behind, 3.0 s",
        "sessions (1 live)",
        "hermes  shop       Fix the build",
        "1,234     2    0",
        "blocked no-force-push    terminal git push --force — Never.",
        "no-force-push",
        "300µs    12ms",
        "q quit  Tab list  Enter open  ? keys",
    ] {
        assert!(shown.contains(text), "{text:?} in\n{shown}");
    }
}

#[test]
fn any_size_can_be_drawn_with_and_without_content() {
    for (columns, rows) in [(1, 1), (3, 2), (20, 5), (40, 10), (80, 24), (250, 70)] {
        screen(&model(), columns, rows);
        let mut empty = Model::new(LogFigures::empty(now()));
        screen(&empty, columns, rows);
        press(&mut empty, &[KeyCode::Char('?')]);
        screen(&empty, columns, rows);
    }
}

#[test]
fn the_selection_stays_on_its_session_when_the_list_changes() {
    let mut model = model();
    assert_eq!(model.selected(Panel::Sessions), Some(0));
    press(&mut model, &[KeyCode::Down, KeyCode::Down, KeyCode::Down]);
    assert_eq!(model.selected(Panel::Sessions), Some(1), "it stops at the last one");
    let mut changed = figures();
    changed.sessions.insert(0, session("new", "Something new", 0));
    model.set_log(changed);
    assert_eq!(model.selected(Panel::Sessions), Some(2));
    let opened = press(&mut model, &[KeyCode::Enter]);
    assert_eq!(opened, Next::Open { session: "two".to_owned(), at: None });
    let opened = press(&mut model, &[KeyCode::Tab, KeyCode::Char('j'), KeyCode::Enter]);
    assert_eq!(opened, Next::Open { session: "one".to_owned(), at: Some(Seq::from_i64(3)) });
    assert_eq!(press(&mut model, &[KeyCode::Tab, KeyCode::Enter]), Next::Stay);
    assert!(model.message.is_some(), "a hook cannot be opened");
    model.set_log(LogFigures::empty(now()));
    let all =
        [KeyCode::Up, KeyCode::Down, KeyCode::Home, KeyCode::End, KeyCode::Enter, KeyCode::Tab];
    assert_eq!(press(&mut model, &[all, all, all].concat()), Next::Stay);
}

#[test]
fn a_log_that_cannot_be_read_leaves_what_is_known_on_the_screen() {
    let mut model = model();
    let error = Some("it is \u{1b}[2Jlocked".to_owned());
    model.set_log(LogFigures { error, ..LogFigures::empty(now()) });
    let shown = screen(&model, 80, 24);
    assert!(shown.contains("the log: it is \u{fffd}[2Jlocked"), "{shown}");
    assert!(shown.contains("Fix the build"), "{shown}");
    model.set_log(figures());
    assert!(!screen(&model, 80, 24).contains("the log:"));
}

#[test]
fn keys_quit_and_help_is_left_by_any_key() {
    for key in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut model(), &[key]), Next::Quit);
    }
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(model().press(interrupt), Next::Quit);
    let mut model = model();
    press(&mut model, &[KeyCode::Char('?')]);
    assert!(screen(&model, 80, 24).contains("the next or the previous list"));
    assert_eq!(press(&mut model, &[KeyCode::Esc]), Next::Stay);
    assert!(!model.shows_help);
}
