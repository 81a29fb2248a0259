//! `hookbus hooks shadow`: what hooks in shadow mode would have done, from the log. Nothing runs again.

use anyhow::{Result, bail};
use clap::Args;
use hookbus::config::Hook;
use hookbus::event::{
    Clock, Kind, Outcome, RecordedDecision, RecordedVerdict, Seq, SystemClock, Time,
};
use hookbus::log::{LogPath, LogReader, OpenError, Query, Row};
use hookbus::view::EventView;
use hookbus_replay::{ShadowHook, ShadowTally, ShadowedEvent};
use serde_json::{Value, json};

use super::effective::{EffectiveHooks, unknown_name_hint};
use crate::args::parse_time;
use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count, sanitize, shorten, shorten_middle, when};
use crate::report::{CALLS, MOST_CALLS, call_lines, count_line, lines_out};
use crate::settings::{Format, Settings};

/// How many rows are read at once.
const PAGE: usize = 500;

/// How a row with a verdict in shadow mode holds that: other rows need not be parsed.
const MARK: &[u8] = br#""shadow":true"#;

/// Longest name of a hook, in characters.
const LONGEST_NAME: usize = 34;

const EXAMPLES: &str = "\
Examples:
  hookbus hooks shadow                       Report on all hooks in shadow mode
  hookbus hooks shadow --since 7d            Only the last seven days
  hookbus hooks shadow --hook no-force-push  Only one hook";

/// The arguments of `hookbus hooks shadow`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only from this time on: 2h (ago), today, 2026-11-16, RFC 3339
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only the hook with this name
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
}

/// Everything that the report tells.
struct ShadowReport {
    tally: ShadowTally,
    /// The hooks that are in shadow mode now, each once: name, and whether it is a project's.
    now: Vec<(String, bool)>,
    /// Decisions that cannot be read.
    damaged: u64,
}

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let since = arguments.since.as_deref().map(parse_time).transpose()?;
    let hooks = EffectiveHooks::load(settings);
    hooks.ensure_readable()?;
    let (mut tally, damaged) = match LogReader::open(&LogPath::in_home(&settings.home)) {
        Ok(log) => read(&log, since)?,
        Err(OpenError::Missing(_)) => (ShadowTally::default(), 0),
        Err(error) => return Err(error.into()),
    };
    let mut now: Vec<(String, bool)> = Vec::new();
    for hook in hooks.files().flat_map(|(_, active)| &active.file.hooks).filter(|it| it.is_shadow())
    {
        let named = (hook.name.clone(), hook.of_project);
        if !now.contains(&named) {
            now.push(named);
        }
    }
    if let Some(wanted) = &arguments.hook {
        let own = hooks.files().flat_map(|(_, active)| &active.file.hooks);
        ensure_known(wanted, &tally, own)?;
        now.retain(|(name, _)| name == wanted);
        tally.hooks.retain(|name, _| is_of(name, wanted));
    }
    let report = ShadowReport { tally, now, damaged };
    match format {
        Format::Json => output::line(report.to_json().to_string())?,
        Format::Text => report.print(Paint(settings.colour))?,
    }
    Ok(Exit::Success)
}

/// Whether a recorded name is that of the hook `name`, or of one of the plugins in its directory.
fn is_of(recorded: &str, name: &str) -> bool {
    recorded.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

fn ensure_known<'a>(
    wanted: &str,
    tally: &ShadowTally,
    hooks: impl Iterator<Item = &'a Hook>,
) -> Result<()> {
    let recorded = tally.hooks.keys().map(String::as_str);
    let known: Vec<&str> = hooks.map(|hook| hook.name.as_str()).chain(recorded).collect();
    if known.iter().any(|name| is_of(name, wanted)) {
        return Ok(());
    }
    bail!("there is no hook `{}`; {}", sanitize(wanted), unknown_name_hint(wanted, known))
}

