//! Everything about one event, as lines: the decision with what each hook said, what would be decided now, the result, the
//! payload. What the agent wrote is made safe for a terminal here.

use hookbus::event::{Outcome, RecordedDecision, RecordedVerdict};
use hookbus::view::{CallResult, DecisionView, Step, ToolStatus};
use hookbus_replay::Category;

use super::Compared;
use crate::output::{count, format_duration, local_time, sanitize, sanitize_lines, shorten, wrap};

/// How many lines of a payload, and of what a tool printed, are shown.
const MOST_LINES: usize = 2000;
const MOST_OUTPUT: usize = 200;

/// A longer line is cut.
const LONGEST_LINE: usize = 4000;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Title,
    Dim,
    Bad,
    Good,
    Notable,
}

/// What is read only when an event is shown.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The payload, pretty-printed.
    pub(crate) payload: String,
    /// The recorded decision.
    pub(crate) decision: Option<RecordedDecision>,
}

/// The lines of one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Detail {
    lines: Vec<(Tone, String)>,
}

impl Detail {
    pub(super) fn new(step: &Step, compared: Option<&Compared>, sources: &Sources) -> Self {
        let mut detail = Self::default();
        detail.head(step);
        if let Some(decision) = &step.decision {
            detail.decision(decision, sources.decision.as_ref());
        } else {
            detail.add(Tone::Title, "recorded decision");
            detail.add(Tone::Dim, "  none: no hook had anything to say");
        }
        if let Some(compared) = compared {
            detail.compared(compared);
        }
        if let Some(result) = &step.result {
            detail.result(step, result);
        }
        detail.blank();
        detail.add(Tone::Title, "payload");
        detail.block(Tone::Plain, "  ", &sources.payload, MOST_LINES);
        detail
    }

    /// As lines of at most so many columns; the rest of a long line is indented as its start.
    pub(super) fn wrapped(&self, columns: usize) -> Vec<(Tone, String)> {
        let wrapped = self.lines.iter().flat_map(|(tone, line)| {
            let text = line.trim_start();
            let indent = (line.len() - text.len()).min(columns / 2);
            let lines = wrap(text, columns - indent, usize::MAX);
            let lines = if lines.is_empty() { vec![String::new()] } else { lines };
            lines.into_iter().map(move |line| (*tone, format!("{:indent$}{line}", "")))
        });
        wrapped.collect()
    }

    fn add(&mut self, tone: Tone, line: impl Into<String>) {
        self.lines.push((tone, line.into()));
    }

    fn blank(&mut self) {
        self.add(Tone::Plain, "");
    }

    /// A text of several lines.
    fn block(&mut self, tone: Tone, before: &str, text: &str, most: usize) {
        let mut lines = text.lines();
        for line in lines.by_ref().take(most) {
            let line: String = line.chars().take(LONGEST_LINE).collect();
            self.add(tone, format!("{before}{}", sanitize(&line.replace('\t', "    "))));
        }
        let more = lines.count();
        if more > 0 {
            self.add(Tone::Dim, format!("{before}… {}", count(more, "more line")));
        }
    }

    fn head(&mut self, step: &Step) {
        let Step { seq, name, kind, .. } = step;
        self.add(Tone::Title, sanitize(&format!("{seq}  {name} ({kind})")));
        let at = local_time(step.at).format("%Y-%m-%d %H:%M:%S%.3f");
        let tool = step.tool.as_deref().map_or_else(String::new, |tool| format!(", {tool}"));
        self.add(Tone::Dim, sanitize(&format!("{at}, {}{tool}", step.agent)));
        if !step.about.is_empty() {
            self.block(Tone::Plain, "", &step.about, 6);
        }
        if let Some(failure) = &step.failure {
            self.add(Tone::Bad, format!("failed: {}", shorten(failure, 500)));
        } else if step.failed && !step.is_result() {
            self.add(Tone::Bad, "failed");
        }
        self.blank();
    }

    fn decision(&mut self, view: &DecisionView, recorded: Option<&RecordedDecision>) {
        self.add(Tone::Title, format!("recorded decision (row {})", view.seq));
        match (recorded, view.is_removed) {
            (Some(recorded), _) => self.verdicts(recorded),
            (None, true) => self.add(Tone::Dim, "  its payload was removed"),
            (None, false) => self.add(Tone::Dim, "  this version cannot read it"),
        }
    }

