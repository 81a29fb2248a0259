//! `hookbus replay`: runs recorded events through hooks again and reports what would be decided differently.

mod cleanup;
mod confirm;
mod explain;
mod input;
mod options;
mod redeliver;
mod report;
mod setup;
mod step;

use std::time::Instant;

use anyhow::{Context, Result};
use hookbus_replay::{
    Category, ChunkResult, Commands, Drive, ExpectationsWriter, JUnitReport, ReplayedEvent,
    SessionChecks, Tally, drive,
};

pub(crate) use options::Arguments;

use crate::cli::Exit;
use crate::output::{Progress, count};
use crate::settings::{Format, Settings};
use confirm::Confirmation;
use options::FailOn;
use report::Report;
use setup::ReplaySetup;

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    cleanup::install()?;
    if arguments.to_observers {
        return redeliver::run(arguments, format, settings);
    }
    if arguments.step {
        step::check(arguments, format, settings)?;
    }
    let mut setup = ReplaySetup::new(arguments, settings)?;
    let sandbox = match confirm::confirm(&mut setup, arguments, format, settings)? {
        Confirmation::DryRun => return Ok(Exit::Success),
        Confirmation::Run(sandbox) => Some(sandbox),
        Confirmation::NothingToRun => None,
    };
    if sandbox.is_some() {
        setup.source.use_small_chunks();
    }
    let drive = Drive {
        source: setup.source.as_ref(),
        hooks: &setup.hooks,
        commands: sandbox.as_ref().map_or(Commands::Skip, |sandbox| sandbox.commands()),
        workers: if sandbox.is_some() { arguments.jobs } else { cores() },
        detail: arguments.detail(),
    };
    if arguments.explain.is_some() {
        return explain::run(&drive, format, settings);
    }
    if arguments.step {
        return step::run(&drive, &setup, arguments, format, settings);
    }
    let started = Instant::now();
    // Opened first, so that nothing of the report is printed if a file cannot be written.
    let outputs = Outputs::open(arguments, &setup)?;
    let report = Report::start(arguments, &setup, format, settings)?;
    let tally = replay(&drive, outputs, report, started)?;
    Ok(ending(arguments, &setup, &tally))
}

/// The files that a replay writes.
struct Outputs {
    junit: Option<JUnitReport>,
    expectations: Option<ExpectationsWriter>,
}

impl Outputs {
    fn open(arguments: &Arguments, setup: &ReplaySetup) -> Result<Self> {
        let junit = arguments.junit.as_deref().map(|path| {
            JUnitReport::create(path, "hookbus replay")
                .with_context(|| format!("cannot write {}", path.display()))
        });
        Ok(Self { junit: junit.transpose()?, expectations: setup.expectations_writer(arguments)? })
    }

    fn add(&mut self, event: &ReplayedEvent) -> Result<()> {
        if let Some(junit) = &mut self.junit {
            junit.add(event).context("cannot write the JUnit report")?;
        }
        if let Some(writer) = &mut self.expectations {
            writer.write(event).context("cannot write the expectations")?;
        }
        Ok(())
    }

    /// Completes the files; returns the number of expectations written.
    fn finish(self, tally: &mut Tally) -> Result<Option<usize>> {
        if let Some(junit) = self.junit {
            junit.finish().context("cannot write the JUnit report")?;
        }
        let Some(writer) = self.expectations else { return Ok(None) };
        let (written, left_out) = (writer.events, writer.left_out);
        if left_out > 0 {
            let events = count(left_out, "event");
            let remark = format!("{events} left out of the expectations: not comparable");
            tally.add_remarks([remark]);
        }
        // Never replaces expectations by an empty file: a check of nothing would always pass.
        if written > 0 {
            writer.finish().context("cannot write the expectations")?;
        }
        Ok(Some(written))
    }
}

/// Number of worker threads if no commands run.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Replays all events and reports them in log order.
fn replay(
    what: &Drive<'_>,
    mut outputs: Outputs,
    mut report: Report<'_>,
    started: Instant,
) -> Result<Tally> {
    let rows = what.source.rows_per_chunk();
    let mut progress = Progress::new(what.source.chunks() * rows, "rows");
    let (mut tally, mut sessions, mut done) = (Tally::default(), SessionChecks::default(), 0);
    tally.add_remarks(what.source.remarks());
    tally.add_remarks(what.hooks.remarks());
    drive(what, |chunk: ChunkResult| -> Result<()> {
        chunk.marks.into_iter().for_each(|mark| sessions.add(mark));
        for event in &chunk.events {
            report.event(event)?;
            outputs.add(event)?;
        }
        tally.merge(chunk.tally);
        done += rows;
        progress.update(done);
        Ok(())
    })?;
    drop(progress);
    tally.add_remarks(tally.only_recorded_remarks());
    tally.add_remarks(sessions.remarks());
    tally.add_remarks(what.hooks.unused_project_remark(tally.in_project));
    let written = outputs.finish(&mut tally)?;
    report.end(&tally, written, started.elapsed())?;
    Ok(tally)
}

fn ending(arguments: &Arguments, setup: &ReplaySetup, tally: &Tally) -> Exit {
    let is_different = tally.answered_differently() > 0;
    let any = is_different || tally.count(Category::Failed) > 0 || tally.nondeterministic > 0;
    let is_check = arguments.check && !arguments.update;
    let has_failed = match arguments.fail_on {
        Some(FailOn::Blocked) => tally.blocked() > 0,
        Some(FailOn::Allowed) => tally.allowed() > 0,
        Some(FailOn::Changed) => is_different,
        Some(FailOn::Any) => any,
        None => is_check && any,
    };
    // A check that compared nothing must not pass.
    let is_incomplete = is_check && (tally.events == 0 || tally.count(Category::NotComparable) > 0);
    let wrote_nothing = arguments.update && tally.events == 0;
    if has_failed || is_incomplete || wrote_nothing || setup.has_damaged_lines {
        Exit::Failure
    } else {
        Exit::Success
    }
}
