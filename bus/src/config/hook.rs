//! One hook, as configured: the events it is for, what it does, and what happens when it fails. Whether it
//! may run is decided in `consent/`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::event_key::EventKey;
use super::examples::Example;
use super::matcher::HookMatcher;
use super::observer::{ObserverSettings, Webhook};
use super::problem::Place;
use crate::dialect::{Common, Dialect, PatternFailure, dialect_of};
use crate::event::{Agent, Event, OnFailure, ToolClass};
use crate::rule::Rule;

/// Whether a hook can change what the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It runs inline and its answer counts.
    Decide,
    /// It runs inline and its answer is recorded, but has no effect.
    Shadow,
    /// The agent does not wait for it, and it cannot answer.
    Observe,
}

/// What a hook does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Evaluates a rule in process.
    Rule(Box<Rule>),
    /// Runs a program.
    Command(Command),
    /// Calls Hermes plugins.
    Python(Python),
    /// Posts to an endpoint; observers only.
    Webhook(Webhook),
    /// Appends to a log in another directory; observers only.
    Archive(PathBuf),
    /// Keeps the projections of this database up to date; observers only.
    Analytics(PathBuf),
    /// The entry is malformed: at every event it would be for, it counts as failed. The text says why.
    Broken(String),
    /// An entry of a project that the user has not approved. Only its key and its filters were read.
    Unapproved {
        /// Which action it has.
        action: &'static str,
        /// What it would run.
        command: Option<String>,
    },
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command line.
    pub text: String,
    /// How long one run may take.
    pub timeout: Duration,
    /// Variables that the entry sets.
    pub env: Vec<(String, String)>,
    /// Variables that it gets as the agent has them.
    pub pass_env: Vec<String>,
    /// Whether placeholders in the line are filled.
    pub placeholders: Placeholders,
    /// More files that an approval covers, as written.
    pub files: Vec<String>,
}

/// A Hermes plugin or gateway hook directory, or a directory of such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The directory, as written.
    pub folder: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// What its processes are started with.
    pub launch: PythonLaunch,
    /// More files that an approval covers, as written.
    pub files: Vec<String>,
}

/// What the process of a plugin is started with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PythonLaunch {
    /// The Python to run it with.
    pub interpreter: OsString,
    /// How many bytes of memory it may use.
    pub memory: u64,
    /// Variables that it gets as the agent has them.
    pub pass_env: Vec<String>,
}

/// Whether `{tool_name}` in a command is replaced by the tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholders {
    /// Yes: the list form of Hermes' plugin guide.
    Filled,
    /// No: braces are braces.
    Literal,
}

/// Something the user configured to run on events.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Its name in the log.
    pub name: String,
    /// Its line in the file.
    pub line: usize,
    /// The events it is for.
    pub on: EventKey,
    /// The only agent it is for.
    pub agent: Option<Agent>,
    /// The only sessions it is for: an id in which `*` stands for anything.
    pub session: Option<String>,
    /// The only tool classes it is for; all if empty.
    pub tools: Vec<ToolClass>,
    /// The only tool names it is for (list form's `when: {tools: […]}`); all if empty.
    pub tool_names: Vec<String>,
    /// Its `matcher:`.
    pub matcher: Option<HookMatcher>,
    /// What happens when it fails, if the file says so.
    pub on_failure: Option<OnFailure>,
    /// Whether it decides, observes, or would decide if it were not in shadow mode.
    pub mode: Mode,
    /// How it is run, if it is an observer.
    pub observer: ObserverSettings,
    /// Whether it gets the tool input as the hook before it left it.
    pub sequential: bool,
    /// What it does.
    pub action: Action,
    /// The entry as it is written, as JSON: what the user approves.
    pub written: String,
    /// Whether it is in a project's file.
    pub of_project: bool,
    /// Where in the file it is.
    pub place: Place,
    /// The pack that it is from.
    pub pack: Option<String>,
    /// What it must do, if it is a rule.
    pub examples: Vec<Example>,
}

/// A hook as `hookbus hooks list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSummary {
    /// Its name.
    pub name: String,
    /// The event key that it is under.
    pub event: String,
    /// `rule`, `command`, `python`, `webhook`, `archive` or `broken`.
    pub action: &'static str,
    /// The command, the address or the directory.
    pub command: Option<String>,
    /// `decide`, `shadow` or `observe`.
    pub mode: &'static str,
    /// What happens when it fails, if the file says so.
    pub on_failure: Option<&'static str>,
    /// Its line in the file.
    pub line: usize,
    /// The pack that it is from.
    pub pack: Option<String>,
}

impl Hook {
    /// Whether it is for this event. It is if its matcher fails: [`Self::matcher_failure`].
    pub fn is_for(&self, event: &Event) -> bool {
        self.not_for(event).is_none()
    }