    fn verdicts(&mut self, decision: &RecordedDecision) {
        let took = decision.ms.map_or_else(String::new, |ms| format!("  {ms:.1} ms"));
        self.add(tone_of(decision.outcome), format!("  {}{took}", decision.outcome));
        for verdict in &decision.verdicts {
            self.verdict(verdict);
        }
        if let Some(answer) = &decision.answer {
            self.add(
                Tone::Plain,
                format!("  the agent receives {}", shorten(&answer.to_string(), 600)),
            );
        }
        if !decision.waited_for {
            self.add(Tone::Bad, "  the agent did not wait for the answer");
        }
        if let Some(note) = &decision.note {
            self.add(Tone::Dim, format!("  {}", sanitize_lines(note)));
        }
        if let Some(notice) = &decision.notice {
            self.add(Tone::Notable, format!("  told the user: {}", shorten(&notice.text, 500)));
        }
    }

    fn verdict(&mut self, verdict: &RecordedVerdict) {
        let word = if verdict.verdict.is_empty() { "none" } else { &verdict.verdict };
        let shadow = if verdict.shadow { " (shadow)" } else { "" };
        let first = format!("  {}: {}{shadow}", shorten(&verdict.hook, 80), shorten(word, 40));
        let parts = [
            Some(first),
            verdict.unapproved.then(|| "not run: not approved".to_owned()),
            verdict.exit.map(|exit| format!("exit {exit}")),
            verdict.ms.map(|ms| format!("{ms:.1} ms")),
        ];
        let line = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let outcome = Outcome::parse(&verdict.verdict).unwrap_or(Outcome::None);
        let tone = if verdict.failure.is_some() { Tone::Bad } else { tone_of(outcome) };
        self.add(tone, line);
        let failure = verdict.failure.as_ref().map(|why| format!("failed: {why}"));
        let context = verdict.context.as_ref().and_then(|context| context.as_str());
        let context = context.map(|text| format!("context: {text}"));
        let rewrite = verdict.rewrite.as_ref().map(|input| format!("rewrite: {input}"));
        let more = [failure, verdict.reason.clone(), context, rewrite, verdict.note.clone()];
        for text in more.into_iter().flatten() {
            self.add(Tone::Plain, format!("    {}", shorten(&text, 600)));
        }
    }

    fn compared(&mut self, compared: &Compared) {
        self.blank();
        let hook = compared.hook.as_deref().filter(|_| compared.differs());
        let hook = hook.map_or_else(String::new, |hook| format!(" by {}", shorten(hook, 80)));
        let (tone, word) = match compared.category {
            Category::Unchanged => (Tone::Good, "same as recorded"),
            Category::NewlyBlocked => (Tone::Bad, "newly blocked"),
            Category::NewlyAllowed => (Tone::Notable, "newly allowed"),
            Category::Changed => (Tone::Notable, "changed"),
            Category::Failed => (Tone::Bad, "a hook fails"),
            Category::NotComparable => (Tone::Dim, "not comparable"),
        };
        self.add(Tone::Title, "replayed decision");
        self.add(tone, format!("  {word}{hook}"));
        if let Some(why) = &compared.why {
            self.add(Tone::Plain, format!("  {}", shorten(why, 600)));
        }
        for note in &compared.notes {
            self.add(Tone::Dim, format!("  {}", shorten(note, 600)));
        }
        if let Some(now) = compared.now.as_ref().filter(|_| compared.differs()) {
            self.verdicts(now);
        }
    }

    fn result(&mut self, step: &Step, result: &CallResult) {
        self.blank();
        let place = match (step.is_result(), step.call) {
            (false, _) => format!(" (row {})", result.seq),
            (true, Some(call)) => format!(" of the call in row {call}"),
            (true, None) => ", its call is not recorded".to_owned(),
        };
        self.add(Tone::Title, format!("result{place}"));
        let outcome = &result.outcome;
        let exit = outcome.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
        let took =
            step.took.map_or_else(String::new, |took| format!(", {}", format_duration(took)));
        let tone = match outcome.status {
            ToolStatus::Ok => Tone::Good,
            ToolStatus::Failed | ToolStatus::Denied => Tone::Bad,
            ToolStatus::Unknown => Tone::Dim,
        };
        self.add(tone, format!("  {}{exit}{took}", outcome.status.as_str()));
        if result.is_removed {
            self.add(Tone::Dim, "  its payload was removed");
        }
        if let Some(error) = outcome.error.as_deref() {
            self.block(Tone::Bad, "  ", error, MOST_OUTPUT);
        }
        if let Some(output) = outcome.output.as_deref() {
            self.block(Tone::Dim, "  │ ", &output.replace('\r', ""), MOST_OUTPUT);
        }
    }
}

const fn tone_of(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Block | Outcome::Stop => Tone::Bad,
        Outcome::Ask | Outcome::Context | Outcome::Rewrite => Tone::Notable,
        Outcome::Allow => Tone::Good,
        Outcome::None => Tone::Dim,
    }
}
