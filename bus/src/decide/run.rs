//! Asking the planned hooks. They run at the same time unless one of them is `sequential`; the results come
//! back in the configured order.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;

use super::plan::{Plan, RefusedBy, failure_policy};
use super::replay::ReplayEnvironment;
use super::run_command::run_command;
use super::run_plugins::{call_plugins, end_plugins};
use crate::active::ActiveHooks;
use crate::caller::Caller;
use crate::config::{Action, Hook, Problem, Refusal};
use crate::event::{BusId, Event, Kind, OnFailure, Ruling, Seq, Verdict, VerdictRecord};
use crate::exec::{UserEnvironment, hook_caller};
use crate::plugins::can_gateway_hooks_answer;
use crate::rule::{Facts, Rule, ShellLines};

/// No deadline is longer: adding a huge one to the clock would overflow.
const LONGEST: Duration = Duration::from_hours(1);

/// Searching a larger payload may take long.
const LARGE_PAYLOAD: usize = 256 << 10;

/// The result of one hook; without a hook, the answer of the bus itself.
#[derive(Debug, Clone)]
pub struct HookResult<'a> {
    pub(super) hook: Option<&'a Hook>,
    pub(super) record: VerdictRecord,
}

impl<'a> HookResult<'a> {
    /// A result of `hook` with this record.
    pub const fn new(hook: &'a Hook, record: VerdictRecord) -> Self {
        Self { hook: Some(hook), record }
    }

    /// Applies its verdict to the event that the next hook gets. A hook in shadow mode changes nothing.
    fn pass_on(&self, event: &mut Event) {
        if !self.record.shadow {
            apply_to_next(event, &self.record.verdict);
        }
    }

    /// The hook; none if the bus itself answered.
    pub const fn hook(&self) -> Option<&'a Hook> {
        self.hook
    }

    /// The part that is recorded.
    pub const fn record(&self) -> &VerdictRecord {
        &self.record
    }
}

/// The results of a plan's rules, within `time`; nothing runs outside of this process.
pub fn run_rules<'a>(plan: &Plan<'a>, facts: &Facts<'_>, time: Duration) -> Vec<HookResult<'a>> {
    run_inside(plan, facts, deadline_in(time), |_| None)
}

/// The results of a plan's rules, and what `outside` makes of the other hooks.
pub(super) fn run_inside<'a>(
    plan: &Plan<'a>,
    facts: &Facts<'_>,
    deadline: Instant,
    outside: impl Fn(&Hook) -> Option<VerdictRecord>,
) -> Vec<HookResult<'a>> {
    let event = facts.event;
    match plan.refused_by {
        Some(RefusedBy::Hook(hook)) => {
            return vec![HookResult::new(hook, refuse_unreadable(&hook.name, event))];
        }
        Some(RefusedBy::Bus) => {
            return vec![HookResult { hook: None, record: refuse_unreadable("hookbus", event) }];
        }
        Some(RefusedBy::UnknownHooks(problem)) => {
            return vec![HookResult { hook: None, record: refuse_without_hooks(problem) }];
        }
        None => {}
    }
    // The clock is read once per answer, not once per rule: rules without an answer take less time than that.
    let since = Cell::new(Instant::now());
    let run = |hook: &'a Hook, facts: &Facts<'_>| {
        let record = if hook.runs_outside() {
            outside(hook)
        } else {
            answer_in_process(plan.active(hook), hook, facts, since.get(), deadline)
        };
        let result = HookResult::new(hook, record?);
        since.set(Instant::now());
        Some(result)
    };
    if !plan.sequential {
        return plan.hooks.iter().filter_map(|hook| run(hook, facts)).collect();
    }
    let (mut event, mut results) = (event.clone(), Vec::new());
    for hook in &plan.hooks {
        let lines = ShellLines::default();
        if let Some(result) = run(hook, &facts.of_changed(&event, &lines)) {
            result.pass_on(&mut event);
            results.push(result);
        }
    }
    results
}

/// What running all hooks of a plan came to.
#[derive(Debug)]
pub struct RunOutcome<'a> {
    /// The results, in the configured order.
    pub results: Vec<HookResult<'a>>,
    /// Whether a hook could not start because this process is short of descriptors, processes or memory.
    /// Such a hook blocks, unless its entry says otherwise; another process may be able to run it.
    pub short: bool,
}

