//! A look at plugins by somebody who has the time: each is started on its own, says what it listens to, and is
//! asked about events that never happened. No warm process is touched, and nothing is recorded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::surroundings::Surroundings;
use super::ask::{Stand, obstacle, question};
use super::folder::{Found, find};
use super::lying::Form;
use super::moment::name;
use super::plugin::{Plugin, Question};
use super::process::{Launch, Process, Trouble};
use super::shelf::{LOG, Meant};
use crate::dialect::{Takes, takes};
use crate::event::Event;

/// What is wrong with a plugin, by what has to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// Its directory is not as it has to be.
    Unfinished(String),
    /// Its manifest says too little; the words say what to write.
    Vague(String),
    /// It needs variables that are not set; the words say which.
    Needs(String),
    /// It cannot be loaded.
    Broken(String),
    /// A callback of it raised something, or returned what nobody can read.
    Raised(String),
    /// It does not answer in its time.
    Hung(String),
    /// Its process ends.
    Died(String),
}

impl Ailment {
    /// What is wrong.
    pub fn why(&self) -> &str {
        match self {
            Self::Unfinished(why)
            | Self::Vague(why)
            | Self::Needs(why)
            | Self::Broken(why)
            | Self::Raised(why)
            | Self::Hung(why)
            | Self::Died(why) => why,
        }
    }

    fn of(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Broken(why) => Self::Broken(why),
            Trouble::Garbled(why) => Self::Raised(why),
            Trouble::Hung(why) => Self::Hung(why),
            Trouble::Gone(why) | Trouble::Died(why) | Trouble::Resting(why) => Self::Died(why),
            Trouble::Refused(objection) => Self::Broken(objection.why),
        }
    }
}

/// One event that a plugin was asked about.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// What the plugin knows the event as.
    pub event: String,
    /// What went wrong.
    pub ailment: Option<Ailment>,
    /// How long it took.
    pub took: Duration,
}

/// What became of one plugin.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// What it is called.
    pub plugin: String,
    /// Why it cannot be asked anything.
    pub ailment: Option<Ailment>,
    /// What it listens to.
    pub listens: Vec<String>,
    /// What of that its entry is for.
    pub hears: Vec<String>,
    /// What it was asked about, in that order.
    pub attempts: Vec<Attempt>,
}

/// What plugins are asked.
pub struct Exam<'a> {
    /// What they are started for.
    pub start: &'a Event,
    /// The events for whoever listens to these.
    pub events: &'a dyn Fn(&[String]) -> Vec<Event>,
}

impl fmt::Debug for Exam<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exam").field("start", self.start).finish_non_exhaustive()
    }
}

/// How they are asked.
pub(in crate::decide) struct Manner<'a> {
    pub(in crate::decide) place: &'a Surroundings,
    pub(in crate::decide) limit: Duration,
    pub(in crate::decide) asks: Asks,
}

/// Whom to ask for real. What is done at an event where nothing can be answered is done for good: a message is
/// sent, an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decide) enum Asks {
    /// Whoever hears anything.
    Everybody,
    /// Whoever can answer.
    WhoCanAnswer,
    /// Nobody: it is only seen what they would hear.
    Nobody,
}

impl Asks {
    fn about(self, event: &Event) -> bool {
        match self {
            Self::Everybody => true,
            Self::WhoCanAnswer => takes(event) != Takes::NOTHING,
            Self::Nobody => false,
        }
    }
}

/// Where what they print goes.
pub(in crate::decide) fn log_of(meant: Meant<'_>) -> PathBuf {
    meant.log_in.join(LOG)
}

/// Looks at all plugins at `folder`, one after another: each has the machine, and all of its time, to itself.
pub(in crate::decide) async fn check(
    folder: &Path,
    meant: Meant<'_>,
    launch: &Launch,
    exam: &Exam<'_>,
    manner: &Manner<'_>,
) -> Vec<Checkup> {
    let log = log_of(meant);
    let mut checkups = Vec::new();
    for found in find(folder, meant.lists) {
        let plugin = Plugin::new(found, launch.clone(), log.clone(), false);
        let check = Check { plugin: &plugin, launch, log: &log, exam, manner };
        checkups.push(check.make().await);
    }
    checkups
}

