//! Shows an entry before the user approves it: its settings and the files that it runs. Files that fit on a screen are
//! printed; otherwise they are listed, and those that changed since the last approval are printed first.

use std::fs;

use anyhow::Result;
use hookbus::config::Approval;
use hookbus::consent::ApprovalItem;
use hookbus::files::FileDigest;

use crate::output::{self, Paint, count, sanitize};

/// A file with more lines is named but not printed.
const MAX_LINES: usize = 300;

/// So is a file with more bytes.
const MAX_SIZE: u64 = 64 << 10;

/// Several files are printed if they have no more lines than this together.
const SCREEN_LINES: usize = 100;

/// What an approval leaves out.
const NOT_COVERED: &str = "  not covered: what these files import or run, and programs on the PATH;\n  \
     name more files with `files: […]` in the entry";

/// How much of the files to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileContents {
    /// Changed files, and the others if they fit on a screen.
    OneScreen,
    /// All text files.
    InFull,
}

/// Shows an entry and its files; false if a file has changed since the entry was read.
pub(super) fn show(entry: &ApprovalItem, contents: FileContents, paint: Paint) -> Result<bool> {
    let why = match entry.approval {
        Approval::Lapsed => "changed since you approved it",
        Approval::Lost => "you approved it, and its approval is gone from consent.json",
        Approval::NotApproved | Approval::Approved => "new",
    };
    let (hook, event) = (sanitize(&entry.hook), sanitize(&entry.event));
    output::line(format!("\n{}  on {event}  ({why})", paint.bold(&hook)))?;
    if let Some(project) = &entry.project {
        let file = sanitize(&project.display().to_string());
        output::line(format!("  from: {file}, line {}", entry.line))?;
        output::line(format!("  entry: {}", sanitize(&entry.written)))?;
    }
    if entry.runs_something {
        output::line(format!("  runs: {}", sanitize(&entry.command)))?;
    }
    for setting in &entry.settings {
        output::line(format!("  with: {}", sanitize(setting)))?;
    }
    let is_unchanged = show_files(entry, contents, paint)?;
    if entry.runs_something {
        output::line(paint.dim(NOT_COVERED))?;
    }
    Ok(is_unchanged)
}

fn show_files(entry: &ApprovalItem, contents: FileContents, paint: Paint) -> Result<bool> {
    let changes = entry.changes.as_ref();
    // Changed files are always printed: they are what the user has to look at.
    let has_changed =
        |file: &FileDigest| changes.is_some_and(|changes| changes.changed.contains(&file.path));
    let Some(files) = entry
        .files
        .iter()
        .map(|file| {
            let contents = if has_changed(file) { FileContents::InFull } else { contents };
            FileView::read(file, contents)
        })
        .collect::<Option<Vec<FileView<'_>>>>()
    else {
        return Ok(false);
    };
    let lines: usize = files.iter().filter_map(|file| file.text.as_deref().map(count_lines)).sum();
    let fits = files.len() == 1 || lines <= SCREEN_LINES || contents == FileContents::InFull;
    let (changed, unchanged): (Vec<FileView<'_>>, Vec<FileView<'_>>) =
        files.into_iter().partition(|file| has_changed(file.digest));
    for file in &changed {
        file.print(paint)?;
    }
    for path in changes.into_iter().flat_map(|changes| &changes.gone) {
        output::line(format!("  {}: removed", sanitize(&path.display().to_string())))?;
    }
    for file in &unchanged {
        if fits {
            file.print(paint)?;
        } else {
            file.print_name(paint)?;
        }
    }
    if !fits && !unchanged.is_empty() {
        let what = if changes.is_some() { "unchanged" } else { "not shown" };
        let files = count(unchanged.len(), "file");
        output::line(format!(
            "  {files} {what}: read them in an editor, or run this again with `--whole`"
        ))?;
    }
    Ok(true)
}

fn count_lines(text: &str) -> usize {
    text.lines().count()
}

/// A file as it is now.
struct FileView<'a> {
    digest: &'a FileDigest,
    size: u64,
    /// Its text, if that is to be printed.
    text: Option<String>,
}

impl<'a> FileView<'a> {
    /// None if the file does not match its digest any more.
    fn read(digest: &'a FileDigest, contents: FileContents) -> Option<Self> {
        let size = fs::metadata(&digest.path).map_or(0, |file| file.len());
        let bytes = (size <= MAX_SIZE).then(|| fs::read(&digest.path).ok()).flatten();
        if bytes.as_ref().is_some_and(|bytes| !digest.matches(bytes)) {
            return None;
        }
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let is_short =
            |text: &str| contents == FileContents::InFull || count_lines(text) <= MAX_LINES;
        let text = text.filter(|text| is_short(text) && !text.contains('\0'));
        Some(Self { digest, size, text })
    }

    fn path(&self) -> String {
        sanitize(&self.digest.path.display().to_string())
    }

    /// Prints the text, or size and hash if the file is too long or not text.
    fn print(&self, paint: Paint) -> Result<()> {
        let Some(text) = &self.text else {
            let (path, hash) = (self.path(), &self.digest.hash);
            let size = output::size(self.size);
            return Ok(output::line(format!(
                "  {path}: {size}, {hash}; read it in an editor first"
            ))?);
        };
        output::line(format!("  {}:", self.path()))?;
        for line in text.lines() {
            output::whole_line(format!("  {} {}", paint.dim("|"), sanitize(line)))?;
        }
        Ok(())
    }

    fn print_name(&self, paint: Paint) -> Result<()> {
        let size = paint.dim(&output::size(self.size));
        Ok(output::line(format!("  {}: {size}", self.path()))?)
    }
}