/// The results of all hooks of a plan, within `time`.
pub async fn run_all<'a>(
    plan: &Plan<'a>,
    facts: &Facts<'_>,
    seq: Option<Seq>,
    caller: &Caller,
    time: Duration,
) -> RunOutcome<'a> {
    let (deadline, short) = (deadline_in(time), AtomicBool::new(false));
    let (agent, bus, replay, known) = (caller, None, None, &[][..]);
    let run = HookRun { plan, seq, bus, agent, replay, known, deadline, short };
    let results = run.all(facts).await;
    RunOutcome { results, short: run.short.into_inner() }
}

pub(super) fn deadline_in(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

/// One run of the hooks of a plan about one event.
pub(super) struct HookRun<'a, 'p> {
    pub(super) plan: &'a Plan<'p>,
    /// The event's position in the log.
    pub(super) seq: Option<Seq>,
    /// In a replay of several buses: whose event it is.
    pub(super) bus: Option<BusId>,
    /// Where the event comes from. Hooks run with what [`caller`](Self::caller) makes of it.
    pub(super) agent: &'a Caller,
    /// In a replay: where programs and plugins run.
    pub(super) replay: Option<&'a ReplayEnvironment>,
    /// Results of plugins that are already known: a second call would count the event twice.
    pub(super) known: &'a [HookResult<'p>],
    pub(super) deadline: Instant,
    /// Set if a hook could not start because this process is short of something.
    pub(super) short: AtomicBool,
}

impl<'p> HookRun<'_, 'p> {
    pub(super) async fn all(&self, facts: &Facts<'_>) -> Vec<HookResult<'p>> {
        let plan = self.plan;
        if !plan.sequential {
            let results = plan.hooks.iter().map(|hook| self.one(hook, facts));
            return join_all(results).await.into_iter().flatten().collect();
        }
        let mut event = facts.event.clone();
        let mut all = Vec::new();
        for hook in &plan.hooks {
            let lines = ShellLines::default();
            let results = self.one(hook, &facts.of_changed(&event, &lines)).await;
            for result in results {
                result.pass_on(&mut event);
                all.push(result);
            }
        }
        all
    }

    /// One result per hook, or per plugin of a directory; none from a rule that does not apply and from plugins
    /// without a callback.
    async fn one<'h>(&self, hook: &'h Hook, facts: &Facts<'_>) -> Vec<HookResult<'h>> {
        let event = facts.event;
        let strictest = &self.plan.with_strictest_policy(hook);
        let approved = match self.approved_entry(hook).await {
            Ok(entry) => entry,
            Err(refusal) => {
                let record = self.refused(&policy_for_refusal(strictest, &refusal, event), refusal);
                return vec![HookResult::new(hook, record)];
            }
        };
        if let Some(why) = hook.matcher_failure(event) {
            let record = failed(&blocking_by_default(strictest), why.to_string(), Duration::ZERO);
            return vec![HookResult::new(hook, record)];
        }
        let records = match &hook.action {
            Action::Python(_) if !self.known.is_empty() => self.known_records(hook),
            Action::Command(command) => vec![run_command(self, strictest, command, event).await],
            Action::Python(_) => call_plugins(self, strictest, approved, event).await,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Analytics(_)
            | Action::Broken(_)
            | Action::Unapproved { .. } => {
                let active = self.plan.active(hook);
                let now = Instant::now();
                answer_in_process(active, hook, facts, now, self.deadline).into_iter().collect()
            }
        };
        records.into_iter().map(|record| HookResult::new(hook, record)).collect()
    }

    /// The first approved one of the entries that `hook` stands for; else the refusal with the greatest weight.
    async fn approved_entry<'h>(&'h self, hook: &'h Hook) -> Result<&'h Hook, Refusal> {
        let approvals = &self.plan.active(hook).approvals;
        let mut refusals = Vec::new();
        for entry in self.plan.approvable(hook) {
            let limit = entry.timeout().min(self.time_left());
            let refusal = approvals.refusal(entry, self.agent, limit).await;
            let Some(refusal) = refusal else { return Ok(entry) };
            refusals.push(Some(refusal));
        }
        heaviest_refusal(refusals).map_or(Ok(hook), Err)
    }

    /// The agent as `hook` gets it: its working directory and its environment, without what changes programs,
    /// and with the user's own `PATH` and home directory.
    pub(super) fn caller(&self, hook: &Hook) -> Caller {
        match self.replay {
            // The user has started the replay, so its environment is the user's own.
            Some(_) => {
                let user = UserEnvironment::of_caller(self.agent);
                hook_caller(self.agent, &user, None, hook.pass_env())
            }
            None => {
                let store = self.plan.active(hook).approvals.store();
                store.hook_caller(self.agent, hook.pass_env())
            }
        }
    }

    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Notes that `hook` could not start. In shadow mode that changes nothing for the agent.
    pub(super) fn note_shortage(&self, hook: &Hook) {
        self.short.fetch_or(!hook.is_shadow(), Ordering::Relaxed);
    }

    /// The record of a hook that must not run. Ends its plugins, if they are running.
    pub(super) fn refused(&self, hook: &Hook, refusal: Refusal) -> VerdictRecord {
        if let (true, Action::Python(python)) = (refusal.checked, &hook.action) {
            end_plugins(self, hook, python);
        }
        refused(hook, refusal)
    }

    fn known_records(&self, hook: &Hook) -> Vec<VerdictRecord> {
        let is_of_hook =
            |result: &&HookResult<'_>| result.hook.is_some_and(|own| std::ptr::eq(own, hook));
        self.known.iter().filter(is_of_hook).map(|result| result.record.clone()).collect()
    }
}

