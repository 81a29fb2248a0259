//! What changed in the policy since the last session. An agent that runs as the same user can edit `hookbus.yaml`, so
//! the user hears of every change.

use std::collections::BTreeMap;

use super::finding::{Finding, list};
use crate::active::ActiveHooks;
use crate::config::{HooksFile, Mode};
use crate::event::one_line;
use crate::log::PolicyChange;

const LONGEST_NAME: usize = 60;

/// The finding about what happened to the policy, which is `now`, since the last session.
pub(super) fn finding(change: &PolicyChange, now: &ActiveHooks) -> Finding {
    let parsed = |text: &str| HooksFile::parse(text, &now.file.base);
    let unreadable = || "the earlier version cannot be read any more".to_owned();
    let what = match change {
        PolicyChange::Changed { before } => {
            let what = parsed(before).map(|before| difference(&before, &now.file));
            format!("has changed since the last session: {}", what.unwrap_or_else(|_| unreadable()))
        }
        PolicyChange::PutBack { meanwhile } => {
            let what = parsed(meanwhile).map(|meanwhile| difference(&now.file, &meanwhile));
            let what = what.unwrap_or_else(|_| unreadable());
            format!("was changed and put back since the last session; meanwhile: {what}")
        }
    };
    let text = format!("{} {what}", one_line(&now.snapshot.path, 200));
    Finding::PolicyChanged { text, hash: now.file.hash.clone() }
}

fn difference(before: &HooksFile, now: &HooksFile) -> String {
    let (before, now) = (by_name(before), by_name(now));
    let names = |some: Vec<&String>| -> Vec<String> {
        some.into_iter().map(|name| one_line(name, LONGEST_NAME)).collect()
    };
    let added = names(now.keys().filter(|name| !before.contains_key(*name)).collect());
    let removed = names(before.keys().filter(|name| !now.contains_key(*name)).collect());
    let differs = |name: &&String| before.get(*name).is_some_and(|it| Some(it) != now.get(*name));
    let changed = names(now.keys().filter(differs).collect());
    let parts: Vec<String> = [("removed", removed), ("changed", changed), ("added", added)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", list(&names)))
        .collect();
    if parts.is_empty() { "its settings, not its hooks".to_owned() } else { parts.join("; ") }
}

/// Each hook's entries as they are written, by the hook's name. With their mode: a setting of the file can put them
/// into shadow mode.
fn by_name(file: &HooksFile) -> BTreeMap<String, Vec<(String, Mode, String)>> {
    let mut hooks: BTreeMap<String, Vec<(String, Mode, String)>> = BTreeMap::new();
    for hook in &file.hooks {
        let entry = (hook.on.to_string(), hook.mode, hook.written.clone());
        hooks.entry(hook.name.clone()).or_default().push(entry);
    }
    hooks
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn hooks_are_named_by_what_happened_to_them() {
        let file = |hooks: &str| {
            let text = format!("hooks: {{ tool.before: [{hooks}] }}");
            HooksFile::parse(&text, Path::new("/h")).expect("hooks")
        };
        let rule =
            |name: &str, reason: &str| format!("{{ name: {name}, rule: {{ block: {reason} }} }}");
        let before = file(&[rule("a", "no"), rule("b", "no"), rule("c", "no")].join(","));
        let now = file(&[rule("b", "no"), rule("c", "never"), rule("d", "no")].join(","));
        assert_eq!(difference(&before, &now), "removed a; changed c; added d");
        assert_eq!(difference(&now, &now), "its settings, not its hooks");
        let text = format!("{{ shadow: true, hooks: {{ tool.before: [{}] }} }}", rule("a", "no"));
        let shadow = HooksFile::parse(&text, Path::new("/h")).expect("hooks");
        assert_eq!(difference(&file(&rule("a", "no")), &shadow), "changed a");
    }
}