/// More hooks without a verdict are not listed by name.
const MOST_SILENT: usize = 10;

/// Reads all decisions; returns the totals, and how many rows cannot be read.
fn read(log: &LogReader, since: Option<Time>) -> Result<(ShadowTally, u64)> {
    let kind = Some(Kind::Decision.as_str().to_owned());
    let query = Query { kind, since, ..Query::default() };
    let head = log.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(head.unsigned_abs(), "rows");
    let (mut tally, mut damaged, mut last) = (ShadowTally::default(), 0, None);
    loop {
        let page = log.after_with_damage(&query, last, PAGE)?;
        let is_last = page.len() < PAGE;
        for row in page {
            match row {
                Ok(row) => {
                    last = Some(row.seq);
                    add(&mut tally, log, &row)?;
                }
                Err(row) => {
                    last = Some(row.seq);
                    damaged += 1;
                }
            }
        }
        progress.update(last.map_or(0, |seq| seq.as_i64().unsigned_abs()));
        if is_last {
            return Ok((tally, damaged));
        }
    }
}

/// Adds the verdicts of a decision.
fn add(tally: &mut ShadowTally, log: &LogReader, row: &Row) -> Result<()> {
    if !row.payload.windows(MARK.len()).any(|part| part == MARK) {
        return Ok(());
    }
    let Ok(decision) = RecordedDecision::from_json(row.payload_json()) else { return Ok(()) };
    let verdicts: Vec<&RecordedVerdict> =
        decision.verdicts.iter().filter(|verdict| verdict.shadow).collect();
    let seq = row.cause.unwrap_or(row.seq);
    // What the call was about is in the event, and is needed only if a hook has something to say about it.
    let is_needed = verdicts.iter().any(|verdict| !verdict.is_silent());
    let event = if is_needed { event(log, seq)? } else { None };
    let gist = event.as_ref().map(|event| EventView::new(event).subject()).unwrap_or_default();
    let row = event.as_ref().unwrap_or(row);
    let tool = row.tool.as_deref().unwrap_or(&row.name);
    for verdict in verdicts {
        let session = row.session.as_str();
        tally.add(verdict, ShadowedEvent { seq, at: row.at, session, tool, gist: &gist });
    }
    Ok(())
}

fn event(log: &LogReader, seq: Seq) -> Result<Option<Row>> {
    let query = Query { seq: Some(seq), ..Query::default() };
    Ok(log.after_with_damage(&query, None, 1)?.pop().and_then(Result::ok))
}

impl ShadowReport {
    /// Every hook of the report: those with recorded verdicts first, by name, then the other hooks in shadow mode.
    fn hooks(&self) -> Vec<(&str, Option<&ShadowHook>)> {
        let recorded = self.tally.hooks.iter().map(|(name, hook)| (name.as_str(), Some(hook)));
        let is_silent = |name: &str| !self.tally.hooks.keys().any(|recorded| is_of(recorded, name));
        let silent = self.now.iter().filter(|(name, _)| is_silent(name));
        recorded.chain(silent.map(|(name, _)| (name.as_str(), None))).collect()
    }

    fn is_in_shadow(&self, recorded: &str) -> bool {
        self.now.iter().any(|(name, _)| is_of(recorded, name))
    }

    /// A hook of the user's own file that can be turned on, if there is one; rather one with verdicts.
    fn promotable(&self) -> Option<&str> {
        let own = || self.now.iter().filter(|(_, of_project)| !of_project).map(|(name, _)| name);
        let has_verdicts = |name: &&String| {
            let mut recorded = self.tally.hooks.iter().filter(|(it, _)| is_of(it, name));
            recorded.any(|(_, hook)| hook.verdicts > 0)
        };
        own().find(has_verdicts).or_else(|| own().next()).map(String::as_str)
    }

