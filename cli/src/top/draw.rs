//! Draws the screen of `hookbus top`: what the bus is doing, the sessions, what was blocked or asked about, and the hooks.
//! Everything that is drawn was made safe for a terminal by `words.rs`.

use hookbus::event::Time;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState};

use super::live_session::SessionState;
use super::model::{Model, Panel};
use super::words::{Problem, cells_of_hook, cells_of_session, describe_held, state_lines};
use crate::output::{fit, local_time};
use crate::screen::{Theme, draw_keys};

/// The most lines about what is wrong or waits.
const MOST_STATE_LINES: usize = 5;

/// The columns of the small chart beside the rates.
const CHART: u16 = 30;

const KEYS: [(&str, &str); 9] = [
    ("Tab, ← →", "the next or the previous list"),
    ("↑ ↓, j k", "another line"),
    ("PgUp PgDn", "ten lines"),
    ("g G", "the first, the last line"),
    ("Enter", "the events of the session, or of what was blocked"),
    ("?", "this page"),
    ("q, Esc, Ctrl-C", "quit"),
    ("", ""),
    ("3+", "at least three: older rows of it were not counted"),
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, theme: Theme) {
    let columns = usize::from(frame.area().width.saturating_sub(2));
    let lines = state_lines(&model.snapshot, columns);
    let most = if frame.area().height < 20 { 2 } else { MOST_STATE_LINES };
    let state_height = u16::try_from(lines.len().min(most)).unwrap_or(u16::MAX);
    let [head, sessions, held, hooks, foot] = Layout::vertical([
        Constraint::Length(state_height),
        Constraint::Fill(4),
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_state(frame, &lines, model, theme, head);
    draw_sessions(frame, model, theme, sessions);
    draw_held(frame, model, theme, held);
    draw_hooks(frame, model, theme, hooks);
    let hint = model.message.as_deref().unwrap_or("q quit  Tab list  Enter open  ? keys");
    frame.render_widget(Line::styled(format!(" {hint}"), Theme::dim()), foot);
    if model.shows_help {
        draw_keys(frame, &KEYS, theme);
    }
}

fn draw_state(
    frame: &mut Frame<'_>,
    lines: &[(Problem, String)],
    model: &Model,
    theme: Theme,
    area: Rect,
) {
    let style = |problem: Problem| match problem {
        Problem::Yes => theme.bad(),
        Problem::No => Style::new(),
    };
    let mut text: Vec<Line<'_>> = lines
        .iter()
        .map(|(problem, line)| Line::styled(format!(" {line}"), style(*problem)))
        .collect();
    if let Some(first) = text.first_mut() {
        first.spans.insert(0, Span::styled(" hookbus top ", Theme::bold()));
    }
    frame.render_widget(Paragraph::new(text), area);
    let clock = clock(model.snapshot.log.at);
    let right = Rect { height: 1.min(area.height), ..area };
    if area.width > 60 {
        frame.render_widget(Line::styled(clock, Theme::dim()).alignment(Alignment::Right), right);
    }
    if area.height > 1 && area.width >= 60 + CHART {
        let chart = Rect { x: area.right() - CHART, y: area.y + 1, width: CHART, height: 1 };
        let seconds = &model.snapshot.log.rates.seconds;
        let shown = &seconds[seconds.len() - usize::from(CHART)..];
        frame.render_widget(Sparkline::default().data(shown).style(theme.notable()), chart);
    }
}

fn clock(at: Time) -> String {
    local_time(at).format("%H:%M:%S ").to_string()
}

/// A frame with a title around a list.
fn framed(title: String, has_focus: bool, theme: Theme) -> Block<'static> {
    let title = Span::styled(title, if has_focus { Theme::bold() } else { Style::new() });
    Block::bordered().border_style(theme.border(has_focus)).title(title)
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, model: &Model, panel: Panel) {
    let has_focus = model.panel == panel;
    let selected = model.selected(panel).filter(|_| has_focus);
    let style = if has_focus { Theme::selected() } else { Style::new() };
    let mut state = TableState::default().with_selected(selected);
    frame.render_stateful_widget(
        table.row_highlight_style(style).column_spacing(1),
        area,
        &mut state,
    );
}

fn number_cell(text: String, style: Style) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right)).style(style)
}

/// Numbers that are not 0 stand out.
fn alarm(text: String, theme: Theme) -> Cell<'static> {
    let style = if text == "0" { Theme::dim() } else { theme.bad() };
    number_cell(text, style)
}

