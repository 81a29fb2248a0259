//! Observers as configured: the hooks with `mode: observe`. Entries of one name that do the same
//! thing are one observer, which sees the events of all of them, in order. Running them is the work
//! of `subscribers/`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::EventKey;
use super::consent::Consents;
use super::consent::Gate;
use super::consent::{Objection, Trust};
use super::hook::{Action, Hook, Mode};
use super::hooks_file::Hooks;
use super::host::Lists;
use super::problem::Problem;
use super::surroundings::Surroundings;
use crate::dialect::{Arrival, decode};
use crate::event::{Agent, Event, Kind, Tool, ToolClass, event_subjects, token};
use crate::log::Row;

/// How an observer is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Its command stays up and reads one event a line.
    pub long_lived: bool,
    /// How often an event is tried before it is set aside.
    pub tries: u32,
    /// How long it waits before the second try; then twice as long each time.
    pub wait: Duration,
    /// How long one try may take.
    pub timeout: Duration,
    /// Whether several workers share its events, session by session.
    pub shared: bool,
    /// Where it reads, if the file says.
    pub source: Option<Source>,
    /// Where it starts when it is new, if the file says.
    pub from: Option<Start>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            long_lived: false,
            tries: 5,
            wait: Duration::from_millis(500),
            timeout: Duration::from_mins(1),
            shared: false,
            source: None,
            from: None,
        }
    }
}

/// Where an observer reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The log of this machine's bus.
    Log,
    /// The stream of all buses.
    Nats,
}

/// Where a new observer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With what is recorded from its configuration on.
    Now,
    /// With the first event there is.
    First,
}

/// An HTTP endpoint that events are posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where.
    pub url: String,
    /// What requests are signed with.
    pub secret: Option<SecretPlace>,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// Headers whose value is in an environment variable.
    pub headers_env: Vec<(String, String)>,
}

/// Where a secret is; the file itself is recorded in the log and holds none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In this environment variable.
    Env(String),
    /// In this file.
    File(PathBuf),
}

/// What an observer does with an event.
#[derive(Debug, Clone, Copy)]
pub enum Deed<'a> {
    /// Runs a program for each.
    Command,
    /// Hands it to a program that stays up.
    LongLived,
    /// Posts it.
    Webhook(&'a Webhook),
    /// Keeps it in a log elsewhere.
    Archive(&'a Path),
    /// Tells plugins, which stay up.
    Plugins,
}

/// One observer.
#[derive(Debug, Clone)]
pub struct Observer {
    name: String,
    hooks: Vec<Hook>,
    pub(super) base: PathBuf,
    /// Which plugins of a directory are loaded.
    pub(super) plugins: Lists,
    /// What was agreed to, where that counts.
    consents: Option<Arc<Consents>>,
}

impl Observer {
    /// What its place in the log is kept under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is run.
    pub fn terms(&self) -> &Terms {
        &self.first().terms
    }

    /// What it does.
    pub fn deed(&self) -> Deed<'_> {
        let first = self.first();
        match &first.action {
            Action::Webhook(webhook) => Deed::Webhook(webhook),
            Action::Archive(folder) => Deed::Archive(folder),
            Action::Python(_) => Deed::Plugins,
            _ if first.terms.long_lived => Deed::LongLived,
            Action::Command(_) | Action::Rule(_) | Action::Broken(_) | Action::Unread { .. } => {
                Deed::Command
            }
        }
    }

    /// The entry that wants this row, if any does.
    pub fn wants(&self, row: &Row) -> Option<&Hook> {
        let concerned =
            |hook: &&Hook| hook.on.covers_words(&row.name, &row.kind) && hook.wants_session(row);
        let mut concerned = self.hooks.iter().filter(concerned).peekable();
        concerned.peek()?;
        match heard(row).or_else(|| decided(row)) {
            Some(event) => concerned.find(|hook| hook.is_for(&event)),
            // Rows of our own: no agent, no tool that a filter could look at.
            None => concerned.find(|hook| !hook.has_filters()),
        }
    }

    /// Whether it may want a row whose payload is not here.
    pub fn may_want(&self, row: &Row) -> bool {
        let concerned =
            |hook: &Hook| hook.on.covers_words(&row.name, &row.kind) && hook.wants_session(row);
        self.hooks.iter().any(concerned)
    }

    /// The NATS subjects that can hold what it wants; all of them where that cannot be told.
    pub fn subjects(&self) -> Vec<String> {
        let of_one = |hook: &Hook| match &hook.on {
            EventKey::Name(name) => Some(event_subjects(hook.agent.map(Agent::as_str), name)),
            EventKey::Kind(_) | EventKey::Pattern(_) => None,
        };
        let mut subjects: Option<Vec<String>> = self.hooks.iter().map(of_one).collect();
        if let Some(subjects) = &mut subjects {
            subjects.sort();
            subjects.dedup();
        }
        // The server refuses subjects that overlap, as `*` and an agent's name do.
        match subjects {
            Some(subjects) if self.hooks.iter().all(|hook| hook.agent == self.first().agent) => {
                subjects
            }
            Some(_) | None => vec!["hookbus.>".to_owned()],
        }
    }

    /// Why nothing of it may run before somebody has agreed to it, if so.
    pub fn waits_for_consent(&self, env: &[(OsString, OsString)]) -> Option<String> {
        let place =
            Surroundings { cwd: self.base.clone(), env: env.to_vec(), ..Surroundings::default() };
        self.hooks.iter().find_map(|hook| self.objection(hook, &place))
    }

    /// Why `hook` must not run, if so, found out within its own time.
    pub(super) async fn objection_in_time(
        &self,
        hook: &Hook,
        place: &Surroundings,
    ) -> Option<Objection> {
        self.gate(hook, place)?.objection_within(hook.timeout()).await
    }

    /// The gate before `hook`; none where everything is agreed to.
    pub(super) fn gate<'a>(&'a self, hook: &'a Hook, place: &'a Surroundings) -> Option<Gate<'a>> {
        let (consents, base, lists) = (self.consents.as_ref()?, &self.base, &self.plugins);
        Some(Gate { consents, project: None, base, lists, hook, place })
    }

    /// The same on the spot, before anything else has begun.
    pub(super) fn objection(&self, hook: &Hook, place: &Surroundings) -> Option<String> {
        self.gate(hook, place)?.objection().map(|objection| objection.why)
    }

    pub(super) fn first(&self) -> &Hook {
        &self.hooks[0]
    }
}

