//! Variables that name a program which another program starts: `PAGER`, `EDITOR`, `GIT_SSH_COMMAND`, `LESSOPEN`.

use super::super::follow::{Call, Follower, Origin, Value};
use super::super::word::UNKNOWN;

/// Programs, and the variables whose values they run as a shell line.
const TABLE: &[(&[&str], &[&str])] = &[
    (
        &["git"],
        &[
            "GIT_SSH_COMMAND",
            "GIT_SSH",
            "GIT_PAGER",
            "GIT_EDITOR",
            "GIT_SEQUENCE_EDITOR",
            "GIT_EXTERNAL_DIFF",
            "GIT_PROXY_COMMAND",
            "GIT_ASKPASS",
            "SSH_ASKPASS",
            "PAGER",
            "VISUAL",
            "EDITOR",
            "LESSOPEN",
        ],
    ),
    (&["man", "apropos"], &["MANPAGER", "PAGER", "BROWSER", "LESSOPEN"]),
    (&["less", "more", "zless"], &["LESSOPEN", "LESSCLOSE", "VISUAL", "EDITOR"]),
    (
        &["systemctl", "journalctl", "loginctl", "timedatectl"],
        &["SYSTEMD_PAGER", "PAGER", "SYSTEMD_EDITOR", "VISUAL", "EDITOR"],
    ),
    (&["psql", "pgcli"], &["PSQL_PAGER", "PAGER", "PSQL_EDITOR", "VISUAL", "EDITOR"]),
    (&["mysql", "mariadb", "sqlite3"], &["PAGER", "VISUAL", "EDITOR"]),
    (
        &["gh", "glab"],
        &[
            "GH_PAGER",
            "GLAB_PAGER",
            "PAGER",
            "GH_EDITOR",
            "VISUAL",
            "EDITOR",
            "GH_BROWSER",
            "BROWSER",
        ],
    ),
    (&["bat", "batcat", "delta"], &["BAT_PAGER", "DELTA_PAGER", "PAGER"]),
    (&["aws"], &["AWS_PAGER", "PAGER"]),
    (&["kubectl", "oc"], &["KUBE_EDITOR", "EDITOR", "KUBECTL_EXTERNAL_DIFF"]),
    (
        &["crontab", "visudo", "vipw", "sudoedit", "edquota", "chfn", "ranger", "lf", "helm"],
        &["SUDO_EDITOR", "VISUAL", "EDITOR"],
    ),
    (&["sudo"], &["SUDO_ASKPASS", "SUDO_EDITOR"]),
    (&["hg"], &["HGEDITOR", "VISUAL", "EDITOR", "PAGER", "HGMERGE"]),
    (&["svn"], &["SVN_EDITOR", "VISUAL", "EDITOR", "SVN_SSH"]),
    (&["ssh", "ssh-add", "scp", "sftp"], &["SSH_ASKPASS"]),
    (&["rsync"], &["RSYNC_RSH", "RSYNC_CONNECT_PROG"]),
    (&["cvs"], &["CVS_RSH", "CVSEDITOR"]),
    (
        &[
            "xdg-open",
            "sensible-browser",
            "open",
            "python",
            "python3",
            "jupyter",
            "npm",
            "www-browser",
        ],
        &["BROWSER"],
    ),
    (&["sensible-editor", "editor"], &["VISUAL", "EDITOR"]),
    (&["sensible-pager", "pager"], &["PAGER"]),
    (
        &["cargo"],
        &["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTC", "CARGO_BUILD_RUSTC_WRAPPER"],
    ),
];

/// Whether a program runs values of variables.
pub(super) fn has_variables(name: &str) -> bool {
    TABLE.iter().any(|(names, _)| names.contains(&name))
}

impl Follower<'_> {
    /// The lines in the variables that the line has set for a program.
    pub(super) fn variable_lines(&self, name: &str, call: &Call) -> Vec<(String, Origin)> {
        let rows = TABLE.iter().filter(|(names, _)| names.contains(&name));
        let values = rows.flat_map(|(_, variables)| *variables).filter_map(|variable| {
            let value = self.variable_of(variable, call)?;
            let line = match *variable {
                // `|line %s`: what stands before the line says how its output is used.
                "LESSOPEN" => value.trim_start_matches(['|', '-']),
                _ => value.as_str(),
            };
            // The program gets a file or an address behind its own arguments.
            let origin = if line.starts_with(UNKNOWN) { Origin::Variable } else { Origin::Line };
            Some((line.to_owned(), origin))
        });
        values.collect()
    }

    /// The value of a variable that the line has set for a program, or before it.
    pub(super) fn variable_of(&self, name: &str, call: &Call) -> Option<String> {
        let own = call.env.iter().rev().find(|(known, _)| known == name);
        if let Some((_, value)) = own {
            return Some(value.as_str().to_owned());
        }
        match self.scope.value(name)? {
            Value::Text(text, _) => Some(text.to_string()),
            Value::Either(_) | Value::List(_) => None,
        }
    }
}
