//! Whether a client can use its home at all: it may belong to another user, or its mount may be missing. Then no hook is
//! known and nothing can be recorded, also not in a spool: the bus of that home would never read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hookbus::sys::fs::may_create_in;
use hookbus::sys::process::effective_uid;

/// What has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Nothing: without `--home` the first event creates `~/.hookbus`.
    Nothing,
    /// The directory: a home that the wiring names is not created.
    Directory,
    /// The directory with something in it: where the wiring blocks, an empty directory may be a mount that is missing,
    /// and with it the policy.
    Content,
}

/// Why this process cannot use the home, in a sentence for the agent's user; none if it can. Costs one system call for
/// a home of this user.
pub(crate) fn why_unusable(home: &Path, needed: Needed) -> Option<String> {
    let found = match fs::metadata(home) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return (needed != Needed::Nothing).then(|| {
                sentence(home, "it does not exist; create it, or check that it is mounted here")
            });
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Some(sentence(home, &denied(None)));
        }
        Err(error) => return Some(sentence(home, &error.to_string())),
    };
    if !found.is_dir() {
        return Some(sentence(home, "it is not a directory"));
    }
    if needed == Needed::Content && fs::read_dir(home).is_ok_and(|mut files| files.next().is_none())
    {
        let why = "it is empty; check that it is mounted here, or write its hookbus.yaml first";
        return Some(sentence(home, why));
    }
    if found.uid() == effective_uid() && found.mode() & 0o700 == 0o700 {
        return None;
    }
    let is_denied = |opened: io::Result<File>| {
        opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    let log = OpenOptions::new().read(true).write(true).open(home.join("log.db"));
    let has_log = !log.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let unusable = is_denied(File::open(home.join("hookbus.yaml")))
        || is_denied(log)
        || !has_log && !may_create_in(home);
    unusable.then(|| sentence(home, &denied(Some(found.uid()))))
}

fn denied(owner: Option<u32>) -> String {
    let me = effective_uid();
    let owner =
        owner.map_or_else(String::new, |owner| format!(" and the home belongs to uid {owner}"));
    format!(
        "permission denied (this agent runs as uid {me}{owner}); run the agent as the user that owns the home, or \
         connect it to a home of its own"
    )
}

fn sentence(home: &Path, why: &str) -> String {
    format!(
        "hookbus cannot open its home {}, so no hook runs and nothing is recorded: {why}",
        home.display()
    )
}
