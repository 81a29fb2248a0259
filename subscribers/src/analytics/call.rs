//! A tool call, joined with its decision and its result.

use hookbus::dialect::{ToolOutcome, ToolStatus};
use hookbus::event::{Time, one_line};

use super::figures::{Cell, hour_of};
use super::reading::{CallJoin, DecisionSaid, LONGEST, TEXT};

/// A call without a result.
pub(super) const PENDING: &str = "pending";

/// A row of `p_tool_calls`.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) bus: i64,
    pub(super) seq: i64,
    pub(super) scope: i64,
    pub(super) session: String,
    pub(super) turn: i64,
    pub(super) join: CallJoin,
    pub(super) tool: String,
    pub(super) tool_class: String,
    pub(super) about: String,
    pub(super) started: i64,
    pub(super) ended: Option<i64>,
    pub(super) result_seq: Option<i64>,
    pub(super) took: Option<i64>,
    pub(super) status: String,
    pub(super) exit_code: Option<i64>,
    pub(super) error: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) hook: Option<String>,
    pub(super) ran_anyway: bool,
    pub(super) is_open: bool,
    /// Whether it has to be written.
    pub(super) is_changed: bool,
}

impl Call {
    /// Where it is counted: by the time of the call, also if the result comes in a later hour.
    pub(super) const fn cell(&self) -> Cell {
        Cell { hour: hour_of(self.started), scope: self.scope }
    }

    /// Adds what was decided about it. Returns whether it counts as denied from now on.
    pub(super) fn decide(&mut self, decision: &DecisionSaid) -> bool {
        self.is_changed = true;
        self.outcome = Some(decision.outcome.as_str().to_owned());
        self.hook.clone_from(&decision.hook);
        let is_denied = decision.outcome.refuses() && self.status == PENDING;
        if is_denied {
            ToolStatus::Denied.as_str().clone_into(&mut self.status);
        }
        is_denied
    }

    /// Adds its result.
    pub(super) fn finish(&mut self, outcome: &ToolOutcome, result_seq: i64, at: Time) {
        let blocked = matches!(self.outcome.as_deref(), Some("block" | "stop"));
        self.is_changed = true;
        self.is_open = false;
        self.ended = Some(at.micros());
        self.result_seq = Some(result_seq);
        let told = outcome.took.and_then(|took| i64::try_from(took.as_micros()).ok());
        let took = told.unwrap_or_else(|| at.micros().saturating_sub(self.started));
        self.took = Some(took.clamp(0, LONGEST));
        outcome.status.as_str().clone_into(&mut self.status);
        self.exit_code = outcome.exit_code;
        self.error = outcome.error.as_deref().map(|error| one_line(error, TEXT));
        self.ran_anyway =
            blocked && outcome.ran != Some(false) && outcome.status != ToolStatus::Denied;
    }
}
