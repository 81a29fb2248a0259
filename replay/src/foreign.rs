//! Commands that a foreign recording names: an archive, an export, a NATS stream, the log of another home. Another
//! person wrote them, so none of them runs unless the user approves it by the name of its hook.

use std::collections::BTreeSet;

use hookbus::config::Hook;
use hookbus::decide::Plan;
use hookbus::log::RecordedEvent;

use crate::replay_hooks::ReplayHooks;

/// The hooks of a foreign recording that the user approved, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForeignApprovals(BTreeSet<String>);

impl ForeignApprovals {
    pub(crate) fn approve(&mut self, names: impl IntoIterator<Item = String>) {
        self.0.extend(names);
    }
}

impl ReplayHooks {
    /// Whether a hook for this event runs a command or a plugin, and comes from a foreign recording.
    pub(crate) fn is_foreign(&self, hook: &Hook, row: &RecordedEvent) -> bool {
        hook.runs_outside()
            && self.recorded().is_some_and(|recorded| recorded.foreign.is_some())
            && self.are_as_recorded(hook.of_project, row)
    }

    /// Whether such a hook may not run.
    pub(crate) fn is_refused(&self, hook: &Hook, row: &RecordedEvent) -> bool {
        let approvals = self.recorded().and_then(|recorded| recorded.foreign.as_ref());
        approvals.is_some_and(|approvals| !approvals.0.contains(&hook.name))
            && self.is_foreign(hook, row)
    }

    /// Removes such hooks from a plan; returns the name of the first that is not in shadow mode.
    pub(crate) fn leave_out_refused(
        &self,
        plan: &mut Plan<'_>,
        row: &RecordedEvent,
    ) -> Option<String> {
        let refused: Vec<&Hook> = plan.hooks().filter(|hook| self.is_refused(hook, row)).collect();
        plan.leave_out(&refused);
        let mut deciding = refused.iter().filter(|hook| !hook.is_shadow());
        deciding.next().map(|hook| hook.name.clone())
    }

    /// Lets the hooks with these names run, if they come from a foreign recording.
    pub fn approve_foreign(&mut self, names: impl IntoIterator<Item = String>) {
        let recorded = match self {
            Self::Fixed { recorded, .. } => recorded.as_mut(),
            Self::AsRecorded(recorded) => Some(recorded),
        };
        if let Some(approvals) = recorded.and_then(|recorded| recorded.foreign.as_mut()) {
            approvals.approve(names);
        }
    }
}
