//! Reading one entry of a hooks file. A malformed entry is kept as a broken hook: it counts as
//! failed wherever it would have applied, and the problem says what to write instead.

use std::path::Path;
use std::time::Duration;

use super::hook::{Action, Command, Hook, Mode, OnFailure, Placeholders, Python};
use super::host::Launch;
use super::matcher::{Matcher, Read};
use super::observer::Terms;
use super::observer_entry::{KEYS as OBSERVER_KEYS, archive, webhook};
use super::problem::did_you_mean;
use super::rule::Rule;
use super::yaml::{Node, Pair};
use super::{EventKey, Problem};
use crate::event::{Agent, ToolClass};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
const LONGEST_TIMEOUT: Duration = Duration::from_mins(5);

/// What one plugin may use, in MiB, unless the entry says.
const MEMORY: u64 = 1024;

const KEYS: [&str; 19] = [
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
    "sequential",
    "description",
    "event",
    "when",
];

/// Whose file it is that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The directory of the file.
    pub(super) base: &'a Path,
    /// Whether the entry is trusted enough to be looked into: a stranger's could hold an expression that
    /// takes a minute and all of the memory to understand.
    pub(super) agreed: bool,
}

/// Reads the `index`th entry (from 1) under `on`.
pub(super) fn read(
    node: &Node,
    on: &EventKey,
    index: usize,
    Reading { base, agreed }: Reading<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Hook> {
    let Some(pairs) = node.pairs() else {
        problems.push(Problem::broken_entry(
            node.line,
            "a hook is a mapping; write `- command: ./script.sh` or `- rule: { … }`",
        ));
        return None;
    };
    let mut entry = Entry { pairs, line: node.line, base, agreed, problems };
    let name = entry.name(on, index);
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
        terms: Terms::default(),
        sequential: entry.flag("sequential").unwrap_or(false),
        action: Action::Broken(String::new()),
        written: node.to_json().to_string(),
        of_project: false,
        name,
    };
    if !agreed {
        // Whoever agrees hears what is wrong with it.
        drop(entry.filters(&mut hook));
        hook.action = entry.unread();
        return Some(hook);
    }
    entry.unknown_keys();
    // From here on a mistake breaks the entry, but what could be read of its filters stays: a
    // broken hook that blocks on failure must not block more than it was meant for.
    let filters = entry.filters(&mut hook);
    if hook.mode == Mode::Observe {
        let timeout = entry.timeout();
        hook.terms = entry.terms(timeout);
    }
    hook.action = match filters.and_then(|()| entry.action(&hook)) {
        Ok(action) => action,
        Err(problem) => {
            let why = problem.to_string();
            problems.push(problem);
            Action::Broken(why)
        }
    };
    Some(hook)
}

/// An entry while it is read.
pub(super) struct Entry<'a> {
    pairs: &'a [Pair],
    line: usize,
    /// The directory of the file.
    base: &'a Path,
    /// Whether it may be looked into.
    agreed: bool,
    problems: &'a mut Vec<Problem>,
}

