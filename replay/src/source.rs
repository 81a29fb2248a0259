//! Where cases come from: in parts that can be read side by side and put in order again.

use std::ops::RangeInclusive;

use hookbus::decide::Starts;
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

    /// Hands on what plugins need to remember as well, as [`Found::Other`]: every event from the first of
    /// the selected sessions on, or from where a process that spoke was started then.
    fn with_what_plugins_heard(&mut self, _starts: &Starts) -> Result<(), ReadError> {
        Ok(())
    }

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
    heard: Option<HeardToo>,
}

/// Events that are not selected, for plugins.
#[derive(Debug)]
struct HeardToo {
    /// The first of them.
    from: i64,
    far: FarDecisions,
}

impl LogSource {
    /// What `selection` finds in `log`, `rows_per_part` rows of the log at a time.
    pub fn open(log: LogPath, selection: Selection, rows_per_part: u32) -> Result<Self, ReadError> {
        let reader = LogReader::open(&log)?;
        let range = reader.extent(&selection)?;
        let far = reader.far_decisions(&selection, &range)?;
        let rows_per_part = i64::from(rows_per_part.max(1));
        Ok(Self { log, selection, range, far, rows_per_part, heard: None })
    }

    /// The first row that is read.
    fn first(&self) -> i64 {
        self.heard.as_ref().map_or(*self.range.start(), |heard| heard.from)
    }
}

impl Source for LogSource {
    fn parts(&self) -> u64 {
        let rows = (self.range.end() - self.first() + 1).max(0);
        (rows + self.rows_per_part - 1).div_euclid(self.rows_per_part).unsigned_abs()
    }

    fn rows_per_part(&self) -> u64 {
        self.rows_per_part.unsigned_abs()
    }

    fn take_few_at_a_time(&mut self) {
        self.rows_per_part = self.rows_per_part.min(FEW);
    }

    fn with_what_plugins_heard(&mut self, starts: &Starts) -> Result<(), ReadError> {
        let reader = LogReader::open(&self.log)?;
        let mut from = *self.range.start();
        if let Some(session) = reader.first_of_sessions(&self.selection, &self.range)? {
            from = from.min(session.as_i64());
        }
        for event in starts.events() {
            let place = reader.seq_of(event)?.map_or(from, Seq::as_i64);
            from = from.min(place);
        }
        let far = reader.far_decisions(&Selection::default(), &(from..=*self.range.end()))?;
        self.heard = Some(HeardToo { from, far });
        Ok(())
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
        let LogSource { selection, range, far, rows_per_part, heard, .. } = self.source;
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let first = self.source.first().saturating_add(index.saturating_mul(*rows_per_part));
        let last = first.saturating_add(rows_per_part - 1).min(*range.end());
        match heard {
            None => self.reader.cases(selection, first..=last, far, each),
            Some(heard) => {
                let (from, part) = (*range.start(), first..=last);
                self.reader.cases_among_others(selection, from, part, &heard.far, each);
            }
        }
        Ok(())
    }

    fn sent_on_before(&self, event: &Event, seq: Seq, most: u32) -> u32 {
        // An agent that is let go too early can be asked again: the same as live.
        self.reader.sent_on_before(&event.session, &event.name, seq, most).unwrap_or(most)
    }
}
