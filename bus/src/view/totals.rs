//! The numbers of a session, counted from its entries, so that they always agree with what is shown.

use super::{Item, SessionView, What};
use crate::dialect::{ToolStatus, Usage};

/// The numbers of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Events, without decisions.
    pub events: usize,
    /// Decisions.
    pub decisions: usize,
    /// Turns that began with a prompt.
    pub turns: usize,
    /// Tool calls.
    pub tool_calls: usize,
    /// Decisions that refused something.
    pub blocked: usize,
    /// Decisions by which the user had to be asked.
    pub asked: usize,
    /// Decisions that a hook in shadow mode would have made a refusal.
    pub would_block: usize,
    /// Failed tool calls and failed turns.
    pub failed: usize,
    /// Tool calls that were denied and ran all the same.
    pub ran_despite_block: usize,
    /// Requests to the model.
    pub model_requests: usize,
    /// Failed attempts of requests to the model.
    pub model_errors: usize,
    /// Sub-agents.
    pub subagents: usize,
    /// Tokens and cost.
    pub usage: Usage,
}

impl Totals {
    /// The numbers of the session itself, without its sub-agents.
    pub fn of(view: &SessionView) -> Self {
        let mut totals = Self { events: view.events, decisions: view.decisions, ..Self::default() };
        for turn in &view.turns {
            totals.turns += usize::from(turn.prompt.is_some());
            totals.failed += usize::from(turn.failure.is_some());
            turn.items.iter().for_each(|item| totals.count(item));
        }
        totals.usage.add(&view.subagent_usage);
        totals
    }

    /// The numbers of all of its sub-agents, and of theirs.
    pub fn of_subagents(view: &SessionView) -> Self {
        let mut totals = Self::default();
        for inside in view.subagents().filter_map(|subagent| subagent.inside.as_ref()) {
            totals.add(&Self::of(inside));
            totals.add(&Self::of_subagents(inside));
        }
        totals
    }

    fn count(&mut self, item: &Item) {
        for decision in &item.decisions {
            self.blocked += usize::from(decision.refuses());
            self.asked += usize::from(decision.asks());
            self.would_block += usize::from(decision.would_refuse());
        }
        self.ran_despite_block += usize::from(item.ran_despite_block());
        match &item.what {
            What::Tool(call) => {
                self.tool_calls += 1;
                self.failed += usize::from(call.status() == ToolStatus::Failed);
            }
            What::Model(call) => {
                self.model_requests += 1;
                self.model_errors += call.errors.len();
                if let Some(usage) = &call.usage {
                    self.usage.add(usage);
                }
            }
            What::Subagent(_) => self.subagents += 1,
            What::Prompt
            | What::Question(_)
            | What::TurnEnd
            | What::Event { .. }
            | What::Quiet
            | What::LostEvent => {}
        }
    }

    /// Adds the numbers of another session.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.decisions += other.decisions;
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.blocked += other.blocked;
        self.asked += other.asked;
        self.would_block += other.would_block;
        self.failed += other.failed;
        self.ran_despite_block += other.ran_despite_block;
        self.model_requests += other.model_requests;
        self.model_errors += other.model_errors;
        self.subagents += other.subagents;
        self.usage.add(&other.usage);
    }
}
