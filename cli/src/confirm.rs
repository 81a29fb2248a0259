//! Confirms a plan with the user. Other processes may change the files while the question is open, so the plan is made
//! again under the lock: either it is still the one that was shown, or the new one is shown and asked about.

use std::path::Path;

use anyhow::Result;

use crate::home_lock::HomeLock;
use crate::output;

/// The user's answer.
pub(crate) enum Confirmed<T> {
    /// Carry out this plan while holding the lock.
    Yes(T, HomeLock),
    /// The user declined this plan.
    No(T),
}

/// Makes plans until the user has agreed to one that is still the same under the lock on `home`.
pub(crate) fn confirm<T: PartialEq>(
    home: &Path,
    make_plan: impl Fn() -> Result<T>,
    ask: impl Fn(&T) -> Result<bool>,
) -> Result<Confirmed<T>> {
    let mut shown = make_plan()?;
    loop {
        if !ask(&shown)? {
            return Ok(Confirmed::No(shown));
        }
        let lock = HomeLock::take(home)?;
        let current = make_plan()?;
        if current == shown {
            return Ok(Confirmed::Yes(current, lock));
        }
        drop(lock);
        output::to_stderr(
            "another process changed these files meanwhile; nothing has been written. The new plan:",
        );
        shown = current;
    }
}
