//! Reading one entry of a hooks file. A mistake is a problem that says what to write instead. What can be read of
//! the entry counts all the same; an entry that cannot be used becomes a broken hook, which counts as failed
//! wherever it would have applied. `last_good.rs` replaces both by the last good version, where there is one.

use std::path::PathBuf;
use std::time::Duration;

use super::event_key::EventKey;
use super::examples::{self, Example};
use super::hook::{Action, Command, Hook, Mode, Placeholders, Python, PythonLaunch};
use super::matcher::{EntryTrust, HookMatcher};
use super::observer::ObserverSettings;
use super::observer_entry::{self, KEYS as OBSERVER_KEYS, analytics, archive, webhook};
use super::problem::{Place, Problem, Reach, did_you_mean, hint};
use super::rule;
use super::yaml::{Node, Pair};
use crate::event::{Agent, OnFailure, ToolClass, UnknownAgent};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
const LONGEST_TIMEOUT: Duration = Duration::from_mins(5);

/// The memory limit of one plugin in MiB, if the entry sets none.
const DEFAULT_MEMORY: u64 = 1024;

const KEYS: [&str; 21] = [
    "session",
    "name",
    "agent",
    "tool",
    "matcher",
    "rule",
    "command",
    "python",
    "interpreter",
    "memory",
    "timeout",
    "on_failure",
    "fail_closed",
    "mode",
    "env",
    "pass_env",
    "files",
    "sequential",
    "description",
    "event",
    "when",
];

/// The keys that say what a hook does.
const ACTIONS: [&str; 6] = ["webhook", "archive", "analytics", "command", "rule", "python"];

/// Where an entry comes from, and how much of it may be read.
#[derive(Debug, Clone)]
pub(super) struct EntrySource {
    /// The directory of the file.
    pub(super) base: PathBuf,
    /// Of an entry that the user has not approved, as little as possible is read.
    pub(super) trust: EntryTrust,
}

/// Reads the entry at `place`, for the events of `on`.
pub(super) fn read(
    node: &Node,
    on: &EventKey,
    place: &Place,
    source: &EntrySource,
    problems: &mut Vec<Problem>,
) -> Option<Hook> {
    let Some(pairs) = node.pairs() else {
        problems.push(Problem::broken_entry(
            node.line,
            "a hook is a mapping; write `- command: ./script.sh` or `- rule: { … }`",
        ));
        return None;
    };
    // The problems of an entry that is not approved are reported when the user is asked to approve it.
    let mut unreported = Vec::new();
    let problems = if source.trust == EntryTrust::Untrusted { &mut unreported } else { problems };
    let mut entry = EntryReader { pairs, line: node.line, source, problems };
    let name = entry.name(on, place.number());
    let mut hook = Hook {
        line: node.line,
        on: on.clone(),
        agent: None,
        session: None,
        tools: Vec::new(),
        tool_names: Vec::new(),
        matcher: None,
        on_failure: entry.on_failure(),
        mode: entry.mode(),
        observer: ObserverSettings::default(),
        sequential: entry.flag("sequential").unwrap_or(false),
        action: Action::Broken(String::new()),
        written: node.to_json().to_string(),
        of_project: false,
        place: place.clone(),
        pack: None,
        examples: Vec::new(),
        name,
    };
    if source.trust == EntryTrust::Untrusted {
        drop(entry.filters(&mut hook));
        hook.action = entry.unread();
        return Some(hook);
    }
    entry.unknown_keys();
    // From here on a mistake breaks the entry. The filters that could be read stay: a broken hook that
    // blocks on failure must not block more than it was meant to.
    let filters = entry.filters(&mut hook);
    if hook.mode == Mode::Observe {
        let timeout = entry.timeout();
        hook.observer = observer_entry::settings(&mut entry, timeout);
    }
    hook.action = match filters.and_then(|()| entry.action(&hook)) {
        Ok(action) => action,
        Err(problem) => {
            let why = problem.to_string();
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            Action::Broken(why)
        }
    };
    match entry_examples(pairs, &hook) {
        Ok(examples) => hook.examples = examples,
        Err(problem) => problems.push(Problem { reach: Reach::Example, ..problem }),
    }
    Some(hook)
}

