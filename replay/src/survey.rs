//! What a replay would run, found out without running anything.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use hookbus::decide::{Starts, Surroundings, WouldRun, plan};
use hookbus::event::Agent;
use hookbus::log::{Found, ReadError};

use crate::drive::in_order;
use crate::judge::heard;
use crate::policy::{Policy, Recorded};
use crate::recorded::Then;
use crate::source::Source;

/// A command that would run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// The hook's name.
    pub hook: String,
    /// What it is for.
    pub event: String,
    /// The command line, as written.
    pub command: String,
    /// What would run: its program and script where they would be found, and variables it is given.
    pub runs: WouldRun,
}

/// What was found out.
#[derive(Debug, Default)]
pub struct Survey {
    /// Every command that would run, and how often.
    pub commands: BTreeMap<Planned, u64>,
    /// Whether a plugin is asked about a selected event.
    pub plugins: bool,
    /// Where plugins that spoke then had been started.
    pub starts: Starts,
}

/// Looks at what would run with this environment; `each` hears of every part that is done.
pub fn survey<E: From<ReadError> + From<io::Error> + Send>(
    source: &dyn Source,
    (policy, recorded): (&Policy, Option<&Recorded>),
    env: &[(OsString, OsString)],
    workers: usize,
    mut each: impl FnMut(),
) -> Result<Survey, E> {
    let mut all = Survey::default();
    let look = |reading: &mut Box<dyn crate::source::Reading + '_>, index| {
        let mut part = Survey::default();
        let read = reading.part(index, &mut |found| {
            let (mut case, is_selected) = match found {
                Found::Case(case) => (case, true),
                Found::Other(case) => (case, false),
                Found::Damaged { .. } => return,
            };
            let Ok(agent) = case.agent.parse::<Agent>() else { return };
            let decision = case.decision.as_deref().map(Then::read).transpose();
            let Ok(then) = decision else { return };
            for said in then.iter().flat_map(|then| &then.verdicts).filter(|_| is_selected) {
                if let Some(heard) = said.heard {
                    part.starts.add(&said.hook, said.script.as_deref(), heard);
                }
            }
            let named = then.as_ref().and_then(|then| then.hooks.as_deref());
            let Ok(hooks) = policy.asked(&case, named, recorded) else { return };
            let raw = std::mem::take(&mut case.payload);
            let event = heard(&case, agent, raw);
            let context = case.context.as_deref().unwrap_or("{}");
            let mut plan = plan(&event, hooks);
            policy.leave_refused(&mut plan, &case, then.as_ref(), recorded);
            let then = Surroundings::from_recorded(context, env);
            // Of what was not selected only plugins hear.
            for hook in plan.outside().filter(|hook| is_selected || hook.is_plugin()) {
                part.plugins |= hook.is_plugin() && is_selected;
                let summary = hook.summary();
                let planned = Planned {
                    hook: summary.name,
                    event: summary.event,
                    command: summary.command.unwrap_or_default(),
                    runs: plan.would_run(hook, &then),
                };
                *part.commands.entry(planned).or_default() += 1;
            }
        });
        // What cannot be read is told by the replay itself.
        drop(read);
        part
    };
    in_order(
        source.parts(),
        workers,
        || source.open().map_err(E::from),
        look,
        |part| {
            for (planned, times) in part.commands {
                *all.commands.entry(planned).or_default() += times;
            }
            all.plugins |= part.plugins;
            all.starts.merge(part.starts);
            each();
            Ok(())
        },
    )?;
    Ok(all)
}
