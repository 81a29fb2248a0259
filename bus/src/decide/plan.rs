//! Which hooks are for an event.

use std::borrow::Cow;

use super::consent::Agreement;
use super::hook::{Action, Hook, Mode};
use super::{Hooks, OnFailure};
use crate::dialect::Manner;
use crate::event::{Agent, Body, Event};

/// The hooks that will be asked about one event, in the configured order.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) hooks: Vec<&'a Hook>,
    /// Further entries for the plugins of one of them, which are asked once for all.
    pub(super) doubles: Vec<Double<'a>>,
    /// Each hook is handed the input as the one before left it.
    pub(super) sequential: bool,
    /// Nobody can read the event, and this says that such a thing must not pass.
    pub(super) guard: Option<Guard<'a>>,
    /// The person's own hooks, all of them.
    pub(super) own: &'a Hooks,
    pub(super) project: Option<&'a Hooks>,
}

/// An entry that another one stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Double<'a> {
    asked: &'a Hook,
    also: &'a Hook,
}

/// The hooks that can be asked about an event: the person's own, then those of the project that it
/// happened in.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The person's own.
    pub own: &'a Hooks,
    /// The project's.
    pub project: Option<&'a Hooks>,
}

impl<'a> Asked<'a> {
    /// All of them, in their order.
    pub fn all(&self) -> impl Iterator<Item = &'a Hook> + use<'a> {
        self.own.hooks.iter().chain(self.project.into_iter().flat_map(|project| &project.hooks))
    }
}

impl<'a> From<&'a Hooks> for Asked<'a> {
    fn from(own: &'a Hooks) -> Self {
        Self { own, project: None }
    }
}

impl<'a> Plan<'a> {
    /// The hooks that will be asked, in their order.
    pub fn hooks(&self) -> impl Iterator<Item = &'a Hook> {
        self.hooks.iter().copied()
    }

    /// The hooks of it that run outside of this process.
    pub fn outside(&self) -> impl Iterator<Item = &'a Hook> {
        self.hooks().filter(|hook| hook.runs_outside())
    }

    /// The hash of the hooks it is made of.
    pub fn hooks_hash(&self) -> &str {
        &self.own.hash
    }

    /// Whether a plugin is among them.
    pub fn has_plugins(&self) -> bool {
        self.hooks.iter().any(|hook| hook.is_plugin())
    }

    /// Whether what is recorded under `name` was said by a plugin.
    pub fn is_plugin(&self, name: &str) -> bool {
        let plugins = self.hooks.iter().filter(|hook| hook.is_plugin());
        // One of a directory goes by the hook's name and its own.
        plugins.map(|hook| hook.name.as_str()).any(|hook| {
            name.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        })
    }

    /// The entries that `hook` stands for, itself first.
    pub(super) fn entries<'h>(&'h self, hook: &'h Hook) -> impl Iterator<Item = &'h Hook> {
        let of_it = self.doubles.iter().filter(|double| std::ptr::eq(double.asked, hook));
        std::iter::once(hook).chain(of_it.map(|double| double.also))
    }

    /// `hook` with what the strictest of the entries that it stands for says about a failure.
    pub(super) fn for_all<'h>(&self, hook: &'h Hook) -> Cow<'h, Hook> {
        let strictness = |said: &Option<OnFailure>| match said {
            Some(OnFailure::Allow) => 0,
            None => 1,
            Some(OnFailure::Block) => 2,
        };
        let said = self.entries(hook).map(|entry| entry.on_failure);
        let on_failure = said.max_by_key(strictness).flatten();
        if on_failure == hook.on_failure {
            Cow::Borrowed(hook)
        } else {
            Cow::Owned(Hook { on_failure, ..hook.clone() })
        }
    }

    /// The file that `hook` stands in, all of it.
    pub(super) fn whole(&self, hook: &Hook) -> &'a Hooks {
        self.project.filter(|_| hook.of_project).unwrap_or(self.own)
    }

    /// Whether each hook is handed the input as the one before left it.
    pub const fn is_sequential(&self) -> bool {
        self.sequential
    }

    /// Whether something outside of this process has to run.
    pub fn runs_outside(&self) -> bool {
        self.hooks.iter().any(|hook| hook.runs_outside())
    }
}

/// Who lets nothing pass unread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Guard<'a> {
    /// A hook that blocks when it fails.
    Hook(&'a Hook),
    /// The bus, whose own policy is to block.
    Bus,
}

