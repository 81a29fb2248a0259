//! The page that lists the keys of a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::Theme;

/// A page with keys, over everything else.
pub(crate) fn draw_keys(frame: &mut Frame<'_>, keys: &[(&str, &str)], theme: Theme) {
    let area = frame.area();
    let height = u16::try_from(keys.len() + 2).unwrap_or(u16::MAX);
    let [_, middle, _] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(area.width.min(76)),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [_, page, _] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(height.min(area.height)),
        Constraint::Fill(1),
    ])
    .areas(middle);
    let lines: Vec<Line<'_>> = keys
        .iter()
        .map(|(key, what)| {
            Line::from(vec![
                Span::styled(format!(" {key:<15} "), theme.notable()),
                Span::from(*what),
            ])
        })
        .collect();
    frame.render_widget(Clear, page);
    let block = Block::bordered().border_style(theme.border(true)).title(" keys ");
    frame.render_widget(Paragraph::new(lines).block(block), page);
}
