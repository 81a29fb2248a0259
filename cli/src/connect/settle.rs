//! From what is shown to what is done: between the two a person may take their time, and others may change
//! the same files. What is done is what was shown last, or nothing.

use std::path::Path;

use anyhow::Result;

use crate::home_lock::HomeLock;
use crate::output;

/// How it came out.
pub(super) enum Settled<T> {
    /// This is to be done, while nobody else changes anything in the home.
    Agreed(T, HomeLock),
    /// This was not wanted.
    Refused(T),
}

/// Thinks of what there is to do until somebody agreed to it and it still is the same then.
pub(super) fn settle<T: PartialEq>(
    home: &Path,
    think: impl Fn() -> Result<T>,
    agree: impl Fn(&T) -> Result<bool>,
) -> Result<Settled<T>> {
    let mut shown = think()?;
    loop {
        if !agree(&shown)? {
            return Ok(Settled::Refused(shown));
        }
        let lock = HomeLock::take(home)?;
        let now = think()?;
        if now == shown {
            return Ok(Settled::Agreed(now, lock));
        }
        drop(lock);
        output::aside(
            "somebody changed these files meanwhile; nothing is done yet, and this is how it is now",
        );
        shown = now;
    }
}
