//! A session as text: a header with its numbers, then its turns. A turn is its prompt, what happened, and its answer.

use hookbus::event::{Clock, SystemClock};
use hookbus::view::{Item, SessionView, Totals, Turn, Usage, What};

use crate::output::{
    Paint, count, fit, format_duration, local_time, number, sanitize, sanitize_lines, when, width,
    wrap,
};

/// How many lines of a prompt or an answer are shown.
const MOST_LINES: usize = 6;

/// How text is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) paint: Paint,
    /// The width of the window.
    pub(super) columns: usize,
    /// Whether nothing is left out.
    pub(super) full: bool,
}

impl Style {
    /// The whole session.
    pub(super) fn session(self, view: &SessionView) -> Vec<String> {
        let mut lines = self.header(view);
        lines.extend(self.turns(view, 0));
        lines.extend(self.hints(view));
        lines
    }

    fn header(self, view: &SessionView) -> Vec<String> {
        let now = SystemClock.now();
        let mut about = vec![sanitize(&view.agent)];
        about.extend(view.project_name().map(|name| sanitize(&name)));
        if let (Some(first), Some(last)) = (view.first, view.last) {
            about.push(when(first, now));
            about.push(format_duration(last.since(first)));
        } else {
            about.push("empty".to_owned());
        }
        let name = sanitize(&view.session);
        let name = if name.is_empty() { "(no session)" } else { &name };
        let title = self.paint.bold(name);
        let mut lines = self.joined(&format!("{title}  "), &about, " · ");
        let mut place = Vec::new();
        place.extend(
            view.cwd.as_deref().map(|cwd| fit(&format!("in {}", sanitize(cwd)), self.columns)),
        );
        place.extend(models(view));
        let place = self.joined("", &place, ", ");
        lines.extend(place.iter().filter(|it| !it.is_empty()).map(|it| self.paint.dim(it)));
        let totals = Totals::of(view);
        lines.extend(self.totals("", &totals));
        let inside = Totals::of_subagents(view);
        if inside.events > 0 {
            lines.extend(self.totals("in sub-agents: ", &inside));
        }
        lines
    }

    /// The numbers, as far as they are not 0; what went wrong stands out.
    fn totals(self, before: &str, totals: &Totals) -> Vec<String> {
        let some = |number: usize, what: &str| (number > 0).then(|| count(number, what));
        let told = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
        let usual: Vec<String> = [
            Some(count(totals.events, "event")),
            some(totals.decisions, "decision"),
            some(totals.turns, "turn"),
            some(totals.tool_calls, "tool call"),
            some(totals.subagents, "sub-agent"),
            usage(&totals.usage),
        ]
        .into_iter()
        .flatten()
        .collect();
        let bad: Vec<String> = [
            told(totals.blocked, "blocked"),
            told(totals.failed, "failed"),
            some(totals.model_errors, "failed model request"),
            told(totals.ran_despite_block, "RAN ALTHOUGH IT WAS BLOCKED"),
        ]
        .into_iter()
        .flatten()
        .map(|text| self.paint.bad(&text))
        .collect();
        let notable: Vec<String> = [
            told(totals.asked, "asked about"),
            told(totals.would_block, "would have been blocked"),
        ]
        .into_iter()
        .flatten()
        .map(|text| self.paint.notable(&text))
        .collect();
        let all: Vec<String> = [usual, bad, notable].concat();
        self.joined(before, &all, ", ")
    }

    /// Parts behind each other, on as many lines as they need.
    fn joined(self, before: &str, parts: &[String], between: &str) -> Vec<String> {
        let mut lines = vec![before.to_owned()];
        for (place, part) in parts.iter().enumerate() {
            let is_last = place + 1 == parts.len();
            let part = if is_last { part.clone() } else { format!("{part}{between}") };
            let line = lines.last().map_or(0, |line| width(line));
            if line + width(part.trim_end()) > self.columns && line > 0 {
                lines.push(format!("  {part}"));
            } else if let Some(line) = lines.last_mut() {
                line.push_str(&part);
            }
        }
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The turns, `indent` columns to the right.
    pub(super) fn turns(self, view: &SessionView, indent: usize) -> Vec<String> {
        let space = " ".repeat(indent);
        let mut lines = Vec::new();
        let mut number = 0;
        for turn in &view.turns {
            if turn.prompt.is_some() {
                number += 1;
                if indent == 0 {
                    lines.push(String::new());
                }
                let at = turn.at.map(|at| local_time(at).format("%H:%M:%S").to_string());
                let title = self.paint.bold(&format!("turn {number}"));
                lines.push(format!("{space}{title}  {}", self.paint.dim(&at.unwrap_or_default())));
            }
            lines.extend(self.turn(turn, indent + 2));
        }
        lines
    }

    fn turn(self, turn: &Turn, indent: usize) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(prompt) = turn.prompt.as_deref().filter(|prompt| !prompt.is_empty()) {
            lines.extend(self.text("> ", prompt, indent, Paint::bold));
        }
        // The answer stands where the turn ended: a session can end behind it.
        let end = turn.items.iter().rposition(|item| matches!(item.what, What::TurnEnd));
        for (place, item) in turn.items.iter().enumerate() {
            if item.is_visible() {
                lines.extend(self.item(item, indent));
            }
            if Some(place) == end {
                lines.extend(self.end_of(turn, indent));
            }
        }
        if end.is_none() {
            lines.extend(self.end_of(turn, indent));
        }
        lines
    }

