//! What `connect` and `disconnect` print about a plan: each file with its changed lines, then the remarks.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::files::PendingWrite;
use crate::diff;
use crate::output::{self, Paint};

/// Shows a plan as text.
pub(super) fn show(
    writes: &[PendingWrite],
    backups: &[PendingWrite],
    remarks: &[String],
    paint: Paint,
) -> Result<()> {
    for write in writes.iter().chain(backups) {
        show_file(write, paint)?;
    }
    for remark in remarks {
        // Whole: it may hold a command that is copied.
        output::whole_line(output::sanitize_lines(remark))?;
    }
    Ok(())
}

/// Shows a plan as text, with the beginning of each line, of new files too. For files with lines that no person would
/// read to their end.
pub(super) fn show_beginnings(
    writes: &[PendingWrite],
    remarks: &[String],
    paint: Paint,
) -> Result<()> {
    for PendingWrite { path, now, then } in writes {
        show_name(path, now.as_ref(), then.as_ref())?;
        if let Some(then) = then {
            diff::show(now.as_deref().unwrap_or_default(), then, BEGINNING, paint)?;
        }
    }
    show(&[], &[], remarks, paint)
}

/// How much of a long line fits beside the margin at 80 columns.
const BEGINNING: usize = 68;

fn show_file(PendingWrite { path, now, then }: &PendingWrite, paint: Paint) -> Result<()> {
    show_name(path, now.as_ref(), then.as_ref())?;
    match (now, then) {
        (Some(now), Some(then)) => diff::show(now, then, usize::MAX, paint),
        (None, _) | (Some(_), None) => Ok(()),
    }
}

fn show_name(path: &Path, now: Option<&String>, then: Option<&String>) -> Result<()> {
    let name = output::sanitize(&path.to_string_lossy());
    let what = match (now, then) {
        (None, _) => "new    ",
        (Some(_), None) => "removed",
        (Some(_), Some(_)) => "changed",
    };
    Ok(output::line(format!("  {what}  {name}"))?)
}

/// The result as JSON.
pub(super) fn json(
    agent: &str,
    connected: bool,
    writes: &[PendingWrite],
    remarks: &[String],
) -> Value {
    let files: Vec<_> = writes.iter().map(|write| write.path.to_string_lossy()).collect();
    json!({"agent": agent, "connected": connected, "files": files, "remarks": remarks})
}
