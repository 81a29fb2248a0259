//! Which hooks are asked about an event, and in which order.

use std::borrow::Cow;
use std::path::Path;

use crate::active::{ActiveHooks, HookSets, HooksStatus};
use crate::config::{Action, Hook, Problem};
use crate::dialect::dialect_of;
use crate::event::{Agent, Event, OnFailure};

/// The hooks that will be asked about one event, plugins first, then in the configured order.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    pub(super) hooks: Vec<&'a Hook>,
    /// Entries that lead to the same plugin directory or command as one in `hooks`. They are not asked, but their `on_failure` counts,
    /// and for plugins their approval.
    duplicates: Vec<DuplicateEntry<'a>>,
    /// Each hook gets the tool input as the one before it left it.
    pub(super) sequential: bool,
    /// Set if the event has to be blocked without asking a hook: who demands that.
    pub(super) refused_by: Option<RefusedBy<'a>>,
    /// Every hook in force.
    pub(super) sets: &'a HookSets,
}

/// A further entry for a plugin directory or command that is asked because of an earlier entry.
#[derive(Debug, Clone, Copy)]
struct DuplicateEntry<'a> {
    asked: &'a Hook,
    other: &'a Hook,
}

/// Why an event is refused without asking a hook.
#[derive(Debug, Clone, Copy)]
pub(super) enum RefusedBy<'a> {
    /// It cannot be read: a hook that blocks when it fails.
    Hook(&'a Hook),
    /// It cannot be read: the bus, whose own policy is to block.
    Bus,
    /// It is not known which hooks there should be, because of this problem, and the wiring says to block then.
    UnknownHooks(&'a Problem),
}

impl<'a> Plan<'a> {
    /// The hooks that will be asked, in their order.
    pub fn hooks(&self) -> impl Iterator<Item = &'a Hook> {
        self.hooks.iter().copied()
    }

    /// Those of them that run outside of this process.
    pub fn outside(&self) -> impl Iterator<Item = &'a Hook> {
        self.hooks().filter(|hook| hook.runs_outside())
    }

    /// Whether a rule is among them.
    pub fn has_rules(&self) -> bool {
        self.hooks.iter().any(|hook| matches!(hook.action, Action::Rule(_)))
    }

    /// Whether anything runs outside of this process.
    pub fn runs_outside(&self) -> bool {
        self.outside().next().is_some()
    }

    /// The home of the bus.
    pub fn home(&self) -> &Path {
        &self.sets.own.file.base
    }

    /// The hash of the user's own hooks.
    pub fn hooks_hash(&self) -> &str {
        &self.sets.own.file.hash
    }

    /// Whether a plugin is among them.
    pub fn has_plugins(&self) -> bool {
        self.hooks.iter().any(|hook| hook.is_plugin())
    }

    /// Whether a verdict recorded under `name` comes from a plugin.
    pub fn is_plugin(&self, name: &str) -> bool {
        let plugins = self.hooks.iter().filter(|hook| hook.is_plugin());
        // One plugin of several in a directory is recorded as `hook (plugin)`.
        plugins.map(|hook| hook.name.as_str()).any(|hook| {
            name.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        })
    }

    /// Whether each hook gets the tool input as the one before it left it.
    pub const fn is_sequential(&self) -> bool {
        self.sequential
    }

    /// Takes these hooks out: they are not asked.
    pub fn leave_out(&mut self, unasked: &[&Hook]) {
        self.hooks.retain(|hook| !unasked.iter().any(|other| std::ptr::eq(*hook, *other)));
    }

    /// The plan for an event that has to be blocked if it is not known which hooks there should be.
    #[must_use]
    pub(crate) fn refuse_if_unknown(self) -> Self {
        match &self.sets.own.status {
            HooksStatus::NothingGood(problem) => {
                let refused_by = Some(RefusedBy::UnknownHooks(problem));
                Self { hooks: Vec::new(), refused_by, ..self }
            }
            HooksStatus::Current | HooksStatus::NoFile | HooksStatus::LastGood(_) => self,
        }
    }

    /// The same plan with plugins only.
    #[must_use]
    pub(super) fn plugins_only(&self) -> Self {
        let hooks = self.hooks.iter().copied().filter(|hook| hook.is_plugin()).collect();
        Self { hooks, refused_by: None, ..self.clone() }
    }

    /// The entries whose approval lets `hook` run, itself first. A command runs with the variables of its own entry, so
    /// only its own approval counts.
    pub(super) fn approvable<'h>(&'h self, hook: &'h Hook) -> impl Iterator<Item = &'h Hook> {
        self.entries(hook).take(if hook.is_plugin() { usize::MAX } else { 1 })
    }

    /// The entries that `hook` stands for, itself first.
    fn entries<'h>(&'h self, hook: &'h Hook) -> impl Iterator<Item = &'h Hook> {
        let of_hook = self.duplicates.iter().filter(|it| std::ptr::eq(it.asked, hook));
        std::iter::once(hook).chain(of_hook.map(|it| it.other))
    }

    /// `hook` with the strictest failure policy of the entries that it stands for.
    pub(super) fn with_strictest_policy<'h>(&self, hook: &'h Hook) -> Cow<'h, Hook> {
        let others = self.entries(hook).skip(1).map(|entry| entry.on_failure);
        let on_failure = others.fold(hook.on_failure, OnFailure::stricter);
        if on_failure == hook.on_failure {
            Cow::Borrowed(hook)
        } else {
            Cow::Owned(Hook { on_failure, ..hook.clone() })
        }
    }

    /// The hooks in force that `hook` belongs to.
    pub(super) fn active(&self, hook: &Hook) -> &'a ActiveHooks {
        self.sets.of(hook)
    }
}