/// The refusal of a hook by those of the entries that it stands for: none if one of them may run, else the one
/// with the greatest weight.
pub(super) fn heaviest_refusal(
    refusals: impl IntoIterator<Item = Option<Refusal>>,
) -> Option<Refusal> {
    let mut heaviest: Option<Refusal> = None;
    for refusal in refusals {
        let refusal = refusal?;
        let checked = refusal.checked && heaviest.as_ref().is_none_or(|it| it.checked);
        let heavier = heaviest.take().filter(|it| it.weight() >= refusal.weight());
        heaviest = Some(Refusal { checked, ..heavier.unwrap_or(refusal) });
    }
    heaviest
}

/// Use `on_failure: allow` when the refused hook could not have answered this event anyway.
pub(super) fn policy_for_refusal<'h>(
    hook: &'h Hook,
    refusal: &Refusal,
    event: &Event,
) -> Cow<'h, Hook> {
    if refusal.only_gateway_hooks && !can_gateway_hooks_answer(event) {
        Cow::Owned(Hook { on_failure: Some(OnFailure::Allow), ..hook.clone() })
    } else {
        Cow::Borrowed(hook)
    }
}

/// The hook with a failure policy that blocks, unless its entry says otherwise: for a hook that was in force
/// and cannot run any more.
pub(super) fn blocking_by_default(hook: &Hook) -> Hook {
    Hook { on_failure: hook.on_failure.or(Some(OnFailure::Block)), ..hook.clone() }
}

/// The hook counts as failed. If its approval has lapsed or is lost, it blocks unless its entry says otherwise.
pub(super) fn refused(hook: &Hook, Refusal { approval, why, .. }: Refusal) -> VerdictRecord {
    let mut hook = if approval.is_void() { blocking_by_default(hook) } else { hook.clone() };
    if hook.of_project {
        // The model may read the name, and the project's file may come from anyone.
        hook.name = format!("line {} of the project's hooks", hook.line);
    }
    VerdictRecord { refused: true, ..failed(&hook, why, Duration::ZERO) }
}

