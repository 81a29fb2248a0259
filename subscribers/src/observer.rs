//! An observer as configured: all entries with `mode: observe` and the same name. The observer gets the events that match any of them, in log order.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hookbus::active::ActiveHooks;
use hookbus::caller::Caller;
use hookbus::config::{
    Action, EventKey, Hook, ObserverSettings, PluginLists, Refusal, Webhook, wildcard_matches,
};
use hookbus::consent::ApprovalCheck;
use hookbus::dialect::{Arrival, decode, recorded_wire};
use hookbus::event::{Agent, Event, Kind, Tool, ToolClass, event_filter};
use hookbus::log::Row;

/// What an observer does with an event.
#[derive(Debug, Clone, Copy)]
pub enum ObserverAction<'a> {
    /// Runs a program for each.
    Command,
    /// Writes it to a program that stays up.
    LongLived,
    /// Posts it.
    Webhook(&'a Webhook),
    /// Appends it to a log elsewhere.
    Archive(&'a Path),
    /// Counts it in a database.
    Analytics(&'a Path),
    /// Calls plugins, which stay up.
    Plugins,
}

/// One observer.
#[derive(Debug, Clone)]
pub struct Observer {
    name: String,
    /// Its entries, at least one.
    hooks: Vec<Hook>,
    /// The directory of the hooks file, which is its working directory.
    pub(crate) base: PathBuf,
    /// Which plugins of a directory are loaded.
    pub(crate) plugins: PluginLists,
    pub(crate) approvals: ApprovalCheck,
}

impl Observer {
    /// The observers of a hooks file, in the order they are written.
    pub fn all(active: &ActiveHooks) -> Vec<Self> {
        let names = active.file.observer_names();
        names.into_iter().filter_map(|name| Self::find(active, name)).collect()
    }

    /// The observer of this name.
    pub fn find(active: &ActiveHooks, name: &str) -> Option<Self> {
        let is_entry = |hook: &&Hook| hook.is_observer() && hook.name == name;
        let hooks: Vec<Hook> = active.file.hooks.iter().filter(is_entry).cloned().collect();
        (!hooks.is_empty()).then(|| Self {
            name: name.to_owned(),
            hooks,
            base: active.file.base.clone(),
            plugins: active.file.plugins.clone(),
            approvals: active.approvals.clone(),
        })
    }

    /// The name that its position is stored under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is run.
    pub fn settings(&self) -> &ObserverSettings {
        &self.first_entry().observer
    }

    /// What it does.
    pub fn action(&self) -> ObserverAction<'_> {
        match &self.first_entry().action {
            Action::Webhook(webhook) => ObserverAction::Webhook(webhook),
            Action::Archive(folder) => ObserverAction::Archive(folder),
            Action::Analytics(file) => ObserverAction::Analytics(file),
            Action::Python(_) => ObserverAction::Plugins,
            _ if self.settings().long_lived => ObserverAction::LongLived,
            Action::Command(_)
            | Action::Rule(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => ObserverAction::Command,
        }
    }

    /// The entry that matches this row, if any does.
    pub fn matching_entry(&self, row: &Row) -> Option<&Hook> {
        let mut candidates = self.hooks.iter().filter(|hook| may_match(hook, row)).peekable();
        candidates.peek()?;
        match recorded_event(row).or_else(|| decision_event(row)) {
            Some(event) => candidates.find(|hook| hook.is_for(&event)),
            // A row of the bus itself has no agent and no tool that a filter could match.
            None => candidates.find(|hook| !has_filters(hook)),
        }
    }

    /// Whether a row may match, judged without its payload.
    pub fn may_match(&self, row: &Row) -> bool {
        self.hooks.iter().any(|hook| may_match(hook, row))
    }

    /// The NATS subjects of the events that can match; all subjects where that is not known.
    pub fn subjects(&self) -> Vec<String> {
        let of_entry = |hook: &Hook| match &hook.on {
            EventKey::Name(name) => {
                Some(event_filter(hook.agent.as_ref().map(Agent::as_str), name))
            }
            EventKey::Kind(_) | EventKey::Pattern(_) => None,
        };
        let subjects: Option<Vec<String>> = self.hooks.iter().map(of_entry).collect();
        // The server refuses subjects that overlap, as `*` and an agent's name do.
        let is_one_agent = self.hooks.iter().all(|hook| hook.agent == self.first_entry().agent);
        match subjects.filter(|_| is_one_agent) {
            Some(mut subjects) => {
                subjects.sort();
                subjects.dedup();
                subjects
            }
            None => vec!["hookbus.>".to_owned()],
        }
    }

    /// Why nothing of it may run, if the user has to approve it first.
    pub fn missing_approval(&self, env: &[(OsString, OsString)]) -> Option<Refusal> {
        let caller = self.caller(env);
        self.hooks.iter().find_map(|hook| self.approvals.refusal_now(hook, &caller))
    }

    /// The caller when no event is involved.
    pub(crate) fn caller(&self, env: &[(OsString, OsString)]) -> Caller {
        let agent = Caller { cwd: self.base.clone(), env: env.to_vec(), ..Caller::default() };
        self.approvals.store().hook_caller(&agent, self.first_entry().pass_env())
    }

    pub(crate) fn first_entry(&self) -> &Hook {
        &self.hooks[0]
    }
}

fn may_match(hook: &Hook, row: &Row) -> bool {
    let session = hook.session.as_ref();
    hook.on.covers_name(&row.name, &row.kind)
        && session.is_none_or(|pattern| wildcard_matches(pattern, &row.session))
}

fn has_filters(hook: &Hook) -> bool {
    hook.agent.is_some()
        || !hook.tools.is_empty()
        || !hook.tool_names.is_empty()
        || hook.matcher.is_some()
}

/// The event in a row; none for rows of the bus itself.
pub(crate) fn recorded_event(row: &Row) -> Option<Event> {
    let is_of_bus = |kind: Kind| kind == Kind::Decision || kind.is_of_bus();
    if Kind::parse(&row.kind).is_some_and(is_of_bus) { None } else { decode_row(row) }
}

/// A decision, as an event about the same tool of the same agent.
fn decision_event(row: &Row) -> Option<Event> {
    let class = row.tool_class.as_deref().and_then(ToolClass::parse);
    let tool = row.tool.clone().map(|name| Tool { name, class: class.unwrap_or(ToolClass::Other) });
    let kind = Kind::parse(&row.kind)?;
    Some(Event { name: row.name.clone(), kind, tool, turn: row.turn.clone(), ..decode_row(row)? })
}

fn decode_row(row: &Row) -> Option<Event> {
    Some(decode(Arrival {
        id: row.id,
        at: row.at,
        agent: Agent::named(&row.agent)?,
        wire: recorded_wire(row.context.as_deref().unwrap_or("{}")),
        raw: row.payload.clone().into(),
        session_hint: Some(row.session.clone()),
    }))
}
