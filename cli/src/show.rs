//! `hookbus show <session>`: its timeline, for people.

use anyhow::Result;
use clap::Args;
use hookbus::decide::became_a_block;
use hookbus::log::{LogReader, Query, ReadError, Row};

use crate::cli::Exit;
use crate::output::{self, Paint, count, sanitize, local_time, shorten, shorten_middle, format_duration};
use crate::args::open_log;
use crate::settings::{Format, Settings};
use crate::timeline::{HookSaid, Item, Outcome, Said, Timeline, What};

/// Sub-agents of sub-agents of sub-agents: deep enough.
const DEEPEST: usize = 5;

/// `hookbus show`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The session, as much of its id as makes it plain; `last` is the latest one.
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
    let mut inside = |child: &str| {
        let deeper = depth < DEEPEST && child != session;
        deeper
            .then(|| read(log, child, depth + 1).ok())
            .flatten()
            .filter(|inside| inside.events > 0)
    };
    Ok(Timeline::of(session, &rows, &mut inside))
}

/// Prints a timeline; the demo ends with one too.
pub(crate) fn print_session(settings: &Settings, session: &str) -> Result<()> {
    let log = open_log(settings)?;
    print(&read(&log, session, 0)?, Paint(settings.colour))
}

fn print(timeline: &Timeline, paint: Paint) -> Result<()> {
    let span = match (timeline.first, timeline.last) {
        (Some(first), Some(last)) => {
            format!("{} ({})", local_time(first).format("%Y-%m-%d %H:%M:%S"), format_duration(last.since(first)))
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
        for item in turn.lines() {
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
    let blocked = item
        .decision
        .as_ref()
        .is_some_and(|said| matches!(said.outcome.as_str(), "block" | "stop"));
    let line = match &item.what {
        What::Tool { tool, result, .. } => {
            let ended = match result {
                Some(Outcome { status, took }) if status == "ok" => {
                    paint.good(&format!("ok, {}", format_duration(*took)))
                }
                Some(Outcome { status, took }) => {
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
        What::Subagent { result, .. } => {
            let ended = result.as_ref().map_or_else(
                || paint.dim("no end recorded"),
                |result| format!("{}, {}", sanitize(&result.status), format_duration(result.took)),
            );
            format!("{:<24} {}  {ended}", paint.notable("sub-agent"), shorten(&item.text, 80))
        }
        What::Plain | What::Quiet => {
            format!("{:<24} {}", shorten(&item.name, 40), shorten(&item.text, 80))
        }
    };
    lines.push(format!("  {time}  {}", line.trim_end()));
    if let Some(said) = &item.decision {
        lines.extend(decision_lines(said, paint));
    }
    if let What::Subagent { inside: Some(inside), .. } = &item.what {
        lines.extend(
            self::lines(inside, paint)
                .into_iter()
                .filter(|line| !line.is_empty())
                .map(|line| format!("      {line}")),
        );
    }
}

fn decision_lines(said: &Said, paint: Paint) -> Vec<String> {
    let indent = "                ";
    let mut lines: Vec<String> = said
        .hooks
        .iter()
        .filter(|hook| hook.verdict != "none" || hook.reason.is_some())
        .map(|hook| format!("{indent}{}", hook_line(hook, &said.outcome, paint)))
        .collect();
    if lines.is_empty() {
        let hooks: Vec<String> =
            said.hooks.iter().map(|hook| shorten_middle(&hook.hook, 60)).collect();
        let outcome = outcome(&said.outcome, paint);
        lines.push(format!("{indent}{outcome} from {}", shorten(&hooks.join(", "), 200)));
    }
    lines.extend(said.note.iter().map(|note| format!("{indent}{}", shorten(note, 200))));
    lines
}

/// What one hook did: its own word, and no other's.
fn hook_line(said: &HookSaid, decided: &str, paint: Paint) -> String {
    let hook = shorten_middle(&said.hook, 60);
    let why =
        said.reason.as_ref().map_or_else(String::new, |why| format!(": {}", shorten(why, 100)));
    let note =
        said.note.as_ref().map_or_else(String::new, |note| format!(" ({})", shorten(note, 150)));
    let refuses = |word: &str| matches!(word, "block" | "stop");
    let became_a_block = said.note.as_deref().is_some_and(became_a_block);
    let blocks = refuses(decided) && (refuses(&said.verdict) || became_a_block);
    let word = if became_a_block { "block" } else { &said.verdict };
    let word = outcome(word, paint);
    match (blocks, said.failed, said.refused) {
        (true, _, true) => format!("{word} by {hook}, which was not asked{why}{note}"),
        (true, true, false) => format!("{word} by {hook}, which failed{why}{note}"),
        (false, _, true) => format!("{} {hook}{why}", paint.bad("not asked:")),
        (false, true, false) => format!("{} {hook}{why}{note}", paint.bad("failed")),
        (true, false, false) => format!("{word} by {hook}{why}{note}"),
        // It wanted to, and the agent could not take it.
        (false, false, false) if refuses(&said.verdict) => {
            format!("{} by {hook}{why}{note}", sanitize(&said.verdict))
        }
        (false, false, false) => format!("{word} by {hook}{why}{note}"),
    }
}

/// What a verdict or a decision does to the agent, in a word.
fn outcome(word: &str, paint: Paint) -> String {
    match word {
        "block" => paint.bad("blocked"),
        "stop" => paint.bad("stopped"),
        "none" => paint.dim("no objection"),
        "allow" => paint.good("allowed"),
        other => paint.notable(&sanitize(other)),
    }
}