fn entry_examples(pairs: &[Pair], hook: &Hook) -> Result<Vec<Example>, Problem> {
    let Action::Rule(rule) = &hook.action else { return Ok(Vec::new()) };
    let written = pairs.iter().find(|pair| pair.key == "rule").and_then(|pair| pair.value.pairs());
    let written = written.into_iter().flatten().find(|pair| pair.key == "examples");
    written.map_or(Ok(Vec::new()), |pair| examples::read(&pair.value, hook, rule))
}

/// The mistake of a key that means nothing.
fn unknown_key(pair: &Pair) -> Option<Problem> {
    let known = || KEYS.into_iter().chain(OBSERVER_KEYS);
    if known().any(|key| key == pair.key) || pair.key == "failClosed" {
        return None;
    }
    let hint = hint(&pair.key, known(), "; remove it");
    Some(Problem::broken_entry(pair.line, format!("`{}` means nothing here{hint}", pair.key)))
}

/// An entry while it is read.
pub(super) struct EntryReader<'a> {
    pairs: &'a [Pair],
    line: usize,
    source: &'a EntrySource,
    problems: &'a mut Vec<Problem>,
}

impl EntryReader<'_> {
    pub(super) fn get(&self, key: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.key == key && !pair.value.is_null())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|pair| pair.value.text())
    }

    fn remark(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem::remark(line, message));
    }

    /// A mistake that leaves the rest of the entry usable.
    pub(super) fn mistake(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem::broken_entry(line, message));
    }

    fn name(&self, on: &EventKey, index: usize) -> String {
        let shortened = |command: String| command.chars().take(80).collect();
        self.text("name")
            .or_else(|| self.text("command").map(shortened))
            .or_else(|| self.text("python").map(shortened))
            .or_else(|| self.get("analytics").map(|_| "analytics".to_owned()))
            .unwrap_or_else(|| format!("{on}#{index}"))
    }

    fn unknown_keys(&mut self) {
        for pair in self.pairs {
            if let Some(problem) = unknown_key(pair) {
                self.problems.push(problem);
            }
        }
    }

    /// The misspelled key of an entry that says nothing else about what to do.
    fn misspelled_action(&self) -> Option<Problem> {
        let known = || KEYS.into_iter().chain(OBSERVER_KEYS);
        let is_action = |pair: &&Pair| {
            did_you_mean(&pair.key, known()).is_some_and(|meant| ACTIONS.contains(&meant))
        };
        self.pairs.iter().filter(is_action).find_map(unknown_key)
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let pair = self.get(key)?;
        let (flag, line) = (pair.value.flag(), pair.line);
        if flag.is_none() {
            self.mistake(
                line,
                format!("`{key}` is a switch; write `{key}: true` or `{key}: false`"),
            );
        }
        flag
    }

    fn on_failure(&mut self) -> Option<OnFailure> {
        let empty = self.pairs.iter().find(|pair| pair.key == "on_failure" && pair.value.is_null());
        if let Some(line) = empty.map(|pair| pair.line) {
            self.mistake(
                line,
                "`on_failure` is `allow` or `block`; without a value it counts as `block`",
            );
            return Some(OnFailure::Block);
        }
        if let Some(pair) = self.get("on_failure") {
            let (read, line) =
                (pair.value.text().and_then(|text| OnFailure::parse(&text)), pair.line);
            if read.is_none() {
                self.mistake(
                    line,
                    "`on_failure` is `allow` or `block`; without an earlier version it counts as `block`",
                );
            }
            return read.or(Some(OnFailure::Block));
        }
        // A mistyped `on_failure` was meant to say something: the strict reading is the safe one.
        let known = || KEYS.into_iter().chain(OBSERVER_KEYS);
        let is_meant = |pair: &Pair| {
            !known().any(|key| key == pair.key)
                && matches!(did_you_mean(&pair.key, known()), Some("on_failure" | "fail_closed"))
        };
        if self.pairs.iter().any(is_meant) {
            return Some(OnFailure::Block);
        }
        // Hermes' key for the same, in both of its spellings.
        let is_closed = |pair: &&Pair| ["fail_closed", "failClosed"].contains(&pair.key.as_str());
        let pair = self.pairs.iter().find(is_closed)?;
        let (closed, line) = (pair.value.flag(), pair.line);
        if closed.is_none() {
            self.mistake(
                line,
                "`fail_closed` is a switch; without an earlier version it counts as `true`",
            );
        }
        closed.unwrap_or(true).then_some(OnFailure::Block)
    }

    fn mode(&mut self) -> Mode {
        match self.get("mode").map(|pair| (pair.value.text(), pair.line)) {
            None => Mode::Decide,
            Some((Some(text), _)) if text == "decide" => Mode::Decide,
            Some((Some(text), _)) if text == "shadow" => Mode::Shadow,
            Some((Some(text), _)) if text == "observe" => Mode::Observe,
            Some((_, line)) => {
                self.mistake(line, "`mode` is `decide` (the default), `shadow` or `observe`");
                Mode::Decide
            }
        }
    }

    /// Reads all filters, also behind a mistake: a broken hook must not block more than it was meant to.
    fn filters(&mut self, hook: &mut Hook) -> Result<(), Problem> {
        let mut first_error = Ok(());
        let mut keep = |result: Result<(), Problem>| {
            if first_error.is_ok() {
                first_error = result;
            }
        };
        if let Some(pair) = self.get("agent") {
            let agent = pair.value.text().unwrap_or_default().parse::<Agent>();
            hook.agent = agent.as_ref().ok().copied();
            let broken = |error: UnknownAgent| Problem::broken_entry(pair.line, error.to_string());
            keep(agent.map(drop).map_err(broken));
        }
        if let Some(pair) = self.get("session") {
            hook.session = pair.value.text().filter(|session| !session.trim().is_empty());
            let why =
                "`session` is one id, in which `*` stands for anything; write `session: 2026*`";
            let session = hook.session.as_ref().map(drop);
            keep(session.ok_or_else(|| Problem::broken_entry(pair.line, why)));
        }
        if let Some(pair) = self.get("tool") {
            keep(tool_classes(pair).map(|tools| hook.tools = tools));
        }
        if let Some(pair) = self.get("when") {
            keep(list_form_tools(pair).map(|tools| hook.tool_names = tools));
        }
        let matcher = self.matcher(hook);
        keep(matcher);
        first_error
    }

    fn matcher(&mut self, hook: &mut Hook) -> Result<(), Problem> {
        let Some(pair) = self.get("matcher") else { return Ok(()) };
        let line = pair.line;
        let Some(text) = pair.value.text() else {
            return Err(Problem::broken_entry(
                line,
                "`matcher` is a regex; write `matcher: 'write_.*'`",
            ));
        };
        let parsed = HookMatcher::parse(&hook.on, hook.agent, &text, self.source.trust);
        let (matcher, remarks) =
            parsed.map_err(|why| Problem::broken_entry(line, why.to_string()))?;
        hook.matcher = matcher;
        for remark in remarks {
            self.remark(line, remark);
        }
        Ok(())
    }

    fn unread(&self) -> Action {
        let actions = ["command", "python", "webhook", "archive", "analytics"];
        match actions.into_iter().find(|action| self.get(action).is_some()) {
            Some(action) => {
                let command = self.text(action).map(|text| text.trim().to_owned());
                Action::Unapproved { action, command }
            }
            None => Action::Unapproved { action: "rule", command: None },
        }
    }

    fn action(&mut self, hook: &Hook) -> Result<Action, Problem> {
        if hook.is_asked() {
            observer_entry::refuse_observer_keys(self)?;
        }
        let written: Vec<&Pair> = ACTIONS.iter().filter_map(|action| self.get(action)).collect();
        if let ([first, second, ..], true) = (written.as_slice(), hook.mode == Mode::Observe) {
            let why = format!(
                "an observer does one thing, not both `{}` and `{}`; write two hooks",
                first.key, second.key
            );
            return Err(Problem::broken_entry(second.line, why));
        }
        let runs_program = self.get("command").is_some() || self.get("python").is_some();
        if let Some(pair) = self.get("pass_env").filter(|_| !runs_program) {
            let why =
                "`pass_env` is for hooks that run something: `command` or `python`; remove it";
            return Err(Problem::broken_entry(pair.line, why));
        }
        if let Some(pair) = self.get("webhook") {
            return webhook(pair, &self.source.base).map(Action::Webhook);
        }
        if let Some(pair) = self.get("archive") {
            return archive(pair, &self.source.base).map(Action::Archive);
        }
        if let Some(pair) = self.get("analytics") {
            return analytics(pair, hook, &self.source.base).map(Action::Analytics);
        }
        if self.get("python").is_some() {
            return self.python();
        }
        match (self.get("rule"), self.get("command")) {
            (Some(pair), None) if hook.mode == Mode::Observe => Err(Problem::broken_entry(
                pair.line,
                "a rule decides, it cannot observe; drop `mode: observe` or write a `command`",
            )),
            (Some(pair), None) => {
                rule::read(&pair.value, &hook.name).map(|rule| Action::Rule(Box::new(rule)))
            }
            (None, Some(_)) => self.command(hook).map(Action::Command),
            (Some(_), Some(second)) => Err(Problem::broken_entry(
                second.line,
                "a hook is a `rule` or a `command`, not both; write two hooks",
            )),
            (None, None) => Err(self.misspelled_action().unwrap_or_else(|| {
                let why = "this hook does nothing; add a `command: ./script.sh`, a `rule: { … }` or a `python: ./directory`";
                Problem::broken_entry(self.line, why)
            })),
        }
    }

    fn command(&mut self, hook: &Hook) -> Result<Command, Problem> {
        let text = self.text("command").map(|text| text.trim().to_owned()).unwrap_or_default();
        let line = self.get("command").map_or(self.line, |pair| pair.line);
        if text.is_empty() {
            return Err(Problem::broken_entry(line, "`command` is empty; write a program to run"));
        }
        // Under a name of several agents it is enough that one of them can launch it.
        let checks = hook.possible_dialects().into_iter().map(|dialect| dialect.check_line(&text));
        let checked = checks.reduce(Result::or).unwrap_or(Ok(()));
        checked.map_err(|why| Problem::broken_entry(line, why.to_string()))?;
        // Only the list form of Hermes' plugin guide names its event inside the entry.
        let placeholders =
            if self.get("event").is_some() { Placeholders::Filled } else { Placeholders::Literal };
        let (timeout, env, files) = (self.timeout(), self.env()?, self.files()?);
        let pass_env = self.pass_env()?;
        Ok(Command { text, timeout, env, pass_env, placeholders, files })
    }

    fn python(&mut self) -> Result<Action, Problem> {
        let pair = self.get("python").map(|pair| (pair.value.text(), pair.line));
        let (text, line) = pair.unwrap_or((None, self.line));
        if ["rule", "command"].iter().any(|other| self.get(other).is_some()) {
            return Err(Problem::broken_entry(
                line,
                "a hook is a `rule`, a `command` or a `python` directory; write two hooks",
            ));
        }
        let Some(folder) = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        else {
            return Err(Problem::broken_entry(
                line,
                "`python` is a directory with a plugin.yaml or HOOK.yaml; write `python: ~/.hermes/plugins/x`",
            ));
        };
        let interpreter = self.text("interpreter").map_or_else(|| "python3".into(), Into::into);
        let (memory, pass_env) = (self.memory() << 20, self.pass_env()?);
        let launch = PythonLaunch { interpreter, memory, pass_env };
        let (timeout, files) = (self.timeout(), self.files()?);
        Ok(Action::Python(Python { folder, timeout, launch, files }))
    }

    /// More files that an approval covers.
    fn files(&self) -> Result<Vec<String>, Problem> {
        let Some(pair) = self.get("files") else { return Ok(Vec::new()) };
        pair.value.texts().ok_or_else(|| {
            Problem::broken_entry(
                pair.line,
                "`files` is a list of paths that your approval covers; write `files: [./lib.py]`",
            )
        })
    }

    /// Variables that its programs get as the agent has them.
    fn pass_env(&self) -> Result<Vec<String>, Problem> {
        let Some(pair) = self.get("pass_env") else { return Ok(Vec::new()) };
        let is_name = |name: &String| {
            !name.is_empty() && !name.contains(['=', '*', '\0']) && !name.starts_with("HOOKBUS_")
        };
        let names = pair.value.texts().filter(|names| names.iter().all(is_name));
        names.ok_or_else(|| {
            Problem::broken_entry(
                pair.line,
                "`pass_env` lists variables that the hook gets as the agent has them; write `pass_env: [PATH, VIRTUAL_ENV]`",
            )
        })
    }

    fn memory(&mut self) -> u64 {
        let written = self.get("memory").map(|pair| (pair.value.number(), pair.line));
        match written {
            None => DEFAULT_MEMORY,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked on this line"
            )]
            Some((Some(mebibytes), _)) if (64.0..=1e6).contains(&mebibytes) => mebibytes as u64,
            Some((_, line)) => {
                self.mistake(
                    line,
                    "`memory` is a number of MiB from 64 on; write `memory: 512` (1024 counts without an earlier version)",
                );
                DEFAULT_MEMORY
            }
        }
    }

    /// As in Hermes: seconds, 60 by default, 300 at most; an invalid value is 60.
    fn timeout(&mut self) -> Duration {
        let Some(pair) = self.get("timeout") else { return DEFAULT_TIMEOUT };
        let (number, line) = (pair.value.number(), pair.line);
        match number.map(Duration::try_from_secs_f64) {
            Some(Ok(timeout)) if timeout > LONGEST_TIMEOUT => {
                self.remark(line, "a hook gets 300 seconds at most; write `timeout: 300` or less");
                LONGEST_TIMEOUT
            }
            Some(Ok(timeout)) if !timeout.is_zero() => timeout,
            Some(_) | None => {
                self.mistake(
                    line,
                    "`timeout` is a number of seconds; write `timeout: 5` (60 counts without an earlier version)",
                );
                DEFAULT_TIMEOUT
            }
        }
    }

    fn env(&self) -> Result<Vec<(String, String)>, Problem> {
        let Some(pair) = self.get("env") else { return Ok(Vec::new()) };
        let malformed = || {
            Problem::broken_entry(
                pair.line,
                "`env` maps names to texts; write `env: { NAME: value }`",
            )
        };
        let pairs = pair.value.pairs().ok_or_else(malformed)?;
        pairs
            .iter()
            .map(|pair| {
                let flag = pair.value.flag().map(|flag| flag.to_string());
                let value = pair.value.text().or(flag).ok_or_else(malformed)?;
                Ok((pair.key.clone(), value))
            })
            .collect()
    }
}

