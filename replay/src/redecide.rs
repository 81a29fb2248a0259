//! Decides on a recorded event again, by the same steps as the live bus (`decode`, `plan`, the hooks,
//! `conclude`) and with the working directory and session variables that were recorded.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookbus::config::Hook;
use hookbus::decide::{DecisionContext, HookResult, Plan, conclude, plan, run_rules};
use hookbus::dialect::{Arrival, decode, dialect_of, recorded_choice, recorded_wire};
use hookbus::event::{
    Agent, Decision, Event, Kind, Outcome, PluginHistory, Rewrite, Ruling, Verdict, VerdictRecord,
};
use hookbus::log::RecordedEvent;
use hookbus::redact::Mark;
use hookbus::rule::{Facts, Place, ShellLines};
use serde_json::Value;

use crate::command_runner::{CommandRunner, Commands};
use crate::compare::{Category, Comparison, compare, explained_by_unknown_state};
use crate::plugin_warmup::{KnownDecision, notify_plugins, unknown_state};
use crate::recorded_decision::{DecisionError, read_decision};
use crate::recorded_hooks::HooksError;
use crate::replay_hooks::ReplayHooks;
use crate::replayed_event::{NondeterministicHook, ReplayedEvent, short_gist};
use crate::rule_memory::RuleMemory;
use crate::source::EventReader;
use crate::unapproved::skip_unapproved;
use hookbus::event::RecordedDecision;

/// Continuations are counted up to this number.
const MOST_CONTINUATIONS: u32 = 1000;

/// Which events are reported, and how much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Events that differ.
    Differences,
    /// Every event.
    AllEvents,
    /// Every event with its payload.
    Payloads,
}

/// Decides on recorded events again.
#[derive(Debug)]
pub struct Redecider<'a> {
    hooks: &'a ReplayHooks,
    /// None if commands are skipped.
    runner: Option<CommandRunner<'a>>,
    /// Whether plugins run, which may keep state between events.
    has_plugins: bool,
    detail: Detail,
    /// The place of the event before. Most events of a session happen at the same one.
    last_place: RefCell<Option<KnownPlace>>,
    rules: RefCell<RuleMemory>,
}

/// A place, and what it was read from.
#[derive(Debug)]
struct KnownPlace {
    context: String,
    /// The working directory in the payload.
    cwd: Option<String>,
    bus: PathBuf,
    place: Arc<Place>,
}

/// The replayed decision, and what has to be known to compare it.
#[derive(Default)]
struct NewDecision {
    decision: Option<Decision>,
    /// The decision if the user could not be asked; set where the log does not say and it matters.
    without_user: Option<Decision>,
    nondeterministic: Option<NondeterministicHook>,
    /// Whether commands were skipped.
    skipped_commands: bool,
    /// A foreign command that was not run, by the name of its hook.
    refused: Option<String>,
    /// Whether the skipped commands could have changed the outcome.
    is_undecided: bool,
    /// Names of the plugins that gave a verdict.
    plugins: Vec<String>,
    /// Whether the hooks are the recorded ones.
    same_hooks: bool,
}

impl NewDecision {
    const fn is_empty(&self) -> bool {
        self.decision.is_none() && !self.is_undecided
    }
}