/// Where what is known about an observer is kept, in the home it works for.
pub fn observer_folder(home: &Path, name: &str) -> PathBuf {
    home.join("observers").join(token(name))
}

/// The event in a row as it was heard; none for rows of our own making.
pub fn heard(row: &Row) -> Option<Event> {
    let ours = [Kind::Decision.as_str(), Kind::HooksLoaded.as_str()];
    if ours.contains(&row.kind.as_str()) { None } else { read_again(row) }
}

/// A decision, as an event about the same tool of the same agent.
fn decided(row: &Row) -> Option<Event> {
    let class = row.tool_class.as_deref().and_then(ToolClass::parse);
    let tool = row.tool.clone().map(|name| Tool { name, class: class.unwrap_or(ToolClass::Other) });
    let kind = Kind::parse(&row.kind)?;
    Some(Event { name: row.name.clone(), kind, tool, turn: row.turn.clone(), ..read_again(row)? })
}

fn read_again(row: &Row) -> Option<Event> {
    Some(decode(Arrival {
        id: row.id,
        at: row.at,
        agent: row.agent.parse().ok()?,
        wire: Surroundings::recorded_wire(row.context.as_deref().unwrap_or("{}")),
        raw: row.payload.clone(),
        session_hint: Some(row.session.clone()),
    }))
}

impl Hooks {
    /// The observers, in the order they are written.
    pub fn observers(&self) -> Vec<Observer> {
        let mut observers: Vec<Observer> = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.is_observer()) {
            match observers.iter_mut().find(|observer| observer.name == hook.name) {
                Some(observer) => observer.hooks.push(hook.clone()),
                None => observers.push(Observer {
                    name: hook.name.clone(),
                    hooks: vec![hook.clone()],
                    base: self.base.clone(),
                    plugins: self.plugins.clone(),
                    consents: (self.trust == Trust::Nobody).then(|| Arc::clone(&self.consents)),
                }),
            }
        }
        observers
    }

    /// The observer of this name.
    pub fn observer(&self, name: &str) -> Option<Observer> {
        self.observers().into_iter().find(|observer| observer.name == name)
    }

    /// Two observers cannot share a name: their place in the log is kept under it.
    pub(super) fn tell_observers_apart(&mut self) {
        let mut problems = Vec::new();
        for index in 0..self.hooks.len() {
            let (before, rest) = self.hooks.split_at_mut(index);
            let Some(hook) = rest.first_mut().filter(|hook| hook.is_observer()) else { continue };
            let clash = before.iter().any(|other| {
                other.is_observer() && other.name == hook.name && !other.does_the_same(hook)
            });
            if clash {
                let why = format!(
                    "another observer is called `{}` and does something else; give this one a `name` of its own",
                    hook.name
                );
                problems.push(Problem::broken_entry(hook.line, why.clone()));
                hook.action = Action::Broken(why);
            }
        }
        self.problems.extend(problems);
    }
}

impl Hook {
    pub(super) fn is_observer(&self) -> bool {
        self.mode == Mode::Observe && !matches!(self.action, Action::Broken(_))
    }

    fn does_the_same(&self, other: &Self) -> bool {
        let same = match (&self.action, &other.action) {
            (Action::Command(ours), Action::Command(theirs)) => {
                (&ours.text, &ours.env) == (&theirs.text, &theirs.env)
            }
            (Action::Webhook(ours), Action::Webhook(theirs)) => ours == theirs,
            (Action::Archive(ours), Action::Archive(theirs)) => ours == theirs,
            (Action::Python(ours), Action::Python(theirs)) => ours == theirs,
            _ => false,
        };
        same && self.terms == other.terms
    }

    fn wants_session(&self, row: &Row) -> bool {
        self.session.as_ref().is_none_or(|pattern| super::event_key::fits(pattern, &row.session))
    }

    fn has_filters(&self) -> bool {
        self.agent.is_some()
            || !self.tools.is_empty()
            || !self.tool_names.is_empty()
            || self.matcher.is_some()
    }
}
