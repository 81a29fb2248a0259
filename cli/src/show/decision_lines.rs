//! What was decided about an entry: each hook that said something, once, with its reason.

use hookbus::decide::became_a_block;
use hookbus::event::Kind;
use hookbus::view::{DecisionView, HookSaid, Item};

use super::session_lines::Style;
use crate::output::{Paint, sanitize, sanitize_lines, shorten_middle, wrap};

/// How many lines a reason may take.
const MOST_LINES: usize = 5;

impl Style {
    /// The lines about all decisions of an entry.
    pub(super) fn decisions(self, item: &Item, indent: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for decision in item.decisions.iter().filter(|decision| !decision.is_silent()) {
            for line in decision_lines(item, decision) {
                let (colour, text) = line;
                let room = self.columns.saturating_sub(indent);
                let most = if self.full { usize::MAX } else { MOST_LINES };
                let wrapped = wrap(&sanitize_lines(&text), room.saturating_sub(2), most);
                let shown = wrapped.iter().enumerate().map(|(at, line)| {
                    let hang = if at == 0 { "" } else { "  " };
                    format!("{}{hang}{line}", " ".repeat(indent))
                });
                let shown: Vec<String> = shown.collect();
                // A hook says the same about a call and about its result.
                if !shown.iter().all(|line| lines.iter().any(|known| plain(known) == plain(line))) {
                    lines.extend(shown.into_iter().map(|line| self.coloured(colour, line)));
                }
            }
        }
        lines
    }

    /// Colours the word that says what happened, at the start of a line.
    fn coloured(self, colour: Colour, line: String) -> String {
        let Some(word) = colour.word.filter(|word| line.trim_start().starts_with(word)) else {
            return line;
        };
        let start = line.len() - line.trim_start().len();
        let rest = &line[start + word.len()..];
        format!("{}{}{rest}", &line[..start], (colour.paint)(self.paint, word))
    }
}

/// What a decision says, one line for each hook.
fn decision_lines(item: &Item, decision: &DecisionView) -> Vec<(Colour, String)> {
    let moment = match (decision.about, item.kind) {
        (Some(Kind::ToolAfter | Kind::ToolFailed), Kind::ToolBefore) => "result ",
        (Some(Kind::ModelChunk | Kind::ModelAfter), Kind::ModelBefore) => "answer ",
        _ => "",
    };
    let mut lines: Vec<(Colour, String)> =
        decision.said.iter().map(|hook| hook_line(hook, decision, moment)).collect();
    if lines.is_empty() && decision.refuses() {
        lines.push((Colour::BLOCKED, format!("{moment}blocked")));
    }
    if decision.is_removed {
        lines.push((Colour::NONE, "decision removed".to_owned()));
    } else if decision.outcome.is_none() {
        lines.push((Colour::NONE, "a decision that this version cannot read".to_owned()));
    }
    if decision.refuses() && !decision.waited_for {
        let text = "the agent did not wait for this answer".to_owned();
        lines.push((Colour { word: Some("the agent did not wait"), paint: Paint::bad }, text));
    }
    lines.extend(decision.note.iter().map(|note| (Colour::NONE, note.clone())));
    let told = |notice: &String| (Colour::TOLD, format!("told the user: {notice}"));
    lines.extend(decision.notice.iter().map(told));
    lines
}

/// A word at the start of a line, and how it is coloured.
#[derive(Clone, Copy)]
struct Colour {
    word: Option<&'static str>,
    paint: fn(Paint, &str) -> String,
}

impl Colour {
    const NONE: Self = Self { word: None, paint: Paint::dim };
    const BLOCKED: Self = Self { word: Some("blocked"), paint: Paint::bad };
    const STOPPED: Self = Self { word: Some("stopped"), paint: Paint::bad };
    const FAILED: Self = Self { word: Some("failed"), paint: Paint::bad };
    const NOT_RUN: Self = Self { word: Some("not run:"), paint: Paint::bad };
    const RESULT: Self = Self { word: Some("result blocked"), paint: Paint::bad };
    const ANSWER: Self = Self { word: Some("answer blocked"), paint: Paint::bad };
    const ASKED: Self = Self { word: Some("asked"), paint: Paint::notable };
    const CONTEXT: Self = Self { word: Some("context"), paint: Paint::notable };
    const REWRITE: Self = Self { word: Some("rewrite"), paint: Paint::notable };
    const ALLOWED: Self = Self { word: Some("allowed"), paint: Paint::good };
    const WOULD: Self = Self { word: Some("would have been"), paint: Paint::notable };
    const TOLD: Self = Self { word: Some("told the user:"), paint: Paint::notable };
}

