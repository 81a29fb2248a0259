//! One hook, as configured.

use std::path::PathBuf;
use std::time::Duration;

use super::EventKey;
use super::event_key::fits;
use super::host::Launch;
use super::matcher::Matcher;
use super::observer::{Terms, Webhook};
use super::rule::Rule;
use crate::dialect::Manner;
use crate::event::{Agent, Event, ToolClass};

/// What the agent hears when a hook cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes on as if the hook were not there.
    Allow,
    /// It is refused.
    Block,
}

impl OnFailure {
    /// The word in the file and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Block].into_iter().find(|policy| policy.as_str() == text)
    }
}

/// Whether a hook can change what the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It runs inline and its answer counts.
    Decide,
    /// It only looks on, outside of the agent's time.
    Observe,
}

/// What a hook does.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Rule(Rule),
    Command(Command),
    Python(Python),
    /// An endpoint; observers only.
    Webhook(Webhook),
    /// A log elsewhere; observers only.
    Archive(PathBuf),
    /// The entry is malformed; wherever it would have applied, it has failed.
    Broken(String),
    /// A project's entry that nobody has agreed to: not even read, beyond what it is and what it would run.
    Unread {
        action: &'static str,
        command: Option<String>,
    },
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) text: String,
    pub(super) timeout: Duration,
    pub(super) env: Vec<(String, String)>,
    pub(super) placeholders: Placeholders,
}

/// A Hermes plugin or gateway hook directory, or a directory of such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Python {
    pub(super) folder: String,
    pub(super) timeout: Duration,
    pub(super) launch: Launch,
}

/// Whether `{tool_name}` in a command stands for the tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholders {
    /// In the list form of Hermes' plugin guide.
    Filled,
    /// Everywhere else: braces are braces.
    Literal,
}

/// Something a person configured to run on events.
#[derive(Debug, Clone)]
pub struct Hook {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) on: EventKey,
    pub(super) agent: Option<Agent>,
    /// A session's id, in which `*` stands for anything.
    pub(super) session: Option<String>,
    pub(super) tools: Vec<ToolClass>,
    /// The tool names of the list form's `when: {tools: […]}`.
    pub(super) tool_names: Vec<String>,
    pub(super) matcher: Option<Matcher>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) mode: Mode,
    /// How it is run, if it is an observer.
    pub(super) terms: Terms,
    pub(super) sequential: bool,
    pub(super) action: Action,
    /// The entry as it is written, as JSON: what somebody agrees to who agrees to a project's.
    pub(super) written: String,
    /// Whether it stands in a project's file.
    pub(super) of_project: bool,
}

/// A hook as `hookbus hooks list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSummary {
    /// Its name.
    pub name: String,
    /// The key it stands under.
    pub event: String,
    /// `rule`, `command`, `python`, `webhook`, `archive` or `broken`.
    pub action: &'static str,
    /// The command, the address or the directory.
    pub command: Option<String>,
    /// `decide` or `observe`.
    pub mode: &'static str,
    /// What happens when it fails, as far as the file says.
    pub on_failure: Option<&'static str>,
    /// Where in the file it stands.
    pub line: usize,
}

impl Hook {
    /// What it is called in the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it decides or looks on.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it is for this event.
    pub fn is_for(&self, event: &Event) -> bool {
        self.on.covers(event)
            && self.agent.is_none_or(|agent| agent == event.agent)
            && self.session.as_ref().is_none_or(|pattern| fits(pattern, &event.session))
            && (self.tools.is_empty()
                || event.tool.as_ref().is_some_and(|t| self.tools.contains(&t.class)))
            && (self.tool_names.is_empty()
                || event.tool.as_ref().is_some_and(|t| self.tool_names.contains(&t.name)))
            && self.matcher.as_ref().is_none_or(|matcher| matcher.fits(event))
    }

    /// Whether it runs the same command, in the same way, on the same events.
    pub(super) fn is_same_command(&self, other: &Self) -> bool {
        let (Action::Command(ours), Action::Command(theirs)) = (&self.action, &other.action) else {
            return false;
        };
        let matcher = |hook: &Self| hook.matcher.as_ref().map(|matcher| format!("{matcher:?}"));
        (&ours.text, &ours.env, &self.name, &self.on)
            == (&theirs.text, &theirs.env, &other.name, &other.on)
            && (self.agent, &self.session, &self.tools, &self.tool_names)
                == (other.agent, &other.session, &other.tools, &other.tool_names)
            && (self.mode, self.sequential) == (other.mode, other.sequential)
            && matcher(self) == matcher(other)
    }

    /// Whether something outside of this process has to run for it.
    pub fn runs_outside(&self) -> bool {
        matches!(self.action, Action::Command(_) | Action::Python(_))
    }

    /// Whether it runs a command.
    pub const fn is_command(&self) -> bool {
        matches!(self.action, Action::Command(_))
    }

    /// How long it may take; no time where nothing outside runs.
    pub(super) const fn timeout(&self) -> Duration {
        match &self.action {
            Action::Command(command) => command.timeout,
            Action::Python(python) => python.timeout,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => Duration::ZERO,
        }
    }

    /// How its command is launched: as the agent would whose name of the event it stands under. What an
    /// observer runs is beside its own file: the directory of an event may be any bus' word.
    pub(super) fn manner(&self) -> Manner {
        match (self.on.manner(), self.mode) {
            (Manner::Hermes, Mode::Observe) => Manner::Common,
            (manner, Mode::Decide | Mode::Observe) => manner,
        }
    }

    /// What it runs, as written; of one that runs nothing, what it is.
    pub(super) fn what_runs(&self) -> String {
        let HookSummary { action, command, name, .. } = self.summary();
        command.unwrap_or_else(|| format!("{action} {name}"))
    }

    /// Whether it is a directory of plugins.
    pub const fn is_plugin(&self) -> bool {
        matches!(self.action, Action::Python(_))
    }

    /// Whether it stands in a project's file.
    pub const fn is_of_project(&self) -> bool {
        self.of_project
    }

    /// Whether its entry is malformed.
    pub const fn is_broken(&self) -> bool {
        matches!(self.action, Action::Broken(_))
    }

    /// Whether an event of `agent` that nobody can read must be refused on its account.
    pub(super) fn guards(&self, agent: Agent) -> bool {
        self.mode == Mode::Decide
            && self.on_failure == Some(OnFailure::Block)
            && self.agent.is_none_or(|own| own == agent)
            && self.on.concerns(agent)
    }

    /// How it is shown to people.
    pub fn summary(&self) -> HookSummary {
        let (action, command) = match &self.action {
            Action::Rule(_) => ("rule", None),
            Action::Command(command) => ("command", Some(command.text.clone())),
            Action::Python(python) => ("python", Some(python.folder.clone())),
            Action::Webhook(webhook) => ("webhook", Some(webhook.url.clone())),
            Action::Archive(folder) => ("archive", Some(folder.to_string_lossy().into_owned())),
            Action::Broken(_) => ("broken", None),
            Action::Unread { action, command } => (*action, command.clone()),
        };
        HookSummary {
            name: self.name.clone(),
            event: self.on.to_string(),
            action,
            command,
            mode: match self.mode {
                Mode::Decide => "decide",
                Mode::Observe => "observe",
            },
            on_failure: self.on_failure.map(OnFailure::as_str),
            line: self.line,
        }
    }
}
