//! The figures as text: a line of totals, and lists with a small bar for what there is most of.

use anyhow::Result;
use hookbus::event::Time;
use hookbus_subscribers::analytics::{By, QueryResult, SqlValue, Stats};

use crate::output::{self, Paint, local_time, pad, shorten_middle, width};

/// The cells of a bar.
const BAR: usize = 12;

/// How many lines of each list the overview shows.
const TOP: usize = 5;

/// How many days the overview shows.
const DAYS: usize = 14;

/// The first column is as wide as its longest name, and not wider than this.
const KEY: usize = 28;

/// Prints everything at a glance.
pub(super) fn overview(stats: &Stats, since: Option<Time>, paint: Paint) -> Result<()> {
    let totals = stats.totals(since)?;
    let Some(row) = totals.rows.first() else { return Ok(()) };
    if figure(&totals, row, "events") == 0.0 {
        output::line(nothing(since))?;
        return Ok(());
    }
    if let Some(since) = since {
        output::line(format!("since {}", local_time(since).format("%Y-%m-%d %H:%M")))?;
    }
    let part = |name: &str, column: &str| {
        let number = figure(&totals, row, column);
        format!("{} {}", grouped(number), singular_of_one(name, number))
    };
    let parts = [
        part("sessions", "sessions"),
        part("turns", "turns"),
        part("tool calls", "tool_calls"),
        part("events", "events"),
    ];
    output::line(paint.bold(&parts.join("   ")))?;
    let parts = [
        part("failed", "failed"),
        part("blocked", "blocked"),
        part("asked", "asked"),
        part("denied", "denied"),
    ];
    output::line(parts.join("   "))?;
    if figure(&totals, row, "input_tokens") + figure(&totals, row, "output_tokens") > 0.0 {
        let cost = figure(&totals, row, "cost_usd");
        let cost = if cost > 0.0 { format!("   {cost:.2} USD") } else { String::new() };
        let parts = [part("tokens in", "input_tokens"), part("tokens out", "output_tokens")];
        output::line(format!("{}{cost}", parts.join("   ")))?;
    }
    lists(stats, since, paint)
}

/// What an empty report says.
const fn nothing(since: Option<Time>) -> &'static str {
    match since {
        Some(_) => "nothing is recorded in this time",
        None => {
            "nothing is recorded yet; connect an agent (`hookbus connect gemini`), or record an example with `hookbus demo`"
        }
    }
}

/// Prints the head of every list.
fn lists(stats: &Stats, since: Option<Time>, paint: Paint) -> Result<()> {
    for (title, by) in [
        ("agents", By::Agent),
        ("projects", By::Project),
        ("models", By::Model),
        ("tools", By::Tool),
        ("hooks", By::Hook),
        ("days", By::Day),
    ] {
        let mut table = stats.by(by, since)?;
        let all = table.rows.len();
        if by == By::Day {
            table.rows.drain(..all.saturating_sub(DAYS));
        } else {
            table.rows.truncate(TOP);
        }
        let is_known = |row: &Vec<SqlValue>| !key(row).is_empty();
        if !table.rows.iter().any(is_known) {
            continue;
        }
        output::line(format!("\n{}", paint.bold(title)))?;
        rows(by, &table, paint)?;
        let left = all - table.rows.len();
        if left > 0 {
            let more =
                format!("  … {left} more: hookbus stats --by {}", title.trim_end_matches('s'));
            output::line(paint.dim(&more))?;
        }
    }
    Ok(())
}

/// Prints one list.
pub(super) fn table(by: By, table: &QueryResult, since: Option<Time>, paint: Paint) -> Result<()> {
    if table.rows.is_empty() {
        output::line(nothing(since))?;
    }
    rows(by, table, paint)
}

/// The lines of a list: key, bar, the main figure, and the others that are not zero.
fn rows(by: By, table: &QueryResult, paint: Paint) -> Result<()> {
    let (main, others) = figures_of(by);
    let most = table.rows.iter().map(|row| figure(table, row, main)).fold(0.0, f64::max);
    let longest = table.rows.iter().map(|row| width(&name_of(row))).max().unwrap_or(0);
    let digits = grouped(most).len();
    for row in &table.rows {
        let count = figure(table, row, main);
        let others = others.iter().filter_map(|(column, name)| {
            let number = figure(table, row, column);
            let text = format!("{} {}", grouped(number), singular_of_one(name, number));
            let is_bad = ["failed", "blocked"].contains(column);
            (number > 0.0).then(|| if is_bad { paint.bad(&text) } else { text })
        });
        let mut parts: Vec<String> = others.collect();
        add_spans(by, table, row, paint, &mut parts);
        let bar = paint.notable(&bar(count, most));
        let label =
            format!("  {} {bar}  {:>digits$}  ", pad(&name_of(row), longest), grouped(count));
        output::labelled(&label, &parts.join(", "))?;
    }
    Ok(())
}

