//! `hookbus replay --explain`: one event in detail.

use anyhow::{Result, bail};
use hookbus::event::Decision;
use hookbus::event::{RecordedDecision, RecordedVerdict};
use hookbus::json::read_leniently;
use hookbus_replay::{ChunkResult, Drive, ReplayedEvent, drive};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{
    self, Paint, fitted_columns, local_time, pad, pad_left, sanitize, shorten, shorten_middle,
};
use crate::settings::{Format, Settings};

pub(super) fn run(what: &Drive<'_>, format: Format, settings: &Settings) -> Result<Exit> {
    let (mut found, mut remarks) = (None, what.source.remarks());
    drive(what, |chunk: ChunkResult| -> Result<()> {
        remarks.extend(chunk.tally.remarks);
        found = found.take().or_else(|| chunk.events.into_iter().next());
        Ok(())
    })?;
    let Some(event) = found else {
        if remarks.is_empty() {
            bail!(
                "the event is not among the selected ones, or the row is a decision about an event \
                 that is not in the log; `hookbus log` lists the rows"
            );
        }
        bail!("this event cannot be replayed: {}", remarks.join("; "));
    };
    match format {
        Format::Json => output::line(to_json(&event).to_string())?,
        Format::Text => {
            for line in lines(&event, Paint(settings.colour)) {
                output::line(line)?;
            }
        }
    }
    Ok(Exit::Success)
}

fn payload(event: &ReplayedEvent) -> Value {
    let Some(row) = &event.row else { return Value::Null };
    read_leniently(&row.payload)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&row.payload).into_owned()))
}

fn to_json(event: &ReplayedEvent) -> Value {
    // As it stands in the log, with fields that this version may not know.
    let recorded = event.row.as_ref().and_then(|row| row.decision.as_ref());
    let recorded = recorded.and_then(|payload| serde_json::from_slice(payload).ok());
    let answers = event.nondeterministic.as_ref().map(|hook| &hook.answers);
    let mut json = event.to_json();
    json["payload"] = payload(event);
    json["decision_then"] = recorded.unwrap_or_default();
    json["decision_now"] = event.replayed.as_ref().map(Decision::to_json).unwrap_or_default();
    json["unsteady"] = json!(answers);
    json
}

fn lines(event: &ReplayedEvent, paint: Paint) -> Vec<String> {
    let ReplayedEvent { seq, at, agent, session, name, kind, comparison, .. } = event;
    let mut lines = vec![
        paint.bold(&sanitize(&format!("{seq}  {name} ({kind}) of {agent}, session {session}"))),
        format!("  {}", paint.dim(&local_time(*at).format("%Y-%m-%d %H:%M:%S%.3f").to_string())),
        String::new(),
        paint.bold("payload"),
    ];
    let payload = serde_json::to_string_pretty(&payload(event)).unwrap_or_default();
    lines.extend(payload.lines().map(|line| format!("  {}", shorten_line(line))));
    let replayed = event.replayed.as_ref().map(RecordedDecision::from);
    lines.extend(decision_lines("recorded decision", event.recorded.as_ref(), paint));
    lines.extend(decision_lines("replayed decision", replayed.as_ref(), paint));
    lines.push(String::new());
    let why =
        comparison.why.as_ref().map_or_else(String::new, |why| format!(": {}", sanitize(why)));
    lines.push(format!("{}{why}", paint.bold(comparison.category.as_str())));
    lines.extend(comparison.notes.iter().map(|note| format!("  {}", sanitize(note))));
    if let Some(hook) = &event.nondeterministic {
        let [first, second] = &hook.answers;
        lines.push(format!(
            "  {} answered {} and then {} to the same input",
            sanitize(&hook.hook),
            shorten(first, 80),
            shorten(second, 80)
        ));
    }
    lines
}

fn decision_lines(title: &str, decision: Option<&RecordedDecision>, paint: Paint) -> Vec<String> {
    let mut lines = vec![String::new(), paint.bold(title)];
    let Some(decision) = decision else {
        lines.push("  none".to_owned());
        return lines;
    };
    lines.extend(decision.verdicts.iter().map(|verdict| verdict_line(verdict, paint)));
    let answer = decision.answer.as_ref();
    let answer =
        answer.map_or_else(|| "nothing".to_owned(), |answer| shorten(&answer.to_string(), 300));
    let outcome = decision.outcome;
    lines.push(format!("  {outcome}: the agent receives {answer}  {}", millis(decision.ms)));
    if !decision.waited_for {
        lines.push("  the agent did not wait for the answer".to_owned());
    }
    if let Some(note) = &decision.note {
        lines.push(format!("  {}", sanitize(note)));
    }
    lines
}

fn verdict_line(verdict: &RecordedVerdict, paint: Paint) -> String {
    let text = |text: &Option<String>| text.as_deref().map(|text| shorten(text, 100));
    let shadow = if verdict.shadow { " (shadow)" } else { "" };
    let first = format!(
        "  {} {} {}",
        pad(&format!("{}{shadow}", shorten_middle(&verdict.hook, 60)), 28),
        pad(&shorten(&verdict.verdict, 100), 8),
        pad_left(&millis(verdict.ms), 9),
    );
    let context = verdict.context.as_ref().and_then(Value::as_str);
    let context = context.map(|context| shorten(context, 100));
    let failure = text(&verdict.failure).map(|why| format!("{}: {why}", paint.bad("failed")));
    let script = verdict.script.as_ref().map(|script| {
        paint.dim(&format!("script {}", sanitize(&script.chars().take(12).collect::<String>())))
    });
    let more = [text(&verdict.reason), context, text(&verdict.note), failure, script];
    let parts = std::iter::once(first).chain(more.into_iter().flatten());
    parts.collect::<Vec<_>>().join("  ")
}

fn millis(ms: Option<f64>) -> String {
    ms.map_or_else(String::new, |ms| format!("{ms:.3} ms"))
}

/// Cuts a long line of a payload and keeps its indentation.
fn shorten_line(line: &str) -> String {
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let room = fitted_columns().map_or(200, |columns| columns.saturating_sub(2 + indent.len()));
    format!("{indent}{}", shorten(line, room))
}
