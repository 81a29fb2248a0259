//! One case, decided again: by the same steps as a live event (`decode`, `plan`, the hooks,
//! `conclude`), with what was known of its surroundings then.

use std::ffi::OsString;
use std::io;
use std::time::Instant;

use hookbus::decide::{
    Circumstances, Plan, Scratch, Spoken, Surroundings, conclude, plan, rehearse, rehearse_again,
    run_rules,
};
use hookbus::dialect::{Arrival, decode, is_continuation, merge};
use hookbus::event::{
    Agent, Body, Decision, Event, Heard, Kind, Outcome, Rewrite, Ruling, Seq, Time, Verdict,
    VerdictRecord,
};
use hookbus::log::Case;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::compare::{Class, Comparison, Gap, compare, unknown_memory};
use crate::memory::Decided;
use crate::policy::{Policy, Recorded};
use crate::recorded::Then;
use crate::source::Reading;

/// A gist longer than this helps nobody.
const GIST: usize = 200;

/// Further back nobody counts how often an agent was sent on.
const COUNTED: u32 = 1000;

/// What happens to hooks that run outside of this process.
#[derive(Debug, Clone, Copy)]
pub enum Commands<'a> {
    /// They run for real, in a scratch place.
    Run {
        /// Where.
        scratch: &'a Scratch,
        /// The environment of this process, to run them with.
        env: &'a [(OsString, OsString)],
        /// How often each is asked, to find those that do not stand by their word.
        repeat: u32,
    },
    /// They are not asked, and what depends on them cannot be compared.
    LeftOut,
}

/// What became of one event.
#[derive(Debug)]
pub struct Judged {
    /// Its place.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// The agent's name for it.
    pub name: String,
    /// Our name for it.
    pub kind: String,
    /// The tool it is about.
    pub tool: Option<String>,
    /// A few words that say what it is about; empty where nothing changed.
    pub gist: String,
    /// What was decided then; none where nobody had an opinion.
    pub then: Option<Then>,
    /// What would be decided now.
    pub now: Option<Decision>,
    /// What is different.
    pub comparison: Comparison,
    /// Whether a hook answered differently on the same input.
    pub unsteady: Option<Unsteady>,
    /// How often in a row the agent had been sent on before it; counted where the case is kept.
    pub sent_on: u32,
    /// The case itself, if it was asked for.
    pub case: Option<Box<Case>>,
}

/// A hook that does not stand by its word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsteady {
    /// Which one.
    pub hook: String,
    /// Two of its answers to the same input.
    pub answers: [String; 2],
}

/// Decides on cases again.
#[derive(Debug)]
pub struct Judge<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) recorded: Option<&'a Recorded>,
    pub(crate) commands: Commands<'a>,
    /// What commands are waited for with.
    pub(crate) runtime: Option<Runtime>,
    /// Whether somebody is asked who may remember.
    pub(crate) remembers: bool,
    detail: Detail,
}

/// How much is told of each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Events that are different.
    Differences,
    /// Every event.
    Everything,
    /// Every event, with its payload.
    Whole,
}

/// What would be decided now.
#[derive(Default)]
struct Now {
    decision: Option<Decision>,
    /// The same if nobody could have been asked, where that is not known and matters.
    without_person: Option<Decision>,
    unsteady: Option<Unsteady>,
    /// Hooks were left out.
    left_out: bool,
    /// They could say otherwise.
    open: bool,
    /// Who of those that spoke is a plugin.
    plugins: Vec<String>,
    /// Whether the hooks are those of then.
    same_hooks: bool,
}

impl Now {
    /// Nobody has an opinion, and nobody was left out who could.
    const fn is_quiet(&self) -> bool {
        self.decision.is_none() && !self.open
    }
}

impl<'a> Judge<'a> {
    /// A judge who asks the hooks of `policy`, and knows those of then by `recorded`.
    pub fn new(
        policy: &'a Policy,
        recorded: Option<&'a Recorded>,
        commands: Commands<'a>,
        detail: Detail,
    ) -> io::Result<Self> {
        let runtime = match commands {
            Commands::Run { .. } => Some(Builder::new_current_thread().enable_all().build()?),
            Commands::LeftOut => None,
        };
        let remembers = runtime.is_some() && policy.has_plugins(recorded);
        Ok(Self { policy, recorded, commands, runtime, remembers, detail })
    }

