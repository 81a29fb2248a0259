//! `hookbus compact`: packs what an earlier hookbus stored whole, and gives the space back to the disk.

use anyhow::Result;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{LogPath, compact};
use serde_json::json;

use crate::args::open_log;
use crate::cli::Exit;
use crate::output::{self, Progress, count, size};
use crate::settings::{Format, Settings};

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let head = open_log(settings)?.head()?.map_or(0, |(seq, _)| seq.as_i64());
    let mut progress = Progress::new(head.unsigned_abs(), "rows");
    let log = LogPath::in_home(&settings.home);
    let done = compact(&log, SystemClock.now(), |seq| progress.update(seq.unsigned_abs()))?;
    drop(progress);
    output::line(match format {
        Format::Json => json!({
            "packed": done.rows,
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
        })
        .to_string(),
        Format::Text => format!(
            "packed {}: the log had {} and has {} now",
            count(usize::try_from(done.rows).unwrap_or(usize::MAX), "payload"),
            size(done.bytes_before),
            size(done.bytes_after),
        ),
    })?;
    Ok(Exit::Success)
}
