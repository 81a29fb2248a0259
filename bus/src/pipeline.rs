//! What happens to one event, in one function: [`handle`] decodes, appends, decides, appends and encodes. A
//! feature that does not fit one of these steps belongs to another process.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::active::HookSets;
use crate::bus::Bus;
use crate::caller::Caller;
use crate::decide::{
    DecisionContext, HookResult, Plan, conclude, plan, run_all, run_past_deadline, run_rules,
};
use crate::dialect::{Arrival, RecordedProject, decode, dialect_of, record_caller, session_hint};
use crate::event::{
    Agent, Decision, Event, EventId, Kind, OnFailure, RecordedDecision, Seq, Time, Verdict,
};
use crate::log::{LogReader, RecordOutcome, RowDraft};

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
    pub raw: Vec<u8>,
    /// The client.
    pub caller: Caller,
    /// How long the client waits for the answer.
    pub deadline: Duration,
}

/// What the client prints for the agent: one line of JSON, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub Option<String>);

/// Decode, append, decide, append, encode. The answer is durable before it is given, in as few commits as
/// possible: if only rules decide, event and decision are one commit; if something runs outside of this
/// process, the event is committed before that starts.
///
/// `hung_up` tells whether the client has closed its connection in the meantime.
pub async fn handle(call: Call, bus: &Bus, hung_up: impl Fn() -> bool) -> Answer {
    let started = Instant::now();
    let hooks = bus.hooks_for(&call.caller);
    let (event, caller, deadline) = decode_call(call, bus);
    // The event is redacted here, before it is recorded, once redaction exists.
    let plan = plan(&event, &hooks);
    let handling = Handling { bus, hooks: &hooks, event: &event, caller, started, deadline };
    let appended = match handling.append(&plan).await {
        Ok(appended) => appended,
        Err(AlreadyDecided(answer)) => return answer,
    };
    let decision = handling.decide(&plan, &appended, hung_up).await;
    let recorded = handling.append_decision(appended, decision.as_ref()).await;
    handling.encode(decision.as_ref(), recorded)
}

/// The answer when no time is left: rules count, whatever runs outside of this process has failed, and the
/// event goes to the spool. If another process records it after all, that record stays.
pub fn answer_past_deadline(call: Call, bus: &Bus) -> Answer {
    let started = Instant::now();
    let hooks = bus.hooks_for(&call.caller);
    let (event, caller, deadline) = decode_call(call, bus);
    let plan = plan(&event, &hooks);
    let handling = Handling { bus, hooks: &hooks, event: &event, caller, started, deadline };
    let results = run_past_deadline(&plan, &event);
    let decision = handling.conclude(&plan, results, None, WaitedFor::Yes);
    let row = decision.as_ref().map(|decision| handling.decision_row(decision));
    let recorded =
        bus.recorder.spool_event(&handling.event_row(), row.as_ref(), &hooks.to_record());
    handling.encode(decision.as_ref(), Some(recorded))
}

fn decode_call(call: Call, bus: &Bus) -> (Event, Caller, Duration) {
    let Call { id, at, agent, raw, caller, deadline } = call;
    let session_hint = session_hint(agent, &caller);
    let mut event = decode(Arrival { id, at, agent, wire: caller.wire, raw, session_hint });
    bus.session_links.resolve(&mut event);
    (event, caller, deadline)
}

