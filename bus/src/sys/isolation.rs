//! What this system offers to keep the programs of a replay away from the user's files and the network. It is found
//! out by trying.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// How the programs of a replay are kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// What a program is started with; empty if there is nothing.
    before: Vec<OsString>,
    description: &'static str,
}

impl Isolation {
    /// The best that works here, for programs that may write in `folder`.
    pub fn of_this_system(folder: &Path) -> Self {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let mut bubblewrap = words(&["/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev"]);
        bubblewrap.extend(words(&["--proc", "/proc", "--tmpfs", "/tmp", "--bind"]));
        bubblewrap.extend([folder.into(), folder.into()]);
        bubblewrap.extend(words(&["--unshare-all", "--die-with-parent", "--"]));
        let candidates = [
            Self {
                before: bubblewrap,
                description: "in a bubblewrap sandbox: no network, and nothing to write to but a \
                              scratch directory",
            },
            Self {
                before: words(&["/usr/bin/unshare", "--user", "--map-current-user", "--net", "--"]),
                description: "without network, but with your rights to files; install bubblewrap \
                              (`bwrap`) for a sandbox",
            },
        ];
        let none = || Self {
            before: Vec::new(),
            description: "with your rights: this system has no sandbox; install bubblewrap (`bwrap`)",
        };
        candidates.into_iter().find(Self::works).unwrap_or_else(none)
    }

    /// Whether a program starts this way.
    fn works(&self) -> bool {
        let [program, arguments @ ..] = self.before.as_slice() else { return true };
        let mut command = Command::new(program);
        command.args(arguments).args(["/usr/bin/env", "true"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// The words that start a program this way, with the variables that its entry sets; none if there is nothing.
    /// The variables are set inside: a variable such as `LD_PRELOAD` would otherwise change what keeps it apart.
    pub(crate) fn wrap(
        &self,
        words: &[OsString],
        env: &[(String, String)],
    ) -> Option<Vec<OsString>> {
        if self.before.is_empty() || words.is_empty() {
            return None;
        }
        let variables = env.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let before = self.before.iter().cloned().chain([OsString::from("/usr/bin/env")]);
        Some(before.chain(variables).chain(words.iter().cloned()).collect())
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description)
    }
}
