//! Replays all events of a source: chunks in parallel, results in log order.

use std::{fmt, io};

use hookbus::dialect::dialect_of;
use hookbus::event::{Agent, Kind};
use hookbus::log::{ReadError, RecordedEvent, ScannedRow};

use crate::command_runner::Commands;
use crate::compare::Category;
use crate::ordered::run_ordered;
use crate::redecide::{Detail, Redecider};
use crate::replay_hooks::ReplayHooks;
use crate::replayed_event::ReplayedEvent;
use crate::sessions::SessionMark;
use crate::source::{EventReader, EventSource};
use crate::tally::Tally;

/// Which events to replay, with which hooks, and how.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// Where the events come from.
    pub source: &'a dyn EventSource,
    /// Which hooks run.
    pub hooks: &'a ReplayHooks,
    /// Whether commands run.
    pub commands: Commands<'a>,
    /// Number of worker threads. Only one is used if plugins run, because they may keep state.
    pub workers: usize,
    /// Which events are handed on.
    pub detail: Detail,
}

impl fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// The results of one chunk.
#[derive(Debug, Default)]
pub struct ChunkResult {
    /// Totals of the chunk.
    pub tally: Tally,
    /// The differences in log order, or every event, as [`Drive::detail`] says.
    pub events: Vec<ReplayedEvent>,
    /// One for each event, for [`crate::SessionChecks`].
    pub marks: Vec<SessionMark>,
}

/// Replays everything; `each` gets the chunks in log order.
pub fn drive<E: From<ReadError> + From<io::Error> + Send>(
    drive: &Drive<'_>,
    each: impl FnMut(ChunkResult) -> Result<(), E>,
) -> Result<(), E> {
    let start = || {
        let reader = drive.source.open().map_err(E::from)?;
        let redecider = Redecider::new(drive.hooks, drive.commands, drive.detail)?;
        Ok((reader, redecider))
    };
    let runs_plugins = matches!(drive.commands, Commands::Run { .. }) && drive.hooks.has_plugins();
    run_ordered(
        drive.source.chunks(),
        if runs_plugins { 1 } else { drive.workers },
        start,
        |(reader, redecider), index| replay_chunk(drive, reader.as_ref(), redecider, index),
        each,
    )
}

fn replay_chunk(
    drive: &Drive<'_>,
    reader: &dyn EventReader,
    redecider: &Redecider<'_>,
    index: u64,
) -> ChunkResult {
    let mut chunk = ChunkResult::default();
    let read = reader.read_chunk(index, &mut |found| match found {
        ScannedRow::Selected(row) => chunk.replay(row, drive.detail, reader, redecider),
        ScannedRow::Unselected(row) => redecider.warm_up(row),
        ScannedRow::Damaged { seq, why } => {
            chunk.tally.remark(format!("row {seq} is damaged ({why}): skipped"));
        }
    });
    if let Err(error) = read {
        let first = index * drive.source.rows_per_chunk();
        chunk.tally.remark(format!("rows from about {first} on: {error}; skipped"));
    }
    chunk
}

impl ChunkResult {
    fn replay(
        &mut self,
        row: RecordedEvent,
        detail: Detail,
        reader: &dyn EventReader,
        redecider: &Redecider<'_>,
    ) {
        if Kind::parse(&row.kind).is_none() {
            let what = format!(
                "row {} has kind `{}`, which this version of hookbus does not know",
                row.seq, row.kind
            );
            // A row of ours has no payload of an agent that could be decoded.
            if row.agent == "hookbus" {
                return self.tally.remark(format!("{what}: skipped"));
            }
            self.tally.remark(format!("{what}: its kind is decoded again"));
        }
        self.marks.push(SessionMark::new(&row));
        self.tally.in_project += u64::from(redecider.replaces_project_of(&row));
        if row.agent.parse().is_ok_and(|agent: Agent| !dialect_of(agent).is_answered()) {
            self.tally.add_only_recorded(&row.agent);
        }
        let Some(event) = redecider.redecide(row, reader) else {
            return self.tally.add_without_verdicts();
        };
        self.tally.add(&event);
        let differs = event.comparison.category != Category::Unchanged;
        if differs || event.nondeterministic.is_some() || detail > Detail::Differences {
            self.events.push(*event);
        }
    }
}