/// The plan for `event`.
pub fn plan<'a>(event: &Event, sets: &'a HookSets) -> Plan<'a> {
    let unreadable = event.is_unreadable();
    let answered = dialect_of(event.agent).is_answered();
    let is_asked = |hook: &&Hook| hook.is_asked() && hook.is_for(event);
    let mut hooks: Vec<&Hook> =
        if unreadable || !answered { Vec::new() } else { sets.hooks().filter(is_asked).collect() };
    let mut duplicates = drop_repeated_commands(event.agent, &mut hooks);
    duplicates.extend(drop_repeated_plugins(&mut hooks));
    // As in Hermes: plugins are called before anything else.
    hooks.sort_by_key(|hook| !hook.is_plugin());
    // Project hooks cannot block events that cannot be parsed.
    let refused_by = (unreadable && answered).then(|| refused_by(event.agent, &sets.own)).flatten();
    keep_one_unread(sets.project.as_deref(), &mut hooks);
    let is_read = |hook: &&Hook| !matches!(hook.action, Action::Unapproved { .. });
    // A hook in shadow mode does not change how the others run.
    let counts = |hook: &&Hook| is_read(hook) && !hook.is_shadow();
    let sequential = hooks.iter().copied().filter(counts).any(|hook| hook.sequential);
    Plan { hooks, duplicates, sequential, refused_by, sets }
}

fn refused_by(agent: Agent, own: &ActiveHooks) -> Option<RefusedBy<'_>> {
    let hook = own.file.hooks.iter().find(|hook| hook.refuses_unreadable(agent));
    let bus = (own.file.on_failure == OnFailure::Block).then_some(RefusedBy::Bus);
    hook.map(RefusedBy::Hook).or(bus)
}

/// A plugin directory that several entries lead to is asked once, or it would count the event twice. With
/// another interpreter or memory limit it is another process. The other entries' failure policies count too. An entry
/// that decides is asked in place of those in shadow mode.
fn drop_repeated_plugins<'a>(hooks: &mut Vec<&'a Hook>) -> Vec<DuplicateEntry<'a>> {
    let key = |hook: &'a Hook| {
        let Action::Python(python) = &hook.action else { return None };
        Some((python.folder.as_str(), &python.launch, hook.of_project))
    };
    let deciding: Vec<_> =
        hooks.iter().filter(|hook| !hook.is_shadow()).filter_map(|hook| key(hook)).collect();
    hooks.retain(|hook| !(hook.is_shadow() && key(hook).is_some_and(|it| deciding.contains(&it))));
    keep_first(hooks, key)
}

