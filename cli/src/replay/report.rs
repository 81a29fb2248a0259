//! What a replay tells: differences as they come, then the sum, for people or for programs.

use std::time::Duration;

use anyhow::Result;
use hookbus::event::Outcome;
use hookbus_replay::{Class, HookTally, Judged, Tally};
use serde_json::{Value, json};

use super::options::Arguments;
use super::scene::Scene;
use crate::output::{self, Paint, count, format_duration, sanitize, shorten, shorten_middle};
use crate::settings::{Format, Settings};

/// So many calls are named.
const TOP: usize = 10;

/// A hook's name is cut to this.
const LONGEST_NAME: usize = 48;

/// Where names are short, their column is as wide as this.
const SHORTEST_COLUMN: usize = 28;

/// A report under way.
pub(super) struct Report<'a> {
    arguments: &'a Arguments,
    scene: &'a Scene,
    format: Format,
    paint: Paint,
    changes: u64,
    unsteady: Vec<Value>,
}

impl<'a> Report<'a> {
    pub(super) fn start(
        arguments: &'a Arguments,
        scene: &'a Scene,
        format: Format,
        settings: &Settings,
    ) -> Result<Self> {
        if format == Format::Json {
            output::bytes(b"{\"changes\":[")?;
        }
        let paint = Paint(settings.colour);
        Ok(Self { arguments, scene, format, paint, changes: 0, unsteady: Vec::new() })
    }

    /// The next event, in recorded order.
    pub(super) fn event(&mut self, judged: &Judged) -> Result<()> {
        let class = judged.comparison.class;
        if let Some(unsteady) = &judged.unsteady {
            self.unsteady(judged, unsteady)?;
        }
        if class == Class::Unchanged || self.arguments.update {
            return Ok(());
        }
        match self.format {
            Format::Json if class == Class::NotComparable => {}
            Format::Json => {
                let comma = if self.changes == 0 { "" } else { "," };
                output::bytes(format!("{comma}\n{}", judged.to_json()).as_bytes())?;
                self.changes += 1;
            }
            Format::Text if self.arguments.list => {
                for line in lines(judged, self.paint) {
                    output::line(line)?;
                }
            }
            Format::Text => {}
        }
        Ok(())
    }

    fn unsteady(&mut self, judged: &Judged, unsteady: &hookbus_replay::Unsteady) -> Result<()> {
        let [first, second] = &unsteady.answers;
        match self.format {
            Format::Json => self.unsteady.push(json!({
                "seq": judged.seq.as_i64(), "session": judged.session, "name": judged.name,
                "tool": judged.tool, "hook": unsteady.hook, "answers": unsteady.answers,
            })),
            Format::Text => output::line(format!(
                "{:>8}  {} {}: {}, then {} on the same input",
                judged.seq,
                self.paint.bad("unsteady"),
                sanitize(&unsteady.hook),
                shorten(first, 60),
                shorten(second, 60)
            ))?,
        }
        Ok(())
    }

    pub(super) fn end(self, tally: &Tally, written: Option<usize>, took: Duration) -> Result<()> {
        match self.format {
            Format::Json => {
                let written = match (written, &self.scene.expectations) {
                    (Some(events), Some(path)) if events > 0 => {
                        format!(",\"written\":{}", json!({"events": events, "file": path}))
                    }
                    _ => String::new(),
                };
                let most: Vec<Value> = tally
                    .most_affected(TOP)
                    .into_iter()
                    .map(|(call, times)| json!({"call": call, "times": times}))
                    .collect();
                output::line(format!(
                    "\n],\"summary\":{},\"hooks\":{},\"most_affected\":{},\"not_comparable\":{},\
                     \"unsteady\":{},\"remarks\":{}{written}}}",
                    tally.summary(),
                    tally.hooks_json(),
                    Value::Array(most),
                    tally.reasons_json(),
                    Value::Array(self.unsteady),
                    json!(remarks(tally)),
                ))?;
            }
            Format::Text => self.end_text(tally, written, took)?,
        }
        Ok(())
    }

    fn end_text(&self, tally: &Tally, written: Option<usize>, took: Duration) -> Result<()> {
        if let (Some(0), Some(path)) = (written, &self.scene.expectations) {
            output::line(format!(
                "nothing that was recorded fits; nothing was written to {}",
                path.display()
            ))?;
            return lines_out(&remarks(tally), "  ");
        }
        if let (Some(events), Some(path)) = (written, &self.scene.expectations) {
            let events = count(events, "event");
            output::line(format!(
                "{events} and what {} says about them: {}",
                self.scene.hooks,
                path.display()
            ))?;
            return lines_out(&remarks(tally), "  ");
        }
        let paint = self.paint;
        let events = count(usize::try_from(tally.events).unwrap_or(usize::MAX), "event");
        let head = format!("{events} through {} ({})", self.scene.hooks, format_duration(took));
        output::line(paint.bold(&head))?;
        for class in Class::ALL {
            let number = tally.count(class);
            if number > 0 || class == Class::Unchanged {
                output::line(format!("{number:>9}  {}", coloured(class, paint)))?;
            }
        }
        if tally.unsteady > 0 {
            let word = paint.bad("answered differently on the same input");
            output::line(format!("{:>9}  {word}", tally.unsteady))?;
        }
        section("calls most affected", &calls(tally), paint)?;
        section("hooks (then → now)", &hooks(tally, paint), paint)?;
        section("not comparable", &reasons(tally), paint)?;
        section("worth knowing", &remarks(tally), paint)?;
        self.what_next(tally)
    }

