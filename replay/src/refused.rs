//! Hooks that were refused for want of consent. Asked as they were recorded they are not asked at all: what nobody
//! had agreed to then must not run now, and what was recorded in their place stands.

use std::time::Duration;

use hookbus::decide::{Hook, OnFailure, Plan, Spoken};
use hookbus::event::{Outcome, Verdict, VerdictRecord};
use hookbus::log::Case;

use crate::policy::{Policy, Recorded};
use crate::recorded::{Then, ThenVerdict};

/// What stands of a decision, whatever the hooks say that are asked.
#[derive(Debug, Default)]
pub(crate) struct Standing<'a> {
    /// A person's own, which come first: each with how many were before it.
    own: Vec<(usize, Spoken<'a>)>,
    /// A project's, which come last: each with how many were after it. Before them there may be others now.
    of_project: Vec<(usize, Spoken<'a>)>,
}

impl Policy {
    /// Takes the hooks out of `plan` that were refused then and are asked as they were recorded.
    pub(crate) fn leave_refused<'a>(
        &self,
        plan: &mut Plan<'a>,
        case: &Case,
        then: Option<&Then>,
        recorded: Option<&Recorded>,
    ) -> Standing<'a> {
        let Some(then) = then.filter(|then| then.verdicts.iter().any(|said| said.refused)) else {
            return Standing::default();
        };
        let as_recorded =
            [false, true].map(|of_project| self.is_as_recorded(of_project, case, recorded));
        let is_as_recorded = |of_project: bool| as_recorded[usize::from(of_project)];
        let was_refused =
            |hook: &&Hook| is_as_recorded(hook.is_of_project()) && was_refused(hook, plan, then);
        let unasked: Vec<&Hook> = plan.hooks().filter(was_refused).collect();
        plan.leave_out(&unasked);
        let mut standing = Standing::default();
        let last = then.verdicts.len() - 1;
        for (at, said) in then.verdicts.iter().enumerate().filter(|(_, said)| said.refused) {
            let of_project = said.of_project;
            let hook = unasked.iter().find(|hook| hook.is_of_project() == of_project);
            let spoken = hook.map(|hook| Spoken::unasked(hook, said.as_it_was()));
            match spoken.filter(|_| is_as_recorded(of_project)) {
                Some(spoken) if of_project => standing.of_project.push((last - at, spoken)),
                Some(spoken) => standing.own.push((at, spoken)),
                None => {}
            }
        }
        standing
    }
}

impl<'a> Standing<'a> {
    /// What is said now, with what stands in its old place.
    pub(crate) fn among(&self, mut said: Vec<Spoken<'a>>) -> Vec<Spoken<'a>> {
        for (before, spoken) in &self.own {
            said.insert((*before).min(said.len()), spoken.clone());
        }
        for (after, spoken) in self.of_project.iter().rev() {
            said.insert(said.len().saturating_sub(*after), spoken.clone());
        }
        said
    }
}

/// Whether nobody had agreed to `hook` then. Where several share a name and it cannot be told which of them was
/// meant, none of them is asked.
fn was_refused(hook: &Hook, plan: &Plan<'_>, then: &Then) -> bool {
    let of_project = hook.is_of_project();
    let same = plan.hooks().filter(|other| other.is_of_project() == of_project);
    let same =
        same.filter(|other| other.name() == hook.name() && (of_project || other.runs_outside()));
    let same: Vec<&Hook> = same.collect();
    let side = || then.verdicts.iter().filter(|said| said.of_project == of_project);
    let said: Vec<&ThenVerdict> = side().filter(|said| said.is_by(hook.name())).collect();
    if of_project {
        // One verdict may stand for all that nobody had agreed to: only who spoke had been agreed to.
        let spoke = said.iter().filter(|said| !said.refused).count();
        return side().any(|said| said.refused) && spoke < same.len();
    }
    let place = same.iter().position(|other| std::ptr::eq(*other, hook));
    match place.filter(|_| said.len() == same.len()).and_then(|place| said.get(place)) {
        Some(said) => said.refused,
        None => hook.runs_outside() && said.iter().any(|said| said.refused),
    }
}

impl ThenVerdict {
    /// Whether a hook of this name said it, or a plugin in its directory.
    fn is_by(&self, name: &str) -> bool {
        let rest = self.hook.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    }

    /// The record of a refusal, which says nothing or blocks.
    fn as_it_was(&self) -> VerdictRecord {
        let blocked = self.verdict == Outcome::Block.as_str();
        let reason = self.reason.clone().unwrap_or_default();
        VerdictRecord {
            hook: self.hook.clone(),
            verdict: if blocked { Verdict::block(reason) } else { Verdict::silent() },
            exit: None,
            took: Duration::ZERO,
            failure: self.failure.clone(),
            policy: if blocked { OnFailure::Block } else { OnFailure::Allow }.as_str(),
            script: None,
            heard: None,
            refused: true,
            of_project: self.of_project,
            note: None,
        }
    }
}