fn tool_classes(pair: &Pair) -> Result<Vec<ToolClass>, Problem> {
    let classes = || ToolClass::ALL.iter().map(|class| class.as_str());
    let texts = pair.value.texts().unwrap_or_default();
    if texts.is_empty() {
        return Err(Problem::broken_entry(
            pair.line,
            "`tool` is a tool class; write `tool: shell`",
        ));
    }
    texts
        .iter()
        .map(|text| {
            ToolClass::parse(text).ok_or_else(|| {
                let known = classes().collect::<Vec<_>>().join(", ");
                let hint = hint(text, classes(), "");
                Problem::broken_entry(
                    pair.line,
                    format!("unknown tool class `{text}`{hint} (one of: {known}; `matcher:` takes an agent's own tool names)"),
                )
            })
        })
        .collect()
}

fn list_form_tools(pair: &Pair) -> Result<Vec<String>, Problem> {
    let unknown = pair.value.pairs().unwrap_or_default().iter().find(|pair| pair.key != "tools");
    if let Some(unknown) = unknown {
        let hint = hint(&unknown.key, ["tools"], "; conditions of a rule go under `rule:`");
        let why =
            format!("beside `event:`, `when` has `tools` only and no `{}`{hint}", unknown.key);
        return Err(Problem::broken_entry(unknown.line, why));
    }
    let tools = pair.value.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "tools"));
    tools.and_then(|tools| tools.value.texts()).ok_or_else(|| {
        Problem::broken_entry(
            pair.line,
            "beside `event:`, `when` is `when: { tools: [terminal, patch] }`; conditions of a rule go under `rule:`",
        )
    })
}