impl Entry<'_> {
    pub(super) fn get(&self, key: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.key == key && !pair.value.is_null())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|pair| pair.value.text())
    }

    pub(super) fn remark(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem::remark(line, message));
    }

    fn name(&self, on: &EventKey, index: usize) -> String {
        let shortened = |command: String| command.chars().take(80).collect();
        self.text("name")
            .or_else(|| self.text("command").map(shortened))
            .or_else(|| self.text("python").map(shortened))
            .unwrap_or_else(|| format!("{on}#{index}"))
    }

    fn unknown_keys(&mut self) {
        for pair in self.pairs {
            let known = KEYS.iter().chain(&OBSERVER_KEYS).any(|key| *key == pair.key);
            if known || pair.key == "failClosed" {
                continue;
            }
            let message = match did_you_mean(&pair.key, KEYS.into_iter().chain(OBSERVER_KEYS)) {
                Some(near) => format!("`{}` means nothing here; did you mean `{near}`?", pair.key),
                None => format!("`{}` means nothing here and is ignored", pair.key),
            };
            self.remark(pair.line, message);
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let pair = self.get(key)?;
        let (flag, line) = (pair.value.flag(), pair.line);
        if flag.is_none() {
            self.remark(
                line,
                format!("`{key}` is a switch; write `{key}: true` or `{key}: false`"),
            );
        }
        flag
    }

    fn on_failure(&mut self) -> Option<OnFailure> {
        if let Some(pair) = self.get("on_failure") {
            let (read, line) =
                (pair.value.text().and_then(|text| OnFailure::parse(&text)), pair.line);
            if read.is_none() {
                self.remark(
                    line,
                    "`on_failure` is `allow` or `block`; this one is taken for `block` until you mend it",
                );
            }
            return read.or(Some(OnFailure::Block));
        }
        // Hermes' word for the same, in both its spellings.
        let closed = self.flag("fail_closed").or_else(|| self.flag("failClosed"))?;
        closed.then_some(OnFailure::Block)
    }

    fn mode(&mut self) -> Mode {
        match self.get("mode").map(|pair| (pair.value.text(), pair.line)) {
            None => Mode::Decide,
            Some((Some(text), _)) if text == "decide" => Mode::Decide,
            Some((Some(text), _)) if text == "observe" => Mode::Observe,
            Some((_, line)) => {
                self.remark(line, "`mode` is `decide` (the default) or `observe`");
                Mode::Decide
            }
        }
    }

    fn filters(&mut self, hook: &mut Hook) -> Result<(), Problem> {
        if let Some(pair) = self.get("agent") {
            let text = pair.value.text().unwrap_or_default();
            let agent = text.parse::<Agent>();
            hook.agent =
                Some(agent.map_err(|error| Problem::broken_entry(pair.line, error.to_string()))?);
        }
        if let Some(pair) = self.get("session") {
            hook.session = pair.value.text();
        }
        if let Some(pair) = self.get("tool") {
            hook.tools = tool_classes(pair)?;
        }
        if let Some(pair) = self.get("when") {
            hook.tool_names = list_form_tools(pair)?;
        }
        let Some(pair) = self.get("matcher") else { return Ok(()) };
        let line = pair.line;
        let Some(text) = pair.value.text() else {
            return Err(Problem::broken_entry(
                line,
                "`matcher` is a regex; write `matcher: 'write_.*'`",
            ));
        };
        let remark = match Matcher::read(&hook.on, &text, self.agreed) {
            Read::Everything(remark) => remark,
            Read::Only(matcher, remark) => {
                hook.matcher = Some(matcher);
                remark
            }
            Read::Broken(why) => return Err(Problem::broken_entry(line, why)),
        };
        if let Some(remark) = remark {
            self.remark(line, remark);
        }
        Ok(())
    }

    fn unread(&self) -> Action {
        let words = ["command", "python", "webhook", "archive"];
        match words.into_iter().find(|word| self.get(word).is_some()) {
            Some(action) => {
                let command = self.text(action).map(|text| text.trim().to_owned());
                Action::Unread { action, command }
            }
            None => Action::Unread { action: "rule", command: None },
        }
    }

    fn action(&mut self, hook: &Hook) -> Result<Action, Problem> {
        if hook.mode == Mode::Decide {
            self.no_observer_keys()?;
        }
        let deeds = ["webhook", "archive", "command", "rule", "python"];
        let said: Vec<&Pair> = deeds.iter().filter_map(|deed| self.get(deed)).collect();
        if let ([first, second, ..], true) = (said.as_slice(), hook.mode == Mode::Observe) {
            let why = format!(
                "an observer does one thing, not both `{}` and `{}`; write two hooks",
                first.key, second.key
            );
            return Err(Problem::broken_entry(second.line, why));
        }
        if let Some(pair) = self.get("webhook") {
            return webhook(pair, self.base).map(Action::Webhook);
        }
        if let Some(pair) = self.get("archive") {
            return archive(pair, self.base).map(Action::Archive);
        }
        if self.get("python").is_some() {
            return self.python();
        }
        match (self.get("rule"), self.get("command")) {
            (Some(rule), None) if hook.mode == Mode::Observe => Err(Problem::broken_entry(
                rule.line,
                "a rule decides, it cannot observe; drop `mode: observe` or write a `command`",
            )),
            (Some(rule), None) => Rule::read(&rule.value, &hook.name).map(Action::Rule),
            (None, Some(_)) => self.command().map(Action::Command),
            (Some(_), Some(second)) => Err(Problem::broken_entry(
                second.line,
                "a hook is a `rule` or a `command`, not both; write two hooks",
            )),
            (None, None) => Err(Problem::broken_entry(
                self.line,
                "this hook does nothing; give it a `command: ./script.sh`, a `rule: { … }` or a `python: ./directory`",
            )),
        }
    }

    fn command(&mut self) -> Result<Command, Problem> {
        let text = self.text("command").map(|text| text.trim().to_owned()).unwrap_or_default();
        if text.is_empty() {
            let line = self.get("command").map_or(self.line, |pair| pair.line);
            return Err(Problem::broken_entry(line, "`command` is empty; write a program to run"));
        }
        // Only the list form of Hermes' plugin guide names its event inside the entry.
        let placeholders =
            if self.get("event").is_some() { Placeholders::Filled } else { Placeholders::Literal };
        Ok(Command { text, timeout: self.timeout(), env: self.env()?, placeholders })
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
        let launch = Launch { interpreter, memory: self.memory() << 20 };
        Ok(Action::Python(Python { folder, timeout: self.timeout(), launch }))
    }

    fn memory(&mut self) -> u64 {
        let said = self.get("memory").map(|pair| (pair.value.number(), pair.line));
        match said {
            None => MEMORY,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked on this line"
            )]
            Some((Some(mebibytes), _)) if (64.0..=1e6).contains(&mebibytes) => mebibytes as u64,
            Some((_, line)) => {
                self.remark(
                    line,
                    "`memory` is a number of MiB from 64 on; write `memory: 512` (1024 is used now)",
                );
                MEMORY
            }
        }
    }

    /// As in Hermes: seconds, 60 unless said, 300 at most; what makes no sense is 60.
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
                self.remark(
                    line,
                    "`timeout` is a number of seconds; write `timeout: 5` (60 is used now)",
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
                let hint = did_you_mean(text, classes())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Problem::broken_entry(
                    pair.line,
                    format!("unknown tool class `{text}`{hint} (one of: {known}; `matcher:` takes an agent's own tool names)"),
                )
            })
        })
        .collect()
}

fn list_form_tools(pair: &Pair) -> Result<Vec<String>, Problem> {
    let tools = pair.value.pairs().and_then(|pairs| pairs.iter().find(|pair| pair.key == "tools"));
    tools.and_then(|tools| tools.value.texts()).ok_or_else(|| {
        Problem::broken_entry(
            pair.line,
            "beside `event:`, `when` is `when: { tools: [terminal, patch] }`; conditions of a rule stand under `rule:`",
        )
    })
}