/// The answer of a hook that needs no other process. `started`: since when it counts as being asked.
fn answer_in_process(
    active: &ActiveHooks,
    hook: &Hook,
    facts: &Facts<'_>,
    started: Instant,
    deadline: Instant,
) -> Option<VerdictRecord> {
    if let Some(refusal) = active.approvals.refusal_of_text(hook) {
        return Some(refused(hook, refusal));
    }
    if let Some(why) = hook.matcher_failure(facts.event) {
        return Some(failed(&blocking_by_default(hook), why.to_string(), started.elapsed()));
    }
    match &hook.action {
        Action::Rule(rule) => answer_by_rule(rule, hook, facts, started, deadline),
        Action::Broken(why) => Some(failed(hook, why.clone(), started.elapsed())),
        Action::Command(_)
        | Action::Python(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Analytics(_)
        | Action::Unapproved { .. } => None,
    }
}

/// A rule that has no time for a large payload, or sees too little of it, has failed: an agent must not get past
/// a guard by making its payload larger.
fn answer_by_rule(
    rule: &Rule,
    hook: &Hook,
    facts: &Facts<'_>,
    started: Instant,
    deadline: Instant,
) -> Option<VerdictRecord> {
    let unable = |why: &str| {
        let hook = if rule.is_guard() { &blocking_by_default(hook) } else { hook };
        failed(hook, why.to_owned(), started.elapsed())
    };
    // The others take no time that counts.
    if facts.event.raw.len() > LARGE_PAYLOAD && Instant::now() >= deadline {
        return Some(unable("no time was left to search such a large payload"));
    }
    match rule.verdict(facts) {
        Ok(Some(verdict)) => Some(record(hook, verdict, None, started.elapsed())),
        Ok(None) if rule.may_apply(facts) => {
            Some(unable("the payload is too large, or nested too deep, to be searched completely"))
        }
        Ok(None) => None,
        Err(why) => Some(unable(&why.to_string())),
    }
}

/// The record of a hook that failed.
pub(super) fn failed(hook: &Hook, why: String, took: Duration) -> VerdictRecord {
    record(hook, Verdict::silent(), Some(why), took)
}

/// Applies the hook's failure policy. Only here a failure becomes a block or is ignored.
pub(super) fn record(
    hook: &Hook,
    verdict: Verdict,
    failure: Option<String>,
    took: Duration,
) -> VerdictRecord {
    let policy = failure_policy(hook);
    let verdict = match (&failure, policy) {
        (Some(why), OnFailure::Block) if !holds_back(&verdict) => {
            Verdict::block(format!("hook `{}` failed: {why}", hook.name))
        }
        (Some(_) | None, OnFailure::Block | OnFailure::Allow) => verdict,
    };
    VerdictRecord {
        hook: hook.name.clone(),
        verdict,
        exit: None,
        took,
        failure,
        policy,
        script: None,
        history: None,
        refused: false,
        of_project: hook.of_project,
        shadow: hook.is_shadow(),
        note: None,
    }
}

/// Whether a verdict holds the agent back, so that nothing stricter can come of a failure.
const fn holds_back(verdict: &Verdict) -> bool {
    matches!(verdict.ruling, Some(Ruling::Block | Ruling::Ask)) || verdict.stop
}

/// The block of an event that cannot be read, because `guard` blocks when it fails.
fn refuse_unreadable(guard: &str, event: &Event) -> VerdictRecord {
    let why = event.why_unreadable().unwrap_or_default();
    VerdictRecord {
        hook: guard.to_owned(),
        verdict: Verdict::block(format!(
            "hookbus cannot read this event ({why}), and `{guard}` blocks events that cannot be read"
        )),
        exit: None,
        took: Duration::ZERO,
        failure: Some(format!("the payload cannot be read: {why}")),
        policy: OnFailure::Block,
        script: None,
        history: None,
        refused: false,
        of_project: false,
        shadow: false,
        note: None,
    }
}

/// The block of an event while it is not known which hooks there should be. The user is told of that anyway, so it
/// is not a failure besides.
fn refuse_without_hooks(problem: &Problem) -> VerdictRecord {
    VerdictRecord {
        hook: "hookbus".to_owned(),
        verdict: Verdict::block(format!(
            "hookbus does not know your hooks (hookbus.yaml, {problem}), and it is connected with `--on-failure \
             block`; run `hookbus hooks doctor`"
        )),
        exit: None,
        took: Duration::ZERO,
        failure: None,
        policy: OnFailure::Block,
        script: None,
        history: None,
        refused: false,
        of_project: false,
        shadow: false,
        note: None,
    }
}

/// Applies a verdict to the event that the next hook gets, as Gemini chains hooks: changed input, extended
/// prompt, changed request.
fn apply_to_next(event: &mut Event, verdict: &Verdict) {
    // The next hook of a partial event gets it as it arrived: the payload cannot be put together again.
    let kind = event.kind;
    let Some(fields) = event.complete_fields_mut() else { return };
    if let (Some(rewrite), Some(Value::Object(input))) =
        (&verdict.rewrite, fields.get_mut("tool_input"))
    {
        let changed = rewrite.apply(input);
        input.extend(changed);
    } else if let (Some(context), Some(Value::String(prompt)), Kind::TurnStart) =
        (&verdict.context, fields.get_mut("prompt"), kind)
    {
        prompt.push_str("\n\n");
        prompt.push_str(context);
    } else if let (Some(Value::Object(changes)), Some(Value::Object(request))) =
        (verdict.own.get("llm_request"), fields.get_mut("llm_request"))
    {
        request.extend(changes.clone());
    } else {
        return;
    }
    event.raw = Value::Object(fields.clone()).to_string().into_bytes().into();
}
