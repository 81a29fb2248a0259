//! `hookbus show`: reads a session from the log and prints its timeline.

use anyhow::Result;
use clap::Args;
use hookbus::decide::became_a_block;
use hookbus::log::{LogReader, Query, ReadError, Row};

use crate::args::open_log;
use crate::cli::Exit;
use crate::output::{
    self, Paint, count, format_duration, local_time, sanitize, shorten, shorten_middle,
};
use crate::settings::{Format, Settings};
use crate::timeline::{CallResult, DecisionSummary, HookVerdict, Item, ItemKind, Timeline};

/// Sub-agents that are nested deeper are not shown.
const MAX_DEPTH: usize = 5;

const EXAMPLES: &str = "\
Examples:
  hookbus show last         Show the latest session
  hookbus show 20261116_09  Show the session whose id starts like this";

/// The arguments of `hookbus show`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Session id, or a unique prefix of it, or `last` for the latest session
    #[arg(value_name = "SESSION")]
    session: String,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let session = match arguments.session.as_str() {
        "last" => log.sessions()?.pop().map_or_else(String::new, |last| last.session),
        prefix => log.find_session(prefix)?,
    };
    let timeline = read(&log, &session, 0)?;
    match format {
        Format::Json => output::line(timeline.to_json().to_string())?,
        Format::Text => print(&timeline, Paint(settings.colour))?,
    }
    Ok(Exit::Success)
}

fn read(log: &LogReader, session: &str, depth: usize) -> Result<Timeline> {
    let query = Query { session: Some(session.to_owned()), ..Query::default() };
    let mut rows: Vec<Row> = Vec::new();
    log.each(&query, None, |row| {
        rows.push(row);
        Ok::<_, ReadError>(())
    })?;
    let mut child_timeline = |child: &str| {
        let is_shown = depth < MAX_DEPTH && child != session;
        is_shown
            .then(|| read(log, child, depth + 1).ok())
            .flatten()
            .filter(|child| child.events > 0)
    };
    Ok(Timeline::new(session, &rows, &mut child_timeline))
}

/// Prints the timeline of a session, for the demo.
pub(crate) fn print_session(settings: &Settings, session: &str) -> Result<()> {
    let log = open_log(settings)?;
    print(&read(&log, session, 0)?, Paint(settings.colour))
}

fn print(timeline: &Timeline, paint: Paint) -> Result<()> {
    let span = match (timeline.first, timeline.last) {
        (Some(first), Some(last)) => {
            format!(
                "{} ({})",
                local_time(first).format("%Y-%m-%d %H:%M:%S"),
                format_duration(last.since(first))
            )
        }
        _ => "empty".to_owned(),
    };
    let blocked = match timeline.blocked {
        0 => String::new(),
        count => paint.bad(&format!(", {count} blocked")),
    };
    output::line(format!(
        "{}  {}  {span}  {}, {}{blocked}",
        paint.bold(&sanitize(&timeline.session)),
        sanitize(&timeline.agent),
        count(timeline.events, "event"),
        count(timeline.decisions, "decision")
    ))?;
    if let Some(cwd) = &timeline.cwd {
        output::line(paint.dim(&format!("in {}", sanitize(cwd))))?;
    }
    for line in lines(timeline, paint) {
        output::line(line)?;
    }
    Ok(())
}

fn lines(timeline: &Timeline, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let mut number = 0;
    for turn in &timeline.turns {
        if let Some(prompt) = &turn.prompt {
            number += 1;
            lines.push(String::new());
            lines.push(format!(
                "{}  {}",
                paint.bold(&format!("turn {number}")),
                shorten(prompt, 100)
            ));
        }
        for item in turn.visible_items() {
            item_lines(item, paint, &mut lines);
        }
        match (turn.model_requests, turn.model_chunks) {
            (0, 0) => {}
            (requests, 0) => {
                lines.push(paint.dim(&format!("  {}", count(requests, "model request"))));
            }
            (requests, chunks) => {
                let (requests, chunks) = (count(requests, "model request"), count(chunks, "chunk"));
                lines.push(paint.dim(&format!("  {requests}, {chunks}")));
            }
        }
    }
    lines
}

fn item_lines(item: &Item, paint: Paint, lines: &mut Vec<String>) {
    let time = paint.dim(&local_time(item.at).format("%H:%M:%S%.3f").to_string());
    let blocked = item.decision.as_ref().is_some_and(|decision| is_block(&decision.outcome));
    let line = match &item.kind {
        ItemKind::Tool { tool, result, .. } => {
            let ended = match result {
                Some(CallResult { status, took }) if status == "ok" => {
                    paint.good(&format!("ok, {}", format_duration(*took)))
                }
                Some(CallResult { status, took }) => {
                    paint.bad(&format!("{}, {}", sanitize(status), format_duration(*took)))
                }
                None if blocked => String::new(),
                None => paint.dim("no result recorded"),
            };
            format!(
                "{:<24} {}  {ended}",
                paint.notable(&shorten(tool, 40)),
                shorten(&item.text, 80)
            )
        }
        ItemKind::Subagent { result, .. } => {
            let ended = result.as_ref().map_or_else(
                || paint.dim("no end recorded"),
                |result| format!("{}, {}", sanitize(&result.status), format_duration(result.took)),
            );
            format!("{:<24} {}  {ended}", paint.notable("sub-agent"), shorten(&item.text, 80))
        }
        ItemKind::Plain | ItemKind::Hidden => {
            format!("{:<24} {}", shorten(&item.name, 40), shorten(&item.text, 80))
        }
    };
    lines.push(format!("  {time}  {}", line.trim_end()));
    if let Some(decision) = &item.decision {
        lines.extend(decision_lines(decision, paint));
    }
    if let ItemKind::Subagent { inside: Some(inside), .. } = &item.kind {
        lines.extend(
            self::lines(inside, paint)
                .into_iter()
                .filter(|line| !line.is_empty())
                .map(|line| format!("      {line}")),
        );
    }
}

