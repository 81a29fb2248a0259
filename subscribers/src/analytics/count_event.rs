//! Counts an event of an agent: for its session, its turn and its scope, with the tokens and the cost that it reports.

use hookbus::dialect::{ReportedUsage, UsageScope};
use hookbus::event::{Kind, one_line};
use hookbus::log::Row;

use super::call::Call;
use super::figures::{Activity, Cell, Figures, add, hour_of};
use super::reading::{EventSaid, NAME, RowReader};
use super::scope::{Scope, Scopes};
use super::session::Session;
use super::turn::Turn;
use super::usage::{Numbers, UsageRow, covers};

/// Where what is over goes, to be written; and the reader of results without a call.
pub(super) struct Finished<'a> {
    pub(super) calls: &'a mut Vec<Call>,
    pub(super) turns: &'a mut Vec<Turn>,
    pub(super) usage: &'a mut Vec<UsageRow>,
    pub(super) reader: &'a mut RowReader,
}

/// A row, and the session that it belongs to.
pub(super) struct RowOfSession<'a> {
    pub(super) row: &'a Row,
    pub(super) kind: Kind,
    pub(super) bus: i64,
    pub(super) host: &'a str,
    pub(super) session: &'a mut Session,
}

impl RowOfSession<'_> {
    /// The number of the scope that the row is counted in.
    pub(super) fn scope(&mut self, scopes: &mut Scopes) -> i64 {
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

    pub(super) fn event(
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
}
