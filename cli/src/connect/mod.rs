//! `hookbus connect` and `hookbus disconnect`: wires an agent to the bus and takes that back. The change
//! is shown first; nothing is written without a yes.

mod bridge;
mod bridge_plan;
mod bridged;
mod consent;
mod edited;
mod files;
mod health;
mod hermes;
mod hooks_move;
mod lines;
mod lost;
mod meaning;
mod settle;
mod shell_wire;
mod twice;
mod undo;
mod way_back;
mod yaml_edit;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use hookbus::event::{Clock, SystemClock};
use serde_json::{Value, json};

pub(crate) use self::bridged::is_bridged;
pub(crate) use self::health::{Health, health};
pub(crate) use self::twice::{Twice, run_twice};

use self::edited::Kept;
use self::files::Record;
use self::hermes::{Plan, TheirHooks, Wanted};
use self::lost::Trace;
use self::settle::{Settled, settle};
use self::way_back::WayBack;
use crate::asking::{Stands, at_a_terminal, yes};
use crate::cli::Ending;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};

/// The agents that can be wired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Hermes Agent, through a plugin of ours.
    Hermes,
}

/// `hookbus connect`.
#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Which agent.
    agent: Agent,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// The hooks that Hermes' config.yaml has already: keep them there, or move them to hookbus.yaml.
    #[arg(long, value_name = "WHAT")]
    hooks: Option<TheirHooks>,
    /// Where Hermes lives, if not in `HERMES_HOME` or ~/.hermes.
    #[arg(long, value_name = "DIR")]
    hermes_home: Option<PathBuf>,
    /// Seconds that one event may take (55 unless said).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<f64>,
    /// The same where all chats of a gateway would wait (2 unless said).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    gateway_deadline: Option<f64>,
    /// What the bridge does when no daemon answers: run `hookbus hook`, which starts one (unless said), or allow, for
    /// whoever keeps `hookbus serve` running.
    #[arg(long, value_name = "WHAT", value_parser = ["hook", "allow"])]
    without_daemon: Option<String>,
}

/// `hookbus disconnect`.
#[derive(Debug, Args)]
pub(crate) struct Disconnect {
    /// Which agent.
    agent: Agent,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Where Hermes lives, if not in `HERMES_HOME` or ~/.hermes.
    #[arg(long, value_name = "DIR")]
    hermes_home: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600".to_owned())
}

/// Wires an agent.
pub(crate) fn connect(arguments: Connect, format: Format, settings: &Settings) -> Result<Ending> {
    let Agent::Hermes = arguments.agent;
    let hermes = hermes::home(arguments.hermes_home, settings)?;
    let hookbus = files::real(&settings.home);
    let file = Record::file(&hookbus, "hermes", &hermes);
    let mut wanted = Wanted {
        program: std::env::current_exe()?,
        hooks: arguments.hooks,
        bridge: bridge::Said {
            deadline: arguments.deadline,
            gateway_deadline: arguments.gateway_deadline,
            without_daemon: arguments.without_daemon,
        },
        hermes,
        hookbus,
        at: SystemClock.now(),
    };
    let asking = !arguments.yes && format == Format::Text && at_a_terminal(Stands::InTheResult);
    if wanted.hooks.is_none() && asking {
        wanted.hooks = ask_about_hooks(&wanted, &Record::load(&file)?)?;
    }
    let think = || hermes::plan(&wanted, &Record::load(&file)?);
    let agree = |plan: &Plan| {
        if format == Format::Text {
            show(plan, &wanted.hermes, Paint(settings.colour))?;
        }
        let go = arguments.yes || plan.to_write.is_empty();
        Ok(go || asking && yes(Stands::InTheResult, "make these changes?")?)
    };
    let (plan, _lock) = match settle(&wanted.hookbus, think, agree)? {
        Settled::Agreed(plan, lock) => (plan, lock),
        Settled::Refused(plan) => return refused(format, &plan),
    };
    let done = report("connected", true, &changed(&plan), &plan.remarks);
    let is_news = !plan.to_write.is_empty();
    carry_out(&file, plan)?;
    match format {
        Format::Json => output::line(done.to_string())?,
        Format::Text if !is_news => {
            output::line("hermes is connected already; nothing has changed")?;
        }
        Format::Text => {
            output::line(
                "connected; restart Hermes where it runs. `hookbus disconnect hermes` takes it back",
            )?;
        }
    }
    Ok(Ending::Yes)
}

