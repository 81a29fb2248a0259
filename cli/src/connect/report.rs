//! What `connect` and `disconnect` print about a plan: each file with its changed lines, then the remarks.

use anyhow::Result;
use serde_json::{Value, json};

use super::diff::changed_lines;
use super::files::PendingWrite;
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
        output::line(output::sanitize_lines(remark))?;
    }
    Ok(())
}

/// Shows a plan as text, with the lines of new files too.
pub(super) fn show_with_new(
    writes: &[PendingWrite],
    remarks: &[String],
    paint: Paint,
) -> Result<()> {
    for write in writes {
        show_file(write, paint)?;
        if let PendingWrite { now: None, then: Some(text), .. } = write {
            show_lines("", text, paint)?;
        }
    }
    show(&[], &[], remarks, paint)
}

fn show_file(PendingWrite { path, now, then }: &PendingWrite, paint: Paint) -> Result<()> {
    let name = path.display();
    match (now, then) {
        (None, _) => output::line(format!("  new      {name}"))?,
        (Some(_), None) => output::line(format!("  removed  {name}"))?,
        (Some(now), Some(then)) => {
            output::line(format!("  changed  {name}"))?;
            show_lines(now, then, paint)?;
        }
    }
    Ok(())
}

fn show_lines(now: &str, then: &str, paint: Paint) -> Result<()> {
    for line in changed_lines(now, then) {
        let line = output::sanitize(&line);
        let painted = if line.starts_with('+') { paint.good(&line) } else { paint.bad(&line) };
        output::line(format!("           {painted}"))?;
    }
    Ok(())
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
