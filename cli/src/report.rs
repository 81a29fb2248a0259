//! The parts that the reports of a replay and of shadow mode share: totals, sections, and the calls most affected.

use anyhow::Result;
use hookbus_replay::{AffectedCall, CallCounts};

use crate::output::{self, Paint, columns, shorten, width};

/// The title of the list of calls.
pub(crate) const CALLS: &str = "calls most affected";

/// Number of calls to list.
pub(crate) const MOST_CALLS: usize = 10;

/// A number, and what it counts.
pub(crate) fn count_line(number: u64, words: &str) -> String {
    format!("{:>9}  {words}", output::number(number))
}

/// A title and its lines; nothing without lines.
pub(crate) fn section(title: &str, lines: &[String], paint: Paint) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    output::line(format!("\n{}", paint.bold(title)))?;
    lines_out(lines, "  ")
}

/// Prints lines behind `indent`.
pub(crate) fn lines_out(lines: &[String], indent: &str) -> Result<()> {
    for line in lines {
        output::line(format!("{indent}{line}"))?;
    }
    Ok(())
}

/// The calls that were affected most often, with the position of the first of each.
pub(crate) fn call_lines(calls: &CallCounts) -> Vec<String> {
    let line = |AffectedCall { call, times, first }: AffectedCall<'_>| {
        let (times, first) = (format!("{times:>7} ×  "), format!(" (first at {first})"));
        let used = 2 + width(&times) + width(&first);
        format!("{times}{}{first}", shorten(call, columns().saturating_sub(used)))
    };
    calls.most(MOST_CALLS).into_iter().map(line).collect()
}
