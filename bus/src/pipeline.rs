//! The map of the product, in one function: [`handle`] decodes, appends, decides, appends and
//! encodes. What does not fit one of its lines belongs to another process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bus::Bus;
use crate::decide::{
    Circumstances, InForce, OnFailure, Plan, Surroundings, conclude, plan, run_all, run_rules,
};
use crate::dialect::{Arrival, decode, encode, is_continuation};
use crate::event::{Agent, Decision, Event, EventId, Kind, Seq, Time, Verdict};
use crate::log::{Draft, Kept, LogReader, Query};

/// One call at the front door.
#[derive(Debug, Clone)]
pub struct Call {
    /// Minted by the client, so that a retry is known as one.
    pub id: EventId,
    /// When the client heard it.
    pub at: Time,
    /// Who is speaking.
    pub agent: Agent,
    /// The payload.
    pub raw: Vec<u8>,
    /// Where the client stands.
    pub surroundings: Surroundings,
    /// How long the client will wait.
    pub patience: Duration,
}

/// What the agent hears: one line of JSON, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub Option<String>);

/// Decode, append, decide, append, encode. Durable before the answer, in as few commits as it
/// takes: where only rules decide, the event and its decision are one commit; where something
/// outside runs, the event is safe before it starts.
///
/// `hung_up` says whether the client has gone away in the meantime.
pub async fn handle(call: Call, bus: &Bus, hung_up: impl Fn() -> bool) -> Answer {
    let started = Instant::now();
    let in_force = bus.hooks.in_force();
    let Call { id, at, agent, raw, surroundings, patience } = call;
    let session_hint = surroundings.session(agent);
    let event = decode(Arrival { id, at, agent, raw, session_hint });
    let plan = plan(&event, &in_force.hooks);
    let work = Work { bus, in_force: &in_force, event: &event, surroundings, started, patience };
    if plan.runs_outside() {
        work.record_then_ask(&plan, hung_up).await
    } else {
        work.decide_inside(&plan).await
    }
}

/// One event on its way through the bus.
struct Work<'a> {
    bus: &'a Bus,
    in_force: &'a InForce,
    event: &'a Event,
    surroundings: Surroundings,
    started: Instant,
    patience: Duration,
}

