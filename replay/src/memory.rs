//! What plugins remember: rebuilt by telling them what they heard then, in the order of the log. Says what is
//! not known about it.

use hookbus::decide::{plan, tell_plugins};
use hookbus::event::{Agent, Event, Heard};
use hookbus::log::Case;

use crate::judge::{Commands, Judge, heard, surroundings};
use crate::recorded::Then;

impl Judge<'_> {
    /// Lets plugins know of an event that is not decided on again, so that they remember it.
    pub fn let_hear(&self, mut case: Case) {
        let Ok(agent) = case.agent.parse::<Agent>() else { return };
        if !self.remembers {
            return;
        }
        self.pass(&case);
        let then = case.decision.take().and_then(|payload| Then::read(&payload).ok());
        let raw = std::mem::take(&mut case.payload);
        let event = heard(&case, agent, raw);
        self.tell(&event, &case, then.and_then(|then| then.hooks).as_deref());
    }

    /// Says that an event comes by, whoever hears it.
    pub(crate) fn pass(&self, case: &Case) {
        if let (true, Commands::Run { scratch, .. }) = (self.remembers, self.commands) {
            scratch.pass(case.home().0, case.id);
        }
    }

    pub(crate) fn tell(&self, event: &Event, case: &Case, named: Option<&str>) {
        let (Commands::Run { scratch, env, .. }, Some(runtime)) = (self.commands, &self.runtime)
        else {
            return;
        };
        let Ok(hooks) = self.policy.asked(case, named, self.recorded) else { return };
        let plan = plan(event, hooks);
        if plan.has_plugins() {
            let then = surroundings(case, env);
            runtime.block_on(tell_plugins(&plan, event, case.home(), &then, scratch));
        }
    }

    /// What is not known about what a plugin remembered then.
    pub(crate) fn gap(&self, [then, now]: [Option<Heard>; 2], same_hooks: bool) -> Option<String> {
        let Commands::Run { scratch, .. } = self.commands else { return None };
        let Some(then) = then else {
            return Some("how much it had heard then is not recorded".to_owned());
        };
        if !scratch.has_passed(then.since) {
            return Some("it had heard events then that are not here".to_owned());
        }
        let now = now.filter(|now| same_hooks && now.events != then.events)?;
        Some(format!(
            "it had heard {} then, and {} now: some came at the same time, or too late",
            events(then.events),
            events(now.events)
        ))
    }
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}