/// Takes back what [`connect`] did.
pub(crate) fn disconnect(
    arguments: &Disconnect,
    format: Format,
    settings: &Settings,
) -> Result<Ending> {
    let Agent::Hermes = arguments.agent;
    // One that is gone can still be forgotten.
    let hermes = hermes::place(arguments.hermes_home.clone(), settings)?;
    let hookbus = files::real(&settings.home);
    let file = Record::file(&hookbus, "hermes", &hermes);
    let think = || way_back(Record::load(&file)?, &hermes, &hookbus);
    if think()?.is_empty() {
        hermes::home(arguments.hermes_home.clone(), settings)?;
        let nothing = report("connected", false, &[], &[]);
        output::line(match format {
            Format::Json => nothing.to_string(),
            Format::Text => "hermes is not connected; nothing has changed".to_owned(),
        })?;
        return Ok(Ending::Yes);
    }
    let asking = format == Format::Text && at_a_terminal(Stands::InTheResult);
    let agree = |back: &WayBack| {
        if format == Format::Text {
            back.show(Paint(settings.colour))?;
        }
        Ok(arguments.yes || asking && yes(Stands::InTheResult, "take this back?")?)
    };
    let Settled::Agreed(back, lock) = settle(&hookbus, think, agree)? else {
        bail!("nothing has changed; say --yes to do it");
    };
    back.go(&file)?;
    drop(lock);
    // A home with nothing in it is none; whoever connects next makes it.
    files::remove_folders(&[hookbus]);
    let paths: Vec<Value> =
        back.returns.iter().map(|(path, ..)| json!(path.to_string_lossy())).collect();
    match format {
        Format::Json => {
            output::line(report("connected", false, &paths, &back.remarks).to_string())?;
        }
        Format::Text => output::line("disconnected; restart Hermes where it runs")?,
    }
    Ok(Ending::Yes)
}

/// By the record; where there is none, by what is plainly ours.
fn way_back(known: Record, hermes: &Path, hookbus: &Path) -> Result<WayBack> {
    if !known.changes.is_empty() {
        return WayBack::find(known, hermes, hookbus);
    }
    match lost::trace(hermes, hookbus)? {
        Trace::None => Ok(WayBack::default()),
        Trace::Left(left) => left.way_back(hermes),
        Trace::Of(home) => {
            let home = home.to_string_lossy();
            let quoted = shlex::try_quote(&home).unwrap_or_else(|_| home.clone());
            bail!(
                "hermes was not connected from {}; set HOOKBUS_HOME={quoted}, where it was, and run this again",
                hookbus.display()
            )
        }
    }
}

/// The record first: whatever happens then can be taken back.
fn carry_out(file: &Path, plan: Plan) -> Result<()> {
    let Plan { mut record, to_write, kept, .. } = plan;
    let ours = file.ancestors().nth(2);
    for (change, _) in &to_write {
        let private = ours.is_some_and(|home| change.path.starts_with(home));
        let mode = if private { files::PRIVATE } else { 0o777 };
        record.made.extend(files::make_folders(&change.path, mode)?);
    }
    record.save(file)?;
    kept.iter().try_for_each(|Kept { to, text }| files::write(to, text))?;
    to_write.iter().try_for_each(|(change, _)| files::write(&change.path, &change.after))
}

/// What becomes of the hooks that Hermes has, if there is anything to ask about.
fn ask_about_hooks(wanted: &Wanted, known: &Record) -> Result<Option<TheirHooks>> {
    if known.of(&wanted.hookbus.join("hookbus.yaml")).is_some() {
        return Ok(None);
    }
    let files = |hooks: TheirHooks| {
        let plan = hermes::plan(&Wanted { hooks: Some(hooks), ..wanted.clone() }, known)?;
        anyhow::Ok(plan.record.changes.len())
    };
    if files(TheirHooks::Move)? == files(TheirHooks::Keep)? {
        return Ok(None);
    }
    let moved = yes(
        Stands::InTheResult,
        "Hermes has hooks of its own; move them to hookbus.yaml, where the log sees them?",
    )?;
    Ok(Some(if moved { TheirHooks::Move } else { TheirHooks::Keep }))
}

fn show(plan: &Plan, home: &Path, paint: Paint) -> Result<()> {
    output::line(format!("Hermes in {}", home.display()))?;
    for (change, now) in &plan.to_write {
        show_one(&change.path, now.as_deref(), Some(&change.after), paint)?;
    }
    for kept in &plan.kept {
        show_one(&kept.to, None, Some(&kept.text), paint)?;
    }
    for remark in &plan.remarks {
        output::line(output::harmless_lines(remark))?;
    }
    Ok(())
}

fn show_one(path: &Path, now: Option<&str>, then: Option<&str>, paint: Paint) -> Result<()> {
    let name = path.display().to_string();
    match (now, then) {
        (None, _) => output::line(format!("  new      {name}"))?,
        (Some(_), None) => output::line(format!("  removed  {name}"))?,
        (Some(now), Some(then)) => {
            output::line(format!("  changed  {name}"))?;
            for line in undo::shown(now, then) {
                let line = output::harmless(&line);
                let painted =
                    if line.starts_with('+') { paint.good(&line) } else { paint.bad(&line) };
                output::line(format!("           {painted}"))?;
            }
        }
    }
    Ok(())
}

fn refused(format: Format, plan: &Plan) -> Result<Ending> {
    if format == Format::Json {
        output::line(report("connected", false, &changed(plan), &plan.remarks).to_string())?;
    }
    bail!("nothing has changed; say --yes to do it")
}

fn changed(plan: &Plan) -> Vec<Value> {
    plan.to_write.iter().map(|(change, _)| json!(change.path.to_string_lossy())).collect()
}

fn report(word: &str, done: bool, files: &[Value], remarks: &[String]) -> Value {
    json!({"agent": "hermes", word: done, "files": files, "remarks": remarks})
}