    /// Decides on `case` again; nothing where nobody had an opinion then and nobody has one now.
    pub fn judge(&self, mut case: Case, reading: &dyn Reading) -> Option<Box<Judged>> {
        self.pass(&case);
        let agent: Result<Agent, _> = case.agent.parse();
        if case.decision.is_none()
            && self.detail == Detail::Differences
            && agent.as_ref().is_ok_and(|it| !it.is_answered())
        {
            return None;
        }
        let kept = (self.detail == Detail::Whole).then(|| Box::new(case.clone()));
        let then = case.decision.take().map(|payload| Then::read(&payload)).transpose();
        let raw = std::mem::take(&mut case.payload);
        // Whoever the agent is, the name of an event is where everybody has it.
        let event = heard(&case, *agent.as_ref().unwrap_or(&Agent::Hermes), raw);
        let (then, now) = match (agent, then) {
            (Err(_), then) => {
                (then.ok().flatten(), Err("the agent is unknown to this hookbus".to_owned()))
            }
            (Ok(_), Err(why)) => {
                self.tell(&event, &case, Decided::Unknown);
                (None, Err(format!("the recorded decision cannot be read: {why}")))
            }
            (Ok(_), Ok(None)) if self.was_cut_short(&case, &event) => {
                self.tell(&event, &case, Decided::Unknown);
                (None, Err("it was never decided".to_owned()))
            }
            (Ok(_), Ok(then)) => {
                let now = self.decide(&event, &case, then.as_ref(), reading);
                (then, now)
            }
        };
        let (now, comparison) = match now {
            Ok(now) if then.is_none() && now.is_quiet() && self.detail == Detail::Differences => {
                return None;
            }
            Ok(now) => {
                let comparison = self.compared(&event, &case, then.as_ref(), &now);
                (now, comparison)
            }
            Err(why) => (Now::default(), Comparison::impossible(why)),
        };
        let is_sent_on = kept.is_some() && event.kind == Kind::TurnEnd && is_continuation(&event);
        let sent_on =
            if is_sent_on { reading.sent_on_before(&event, case.seq, COUNTED) } else { 0 };
        let in_full = self.detail > Detail::Differences || comparison.class != Class::Unchanged;
        Some(Box::new(Judged {
            seq: case.seq,
            at: case.at,
            gist: if in_full { gist(&event) } else { String::new() },
            agent: case.agent,
            session: event.session,
            name: event.name,
            kind: event.kind.as_str().to_owned(),
            tool: event.tool.map(|tool| tool.name),
            then,
            now: now.decision,
            comparison,
            unsteady: now.unsteady,
            sent_on,
            case: kept,
        }))
    }

    /// Whether the candidate for a project's hooks is asked about `case`.
    pub(crate) fn asks_candidate(&self, case: &Case) -> bool {
        self.policy.stands_in_at(case, self.recorded)
    }

    fn was_cut_short(&self, case: &Case, event: &Event) -> bool {
        self.recorded.is_some_and(|recorded| recorded.was_cut_short(case, event))
    }

    fn compared(&self, event: &Event, case: &Case, then: Option<&Then>, now: &Now) -> Comparison {
        let named = then.and_then(|then| then.hooks.as_deref());
        let broken = |hook: &str| self.recorded.is_some_and(|it| it.was_broken(case, named, hook));
        let gap = |hook: &str, heard: [Option<Heard>; 2]| {
            let is_plugin = now.plugins.iter().any(|plugin| plugin == hook);
            is_plugin.then(|| self.gap(heard, now.same_hooks)).flatten()
        };
        compared(event, then, now, &broken, &gap)
    }

