//! Lines of a log without the secrets in them: an error text may quote what an agent sent.

use std::io::{self, Write};
use std::sync::Arc;

use hookbus::redact::Redactor;

/// Writes each line without its secrets. `tracing` writes a whole line at once.
#[derive(Debug)]
pub(super) struct RedactedLines<W> {
    out: W,
    redactor: Arc<Option<Redactor>>,
}

impl<W: Write> RedactedLines<W> {
    pub(super) const fn new(out: W, redactor: Arc<Option<Redactor>>) -> Self {
        Self { out, redactor }
    }
}

impl<W: Write> Write for RedactedLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.redactor.as_ref() {
            Some(redactor) => self.out.write_all(&redactor.redact(line).bytes)?,
            None => self.out.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
