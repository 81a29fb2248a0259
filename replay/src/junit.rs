//! The JUnit XML report, for CI: one test case for every event with a verdict, or for every example of a rule. Written
//! case by case; the totals at the top of the file are filled in at the end.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::compare::Category;
use crate::replayed_event::ReplayedEvent;

/// Writes a JUnit report.
#[derive(Debug)]
pub struct JUnitReport {
    file: BufWriter<File>,
    /// What was run.
    name: &'static str,
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

/// How a test case came out.
#[derive(Debug, Clone, Copy)]
pub enum CaseResult<'a> {
    /// As expected.
    Passed,
    /// It could not be run.
    Skipped(&'a str),
    /// Something is broken.
    Error(Finding<'a>),
    /// Not as expected.
    Failure(Finding<'a>),
}

/// What is wrong in a test case.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// Its kind, in a word or two.
    pub kind: &'a str,
    /// One sentence.
    pub message: &'a str,
    /// The rest.
    pub details: &'a str,
}

impl JUnitReport {
    /// Creates the file at `path`, about the run of `name`.
    pub fn create(path: &Path, name: &'static str) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let mut report = Self { file, name, tests: 0, failures: 0, errors: 0, skipped: 0 };
        report.write_head()?;
        Ok(report)
    }

    /// Writes the totals with a fixed width, so that they can be overwritten.
    fn write_head(&mut self) -> io::Result<()> {
        let Self { file, name, tests, failures, errors, skipped } = self;
        let numbers = format!(
            "tests=\"{tests:08}\" failures=\"{failures:08}\" errors=\"{errors:08}\" skipped=\"{skipped:08}\""
        );
        writeln!(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(file, "<testsuites name=\"{name}\" {numbers}>")?;
        writeln!(file, "<testsuite name=\"{name}\" {numbers}>")
    }

    /// Adds the next event; one that never had a verdict is left out.
    pub fn add(&mut self, event: &ReplayedEvent) -> io::Result<()> {
        let category = event.comparison.category;
        let has_verdicts = event.recorded.is_some() || event.replayed.is_some();
        if category == Category::Unchanged && !has_verdicts {
            return Ok(());
        }
        let tool = event.tool.as_deref().unwrap_or_default();
        let name = format!("{} {} {tool} {}", event.seq, event.name, event.gist);
        let class = format!("{}.{}", event.agent, event.session);
        let (before, after) = (event.recorded_outcome(), event.replayed_outcome());
        let hook = event.comparison.hook.as_deref().unwrap_or_default();
        let message = format!("{}: {before} then, {after} now, by {hook}", category.as_str());
        let why = event.comparison.why.as_deref().unwrap_or(&message);
        let details = match category {
            Category::Unchanged | Category::NotComparable => String::new(),
            Category::Failed
            | Category::NewlyBlocked
            | Category::NewlyAllowed
            | Category::Changed => event.to_json().to_string(),
        };
        let found = |message| Finding { kind: category.as_str(), message, details: &details };
        let result = match category {
            Category::Unchanged => CaseResult::Passed,
            Category::NotComparable => CaseResult::Skipped(why),
            Category::Failed => CaseResult::Error(found(why)),
            Category::NewlyBlocked | Category::NewlyAllowed | Category::Changed => {
                CaseResult::Failure(found(&message))
            }
        };
        self.add_case(&class, name.trim_end(), result)
    }

    /// Adds a test case.
    pub fn add_case(&mut self, class: &str, name: &str, result: CaseResult<'_>) -> io::Result<()> {
        self.tests += 1;
        let (class, name) = (escape(class), escape(name));
        write!(self.file, "<testcase classname=\"{class}\" name=\"{name}\"")?;
        let (element, Finding { kind, message, details }) = match result {
            CaseResult::Passed => return writeln!(self.file, "/>"),
            CaseResult::Skipped(why) => {
                self.skipped += 1;
                return writeln!(self.file, "><skipped message=\"{}\"/></testcase>", escape(why));
            }
            CaseResult::Error(finding) => {
                self.errors += 1;
                ("error", finding)
            }
            CaseResult::Failure(finding) => {
                self.failures += 1;
                ("failure", finding)
            }
        };
        let (kind, message, details) = (escape(kind), escape(message), escape(details));
        writeln!(
            self.file,
            "><{element} type=\"{kind}\" message=\"{message}\">{details}</{element}></testcase>",
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
