//! `hookbus import`: exported rows into an archive.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hookbus::envelope::{self, Travelled};
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{Archive, ArchiveError, LogPath};
use serde_json::json;

use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count};
use crate::settings::{Format, Settings};

/// How many rows share a commit.
const BATCH: usize = 500;

/// More mistakes than this are not told one by one.
const MOST_TOLD: usize = 10;

/// Exported rows into an archive: a directory that `HOOKBUS_HOME` can name.
///
/// Rows that are there already are passed over, so a file can be imported twice. A row whose hash
/// does not follow from the one before it is left out, and told.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What `hookbus export` wrote.
    file: PathBuf,
    /// The archive; made if it is not there.
    #[arg(long, value_name = "DIRECTORY")]
    into: PathBuf,
}

/// What came of an import.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    added: usize,
    known: usize,
    /// What is wrong, line by line.
    pub(crate) mistakes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = LogPath::in_home(&arguments.into);
    let Imported { added, known, mistakes } = take_in(&arguments.file, &log)?;
    match format {
        Format::Json => {
            output::line(
                json!({"added": added, "known": known, "mistakes": mistakes}).to_string(),
            )?;
        }
        Format::Text => {
            let known = match known {
                0 => String::new(),
                known => format!(", {known} were there already"),
            };
            let home = arguments.into.display();
            output::line(format!("{} added{known}", count(added, "row")))?;
            let paint = Paint(settings.colour);
            for mistake in mistakes.iter().take(MOST_TOLD) {
                output::line(paint.bad(&output::sanitize(mistake)))?;
            }
            if mistakes.len() > MOST_TOLD {
                output::line(paint.bad(&format!("and {} more", mistakes.len() - MOST_TOLD)))?;
            }
            output::line(format!("`HOOKBUS_HOME={home} hookbus sessions` shows what is in it"))?;
        }
    }
    Ok(if mistakes.is_empty() { Exit::Success } else { Exit::Failure })
}

/// Takes every row of `file` into the archive at `log`.
pub(crate) fn take_in(file: &Path, log: &LogPath) -> Result<Imported> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let whole = open.metadata().map_or(0, |file| file.len());
    let mut archive = Archive::open(log, SystemClock.now())?;
    let mut progress = Progress::new(whole, "bytes");
    let mut imported = Imported::default();
    let (mut batch, mut read) = (Vec::with_capacity(BATCH), 0);
    for (index, line) in BufReader::new(open).split(b'\n').enumerate() {
        let line = line.with_context(|| format!("cannot read {}", file.display()))?;
        read += line.len() as u64 + 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match envelope::read(&line) {
            Ok(row) => batch.push((index + 1, row)),
            Err(error) => imported.mistakes.push(format!("line {}: {error}", index + 1)),
        }
        if batch.len() == BATCH {
            imported.add(&mut archive, &mut batch)?;
            progress.update(read);
        }
    }
    imported.add(&mut archive, &mut batch)?;
    Ok(imported)
}

impl Imported {
    /// All rows of a batch at once; one by one if something is wrong with one of them.
    fn add(&mut self, archive: &mut Archive, batch: &mut Vec<(usize, Travelled)>) -> Result<()> {
        let rows = std::mem::take(batch);
        if let Ok(added) = archive.take_in(rows.iter().map(|(_, row)| row)) {
            self.added += added;
            self.known += rows.len() - added;
            return Ok(());
        }
        for (line, row) in &rows {
            match archive.take_in([row]) {
                Ok(0) => self.known += 1,
                Ok(_) => self.added += 1,
                Err(error @ (ArchiveError::Differs { .. } | ArchiveError::Broken { .. })) => {
                    self.mistakes.push(format!("line {line}: {error}"));
                }
                Err(ArchiveError::Append(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