    /// Why it cannot be found out whether its matcher matches, if so. The hook then counts as failed.
    pub fn matcher_failure(&self, event: &Event) -> Option<PatternFailure> {
        let matcher = self.matcher.as_ref().filter(|matcher| matcher.can_fail())?;
        matcher.matches(&self.on, event).err()
    }

    /// Whether it can be for an event of `agent`.
    pub(crate) fn concerns(&self, agent: Agent) -> bool {
        self.agent.is_none_or(|own| own == agent) && self.on.concerns(agent)
    }

    /// The dialect that its command is launched and read by, at an event of `agent`: the agent's own
    /// under one of its event names, else [`Common`].
    pub fn dialect(&self, agent: Agent) -> &'static dyn Dialect {
        match (self.mode, agent) {
            // Hermes resolves relative programs against the agent's working directory. That may be on another
            // machine, so an observer's programs are beside its hooks file.
            (Mode::Observe, Agent::Hermes) => &Common,
            (Mode::Observe | Mode::Decide | Mode::Shadow, _) => self.on.dialect(agent),
        }
    }

    /// The dialects that it can follow, whatever the event; at least one.
    pub fn possible_dialects(&self) -> Vec<&'static dyn Dialect> {
        let agents =
            Agent::ALL.into_iter().filter(|agent| self.agent.is_none_or(|it| it == *agent));
        // A decision hook never runs for an agent that is only recorded.
        let can_run = |agent: Agent| self.mode == Mode::Observe || dialect_of(agent).is_answered();
        let own: Vec<&'static dyn Dialect> = agents
            .filter(|agent| self.on.is_name_of(*agent) && can_run(*agent))
            .map(|agent| self.dialect(agent))
            .collect();
        if own.is_empty() { vec![&Common] } else { own }
    }

    /// Whether it runs the same command, in the same way, on the same events.
    pub(super) fn is_same_command(&self, other: &Self) -> bool {
        let (Action::Command(ours), Action::Command(theirs)) = (&self.action, &other.action) else {
            return false;
        };
        let matcher = |hook: &Self| hook.matcher.as_ref().map(|matcher| matcher.text().to_owned());
        (&ours.text, &ours.env, &ours.pass_env, &self.name, &self.on)
            == (&theirs.text, &theirs.env, &theirs.pass_env, &other.name, &other.on)
            && (self.agent, &self.session, &self.tools, &self.tool_names)
                == (other.agent, &other.session, &other.tools, &other.tool_names)
            && (self.mode, self.sequential) == (other.mode, other.sequential)
            && matcher(self) == matcher(other)
    }

    /// Whether a program or a plugin has to run for it.
    pub const fn runs_outside(&self) -> bool {
        matches!(self.action, Action::Command(_) | Action::Python(_))
    }

    /// Whether it runs a command.
    pub const fn is_command(&self) -> bool {
        matches!(self.action, Action::Command(_))
    }

    /// Whether it calls plugins.
    pub const fn is_plugin(&self) -> bool {
        matches!(self.action, Action::Python(_))
    }

    /// Whether its entry is malformed.
    pub const fn is_broken(&self) -> bool {
        matches!(self.action, Action::Broken(_))
    }

    /// Whether the agent waits for it: it decides, or is in shadow mode.
    pub fn is_asked(&self) -> bool {
        matches!(self.mode, Mode::Decide | Mode::Shadow)
    }

    /// Whether its answer is recorded and has no effect.
    pub fn is_shadow(&self) -> bool {
        self.mode == Mode::Shadow
    }

    /// Puts a decision hook into shadow mode. An observer stays one.
    pub(super) const fn put_in_shadow(&mut self) {
        match self.mode {
            Mode::Decide | Mode::Shadow => self.mode = Mode::Shadow,
            Mode::Observe => {}
        }
    }

    /// Whether its entry names a `mode`, so that the one of the whole file does not apply.
    pub(super) fn names_mode(&self) -> bool {
        let written: Value = serde_json::from_str(&self.written).unwrap_or_default();
        written.get("mode").is_some_and(|mode| !mode.is_null())
    }

    /// Whether it is an observer that can run.
    pub fn is_observer(&self) -> bool {
        self.mode == Mode::Observe && !self.is_broken()
    }

    /// How long it may take; zero if nothing runs outside of this process.
    pub const fn timeout(&self) -> Duration {
        match &self.action {
            Action::Command(command) => command.timeout,
            Action::Python(python) => python.timeout,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => Duration::ZERO,
        }
    }

    /// The variables that its programs get as the agent has them.
    pub fn pass_env(&self) -> &[String] {
        match &self.action {
            Action::Command(command) => &command.pass_env,
            Action::Python(python) => &python.launch.pass_env,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => &[],
        }
    }

    /// What it runs, as written; its action and name if it runs nothing.
    pub(crate) fn what_runs(&self) -> String {
        let HookSummary { action, command, name, .. } = self.summary();
        command.unwrap_or_else(|| format!("{action} {name}"))
    }

    /// Whether an unreadable event of `agent` must be refused because of it.
    pub(crate) fn refuses_unreadable(&self, agent: Agent) -> bool {
        self.mode == Mode::Decide
            && self.on_failure == Some(OnFailure::Block)
            && self.concerns(agent)
    }

    /// How it is shown to the user.
    pub fn summary(&self) -> HookSummary {
        let (action, command) = match &self.action {
            Action::Rule(_) => ("rule", None),
            Action::Command(command) => ("command", Some(command.text.clone())),
            Action::Python(python) => ("python", Some(python.folder.clone())),
            Action::Webhook(webhook) => ("webhook", Some(webhook.url.clone())),
            Action::Archive(folder) => ("archive", Some(folder.to_string_lossy().into_owned())),
            Action::Analytics(file) => ("analytics", Some(file.to_string_lossy().into_owned())),
            Action::Broken(_) => ("broken", None),
            Action::Unapproved { action, command } => (*action, command.clone()),
        };
        HookSummary {
            name: self.name.clone(),
            event: self.on.to_string(),
            action,
            command,
            mode: match self.mode {
                Mode::Decide => "decide",
                Mode::Shadow => "shadow",
                Mode::Observe => "observe",
            },
            on_failure: self.on_failure.map(OnFailure::as_str),
            line: self.line,
            pack: self.pack.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::HooksFile;

    fn parse(text: &str) -> HooksFile {
        HooksFile::parse(text, Path::new("/")).expect("a file")
    }

    fn modes(file: &HooksFile) -> Vec<&'static str> {
        file.hooks.iter().map(|hook| hook.summary().mode).collect()
    }

    const ENTRIES: &str = "hooks: { tool.before: [
        { rule: { block: a } },
        { rule: { block: b }, mode: decide },
        { rule: { block: c }, mode: shadow },
        { rule: { block: d }, mode: null },
        { command: e, mode: observe, name: e } ] }\n";

    #[test]
    fn a_file_in_shadow_mode_leaves_the_entries_that_name_a_mode() {
        let plain = parse(ENTRIES);
        assert_eq!(modes(&plain), ["decide", "decide", "shadow", "decide", "observe"]);
        for text in [format!("{ENTRIES}shadow: true\n"), format!("shadow: true\n{ENTRIES}")] {
            let file = parse(&text);
            assert!(file.problems.is_empty(), "{:?}", file.problems);
            assert_eq!(modes(&file), ["shadow", "decide", "shadow", "shadow", "observe"]);
            assert_eq!(file.settings["shadow"], true);
            let written = |file: &HooksFile| -> Vec<String> {
                file.hooks.iter().map(|hook| hook.written.clone()).collect()
            };
            assert_eq!(written(&file), written(&plain), "approvals of the entries stay");
        }
        assert_eq!(modes(&parse(&format!("{ENTRIES}shadow: false\n"))), modes(&plain));
    }

    #[test]
    fn a_mistake_about_shadow_mode_enforces_unless_there_was_a_good_version() {
        let good = "shadow: true\nhooks: { tool.before: [{ name: a, rule: { block: a } }] }\n";
        for setting in ["shadow: maybe", "shadow:", "shadw: true"] {
            let text = good.replace("shadow: true", setting);
            let file = parse(&text);
            assert_eq!((modes(&file), file.has_mistakes()), (vec!["decide"], true), "{setting}");
            let merged = file.with_last_good(&text, &parse(good), &|_, _| true);
            assert_eq!(modes(&merged), ["shadow"], "{setting}");
        }
        let good = "hooks: { tool.before: [{ name: a, mode: shadow, rule: { block: a } }] }\n";
        let text = good.replace("mode: shadow", "mode: shadw");
        let file = parse(&text);
        assert_eq!((modes(&file), file.has_mistakes()), (vec!["decide"], true));
        assert!(file.problems[0].message.contains("`decide` (the default), `shadow` or `observe`"));
        let merged = file.with_last_good(&text, &parse(good), &|_, _| true);
        assert_eq!(modes(&merged), ["shadow"]);
    }

    #[test]
    fn a_hook_in_shadow_mode_takes_no_keys_of_observers() {
        let observer = "hooks: { tool.before: [{ mode: observe, name: a, command: a, tries: 3 }] }";
        assert!(!parse(observer).has_mistakes(), "{:?}", parse(observer).problems);
        assert!(parse(&observer.replace("observe", "shadow")).has_mistakes());
        let webhook = "hooks: { tool.before: [{ mode: shadow, webhook: 'https://a.example' }] }";
        assert!(parse(webhook).hooks[0].is_broken());
    }
}
