//! One entry of a session as lines: what it was, how it ended, one line of what it printed, and what was decided about it.

use hookbus::event::{Kind, Outcome, ToolClass};
use hookbus::view::{
    DecisionView, Item, ModelCall, QuestionAsked, Subagent, ToolCall, ToolStatus, What,
};

use super::session_lines::Style;
use crate::output::{
    Paint, count, fit, format_duration, local_time, pad, sanitize, sanitize_lines, shorten,
    shorten_middle, width, wrap,
};

/// The columns of the time, and of the name of a tool.
const TIME: usize = 10;
const NAME: usize = 18;

/// The fewest columns of what a call is about, before how it ended goes to the next line.
const SUBJECT: usize = 24;

impl Style {
    pub(super) fn item(self, item: &Item, indent: usize) -> Vec<String> {
        let mut lines = match &item.what {
            What::Tool(call) => self.tool(item, call, indent),
            What::Model(call) => self.model(item, call, indent),
            What::Question(asked) => self.question(item, asked, indent),
            What::Subagent(subagent) => self.subagent(item, subagent, indent),
            What::Event { text } => self.entry(item, name(item), text, "", indent),
            What::Prompt | What::TurnEnd | What::Quiet => {
                self.entry(item, name(item), "", "", indent)
            }
            What::LostEvent => {
                let text = "a decision about an event that is not in this log";
                self.entry(item, "decision", text, "", indent)
            }
        };
        lines.extend(self.decisions(item, indent + TIME));
        if let What::Subagent(subagent) = &item.what {
            if let Some(inside) = &subagent.inside {
                lines.extend(self.turns(inside, indent + 6));
            }
            if let Some(answer) = &subagent.answer {
                let is_told = subagent.inside.as_ref().is_some_and(|inside| {
                    inside.turns.iter().any(|turn| turn.answer.as_ref() == Some(answer))
                });
                if !is_told {
                    lines.extend(self.text("< ", answer, indent + 8, |_, text| text.to_owned()));
                }
            }
        }
        lines
    }

    /// Time, name, what it is about, how it ended.
    fn entry(self, item: &Item, name: &str, about: &str, end: &str, indent: usize) -> Vec<String> {
        let time = self.paint.dim(&local_time(item.at).format("%H:%M:%S").to_string());
        let is_tool = matches!(item.what, What::Tool(_) | What::Subagent(_) | What::Model(_));
        let name = shorten_middle(name, NAME - 1);
        let shown = if is_tool { self.paint.notable(&name) } else { name };
        let left = format!("{}{}{}", " ".repeat(indent), pad(&time, TIME), pad(&shown, NAME));
        let room = self.columns.saturating_sub(indent + TIME + NAME);
        let about = shorten(about, usize::MAX);
        let space = room.saturating_sub(width(end) + 2);
        let is_beside = end.is_empty() || space >= SUBJECT.min(width(&about));
        if is_beside && (!self.full || width(&about) <= space) {
            let about = fit(&about, if end.is_empty() { room } else { space });
            return vec![format!("{left}{about}  {end}").trim_end().to_owned()];
        }
        let next = " ".repeat(indent + TIME);
        let mut lines = Vec::new();
        if self.full {
            let wrapped = wrap(&about, room, usize::MAX);
            let before = " ".repeat(indent + TIME + NAME);
            let lead = |at| if at == 0 { left.clone() } else { before.clone() };
            lines.extend(wrapped.iter().enumerate().map(|(at, it)| format!("{}{it}", lead(at))));
        } else {
            lines.push(format!("{left}{}", fit(&about, room)));
        }
        if !end.is_empty() {
            lines.push(format!("{next}{end}"));
        }
        lines
    }

    fn tool(self, item: &Item, call: &ToolCall, indent: usize) -> Vec<String> {
        let mut lines = self.entry(item, &call.tool, &call.subject, &self.end(item, call), indent);
        let space = " ".repeat(indent + TIME);
        if item.ran_despite_block() {
            let text = "it ran although it was blocked: the agent did not obey the decision";
            lines.push(format!("{space}{}", self.paint.bad(text)));
        }
        let Some(result) = &call.result else { return lines };
        let outcome = &result.outcome;
        let is_bad = matches!(outcome.status, ToolStatus::Failed | ToolStatus::Denied);
        // A block is told with its hook.
        let is_told = outcome.status == ToolStatus::Denied && was_blocked(item);
        let room = self.columns.saturating_sub(indent + TIME + 2);
        if let Some(error) = outcome.error.as_deref().filter(|_| is_bad && !is_told) {
            let most = if self.full { usize::MAX } else { 2 };
            let is_code = error.lines().count() == 1
                && outcome.exit_code.is_some()
                && error.starts_with("Exit code");
            let wrapped = wrap(&sanitize_lines(error.trim()), room, most);
            let lines_of_error = wrapped.iter().filter(|_| !is_code);
            lines.extend(lines_of_error.map(|line| format!("{space}{}", self.paint.bad(line))));
        }
        if let Some(output) = outcome.output.as_deref() {
            lines.extend(self.output(call, output, &space, room));
        }
        lines
    }

