//! The events of a session one by one, in log order, each with the decision about it and, for a tool call, its result: what
//! `hookbus replay --step` walks through. Which result belongs to which call is what [`SessionView`] says.

use std::collections::HashMap;
use std::time::Duration;

use super::session_view::BUS_AGENT;
use super::{CallResult, DecisionView, EventView, SessionView, ToolStatus};
use crate::event::{Kind, Seq, Time};
use crate::log::Row;

/// One event of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its row.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The agent.
    pub agent: String,
    /// The agent's name for it.
    pub name: String,
    /// Our kind of it.
    pub kind: Kind,
    /// The tool that it is about.
    pub tool: Option<String>,
    /// What it is about: the command, the path, the prompt.
    pub about: String,
    /// Whether it says that a tool call, a turn or a request to the model failed.
    pub failed: bool,
    /// Why, if it says so.
    pub failure: Option<String>,
    /// The decision about it.
    pub decision: Option<DecisionView>,
    /// The result of the tool call that begins here, or that ends here.
    pub result: Option<CallResult>,
    /// How long that call took.
    pub took: Option<Duration>,
    /// For a result: the row in which its call began.
    pub call: Option<Seq>,
}

impl Step {
    fn new(event: &EventView<'_>) -> Self {
        let row = event.row;
        let failed = event.has_failed();
        Self {
            seq: row.seq,
            at: row.at,
            agent: row.agent.clone(),
            name: row.name.clone(),
            kind: event.kind,
            tool: row.tool.clone(),
            about: event.subject(),
            failed,
            failure: event.failure().filter(|_| failed),
            decision: None,
            result: None,
            took: None,
            call: None,
        }
    }

    /// Whether the decision refused it.
    pub fn is_blocked(&self) -> bool {
        self.decision.as_ref().is_some_and(DecisionView::refuses)
    }

    /// Whether the user had to be asked.
    pub fn is_asked(&self) -> bool {
        self.decision.as_ref().is_some_and(DecisionView::asks)
    }

    /// Whether it is a result.
    pub const fn is_result(&self) -> bool {
        matches!(self.kind, Kind::ToolAfter | Kind::ToolFailed)
    }

    /// Whether it failed, or a hook failed on it.
    pub fn has_failure(&self) -> bool {
        let hook_failed = |decision: &DecisionView| decision.said.iter().any(|said| said.failed);
        self.failed || self.decision.as_ref().is_some_and(hook_failed)
    }

    /// How the call ended that this is the result of.
    pub fn ended(&self) -> Option<ToolStatus> {
        let result = self.result.as_ref().filter(|_| self.is_result())?;
        Some(result.outcome.status)
    }
}

/// The fold over the rows of a session.
#[derive(Debug)]
pub struct Steps {
    view: SessionView,
    all: Vec<Step>,
    places: HashMap<Seq, usize>,
}

impl Steps {
    /// No events yet of this session.
    pub fn new(session: &str) -> Self {
        Self { view: SessionView::new(session), all: Vec::new(), places: HashMap::new() }
    }

    /// Adds a row of the session, in log order.
    pub fn add(&mut self, row: &Row) {
        self.view.add(row);
        if row.kind == Kind::Decision.as_str() {
            let cause = row.cause.and_then(|cause| self.places.get(&cause));
            if let Some(step) = cause.and_then(|place| self.all.get_mut(*place)) {
                step.decision = Some(DecisionView::new(row, Some(step.kind)));
            }
            return;
        }
        if row.agent != BUS_AGENT {
            self.places.insert(row.seq, self.all.len());
            self.all.push(Step::new(&EventView::new(row)));
        }
    }

    /// The events so far, with the results of their calls.
    pub fn steps(&mut self) -> &[Step] {
        join_results(&self.view, &self.places, &mut self.all);
        &self.all
    }
}

fn join_results(view: &SessionView, places: &HashMap<Seq, usize>, steps: &mut [Step]) {
    for item in view.items() {
        let Some(call) = item.tool_call() else { continue };
        let Some(result) = &call.result else { continue };
        for seq in [item.seq, result.seq] {
            let place = places.get(&seq).copied();
            let step = place.and_then(|place| steps.get_mut(place));
            let Some(step) = step.filter(|step| step.result.is_none()) else { continue };
            step.result = Some(result.clone());
            step.took = item.took();
            step.call = (seq == result.seq && call.is_start_recorded).then_some(item.seq);
        }
    }
    for inside in view.subagents().filter_map(|subagent| subagent.inside.as_ref()) {
        join_results(inside, places, steps);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{decision, payload, row};
    use super::*;

    #[test]
    fn each_event_is_a_step_with_its_decision_and_the_result_of_its_call() {
        let prompt = row(1, "hermes", &payload("hermes", "pre_llm_call"));
        let before = row(2, "hermes", &payload("hermes", "pre_tool_call"));
        let refused = decision(3, &before, "block");
        let after = row(4, "hermes", &payload("hermes", "post_tool_call"));
        let bus = Row {
            agent: BUS_AGENT.to_owned(),
            ..row(5, "hermes", &payload("hermes", "pre_llm_call"))
        };
        let mut steps = Steps::new("s");
        for row in [&prompt, &before, &refused] {
            steps.add(row);
        }
        assert_eq!(steps.steps().iter().filter(|step| step.result.is_some()).count(), 0);
        for row in [&after, &bus] {
            steps.add(row);
        }
        let all = steps.steps().to_vec();
        let seqs: Vec<i64> = all.iter().map(|step| step.seq.as_i64()).collect();
        assert_eq!(seqs, [1, 2, 4]);
        let [prompt, before, after] = all.as_slice() else { panic!("three steps") };
        assert!(before.is_blocked() && !prompt.is_blocked() && !before.has_failure());
        assert_eq!(before.about, "echo hello-from-tool");
        assert_eq!((before.call, after.call), (None, Some(before.seq)));
        assert_eq!((&before.result, after.ended()), (&after.result, Some(ToolStatus::Ok)));
        assert_eq!(before.to_json()["result"]["exit_code"], 0);
    }

    #[test]
    fn what_happens_inside_of_a_sub_agent_is_stepped_through_too() {
        let codex = ["SubagentStart", "UserPromptSubmit.subagent", "SubagentStop"];
        let mut steps = Steps::new("s");
        for (name, seq) in codex.iter().zip(1..) {
            steps.add(&row(seq, "codex", &payload("codex", name)));
        }
        assert_eq!(steps.steps().len(), 3);
    }
}