/// Whom to ask about `event`.
pub fn plan<'a>(event: &Event, hooks: impl Into<Asked<'a>>) -> Plan<'a> {
    let hooks = hooks.into();
    let Asked { own, project } = hooks;
    let unreadable = matches!(event.body, Body::Unreadable { .. });
    let answered = event.agent.is_answered();
    let asked = |hook: &&Hook| hook.mode == Mode::Decide && hook.is_for(event);
    let mut matched: Vec<&Hook> =
        if unreadable || !answered { Vec::new() } else { hooks.all().filter(asked).collect() };
    drop_repeated(event.agent, &mut matched);
    let doubles = drop_repeated_plugins(&mut matched);
    // As in Hermes: plugins are heard before anything else.
    matched.sort_by_key(|hook| !hook.is_plugin());
    // A project has no say in what nobody can read.
    let guard = (unreadable && answered).then(|| guard(event.agent, own)).flatten();
    keep_one_unread(project, &mut matched);
    let counts = |hook: &&Hook| !matches!(hook.action, Action::Unread { .. });
    let sequential = matched.iter().copied().filter(counts).any(|hook| hook.sequential);
    Plan { hooks: matched, doubles, sequential, guard, own, project }
}

fn guard(agent: Agent, hooks: &Hooks) -> Option<Guard<'_>> {
    let hook = hooks.hooks.iter().find(|hook| hook.guards(agent)).map(Guard::Hook);
    hook.or((hooks.on_failure == OnFailure::Block).then_some(Guard::Bus))
}

/// A directory of plugins that several keys lead to is asked once: it would count the event twice. With another
/// interpreter, or more memory, it is another process. What the others say counts all the same.
fn drop_repeated_plugins<'a>(matched: &mut Vec<&'a Hook>) -> Vec<Double<'a>> {
    let key = |hook: &'a Hook| {
        let Action::Python(python) = &hook.action else { return None };
        Some((python.folder.as_str(), &python.launch, hook.of_project))
    };
    let all = matched.clone();
    keep_first(matched, key);
    let is_kept = |hook: &Hook| matched.iter().any(|kept| std::ptr::eq(*kept, hook));
    let dropped = all.into_iter().filter(|hook| !is_kept(hook));
    let double = |also: &'a Hook| {
        let asked = matched.iter().copied().find(|kept| key(kept) == key(also));
        asked.map(|asked| Double { asked, also })
    };
    dropped.filter_map(double).collect()
}

/// Of those with the same key only the first.
fn keep_first<'a, K: PartialEq>(matched: &mut Vec<&'a Hook>, key: impl Fn(&'a Hook) -> Option<K>) {
    let mut seen: Vec<K> = Vec::new();
    matched.retain(|hook| {
        let Some(key) = key(hook) else { return true };
        let first = !seen.contains(&key);
        seen.push(key);
        first
    });
}

/// Of a project's entries that nobody agreed to one stands for all, the strictest: a stranger's file must not
/// fill the log.
fn keep_one_unread(project: Option<&Hooks>, matched: &mut Vec<&Hook>) {
    let Some(project) = project else { return };
    let lapsed = |hook: &Hook| {
        project.unread(hook).is_some_and(|objection| objection.agreement == Agreement::Lapsed)
    };
    let strictness = |hook: &Hook| match hook.on_failure {
        Some(OnFailure::Block) => 2,
        None if lapsed(hook) => 2,
        Some(OnFailure::Allow) | None => 1,
    };
    let is_unread = |hook: &&Hook| matches!(hook.action, Action::Unread { .. });
    let mut unread = matched.iter().copied().filter(is_unread);
    let Some(mut kept) = unread.next() else { return };
    for hook in unread {
        if strictness(hook) > strictness(kept) {
            kept = hook;
        }
    }
    matched.retain(|hook| !is_unread(hook) || std::ptr::eq(*hook, kept));
}

/// Gemini runs the same name and command once per event, whatever matchers led to it.
fn drop_repeated<'a>(agent: Agent, matched: &mut Vec<&'a Hook>) {
    if agent != Agent::Gemini {
        return;
    }
    keep_first(matched, |hook: &'a Hook| {
        let Action::Command(command) = &hook.action else { return None };
        let as_gemini_does = hook.on.manner() == Manner::Gemini;
        as_gemini_does.then_some((hook.name.as_str(), command.text.as_str()))
    });
}

/// The policy of a hook that failed.
pub(super) fn policy_of(hook: &Hook) -> OnFailure {
    hook.on_failure.unwrap_or(OnFailure::Allow)
}
