//! The map of the product, in one function: [`handle`] decodes, appends, decides, appends and
//! encodes. What does not fit one of its lines belongs to another process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bus::Bus;
use crate::decide::{
    Asked, Circumstances, InForce, OnFailure, Plan, Spoken, Surroundings, conclude, plan, run_all,
    run_out_of_time, run_rules,
};
use crate::dialect::{Arrival, decode, encode, is_continuation, takes};
use crate::event::{Agent, Decision, Event, EventId, Kind, Seq, Time, Verdict};
use crate::log::{Draft, HooksDraft, Kept, LogReader, Query};

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
    let hooks = in_force(&call, bus);
    let (event, surroundings, patience) = hear(call, bus);
    let plan = plan(&event, hooks.asked());
    let work = Work { bus, hooks: &hooks, event: &event, surroundings, started, patience };
    if plan.runs_outside() {
        work.record_then_ask(&plan, hung_up).await
    } else {
        work.decide_inside(&plan).await
    }
}

/// When there is no time left to ask anybody: rules still count, whatever runs outside has failed,
/// and the event waits in the spool. If somebody else records it after all, that is what stays.
pub fn last_resort(call: Call, bus: &Bus) -> Answer {
    let started = Instant::now();
    let hooks = in_force(&call, bus);
    let (event, surroundings, patience) = hear(call, bus);
    let plan = plan(&event, hooks.asked());
    let work = Work { bus, hooks: &hooks, event: &event, surroundings, started, patience };
    let decision = work.conclude(&plan, run_out_of_time(&plan, &event), true);
    let row = decision.as_ref().map(|decision| work.decision_row(decision));
    match bus.recorder.set_aside(&work.event_row(), row.as_ref(), &hooks.to_record()) {
        Kept::Logged { .. } | Kept::Spooled { .. } => Answer::of(decision.as_ref()),
        Kept::Lost { why } => work.unrecorded(decision.as_ref(), &why),
    }
}

/// The hooks that a call meets.
struct Met {
    own: Arc<InForce>,
    project: Option<Arc<InForce>>,
}

fn in_force(call: &Call, bus: &Bus) -> Met {
    Met { own: bus.hooks.in_force(), project: bus.projects.at(&call.surroundings) }
}

impl Met {
    fn asked(&self) -> Asked<'_> {
        Asked { own: &self.own.hooks, project: self.project.as_ref().map(|it| &it.hooks) }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<InForce>> {
        std::iter::once(&self.own).chain(&self.project)
    }

    fn to_record(&self) -> Vec<Arc<HooksDraft>> {
        self.all().filter_map(|it| it.to_record()).collect()
    }
}

fn hear(call: Call, bus: &Bus) -> (Event, Surroundings, Duration) {
    let Call { id, at, agent, raw, surroundings, patience } = call;
    let session_hint = surroundings.session(agent);
    let wire = surroundings.wire;
    let mut event = decode(Arrival { id, at, agent, wire, raw, session_hint });
    bus.sessions.tie(&mut event);
    (event, surroundings, patience)
}

/// One event on its way through the bus.
struct Work<'a> {
    bus: &'a Bus,
    hooks: &'a Met,
    event: &'a Event,
    surroundings: Surroundings,
    started: Instant,
    patience: Duration,
}

