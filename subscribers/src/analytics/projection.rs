//! What rows come to. [`Projection::add`] takes the rows of each bus in log order, with what they say, and keeps what
//! changed until it is written; sessions are read from the database when a row needs them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hookbus::dialect::{ReportedUsage, ToolStatus, UsageScope};
use hookbus::event::{BusId, EventId, Kind, Outcome, Seq, one_line};
use hookbus::log::Row;
use hookbus::shell::Access;
use hookbus::view::{Effects, EventView};
use rusqlite::Connection;

use super::AnalyticsError;
use super::call::{Call, PENDING};
use super::figures::{Activity, Cell, Figures, HookCell, ToolFigure, TouchedCell, add, hour_of};
use super::load;
use super::pruned::PrunedRows;
use super::reading::{
    CallSaid, DecisionSaid, EventSaid, NAME, ResultSaid, RowReader, Said, Wanted,
};
use super::scope::{Scope, Scopes};
use super::session::Session;
use super::turn::Turn;
use super::usage::{Numbers, UsageRow, covers};
use crate::position::StreamMark;

/// How far a bus is.
#[derive(Debug, Clone)]
pub(super) struct BusState {
    pub(super) number: i64,
    pub(super) seq: Seq,
    /// The id of the row at `seq`.
    pub(super) row: EventId,
    pub(super) host: String,
    pub(super) is_changed: bool,
}

/// A decision with its verdicts, to be written.
#[derive(Debug)]
pub(super) struct DecisionRow {
    pub(super) bus: i64,
    pub(super) seq: i64,
    pub(super) cause: Option<i64>,
    pub(super) scope: i64,
    pub(super) session: String,
    pub(super) time: i64,
    pub(super) tool: Option<String>,
    pub(super) tool_class: Option<String>,
    /// None if the row is not one that this version can read.
    pub(super) decision: Option<DecisionSaid>,
}

/// Whether a row was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It was.
    Counted,
    /// It was counted before.
    Known,
}

/// What rows come to, and what of it is not written yet.
#[derive(Debug, Default)]
pub(super) struct Projection {
    pub(super) buses: HashMap<BusId, BusState>,
    pub(super) stream: Option<StreamMark>,
    pub(super) scopes: Scopes,
    pub(super) sessions: HashMap<(i64, String), Session>,
    pub(super) figures: Figures,
    pub(super) finished_calls: Vec<Call>,
    pub(super) finished_turns: Vec<Turn>,
    pub(super) finished_usage: Vec<UsageRow>,
    pub(super) decisions: Vec<DecisionRow>,
    /// Rows whose payloads were removed from the log, each with the number of its bus.
    pub(super) pruned: Vec<(i64, PrunedRows)>,
    /// Reads rows that were not read before.
    pub(super) reader: RowReader,
}

impl Projection {
    /// Counts a row, unless that was done before. `said` is what it says; none if it is still to be read.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        bus: BusId,
        row: &Row,
        said: Option<Said>,
    ) -> Result<Added, AnalyticsError> {
        let next = i64::try_from(self.buses.len()).unwrap_or(i64::MAX).saturating_add(1);
        let state = match self.buses.entry(bus) {
            Entry::Occupied(known) => {
                if row.seq <= known.get().seq {
                    return Ok(Added::Known);
                }
                known.into_mut()
            }
            Entry::Vacant(new) => new.insert(BusState {
                number: next,
                seq: row.seq,
                row: row.id,
                host: String::new(),
                is_changed: true,
            }),
        };
        (state.seq, state.row, state.is_changed) = (row.seq, row.id, true);
        if let Some(identity) = &row.identity
            && identity.host != state.host
        {
            state.host.clone_from(&identity.host);
        }
        let kind = Kind::parse(&row.kind).unwrap_or(Kind::Other);
        if kind.is_of_bus() {
            let wanted = Wanted { project: false, model: false };
            if let Said::Bus(bus) = said.unwrap_or_else(|| self.reader.read(row, kind, wanted)) {
                state.host = bus.host.unwrap_or_else(|| std::mem::take(&mut state.host));
                self.pruned.extend(bus.pruned.into_iter().map(|rows| (state.number, rows)));
            }
            return Ok(Added::Counted);
        }
        let session = session(&mut self.sessions, db, state.number, &row.session)?;
        let wanted =
            Wanted { project: session.project.is_empty(), model: session.model.is_empty() };
        let said = said.unwrap_or_else(|| self.reader.read(row, kind, wanted));
        let part = Part { row, kind, bus: state.number, host: &state.host, session };
        match said {
            Said::Bus(_) => {}
            Said::Decision(decision) => {
                self.decisions.push(part.decision(decision, &mut self.scopes, &mut self.figures));
            }
            Said::Event(said) => {
                let mut finished = Finished {
                    calls: &mut self.finished_calls,
                    turns: &mut self.finished_turns,
                    usage: &mut self.finished_usage,
                    reader: &mut self.reader,
                };
                part.event(said, &mut self.scopes, &mut self.figures, &mut finished);
            }
        }
        Ok(Added::Counted)
    }
}