    fn decide(
        &self,
        event: &Event,
        case: &Case,
        then: Option<&Then>,
        reading: &dyn Reading,
    ) -> Result<Now, String> {
        let named = then.and_then(|then| then.hooks.as_deref());
        let hooks = self.policy.asked(case, named, self.recorded)?;
        let mut plan = plan(event, hooks);
        let standing = self.policy.leave_refused(&mut plan, case, then, self.recorded);
        let outside = plan.runs_outside();
        let same_hooks = named == Some(plan.hooks_hash());
        let (spoken, left_out) = match (outside, self.commands, &self.runtime) {
            (true, Commands::Run { scratch, env, .. }, Some(runtime)) => {
                (ask(&plan, event, case, scratch, env, runtime), false)
            }
            (true, _, _) => (run_rules(&plan, event), true),
            (false, _, _) => (run_rules(&plan, event), false),
        };
        let spoken = standing.among(spoken);
        let known = then.and_then(|then| then.can_ask);
        let finish = |spoken: Vec<Spoken<'_>>, can_ask: bool| {
            let end_of_turn = event.kind == Kind::TurnEnd && is_continuation(event);
            let most = hooks.own.max_continuations;
            (!spoken.is_empty()).then(|| {
                let circumstances = Circumstances {
                    started: Instant::now(),
                    can_ask: &|| can_ask,
                    waited_for: true,
                    continuations: if end_of_turn {
                        reading.sent_on_before(event, case.seq, most).saturating_add(1)
                    } else {
                        0
                    },
                };
                conclude(event, &plan, spoken, &circumstances)
            })
        };
        let asks = |said: &Spoken<'_>| said.record().verdict.ruling == Some(Ruling::Ask);
        let first = self.is_asked_again(&plan).then(|| spoken.clone());
        let alternative = (known.is_none() && spoken.iter().any(asks)).then(|| spoken.clone());
        let decision = finish(spoken, known.unwrap_or(true));
        let mattered = decision.as_ref().is_some_and(|decision| decision.can_ask.is_some());
        let without_person =
            alternative.filter(|_| mattered).and_then(|spoken| finish(spoken, false));
        let unsteady = first.and_then(|first| self.ask_again(&plan, event, case, &first));
        let open = left_out && !is_settled(event, &plan, decision.as_ref());
        let spoke = decision.iter().flat_map(|decision| &decision.verdicts);
        let plugins = spoke.map(|said| said.hook.clone()).filter(|name| plan.is_plugin(name));
        let plugins = plugins.collect();
        Ok(Now { decision, without_person, unsteady, left_out, open, plugins, same_hooks })
    }

    const fn asks(&self) -> u32 {
        match self.commands {
            Commands::Run { repeat, .. } => repeat,
            Commands::LeftOut => 0,
        }
    }

    /// Whether somebody is asked more than once; plugins never are.
    fn is_asked_again(&self, plan: &Plan<'_>) -> bool {
        self.asks() > 1 && plan.outside().any(|hook| !hook.is_plugin())
    }

    /// The same question again, as often as was asked for.
    fn ask_again<'h>(
        &self,
        plan: &Plan<'h>,
        event: &Event,
        case: &Case,
        first: &[Spoken<'h>],
    ) -> Option<Unsteady> {
        let (Commands::Run { scratch, env, .. }, Some(runtime)) = (self.commands, &self.runtime)
        else {
            return None;
        };
        let then = surroundings(case, env);
        let said: Vec<&VerdictRecord> = first.iter().map(Spoken::record).collect();
        (1..self.asks()).find_map(|_| {
            let again = rehearse_again(plan, event, case.home(), &then, scratch, first);
            let again = runtime.block_on(again);
            let again: Vec<&VerdictRecord> = again.iter().map(Spoken::record).collect();
            unsteady(&said, &again)
        })
    }
}

pub(crate) fn heard(case: &Case, agent: Agent, raw: Vec<u8>) -> Event {
    // What was recorded is what the payload or the environment of then said.
    let session_hint = Some(case.session.clone()).filter(|session| !session.is_empty());
    let wire = Surroundings::recorded_wire(case.context.as_deref().unwrap_or("{}"));
    decode(Arrival { id: case.id, at: case.at, agent, wire, raw, session_hint })
}

fn ask<'h>(
    plan: &Plan<'h>,
    event: &Event,
    case: &Case,
    scratch: &Scratch,
    env: &[(OsString, OsString)],
    runtime: &Runtime,
) -> Vec<Spoken<'h>> {
    let then = surroundings(case, env);
    runtime.block_on(rehearse(plan, event, case.home(), &then, scratch))
}

pub(crate) fn surroundings(case: &Case, env: &[(OsString, OsString)]) -> Surroundings {
    Surroundings::from_recorded(case.context.as_deref().unwrap_or("{}"), env)
}