/// The main figure of a list, and the others with their names.
const fn figures_of(by: By) -> (&'static str, &'static [(&'static str, &'static str)]) {
    match by {
        By::Tool => (
            "calls",
            &[
                ("failed", "failed"),
                ("blocked", "blocked"),
                ("asked", "asked"),
                ("unknown", "unknown"),
            ],
        ),
        By::Hook => (
            "calls",
            &[
                ("blocked", "blocked"),
                ("asked", "asked"),
                ("rewritten", "rewritten"),
                ("failed", "failed"),
                ("unapproved", "not approved"),
            ],
        ),
        By::Site => ("uses", &[("sessions", "sessions")]),
        By::File => ("uses", &[("changes", "changes"), ("sessions", "sessions")]),
        By::Agent | By::Project | By::Model | By::Host | By::Day => (
            "events",
            &[
                ("sessions", "sessions"),
                ("tool_calls", "tool calls"),
                ("failed", "failed"),
                ("blocked", "blocked"),
            ],
        ),
    }
}

/// Adds times, tokens and cost to a line.
fn add_spans(by: By, table: &QueryResult, row: &[SqlValue], paint: Paint, parts: &mut Vec<String>) {
    match by {
        By::Hook => {
            if figure(table, row, "shadow") > 0.0 {
                parts.insert(0, "shadow".to_owned());
            }
            let (p50, p95) = (figure(table, row, "p50_ms"), figure(table, row, "p95_ms"));
            if p95 > 0.0 {
                parts.push(paint.dim(&format!("p50 ≤ {} ms, p95 ≤ {} ms", short(p50), short(p95))));
            }
        }
        By::Tool => {
            let mean = figure(table, row, "mean_ms");
            if mean > 0.0 {
                parts.push(paint.dim(&format!("mean {} ms", short(mean))));
            }
        }
        By::Agent | By::Project | By::Model | By::Host | By::Day => {
            let tokens = figure(table, row, "input_tokens") + figure(table, row, "output_tokens");
            if tokens > 0.0 {
                parts.push(format!("{} tokens", grouped(tokens)));
            }
            let cost = figure(table, row, "cost_usd");
            if cost > 0.0 {
                parts.push(format!("{cost:.2} USD"));
            }
        }
        By::Site | By::File => {}
    }
}

/// The first value of a row.
fn key(row: &[SqlValue]) -> String {
    match row.first() {
        Some(SqlValue::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

/// What a line is about, for people.
fn name_of(row: &[SqlValue]) -> String {
    let key = key(row);
    if key.is_empty() { "(not known)".to_owned() } else { shorten_middle(&key, KEY) }
}

/// The number in a column; 0 if there is none.
fn figure(table: &QueryResult, row: &[SqlValue], column: &str) -> f64 {
    let at = table.columns.iter().position(|name| name == column);
    match at.and_then(|at| row.get(at)) {
        #[expect(clippy::cast_precision_loss, reason = "shown with fewer digits")]
        Some(SqlValue::Integer(number)) => *number as f64,
        Some(SqlValue::Real(number)) => *number,
        _ => 0.0,
    }
}

/// `sessions`, or `session` for one.
fn singular_of_one(name: &str, number: f64) -> &str {
    if grouped(number) == "1" { name.strip_suffix('s').unwrap_or(name) } else { name }
}

/// A whole number with its thousands apart.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span in milliseconds with few digits.
fn short(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// A bar as long as a share of the largest one.
fn bar(number: f64, most: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and the width of a bar"
    )]
    let full = if most > 0.0 { (number / most * BAR as f64).ceil() as usize } else { 0 };
    (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart_and_bars_are_shares() {
        assert_eq!(
            [0.0, 999.0, 1000.0, 1_234_567.0].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(bar(1.0, 4.0), "███░░░░░░░░░");
        assert_eq!(bar(0.0, 0.0), "░░░░░░░░░░░░");
    }
}
