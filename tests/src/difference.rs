//! Compares one hook in two setups: configured in a real agent directly, and in hookbus under the agent's
//! own event name. A [`Case`] runs both and compares the outcomes.

use serde_json::{Value, json};

use crate::agents::{Outcome, Run, Step};
use crate::home::Home;
use crate::wiring::{Agent, CommandHook, decisions_on};

/// Hooks on one event.
#[derive(Debug, Clone)]
pub struct Case {
    event: &'static str,
    hooks: Vec<Hook>,
    script: Option<Vec<Step>>,
    failure_report: FailureReport,
    matching: Matching,
}

#[derive(Debug, Clone)]
struct Hook {
    program: Program,
    matcher: Option<&'static str>,
    timeout: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Program {
    /// A shell script with these lines.
    Lines(&'static str),
    /// A command line.
    Command(&'static str),
}

/// Whether the comparison ignores Gemini CLI's report of a failed hook, which names the command line and
/// the milliseconds it took. Through hookbus Gemini runs `hookbus hook`, which does not fail: the bus tells the user
/// of the failed hook in its own words, and how it ended is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureReport {
    Compared,
    Ignored,
}

/// How the lines of such a report begin.
const REPORT_LINES: [&str; 6] = [
    "hookbus: hook `",
    "Hook system message: hookbus: hook `",
    "Hook execution for ",
    "Hook(s) [",
    "[WARNING] Hook(s) [",
    "Hook execution error: Hook timed out",
];

/// Whether the hooks match the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matching {
    Yes,
    No,
}

/// What must be visible in the run without hookbus. It proves that the case tests something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The tool made its file.
    ToolRan,
    /// The tool did not make its file.
    ToolDidNotRun,
    /// A request to the model contains this.
    ModelWasSent(&'static str),
    /// There was no request to the model.
    ModelWasNotCalled,
    /// The printed answer contains this.
    AnswerContains(&'static str),
}

/// A case about `event`, without hooks.
pub fn on(event: &'static str) -> Case {
    Case {
        event,
        hooks: Vec::new(),
        script: None,
        failure_report: FailureReport::Compared,
        matching: Matching::Yes,
    }
}

impl Case {
    /// Adds a hook: a shell script with these lines.
    #[must_use]
    pub fn does(self, lines: &'static str) -> Self {
        self.hook(Program::Lines(lines))
    }

    /// Adds a hook: a command line.
    #[must_use]
    pub fn runs(self, command: &'static str) -> Self {
        self.hook(Program::Command(command))
    }

    fn hook(mut self, program: Program) -> Self {
        self.hooks.push(Hook { program, matcher: None, timeout: None });
        self
    }

    /// Gives the last hook a matcher.
    #[must_use]
    pub fn matching(mut self, matcher: &'static str) -> Self {
        if let Some(hook) = self.hooks.last_mut() {
            hook.matcher = Some(matcher);
        }
        self
    }

    /// Gives the last hook a time limit in seconds.
    #[must_use]
    pub fn within(mut self, timeout: u64) -> Self {
        if let Some(hook) = self.hooks.last_mut() {
            hook.timeout = Some(timeout);
        }
        self
    }

    /// Sets the answers of the model, instead of one shell call.
    #[must_use]
    pub fn playing(self, script: Vec<Step>) -> Self {
        Self { script: Some(script), ..self }
    }

    /// Gemini CLI reports the hook as failed; the comparison ignores that report.
    #[must_use]
    pub fn ignoring_failure_report(self) -> Self {
        Self { failure_report: FailureReport::Ignored, ..self }
    }

    /// No hook matches the event.
    #[must_use]
    pub fn matches_no_hook(self) -> Self {
        Self { matching: Matching::No, ..self }
    }

    /// Checks that both setups have the same outcome, and that it is the expected one.
    pub fn ends_the_same<A: Agent>(&self, expected: &[Expected]) {
        let direct = self.direct::<A>();
        for it in expected {
            assert!(it.holds_for(&direct), "{it:?}: {:#?}", direct.outcome());
        }
        let through = self.through::<A>(&Home::new());
        assert_eq!(self.compared(&direct), self.compared(&through), "direct, through hookbus");
    }

    /// Checks that the agent ignores the block and that hookbus does not.
    pub fn only_blocks_through_hookbus<A: Agent>(&self) {
        let direct = self.direct::<A>();
        assert!(Expected::ToolRan.holds_for(&direct), "{:#?}", direct.outcome());
        let home = Home::new();
        let through = self.through::<A>(&home);
        for it in [Expected::ToolDidNotRun, Expected::ModelWasSent("not today")] {
            assert!(it.holds_for(&through), "{it:?}: {:#?}", through.outcome());
        }
        assert_eq!(decisions_on(&home, A::NAME, self.event)[0]["outcome"], "block");
    }

    /// Runs the agent with the hooks in its own configuration.
    pub fn direct<A: Agent>(&self) -> Run {
        let agent = self.agent::<A>("direct");
        let entries = self.entries(&agent);
        entries.iter().fold(agent, |agent, entry| agent.wire(self.event, entry)).go()
    }

    /// Runs the agent with `hookbus hook` as its hook, and the hooks in the file of `home`.
    pub fn through<A: Agent>(&self, home: &Home) -> Run {
        let agent = self.agent::<A>("through hookbus");
        let hooks: Vec<Value> = self.entries(&agent).iter().map(yaml_entry).collect();
        home.write_hooks(&json!({"hooks": {self.event: hooks}}).to_string());
        let run = agent.through(home, "off", &[self.event]).go();
        let decisions = decisions_on(home, A::NAME, self.event);
        assert!(!decisions.is_empty(), "{} was not recorded", self.event);
        let matching = if decisions[0].is_null() { Matching::No } else { Matching::Yes };
        assert_eq!(matching, self.matching, "{decisions:#?}");
        if self.failure_report == FailureReport::Ignored {
            let verdict = &decisions[0]["verdicts"][0];
            assert_ne!(verdict["exit"], 0, "the log has the exit code");
            let reported = run.stderr.contains("hookbus: hook `");
            assert_eq!(verdict["failed"], reported, "the user reads of it: {}", run.stderr);
        }
        assert!(home.is_sound());
        run
    }

    fn agent<A: Agent>(&self, label: &str) -> A {
        let agent = A::working(label);
        match &self.script {
            Some(script) => agent.playing(script.clone()),
            None => agent,
        }
    }

    fn entries<A: Agent>(&self, agent: &A) -> Vec<CommandHook> {
        let entry = |(index, hook): (usize, &Hook)| CommandHook {
            command: match hook.program {
                Program::Command(command) => command.to_owned(),
                Program::Lines(lines) => {
                    let script = format!("#!/bin/sh\ncat > /dev/null\n{lines}\n");
                    agent.executable(&format!("hook-{index}"), &script)
                }
            },
            matcher: hook.matcher,
            timeout: hook.timeout,
        };
        self.hooks.iter().enumerate().map(entry).collect()
    }

    fn compared(&self, run: &Run) -> Outcome {
        let mut outcome = run.outcome();
        if self.failure_report == FailureReport::Ignored {
            let is_report =
                |line: &String| REPORT_LINES.iter().any(|start| line.starts_with(start));
            outcome.notices.retain(|line| !is_report(line));
        }
        outcome
    }
}

impl Expected {
    fn holds_for(self, run: &Run) -> bool {
        match self {
            Self::ToolRan => run.file("made.txt").is_some(),
            Self::ToolDidNotRun => run.file("made.txt").is_none(),
            Self::ModelWasSent(text) => run.sent_to_the_model().contains(text),
            Self::ModelWasNotCalled => run.requests.is_empty(),
            Self::AnswerContains(text) => run.stdout.contains(text),
        }
    }
}

/// The entry for `hookbus.yaml`. JSON is valid YAML.
fn yaml_entry(entry: &CommandHook) -> Value {
    let fields = [
        ("command", Some(json!(entry.command))),
        ("matcher", entry.matcher.map(|text| json!(text))),
        ("timeout", entry.timeout.map(|seconds| json!(seconds))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