/// Why an event cannot be decided on again.
#[derive(Debug, thiserror::Error)]
enum RedecideError {
    #[error("this version of hookbus does not know the agent")]
    UnknownAgent,
    #[error("the recorded decision cannot be read: {0}")]
    Decision(#[from] DecisionError),
    #[error("no decision was recorded, although a command must have run")]
    Interrupted,
    #[error("its payload was removed")]
    Removed,
    #[error("not recorded: hooks are asked about it, and the log holds {}", describe_choice(.0))]
    NotRecorded(String),
    #[error(transparent)]
    Hooks(#[from] HooksError),
}

impl<'a> Redecider<'a> {
    /// Runs the hooks of `hooks`, and commands as `commands` says.
    pub fn new(hooks: &'a ReplayHooks, commands: Commands<'a>, detail: Detail) -> io::Result<Self> {
        let runner = CommandRunner::new(commands)?;
        let has_plugins = runner.is_some() && hooks.has_plugins();
        let (last_place, rules) = (RefCell::default(), RefCell::default());
        Ok(Self { hooks, runner, has_plugins, detail, last_place, rules })
    }

    /// Decides on `row` again. Returns nothing if no hook gave a verdict then or now, unless all events are to be
    /// reported.
    pub fn redecide(
        &self,
        mut row: RecordedEvent,
        reader: &dyn EventReader,
    ) -> Option<Box<ReplayedEvent>> {
        self.announce(&row);
        let agent = row.agent.parse::<Agent>().ok();
        if row.decision.is_none()
            && self.detail == Detail::Differences
            && agent.is_some_and(|agent| !dialect_of(agent).is_answered())
        {
            return None;
        }
        let kept_row = (self.detail == Detail::Payloads).then(|| Box::new(row.clone()));
        // The payload of a decision goes with that of its event.
        let decision = row.decision.take().filter(|_| !row.is_removed);
        let recorded = decision.map(|payload| read_decision(&payload));
        let raw = std::mem::take(&mut row.payload);
        // All agents keep the event's name in the same field, so any dialect can read it.
        let event = decode_row(&row, agent.unwrap_or(Agent::Hermes), raw);
        let (recorded, new) = match (agent, recorded.transpose()) {
            (None, recorded) => (recorded.ok().flatten(), Err(RedecideError::UnknownAgent)),
            (Some(_), _) if row.is_removed => (None, Err(RedecideError::Removed)),
            (Some(_), Err(error)) => (None, Err(error.into())),
            (Some(_), Ok(recorded)) => {
                let new = self.decide(&event, &row, recorded.as_ref(), reader);
                (recorded, new)
            }
        };
        if let Err(
            RedecideError::Decision(_) | RedecideError::Interrupted | RedecideError::NotRecorded(_),
        ) = &new
        {
            self.notify_plugins(&event, &row, KnownDecision::Unknown);
        }
        let is_empty = |new: &NewDecision| recorded.is_none() && new.is_empty();
        let (new, comparison) = match new {
            Ok(new) if is_empty(&new) && self.detail == Detail::Differences => return None,
            Ok(new) => {
                let comparison = self.compare(&event, &row, recorded.as_ref(), &new);
                (new, comparison)
            }
            Err(error) => (NewDecision::default(), Comparison::not_comparable(error.to_string())),
        };
        let continuations = if kept_row.is_some() && is_continued_turn(&event) {
            reader.continuations_before(&event, row.seq, MOST_CONTINUATIONS)
        } else {
            0
        };
        let is_reported =
            self.detail > Detail::Differences || comparison.category != Category::Unchanged;
        Some(Box::new(ReplayedEvent {
            seq: row.seq,
            at: row.at,
            gist: if is_reported { short_gist(&event) } else { String::new() },
            agent: row.agent,
            session: event.session,
            name: event.name,
            kind: event.kind.as_str().to_owned(),
            tool: event.tool.map(|tool| tool.name),
            recorded,
            replayed: new.decision,
            comparison,
            nondeterministic: new.nondeterministic,
            continuations,
            row: kept_row,
        }))
    }

    /// Passes an event that is not selected to plugins, so that their state is as it was.
    pub fn warm_up(&self, mut row: RecordedEvent) {
        let Ok(agent) = row.agent.parse::<Agent>() else { return };
        if !self.has_plugins {
            return;
        }
        self.announce(&row);
        if row.is_removed {
            return;
        }
        let decision = row.decision.take();
        let decision = decision.and_then(|payload| read_decision(&payload).ok());
        let raw = std::mem::take(&mut row.payload);
        let event = decode_row(&row, agent, raw);
        self.notify_plugins(&event, &row, KnownDecision::Known(decision.as_ref()));
    }

    /// Whether a project's hooks file of this replay is used for `row`.
    pub(crate) fn replaces_project_of(&self, row: &RecordedEvent) -> bool {
        self.hooks.replaces_project_of(row)
    }

    /// Tells the environment that this event is reached: plugins that were started for it are restarted.
    fn announce(&self, row: &RecordedEvent) {
        if let (true, Some(runner)) = (self.has_plugins, &self.runner) {
            runner.environment.pass(row.origin().0, row.id);
        }
    }

    fn notify_plugins(&self, event: &Event, row: &RecordedEvent, decision: KnownDecision<'_>) {
        if let Some(runner) = &self.runner {
            notify_plugins(runner, self.hooks, event, row, decision);
        }
    }

    fn decide(
        &self,
        event: &Event,
        row: &RecordedEvent,
        recorded: Option<&RecordedDecision>,
        reader: &dyn EventReader,
    ) -> Result<NewDecision, RedecideError> {
        let was_interrupted =
            || self.hooks.recorded().is_some_and(|hooks| hooks.was_interrupted(row, event));
        if recorded.is_none() && was_interrupted() {
            return Err(RedecideError::Interrupted);
        }
        let hash = recorded.and_then(|decision| decision.hooks.as_deref());
        let hooks = self.hooks.for_event(row, hash)?;
        let mut plan = plan(event, &hooks);
        let carried = skip_unapproved(&mut plan, self.hooks, row, recorded);
        let refused = self.hooks.leave_out_refused(&mut plan, row);
        check_recorded_whole(row, &plan)?;
        let same_hooks = hash == Some(plan.hooks_hash());
        let (place, lines) = (self.place(event, row, plan.home()), ShellLines::default());
        let facts = Facts::new(event, &place, &lines);
        let (verdicts, skipped_commands) = match (&self.runner, plan.runs_outside()) {
            (Some(runner), true) => (runner.run(&plan, &facts, row), false),
            // The answer does not depend on hooks in shadow mode.
            (None, true) => (run_rules(&plan, &facts, Duration::MAX), plan.outside().any(decides)),
            (_, false) => (self.rules.borrow_mut().run(&plan, &hooks, &facts), false),
        };
        let skipped_commands = skipped_commands || refused.is_some();
        let verdicts = carried.insert_into(verdicts);
        let conclude = |verdicts: Vec<HookResult<'_>>, can_ask: bool| {
            let limit = hooks.own.file.max_continuations;
            (!verdicts.is_empty()).then(|| {
                let context = DecisionContext {
                    started: Instant::now(),
                    can_ask: &|| can_ask,
                    waited_for: true,
                    continuations: if is_continued_turn(event) {
                        reader.continuations_before(event, row.seq, limit).saturating_add(1)
                    } else {
                        0
                    },
                };
                conclude(event, &plan, verdicts, &context)
            })
        };
        let can_ask = recorded.and_then(|decision| decision.can_ask);
        let asks = |result: &HookResult<'_>| result.record().verdict.ruling == Some(Ruling::Ask);
        let first = self.repeats(&plan).then(|| verdicts.clone());
        let asking = (can_ask.is_none() && verdicts.iter().any(asks)).then(|| verdicts.clone());
        let decision = conclude(verdicts, can_ask.unwrap_or(true));
        let depends_on_user = decision.as_ref().is_some_and(|it| it.can_ask.is_some());
        let without_user =
            asking.filter(|_| depends_on_user).and_then(|verdicts| conclude(verdicts, false));
        let nondeterministic = first.and_then(|first| self.repeat(&plan, &facts, row, &first));
        let is_undecided = skipped_commands && !is_settled(event, &plan, decision.as_ref());
        let names = decision.iter().flat_map(|it| &it.verdicts).map(|verdict| &verdict.hook);
        let plugins = names.filter(|name| plan.is_plugin(name)).cloned().collect();
        Ok(NewDecision {
            decision,
            without_user,
            nondeterministic,
            skipped_commands,
            refused,
            is_undecided,
            plugins,
            same_hooks,
        })
    }

    /// Where `event` happened.
    fn place(&self, event: &Event, row: &RecordedEvent, bus: &Path) -> Arc<Place> {
        let context = row.context.as_deref().unwrap_or("{}");
        let cwd = event.field("cwd").and_then(Value::as_str);
        let is_same = |known: &&KnownPlace| {
            known.context == context && known.cwd.as_deref() == cwd && known.bus == bus
        };
        let mut last = self.last_place.borrow_mut();
        if let Some(known) = last.as_ref().filter(is_same) {
            return Arc::clone(&known.place);
        }
        let place = Arc::new(Place::of_recorded(event, context, bus));
        *last = Some(KnownPlace {
            context: context.to_owned(),
            cwd: cwd.map(str::to_owned),
            bus: bus.to_owned(),
            place: Arc::clone(&place),
        });
        place
    }

    /// Whether a command of `plan` runs more than once; plugins never do.
    fn repeats(&self, plan: &Plan<'_>) -> bool {
        self.runner.as_ref().is_some_and(|runner| runner.repeat > 1)
            && plan.outside().any(|hook| !hook.is_plugin())
    }

    fn repeat<'h>(
        &self,
        plan: &Plan<'h>,
        facts: &Facts<'_>,
        row: &RecordedEvent,
        first: &[HookResult<'h>],
    ) -> Option<NondeterministicHook> {
        let runner = self.runner.as_ref()?;
        let verdicts: Vec<&VerdictRecord> = first.iter().map(HookResult::record).collect();
        (1..runner.repeat).find_map(|_| {
            let again = runner.run_again(plan, facts, row, first);
            let again: Vec<&VerdictRecord> = again.iter().map(HookResult::record).collect();
            NondeterministicHook::find(&verdicts, &again)
        })
    }

    fn compare(
        &self,
        event: &Event,
        row: &RecordedEvent,
        recorded: Option<&RecordedDecision>,
        new: &NewDecision,
    ) -> Comparison {
        let hash = recorded.and_then(|decision| decision.hooks.as_deref());
        let was_malformed = |hook: &str| {
            self.hooks.recorded().is_some_and(|hooks| hooks.was_malformed(row, hash, hook))
        };
        let compare = |replayed: Option<&Decision>| compare(recorded, replayed, &was_malformed);
        let skipped = || match &new.refused {
            Some(hook) => Comparison::not_comparable(format!("not run (foreign command): {hook}")),
            None => Comparison::not_comparable("it depends on a command that was skipped"),
        };
        if new.is_undecided {
            return skipped();
        }
        let mut comparison = compare(new.decision.as_ref());
        // A skipped command may have given the recorded reason.
        if new.skipped_commands && comparison.category == Category::Changed {
            return skipped();
        }
        if let Some(without_user) = &new.without_user {
            let other = compare(Some(without_user)).category;
            let category = comparison.category;
            if (other == Category::Unchanged) != (category == Category::Unchanged) {
                let why = "the log does not say whether the user could be asked";
                return Comparison::not_comparable(why);
            }
            if other != category {
                let hook = comparison.hook.as_deref().unwrap_or("the hook");
                let note = format!("if the user could not be asked, {hook} blocks it");
                comparison.notes.push(note);
            }
        }
        if comparison.category.is_other_answer()
            && let Some(why) = self.unknown_plugin_state(recorded, new, &comparison)
        {
            let why = format!("a plugin with unchanged code answers differently: {why}");
            return Comparison { hook: comparison.hook, ..Comparison::not_comparable(why) };
        }
        if depends_on_secret(event, &comparison) {
            let why = "redacted: a secret that the hooks saw is not in the log";
            return Comparison { hook: comparison.hook, ..Comparison::not_comparable(why) };
        }
        if let Some(why) = event.why_unreadable()
            && comparison.category != Category::Unchanged
        {
            comparison.notes.push(format!("the payload cannot be read: {why}"));
        }
        comparison
    }

    /// Why a difference may come from a plugin's state and not from its code or the hooks file.
    fn unknown_plugin_state(
        &self,
        recorded: Option<&RecordedDecision>,
        new: &NewDecision,
        comparison: &Comparison,
    ) -> Option<String> {
        let environment = self.runner.as_ref()?.environment;
        let unknown = |hook: &str, states: [Option<PluginHistory>; 2]| {
            let is_plugin = new.plugins.iter().any(|plugin| plugin == hook);
            is_plugin.then(|| unknown_state(environment, states, new.same_hooks)).flatten()
        };
        explained_by_unknown_state(recorded?, new.decision.as_ref()?, comparison, &unknown)
    }
}

/// A recorded event as the live bus decoded it; none if this version does not know its agent.
pub fn decode_recorded(row: &RecordedEvent) -> Option<Event> {
    Some(decode_row(row, row.agent.parse().ok()?, row.payload.clone()))
}

fn decides(hook: &Hook) -> bool {
    !hook.is_shadow()
}

/// Decodes a recorded payload as the live bus did.
pub(crate) fn decode_row(row: &RecordedEvent, agent: Agent, raw: Vec<u8>) -> Event {
    // The recorded session came from the payload or from the agent's environment.
    let session_hint = Some(row.session.clone()).filter(|session| !session.is_empty());
    let wire = recorded_wire(row.context.as_deref().unwrap_or("{}"));
    decode(Arrival { id: row.id, at: row.at, agent, wire, raw: raw.into(), session_hint })
}

fn describe_choice(choice: &str) -> &str {
    match choice {
        "without" => "it without some fields (`record:`)",
        _ => "only its outline (`record:`)",
    }
}

/// Whether a difference may come from a secret that was replaced before the event was recorded. What is refused now is
/// refused without it.
fn depends_on_secret(event: &Event, comparison: &Comparison) -> bool {
    comparison.category.is_other_answer()
        && comparison.category != Category::NewlyBlocked
        && !Mark::find_all(&String::from_utf8_lossy(&event.raw)).is_empty()
}

/// Whether a hook made the agent continue before this end of a turn.
fn is_continued_turn(event: &Event) -> bool {
    event.kind == Kind::TurnEnd && dialect_of(event.agent).is_continuation(event)
}

/// Hooks that decide cannot be asked about an event of which only a part was recorded.
fn check_recorded_whole(row: &RecordedEvent, plan: &Plan<'_>) -> Result<(), RedecideError> {
    match recorded_choice(row.context.as_deref().unwrap_or_default()) {
        Some(choice) if plan.hooks().any(decides) => Err(RedecideError::NotRecorded(choice)),
        Some(_) | None => Ok(()),
    }
}

/// Whether the outcome is certain without the skipped commands: the agent accepts no answer to
/// this event, or the rules refuse it and no other verdict overrides a refusal.
fn is_settled(event: &Event, plan: &Plan<'_>, decision: Option<&Decision>) -> bool {
    let allow = Verdict { ruling: Some(Ruling::Allow), ..Verdict::silent() };
    let everything = Verdict {
        stop: true,
        context: Some(String::new()),
        notice: Some(String::new()),
        rewrite: Some(Rewrite::Paths(vec![
            ("text".to_owned(), "".into()),
            ("command".to_owned(), "".into()),
        ])),
        ..Verdict::block("no")
    };
    let dialect = dialect_of(event.agent);
    match decision.map(|decision| decision.outcome) {
        _ if dialect.merge(event, &[&everything]).is_silent() => true,
        _ if plan.is_sequential() => false,
        Some(Outcome::Stop) => true,
        Some(Outcome::Block) => {
            let merged = dialect.merge(event, &[&Verdict::block("no"), &allow]);
            merged.ruling == Some(Ruling::Block)
        }
        Some(
            Outcome::None | Outcome::Allow | Outcome::Context | Outcome::Rewrite | Outcome::Ask,
        )
        | None => false,
    }
}
