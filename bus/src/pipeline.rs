//! What happens to one event, in one function: [`handle`] decodes, redacts, appends, decides, appends and encodes. A
//! feature that does not fit one of these steps belongs to another process.

mod decision_texts;
mod recorded;

pub use self::decision_texts::redact_decision;

use std::time::{Duration, Instant};

use serde_json::Value;

use self::recorded::Recorded;
use crate::active::HookSets;
use crate::bus::Bus;
use crate::caller::Caller;
use crate::decide::{
    CommandSlots, DecisionContext, HookResult, Plan, RulesAlone, RunOutcome, conclude, plan,
    run_all, run_rules, run_rules_alone,
};
use crate::dialect::{
    Arrival, NoticePlace, RecordedProject, decode, dialect_of, record_caller, session_hint,
    session_to_record,
};
use crate::event::{
    Agent, Decision, Event, EventId, Kind, Notice, OnFailure, Outcome, Payload, RecordedDecision,
    Seq, Time, Verdict,
};
use crate::log::{LogReader, RecordOutcome, RowDraft};
use crate::notice::{Situation, notice, notice_of_failures};
use crate::redact::Mark;
use crate::rule::{Facts, Place, ShellLines};

/// Waiting for the log takes at most a tenth of the deadline, and not longer than this; for the decision
/// afterwards half of it.
const LOG_SHARE: u32 = 10;
const MAX_LOG_WAIT: Duration = Duration::from_secs(2);

/// One call of a client.
#[derive(Debug, Clone)]
pub struct Call {
    /// Minted by the client, so that a retry can be recognised.
    pub id: EventId,
    /// When the client received the event.
    pub at: Time,
    /// The agent it comes from.
    pub agent: Agent,
    /// The payload.
    pub raw: Payload,
    /// The client.
    pub caller: Caller,
    /// How long the client waits for the answer.
    pub deadline: Duration,
}

/// What the client prints for the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// One line of JSON, or nothing.
    pub text: Option<String>,
    /// What the user is told besides, if the agent shows nothing of the answer.
    pub notice: Option<String>,
}

/// A daemon that cannot handle a call now: the client has to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declined;

/// [`handle`] in a daemon: within the limits of its process, or not at all.
///
/// `hung_up` tells whether the client has closed its connection in the meantime.
pub async fn handle_in_daemon(
    call: Call,
    bus: &Bus,
    slots: &CommandSlots,
    hung_up: impl Fn() -> bool,
) -> Result<Answer, Declined> {
    handle_within(call, bus, Some(slots), hung_up).await
}

/// Handles a call in the client's own process, which cannot decline.
pub async fn handle(call: Call, bus: &Bus) -> Answer {
    handle_within(call, bus, None, || false).await.unwrap_or_default()
}

/// Decode, redact, append, decide, append, encode. Hooks see the event as it is, the log only what is left of it. The answer is durable before it is given, in as few commits as
/// possible: if only rules decide, event and decision are one commit; if something runs outside of this
/// process, the event is committed before that starts.
async fn handle_within(
    call: Call,
    bus: &Bus,
    slots: Option<&CommandSlots>,
    hung_up: impl Fn() -> bool,
) -> Result<Answer, Declined> {
    let started = Instant::now();
    let hooks = bus.hooks_for(&call.caller);
    if slots.is_some() && !hooks.own.status.is_known() {
        return Err(Declined); // only the client knows what its wiring says for this case
    }
    let (event, caller, deadline) = decode_call(call, bus);
    let redactor = bus.redaction.redactor(&hooks.own.file);
    let record = Recorded::new(&event, redactor.as_ref(), &hooks, &bus.redaction);
    let plan = plan_for(&event, &hooks, bus);
    let (place, lines) = (place_of(&event, &plan, &caller), ShellLines::default());
    let facts = Facts::new(&event, &place, &lines).with_secrets(record.secrets());
    let handling =
        Handling { bus, hooks: &hooks, event: &event, record, facts, caller, started, deadline };
    // Before anything is recorded or runs, so that the client starts from the beginning.
    let _slots = match slots {
        Some(slots) => Some(slots.take(&plan, handling.time_left() / 10).await.ok_or(Declined)?),
        None => None,
    };
    let appended = match handling.append(&plan).await {
        Ok(appended) => appended,
        Err(AlreadyDecided(answer)) => return Ok(answer),
    };
    let decision = match handling.decide(&plan, &appended, hung_up).await {
        // The client finds the event in the log, asks all hooks again and records the decision.
        Decided { short: true, .. } if slots.is_some() => return Err(Declined),
        Decided { decision, .. } => decision,
    };
    let decision = handling.tell(decision).await;
    let recorded = handling.append_decision(appended, decision.as_ref()).await;
    Ok(handling.encode(decision.as_ref(), recorded))
}