/// One event while the bus handles it.
struct Handling<'a> {
    bus: &'a Bus,
    hooks: &'a HookSets,
    event: &'a Event,
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
            RecordOutcome::Logged { earlier_decision: Some(earlier), .. } => {
                Err(AlreadyDecided(earlier_answer(&earlier)))
            }
            RecordOutcome::Logged { seq, .. } => Ok(Appended::At(seq)),
            RecordOutcome::Spooled { .. } => Ok(Appended::Spooled),
            RecordOutcome::Lost { why } => Ok(Appended::Lost { why }),
        }
    }

    async fn decide(
        &self,
        plan: &Plan<'_>,
        appended: &Appended,
        hung_up: impl Fn() -> bool,
    ) -> Option<Decision> {
        let seq = match appended {
            Appended::WithDecision => {
                return self.conclude(plan, run_rules(plan, self.event), None, WaitedFor::Yes);
            }
            Appended::At(seq) => Some(*seq),
            Appended::Spooled | Appended::Lost { .. } => None,
        };
        let results = run_all(plan, self.event, seq, &self.caller, self.time_left()).await;
        let waited_for = if hung_up() { WaitedFor::No } else { WaitedFor::Yes };
        self.conclude(plan, results, seq, waited_for)
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

    /// None if there is nothing more to record.
    async fn append_decision(
        &self,
        appended: Appended,
        decision: Option<&Decision>,
    ) -> Option<RecordOutcome> {
        let row = decision.map(|decision| self.decision_row(decision));
        let cause = match appended {
            Appended::WithDecision => return Some(self.record_event(row).await),
            Appended::At(seq) => Some(seq),
            Appended::Spooled => None,
            Appended::Lost { why } if row.is_none() => return Some(RecordOutcome::Lost { why }),
            Appended::Lost { .. } => None,
        };
        let (event, hooks, time) = (self.event_row(), self.hooks.to_record(), self.time_left());
        let recorded = self.bus.recorder.decision(&event, row?, &hooks, cause, time).await;
        Some(self.log_if_spooled(recorded))
    }

    /// The agent's answer. If an earlier try of the same call was answered, that answer counts; an event that
    /// could not be recorded is answered by the bus' own failure policy.
    fn encode(&self, decision: Option<&Decision>, recorded: Option<RecordOutcome>) -> Answer {
        match recorded {
            Some(RecordOutcome::Logged { earlier_decision: Some(earlier), .. }) => {
                earlier_answer(&earlier)
            }
            Some(RecordOutcome::Logged { .. } | RecordOutcome::Spooled { .. }) | None => {
                Answer::of(decision)
            }
            Some(RecordOutcome::Lost { why }) => self.encode_unrecorded(decision, &why),
        }
    }

    fn encode_unrecorded(&self, decision: Option<&Decision>, why: &str) -> Answer {
        tracing::error!(event_id = %self.event.id, why, "the event cannot be recorded");
        let dialect = dialect_of(self.event.agent);
        // Refusing the end of a turn would only make the agent continue, again and again.
        let can_refuse = dialect.capabilities(self.event).block && self.event.kind != Kind::TurnEnd;
        match self.hooks.own.file.on_failure {
            OnFailure::Block if can_refuse => {
                let reason = format!("hookbus cannot record this event: {why}");
                let answer = dialect.encode(self.event, &Verdict::block(reason));
                Answer(answer.map(|answer| answer.to_string()))
            }
            OnFailure::Block | OnFailure::Allow => Answer::of(decision),
        }
    }

    async fn record_event(&self, decision: Option<RowDraft>) -> RecordOutcome {
        let (event, hooks) = (self.event_row(), self.hooks.to_record());
        let recorded = self.bus.recorder.event(event, decision, hooks, self.time_left()).await;
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
        RowDraft::of_event(self.event, Some(record_caller(&self.caller, project)))
    }

    fn decision_row(&self, decision: &Decision) -> RowDraft {
        RowDraft::of_decision(self.event, decision, self.bus.clock.now())
    }

    /// What is left of the client's deadline, minus a reserve for the answer itself.
    fn time_left(&self) -> Duration {
        let reserve = (self.deadline / 10).min(Duration::from_secs(1));
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
        let earlier = LogReader::open(&self.bus.log)
            .map_err(Into::into)
            .and_then(|log| log.continuations_before(&event.session, &event.name, seq, limit));
        earlier.map_or(limit, |earlier| earlier + 1)
    }
}

impl Answer {
    fn of(decision: Option<&Decision>) -> Self {
        Self(decision.and_then(|decision| decision.answer.as_ref()).map(Value::to_string))
    }
}

/// The answer in a recorded decision.
fn earlier_answer(decision: &[u8]) -> Answer {
    let decision = serde_json::from_slice(decision).unwrap_or_default();
    let decision = RecordedDecision::from_json(decision).ok();
    Answer(decision.and_then(|decision| decision.answer).map(|answer| answer.to_string()))
}

#[cfg(test)]
mod tests;
