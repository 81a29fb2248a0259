//! What plugins remember: rebuilt by telling them what they heard then, in the order of the log. Says what is
//! not known about it.

use hookbus::decide::{Hook, plan, tell_plugins};
use hookbus::event::{Agent, Event, Heard};
use hookbus::log::Case;

use crate::judge::{Commands, Judge, heard, surroundings};
use crate::recorded::Then;

/// What became of an event then.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decided<'a> {
    /// This, or nothing, because nobody had an opinion.
    As(Option<&'a Then>),
    /// Nobody knows any more.
    Unknown,
}

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
        self.tell(&event, &case, Decided::As(then.as_ref()));
    }

    /// Says that an event comes by, whoever hears it.
    pub(crate) fn pass(&self, case: &Case) {
        if let (true, Commands::Run { scratch, .. }) = (self.remembers, self.commands) {
            scratch.pass(case.home().0, case.id);
        }
    }

    pub(crate) fn tell(&self, event: &Event, case: &Case, decided: Decided<'_>) {
        let (Commands::Run { scratch, env, .. }, Some(runtime)) = (self.commands, &self.runtime)
        else {
            return;
        };
        let then = match decided {
            Decided::As(then) => then,
            Decided::Unknown => None,
        };
        let named = then.and_then(|then| then.hooks.as_deref());
        let Ok(hooks) = self.policy.asked(case, named, self.recorded) else { return };
        let mut plan = plan(event, hooks);
        drop(self.policy.leave_refused(&mut plan, case, then, self.recorded));
        if matches!(decided, Decided::Unknown) {
            // A stranger's may have been refused.
            let of_project: Vec<&Hook> = plan.hooks().filter(|hook| hook.is_of_project()).collect();
            plan.leave_out(&of_project);
        }
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