impl Work<'_> {
    /// Rules only: one commit for both rows.
    async fn decide_inside(&self, plan: &Plan<'_>) -> Answer {
        let spoken = run_rules(plan, self.event);
        let decision = (!spoken.is_empty()).then(|| {
            let continuations = self.continuations();
            conclude(self.event, plan, spoken, &self.circumstances(true, continuations))
        });
        let row = decision.as_ref().map(|decision| self.decision_row(decision));
        match self.append_event(row).await {
            Kept::Logged { earlier_decision: Some(earlier), .. } => said_before(&earlier),
            Kept::Logged { .. } => Answer::of(decision.as_ref()),
            Kept::Spooled { why, .. } => self.without_log(decision.as_ref(), &why.to_string()),
            Kept::Lost { why } => self.without_log(decision.as_ref(), &why),
        }
    }

    /// Something outside runs: the event is committed before it starts.
    async fn record_then_ask(&self, plan: &Plan<'_>, hung_up: impl Fn() -> bool) -> Answer {
        let (seq, trouble) = match self.append_event(None).await {
            Kept::Logged { earlier_decision: Some(earlier), .. } => return said_before(&earlier),
            Kept::Logged { seq, .. } => (Some(seq), None),
            Kept::Spooled { why, .. } => (None, Some(why.to_string())),
            Kept::Lost { why } => (None, Some(why)),
        };
        let time = self.time_left();
        let spoken = run_all(plan, self.event, seq, &self.surroundings, time).await;
        let circumstances = self.circumstances(!hung_up(), self.continuations());
        let decision = conclude(self.event, plan, spoken, &circumstances);
        match (self.append_decision(&decision, seq).await, trouble) {
            (Kept::Logged { earlier_decision: Some(earlier), .. }, _) => said_before(&earlier),
            (Kept::Logged { .. } | Kept::Spooled { .. }, None) => Answer::of(Some(&decision)),
            (Kept::Lost { why }, None) | (_, Some(why)) => self.without_log(Some(&decision), &why),
        }
    }

    async fn append_event(&self, decision: Option<Draft>) -> Kept {
        let event = Draft::of_event(self.event, Some(self.surroundings.recorded()));
        let hooks = Some(Arc::clone(&self.in_force.draft));
        self.bus.recorder.event(event, decision, hooks, self.time_left()).await
    }

    async fn append_decision(&self, decision: &Decision, cause: Option<Seq>) -> Kept {
        let event = Draft::of_event(self.event, Some(self.surroundings.recorded()));
        let row = self.decision_row(decision);
        self.bus.recorder.decision(&event, row, cause, self.time_left()).await
    }

    fn decision_row(&self, decision: &Decision) -> Draft {
        Draft::of_decision(self.event, decision, self.bus.clock.now())
    }

    fn circumstances(&self, waited_for: bool, continuations: u32) -> Circumstances<'_> {
        let Self { started, surroundings, .. } = self;
        Circumstances { started: *started, surroundings, waited_for, continuations }
    }

    /// What is left of the client's patience, less what it takes to answer.
    fn time_left(&self) -> Duration {
        let reserve = (self.patience / 10).min(Duration::from_secs(1));
        self.patience.saturating_sub(self.started.elapsed()).saturating_sub(reserve)
    }

    /// How often in a row the agent has been sent on, this time included.
    fn continuations(&self) -> u32 {
        if self.event.kind != Kind::TurnEnd || !is_continuation(self.event) {
            return 0;
        }
        let most = self.in_force.hooks.max_continuations as usize;
        let query = Query {
            session: Some(self.event.session.clone()),
            name: Some(self.event.name.clone()),
            ..Query::default()
        };
        let earlier = LogReader::open(&self.bus.log)
            .map_err(Into::into)
            .and_then(|log| log.last(&query, most + 1))
            .unwrap_or_default();
        let sent_on = |payload: &Value| payload.get("stop_hook_active") == Some(&Value::Bool(true));
        let in_a_row = earlier
            .iter()
            .rev()
            .filter(|row| row.id != self.event.id)
            .take_while(|row| sent_on(&row.payload_json()))
            .count();
        u32::try_from(in_a_row + 1).unwrap_or(u32::MAX)
    }

    /// The log cannot take the event. Hooks still count; beyond them the bus' own policy does.
    fn without_log(&self, decision: Option<&Decision>, why: &str) -> Answer {
        tracing::error!(event_id = %self.event.id, why, "the event is not in the log yet");
        match self.in_force.hooks.on_failure {
            OnFailure::Allow => Answer::of(decision),
            OnFailure::Block => refuse(self.event, why),
        }
    }
}

impl Answer {
    fn of(decision: Option<&Decision>) -> Self {
        Self(decision.and_then(|decision| decision.answer.as_ref()).map(Value::to_string))
    }
}

/// What was answered the first time; a retry hears the same.
fn said_before(decision: &[u8]) -> Answer {
    let decision: Value = serde_json::from_slice(decision).unwrap_or_default();
    Answer(decision.get("answer").filter(|answer| !answer.is_null()).map(Value::to_string))
}

fn refuse(event: &Event, why: &str) -> Answer {
    let verdict = Verdict::block(format!("hookbus cannot record this event: {why}"));
    Answer(encode(event, &verdict).map(|answer| answer.to_string()))
}

/// The answer when nobody could decide in time: the failure policy of the hooks that would have
/// been asked, and nothing else.
pub fn out_of_time(call: &Call, in_force: &InForce) -> Answer {
    let Call { id, at, agent, raw, surroundings, .. } = call;
    let session_hint = surroundings.session(*agent);
    let arrival = Arrival { id: *id, at: *at, agent: *agent, raw: raw.clone(), session_hint };
    let event = decode(arrival);
    let plan = plan(&event, &in_force.hooks);
    let strict = plan.strict_hook();
    match (strict, in_force.hooks.on_failure) {
        (Some(hook), _) => refuse(&event, &format!("hook `{hook}` had no time to answer")),
        (None, OnFailure::Block) if !plan.is_empty() => refuse(&event, "no time was left"),
        (None, OnFailure::Allow | OnFailure::Block) => Answer(None),
    }
}

#[cfg(test)]
mod tests;