fn header(names: &[&'static str], numbers_from: usize) -> Row<'static> {
    let cells = names.iter().enumerate().map(|(at, name)| {
        let alignment = if at >= numbers_from { Alignment::Right } else { Alignment::Left };
        Cell::from(Line::from(*name).alignment(alignment))
    });
    Row::new(cells.collect::<Vec<_>>()).style(Theme::dim())
}

fn draw_sessions(frame: &mut Frame<'_>, model: &Model, theme: Theme, area: Rect) {
    let log = &model.snapshot.log;
    let rows = log.sessions.iter().map(|live| {
        let [agent, project, prompt, age, last, events, blocked, failed] =
            cells_of_session(live, log.at);
        let row = Row::new([
            Cell::from(agent).style(theme.notable()),
            Cell::from(project),
            Cell::from(prompt),
            number_cell(age, Style::new()),
            number_cell(last, Style::new()),
            number_cell(events, Style::new()),
            alarm(blocked, theme),
            alarm(failed, theme),
        ]);
        match live.state(log.at) {
            SessionState::Live => row,
            SessionState::Idle | SessionState::Ended => row.style(Theme::dim()),
        }
    });
    let names = ["agent", "project", "prompt", "age", "last", "events", "block", "fail"];
    let project = if area.width < 100 { 10 } else { 18 };
    let widths = [7, project, 0, 4, 7, 6, 5, 4].map(|columns| match columns {
        0 => Constraint::Fill(1),
        columns => Constraint::Length(columns),
    });
    let has_focus = model.panel == Panel::Sessions;
    let title = format!(" sessions ({} live) ", model.snapshot.live_sessions());
    let empty = log.sessions.is_empty().then(|| nothing("no sessions yet"));
    let table = Table::new(rows.chain(empty), widths)
        .header(header(&names, 3))
        .block(framed(title, has_focus, theme));
    draw_table(frame, area, table, model, Panel::Sessions);
}

fn nothing(text: &'static str) -> Row<'static> {
    Row::new([Cell::from(""), Cell::from(""), Cell::from(text)])
}

fn draw_held(frame: &mut Frame<'_>, model: &Model, theme: Theme, area: Rect) {
    let held = &model.snapshot.log.held;
    let hook_width: u16 = if area.width < 100 { 16 } else { 26 };
    let about_width = area.width.saturating_sub(8 + 7 + hook_width + 3 + 2);
    let rows = held.iter().map(|held| {
        let [time, outcome, hook, about] = describe_held(held);
        let (hook, about) =
            (fit(&hook, usize::from(hook_width)), fit(&about, usize::from(about_width)));
        let style = if outcome == "asked" { theme.notable() } else { theme.bad() };
        Row::new([
            Cell::from(time).style(Theme::dim()),
            Cell::from(outcome).style(style),
            Cell::from(hook),
            Cell::from(about),
        ])
    });
    let widths = [
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(hook_width),
        Constraint::Fill(1),
    ];
    let empty = held.is_empty().then(|| {
        Row::new([Cell::from(""), Cell::from(""), Cell::from(""), Cell::from("nothing lately")])
    });
    let has_focus = model.panel == Panel::Held;
    let block = framed(" blocked and asked ".to_owned(), has_focus, theme);
    draw_table(frame, area, Table::new(rows.chain(empty), widths).block(block), model, Panel::Held);
}

fn draw_hooks(frame: &mut Frame<'_>, model: &Model, theme: Theme, area: Rect) {
    let hooks = &model.snapshot.log.hooks;
    let rows = hooks.iter().map(|hook| {
        let [name, calls, blocked, failed, p50, p95] = cells_of_hook(hook);
        let blocks = if blocked == "0" { Theme::dim() } else { theme.notable() };
        Row::new([
            Cell::from(name),
            number_cell(calls, Style::new()),
            number_cell(blocked, blocks),
            alarm(failed, theme),
            number_cell(p50, Style::new()),
            number_cell(p95, Style::new()),
        ])
    });
    let names = ["hook", "calls", "held", "failed", "p50", "p95"];
    let widths = [0, 8, 7, 7, 7, 7].map(|columns| match columns {
        0 => Constraint::Fill(1),
        columns => Constraint::Length(columns),
    });
    let empty = hooks.is_empty().then(|| Row::new([Cell::from("no hook was asked lately")]));
    let has_focus = model.panel == Panel::Hooks;
    let table = Table::new(rows.chain(empty), widths).header(header(&names, 1)).block(framed(
        " hooks, last 15 min ".to_owned(),
        has_focus,
        theme,
    ));
    draw_table(frame, area, table, model, Panel::Hooks);
}
