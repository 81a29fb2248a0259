//! Counts decisions: for the session, for the hooks that were asked, and for the call that they are about.

use hookbus::event::{Outcome, Seq, one_line};

use super::count_event::RowOfSession;
use super::figures::{Activity, Cell, Figures, HookCell, ToolFigure, hour_of};
use super::projection::DecisionRow;
use super::reading::{DecisionSaid, NAME};
use super::scope::Scopes;

impl RowOfSession<'_> {
    pub(super) fn decision(
        mut self,
        decision: Option<DecisionSaid>,
        scopes: &mut Scopes,
        figures: &mut Figures,
    ) -> DecisionRow {
        let row = self.row;
        let cell = Cell { hour: hour_of(row.at.micros()), scope: self.scope(scopes) };
        let name = |text: &String| one_line(text, NAME);
        self.session.is_changed = true;
        self.session.decisions += 1;
        self.session.last_seq = row.seq.as_i64();
        figures.activity(cell, &[(Activity::Decisions, 1)]);
        if let Some(decision) = &decision {
            self.outcome(decision, cell, figures);
            for verdict in &decision.verdicts {
                let key = HookCell { cell, hook: verdict.hook.clone(), shadow: verdict.shadow };
                figures.hook(key, verdict.figure, verdict.took);
            }
        }
        DecisionRow {
            bus: self.bus,
            seq: row.seq.as_i64(),
            cause: row.cause.map(Seq::as_i64),
            scope: cell.scope,
            session: row.session.clone(),
            time: row.at.micros(),
            tool: row.tool.as_ref().map(name),
            tool_class: row.tool_class.as_ref().map(name),
            decision,
        }
    }

    /// Counts what a decision came to, for its session and for the call that it is about.
    fn outcome(&mut self, decision: &DecisionSaid, cell: Cell, figures: &mut Figures) {
        let cause = self.row.cause.map_or(0, Seq::as_i64);
        let call = self.session.open_calls.get_mut(&cause);
        let (figure, of_tool) = match decision.outcome {
            Outcome::Block | Outcome::Stop => {
                self.session.blocked += 1;
                if let Some(turn) = &mut self.session.turn {
                    turn.blocked += 1;
                }
                (Some(Activity::Blocked), Some(ToolFigure::Blocked))
            }
            Outcome::Ask => {
                self.session.asked += 1;
                (Some(Activity::Asked), Some(ToolFigure::Asked))
            }
            Outcome::Rewrite => (Some(Activity::Rewritten), None),
            Outcome::Allow | Outcome::Context | Outcome::None => (None, None),
        };
        if let Some(figure) = figure {
            figures.activity(cell, &[(figure, 1)]);
        }
        let Some(call) = call else { return };
        let is_denied = call.decide(decision);
        let mut tool: Vec<(ToolFigure, i64)> =
            of_tool.map(|figure| (figure, 1)).into_iter().collect();
        if is_denied {
            figures.activity(call.cell(), &[(Activity::Denied, 1)]);
            tool.push((ToolFigure::Denied, 1));
        }
        if !tool.is_empty() {
            figures.tool(call.cell(), (&call.tool, &call.tool_class), &tool);
        }
    }
}
