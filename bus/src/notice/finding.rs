//! One thing that the user should know, and the words for it.

use std::path::Path;

use crate::active::HooksStatus;
use crate::event::one_line;

/// How many hooks are named in one sentence.
const MOST_NAMES: usize = 5;

/// How long a name and an explanation may be.
const LONGEST_NAME: usize = 60;
const LONGEST_REASON: usize = 160;

/// What the user reads to find out more.
const DOCTOR: &str = "run `hookbus hooks doctor`";

/// One thing that the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// The user's own hooks file cannot be used as it is.
    File(String),
    /// A hook of the user's own file is not in force.
    Hook {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A hook or setting of the user's own file has a mistake, and its last good version is in force.
    Kept {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Hooks of the project are not in force.
    Project {
        /// How many.
        count: usize,
        /// Why.
        why: &'static str,
    },
    /// The hooks file of the project is gone, although the user approved hooks in it.
    ProjectGone,
    /// A hook was asked and failed.
    Failed {
        /// Its name.
        name: String,
        /// The name of the event.
        event: String,
        /// Why.
        why: String,
    },
    /// The event cannot be read, and no hook looked at it.
    Unreadable {
        /// How many hooks might have.
        hooks: usize,
        /// Why.
        why: String,
    },
    /// The policy is another one than in the last session.
    PolicyChanged {
        /// What changed.
        text: String,
        /// The hash of the policy now.
        hash: String,
    },
}

impl Finding {
    /// The user's own hooks file, if it cannot be used.
    pub(super) fn of_file(status: &HooksStatus, path: &str) -> Option<Self> {
        let problem = one_line(&status.problem()?.to_string(), LONGEST_REASON);
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(Self::File(match status {
            HooksStatus::NothingGood(_) => {
                format!(
                    "{name} cannot be used ({problem}) and no earlier version is known, so no hooks are in force"
                )
            }
            HooksStatus::LastGood(_) | HooksStatus::Current | HooksStatus::NoFile => {
                format!("{name} cannot be used ({problem}); its last good version stays in force")
            }
        }))
    }

    /// What identifies it within a session: the same key is told once.
    pub(super) fn key(&self) -> String {
        match self {
            Self::File(text) => text.clone(),
            Self::Hook { name, why } | Self::Kept { name, why } => format!("{name}: {why}"),
            Self::Project { why, .. } => format!("project: {why}"),
            Self::ProjectGone => "project: gone".to_owned(),
            Self::Failed { name, .. } => format!("{name}: failed"),
            Self::Unreadable { .. } => "unreadable event".to_owned(),
            Self::PolicyChanged { hash, .. } => format!("policy {hash}"),
        }
    }
}

/// The text for the user, one line per subject. `total` is the number of the user's own hooks for this agent.
pub(super) fn describe(findings: &[Finding], total: usize) -> String {
    let (mut lines, mut inactive, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let named = |name: &str, why: &str| {
        format!("{} ({})", one_line(name, LONGEST_NAME), one_line(why, LONGEST_REASON))
    };
    for finding in findings {
        match finding {
            Finding::Hook { name, why } => inactive.push(named(name, why)),
            Finding::Kept { name, why } => kept.push(named(name, why)),
            Finding::File(text) => lines.push(format!("hookbus: {text}; {DOCTOR}")),
            Finding::Project { count, why } => lines.push(format!(
                "hookbus: {} not in force ({why}); look with `hookbus hooks approve`, \
                 inside the project",
                match count {
                    1 => "1 hook of this project is".to_owned(),
                    _ => format!("{count} hooks of this project are"),
                },
            )),
            Finding::ProjectGone => lines.push(
                "hookbus: this project's .hookbus/hookbus.yaml is gone, and the hooks that you approved in it with it; \
                 restore it, or run `hookbus hooks revoke`"
                    .to_owned(),
            ),
            Finding::Failed { name, event, why } => lines.push(format!(
                "hookbus: hook `{}` failed at {}: {}",
                one_line(name, LONGEST_NAME),
                one_line(event, LONGEST_NAME),
                one_line(why, LONGEST_REASON),
            )),
            Finding::Unreadable { hooks, why } => lines.push(format!(
                "hookbus: an event of this agent cannot be read ({}), so it passed {}; \
                 `on_failure: block` in hookbus.yaml blocks such events",
                one_line(why, LONGEST_REASON),
                match hooks {
                    1 => "your hook unseen".to_owned(),
                    _ => format!("your {hooks} hooks unseen"),
                },
            )),
            Finding::PolicyChanged { text, .. } => lines.push(format!("hookbus: {text}")),
        }
    }
    if !kept.is_empty() {
        let names = list(&kept);
        let stays = "has mistakes; until they are corrected, the hooks from before stay in force";
        lines.insert(0, format!("hookbus: hookbus.yaml {stays}: {names}; {DOCTOR}"));
    }
    if !inactive.is_empty() {
        let count = inactive.len();
        let are = if count == 1 { "is" } else { "are" };
        let names = list(&inactive);
        let of = format!("{count} of {} hooks", total.max(count));
        lines.insert(0, format!("hookbus: {of} {are} not in force: {names}; {DOCTOR}"));
    }
    lines.join("\n")
}

/// The first few of `names`, and how many more there are.
pub(super) fn list(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