/// The answer when not all hooks can be asked: rules count, whatever runs outside of this process has failed, and
/// the event goes to the spool. If another process records it after all, that record stays. The call's deadline is
/// what is left for that.
pub fn answer_by_rules_alone(call: Call, bus: &Bus, cause: RulesAlone) -> Answer {
    let started = Instant::now();
    let hooks = bus.hooks_for(&call.caller);
    let (event, caller, deadline) = decode_call(call, bus);
    let redactor = bus.redaction.redactor(&hooks.own.file);
    let record = Recorded::new(&event, redactor.as_ref(), &hooks, &bus.redaction);
    let plan = plan_for(&event, &hooks, bus);
    let (place, lines) = (place_of(&event, &plan, &caller), ShellLines::default());
    let facts = Facts::new(&event, &place, &lines).with_secrets(record.secrets());
    let handling =
        Handling { bus, hooks: &hooks, event: &event, record, facts, caller, started, deadline };
    let results =
        run_rules_alone(&plan, &handling.facts, &handling.caller, handling.time_left(), cause);
    let mut decision = handling.conclude(&plan, results, None, WaitedFor::Yes);
    let notice = notice_of_failures(handling.situation(decision.as_ref()));
    if let Some(notice) = notice {
        decision.get_or_insert_with(|| handling.no_decision()).add_notice(notice);
    }
    if handling.record.is_nothing() && decision.is_none() {
        return handling.encode(None, None);
    }
    let row = decision.as_ref().map(|decision| handling.decision_row(decision));
    let recorded = bus.recorder.spool_event(handling.event_row(), row, &hooks.to_record());
    handling.encode(decision.as_ref(), Some(recorded))
}

/// When the user of an agent is told that no hook could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TellUser {
    /// At the start of a session and of a turn: it stays that way for a while.
    AtStart,
    /// Now: the next event may be answered as usual.
    Now,
}

/// The answer of a client that cannot read its home, so that nothing is recorded and no hook is known: a block where the
/// agent can be blocked, if the wiring asks for that; otherwise the agent goes on, and its user is told.
pub fn answer_without_policy(
    call: Call,
    on_failure: OnFailure,
    why: &str,
    when: TellUser,
) -> Answer {
    let Call { id, at, agent, raw, caller, .. } = call;
    let session_hint = session_hint(agent, &caller);
    let event = decode(Arrival { id, at, agent, wire: caller.wire, raw, session_hint });
    let dialect = dialect_of(agent);
    if on_failure == OnFailure::Block && can_refuse(&event) {
        return Answer::with(dialect.encode(&event, &Verdict::block(why)).as_ref(), None);
    }
    let is_start = matches!(event.kind, Kind::SessionStart | Kind::TurnStart);
    if when == TellUser::AtStart && !is_start {
        return Answer::default();
    }
    let place = dialect.notice_place(&event, None, &caller);
    if place == NoticePlace::Nowhere {
        // The model reads a context, and can pass it on.
        let context = Some(format!("Tell the user: {why}"));
        let verdict = Verdict { context, ..Verdict::silent() };
        return Answer::with(dialect.encode(&event, &verdict).as_ref(), None);
    }
    let in_answer = place == NoticePlace::InAnswer;
    let notice = Notice { text: why.to_owned(), about: Vec::new(), in_answer };
    Answer::with(notice.add_to(None).as_ref(), Some(&notice))
}

