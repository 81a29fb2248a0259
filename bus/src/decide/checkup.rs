//! Trying plugins on events that never happened, for whoever wants to know whether they work: those of one entry,
//! and those that only look on at an event.

use std::path::PathBuf;
use std::time::Duration;

use super::Hooks;
use super::consent::Agreeable;
use super::hook::{Action, Hook, Mode, Python};
use super::host::{self, Asks, Checkup, CheckupManner, Exam, Launch};
use super::idle::NoneLoaded;
use super::launch;
use super::plan::Plan;
use super::run::{Spoken, record};
use super::surroundings::Surroundings;
use crate::dialect::{Takes, takes};
use crate::event::{Event, Verdict, VerdictRecord};

impl Hooks {
    /// Where what its plugins print is kept.
    pub fn plugins_log(&self) -> PathBuf {
        host::log_of(self.meant())
    }

    /// Looks at the plugins of `entry`, which somebody agreed to: each is loaded, and asked about what it would
    /// hear and can answer.
    pub async fn check_plugins(
        &self,
        entry: &Agreeable,
        exam: &Exam<'_>,
        place: &Surroundings,
    ) -> Vec<Checkup> {
        let alone = self.alone(entry);
        let Some((hook, python)) = alone.hooks.first().and_then(python_of) else {
            return Vec::new();
        };
        let is_for = |event: &Event| {
            hook.on.covers(event) && hook.agent.is_none_or(|agent| agent == event.agent)
        };
        let events = |listens: &[String]| {
            (exam.events)(listens).into_iter().filter(is_for).collect::<Vec<Event>>()
        };
        let exam = Exam { start: exam.start, events: &events };
        let asks = match hook.mode {
            Mode::Decide => Asks::WhoCanAnswer,
            Mode::Observe => Asks::Nobody,
        };
        check(self, python, &exam, place, asks).await
    }
}

/// What the plugins of a plan make of an event at which nothing can be said. They have heard it then, and are not
/// asked again with the rest of the plan.
pub async fn look_on<'a>(
    plan: &mut Plan<'a>,
    event: &Event,
    place: &Surroundings,
) -> Vec<Spoken<'a>> {
    let mut spoken = Vec::new();
    if takes(event) != Takes::NOTHING {
        return spoken;
    }
    let exam = Exam { start: event, events: &|_: &[String]| vec![event.clone()] };
    for (hook, python) in plan.hooks().filter_map(python_of).collect::<Vec<_>>() {
        let whole = plan.whole(hook);
        let folder = launch::folder(&python.folder, place, &whole.base);
        let refused = whole.objection(hook, place, python.timeout).await.is_some();
        if refused || NoneLoaded::find(&folder, &whole.plugins).is_some() {
            continue;
        }
        let checkups = check(whole, python, &exam, place, Asks::Everybody).await;
        let alone = checkups.len() == 1;
        let records = checkups.into_iter().filter_map(|checkup| looked_on(hook, checkup, alone));
        spoken.extend(records.map(|record| Spoken::unasked(hook, record)));
        plan.leave_out(&[hook]);
    }
    spoken
}

/// None for one that has no ear for the event.
fn looked_on(hook: &Hook, checkup: Checkup, alone: bool) -> Option<VerdictRecord> {
    let Checkup { plugin, ailment, attempts, .. } = checkup;
    let attempt = attempts.into_iter().next();
    let took = attempt.as_ref().map_or(Duration::ZERO, |attempt| attempt.took);
    if ailment.is_none() && attempt.is_none() {
        return None;
    }
    let ailment = ailment.or_else(|| attempt.and_then(|attempt| attempt.ailment));
    let failure = ailment.map(|ailment| ailment.why().to_owned());
    let name = if alone { hook.name.clone() } else { format!("{} ({plugin})", hook.name) };
    let record = record(hook, Verdict::silent(), failure, took);
    // Whatever becomes of it, the agent hears nothing of it.
    Some(VerdictRecord { hook: name, verdict: Verdict::silent(), ..record })
}

async fn check(
    whole: &Hooks,
    python: &Python,
    exam: &Exam<'_>,
    place: &Surroundings,
    asks: Asks,
) -> Vec<Checkup> {
    let folder = launch::folder(&python.folder, place, &whole.base);
    let interpreter = launch::with_home(&python.launch.interpreter, place);
    let launch = Launch { interpreter, ..python.launch };
    let manner = CheckupManner { place, limit: python.timeout, asks };
    host::check(&folder, whole.meant(), &launch, exam, &manner).await
}

fn python_of(hook: &Hook) -> Option<(&Hook, &Python)> {
    let Action::Python(python) = &hook.action else { return None };
    Some((hook, python))
}
