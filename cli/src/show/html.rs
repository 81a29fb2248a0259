//! A session as one HTML file that can be sent to a colleague: no script, nothing loaded from elsewhere, and a policy in the
//! file that forbids both. What agents and hooks wrote is escaped, and characters that could reverse or hide text are replaced.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookbus::event::{Clock, SystemClock, Time};
use hookbus::view::{
    DecisionView, Item, SessionView, Subagent, ToolCall, ToolStatus, Totals, What,
};
use sha2::{Digest, Sha256};

use super::item_lines::was_blocked;
use crate::output::{count, format_duration, local_time, sanitize_lines, when};

const STYLE: &str = include_str!("page.css");

/// The whole file.
pub(super) fn page(view: &SessionView) -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let title = format!("{} session {}", text(&view.agent), text(&view.session));
    let mut body = String::new();
    header(&mut body, view);
    turns(&mut body, view);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// Text of others, as HTML shows it and nothing else.
fn text(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in sanitize_lines(raw).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Adds an element with escaped text, if there is any.
fn add(page: &mut String, element: &str, class: &str, raw: &str) {
    if !raw.trim().is_empty() {
        put(page, &format!("<{element} class=\"{class}\">{}</{element}>\n", text(raw)));
    }
}

fn put(page: &mut String, html: &str) {
    // Writing to a string cannot fail.
    if page.write_str(html).is_err() {
        tracing::debug!("cannot write to a string");
    }
}

fn clock(at: Time) -> String {
    local_time(at).format("%H:%M:%S%.3f").to_string()
}

fn header(page: &mut String, view: &SessionView) {
    put(page, "<header>\n");
    add(page, "h1", "", &format!("{} in {}", view.agent, view.project_name().unwrap_or_default()));
    add(page, "p", "id", &view.session);
    if let (Some(first), Some(last)) = (view.first, view.last) {
        let zone = local_time(first).format("%Y-%m-%d %H:%M:%S %Z").to_string();
        let length = format_duration(last.since(first));
        let said = when(first, SystemClock.now());
        add(page, "p", "when", &format!("{zone} ({said}), {length}"));
    }
    add(page, "p", "place", view.cwd.as_deref().unwrap_or_default());
    add(page, "p", "models", &view.models.join(", "));
    for (name, totals) in [("", Totals::of(view)), ("in sub-agents: ", Totals::of_subagents(view))]
    {
        if name.is_empty() || totals.events > 0 {
            let Totals { events, tool_calls, blocked, failed, asked, ran_despite_block, .. } =
                totals;
            let ran = match ran_despite_block {
                0 => String::new(),
                number => format!(", {number} RAN ALTHOUGH IT WAS BLOCKED"),
            };
            let numbers = format!(
                "{name}{}, {}, {blocked} blocked, {failed} failed, {asked} asked about{ran}",
                count(events, "event"),
                count(tool_calls, "tool call"),
            );
            add(page, "p", "totals", &numbers);
        }
    }
    put(page, "</header>\n");
}

fn turns(page: &mut String, view: &SessionView) {
    for turn in &view.turns {
        put(page, "<section>\n");
        add(page, "h2", "prompt", turn.prompt.as_deref().unwrap_or_default());
        for shown in turn.items.iter().filter(|shown| shown.is_visible()) {
            item(page, shown);
        }
        if let Some(failure) = &turn.failure {
            add(page, "p", "bad", &format!("turn failed: {failure}"));
        }
        add(page, "pre", "answer", turn.answer.as_deref().unwrap_or_default());
        put(page, "</section>\n");
    }
}

fn item(page: &mut String, item: &Item) {
    let id = format!("<article id=\"seq-{}\">\n", item.seq);
    put(page, &id);
    match &item.what {
        What::Tool(call) => tool(page, item, call),
        What::Model(call) => {
            let model = call.model.as_deref().unwrap_or_default();
            line(
                page,
                item,
                "model request",
                model,
                if was_blocked(item) { "blocked" } else { "" },
            );
            call.errors.iter().for_each(|error| add(page, "pre", "bad", error));
        }
        What::Question(asked) => {
            let answer = asked.answer.as_ref().map_or("answer not recorded", |it| it.text.as_str());
            line(page, item, "user was asked", &asked.question.about, answer);
            add(page, "p", "", asked.question.why.as_deref().unwrap_or_default());
        }
        What::Subagent(inner) => subagent(page, item, inner),
        What::Event { text } => line(page, item, &item.name, text, ""),
        What::LostEvent => {
            line(page, item, "decision", "about an event that is not in this log", "");
        }
        What::Prompt | What::TurnEnd | What::Quiet => line(page, item, &item.name, "", ""),
    }
    for decision in item.decisions.iter().filter(|decision| !decision.is_silent()) {
        of_decision(page, decision);
    }
    put(page, "</article>\n");
}

fn line(page: &mut String, item: &Item, name: &str, about: &str, end: &str) {
    let class = match end {
        "ok" => "good",
        "" => "",
        _ => "bad",
    };
    put(page, "<p class=\"line\">");
    put(page, &format!("<time>{}</time> <b>{}</b> ", clock(item.at), text(name)));
    put(
        page,
        &format!("<code>{}</code> <span class=\"{class}\">{}</span></p>\n", text(about), text(end)),
    );
}

fn tool(page: &mut String, item: &Item, call: &ToolCall) {
    let status = call.status();
    let took = item.took().map_or_else(String::new, |took| format!(", {}", format_duration(took)));
    let outcome = call.result.as_ref().map(|result| &result.outcome);
    let code = outcome.and_then(|outcome| outcome.exit_code).filter(|code| *code != 0);
    let code = code.map_or_else(String::new, |code| format!(", exit {code}"));
    let end = match (item.ran_despite_block(), was_blocked(item), &call.result) {
        (true, _, _) => "RAN ALTHOUGH IT WAS BLOCKED".to_owned(),
        (false, true, _) => "blocked".to_owned(),
        (false, false, None) => "no result recorded".to_owned(),
        (false, false, Some(_)) if status == ToolStatus::Ok => "ok".to_owned(),
        (false, false, Some(_)) => format!("{status}{code}{took}"),
    };
    line(page, item, &call.tool, &call.subject, &end);
    if let Some(error) = outcome.and_then(|outcome| outcome.error.as_deref()) {
        add(page, "pre", "bad", error);
    }
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
    let output = outcome.and_then(|outcome| outcome.output.as_deref()).unwrap_or_default();
    put(page, "<details><summary>input and output</summary>\n");
    add(page, "pre", "input", if call.input.is_null() { "" } else { &input });
    add(page, "pre", "output", output);
    put(page, "</details>\n");
}

fn subagent(page: &mut String, item: &Item, subagent: &Subagent) {
    let about = [subagent.role.as_deref(), subagent.goal.as_deref()];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join(": ");
    let end = subagent.status.as_deref().unwrap_or("");
    line(page, item, "sub-agent", &about, end);
    put(page, "<div class=\"inside\">\n");
    if let Some(inside) = &subagent.inside {
        turns(page, inside);
    }
    add(page, "pre", "answer", subagent.answer.as_deref().unwrap_or_default());
    put(page, "</div>\n");
}

fn of_decision(page: &mut String, decision: &DecisionView) {
    let word = decision.outcome.map_or("decision that cannot be read", |outcome| outcome.as_str());
    let class = if decision.refuses() { "decision bad" } else { "decision" };
    let about = decision.about.map_or("", |kind| kind.as_str());
    put(page, &format!("<div class=\"{class}\"><p>{word} at {about} (row {})</p>\n", decision.seq));
    for hook in &decision.said {
        let shadow = if hook.shadow { " (shadow)" } else { "" };
        let reason = hook.reason.as_deref().map_or_else(String::new, |it| format!(": {it}"));
        let note = hook.note.as_deref().map_or_else(String::new, |it| format!(" ({it})"));
        add(page, "p", "", &format!("{}{shadow}, {}{reason}{note}", hook.hook, hook.verdict));
    }
    add(page, "p", "", decision.note.as_deref().unwrap_or_default());
    if let Some(notice) = &decision.notice {
        add(page, "p", "", &format!("told the user: {notice}"));
    }
    put(page, "</div>\n");
}
