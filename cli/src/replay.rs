//! `hookbus replay`: recorded events through hooks again, and what would be different.

mod confirm;
mod explain;
mod options;
mod redrive;
mod report;
mod scene;

use std::time::Instant;

use anyhow::{Context, Result};
use hookbus_replay::{Class, Drive, ExpectationsWriter, JUnit, Part, SessionWatch, Tally, drive};

pub(crate) use options::Arguments;

use crate::cli::Ending;
use crate::output::Progress;
use crate::settings::{Format, Settings};
use confirm::Consent;
use options::FailOn;
use report::Report;
use scene::Scene;

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Ending> {
    if arguments.to_observers {
        return redrive::run(arguments, format, settings);
    }
    let scene = Scene::set(arguments, settings)?;
    let scratch = match confirm::ask(&scene, arguments, format, settings)? {
        Consent::Told => return Ok(Ending::Yes),
        Consent::Run(scratch) => Some(scratch),
        Consent::NothingToRun => None,
    };
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
    let report = Report::start(arguments, &scene, format, settings)?;
    let tally = work(&drive, &scene, arguments, report, started)?;
    Ok(ending(arguments, &scene, &tally))
}

/// How many workers are worth it where nothing runs outside.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Drives everything and tells of it as it goes.
fn work(
    what: &Drive<'_>,
    scene: &Scene,
    arguments: &Arguments,
    mut report: Report<'_>,
    started: Instant,
) -> Result<Tally> {
    let mut junit = arguments.junit.as_deref().map(JUnit::start).transpose();
    let junit = junit.as_mut().map_err(|error| anyhow::anyhow!("cannot write JUnit: {error}"))?;
    let mut expectations = scene.expectations_to_write(arguments)?;
    let rows = what.source.rows_per_part();
    let mut progress = Progress::of(what.source.parts() * rows, "rows");
    let (mut tally, mut sessions, mut done) = (Tally::default(), SessionWatch::default(), 0);
    tally.add_remarks(what.source.remarks());
    tally.add_remarks(what.policy.remarks());
    drive(what, |part: Part| -> Result<()> {
        part.marks.into_iter().for_each(|mark| sessions.pass(mark));
        for judged in &part.judged {
            report.event(judged)?;
            if let Some(junit) = junit.as_mut() {
                junit.case(judged).context("cannot write the JUnit report")?;
            }
            if let Some(writer) = expectations.as_mut() {
                writer.write(judged).context("cannot write the expectations")?;
            }
        }
        tally.merge(part.tally);
        done += rows;
        progress.at(done);
        Ok(())
    })?;
    drop(progress);
    tally.add_remarks(sessions.remarks());
    if let Some(junit) = junit.take() {
        junit.finish().context("cannot write the JUnit report")?;
    }
    let written = expectations.as_ref().map(|writer| writer.events);
    expectations
        .map_or(Ok(()), ExpectationsWriter::finish)
        .context("cannot write the expectations")?;
    report.end(&tally, written, started.elapsed())?;
    Ok(tally)
}

fn ending(arguments: &Arguments, scene: &Scene, tally: &Tally) -> Ending {
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
    if happened || scene.damaged { Ending::No } else { Ending::Yes }
}
