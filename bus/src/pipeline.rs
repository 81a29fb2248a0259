//! The map of the product, in one function: [`handle`] decodes, appends, decides, appends and
//! encodes. What does not fit one of its lines belongs to another process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::decide::{
    Circumstances, HooksSource, InForce, OnFailure, Plan, Surroundings, conclude, plan, run_all,
    run_rules,
};
use crate::dialect::{Arrival, decode, encode, is_continuation};
use crate::event::{Agent, Clock, Decision, Event, EventId, Kind, Seq, SystemClock, Time, Verdict};
use crate::log::{Draft, Durability, Kept, LogPath, LogReader, Query, Recorder, Spool};

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

/// Everything a call needs.
#[derive(Debug)]
pub struct Bus {
    /// Where rows go.
    pub recorder: Recorder,
    /// Which hooks are in force.
    pub hooks: HooksSource,
    /// Where rows are read from.
    pub log: LogPath,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Bus {
    /// The bus of `home`, for the daemon. `runtime` takes events that even the home cannot.
    pub fn for_daemon(home: &Path, runtime: &Path) -> Self {
        Self::with(home, runtime, Recorder::for_daemon)
    }

    /// The bus of `home`, for a client that handles one event by itself.
    pub fn for_client(home: &Path, runtime: &Path) -> Self {
        Self::with(home, runtime, Recorder::for_client)
    }

    fn with(
        home: &Path,
        runtime: &Path,
        recorder: impl Fn(LogPath, Durability, Spool, Arc<dyn Clock>) -> Recorder,
    ) -> Self {
        let log = LogPath::in_home(home);
        let hooks = HooksSource::new(home, log.clone());
        let durability = hooks.in_force().hooks.durability;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let recorder =
            recorder(log.clone(), durability, Spool::new(home, runtime), Arc::clone(&clock));
        Self { recorder, hooks, log, clock }
    }
}

impl std::fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

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
        let records = run_rules(plan, self.event);
        let decision = (!records.is_empty()).then(|| {
            let continuations = self.continuations();
            conclude(self.event, plan, records, &self.circumstances(true, continuations))
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
        let records = run_all(plan, self.event, seq, &self.surroundings, time).await;
        let circumstances = self.circumstances(!hung_up(), self.continuations());
        let decision = conclude(self.event, plan, records, &circumstances);
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::{ReadError, Row, verify};

    const HOOKS: &str = "hooks:\n  '*':\n    - rule: {when: {command: rm}, block: no}\n      on_failure: block\n  \
                         turn.start:\n    - rule: {context: news}\n";

    /// Hands these payloads to a fresh bus; gives back the answers and the rows.
    fn played(payloads: &[(Agent, Vec<u8>)]) -> (Vec<Answer>, Vec<Row>) {
        let home = tempfile::tempdir().expect("a scratch home");
        std::fs::write(home.path().join("hookbus.yaml"), HOOKS).expect("hooks");
        let bus = Bus::for_client(home.path(), home.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answers = runtime.expect("a runtime").block_on(async {
            let mut answers = Vec::new();
            for (agent, raw) in payloads {
                let at = bus.clock.now();
                let (id, raw, patience) = (EventId::mint(at), raw.clone(), Duration::from_secs(5));
                let surroundings = Surroundings::default();
                let call = Call { id, at, agent: *agent, raw, surroundings, patience };
                answers.push(handle(call, &bus, || false).await);
            }
            answers
        });
        assert_eq!(verify(&bus.log, |_| {}).expect("a readable log").flaws, []);
        let mut rows = Vec::new();
        let log = LogReader::open(&bus.log).expect("a log");
        log.each(&Query::default(), None, |row| {
            rows.push(row);
            Ok::<_, ReadError>(())
        })
        .expect("a readable log");
        (answers, rows)
    }

    fn any_payload() -> impl Strategy<Value = (Agent, Vec<u8>)> {
        let agent = prop::sample::select(Agent::ALL.to_vec());
        let bytes = prop::collection::vec(any::<u8>(), 0..80);
        let name = prop::sample::select(vec![
            "pre_tool_call",
            "pre_llm_call",
            "BeforeTool",
            "AfterAgent",
            "PreToolUse",
            "?",
        ]);
        let jsonish = (name, r#"[\{\}\[\]",:rm0-9.eENa\\ \-]{0,40}"#).prop_map(|(name, tail)| {
            format!("{{\"hook_event_name\":\"{name}\",\"tool_input\":{tail}}}").into_bytes()
        });
        (agent, prop_oneof![bytes, jsonish])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_bytes_give_a_recorded_event_and_a_valid_answer(
            payloads in prop::collection::vec(any_payload(), 1..20),
        ) {
            let (answers, rows) = played(&payloads);
            let events: Vec<&Row> =
                rows.iter().filter(|row| row.kind != "decision" && row.kind != "hooks.loaded").collect();
            prop_assert_eq!(events.len(), payloads.len());
            for (row, (agent, raw)) in events.iter().zip(&payloads) {
                prop_assert_eq!((row.agent.as_str(), &row.payload), (agent.as_str(), raw));
            }
            for Answer(answer) in answers {
                if let Some(text) = answer {
                    let object = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object());
                    prop_assert!(object, "{}", text);
                }
            }
        }
    }

    #[test]
    fn a_retry_hears_what_was_said_before_and_adds_nothing() {
        let home = tempfile::tempdir().expect("a scratch home");
        std::fs::write(home.path().join("hookbus.yaml"), HOOKS).expect("hooks");
        let raw = br#"{"hook_event_name":"pre_tool_call","tool_input":{"command":"rm"}}"#.to_vec();
        let at = SystemClock.now();
        let call = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Hermes,
            raw,
            surroundings: Surroundings::default(),
            patience: Duration::from_secs(5),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let bus = Bus::for_client(home.path(), home.path());
        let first = runtime.block_on(handle(call.clone(), &bus, || false));
        // Another process, and a policy that would say something else by now.
        std::fs::write(home.path().join("hookbus.yaml"), "hooks: {}").expect("hooks");
        let bus = Bus::for_client(home.path(), home.path());
        let again = runtime.block_on(handle(call, &bus, || false));
        assert!(first.0.is_some());
        assert_eq!(first, again);
        let log = LogReader::open(&bus.log).expect("a log");
        let kinds: Vec<String> = log
            .last(&Query::default(), 10)
            .expect("rows")
            .into_iter()
            .map(|row| row.kind)
            .collect();
        assert_eq!(kinds, ["hooks.loaded", "tool.before", "decision", "hooks.loaded"]);
    }
}
