//! The report of a replay, as text or JSON: differences while it runs, then the totals.

use std::time::Duration;

use anyhow::Result;
use hookbus_replay::{
    Category, HookTally, NondeterministicHook, NotComparableReason, ReplayedEvent, Tally,
};
use serde_json::{Value, json};

use super::options::Arguments;
use super::setup::ReplaySetup;
use crate::args::short_session;
use crate::output::{
    self, Paint, count, counted, format_duration, pad, sanitize, shorten, shorten_middle, width,
};
use crate::report::{CALLS, MOST_CALLS, call_lines, count_line, lines_out, section};
use crate::settings::{Format, Settings};

/// Longest name of a hook, in characters.
const LONGEST_NAME: usize = 48;

/// Least width of the column with the names of hooks.
const NARROWEST_COLUMN: usize = 28;

/// Prints a report.
pub(super) struct Report<'a> {
    arguments: &'a Arguments,
    setup: &'a ReplaySetup,
    format: Format,
    paint: Paint,
    changes: u64,
    nondeterministic: Vec<Value>,
}

impl<'a> Report<'a> {
    pub(super) fn start(
        arguments: &'a Arguments,
        setup: &'a ReplaySetup,
        format: Format,
        settings: &Settings,
    ) -> Result<Self> {
        if format == Format::Json {
            output::bytes(b"{\"changes\":[")?;
        }
        let paint = Paint(settings.colour);
        Ok(Self { arguments, setup, format, paint, changes: 0, nondeterministic: Vec::new() })
    }

    /// Prints the next event, in log order.
    pub(super) fn event(&mut self, event: &ReplayedEvent) -> Result<()> {
        let category = event.comparison.category;
        if let Some(hook) = &event.nondeterministic {
            self.nondeterministic(event, hook)?;
        }
        if category == Category::Unchanged || self.arguments.update {
            return Ok(());
        }
        match self.format {
            Format::Json if category == Category::NotComparable => {}
            Format::Json => {
                let comma = if self.changes == 0 { "" } else { "," };
                output::part(&format!("{comma}\n{}", event.to_json()))?;
                self.changes += 1;
            }
            Format::Text if self.arguments.list => {
                print(event, self.paint)?;
            }
            Format::Text => {}
        }
        Ok(())
    }

    fn nondeterministic(
        &mut self,
        event: &ReplayedEvent,
        hook: &NondeterministicHook,
    ) -> Result<()> {
        let NondeterministicHook { hook, answers } = hook;
        let [first, second] = answers;
        match self.format {
            Format::Json => self.nondeterministic.push(json!({
                "seq": event.seq.as_i64(), "session": event.session, "name": event.name,
                "tool": event.tool, "hook": hook, "answers": answers,
            })),
            Format::Text => output::line(format!(
                "{:>8}  {} {}: {}, then {} to the same input",
                event.seq,
                self.paint.bad("nondeterministic"),
                sanitize(hook),
                shorten(first, 60),
                shorten(second, 60)
            ))?,
        }
        Ok(())
    }

    pub(super) fn end(self, tally: &Tally, written: Option<usize>, took: Duration) -> Result<()> {
        match self.format {
            Format::Json => {
                let written = match (written, &self.setup.expectations) {
                    (Some(events), Some(path)) if events > 0 => {
                        format!(",\"written\":{}", json!({"events": events, "file": path}))
                    }
                    _ => String::new(),
                };
                output::line(format!(
                    "\n],\"summary\":{},\"hooks\":{},\"most_affected\":{},\"not_comparable\":{},\
                     \"unsteady\":{},\"remarks\":{}{written}}}",
                    tally.summary(),
                    tally.hooks_json(),
                    tally.calls.to_json(MOST_CALLS),
                    tally.reasons_json(),
                    Value::Array(self.nondeterministic),
                    json!(remarks(tally)),
                ))?;
            }
            Format::Text => self.end_text(tally, written, took)?,
        }
        Ok(())
    }

    fn end_text(&self, tally: &Tally, written: Option<usize>, took: Duration) -> Result<()> {
        if let (Some(0), Some(path)) = (written, &self.setup.expectations) {
            output::line(format!(
                "no recorded event is selected; nothing was written to {}",
                path.display()
            ))?;
            return lines_out(&remarks(tally), "  ");
        }
        if let (Some(events), Some(path)) = (written, &self.setup.expectations) {
            let events = count(events, "event");
            output::line(format!(
                "wrote {events} with the decisions of {} to {}",
                self.setup.hooks_name,
                path.display()
            ))?;
            return lines_out(&remarks(tally), "  ");
        }
        let paint = self.paint;
        let events = count(usize::try_from(tally.events).unwrap_or(usize::MAX), "event");
        let head =
            format!("{events} through {} ({})", self.setup.hooks_name, format_duration(took));
        output::line(paint.bold(&head))?;
        for category in Category::ALL {
            let number = tally.count(category);
            if number > 0 || category == Category::Unchanged {
                output::line(count_line(number, &coloured(category, paint)))?;
            }
        }
        if tally.nondeterministic > 0 {
            let words = paint.bad("with another answer to the same input");
            output::line(count_line(tally.nondeterministic, &words))?;
        }
        section(CALLS, &call_lines(&tally.calls), paint)?;
        section("hooks (then → now)", &hooks(tally, paint), paint)?;
        section("not comparable", &reasons(tally), paint)?;
        section("remarks", &remarks(tally), paint)?;
        self.print_hints(tally)
    }

