//! A path of an observer's entry that begins with `~`, which is the home directory of the observer's user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hookbus::caller::Caller;

/// The path with `~` at its start expanded.
pub(super) fn expand_home(path: &Path, env: &[(OsString, OsString)]) -> PathBuf {
    let caller = Caller { env: env.to_vec(), ..Caller::default() };
    caller.expand_home(path).into()
}
