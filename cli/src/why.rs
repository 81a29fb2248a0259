//! `hookbus why`: explains one decision from the log: each hook, what its conditions saw, what the agent was answered, and
//! what the agent did next. Nothing runs again but the conditions of rules.

mod aftermath;
mod found;
mod report;

use anyhow::{Result, bail};
use clap::Args;
use hookbus::active::HookSets;
use hookbus::decide::explain_hooks;
use hookbus::dialect::recorded_choice;
use hookbus::event::{Event, RecordedDecision};
use hookbus::rule::{Facts, Place, ShellLines};
use hookbus_replay::{HooksError, RecordedHooks, decode_recorded};

use self::aftermath::Aftermath;
use self::found::FoundDecision;
use self::report::Report;
use crate::args::open_log;
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};

const EXAMPLES: &str = "\
Examples:
  hookbus why last         The last decision that held an agent back
  hookbus why 17           The decision about row 17 of the log
  hookbus why 20261116_09  The last decision of this session
  hookbus why 17 --all     Also the rules of packs that did not match";

/// The arguments of `hookbus why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Number of an event or of its decision in the log, a session (id, a unique prefix or its short form), or `last`
    ///
    /// `last` is the last decision that blocked, asked or stopped; if there is none, the last decision.
    #[arg(value_name = "SEQ|SESSION")]
    what: String,
    /// List every hook, also those for other events and the rules of packs
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let log = open_log(settings)?;
    let found = FoundDecision::find(&log, &arguments.what)?;
    if found.event.removed.is_some() {
        bail!(
            "the payload of row {} was removed on purpose, so that nothing can be explained; \
             `hookbus log --kind log.pruned` tells when",
            found.event.seq
        );
    }
    let decision = found.decision.as_ref().and_then(|row| {
        // A later version may write outcomes that this one does not know.
        RecordedDecision::from_json(row.payload_json()).ok()
    });
    let event = decode_recorded(&found.recorded());
    let sets = hooks_of(&RecordedHooks::read(&log)?, &found, decision.as_ref());
    let aftermath = Aftermath::read(&log, &found.event, decision.as_ref())?;
    let lines = ShellLines::default();
    let place = place_of(&found, event.as_ref(), sets.as_ref().ok());
    let choice = found.event.context.as_deref().and_then(recorded_choice);
    if let Some(choice) = &choice {
        let how = if choice == "without" { "without some fields" } else { "in outline only" };
        output::to_stderr(format!(
            "row {} was recorded {how} (`record:`), so that the conditions of rules cannot be explained",
            found.event.seq
        ));
    }
    let hooks = match (&event, &sets) {
        (Some(event), Ok(sets)) if choice.is_none() => {
            explain_hooks(sets, &Facts::new(event, &place, &lines))
        }
        _ => Vec::new(),
    };
    let report = Report {
        found: &found,
        decision: decision.as_ref(),
        hooks,
        hooks_error: sets.as_ref().err(),
        aftermath: aftermath.as_ref(),
    };
    match format {
        Format::Json => output::line(report.to_json().to_string())?,
        Format::Text => {
            let lines = report.lines(arguments.all, Paint(settings.colour));
            lines.into_iter().try_for_each(output::line)?;
        }
    }
    Ok(Exit::Success)
}

/// The hooks that were in force.
fn hooks_of(
    recorded: &RecordedHooks,
    found: &FoundDecision,
    decision: Option<&RecordedDecision>,
) -> Result<HookSets, HooksError> {
    let hash = decision.and_then(|decision| decision.hooks.as_deref());
    recorded.in_force(&found.recorded(), hash)
}

/// Where the event happened.
fn place_of(found: &FoundDecision, event: Option<&Event>, sets: Option<&HookSets>) -> Place {
    let (Some(event), Some(sets)) = (event, sets) else { return Place::default() };
    let context = found.event.context.as_deref().unwrap_or("{}");
    Place::of_recorded(event, context, &sets.own.file.base)
}