/// Of hooks with the same key only the first stays; returns the others.
fn keep_first<'a, K: PartialEq>(
    hooks: &mut Vec<&'a Hook>,
    key: impl Fn(&'a Hook) -> Option<K>,
) -> Vec<DuplicateEntry<'a>> {
    let mut first_of: Vec<(K, &'a Hook)> = Vec::new();
    let mut duplicates = Vec::new();
    hooks.retain(|hook| {
        let Some(key) = key(hook) else { return true };
        if let Some((_, asked)) = first_of.iter().find(|(known, _)| *known == key) {
            duplicates.push(DuplicateEntry { asked, other: hook });
            return false;
        }
        first_of.push((key, hook));
        true
    });
    duplicates
}

/// Of a project's entries that are not approved only the strictest stays and stands for all: an unknown file
/// must not fill the log.
fn keep_one_unread(project: Option<&ActiveHooks>, hooks: &mut Vec<&Hook>) {
    let Some(project) = project else { return };
    let was_approved = |hook: &Hook| {
        let refusal = project.approvals.refusal_of_text(hook);
        refusal.is_some_and(|refusal| refusal.approval.is_void())
    };
    let strictness = |hook: &Hook| match hook.on_failure {
        _ if hook.is_shadow() => 0,
        Some(OnFailure::Block) => 2,
        None if was_approved(hook) => 2,
        Some(OnFailure::Allow) | None => 1,
    };
    let is_unread = |hook: &&Hook| matches!(hook.action, Action::Unapproved { .. });
    let mut unread = hooks.iter().copied().filter(is_unread);
    let Some(mut strictest) = unread.next() else { return };
    for hook in unread {
        if strictness(hook) > strictness(strictest) {
            strictest = hook;
        }
    }
    hooks.retain(|hook| !is_unread(hook) || std::ptr::eq(*hook, strictest));
}

/// Gemini runs the same name and command once per event, whatever matchers led to it.
fn drop_repeated_commands<'a>(agent: Agent, hooks: &mut Vec<&'a Hook>) -> Vec<DuplicateEntry<'a>> {
    keep_first(hooks, |hook: &'a Hook| {
        let Action::Command(command) = &hook.action else { return None };
        let key = (hook.name.as_str(), command.text.as_str(), hook.mode);
        hook.on.dialect(agent).runs_duplicates_once().then_some(key)
    })
}

/// The policy of a hook that failed.
pub(super) fn failure_policy(hook: &Hook) -> OnFailure {
    hook.on_failure.unwrap_or(OnFailure::Allow)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::HooksFile;
    use crate::dialect::{Arrival, decode};
    use crate::event::{EventId, Time, Wire};

    /// The lines of the hooks that are asked about a tool call, and whether they run one after the other.
    fn asked(entries: &[&str]) -> (Vec<usize>, bool) {
        let text = format!("hooks:\n  pre_tool_call:\n    - {}\n", entries.join("\n    - "));
        let file = HooksFile::parse(&text, Path::new("/")).expect("a file");
        assert!(file.problems.is_empty(), "{:?}", file.problems);
        let sets = HookSets::own(Arc::new(ActiveHooks::for_replay(file)));
        let at = Time::from_micros(1);
        let raw = br#"{"hook_event_name":"pre_tool_call","tool_name":"terminal"}"#.to_vec();
        let (id, agent, wire) = (EventId::mint(at), Agent::Hermes, Wire::Shell);
        let event = decode(Arrival { id, at, agent, wire, raw: raw.into(), session_hint: None });
        let plan = plan(&event, &sets);
        (plan.hooks().map(|hook| hook.line).collect(), plan.is_sequential())
    }

    #[test]
    fn a_plugin_that_decides_is_not_replaced_by_an_entry_in_shadow_mode() {
        let (shadow, decide) = ("{ python: ./p, mode: shadow }", "{ python: ./p }");
        assert_eq!(asked(&[shadow, decide]).0, [4]);
        assert_eq!(asked(&[decide, shadow]).0, [3]);
        assert_eq!(asked(&[shadow, shadow]).0, [3]);
        assert_eq!(asked(&[shadow, "{ python: ./other }"]).0, [3, 4]);
    }

    #[test]
    fn a_hook_in_shadow_mode_does_not_make_the_others_sequential() {
        let rule = "{ rule: { block: a } }";
        assert!(asked(&[rule, "{ rule: { block: b }, sequential: true }"]).1);
        assert!(!asked(&[rule, "{ rule: { block: b }, sequential: true, mode: shadow }"]).1);
    }
}
