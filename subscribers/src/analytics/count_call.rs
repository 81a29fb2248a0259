//! Counts tool calls: their start, what they name, and their result.

use hookbus::dialect::ToolStatus;
use hookbus::event::one_line;
use hookbus::shell::Access;
use hookbus::view::{Effects, EventView};

use super::call::{Call, PENDING};
use super::count_event::RowOfSession;
use super::figures::{Activity, Cell, Figures, ToolFigure, TouchedCell};
use super::reading::{CallSaid, NAME, ResultSaid, RowReader};

impl RowOfSession<'_> {
    /// A call of a tool that the row is about, counted.
    pub(super) fn start_call(&mut self, said: CallSaid, cell: Cell, figures: &mut Figures) -> Call {
        let row = self.row;
        let name = |text: Option<&str>| one_line(text.unwrap_or_default(), NAME);
        self.touch(&said.effects, cell, figures);
        let call = Call {
            bus: self.bus,
            seq: row.seq.as_i64(),
            scope: cell.scope,
            session: row.session.clone(),
            turn: self.session.turn_number(),
            join: said.join,
            tool: name(row.tool.as_deref()),
            tool_class: name(row.tool_class.as_deref()),
            about: said.about,
            started: row.at.micros(),
            ended: None,
            result_seq: None,
            took: None,
            status: PENDING.to_owned(),
            exit_code: None,
            error: None,
            outcome: None,
            hook: None,
            ran_anyway: false,
            is_open: true,
            is_changed: true,
        };
        self.session.tool_calls += 1;
        if let Some(turn) = &mut self.session.turn {
            turn.tool_calls += 1;
        }
        figures.activity(cell, &[(Activity::ToolCalls, 1)]);
        figures.tool(cell, (&call.tool, &call.tool_class), &[(ToolFigure::Calls, 1)]);
        call
    }

    /// Counts the files and hosts that a call names.
    fn touch(&self, effects: &Effects, cell: Cell, figures: &mut Figures) {
        let key = |what: &str, access| TouchedCell {
            cell,
            session: self.row.session.clone(),
            what: one_line(what, NAME),
            access,
        };
        for file in &effects.files {
            let access = match file.access {
                Access::Read => "read",
                Access::Write => "write",
                Access::Delete => "delete",
            };
            *figures.files.entry(key(&file.path, access)).or_default() += 1;
        }
        for host in &effects.hosts {
            *figures.hosts.entry(key(host, "")).or_default() += 1;
        }
    }

    /// Joins a result with its call. A result without one is a call of its own.
    pub(super) fn finish_call(
        &mut self,
        ResultSaid { join, outcome }: ResultSaid,
        reader: &mut RowReader,
        cell: Cell,
        figures: &mut Figures,
    ) -> Call {
        let row = self.row;
        let tool = one_line(row.tool.as_deref().unwrap_or_default(), NAME);
        let mut call = match self.session.take_call(&join, &tool) {
            Some(call) => call,
            None => self.start_call(reader.call(&EventView::new(row)), cell, figures),
        };
        let was_denied = call.status == ToolStatus::Denied.as_str();
        call.finish(&outcome, row.seq.as_i64(), row.at);
        let (mut activity, mut tool) = (Vec::new(), Vec::new());
        match outcome.status {
            ToolStatus::Ok => {}
            ToolStatus::Failed => {
                activity.push((Activity::Failed, 1));
                tool.push((ToolFigure::Failed, 1));
                self.session.failed += 1;
                if let Some(turn) = &mut self.session.turn {
                    turn.failed += 1;
                }
            }
            ToolStatus::Denied => {
                activity.push((Activity::Denied, 1));
                tool.push((ToolFigure::Denied, 1));
            }
            ToolStatus::Unknown => tool.push((ToolFigure::Unknown, 1)),
        }
        if was_denied {
            activity.push((Activity::Denied, -1));
            tool.push((ToolFigure::Denied, -1));
        }
        tool.push((ToolFigure::Timed, 1));
        tool.push((ToolFigure::Took, call.took.unwrap_or(0)));
        figures.activity(call.cell(), &activity);
        figures.tool(call.cell(), (&call.tool, &call.tool_class), &tool);
        call
    }
}
