//! Leaving hooks of a plan unasked, for a rehearsal: those that were refused for want of consent then. What was
//! recorded in their place stands.

use super::hook::Hook;
use super::plan::Plan;
use super::run::Spoken;
use crate::event::VerdictRecord;

impl Plan<'_> {
    /// Does not ask these.
    pub fn leave_out(&mut self, unasked: &[&Hook]) {
        self.hooks.retain(|hook| !unasked.iter().any(|other| std::ptr::eq(*hook, *other)));
    }
}

impl<'a> Spoken<'a> {
    /// What was recorded in place of `hook`, or of several, of which it is one.
    pub const fn unasked(hook: &'a Hook, record: VerdictRecord) -> Self {
        Self { hook: Some(hook), record }
    }
}
