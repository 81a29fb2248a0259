//! Where cases come from: in parts that can be read side by side and put in order again.

use std::ops::RangeInclusive;

use hookbus::event::{Event, Seq};
use hookbus::log::{FarDecisions, Found, LogPath, LogReader, ReadError, Selection};

/// So many rows where something runs for each event.
const FEW: i64 = 4;

/// Recorded events, in parts.
pub trait Source: Sync {
    /// How many parts there are.
    fn parts(&self) -> u64;

    /// How many rows a part looks at, for the progress line.
    fn rows_per_part(&self) -> u64;

    /// Makes parts small, for when something runs for each event: progress shows, and several may run
    /// side by side.
    fn take_few_at_a_time(&mut self) {}

    /// What has to be said about the whole of it.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// A reader; every worker has its own.
    fn open(&self) -> Result<Box<dyn Reading + '_>, ReadError>;
}

/// One worker's way to the cases.
pub trait Reading {
    /// Every case of a part, in recorded order.
    fn part(&self, index: u64, each: &mut dyn FnMut(Found)) -> Result<(), ReadError>;

    /// How often in a row the agent had been sent on before this event, `most` at the most.
    fn sent_on_before(&self, event: &Event, seq: Seq, most: u32) -> u32;
}

/// A log, or what is selected of it.
#[derive(Debug)]
pub struct LogSource {
    log: LogPath,
    selection: Selection,
    range: RangeInclusive<i64>,
    far: FarDecisions,
    rows_per_part: i64,
}

impl LogSource {
    /// What `selection` finds in `log`, `rows_per_part` rows of the log at a time.
    pub fn open(log: LogPath, selection: Selection, rows_per_part: u32) -> Result<Self, ReadError> {
        let reader = LogReader::open(&log)?;
        let range = reader.extent(&selection)?;
        let far = reader.far_decisions(&selection, &range)?;
        Ok(Self { log, selection, range, far, rows_per_part: i64::from(rows_per_part.max(1)) })
    }
}

impl Source for LogSource {
    fn parts(&self) -> u64 {
        let rows = (self.range.end() - self.range.start() + 1).max(0);
        (rows + self.rows_per_part - 1).div_euclid(self.rows_per_part).unsigned_abs()
    }

    fn rows_per_part(&self) -> u64 {
        self.rows_per_part.unsigned_abs()
    }

    fn take_few_at_a_time(&mut self) {
        self.rows_per_part = self.rows_per_part.min(FEW);
    }

    fn remarks(&self) -> Vec<String> {
        let orphans = &self.far.without_cause;
        let Some(first) = orphans.first() else { return Vec::new() };
        let others = match orphans.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more like it)"),
        };
        vec![format!(
            "row {first} is a decision about an event that is not there{others}: left out"
        )]
    }

    fn open(&self) -> Result<Box<dyn Reading + '_>, ReadError> {
        Ok(Box::new(LogReading { source: self, reader: LogReader::open(&self.log)? }))
    }
}

struct LogReading<'a> {
    source: &'a LogSource,
    reader: LogReader,
}

impl Reading for LogReading<'_> {
    fn part(&self, index: u64, each: &mut dyn FnMut(Found)) -> Result<(), ReadError> {
        let LogSource { selection, range, far, rows_per_part, .. } = self.source;
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let first = range.start().saturating_add(index.saturating_mul(*rows_per_part));
        let last = first.saturating_add(rows_per_part - 1).min(*range.end());
        self.reader.cases(selection, first..=last, far, each);
        Ok(())
    }

    fn sent_on_before(&self, event: &Event, seq: Seq, most: u32) -> u32 {
        // An agent that is let go too early can be asked again: the same as live.
        self.reader.sent_on_before(&event.session, &event.name, seq, most).unwrap_or(most)
    }
}
