//! The result as JUnit XML, for CI: a case for every event that somebody has an opinion about.
//! Written as it comes; the numbers at the top are filled in at the end.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use hookbus::event::Outcome;

use crate::compare::Class;
use crate::judge::Judged;

/// A report under way.
#[derive(Debug)]
pub struct JUnit {
    file: BufWriter<File>,
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl JUnit {
    /// Starts the file at `path`.
    pub fn start(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let mut report = Self { file, tests: 0, failures: 0, errors: 0, skipped: 0 };
        report.head()?;
        Ok(report)
    }

    /// Numbers of a fixed width, so that they can be written over.
    fn head(&mut self) -> io::Result<()> {
        let Self { file, tests, failures, errors, skipped } = self;
        let numbers = format!(
            "tests=\"{tests:08}\" failures=\"{failures:08}\" errors=\"{errors:08}\" skipped=\"{skipped:08}\""
        );
        writeln!(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(file, "<testsuites name=\"hookbus replay\" {numbers}>")?;
        writeln!(file, "<testsuite name=\"hookbus replay\" {numbers}>")
    }

    /// The next event.
    pub fn case(&mut self, judged: &Judged) -> io::Result<()> {
        let opinion = judged.then.is_some() || judged.now.is_some();
        if judged.comparison.class == Class::Unchanged && !opinion {
            return Ok(());
        }
        self.tests += 1;
        let tool = judged.tool.as_deref().unwrap_or_default();
        let name = format!("{} {} {tool} {}", judged.seq, judged.name, judged.gist);
        let class = format!("{}.{}", judged.agent, judged.session);
        write!(
            self.file,
            "<testcase classname=\"{}\" name=\"{}\"",
            escaped(&class),
            escaped(name.trim_end())
        )?;
        let then = judged.then.as_ref().map_or(Outcome::None, |then| then.outcome);
        let now = judged.now.as_ref().map_or(Outcome::None, |now| now.outcome);
        let told = judged.comparison.class.as_str();
        let hook = judged.comparison.hook.as_deref().unwrap_or_default();
        let message = format!("{told}: {then} then, {now} now, by {hook}");
        let why = judged.comparison.why.as_deref().unwrap_or(&message);
        let (element, message) = match judged.comparison.class {
            Class::Unchanged => return writeln!(self.file, "/>"),
            Class::NotComparable => {
                self.skipped += 1;
                return writeln!(self.file, "><skipped message=\"{}\"/></testcase>", escaped(why));
            }
            Class::Failed => {
                self.errors += 1;
                ("error", why.to_owned())
            }
            Class::NewlyBlocked | Class::NewlyAllowed | Class::Changed => {
                self.failures += 1;
                ("failure", message)
            }
        };
        writeln!(
            self.file,
            "><{element} type=\"{}\" message=\"{}\">{}</{element}></testcase>",
            escaped(told),
            escaped(&message),
            escaped(&judged.to_json().to_string())
        )
    }

    /// Ends the file.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.file, "</testsuite>\n</testsuites>")?;
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.head()?;
        self.file.flush()
    }
}

/// Text that may stand in an attribute or between elements; what XML cannot hold is replaced.
fn escaped(text: &str) -> String {
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
