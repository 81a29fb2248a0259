//! The JUnit XML report, for CI: one test case for every event with a verdict. Written while the replay
//! runs; the totals at the top of the file are filled in at the end.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::compare::Category;
use crate::replayed_event::ReplayedEvent;

/// Writes a JUnit report.
#[derive(Debug)]
pub struct JUnitReport {
    file: BufWriter<File>,
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl JUnitReport {
    /// Creates the file at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let mut report = Self { file, tests: 0, failures: 0, errors: 0, skipped: 0 };
        report.write_head()?;
        Ok(report)
    }

    /// Writes the totals with a fixed width, so that they can be overwritten.
    fn write_head(&mut self) -> io::Result<()> {
        let Self { file, tests, failures, errors, skipped } = self;
        let numbers = format!(
            "tests=\"{tests:08}\" failures=\"{failures:08}\" errors=\"{errors:08}\" skipped=\"{skipped:08}\""
        );
        writeln!(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(file, "<testsuites name=\"hookbus replay\" {numbers}>")?;
        writeln!(file, "<testsuite name=\"hookbus replay\" {numbers}>")
    }

    /// Adds the next event; one that never had a verdict is left out.
    pub fn add(&mut self, event: &ReplayedEvent) -> io::Result<()> {
        let category = event.comparison.category;
        let has_verdicts = event.recorded.is_some() || event.replayed.is_some();
        if category == Category::Unchanged && !has_verdicts {
            return Ok(());
        }
        self.tests += 1;
        let tool = event.tool.as_deref().unwrap_or_default();
        let name = format!("{} {} {tool} {}", event.seq, event.name, event.gist);
        let class = format!("{}.{}", event.agent, event.session);
        write!(
            self.file,
            "<testcase classname=\"{}\" name=\"{}\"",
            escape(&class),
            escape(name.trim_end())
        )?;
        let (before, after) = (event.recorded_outcome(), event.replayed_outcome());
        let hook = event.comparison.hook.as_deref().unwrap_or_default();
        let message = format!("{}: {before} then, {after} now, by {hook}", category.as_str());
        let why = event.comparison.why.as_deref().unwrap_or(&message);
        let (element, message) = match category {
            Category::Unchanged => return writeln!(self.file, "/>"),
            Category::NotComparable => {
                self.skipped += 1;
                return writeln!(self.file, "><skipped message=\"{}\"/></testcase>", escape(why));
            }
            Category::Failed => {
                self.errors += 1;
                ("error", why.to_owned())
            }
            Category::NewlyBlocked | Category::NewlyAllowed | Category::Changed => {
                self.failures += 1;
                ("failure", message)
            }
        };
        writeln!(
            self.file,
            "><{element} type=\"{}\" message=\"{}\">{}</{element}></testcase>",
            escape(category.as_str()),
            escape(&message),
            escape(&event.to_json().to_string())
        )
    }

    /// Completes the file.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.file, "</testsuite>\n</testsuites>")?;
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.write_head()?;
        self.file.flush()
    }
}

/// Escapes text for an attribute or an element; replaces characters that XML does not allow.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            letter => out.push(letter),
        }
    }
    out
}