    fn print_hints(&self, tally: &Tally) -> Result<()> {
        let differences =
            tally.events - tally.count(Category::Unchanged) - tally.count(Category::NotComparable);
        if differences > 0 && !self.arguments.list {
            let hint = if self.arguments.check {
                "--list shows each difference; if they are intended, add --update".to_owned()
            } else {
                let same = self.arguments.log_and_hooks();
                format!(
                    "--list shows each difference, `hookbus replay{same} --explain <seq>` one in detail"
                )
            };
            output::line(format!("\n{}", self.paint.dim(&hint)))?;
        }
        if tally.events == 0 && self.arguments.check {
            output::line("nothing was checked: the expectations file holds no event")?;
        } else if tally.events == 0 {
            output::line("no recorded event is selected; `hookbus sessions` lists the sessions")?;
        }
        Ok(())
    }
}

fn coloured(category: Category, paint: Paint) -> String {
    let word = category.as_str();
    match category {
        Category::Unchanged => paint.good(word),
        Category::NewlyBlocked | Category::Failed => paint.bad(word),
        Category::NewlyAllowed | Category::Changed => paint.notable(word),
        Category::NotComparable => paint.dim(word),
    }
}

fn hooks(tally: &Tally, paint: Paint) -> Vec<String> {
    let shown = |name: &str, hook: &HookTally| {
        let mark = if hook.shadow { " (shadow)" } else { "" };
        format!("{}{mark}", shorten_middle(name, LONGEST_NAME))
    };
    let wide = |(name, hook): (&String, &HookTally)| width(&shown(name, hook));
    let wide = tally.hooks.iter().map(wide).max().unwrap_or_default().max(NARROWEST_COLUMN);
    let line = |(name, hook): (&String, &HookTally)| {
        let HookTally { recorded, replayed, differences, failed, failure, runs, took, .. } = hook;
        let shown = pad(&shown(name, hook), wide);
        let mut parts = vec![format!("{shown} {recorded:>7} → {replayed}")];
        if *differences > 0 {
            parts.push(count(to_usize(*differences), "difference"));
        }
        // The time of rules is too short to be of interest.
        if took.as_millis() > 0 && *runs > 0 {
            let each = *took / u32::try_from(*runs).unwrap_or(u32::MAX).max(1);
            parts.push(format!("{} ({} each)", format_duration(*took), format_duration(each)));
        }
        if let (1.., Some((seq, why))) = (*failed, failure) {
            let (times, why) = (count(to_usize(*failed), "time"), shorten(why, 90));
            parts.push(format!("{} {times}, first at {seq}: {why}", paint.bad("failed")));
        }
        parts.join("  ")
    };
    tally.hooks.iter().map(line).collect()
}

fn reasons(tally: &Tally) -> Vec<String> {
    let line = |reason: &NotComparableReason| {
        format!("{:>7} ×  {} (first at {})", reason.events, shorten(&reason.why, 110), reason.first)
    };
    tally.reasons().map(line).collect()
}

fn remarks(tally: &Tally) -> Vec<String> {
    let more = tally.more_remarks;
    let rest = (more > 0).then(|| format!("and {}", counted(more, "more remark")));
    tally.remarks.iter().map(|text| sanitize(text)).chain(rest).collect()
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// One difference: the event, then both answers.
fn print(event: &ReplayedEvent, paint: Paint) -> Result<()> {
    let ReplayedEvent { seq, agent, session, name, tool, gist, comparison, .. } = event;
    let tool = tool.as_deref().unwrap_or_default();
    let call = format!("{} {}", paint.notable(&shorten(tool, 30)), shorten(gist, 80));
    let first = format!(
        "{}  {} {} {}  {}",
        coloured(comparison.category, paint),
        shorten(agent, 12),
        sanitize(&short_session(session)),
        shorten(name, 40),
        call.trim(),
    );
    output::labelled(&format!("{seq:>8}  "), &first)?;
    let (before, after) = (event.recorded_outcome(), event.replayed_outcome());
    let json = event.to_json();
    let reason = |key: &str| {
        json[key].as_str().map_or_else(String::new, |text| format!(" ({})", shorten(text, 70)))
    };
    let by = comparison
        .hook
        .as_ref()
        .map_or_else(String::new, |hook| format!("  by {}", sanitize(hook)));
    let second = match &comparison.why {
        Some(why) => shorten(why, 120),
        None => format!("{before}{} → {after}{}{by}", reason("reason_then"), reason("reason_now")),
    };
    let notes = comparison.notes.iter().map(|note| paint.dim(&sanitize(note)));
    for line in std::iter::once(second).chain(notes) {
        output::labelled(&" ".repeat(10), &line)?;
    }
    Ok(())
}