fn session<'a>(
    sessions: &'a mut HashMap<(i64, String), Session>,
    db: &Connection,
    bus: i64,
    name: &str,
) -> Result<&'a mut Session, AnalyticsError> {
    match sessions.entry((bus, name.to_owned())) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(new) => {
            let found = load::session(db, bus, name)?;
            let fresh = || Session { bus, name: name.to_owned(), ..Session::default() };
            Ok(new.insert(found.unwrap_or_else(fresh)))
        }
    }
}

/// Where what is over goes, to be written; and the reader of results without a call.
struct Finished<'a> {
    calls: &'a mut Vec<Call>,
    turns: &'a mut Vec<Turn>,
    usage: &'a mut Vec<UsageRow>,
    reader: &'a mut RowReader,
}

/// A row, and the session that it belongs to.
struct Part<'a> {
    row: &'a Row,
    kind: Kind,
    bus: i64,
    host: &'a str,
    session: &'a mut Session,
}

impl Part<'_> {
    /// The number of the scope that the row is counted in.
    fn scope(&mut self, scopes: &mut Scopes) -> i64 {
        let agent = &self.row.agent;
        if let Some((known, host, number)) = &self.session.scope
            && (known, host.as_str()) == (agent, self.host)
        {
            return *number;
        }
        let number = scopes.number(Scope {
            bus: self.bus,
            agent: agent.clone(),
            project: self.session.project.clone(),
            model: self.session.model.clone(),
            host: self.host.to_owned(),
        });
        self.session.scope = Some((agent.clone(), self.host.to_owned(), number));
        number
    }

    fn event(
        mut self,
        said: EventSaid,
        scopes: &mut Scopes,
        figures: &mut Figures,
        finished: &mut Finished<'_>,
    ) {
        let (row, kind) = (self.row, self.kind);
        let EventSaid { project, model, prompt, call, result, usage } = said;
        let is_new = self.session.events == 0;
        self.note_origin(project, model);
        let cell = Cell { hour: hour_of(row.at.micros()), scope: self.scope(scopes) };
        let mut counted = vec![(Activity::Events, 1)];
        if is_new && !row.session.is_empty() {
            counted.push((Activity::Sessions, 1));
        }
        if kind == Kind::TurnStart {
            counted.push((Activity::Turns, 1));
            finished.turns.extend(self.start_turn(prompt));
        }
        if kind == Kind::ModelBefore {
            counted.push((Activity::ModelRequests, 1));
            finished.usage.extend(self.session.open_usage.take());
        }
        if kind == Kind::SessionStart {
            self.session.ended = None;
        }
        if kind == Kind::SessionEnd {
            self.session.ended = Some(row.at.micros());
            finished.calls.extend(self.session.give_up_calls());
        }
        if let Some(turn) = &mut self.session.turn {
            turn.events += 1;
            if matches!(kind, Kind::TurnEnd | Kind::TurnFailed) {
                turn.ended = Some(row.at.micros());
            }
        }
        figures.activity(cell, &counted);
        if let Some(call) = call {
            let call = self.start_call(call, cell, figures);
            finished.calls.extend(self.session.add_call(call));
        }
        if let Some(result) = result {
            let call = self.finish_call(result, finished.reader, cell, figures);
            finished.calls.push(call);
        }
        if let Some(reported) = usage {
            self.usage(&reported, cell, figures, finished.usage);
        }
    }

    /// What the event says about its session.
    fn note_origin(&mut self, project: Option<String>, model: Option<String>) {
        let (row, session) = (self.row, &mut *self.session);
        if session.events == 0 {
            session.agent.clone_from(&row.agent);
            session.first_seq = row.seq.as_i64();
            session.started = row.at.micros();
        }
        session.is_changed = true;
        session.events += 1;
        session.last_seq = row.seq.as_i64();
        session.active = session.active.max(row.at.micros());
        if let Some(project) = project.filter(|_| session.project.is_empty()) {
            session.project = project;
            session.scope = None;
        }
        // A request repeats the conversation, so its model is read only if no other event has told it.
        let is_told = self.kind != Kind::ModelBefore || session.model.is_empty();
        if let Some(model) = model.filter(|model| is_told && *model != session.model) {
            session.model = model;
            session.scope = None;
        }
    }

    /// Starts a turn; returns the one before it.
    fn start_turn(&mut self, prompt: Option<String>) -> Option<Turn> {
        let (row, session) = (self.row, &mut *self.session);
        if session.prompt.is_none() {
            session.prompt.clone_from(&prompt);
        }
        session.turns += 1;
        session.turn.replace(Turn {
            bus: self.bus,
            session: row.session.clone(),
            number: session.turns,
            id: row.turn.as_deref().map(|id| one_line(id, NAME)),
            seq: row.seq.as_i64(),
            started: row.at.micros(),
            ended: None,
            prompt,
            events: 0,
            tool_calls: 0,
            failed: 0,
            blocked: 0,
            input_tokens: 0,
            output_tokens: 0,
            cost: 0,
        })
    }

    /// A call of a tool that the row is about, counted.
    fn start_call(&mut self, said: CallSaid, cell: Cell, figures: &mut Figures) -> Call {
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
    fn finish_call(
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

    /// Counts tokens and cost. A chunk replaces what an earlier one of the same request said.
    fn usage(
        &mut self,
        reported: &ReportedUsage,
        cell: Cell,
        figures: &mut Figures,
        finished: &mut Vec<UsageRow>,
    ) {
        let open = self.session.open_usage.take();
        let so_far = reported.scope == UsageScope::SoFar;
        let (mut row, earlier) = match open {
            Some(open) if so_far => {
                let earlier = open.numbers;
                (open, earlier)
            }
            open => {
                finished.extend(open);
                let row = UsageRow {
                    bus: self.bus,
                    seq: self.row.seq.as_i64(),
                    scope: cell.scope,
                    session: self.row.session.clone(),
                    turn: self.session.turn_number(),
                    time: self.row.at.micros(),
                    covers: covers(reported).to_owned(),
                    numbers: Numbers::default(),
                };
                (row, Numbers::default())
            }
        };
        row.numbers = Numbers::of(&reported.usage);
        let more = row.numbers.beyond(&earlier);
        figures.activity(row.cell(), &more);
        let [(_, input), (_, output), .., (_, cost)] = more;
        let session = &mut *self.session;
        add(&mut session.input_tokens, input);
        add(&mut session.output_tokens, output);
        add(&mut session.cost, cost);
        if let Some(turn) = &mut session.turn {
            add(&mut turn.input_tokens, input);
            add(&mut turn.output_tokens, output);
            add(&mut turn.cost, cost);
        }
        if so_far {
            session.open_usage = Some(row);
        } else {
            finished.push(row);
        }
    }

    fn decision(
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
