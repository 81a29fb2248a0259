//! What a replay would run, found out without running anything.

use std::collections::BTreeMap;
use std::io;

use hookbus::decide::{Surroundings, plan};
use hookbus::dialect::{Arrival, decode};
use hookbus::event::Agent;
use hookbus::log::{Found, ReadError};

use crate::drive::in_order;
use crate::policy::Policy;
use crate::recorded::Then;
use crate::source::Source;

/// A command that would run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// The hook's name.
    pub hook: String,
    /// What it is for.
    pub event: String,
    /// The command line.
    pub command: String,
}

/// Every command that would run, and how often; `each` hears of every part that is done.
pub fn survey<E: From<ReadError> + From<io::Error> + Send>(
    source: &dyn Source,
    policy: &Policy,
    workers: usize,
    mut each: impl FnMut(),
) -> Result<BTreeMap<Planned, u64>, E> {
    let mut all = BTreeMap::new();
    let look = |reading: &mut Box<dyn crate::source::Reading + '_>, index| {
        let mut commands: BTreeMap<Planned, u64> = BTreeMap::new();
        let read = reading.part(index, &mut |found| {
            let Found::Case(case) = found else { return };
            let Ok(agent) = case.agent.parse::<Agent>() else { return };
            let home = case.home();
            let then = case.decision.and_then(|payload| Then::read(&payload).ok());
            let named = then.as_ref().and_then(|then| then.hooks.as_deref());
            let Ok(hooks) = policy.hooks_for(home, named) else { return };
            let event = decode(Arrival {
                id: case.id,
                at: case.at,
                agent,
                wire: Surroundings::recorded_wire(case.context.as_deref().unwrap_or("{}")),
                raw: case.payload,
                session_hint: None,
            });
            for hook in plan(&event, hooks).outside() {
                let summary = hook.summary();
                let planned = Planned {
                    hook: summary.name,
                    event: summary.event,
                    command: summary.command.unwrap_or_default(),
                };
                *commands.entry(planned).or_default() += 1;
            }
        });
        // What cannot be read is told by the replay itself.
        drop(read);
        commands
    };
    in_order(
        source.parts(),
        workers,
        || source.open().map_err(E::from),
        look,
        |commands| {
            for (planned, times) in commands {
                *all.entry(planned).or_default() += times;
            }
            each();
            Ok(())
        },
    )?;
    Ok(all)
}