/// Whether the answer stands whatever the hooks that were left out would have said: a refusal that
/// nobody can lift, or an event at which the agent hears nothing anyway.
fn is_settled(event: &Event, plan: &Plan<'_>, decision: Option<&Decision>) -> bool {
    let allow = Verdict { ruling: Some(Ruling::Allow), ..Verdict::silent() };
    let loud = Verdict {
        stop: true,
        context: Some(String::new()),
        notice: Some(String::new()),
        rewrite: Some(Rewrite::Paths(vec![
            ("text".to_owned(), "".into()),
            ("command".to_owned(), "".into()),
        ])),
        ..Verdict::block("no")
    };
    match decision.map(|decision| decision.outcome) {
        _ if merge(event, &[&loud]).is_silent() => true,
        _ if plan.is_sequential() => false,
        Some(Outcome::Stop) => true,
        Some(Outcome::Block) => {
            let merged = merge(event, &[&Verdict::block("no"), &allow]);
            merged.ruling == Some(Ruling::Block)
        }
        Some(
            Outcome::None | Outcome::Allow | Outcome::Context | Outcome::Rewrite | Outcome::Ask,
        )
        | None => false,
    }
}

fn compared(
    event: &Event,
    then: Option<&Then>,
    now: &Now,
    broken: &dyn Fn(&str) -> bool,
    gap: Gap<'_>,
) -> Comparison {
    let left_out = || Comparison::impossible("it depends on a command, and commands were left out");
    if now.open {
        return left_out();
    }
    let mut comparison = compare(then, now.decision.as_ref(), broken);
    // Whoever was left out might have said the words of then.
    if now.left_out && comparison.class == Class::Changed {
        return left_out();
    }
    if let Some(without) = &now.without_person {
        let other = compare(then, Some(without), broken);
        if (other.class == Class::Unchanged) != (comparison.class == Class::Unchanged) {
            return Comparison::impossible("whether a person could be asked then is not recorded");
        }
        if other.class != comparison.class {
            comparison.notes.push(format!(
                "if nobody could be asked then, {} blocks it",
                comparison.hook.as_deref().unwrap_or("the hook")
            ));
        }
    }
    if matches!(comparison.class, Class::NewlyAllowed | Class::NewlyBlocked | Class::Changed)
        && let Some(why) = unknown_memory(then, now.decision.as_ref(), &comparison, gap)
    {
        let why = format!("a plugin whose code is the same says something else: {why}");
        return Comparison { hook: comparison.hook, ..Comparison::impossible(why) };
    }
    if let Body::Unreadable { why } = &event.body
        && comparison.class != Class::Unchanged
    {
        comparison.notes.push(format!("the payload cannot be read: {why}"));
    }
    comparison
}

/// The first hook that says something else the second time, or nothing at all any more.
fn unsteady(first: &[&VerdictRecord], again: &[&VerdictRecord]) -> Option<Unsteady> {
    // Several may share a name: the first of a name is compared with the first, and so on.
    let mut left = again.to_vec();
    let silent = Verdict::silent();
    let mut asked = first.iter().filter(|said| !said.refused);
    asked.find_map(|said| {
        let place = left.iter().position(|other| other.hook == said.hook);
        let other = place.map(|place| left.remove(place));
        let (verdict, failure) =
            other.map_or((&silent, None), |it| (&it.verdict, it.failure.as_deref()));
        let differs = said.verdict != *verdict || said.failure.is_some() != failure.is_some();
        differs.then(|| Unsteady {
            hook: said.hook.clone(),
            answers: [in_words(&said.verdict, said.failure.as_deref()), in_words(verdict, failure)],
        })
    })
}

fn in_words(verdict: &Verdict, failure: Option<&str>) -> String {
    let reason = verdict.reason.as_deref().or(verdict.stop_reason.as_deref());
    let rewrite = verdict.rewrite.as_ref().map(|rewrite| match rewrite {
        Rewrite::Whole(input) => Value::Object(input.clone()).to_string(),
        Rewrite::Paths(paths) => paths.iter().cloned().collect::<Value>().to_string(),
    });
    let text = failure.or(reason).or(verdict.context.as_deref()).or(rewrite.as_deref());
    let outcome = Outcome::of(verdict);
    text.map_or_else(|| outcome.to_string(), |text| format!("{outcome} ({text})"))
}

/// What an event is about.
fn gist(event: &Event) -> String {
    let input = event.tool_input();
    let places =
        ["command", "file_path", "path", "absolute_path", "url", "query", "prompt", "code"];
    let text = places
        .iter()
        .find_map(|key| input?.get(*key)?.as_str())
        .or_else(|| event.field("prompt")?.as_str())
        .or_else(|| event.field("extra")?.get("user_message")?.as_str());
    let text = text.map_or_else(
        || input.map_or_else(String::new, |input| Value::Object(input.clone()).to_string()),
        str::to_owned,
    );
    text.chars().take(GIST).collect()
}
