//! Draws the stepper: the events on the left (above, in a narrow window), the current one on the right.

use hookbus::event::Kind;
use hookbus::view::{Step, ToolStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph};

use super::detail::Tone;
use super::model::StepModel;
use crate::output::{count, fit, local_time, sanitize, shorten};
use crate::screen::{Theme, draw_keys};

/// A narrower window has the list above the detail.
const NARROW: u16 = 70;

/// A narrower list has no times.
const WITH_TIME: u16 = 46;

const KEYS: [(&str, &str); 14] = [
    ("n, j, ↓", "the next event"),
    ("p, k, ↑", "the event before"),
    ("g G", "the first, the last event"),
    ("b B", "the next, the previous block"),
    ("f F", "the next, the previous failure, of a tool or a hook"),
    ("d D", "the next, the previous difference to what was recorded"),
    ("/ text Enter", "search; / Enter goes on to the next one"),
    ("Space, PgDn PgUp", "scroll the right side"),
    ("?", "this page"),
    ("q, Esc", "leave"),
    ("", ""),
    ("B ? F", "blocked, asked, failed"),
    ("+ - ~", "now blocked, now allowed, another answer"),
    ("! ·", "a hook fails now, cannot be compared"),
];

/// Draws everything. The scroll position is put back into its range.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &mut StepModel, theme: Theme) {
    let [main, foot] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    let [list, detail] = if main.width < NARROW {
        Layout::vertical([Constraint::Percentage(40), Constraint::Fill(1)]).areas(main)
    } else {
        Layout::horizontal([Constraint::Percentage(42), Constraint::Fill(1)]).areas(main)
    };
    draw_list(frame, model, theme, list);
    draw_detail(frame, model, theme, detail);
    let hint = "n next  p back  b block  f failure  / search  ? keys  q leave";
    let line = match (&model.typing, &model.message) {
        (Some(typed), _) => Line::from(format!(" /{}▏", sanitize(typed))),
        (None, Some(message)) => Line::styled(format!(" {message}"), theme.notable()),
        (None, None) => Line::styled(format!(" {hint}"), Theme::dim()),
    };
    frame.render_widget(line, foot);
    if model.shows_help {
        draw_keys(frame, &KEYS, theme);
    }
}

fn draw_list(frame: &mut Frame<'_>, model: &StepModel, theme: Theme, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    let columns = usize::from(area.width.saturating_sub(2));
    let has_time = area.width >= WITH_TIME;
    // Only what can be seen is drawn, with the current event in the middle: sessions can be long.
    let most = model.steps.len().saturating_sub(rows);
    let first = model.current.saturating_sub(rows / 2).min(most);
    let shown = model.steps.iter().skip(first).take(rows);
    let items = shown.map(|step| ListItem::new(list_line(step, model, has_time, columns, theme)));
    let place = if model.steps.is_empty() { 0 } else { model.current + 1 };
    let title = format!(" {} {place}/{} ", model.title, model.steps.len());
    let block = Block::bordered().border_style(theme.border(true)).title(title);
    let list = List::new(items).block(block).highlight_style(Theme::selected());
    let mut state =
        ListState::default().with_selected(Some(model.current - first.min(model.current)));
    frame.render_stateful_widget(list, area, &mut state);
}

fn list_line(
    step: &Step,
    model: &StepModel,
    has_time: bool,
    columns: usize,
    theme: Theme,
) -> Line<'static> {
    let (mark, style) = if step.is_blocked() {
        ('B', theme.bad())
    } else if step.is_asked() {
        ('?', theme.notable())
    } else if step.has_failure() {
        ('F', theme.bad())
    } else {
        (' ', Style::new())
    };
    let compared = model.compared.get(&step.seq).map_or(' ', super::Compared::mark);
    let time = local_time(step.at).format("%H:%M:%S ").to_string();
    let time = if has_time { time } else { String::new() };
    let (name, name_style) = name_of(step, theme);
    let taken = time.len() + 3;
    let name = fit(&name, columns.saturating_sub(taken));
    let about = if step.is_result() { end_of(step) } else { shorten(&step.about, 300) };
    let room = columns.saturating_sub(taken + crate::output::width(&name) + 1);
    let about_style = if step.failed { theme.bad() } else { Style::new() };
    Line::from(vec![
        Span::styled(time, Theme::dim()),
        Span::styled(mark.to_string(), style),
        Span::styled(format!("{compared} "), theme.notable()),
        Span::styled(name, name_style),
        Span::styled(format!(" {}", fit(&about, room)), about_style),
    ])
}

/// What an event is called: the tool, else our kind, which is the same for all agents.
fn name_of(step: &Step, theme: Theme) -> (String, Style) {
    match (&step.tool, step.kind) {
        (Some(tool), Kind::ToolBefore) => (shorten(tool, 60), theme.notable()),
        (Some(tool), Kind::ToolAfter | Kind::ToolFailed) => {
            (format!("└ {}", shorten(tool, 60)), Theme::dim())
        }
        (_, Kind::TurnStart | Kind::AgentStart) => (step.kind.to_string(), Theme::bold()),
        (_, Kind::Other) => (shorten(&step.name, 60), Style::new()),
        _ => (step.kind.to_string(), Style::new()),
    }
}

/// How a call ended.
fn end_of(step: &Step) -> String {
    let exit = step.result.as_ref().and_then(|result| result.outcome.exit_code);
    let exit = exit.filter(|code| *code != 0).map_or_else(String::new, |it| format!(", exit {it}"));
    let word = match step.ended() {
        Some(ToolStatus::Unknown) | None => "ended",
        Some(status) => status.as_str(),
    };
    format!("{word}{exit}")
}

fn draw_detail(frame: &mut Frame<'_>, model: &mut StepModel, theme: Theme, area: Rect) {
    let columns = usize::from(area.width.saturating_sub(4));
    let rows = usize::from(area.height.saturating_sub(2));
    let lines = model.detail().map(|detail| detail.wrapped(columns)).unwrap_or_default();
    let most = lines.len().saturating_sub(rows);
    model.scroll = model.scroll.min(most);
    let style = |tone: Tone| match tone {
        Tone::Plain => Style::new(),
        Tone::Title => Theme::bold(),
        Tone::Dim => Theme::dim(),
        Tone::Bad => theme.bad(),
        Tone::Good => theme.good(),
        Tone::Notable => theme.notable(),
    };
    let below = lines.len().saturating_sub(model.scroll + rows);
    let more = match below {
        0 => String::new(),
        _ => format!(" {}: Space ", count(below, "more line")),
    };
    let shown = lines.into_iter().skip(model.scroll).take(rows);
    let text: Vec<Line<'_>> =
        shown.map(|(tone, line)| Line::styled(format!(" {line}"), style(tone))).collect();
    let about = &model.about;
    let about = if about.is_empty() { String::new() } else { format!(" {} ", fit(about, columns)) };
    let block = Block::bordered().border_style(theme.border(false)).title(about).title_bottom(more);
    frame.render_widget(Paragraph::new(text).block(block), area);
}
