//! `hookbus replay --explain`: one event in depth.

use anyhow::{Result, bail};
use hookbus_replay::{Drive, Judged, Part, drive};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, local_time, sanitize, shorten, shorten_middle};
use crate::settings::{Format, Settings};

pub(super) fn run(what: &Drive<'_>, format: Format, settings: &Settings) -> Result<Exit> {
    let (mut found, mut remarks) = (None, what.source.remarks());
    drive(what, |part: Part| -> Result<()> {
        remarks.extend(part.tally.remarks);
        found = found.take().or_else(|| part.judged.into_iter().next());
        Ok(())
    })?;
    let Some(judged) = found else {
        if remarks.is_empty() {
            bail!(
                "the event is not among those selected, or is a decision about an event that is not \
                 there; `hookbus log` shows what is where"
            );
        }
        bail!("this event cannot be replayed: {}", remarks.join("; "));
    };
    match format {
        Format::Json => output::line(to_json(&judged).to_string())?,
        Format::Text => {
            for line in lines(&judged, Paint(settings.colour)) {
                output::line(line)?;
            }
        }
    }
    Ok(Exit::Success)
}

fn payload(judged: &Judged) -> Value {
    let Some(case) = &judged.case else { return Value::Null };
    hookbus::json::read_leniently(&case.payload)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&case.payload).into_owned()))
}

/// The recorded decision as it stands in the log.
fn then(judged: &Judged) -> Value {
    let decision = judged.case.as_ref().and_then(|case| case.decision.as_ref());
    decision.and_then(|payload| serde_json::from_slice(payload).ok()).unwrap_or_default()
}

fn now(judged: &Judged) -> Value {
    judged.now.as_ref().map(hookbus::event::Decision::to_json).unwrap_or_default()
}

fn to_json(judged: &Judged) -> Value {
    let mut whole = judged.to_json();
    whole["payload"] = payload(judged);
    whole["decision_then"] = then(judged);
    whole["decision_now"] = now(judged);
    whole["unsteady"] = json!(judged.unsteady.as_ref().map(|unsteady| &unsteady.answers));
    whole
}

fn lines(judged: &Judged, paint: Paint) -> Vec<String> {
    let Judged { seq, at, agent, session, name, kind, comparison, .. } = judged;
    let mut lines = vec![
        paint.bold(&sanitize(&format!("{seq}  {name} ({kind}) of {agent}, session {session}"))),
        format!("  {}", paint.dim(&local_time(*at).format("%Y-%m-%d %H:%M:%S%.3f").to_string())),
        String::new(),
        paint.bold("what came in"),
    ];
    let payload = serde_json::to_string_pretty(&payload(judged)).unwrap_or_default();
    lines.extend(payload.lines().map(|line| format!("  {}", shorten_line(line))));
    lines.extend(decision("then", &then(judged), paint));
    lines.extend(decision("now", &now(judged), paint));
    lines.push(String::new());
    let why =
        comparison.why.as_ref().map_or_else(String::new, |why| format!(": {}", sanitize(why)));
    lines.push(format!("{}{why}", paint.bold(comparison.class.as_str())));
    lines.extend(comparison.notes.iter().map(|note| format!("  {}", sanitize(note))));
    if let Some(unsteady) = &judged.unsteady {
        let [first, second] = &unsteady.answers;
        lines.push(format!(
            "  {} answered {} and then {} on the same input",
            sanitize(&unsteady.hook),
            shorten(first, 80),
            shorten(second, 80)
        ));
    }
    lines
}

fn decision(title: &str, decision: &Value, paint: Paint) -> Vec<String> {
    let mut lines = vec![String::new(), paint.bold(title)];
    if decision.is_null() {
        lines.push("  nobody had an opinion".to_owned());
        return lines;
    }
    for verdict in decision["verdicts"].as_array().into_iter().flatten() {
        let text = |key: &str| verdict[key].as_str().map(|text| shorten(text, 100));
        let said = format!(
            "  {:<28} {:<8} {:>9}",
            verdict["hook"].as_str().map(|hook| shorten_middle(hook, 60)).unwrap_or_default(),
            text("verdict").unwrap_or_default(),
            millis(&verdict["ms"]),
        );
        let failure = text("failure").map(|why| format!("{}: {why}", paint.bad("failed")));
        let script = verdict["script"].as_str().map(|script| {
            paint.dim(&format!("script {}", sanitize(&script.chars().take(12).collect::<String>())))
        });
        let more = [text("reason"), text("context"), text("note"), failure, script];
        let line = std::iter::once(said).chain(more.into_iter().flatten());
        let line = line.collect::<Vec<_>>().join("  ");
        lines.push(line);
    }
    let answer = Some(&decision["answer"]).filter(|answer| !answer.is_null());
    let answer = answer.map_or_else(|| "silence".into(), |it| shorten(&it.to_string(), 300));
    let outcome = sanitize(decision["outcome"].as_str().unwrap_or("?"));
    lines.push(format!("  {outcome}: the agent hears {answer}  {}", millis(&decision["ms"])));
    if decision["waited_for"] == Value::Bool(false) {
        lines.push("  nobody was there any more to hear it".to_owned());
    }
    if let Some(note) = decision["note"].as_str() {
        lines.push(format!("  {}", sanitize(note)));
    }
    lines
}

fn millis(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |ms| format!("{ms:.3} ms"))
}

/// A long text in a payload is cut, with its indentation kept.
fn shorten_line(line: &str) -> String {
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    format!("{indent}{}", shorten(line, 200))
}