struct Check<'a> {
    plugin: &'a Plugin,
    launch: &'a Launch,
    log: &'a Path,
    exam: &'a Exam<'a>,
    manner: &'a Manner<'a>,
}

impl Check<'_> {
    async fn make(&self) -> Checkup {
        let mut checkup = Checkup {
            plugin: self.plugin.name().to_owned(),
            ailment: self.at_first_sight(),
            listens: Vec::new(),
            hears: Vec::new(),
            attempts: Vec::new(),
        };
        if checkup.ailment.is_some() {
            return checkup;
        }
        let mut process = match self.start().await {
            Ok(process) => Some(process),
            Err(ailment) => return Checkup { ailment: Some(ailment), ..checkup },
        };
        let listens = process.as_ref().map(|it| it.hooks().to_vec()).unwrap_or_default();
        for (name, event) in self.heard(&listens, process.as_ref()) {
            checkup.hears.push(name.clone());
            let hung = |it: &Attempt| matches!(it.ailment, Some(Ailment::Hung(_)));
            if self.manner.asks.about(&event) && !checkup.attempts.iter().any(hung) {
                checkup.attempts.push(self.attempt(&mut process, name, &event).await);
            }
        }
        Checkup { listens, ..checkup }
    }

    /// What can be seen without starting it.
    fn at_first_sight(&self) -> Option<Ailment> {
        let found = &self.plugin.found;
        if let Some(why) = &found.broken {
            return Some(Ailment::Unfinished(why.clone()));
        }
        odd_events(found)
            .map(Ailment::Vague)
            .or_else(|| obstacle(self.plugin, self.manner.place).map(Ailment::Needs))
    }

    async fn start(&self) -> Result<Process, Ailment> {
        let limit = self.manner.limit;
        let question = self.question(self.exam.start.name.clone(), self.exam.start);
        let (found, code) = (&self.plugin.found, self.plugin.code());
        Process::start(found, &code, self.launch, &question, self.log, limit)
            .await
            .map_err(Ailment::of)
    }

    /// Whoever looks has been through the question of consent.
    fn question(&self, name: String, event: &Event) -> Question {
        question(name, event, &Stand { place: self.manner.place.clone(), gate: None })
    }

    /// What it hears of the events, each name once.
    fn heard(&self, listens: &[String], process: Option<&Process>) -> Vec<(String, Event)> {
        let mut heard: Vec<(String, Event)> = Vec::new();
        for event in (self.exam.events)(listens) {
            let Some(name) = name(&event, self.plugin.found.form) else { continue };
            let listens = process.is_some_and(|process| process.listens_to(&name));
            if listens && heard.iter().all(|(known, _)| *known != name) {
                heard.push((name, event));
            }
        }
        heard
    }

    async fn attempt(&self, process: &mut Option<Process>, name: String, event: &Event) -> Attempt {
        let limit = self.manner.limit;
        let started = Instant::now();
        let question = self.question(name.clone(), event);
        let answered = match process {
            Some(process) => process.ask(&question, limit, limit).await.map_err(Ailment::of),
            None => match self.start().await {
                Ok(new) => {
                    process.insert(new).ask(&question, limit, limit).await.map_err(Ailment::of)
                }
                Err(ailment) => Err(ailment),
            },
        };
        if matches!(answered, Err(Ailment::Died(_) | Ailment::Hung(_))) {
            *process = None;
        }
        let ailment = answered.map_or_else(Some, |answer| raised(&answer));
        Attempt { event: name, ailment, took: started.elapsed() }
    }
}

fn raised(answer: &Value) -> Option<Ailment> {
    let errors = answer["errors"].as_array().into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    (!errors.is_empty()).then(|| Ailment::Raised(errors.join("; ")))
}

/// What is wrong with the events in a `HOOK.yaml`; Hermes takes a text letter by letter, and skips it without any.
fn odd_events(found: &Found) -> Option<String> {
    if found.form != Form::Gateway {
        return None;
    }
    let events = found.manifest.get("events");
    match events {
        Some(Value::Array(events)) if !events.is_empty() => None,
        Some(Value::String(event)) => Some(format!(
            "`events:` in its HOOK.yaml is one text, which is taken letter by letter; write `events: [{event}]`"
        )),
        Some(_) | None => Some(
            "its HOOK.yaml has no list of `events:`; write those it wants, `events: [agent:start]`"
                .to_owned(),
        ),
    }
}
