//! `hookbus import`: adds exported rows to an archive.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hookbus::envelope;
use hookbus::event::{Clock, SystemClock};
use hookbus::log::{Archive, LogPath, Received};
use serde_json::json;

use crate::cli::Exit;
use crate::output::{self, Paint, Progress, count};
use crate::settings::{Format, Settings};

/// Rows in a commit.
const BATCH: usize = 500;

/// Most mistakes to print one by one.
const MOST_MISTAKES: usize = 10;

/// Add exported rows to an archive, a directory that `--home` can name.
///
/// Rows that the archive already holds are skipped, so a file can be imported twice. Rows whose hash does
/// not follow from the row before are skipped and reported, and the exit code is then 1.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file that `hookbus export` wrote.
    file: PathBuf,
    /// The archive; created if it does not exist.
    #[arg(long, value_name = "DIRECTORY")]
    into: PathBuf,
}

/// The result of an import.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    added: usize,
    known: usize,
    /// Lines that could not be imported, and why.
    pub(crate) mistakes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = LogPath::in_home(&arguments.into);
    let Imported { added, known, mistakes } = import_file(&arguments.file, &log)?;
    match format {
        Format::Json => {
            output::line(
                json!({"added": added, "known": known, "mistakes": mistakes}).to_string(),
            )?;
        }
        Format::Text => {
            let known = match known {
                0 => String::new(),
                known => format!(", {known} already in the archive"),
            };
            let home =
                std::path::absolute(&arguments.into).unwrap_or_else(|_| arguments.into.clone());
            let home = home.display();
            output::line(format!("{} added{known}", count(added, "row")))?;
            let paint = Paint(settings.colour);
            for mistake in mistakes.iter().take(MOST_MISTAKES) {
                output::line(paint.bad(&output::sanitize(mistake)))?;
            }
            if mistakes.len() > MOST_MISTAKES {
                output::line(paint.bad(&format!("and {} more", mistakes.len() - MOST_MISTAKES)))?;
            }
            output::line(format!("`hookbus --home {home} sessions` lists its sessions"))?;
        }
    }
    Ok(if mistakes.is_empty() { Exit::Success } else { Exit::Failure })
}

/// Adds every row of `file` to the archive at `log`.
pub(crate) fn import_file(file: &Path, log: &LogPath) -> Result<Imported> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let total = open.metadata().map_or(0, |file| file.len());
    let mut archive = Archive::open(log, SystemClock.now())?;
    let mut progress = Progress::new(total, "bytes");
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
    /// Adds all rows of a batch in one commit, or one by one if a row is not accepted.
    fn add(&mut self, archive: &mut Archive, batch: &mut Vec<(usize, Received)>) -> Result<()> {
        let rows = std::mem::take(batch);
        if let Ok(added) = archive.append(rows.iter().map(|(_, row)| row)) {
            self.added += added;
            self.known += rows.len() - added;
            return Ok(());
        }
        for (line, row) in &rows {
            match archive.append([row]) {
                Ok(0) => self.known += 1,
                Ok(_) => self.added += 1,
                Err(error) if error.is_wrong_row() => {
                    self.mistakes.push(format!("line {line}: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