    /// The requests to the model, and how the turn ended.
    fn end_of(self, turn: &Turn, indent: usize) -> Vec<String> {
        let (mut lines, space) = (Vec::new(), " ".repeat(indent));
        if let Some(requests) = model_requests(&turn.items) {
            lines.push(self.paint.dim(&format!("{space}{requests}")));
        }
        if let Some(failure) = &turn.failure {
            let text = format!("turn failed: {failure}");
            lines.extend(self.text("", &text, indent, Paint::bad));
        }
        if let Some(answer) = &turn.answer {
            lines.extend(self.text("< ", answer, indent, |_, text| text.to_owned()));
        }
        lines
    }

    /// A text of several lines behind a mark.
    pub(super) fn text(
        self,
        mark: &str,
        text: &str,
        indent: usize,
        colour: impl Fn(Paint, &str) -> String,
    ) -> Vec<String> {
        let most = if self.full { usize::MAX } else { MOST_LINES };
        let (first, next) =
            (format!("{}{mark}", " ".repeat(indent)), " ".repeat(indent + mark.len()));
        let lines =
            wrap(&sanitize_lines(text.trim()), self.columns.saturating_sub(next.len()), most);
        let coloured = lines.into_iter().enumerate().map(|(at, line)| {
            let before = if at == 0 { &first } else { &next };
            format!("{before}{}", colour(self.paint, &line))
        });
        coloured.collect()
    }

    /// What to type next.
    fn hints(self, view: &SessionView) -> Vec<String> {
        let decided = view.items().flat_map(|item| &item.decisions);
        let held: Vec<String> = decided
            .filter(|decision| decision.refuses() || decision.asks())
            .map(|decision| decision.seq.to_string())
            .collect();
        match held.as_slice() {
            [] => Vec::new(),
            [first, ..] => {
                let text = format!(
                    "`hookbus why {first}` explains the first decision that held the agent back"
                );
                vec![String::new(), self.paint.dim(&text)]
            }
        }
    }
}

fn models(view: &SessionView) -> Option<String> {
    let names: Vec<String> = view.models.iter().map(|model| sanitize(model)).collect();
    match names.len() {
        0 => None,
        1 => Some(format!("model {}", names[0])),
        _ => Some(format!("models {}", names.join(", "))),
    }
}

/// `12,345 tokens in, 678 out, $0.12`
fn usage(usage: &Usage) -> Option<String> {
    let tokens = match (usage.input_tokens, usage.output_tokens, usage.total_tokens) {
        (Some(input), Some(output), _) => {
            Some(format!("{} tokens in, {} out", number(input), number(output)))
        }
        (_, _, Some(total)) => Some(format!("{} tokens", number(total))),
        (Some(input), None, None) => Some(format!("{} tokens in", number(input))),
        (None, Some(output), None) => Some(format!("{} tokens out", number(output))),
        (None, None, None) => None,
    };
    let cost = usage.cost_usd.map(|cost| format!("${cost:.2}"));
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The requests to the model of a turn, in one line.
fn model_requests(items: &[Item]) -> Option<String> {
    let (mut requests, mut chunks, mut used) = (0, 0, Usage::default());
    for item in items {
        if let What::Model(call) = &item.what {
            requests += 1;
            chunks += call.chunks;
            if let Some(usage) = &call.usage {
                used.add(usage);
            }
        }
    }
    let mut parts = vec![count(requests, "model request")];
    parts.extend((chunks > 0).then(|| count(chunks, "chunk")));
    parts.extend(usage(&used));
    (requests > 0).then(|| parts.join(", "))
}
