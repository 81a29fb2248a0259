//! Where recorded events come from: in chunks, which several workers can read at the same time.

use std::ops::RangeInclusive;

use hookbus::decide::replay::PluginRestarts;
use hookbus::event::{Event, Seq};
use hookbus::log::{DetachedDecisions, LogPath, LogReader, ReadError, ScannedRow, Selection};

/// Rows in a chunk if commands run for each event.
const SMALL_CHUNK: i64 = 4;

/// Recorded events in log order, split into chunks.
pub trait EventSource: Sync {
    /// Number of chunks.
    fn chunks(&self) -> u64;

    /// Rows in a chunk, for the progress bar.
    fn rows_per_chunk(&self) -> u64;

    /// Makes chunks small, for when commands run: the progress bar moves more often, and more events can
    /// be replayed in parallel.
    fn use_small_chunks(&mut self) {}

    /// Adds the events that plugins need for their state, as [`ScannedRow::Unselected`]: from the start of the first
    /// selected session, or from the earliest event that a recorded plugin process was started for.
    fn include_warmup(&mut self, _restarts: &PluginRestarts) -> Result<(), ReadError> {
        Ok(())
    }

    /// Remarks for the report about the source as a whole.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Opens a reader; every worker has its own.
    fn open(&self) -> Result<Box<dyn EventReader + '_>, ReadError>;
}

/// Reads the events of a source, for one worker.
pub trait EventReader {
    /// Reads every event of a chunk, in log order.
    fn read_chunk(&self, index: u64, each: &mut dyn FnMut(ScannedRow)) -> Result<(), ReadError>;

    /// How often in a row hooks had made the agent continue before this event, at most `most`.
    fn continuations_before(&self, event: &Event, seq: Seq, most: u32) -> u32;
}

/// The selected events of a log.
#[derive(Debug)]
pub struct LogSource {
    log: LogPath,
    selection: Selection,
    range: RangeInclusive<i64>,
    far: DetachedDecisions,
    rows_per_chunk: i64,
    warmup: Option<Warmup>,
}

/// Events that are not selected, but needed for the state of plugins.
#[derive(Debug)]
struct Warmup {
    /// Position of the first of them.
    from: i64,
    far: DetachedDecisions,
}

impl LogSource {
    /// Selects events of `log`, to be read in chunks of `rows_per_chunk` rows.
    pub fn open(
        log: LogPath,
        selection: Selection,
        rows_per_chunk: u32,
    ) -> Result<Self, ReadError> {
        let reader = LogReader::open(&log)?;
        let range = reader.replay().selected_range(&selection)?;
        let far = reader.replay().detached_decisions(&selection, &range)?;
        let rows_per_chunk = i64::from(rows_per_chunk.max(1));
        Ok(Self { log, selection, range, far, rows_per_chunk, warmup: None })
    }

    /// Position of the first row to read.
    fn first_row(&self) -> i64 {
        self.warmup.as_ref().map_or(*self.range.start(), |warmup| warmup.from)
    }
}

impl EventSource for LogSource {
    fn chunks(&self) -> u64 {
        let rows = (self.range.end() - self.first_row() + 1).max(0);
        (rows + self.rows_per_chunk - 1).div_euclid(self.rows_per_chunk).unsigned_abs()
    }

    fn rows_per_chunk(&self) -> u64 {
        self.rows_per_chunk.unsigned_abs()
    }

    fn use_small_chunks(&mut self) {
        self.rows_per_chunk = self.rows_per_chunk.min(SMALL_CHUNK);
    }

    fn include_warmup(&mut self, restarts: &PluginRestarts) -> Result<(), ReadError> {
        let reader = LogReader::open(&self.log)?;
        let mut from = *self.range.start();
        if let Some(session) =
            reader.replay().first_seq_of_sessions(&self.selection, &self.range)?
        {
            from = from.min(session.as_i64());
        }
        for event in restarts.events() {
            let seq = reader.seq_of(event)?.map_or(from, Seq::as_i64);
            from = from.min(seq);
        }
        let far = reader
            .replay()
            .detached_decisions(&Selection::default(), &(from..=*self.range.end()))?;
        self.warmup = Some(Warmup { from, far });
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let orphans = &self.far.without_cause;
        let Some(first) = orphans.first() else { return Vec::new() };
        let others = match orphans.len() - 1 {
            0 => String::new(),
            others => format!(" ({others} more rows like it)"),
        };
        vec![format!(
            "row {first} is a decision about an event that is not in the log: skipped{others}"
        )]
    }

    fn open(&self) -> Result<Box<dyn EventReader + '_>, ReadError> {
        Ok(Box::new(LogEventReader { source: self, reader: LogReader::open(&self.log)? }))
    }
}

struct LogEventReader<'a> {
    source: &'a LogSource,
    reader: LogReader,
}

impl EventReader for LogEventReader<'_> {
    fn read_chunk(&self, index: u64, each: &mut dyn FnMut(ScannedRow)) -> Result<(), ReadError> {
        let LogSource { selection, range, far, rows_per_chunk, warmup, .. } = self.source;
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let offset = index.saturating_mul(*rows_per_chunk);
        let first = self.source.first_row().saturating_add(offset);
        let last = first.saturating_add(rows_per_chunk - 1).min(*range.end());
        match warmup {
            None => self.reader.replay().scan(selection, first..=last, far, each),
            Some(warmup) => {
                let (from, chunk) = (*range.start(), first..=last);
                self.reader.replay().scan_with_unselected(
                    selection,
                    from,
                    chunk,
                    &warmup.far,
                    each,
                );
            }
        }
        Ok(())
    }

    fn continuations_before(&self, event: &Event, seq: Seq, most: u32) -> u32 {
        // On an error the agent may stop, as on the live bus: it can be asked to continue again.
        self.reader
            .continuations_before(&event.session, &event.name, Some(seq), most)
            .unwrap_or(most)
    }
}