fn decision_lines(decision: &DecisionSummary, paint: Paint) -> Vec<String> {
    let indent = "                ";
    let mut lines: Vec<String> = decision
        .hooks
        .iter()
        .filter(|hook| hook.verdict != "none" || hook.reason.is_some())
        .map(|hook| format!("{indent}{}", hook_line(hook, &decision.outcome, paint)))
        .collect();
    if lines.is_empty() && !(decision.hooks.is_empty() && decision.notice.is_some()) {
        let shown = |hook: &HookVerdict| {
            let shadow = if hook.shadow { " (shadow)" } else { "" };
            format!("{}{shadow}", shorten_middle(&hook.hook, 60))
        };
        let hooks: Vec<String> = decision.hooks.iter().map(shown).collect();
        let outcome = describe_outcome(&decision.outcome, paint);
        lines.push(format!("{indent}{outcome} from {}", shorten(&hooks.join(", "), 200)));
    }
    lines.extend(decision.note.iter().map(|note| format!("{indent}{}", shorten(note, 200))));
    lines.extend(decision.notice.iter().map(|notice| {
        format!("{indent}{} {}", paint.notable("told the user:"), shorten(notice, 300))
    }));
    lines
}

/// What one hook did, apart from the other hooks of the decision.
fn hook_line(verdict: &HookVerdict, decision: &str, paint: Paint) -> String {
    let hook = shorten_middle(&verdict.hook, 60);
    let why =
        verdict.reason.as_ref().map_or_else(String::new, |why| format!(": {}", shorten(why, 100)));
    let note =
        verdict.note.as_ref().map_or_else(String::new, |note| format!(" ({})", shorten(note, 150)));
    let became_a_block = verdict.note.as_deref().is_some_and(became_a_block);
    if verdict.shadow {
        let word = if became_a_block { "block" } else { &verdict.verdict };
        return match (verdict.refused, verdict.failed) {
            (true, _) => format!("{} {hook} (shadow){why}", paint.bad("not run:")),
            (false, true) if is_block(word) => {
                format!("{} by {hook} (shadow), which failed{why}{note}", would(word, paint))
            }
            (false, true) => format!("{} {hook} (shadow){why}{note}", paint.bad("failed")),
            (false, false) => format!("{} by {hook} (shadow){why}{note}", would(word, paint)),
        };
    }
    let blocked = is_block(decision) && (is_block(&verdict.verdict) || became_a_block);
    let word = if became_a_block { "block" } else { &verdict.verdict };
    let word = describe_outcome(word, paint);
    match (blocked, verdict.failed, verdict.refused) {
        (true, _, true) => format!("{word} by {hook}, which did not run{why}{note}"),
        (true, true, false) => format!("{word} by {hook}, which failed{why}{note}"),
        (false, _, true) => format!("{} {hook}{why}", paint.bad("not run:")),
        (false, true, false) => format!("{} {hook}{why}{note}", paint.bad("failed")),
        (true, false, false) => format!("{word} by {hook}{why}{note}"),
        // The hook wanted to block, but the agent does not support that at this event.
        (false, false, false) if is_block(&verdict.verdict) => {
            format!("{} by {hook}{why}{note}", sanitize(&verdict.verdict))
        }
        (false, false, false) => format!("{word} by {hook}{why}{note}"),
    }
}

/// What would have happened to a call, if the hook were not in shadow mode.
fn would(word: &str, paint: Paint) -> String {
    paint.dim(&match word {
        "block" => "would have been blocked".to_owned(),
        "stop" => "would have been stopped".to_owned(),
        "ask" => "would have been asked about".to_owned(),
        "allow" => "would have been allowed".to_owned(),
        "none" => "no objection".to_owned(),
        other => format!("would have been changed ({})", sanitize(other)),
    })
}

fn is_block(word: &str) -> bool {
    matches!(word, "block" | "stop")
}

/// The word for a verdict or a decision, coloured by its effect on the agent.
fn describe_outcome(word: &str, paint: Paint) -> String {
    match word {
        "block" => paint.bad("blocked"),
        "stop" => paint.bad("stopped"),
        "none" => paint.dim("no objection"),
        "allow" => paint.good("allowed"),
        other => paint.notable(&sanitize(other)),
    }
}
