//! An entry as it is shown to the person who is asked about it: what it says, and the files behind it. What fits on
//! a screen is shown whole. Of more than that there is a list, and what has changed since they agreed to it is
//! shown first.

use std::fs;

use anyhow::Result;
use hookbus::decide::{Agreeable, Agreement, Exhibit};

use crate::output::{self, Paint, count, sanitize};

/// A file with more lines is named and not shown.
const LINES: usize = 300;

/// So is a bigger one.
const LARGEST: u64 = 64 << 10;

/// So many lines of several files are read at a glance.
const A_SCREEN: usize = 100;

/// How much of the files is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What fits on a screen, or has changed.
    AScreen,
    /// All that can be read.
    Whole,
}

/// Shows an entry and the files behind it; no where one of them is not what was looked at a moment ago.
pub(super) fn show(entry: &Agreeable, extent: Extent, paint: Paint) -> Result<bool> {
    let why = match entry.agreement {
        Agreement::Lapsed => "it has changed since you agreed to it",
        Agreement::Never | Agreement::Given => "new",
    };
    let (hook, event) = (sanitize(&entry.hook), sanitize(&entry.event));
    output::line(format!("\n{}  on {event}  ({why})", paint.bold(&hook)))?;
    if let Some(project) = &entry.project {
        let file = sanitize(&project.display().to_string());
        output::line(format!("  from: {file}, line {}", entry.line))?;
        output::line(format!("  says: {}", sanitize(&entry.written)))?;
    }
    if entry.runs_something {
        output::line(format!("  runs: {}", sanitize(&entry.command)))?;
    }
    for setting in &entry.settings {
        output::line(format!("  with: {}", sanitize(setting)))?;
    }
    let steady = show_files(entry, extent, paint)?;
    if !entry.made_out {
        output::line(paint.bad(
            "  not all that this runs can be made out: some of it can change without your being asked again",
        ))?;
    }
    Ok(steady)
}

fn show_files(entry: &Agreeable, extent: Extent, paint: Paint) -> Result<bool> {
    let news = entry.news.as_ref();
    // What a person looks for is what is new.
    let has_changed = |file: &Exhibit| news.is_some_and(|news| news.changed.contains(&file.path));
    let Some(files) = entry
        .files
        .iter()
        .map(|file| Looked::at(file, if has_changed(file) { Extent::Whole } else { extent }))
        .collect::<Option<Vec<Looked<'_>>>>()
    else {
        return Ok(false);
    };
    let lines: usize = files.iter().filter_map(|file| file.text.as_deref().map(lines_of)).sum();
    let fits = files.len() == 1 || lines <= A_SCREEN || extent == Extent::Whole;
    let (changed, same): (Vec<Looked<'_>>, Vec<Looked<'_>>) =
        files.into_iter().partition(|file| has_changed(file.exhibit));
    for file in &changed {
        file.show(paint)?;
    }
    for path in news.into_iter().flat_map(|news| &news.gone) {
        output::line(format!("  {}: it is gone", sanitize(&path.display().to_string())))?;
    }
    for file in &same {
        if fits {
            file.show(paint)?;
        } else {
            file.name(paint)?;
        }
    }
    if !fits && !same.is_empty() {
        let what = if news.is_some() { "as they were" } else { "not shown" };
        let many = count(same.len(), "file");
        output::line(format!(
            "  {many} {what}: read them in an editor, or run this again with `--whole`"
        ))?;
    }
    Ok(true)
}

fn lines_of(text: &str) -> usize {
    text.lines().count()
}

/// A file, as it is now.
struct Looked<'a> {
    exhibit: &'a Exhibit,
    size: u64,
    /// All of it, if it can be shown.
    text: Option<String>,
}

impl<'a> Looked<'a> {
    /// None where it is not what it was a moment ago.
    fn at(exhibit: &'a Exhibit, extent: Extent) -> Option<Self> {
        let size = fs::metadata(&exhibit.path).map_or(0, |file| file.len());
        let bytes = (size <= LARGEST).then(|| fs::read(&exhibit.path).ok()).flatten();
        if bytes.as_ref().is_some_and(|bytes| !exhibit.held(bytes)) {
            return None;
        }
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let is_short = |text: &str| extent == Extent::Whole || lines_of(text) <= LINES;
        let text = text.filter(|text| is_short(text) && !text.contains('\0'));
        Some(Self { exhibit, size, text })
    }

    fn path(&self) -> String {
        sanitize(&self.exhibit.path.display().to_string())
    }

    /// All of it; of what cannot be read at a glance enough to find it and to know it again.
    fn show(&self, paint: Paint) -> Result<()> {
        let Some(text) = &self.text else {
            let (path, size, hash) = (self.path(), self.size, &self.exhibit.hash);
            return Ok(output::line(format!("  {path}: {size} bytes, {hash}; read it first"))?);
        };
        output::line(format!("  {}:", self.path()))?;
        for line in text.lines() {
            output::line(format!("  {} {}", paint.dim("|"), sanitize(line)))?;
        }
        Ok(())
    }

    fn name(&self, paint: Paint) -> Result<()> {
        let size = paint.dim(&format!("{} bytes", self.size));
        Ok(output::line(format!("  {}: {size}", self.path()))?)
    }
}