fn plain(line: &str) -> &str {
    line.trim()
}

/// What one hook did, apart from the other hooks of the decision.
fn hook_line(said: &HookSaid, decision: &DecisionView, moment: &str) -> (Colour, String) {
    let hook = shorten_middle(&said.hook, 60);
    let why = said.reason.as_deref().map_or_else(String::new, |why| format!(": {}", why.trim()));
    let note = said.note.as_deref().map_or_else(String::new, |note| format!(" ({note})"));
    let became_a_block = said.note.as_deref().is_some_and(became_a_block);
    let verdict = if became_a_block { "block" } else { said.verdict.as_str() };
    if said.shadow {
        return match (said.unapproved, said.failed) {
            (true, _) => (Colour::NOT_RUN, format!("not run: {hook} (shadow){why}")),
            (false, true) if is_block(verdict) => {
                let would = would(verdict);
                (Colour::WOULD, format!("{would} by {hook} (shadow), which failed{why}{note}"))
            }
            (false, true) => (Colour::FAILED, format!("failed {hook} (shadow){why}{note}")),
            (false, false) => {
                (Colour::WOULD, format!("{} by {hook} (shadow){why}{note}", would(verdict)))
            }
        };
    }
    let blocked = decision.refuses() && (is_block(verdict) || became_a_block);
    let (colour, word) = word_of(verdict, moment);
    match (blocked, said.failed, said.unapproved) {
        (true, _, true) => {
            (colour, format!("{moment}{word} by {hook}, which did not run{why}{note}"))
        }
        (true, true, false) => {
            (colour, format!("{moment}{word} by {hook}, which failed{why}{note}"))
        }
        (false, _, true) => (Colour::NOT_RUN, format!("not run: {hook}{why}")),
        (false, true, false) => (Colour::FAILED, format!("failed {hook}{why}{note}")),
        // The hook wanted to block, but the agent does not support that at this event.
        (false, false, false) if is_block(verdict) => {
            (Colour::NONE, format!("{moment}{} by {hook}{why}{note}", sanitize(&said.verdict)))
        }
        (_, false, false) => (colour, format!("{moment}{word} by {hook}{why}{note}")),
    }
}

fn is_block(word: &str) -> bool {
    matches!(word, "block" | "stop")
}

fn word_of(verdict: &str, moment: &str) -> (Colour, String) {
    let (colour, word) = match verdict {
        "block" => (Colour::BLOCKED, "blocked"),
        "stop" => (Colour::STOPPED, "stopped"),
        "ask" => (Colour::ASKED, "asked"),
        "allow" => (Colour::ALLOWED, "allowed"),
        "context" => (Colour::CONTEXT, "context"),
        "rewrite" => (Colour::REWRITE, "rewrite"),
        "none" => (Colour::NONE, "no objection"),
        other => return (Colour::NONE, sanitize(other)),
    };
    let colour = match (moment, word) {
        ("result ", "blocked") => Colour::RESULT,
        ("answer ", "blocked") => Colour::ANSWER,
        _ => colour,
    };
    (colour, word.to_owned())
}

/// What would have happened to a call, if the hook were not in shadow mode.
fn would(word: &str) -> String {
    match word {
        "block" => "would have been blocked".to_owned(),
        "stop" => "would have been stopped".to_owned(),
        "ask" => "would have been asked about".to_owned(),
        "allow" => "would have been allowed".to_owned(),
        "none" => "no objection".to_owned(),
        other => format!("would have been changed ({})", sanitize(other)),
    }
}