    fn to_json(&self) -> Value {
        let hook = |(name, hook): (&str, Option<&ShadowHook>)| {
            let mut json = hook.unwrap_or(&ShadowHook::default()).to_json(MOST_CALLS);
            json["hook"] = json!(name);
            json["in_shadow_mode"] = json!(self.is_in_shadow(name));
            json
        };
        let hooks: Vec<Value> = self.hooks().into_iter().map(hook).collect();
        json!({"hooks": hooks, "damaged": self.damaged})
    }

    fn print(&self, paint: Paint) -> Result<()> {
        let hooks = self.hooks();
        let silent = hooks.iter().filter(|(_, hook)| hook.is_none()).count();
        for (name, hook) in &hooks {
            let ended = if self.is_in_shadow(name) { "" } else { " (not in shadow mode now)" };
            let name = shorten_middle(name, LONGEST_NAME);
            match hook {
                Some(hook) => {
                    output::line(format!("{}{ended}", paint.bold(&name)))?;
                    lines_out(&hook_lines(hook, paint), "")?;
                }
                // Packs bring many rules: those without a verdict are counted below.
                None if silent > MOST_SILENT => {}
                None => output::line(format!("{}  no verdict yet", paint.bold(&name)))?,
            }
        }
        if silent > MOST_SILENT {
            output::line(format!(
                "{} in shadow mode: no verdict yet",
                count(silent, "other hook")
            ))?;
        }
        if self.damaged > 0 {
            let rows = count(usize::try_from(self.damaged).unwrap_or(usize::MAX), "row");
            output::line(format!("{rows} cannot be read; `hookbus verify` tells more"))?;
        }
        if hooks.is_empty() {
            let hint = "no hook is in shadow mode; add `mode: shadow` to an entry of hookbus.yaml";
            output::line(hint)?;
        }
        if let Some(name) = self.promotable() {
            let next = format!("to turn a hook on: hookbus hooks promote {}", quoted(name));
            output::line(format!("\n{}", paint.dim(&next)))?;
        }
        Ok(())
    }
}

/// A name as it can be typed into a shell.
fn quoted(name: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| "NAME".to_owned(), |name| sanitize(&name))
}

fn hook_lines(hook: &ShadowHook, paint: Paint) -> Vec<String> {
    let times = count(usize::try_from(hook.verdicts).unwrap_or(usize::MAX), "verdict");
    let since = hook.span.map_or_else(String::new, |(first, _)| {
        format!(" since {}", when(first, SystemClock.now()))
    });
    let mut lines = vec![format!("  {times} in {}{since}", count(hook.sessions(), "session"))];
    for outcome in Outcome::ALL.into_iter().rev() {
        let number = hook.count(outcome);
        if number > 0 {
            lines.push(count_line(number, &would(outcome, paint)));
        }
    }
    if let (1.., Some((seq, why))) = (hook.failed, &hook.failure) {
        let why = format!("first at {seq}: {}", shorten(why, 40));
        lines.push(count_line(hook.failed, &format!("{}, {why}", paint.bad("failed"))));
    }
    if hook.unapproved > 0 {
        let hint = "not asked, because it was not approved: `hookbus hooks approve`";
        lines.push(count_line(hook.unapproved, &paint.bad(hint)));
    }
    let calls = call_lines(&hook.calls);
    if !calls.is_empty() {
        lines.push(format!("  {}", paint.bold(CALLS)));
        lines.extend(calls.into_iter().map(|call| format!("  {call}")));
    }
    lines
}

/// What would have happened to a call.
fn would(outcome: Outcome, paint: Paint) -> String {
    match outcome {
        Outcome::Stop => paint.bad("would have been stopped"),
        Outcome::Block => paint.bad("would have been blocked"),
        Outcome::Ask => paint.notable("would have been asked about"),
        Outcome::Rewrite => paint.notable("would have been rewritten"),
        Outcome::Context => paint.notable("would have got context"),
        Outcome::Allow => paint.good("would have been allowed explicitly"),
        Outcome::None => paint.good("would have gone on unchanged"),
    }
}