    fn what_next(&self, tally: &Tally) -> Result<()> {
        let differences =
            tally.events - tally.count(Class::Unchanged) - tally.count(Class::NotComparable);
        if differences > 0 && !self.arguments.list {
            let hint = if self.arguments.check {
                "--list shows each difference; if they are meant, add --update".to_owned()
            } else {
                let same = self.arguments.as_said();
                format!(
                    "--list shows each difference, `hookbus replay{same} --explain <seq>` one in depth"
                )
            };
            output::line(format!("\n{}", self.paint.dim(&hint)))?;
        }
        if tally.events == 0 && self.arguments.check {
            output::line("nothing was checked: the expectations hold no event")?;
        } else if tally.events == 0 {
            output::line("nothing that was recorded fits; `hookbus sessions` lists what there is")?;
        }
        Ok(())
    }
}

fn section(title: &str, lines: &[String], paint: Paint) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    output::line(format!("\n{}", paint.bold(title)))?;
    lines_out(lines, "  ")
}

fn lines_out(lines: &[String], indent: &str) -> Result<()> {
    for line in lines {
        output::line(format!("{indent}{line}"))?;
    }
    Ok(())
}

fn coloured(class: Class, paint: Paint) -> String {
    let word = class.as_str();
    match class {
        Class::Unchanged => paint.good(word),
        Class::NewlyBlocked | Class::Failed => paint.bad(word),
        Class::NewlyAllowed | Class::Changed => paint.notable(word),
        Class::NotComparable => paint.dim(word),
    }
}

fn calls(tally: &Tally) -> Vec<String> {
    let most = tally.most_affected(TOP);
    most.into_iter().map(|(call, times)| format!("{times:>7} ×  {}", shorten(call, 90))).collect()
}

fn hooks(tally: &Tally, paint: Paint) -> Vec<String> {
    let width = |name: &String| shorten_middle(name, LONGEST_NAME).chars().count();
    let width = tally.hooks.keys().map(width).max().unwrap_or_default().max(SHORTEST_COLUMN);
    let line = |(name, hook): (&String, &HookTally)| {
        let HookTally { then, now, differences, failed, failure, asked, took } = hook;
        let mut parts =
            vec![format!("{:<width$} {then:>7} → {now}", shorten_middle(name, LONGEST_NAME))];
        if *differences > 0 {
            parts.push(count(to_usize(*differences), "difference"));
        }
        // What a rule takes is not worth a word.
        if took.as_millis() > 0 && *asked > 0 {
            let each = *took / u32::try_from(*asked).unwrap_or(u32::MAX).max(1);
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
    let line = |reason: &hookbus_replay::Reason| {
        format!("{:>7} ×  {} (first at {})", reason.events, shorten(&reason.why, 110), reason.first)
    };
    tally.reasons().map(line).collect()
}

fn remarks(tally: &Tally) -> Vec<String> {
    let more = tally.more_remarks;
    let rest = (more > 0).then(|| format!("and {more} more lines like these"));
    tally.remarks.iter().map(|text| sanitize(text)).chain(rest).collect()
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// One difference: what it is about, and what is different.
fn lines(judged: &Judged, paint: Paint) -> Vec<String> {
    let Judged { seq, agent, session, name, tool, gist, comparison, .. } = judged;
    let what = tool.as_deref().unwrap_or_default();
    let first = format!(
        "{seq:>8}  {}  {} {} {}  {} {}",
        coloured(comparison.class, paint),
        shorten(agent, 12),
        shorten(session, 12),
        shorten(name, 40),
        paint.notable(&shorten(what, 30)),
        shorten(gist, 80),
    );
    let then = judged.then.as_ref().map_or(Outcome::None, |then| then.outcome);
    let now = judged.now.as_ref().map_or(Outcome::None, |now| now.outcome);
    let change = judged.to_json();
    let reason = |key: &str| {
        change[key].as_str().map_or_else(String::new, |text| format!(" ({})", shorten(text, 70)))
    };
    let by = comparison
        .hook
        .as_ref()
        .map_or_else(String::new, |hook| format!("  by {}", sanitize(hook)));
    let second = match &comparison.why {
        Some(why) => shorten(why, 120),
        None => format!("{then}{} → {now}{}{by}", reason("reason_then"), reason("reason_now")),
    };
    let notes =
        comparison.notes.iter().map(|note| format!("          {}", paint.dim(&sanitize(note))));
    [first, format!("          {second}")].into_iter().chain(notes).collect()
}