/// Whether the agent can be refused what it is about to do. Refusing the end of a turn would only make it continue,
/// again and again.
fn can_refuse(event: &Event) -> bool {
    dialect_of(event.agent).capabilities(event).block
        && !matches!(event.kind, Kind::TurnEnd | Kind::TurnVerify)
}

fn plan_for<'a>(event: &Event, hooks: &'a HookSets, bus: &Bus) -> Plan<'a> {
    let plan = plan(event, hooks);
    match bus.on_unknown_hooks {
        OnFailure::Block if can_refuse(event) => plan.refuse_if_unknown(),
        OnFailure::Block | OnFailure::Allow => plan,
    }
}

/// Where the call happens. That is worked out only where a rule may ask for it, now or in a replay.
fn place_of(event: &Event, plan: &Plan<'_>, caller: &Caller) -> Place {
    if event.tool.is_some() || plan.has_rules() {
        Place::of_call(event, caller, plan.home())
    } else {
        Place::default()
    }
}

fn decode_call(call: Call, bus: &Bus) -> (Event, Caller, Duration) {
    let Call { id, at, agent, raw, caller, deadline } = call;
    let session_hint = session_hint(agent, &caller);
    raw.digest_ahead();
    let mut event = decode(Arrival { id, at, agent, wire: caller.wire, raw, session_hint });
    bus.session_links.resolve(&mut event);
    (event, caller, deadline)
}

/// One event while the bus handles it.
struct Handling<'a> {
    bus: &'a Bus,
    hooks: &'a HookSets,
    event: &'a Event,
    /// What is recorded of the event.
    record: Recorded<'a>,
    /// What rules see of the event.
    facts: Facts<'a>,
    caller: Caller,
    started: Instant,
    deadline: Duration,
}

/// How far recording the event has come before it is decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Appended {
    /// Not yet: it will be committed with its decision.
    WithDecision,
    /// It is in the log.
    At(Seq),
    /// It is in the spool.
    Spooled,
    /// Neither the log nor the spool could take it.
    Lost {
        /// Why.
        why: String,
    },
}

/// What the hooks decided.
struct Decided {
    decision: Option<Decision>,
    /// Whether a hook could not start because this process is short of something.
    short: bool,
}

/// An earlier try of the same call got this answer.
struct AlreadyDecided(Answer);

/// Whether the agent still waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitedFor {
    Yes,
    No,
}