impl Work<'_> {
    /// Rules only: one commit for both rows.
    async fn decide_inside(&self, plan: &Plan<'_>) -> Answer {
        let decision = self.conclude(plan, run_rules(plan, self.event), true);
        let row = decision.as_ref().map(|decision| self.decision_row(decision));
        match self.append_event(row).await {
            Kept::Logged { earlier_decision: Some(earlier), .. } => said_before(&earlier),
            Kept::Logged { .. } | Kept::Spooled { .. } => Answer::of(decision.as_ref()),
            Kept::Lost { why } => self.unrecorded(decision.as_ref(), &why),
        }
    }

    /// Something outside runs: the event is committed before it starts.
    async fn record_then_ask(&self, plan: &Plan<'_>, hung_up: impl Fn() -> bool) -> Answer {
        let seq = match self.append_event(None).await {
            Kept::Logged { earlier_decision: Some(earlier), .. } => return said_before(&earlier),
            Kept::Logged { seq, .. } => Some(seq),
            Kept::Spooled { .. } | Kept::Lost { .. } => None,
        };
        let spoken = run_all(plan, self.event, seq, &self.surroundings, self.time_left()).await;
        let Some(decision) = self.conclude(plan, spoken, !hung_up()) else { return Answer(None) };
        match self.append_decision(&decision, seq).await {
            Kept::Logged { earlier_decision: Some(earlier), .. } => said_before(&earlier),
            Kept::Logged { .. } | Kept::Spooled { .. } => Answer::of(Some(&decision)),
            Kept::Lost { why } => self.unrecorded(Some(&decision), &why),
        }
    }

    /// No verdict, no decision: nobody had an opinion.
    fn conclude(
        &self,
        plan: &Plan<'_>,
        spoken: Vec<Spoken<'_>>,
        waited_for: bool,
    ) -> Option<Decision> {
        if spoken.is_empty() {
            return None;
        }
        let circumstances = Circumstances {
            started: self.started,
            can_ask: &|| self.surroundings.can_ask(),
            waited_for,
            continuations: self.continuations(),
        };
        Some(conclude(self.event, plan, spoken, &circumstances))
    }

    async fn append_event(&self, decision: Option<Draft>) -> Kept {
        let (event, hooks) = (self.event_row(), self.hooks.to_record());
        let kept = self.bus.recorder.event(event, decision, hooks, self.time_left()).await;
        self.tell(kept)
    }

    async fn append_decision(&self, decision: &Decision, cause: Option<Seq>) -> Kept {
        let (event, row) = (self.event_row(), self.decision_row(decision));
        let (hooks, left) = (self.hooks.to_record(), self.time_left());
        self.tell(self.bus.recorder.decision(&event, row, &hooks, cause, left).await)
    }

    fn tell(&self, kept: Kept) -> Kept {
        if let Kept::Spooled { file, why } = &kept {
            let file = file.display();
            tracing::info!(event_id = %self.event.id, %file, %why, "the event waits for the log");
        }
        kept
    }

    fn event_row(&self) -> Draft {
        let project = self.hooks.project.as_ref().map(|it| it.draft.as_ref());
        Draft::of_event(self.event, Some(self.surroundings.recorded(project)))
    }

    fn decision_row(&self, decision: &Decision) -> Draft {
        Draft::of_decision(self.event, decision, self.bus.clock.now())
    }

    /// What is left of the client's patience, less what it takes to answer.
    fn time_left(&self) -> Duration {
        let reserve = (self.patience / 10).min(Duration::from_secs(1));
        self.patience.saturating_sub(self.started.elapsed()).saturating_sub(reserve)
    }

    /// How often in a row the agent has been sent on, this time included. If that cannot be found
    /// out it has been often enough: an agent that is let go too early can be asked again.
    fn continuations(&self) -> u32 {
        if self.event.kind != Kind::TurnEnd || !is_continuation(self.event) {
            return 0;
        }
        let most = self.hooks.own.hooks.max_continuations;
        let query = Query {
            session: Some(self.event.session.clone()),
            name: Some(self.event.name.clone()),
            ..Query::default()
        };
        let earlier = LogReader::open(&self.bus.log)
            .map_err(Into::into)
            .and_then(|log| log.last(&query, most as usize + 1));
        let Ok(earlier) = earlier else { return most };
        let sent_on = |payload: &Value| payload.get("stop_hook_active") == Some(&Value::Bool(true));
        let in_a_row = earlier
            .iter()
            .rev()
            .filter(|row| row.id != self.event.id)
            .take_while(|row| sent_on(&row.payload_json()))
            .count();
        u32::try_from(in_a_row + 1).unwrap_or(u32::MAX)
    }

    /// Neither the log nor the spool can take the event: the bus' own policy decides.
    fn unrecorded(&self, decision: Option<&Decision>, why: &str) -> Answer {
        tracing::error!(event_id = %self.event.id, why, "the event cannot be recorded");
        // Refusing the end of a turn would only send the agent on, and on.
        let can_be_refused = takes(self.event).block && self.event.kind != Kind::TurnEnd;
        match self.hooks.own.hooks.on_failure {
            OnFailure::Block if can_be_refused => {
                let reason = format!("hookbus cannot record this event: {why}");
                let answer = encode(self.event, &Verdict::block(reason));
                Answer(answer.map(|answer| answer.to_string()))
            }
            OnFailure::Block | OnFailure::Allow => Answer::of(decision),
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

#[cfg(test)]
mod tests;
