//! `hookbus replay`: recorded events through hooks again, and what would be different.

mod confirm;
mod explain;
mod litter;
mod options;
mod redrive;
mod report;
mod scene;

use std::time::Instant;

use anyhow::{Context, Result};
use hookbus_replay::{
    Class, Drive, ExpectationsWriter, JUnit, Judged, Part, SessionWatch, Tally, drive,
};

pub(crate) use options::Arguments;

use crate::cli::Exit;
use crate::output::{Progress, count};
use crate::settings::{Format, Settings};
use confirm::Consent;
use options::FailOn;
use report::Report;
use scene::Scene;

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    litter::tidy()?;
    if arguments.to_observers {
        return redrive::run(arguments, format, settings);
    }
    let mut scene = Scene::set(arguments, settings)?;
    let scratch = match confirm::ask(&mut scene, arguments, format, settings)? {
        Consent::Told => return Ok(Exit::Success),
        Consent::Run(scratch) => Some(scratch),
        Consent::NothingToRun => None,
    };
    if scratch.is_some() {
        scene.source.take_few_at_a_time();
    }
    let commands = scratch.as_ref().map_or(hookbus_replay::Commands::LeftOut, |it| it.commands());
    let drive = Drive {
        source: scene.source.as_ref(),
        policy: &scene.policy,
        recorded: scene.recorded.as_deref(),
        commands,
        workers: if scratch.is_some() { arguments.jobs } else { cores() },
        detail: arguments.detail(),
    };
    if arguments.explain.is_some() {
        return explain::run(&drive, format, settings);
    }
    let started = Instant::now();
    // What cannot be written is told before a word of the report is.
    let outputs = Outputs::open(arguments, &scene)?;
    let report = Report::start(arguments, &scene, format, settings)?;
    let tally = work(&drive, outputs, report, started)?;
    Ok(ending(arguments, &scene, &tally))
}

/// The files that a replay writes.
struct Outputs {
    junit: Option<JUnit>,
    expectations: Option<ExpectationsWriter>,
}

impl Outputs {
    fn open(arguments: &Arguments, scene: &Scene) -> Result<Self> {
        let junit = arguments.junit.as_deref().map(|path| {
            JUnit::start(path).with_context(|| format!("cannot write {}", path.display()))
        });
        Ok(Self {
            junit: junit.transpose()?,
            expectations: scene.expectations_to_write(arguments)?,
        })
    }

    fn event(&mut self, judged: &Judged) -> Result<()> {
        if let Some(junit) = &mut self.junit {
            junit.case(judged).context("cannot write the JUnit report")?;
        }
        if let Some(writer) = &mut self.expectations {
            writer.write(judged).context("cannot write the expectations")?;
        }
        Ok(())
    }

    /// Puts the files in their places; gives back how many expectations there are.
    fn finish(self, tally: &mut Tally) -> Result<Option<usize>> {
        if let Some(junit) = self.junit {
            junit.finish().context("cannot write the JUnit report")?;
        }
        let Some(writer) = self.expectations else { return Ok(None) };
        let (written, left_out) = (writer.events, writer.left_out);
        if left_out > 0 {
            let which = count(left_out, "event");
            let text =
                format!("{which} left out of the expectations: nobody can say what the hooks say");
            tally.add_remarks([text]);
        }
        // Nothing in place of something would pass for ever.
        if written > 0 {
            writer.finish().context("cannot write the expectations")?;
        }
        Ok(Some(written))
    }
}

/// How many workers are worth it where nothing runs outside.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Drives everything and tells of it as it goes.
fn work(
    what: &Drive<'_>,
    mut outputs: Outputs,
    mut report: Report<'_>,
    started: Instant,
) -> Result<Tally> {
    let rows = what.source.rows_per_part();
    let mut progress = Progress::new(what.source.parts() * rows, "rows");
    let (mut tally, mut sessions, mut done) = (Tally::default(), SessionWatch::default(), 0);
    tally.add_remarks(what.source.remarks());
    tally.add_remarks(what.policy.remarks());
    drive(what, |part: Part| -> Result<()> {
        part.marks.into_iter().for_each(|mark| sessions.pass(mark));
        for judged in &part.judged {
            report.event(judged)?;
            outputs.event(judged)?;
        }
        tally.merge(part.tally);
        done += rows;
        progress.update(done);
        Ok(())
    })?;
    drop(progress);
    tally.add_remarks(tally.only_recorded());
    tally.add_remarks(sessions.remarks());
    // Expectations stand for themselves.
    let candidate = what.recorded.and(what.policy.remark_on(tally.in_project));
    tally.add_remarks(candidate);
    let written = outputs.finish(&mut tally)?;
    report.end(&tally, written, started.elapsed())?;
    Ok(tally)
}

fn ending(arguments: &Arguments, scene: &Scene, tally: &Tally) -> Exit {
    let different = tally.answered_differently() > 0;
    let any = different || tally.count(Class::Failed) > 0 || tally.unsteady > 0;
    let checked = arguments.check && !arguments.update;
    let happened = match arguments.fail_on {
        Some(FailOn::Blocked) => tally.blocked() > 0,
        Some(FailOn::Allowed) => tally.allowed() > 0,
        Some(FailOn::Changed) => different,
        Some(FailOn::Any) => any,
        None => checked && any,
    };
    // What could not be compared, or was not there, was not checked.
    let unchecked = checked && (tally.events == 0 || tally.count(Class::NotComparable) > 0);
    let nothing_written = arguments.update && tally.events == 0;
    let bad = happened || unchecked || nothing_written || scene.damaged;
    if bad { Exit::Failure } else { Exit::Success }
}