impl Handling<'_> {
    /// Commits the event, if something runs outside of this process about it.
    async fn append(&self, plan: &Plan<'_>) -> Result<Appended, AlreadyDecided> {
        if !plan.runs_outside() {
            return Ok(Appended::WithDecision);
        }
        match self.record_event(None).await {
            RecordOutcome::Logged { seq, earlier_decision } => {
                let earlier = earlier_decision.and_then(|earlier| self.earlier_answer(&earlier));
                earlier.map_or(Ok(Appended::At(seq)), |answer| Err(AlreadyDecided(answer)))
            }
            RecordOutcome::Spooled { .. } => Ok(Appended::Spooled),
            RecordOutcome::Lost { why } => Ok(Appended::Lost { why }),
        }
    }

    async fn decide(
        &self,
        plan: &Plan<'_>,
        appended: &Appended,
        hung_up: impl Fn() -> bool,
    ) -> Decided {
        let seq = match appended {
            Appended::WithDecision => {
                let results = run_rules(plan, &self.facts, self.time_left());
                let decision = self.conclude(plan, results, None, WaitedFor::Yes);
                return Decided { decision, short: false };
            }
            Appended::At(seq) => Some(*seq),
            Appended::Spooled | Appended::Lost { .. } => None,
        };
        let RunOutcome { results, short } =
            run_all(plan, &self.facts, seq, &self.caller, self.time_left()).await;
        let waited_for = if hung_up() { WaitedFor::No } else { WaitedFor::Yes };
        Decided { decision: self.conclude(plan, results, seq, waited_for), short }
    }

    /// None if there are no results.
    fn conclude(
        &self,
        plan: &Plan<'_>,
        results: Vec<HookResult<'_>>,
        seq: Option<Seq>,
        waited_for: WaitedFor,
    ) -> Option<Decision> {
        if results.is_empty() {
            return None;
        }
        let context = DecisionContext {
            started: self.started,
            can_ask: &|| dialect_of(self.event.agent).can_ask(&self.caller),
            waited_for: waited_for == WaitedFor::Yes,
            continuations: self.continuations(seq),
        };
        Some(conclude(self.event, plan, results, &context))
    }

    /// Adds what the user should know about the bus itself, if there is anything. That alone is an answer too.
    async fn tell(&self, decision: Option<Decision>) -> Option<Decision> {
        let situation = self.situation(decision.as_ref());
        if decision.as_ref().is_some_and(|decision| !decision.waited_for) {
            return decision;
        }
        let Some(notice) = notice(situation, &self.bus.told, &self.bus.log).await else {
            return decision;
        };
        let mut decision = decision.unwrap_or_else(|| self.no_decision());
        decision.add_notice(notice);
        Some(decision)
    }

    /// What a notice is recorded with if no hook was asked.
    fn no_decision(&self) -> Decision {
        Decision {
            hooks: self.hooks.own.file.hash.clone(),
            verdicts: Vec::new(),
            outcome: Outcome::None,
            answer: None,
            took: self.started.elapsed(),
            waited_for: true,
            can_ask: None,
            note: None,
            notice: None,
        }
    }

    fn situation<'a>(&'a self, decision: Option<&'a Decision>) -> Situation<'a> {
        Situation {
            event: self.event,
            caller: &self.caller,
            hooks: self.hooks,
            decision,
            time: self.time_left(),
        }
    }

    /// None if there is nothing more to record.
    async fn append_decision(
        &self,
        appended: Appended,
        decision: Option<&Decision>,
    ) -> Option<RecordOutcome> {
        let row = decision.map(|decision| self.decision_row(decision));
        let cause = match appended {
            Appended::WithDecision if self.record.is_nothing() && row.is_none() => return None,
            Appended::WithDecision => return Some(self.record_event(row).await),
            Appended::At(seq) => Some(seq),
            Appended::Spooled => None,
            Appended::Lost { why } if row.is_none() => return Some(RecordOutcome::Lost { why }),
            Appended::Lost { .. } => None,
        };
        let (event, hooks) = (self.event_row(), self.hooks.to_record());
        let wait = self.wait_for_log(LOG_SHARE * 2, MAX_LOG_WAIT / 2);
        let recorded = self.bus.recorder.decision(event, row?, hooks, cause, wait).await;
        Some(self.log_if_spooled(recorded))
    }

    /// The agent's answer. If an earlier try of the same call was answered, that answer counts; an event that
    /// could not be recorded is answered by the bus' own failure policy.
    fn encode(&self, decision: Option<&Decision>, recorded: Option<RecordOutcome>) -> Answer {
        match recorded {
            Some(RecordOutcome::Logged { earlier_decision: Some(earlier), .. }) => {
                self.earlier_answer(&earlier).unwrap_or_else(|| Answer::of(decision))
            }
            Some(RecordOutcome::Logged { .. } | RecordOutcome::Spooled { .. }) | None => {
                Answer::of(decision)
            }
            Some(RecordOutcome::Lost { why }) => self.encode_unrecorded(decision, &why),
        }
    }

    /// The answer of an earlier try of the same call. If its record lacks a secret and no memory has it whole, or if it cannot be
    /// read, there is none, and the hooks are asked again.
    fn earlier_answer(&self, recorded: &[u8]) -> Option<Answer> {
        if Mark::find_all(&String::from_utf8_lossy(recorded)).is_empty() {
            return earlier_answer(recorded);
        }
        earlier_answer(&self.bus.whole_decisions.get(self.event.id)?)
    }

    fn encode_unrecorded(&self, decision: Option<&Decision>, why: &str) -> Answer {
        tracing::error!(event_id = %self.event.id, why, "the event cannot be recorded");
        let dialect = dialect_of(self.event.agent);
        match self.hooks.own.file.on_failure {
            OnFailure::Block if can_refuse(self.event) => {
                let reason = format!("hookbus cannot record this event: {why}");
                let answer = dialect.encode(self.event, &Verdict::block(reason));
                Answer { text: answer.map(|answer| answer.to_string()), notice: None }
            }
            OnFailure::Block | OnFailure::Allow => Answer::of(decision),
        }
    }

    async fn record_event(&self, decision: Option<RowDraft>) -> RecordOutcome {
        let (event, hooks) = (self.event_row(), self.hooks.to_record());
        let wait = self.wait_for_log(LOG_SHARE, MAX_LOG_WAIT);
        let recorded = self.bus.recorder.event(event, decision, hooks, wait).await;
        self.log_if_spooled(recorded)
    }

    fn log_if_spooled(&self, recorded: RecordOutcome) -> RecordOutcome {
        if let RecordOutcome::Spooled { file, why } = &recorded {
            let file = file.display();
            tracing::info!(event_id = %self.event.id, %file, %why, "the event is in the spool");
        }
        recorded
    }

    fn event_row(&self) -> RowDraft {
        let project = self.hooks.project.as_ref().map(|active| RecordedProject {
            file: active.snapshot.path.clone(),
            hooks: active.snapshot.hash.clone(),
        });
        let place = self.event.tool.as_ref().map(|_| self.facts.place_to_record());
        let context = record_caller(&self.caller, project, session_to_record(self.event), place);
        self.record.row(self.event, &context)
    }

    fn decision_row(&self, decision: &Decision) -> RowDraft {
        let row = RowDraft::of_decision(self.event, decision, self.bus.clock.now());
        let mut row = self.record.redact_columns(row);
        if let Some(redacted) = self.record.redact_decision(&row.payload) {
            let whole = std::mem::replace(&mut row.payload, redacted.into());
            self.bus.whole_decisions.put(self.event.id, whole);
        }
        row
    }

    /// How long to wait for the log: one part in `share` of the deadline. If another process holds the log for
    /// longer, the row goes to the spool, and the hooks have the rest of the time.
    fn wait_for_log(&self, share: u32, most: Duration) -> Duration {
        (self.deadline / share).min(most).min(self.time_left())
    }

    /// What is left of the client's deadline, minus a reserve for the answer itself. Small, because clients keep
    /// a reserve of their own.
    fn time_left(&self) -> Duration {
        let reserve = (self.deadline / 40).min(Duration::from_secs(1));
        self.deadline.saturating_sub(self.started.elapsed()).saturating_sub(reserve)
    }

    /// How often in a row the agent has been told to continue, the one that led to this event included. If the log cannot be read,
    /// the limit counts as reached: an agent that stops too early can be prompted again. `seq` is the event's
    /// own position, if it is in the log already.
    fn continuations(&self, seq: Option<Seq>) -> u32 {
        let event = self.event;
        if event.kind != Kind::TurnEnd || !dialect_of(event.agent).is_continuation(event) {
            return 0;
        }
        let limit = self.hooks.own.file.max_continuations;
        let earlier = LogReader::open(&self.bus.log).map_err(Into::into).and_then(|log| {
            log.continuations_before(&self.record.session(event), &event.name, seq, limit)
        });
        earlier.map_or(limit, |earlier| earlier + 1)
    }
}

impl Answer {
    fn of(decision: Option<&Decision>) -> Self {
        let answer = decision.and_then(|decision| decision.answer.as_ref());
        let notice = decision.and_then(|decision| decision.notice.as_ref());
        Self::with(answer, notice)
    }

    fn with(answer: Option<&Value>, notice: Option<&Notice>) -> Self {
        let beside = notice.filter(|notice| !notice.in_answer);
        Self {
            text: answer.map(Value::to_string),
            notice: beside.map(|notice| notice.text.clone()),
        }
    }
}

/// The answer in a recorded decision; none if it cannot be read.
fn earlier_answer(decision: &[u8]) -> Option<Answer> {
    let decision = RecordedDecision::from_json(serde_json::from_slice(decision).ok()?).ok()?;
    Some(Answer::with(decision.answer.as_ref(), decision.notice.as_ref()))
}

#[cfg(test)]
mod tests;