    /// One line of what a tool printed: of a failure the last one. Of a file that was read, nothing.
    fn output(self, call: &ToolCall, output: &str, space: &str, room: usize) -> Vec<String> {
        let clean = sanitize_lines(&output.replace('\r', ""));
        let quote = |line: &str| format!("{space}{}", self.paint.dim(&format!("│ {line}")));
        if self.full {
            let all = clean.trim_end().lines();
            return all
                .flat_map(|line| wrap(&format!("{line} "), room, usize::MAX))
                .map(|line| quote(&line))
                .collect();
        }
        let failed = call.status() == ToolStatus::Failed;
        let is_content = matches!(
            call.class,
            Some(ToolClass::FileRead | ToolClass::FileWrite | ToolClass::Todo | ToolClass::Agent)
        );
        let lines: Vec<&str> = clean.lines().filter(|line| !line.trim().is_empty()).collect();
        let line = if failed { lines.last() } else { lines.first() };
        let Some(line) = line.filter(|_| failed || !is_content) else { return Vec::new() };
        let more = match lines.len() - 1 {
            0 => String::new(),
            more => format!(" … {}", count(more, "more line")),
        };
        let line = shorten(line, usize::MAX);
        vec![quote(&format!("{}{more}", fit(&line, room.saturating_sub(width(&more)))))]
    }

    /// How a call ended, in words.
    fn end(self, item: &Item, call: &ToolCall) -> String {
        let took =
            item.took().map_or_else(String::new, |took| format!(", {}", format_duration(took)));
        let Some(result) = &call.result else {
            let asked = item.decisions.iter().any(DecisionView::asks);
            return match (was_blocked(item), asked) {
                (true, _) => self.paint.bad("blocked"),
                (false, true) => self.paint.notable("asked, no result recorded"),
                (false, false) => self.paint.dim("no result recorded"),
            };
        };
        if item.ran_despite_block() {
            return self.paint.bad(&format!("RAN ALTHOUGH IT WAS BLOCKED{took}"));
        }
        if result.is_removed {
            return self.paint.dim("result removed");
        }
        let code = result.outcome.exit_code;
        let exit = code
            .filter(|code| *code != 0)
            .map_or_else(String::new, |code| format!(", exit {code}"));
        match result.outcome.status {
            ToolStatus::Ok => self.paint.good(&format!("ok{exit}{took}")),
            ToolStatus::Failed => self.paint.bad(&format!("failed{exit}{took}")),
            ToolStatus::Denied if was_blocked(item) => self.paint.bad("blocked"),
            ToolStatus::Denied => self.paint.bad(&format!("denied{took}")),
            ToolStatus::Unknown => self.paint.dim(&format!("ended, status unknown{took}")),
        }
    }

    fn model(self, item: &Item, call: &ModelCall, indent: usize) -> Vec<String> {
        let blocked = was_blocked(item);
        let end = match (blocked, call.errors.len()) {
            (true, _) => self.paint.bad("blocked"),
            (false, 0) => String::new(),
            (false, errors) if call.usage.is_some() || call.chunks > 0 => {
                self.paint.bad(&format!("answered after {}", count(errors, "error")))
            }
            (false, _) => self.paint.bad("failed"),
        };
        let about = call.model.clone().unwrap_or_default();
        let mut lines = self.entry(item, "model request", &about, &end, indent);
        for error in &call.errors {
            let most = if self.full { usize::MAX } else { 2 };
            let room = self.columns.saturating_sub(indent + TIME);
            let wrapped = wrap(&sanitize_lines(error), room, most);
            let space = " ".repeat(indent + TIME);
            lines.extend(wrapped.iter().map(|line| format!("{space}{}", self.paint.bad(line))));
        }
        lines
    }

    fn question(self, item: &Item, asked: &QuestionAsked, indent: usize) -> Vec<String> {
        let why = asked.question.why.as_deref().map_or_else(String::new, |why| format!(" ({why})"));
        let about = format!("{}{why}", asked.question.about);
        let end = match &asked.answer {
            Some(answer) => {
                let text = format!("answered: {}", shorten(&answer.text, 40));
                let colour = if answer.yes == Some(false) { Paint::bad } else { Paint::notable };
                colour(self.paint, &text)
            }
            None => self.paint.dim("answer not recorded"),
        };
        self.entry(item, "user was asked", &about, &end, indent)
    }

    fn subagent(self, item: &Item, subagent: &Subagent, indent: usize) -> Vec<String> {
        let took = subagent.took.or_else(|| {
            let (_, ended) = subagent.ended?;
            subagent.is_start_recorded.then(|| ended.since(item.at))
        });
        let took = took.map_or_else(String::new, |took| format!(", {}", format_duration(took)));
        let status = subagent.status.as_deref().map_or_else(|| "ended".to_owned(), sanitize);
        let end = match (&subagent.ended, subagent.is_start_recorded) {
            (Some(_), true) => format!("{status}{took}"),
            (Some(_), false) => self.paint.dim(&format!("{status}, its start is not recorded")),
            (None, _) => self.paint.dim("no end recorded"),
        };
        let role = subagent.role.as_deref().unwrap_or_default();
        let goal = subagent.goal.as_deref().unwrap_or_default();
        let id = subagent.session.as_deref().map_or_else(String::new, |session| {
            format!(" (session {})", crate::args::short_session(session))
        });
        let about = format!("{role} {goal}{id}");
        self.entry(item, "sub-agent", about.trim(), &end, indent)
    }
}

/// What an event is called: our kind, which is the same for all agents.
fn name(item: &Item) -> &str {
    if item.kind == Kind::Other { &item.name } else { item.kind.as_str() }
}

/// Whether a decision refused it.
pub(super) fn was_blocked(item: &Item) -> bool {
    item.decisions.iter().any(|decision| {
        decision.outcome.is_some_and(Outcome::refuses) && decision.about == Some(item.kind)
    })
}
