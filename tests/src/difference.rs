//! One hook, two ways: wired straight into a real agent, and through hookbus under the agent's own
//! event name. A [`Case`] runs both and compares what they came to.

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
    report: Report,
    asked: Asked,
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

/// Whether Gemini CLI tells the person that a hook failed, by its command line and the
/// milliseconds it took. The hook it has through us is ours, which does not fail; how the one
/// behind it ended is in our log. So that report, and nothing else, is left out of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    None,
    LeftOut,
}

/// How the lines of such a report begin.
const REPORT: [&str; 4] = [
    "Hook execution for ",
    "Hook(s) [",
    "[WARNING] Hook(s) [",
    "Hook execution error: Hook timed out",
];

/// Whether the hooks are for the event at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Yes,
    No,
}

/// What shows that a case is about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The file is there.
    TheToolRan,
    /// The file is not there.
    TheToolDidNotRun,
    /// This is in a request.
    TheModelHeard(&'static str),
    /// There was no request.
    TheModelWasNotAsked,
    /// This is in what the person saw.
    TheAnswerHas(&'static str),
}

/// A case about `event`, without hooks so far.
pub fn on(event: &'static str) -> Case {
    Case { event, hooks: Vec::new(), script: None, report: Report::None, asked: Asked::Yes }
}

impl Case {
    /// A hook that does these lines of shell.
    #[must_use]
    pub fn does(self, lines: &'static str) -> Self {
        self.hook(Program::Lines(lines))
    }

    /// A hook that is this command line.
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

    /// What the model says, instead of calling its shell.
    #[must_use]
    pub fn playing(self, script: Vec<Step>) -> Self {
        Self { script: Some(script), ..self }
    }

    /// Gemini CLI reports the hook as failed.
    #[must_use]
    pub fn is_reported(self) -> Self {
        Self { report: Report::LeftOut, ..self }
    }

    /// No hook is for the event.
    #[must_use]
    pub fn asks_nobody(self) -> Self {
        Self { asked: Asked::No, ..self }
    }

    /// Both ways lead to the same end, and these signs say which.
    pub fn ends_the_same<A: Agent>(&self, signs: &[Sign]) {
        let straight = self.straight::<A>();
        for sign in signs {
            assert!(sign.shows_in(&straight), "{sign:?}: {:#?}", straight.outcome());
        }
        let through = self.through::<A>(&Home::new());
        assert_eq!(self.compared(&straight), self.compared(&through), "straight, through");
    }

    /// The agent overlooks the block, and the bus does not.
    pub fn only_blocks_through_hookbus<A: Agent>(&self) {
        let straight = self.straight::<A>();
        assert!(Sign::TheToolRan.shows_in(&straight), "{:#?}", straight.outcome());
        let home = Home::new();
        let through = self.through::<A>(&home);
        for sign in [Sign::TheToolDidNotRun, Sign::TheModelHeard("not today")] {
            assert!(sign.shows_in(&through), "{sign:?}: {:#?}", through.outcome());
        }
        assert_eq!(decisions_on(&home, A::NAME, self.event)[0]["outcome"], "block");
    }

    /// The hooks are the agent's own.
    pub fn straight<A: Agent>(&self) -> Run {
        let agent = self.agent::<A>("straight");
        let entries = self.entries(&agent);
        entries.iter().fold(agent, |agent, entry| agent.wire(self.event, entry)).go()
    }

    /// The agent's own hook is hookbus, and the hooks are in this home's file.
    pub fn through<A: Agent>(&self, home: &Home) -> Run {
        let agent = self.agent::<A>("through hookbus");
        let hooks: Vec<Value> = self.entries(&agent).iter().map(written).collect();
        home.write_hooks(&json!({"hooks": {self.event: hooks}}).to_string());
        let run = agent.through(home, "off", &[self.event]).go();
        let decisions = decisions_on(home, A::NAME, self.event);
        assert!(!decisions.is_empty(), "{} never came to the bus", self.event);
        let asked = if decisions[0].is_null() { Asked::No } else { Asked::Yes };
        assert_eq!(asked, self.asked, "{decisions:#?}");
        if self.report == Report::LeftOut {
            assert_ne!(decisions[0]["verdicts"][0]["exit"], 0, "the log says how it ended");
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
        if self.report == Report::LeftOut {
            let is_report = |line: &String| REPORT.iter().any(|start| line.starts_with(start));
            outcome.notices.retain(|line| !is_report(line));
        }
        outcome
    }
}

impl Sign {
    fn shows_in(self, run: &Run) -> bool {
        match self {
            Self::TheToolRan => run.file("made.txt").is_some(),
            Self::TheToolDidNotRun => run.file("made.txt").is_none(),
            Self::TheModelHeard(text) => run.sent_to_the_model().contains(text),
            Self::TheModelWasNotAsked => run.requests.is_empty(),
            Self::TheAnswerHas(text) => run.stdout.contains(text),
        }
    }
}

/// The entry as it stands in `hookbus.yaml`; JSON is YAML too.
fn written(entry: &CommandHook) -> Value {
    let fields = [
        ("command", Some(json!(entry.command))),
        ("matcher", entry.matcher.map(|text| json!(text))),
        ("timeout", entry.timeout.map(|seconds| json!(seconds))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
