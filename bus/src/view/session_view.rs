//! A session: the fold over its rows. Rows are added one by one in log order; after each of them the view is complete.

use std::collections::HashMap;

use super::event_view::directory_name;
use super::{
    CallResult, DecisionView, EventView, Item, ModelCall, QuestionAsked, Subagent, ToolCall, What,
};
use crate::dialect::{AnswerStanding, SubagentReport, Usage, UsageScope};
use crate::event::{Kind, Seq, Time};
use crate::log::Row;

/// The agent of rows that are about the bus itself.
pub(super) const BUS_AGENT: &str = "hookbus";

/// How many calls can wait for their result at a time. Blocked calls never get one, so the oldest are given up.
const MOST_OPEN: usize = 2000;

/// A session of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionView {
    /// The agent's id for it; empty for events that have none.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The working directory that it began in.
    pub cwd: Option<String>,
    /// The directory of the project that it began in.
    pub project: Option<String>,
    /// The models, in the order in which they were first used.
    pub models: Vec<String>,
    /// The time of its earliest event.
    pub first: Option<Time>,
    /// The time of its latest event.
    pub last: Option<Time>,
    /// How many events it has, without decisions and without those inside of sub-agents.
    pub events: usize,
    /// How many decisions were made about them.
    pub decisions: usize,
    /// Tokens and cost of sub-agents that are reported as a whole.
    pub subagent_usage: Usage,
    /// Its turns. Events before the first prompt form a turn without one.
    pub turns: Vec<Turn>,
    index: Index,
}

/// Everything from one prompt to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// The prompt.
    pub prompt: Option<String>,
    /// When it began.
    pub at: Option<Time>,
    /// What happened.
    pub items: Vec<Item>,
    /// The answer, once.
    pub answer: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// When it ended, if that is recorded.
    pub ended: Option<Time>,
    standing: Option<AnswerStanding>,
}

impl Turn {
    /// An inexact answer without what it repeats. Gemini puts the chunks of each request together, and all but the first of
    /// them behind that once more.
    fn told_once(&self, answer: &str) -> String {
        let mut text = answer.to_owned();
        for item in &self.items {
            if let What::Model(call) = &item.what
                && !call.repeated.is_empty()
            {
                text = text.replacen(&format!("{}{}", call.text, call.repeated), &call.text, 1);
            }
        }
        text
    }
}

/// Where an entry is: the turn and its place there.
type Place = (usize, usize);

/// Finds entries by what later rows name them with.
#[derive(Debug, Clone, Default, PartialEq)]
struct Index {
    by_seq: HashMap<Seq, (Place, Kind)>,
    open_calls: Vec<Place>,
    /// Results whose call was not seen yet.
    lone_results: Vec<Place>,
    requests: HashMap<String, Place>,
    last_request: Option<Place>,
    subagents: HashMap<String, Place>,
    open_questions: Vec<Place>,
}

impl SessionView {
    /// An empty view of a session.
    pub fn new(session: impl Into<String>) -> Self {
        Self { session: session.into(), ..Self::default() }
    }

    /// The view of a session with these rows.
    pub fn of_rows<'a>(session: &str, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut view = Self::new(session);
        rows.into_iter().for_each(|row| view.add(row));
        view
    }

    /// Adds a row of the session. Rows about the bus itself are left out.
    pub fn add(&mut self, row: &Row) {
        if row.kind == Kind::Decision.as_str() {
            self.add_decision(row);
        } else if row.agent != BUS_AGENT {
            self.add_event(&EventView::new(row));
        }
    }

    /// The name of the project's directory.
    pub fn project_name(&self) -> Option<String> {
        self.project.as_deref().map(directory_name)
    }

    /// The prompt of the first turn that has one.
    pub fn first_prompt(&self) -> Option<&str> {
        self.turns.iter().find_map(|turn| turn.prompt.as_deref())
    }

    /// All entries, in order, without those inside of sub-agents.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.turns.iter().flat_map(|turn| &turn.items)
    }

    /// The sub-agents.
    pub fn subagents(&self) -> impl Iterator<Item = &Subagent> {
        self.items().filter_map(|item| match &item.what {
            What::Subagent(subagent) => Some(&**subagent),
            What::Prompt
            | What::Tool(_)
            | What::Model(_)
            | What::Question(_)
            | What::TurnEnd
            | What::Event { .. }
            | What::Quiet
            | What::LostEvent => None,
        })
    }

    /// The sessions of sub-agents that have one of their own, and are not attached yet.
    pub fn child_sessions(&self) -> Vec<String> {
        let open = self.subagents().filter(|subagent| subagent.inside.is_none());
        open.filter_map(|subagent| subagent.session.clone()).collect()
    }

    /// Puts what happened in the session of a sub-agent inside of it.
    pub fn attach(&mut self, child: Self) {
        let place = self.index.subagents.get(&child.session).copied();
        if let Some(subagent) = place.and_then(|place| self.subagent_at(place)) {
            subagent.inside = Some(child);
        }
    }

    fn add_event(&mut self, event: &EventView<'_>) {
        let row = event.row;
        self.first = Some(self.first.map_or(row.at, |first| first.min(row.at)));
        self.last = Some(self.last.map_or(row.at, |last| last.max(row.at)));
        if self.agent.is_empty() {
            self.agent.clone_from(&row.agent);
        }
        if self.project.is_none() {
            (self.cwd, self.project) = (event.cwd(), event.project());
        }
        if let Some(id) = event.inside_subagent() {
            let id = id.to_owned();
            return self.add_inside(&id, event);
        }
        self.events += 1;
        if let Some(model) = event.model().filter(|model| !self.models.iter().any(|it| it == model))
        {
            self.models.push(model.to_owned());
        }
        self.add_own_event(event);
        if let Some(reported) = event.usage().filter(|it| it.scope == UsageScope::Subagent) {
            self.subagent_usage.add(&reported.usage);
        }
    }

    fn add_own_event(&mut self, event: &EventView<'_>) {
        match event.kind {
            Kind::TurnStart | Kind::AgentStart => self.start_turn(event),
            Kind::ToolBefore => self.start_call(event),
            Kind::ToolAfter | Kind::ToolFailed => self.finish_call(event),
            Kind::ModelBefore => self.start_request(event),
            Kind::ModelChunk | Kind::ModelAfter | Kind::ModelError => self.add_answer_part(event),
            Kind::SubagentStart => self.start_subagent(event),
            Kind::SubagentStop => self.finish_subagent(event),
            Kind::TurnOutput
            | Kind::TurnAnswer
            | Kind::TurnEnd
            | Kind::TurnFailed
            | Kind::AgentEnd => {
                self.end_turn(event);
            }
            Kind::ApprovalAnswer => self.answer_question(event),
            Kind::ToolSelect
            | Kind::ToolOutput
            | Kind::TurnVerify
            | Kind::CompactBefore
            | Kind::AgentStep => self.push(event, What::Quiet),
            Kind::SessionStart
            | Kind::SessionEnd
            | Kind::SessionReset
            | Kind::ApprovalRequest
            | Kind::MessageIn
            | Kind::Command
            | Kind::CompactAfter
            | Kind::TaskCreated
            | Kind::TaskClaimed
            | Kind::TaskCompleted
            | Kind::TaskBlocked
            | Kind::TaskUpdated
            | Kind::Notification
            | Kind::GatewayStart
            | Kind::Decision
            | Kind::HooksLoaded
            | Kind::HooksApproved
            | Kind::HooksRevoked
            | Kind::SettingsChanged
            | Kind::DaemonStarted
            | Kind::SessionHeld
            | Kind::SessionReleased
            | Kind::LogPruned
            | Kind::LogRedacted
            | Kind::LogCheckpoint
            | Kind::Other => self.add_other(event),
        }
    }

    fn add_other(&mut self, event: &EventView<'_>) {
        match event.question() {
            Some(question) => {
                let call_id = event.call_id().map(str::to_owned);
                self.push(event, What::Question(QuestionAsked { question, call_id, answer: None }));
                self.index.open_questions.push(self.last_place());
            }
            None => self.push(event, What::Event { text: event.subject() }),
        }
    }

    fn turn(&mut self) -> &mut Turn {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    /// The place of the entry that was pushed last.
    fn last_place(&self) -> Place {
        let items = self.turns.last().map_or(0, |turn| turn.items.len());
        (self.turns.len().saturating_sub(1), items.saturating_sub(1))
    }

    fn push(&mut self, event: &EventView<'_>, what: What) {
        let row = event.row;
        let item = Item {
            seq: row.seq,
            at: row.at,
            name: row.name.clone(),
            kind: event.kind,
            what,
            decisions: Vec::new(),
        };
        self.turn().items.push(item);
        self.index.by_seq.insert(row.seq, (self.last_place(), event.kind));
    }

    fn item(&mut self, (turn, item): Place) -> Option<&mut Item> {
        self.turns.get_mut(turn)?.items.get_mut(item)
    }

    fn start_turn(&mut self, event: &EventView<'_>) {
        let prompt =
            if event.is_removed() { Some(super::REMOVED.to_owned()) } else { event.prompt() };
        // A gateway hands a message to its agent, which then begins its turn with it.
        let is_handed_over = self.turns.last().is_some_and(|turn| {
            turn.prompt.is_some()
                && turn.ended.is_none()
                && turn.items.iter().all(|item| item.kind == Kind::AgentStart)
        });
        if is_handed_over {
            let turn = self.turn();
            turn.prompt = prompt.or_else(|| turn.prompt.take());
        } else {
            let prompt = Some(prompt.unwrap_or_default());
            self.turns.push(Turn { prompt, at: Some(event.row.at), ..Turn::default() });
        }
        self.push(event, What::Prompt);
    }

    fn end_turn(&mut self, event: &EventView<'_>) {
        let own_turn = self.turns.len().saturating_sub(1);
        let request = self.index.last_request.filter(|(turn, _)| *turn == own_turn);
        let chunks = request.and_then(|place| {
            let call = self.model_call_at(place)?;
            (!call.text.is_empty()).then(|| call.text.clone())
        });
        let is_failure = event.kind == Kind::TurnFailed;
        let failure = if is_failure {
            Some(event.failure().unwrap_or_else(|| "failed".to_owned()))
        } else {
            event.failure().filter(|_| event.kind == Kind::TurnEnd)
        };
        let answer = event.answer().filter(|_| !is_failure);
        let turn = self.turn();
        if let Some(answer) = answer.filter(|it| Some(it.standing) >= turn.standing) {
            turn.standing = Some(answer.standing);
            let is_exact = answer.standing == AnswerStanding::Final;
            let text = chunks.filter(|_| !is_exact);
            let said =
                || if is_exact { answer.text.to_owned() } else { turn.told_once(answer.text) };
            turn.answer = Some(text.unwrap_or_else(said));
        }
        turn.failure = turn.failure.take().or(failure);
        if matches!(event.kind, Kind::TurnEnd | Kind::TurnFailed) {
            turn.ended = Some(event.row.at);
        }
        self.push(event, What::TurnEnd);
    }

    fn start_call(&mut self, event: &EventView<'_>) {
        let call = ToolCall {
            is_start_recorded: true,
            is_removed: event.is_removed(),
            effects: event.effects(),
            ..new_call(event)
        };
        let own = |result: &ToolCall| are_one_call(&call, result);
        let early = self.index.lone_results.iter().position(|place| {
            let (turn, item) = *place;
            let item = self.turns.get(turn).and_then(|turn| turn.items.get(item));
            // Without an id, a result that is older belongs to another call.
            let is_later = |item: &&Item| call.call_id.is_some() || item.at >= event.row.at;
            item.filter(is_later).and_then(Item::tool_call).is_some_and(own)
        });
        if let Some(early) = early {
            let place = self.index.lone_results.remove(early);
            if let Some(item) = self.item(place)
                && let What::Tool(known) = &mut item.what
            {
                let result = known.result.take();
                **known = ToolCall { result, ..call };
                (item.seq, item.at, item.kind) = (event.row.seq, event.row.at, event.kind);
                item.name.clone_from(&event.row.name);
            }
            self.index.by_seq.insert(event.row.seq, (place, event.kind));
            return;
        }
        self.push(event, What::Tool(Box::new(call)));
        let place = self.last_place();
        note(&mut self.index.open_calls, place);
    }

    /// Joins a result with its call: by the id if the agent sends one, else with the oldest open call of the same tool and
    /// input.
    fn finish_call(&mut self, event: &EventView<'_>) {
        let ended = new_call(event);
        let result = CallResult {
            seq: event.row.seq,
            at: event.row.at,
            outcome: event.outcome(),
            is_removed: event.is_removed(),
        };
        let open = self.index.open_calls.iter().position(|(turn, item)| {
            let item = self.turns.get(*turn).and_then(|turn| turn.items.get(*item));
            item.and_then(Item::tool_call).is_some_and(|call| are_one_call(call, &ended))
        });
        match open {
            Some(open) => {
                let place = self.index.open_calls.remove(open);
                if let Some(Item { what: What::Tool(call), .. }) = self.item(place) {
                    call.result = Some(result);
                }
                self.index.by_seq.insert(event.row.seq, (place, event.kind));
            }
            None => {
                let call = ToolCall { result: Some(result), ..ended };
                self.push(event, What::Tool(Box::new(call)));
                let place = self.last_place();
                note(&mut self.index.lone_results, place);
            }
        }
    }

    fn start_request(&mut self, event: &EventView<'_>) {
        let id = event.request_id().map(str::to_owned);
        // An attempt after a failed one has the same id.
        let known = id.as_ref().and_then(|id| self.index.requests.get(id)).copied();
        if let Some(place) = known
            && let Some(Item { what: What::Model(call), .. }) = self.item(place)
        {
            call.attempts += 1;
            self.index.by_seq.insert(event.row.seq, (place, event.kind));
            return;
        }
        self.push_request(event, id);
    }

    fn push_request(&mut self, event: &EventView<'_>, id: Option<String>) {
        let call = ModelCall {
            model: event.model().map(str::to_owned),
            request_id: id.clone(),
            attempts: 1,
            ..ModelCall::default()
        };
        self.push(event, What::Model(Box::new(call)));
        let place = self.last_place();
        self.index.last_request = Some(place);
        if let Some(id) = id {
            self.index.requests.insert(id, place);
        }
    }

    /// A chunk, the whole answer, or the error of a request.
    fn add_answer_part(&mut self, event: &EventView<'_>) {
        let id = event.request_id();
        let in_turn = self.turns.len().saturating_sub(1);
        let last = self.index.last_request.filter(|(turn, _)| *turn == in_turn);
        let known = match id {
            Some(id) => self.index.requests.get(id).copied(),
            None => last,
        };
        let place = known.unwrap_or_else(|| {
            let id = id.map(str::to_owned);
            self.push_request(event, id);
            self.last_place()
        });
        let error = (event.kind == Kind::ModelError)
            .then(|| event.failure().unwrap_or_else(|| "failed".to_owned()));
        if let Some(Item { what: What::Model(call), .. }) = self.item(place) {
            call.answered = Some(event.row.at);
            call.errors.extend(error);
            if event.kind == Kind::ModelChunk {
                call.chunks += 1;
                let text = event.chunk_text().unwrap_or_default();
                if !call.text.is_empty() && !text.is_empty() {
                    call.repeated.push(' ');
                    call.repeated.push_str(text);
                }
                call.text.push_str(text);
            }
            if let Some(model) = event.model() {
                call.model = Some(model.to_owned());
            }
            if let Some(reported) = event.usage().filter(|it| it.scope != UsageScope::Subagent) {
                call.usage = Some(reported.usage);
            }
        }
        self.index.by_seq.insert(event.row.seq, (place, event.kind));
    }

    fn answer_question(&mut self, event: &EventView<'_>) {
        let answer = event.question_answer();
        let id = event.call_id().map(str::to_owned);
        let open = self.index.open_questions.iter().rposition(|(turn, item)| {
            let item = self.turns.get(*turn).and_then(|turn| turn.items.get(*item));
            match item.map(|item| &item.what) {
                Some(What::Question(asked)) => asked.call_id == id || id.is_none(),
                _ => false,
            }
        });
        let Some(open) = open else {
            return self.push(event, What::Event { text: event.subject() });
        };
        let place = self.index.open_questions.remove(open);
        if let Some(Item { what: What::Question(asked), .. }) = self.item(place) {
            asked.answer = answer;
        }
        self.index.by_seq.insert(event.row.seq, (place, event.kind));
    }

    fn model_call_at(&mut self, place: Place) -> Option<&mut ModelCall> {
        match self.item(place).map(|item| &mut item.what) {
            Some(What::Model(call)) => Some(call),
            _ => None,
        }
    }

    fn subagent_at(&mut self, place: Place) -> Option<&mut Subagent> {
        match self.item(place).map(|item| &mut item.what) {
            Some(What::Subagent(subagent)) => Some(subagent),
            _ => None,
        }
    }

    fn find_subagent(&self, report: SubagentReport<'_>) -> Option<Place> {
        let known = |name: Option<&str>| self.index.subagents.get(name?).copied();
        known(report.id).or_else(|| known(report.session))
    }

    fn push_subagent(&mut self, event: &EventView<'_>, report: SubagentReport<'_>) -> Place {
        self.push(event, What::Subagent(Box::new(Subagent::new(report))));
        let place = self.last_place();
        for name in [report.id, report.session].into_iter().flatten() {
            self.index.subagents.insert(name.to_owned(), place);
        }
        place
    }

    fn start_subagent(&mut self, event: &EventView<'_>) {
        let report = event.subagent();
        let place = match self.find_subagent(report) {
            Some(place) => place,
            None => self.push_subagent(event, report),
        };
        if let Some(subagent) = self.subagent_at(place) {
            subagent.learn(report);
            subagent.is_start_recorded = true;
        }
        self.index.by_seq.insert(event.row.seq, (place, event.kind));
    }

    fn finish_subagent(&mut self, event: &EventView<'_>) {
        let report = event.subagent();
        let place = match self.find_subagent(report) {
            Some(place) => place,
            None => self.push_subagent(event, report),
        };
        if let Some(subagent) = self.subagent_at(place) {
            subagent.learn(report);
            subagent.ended = Some((event.row.seq, event.row.at));
        }
        self.index.by_seq.insert(event.row.seq, (place, event.kind));
    }

    /// An event of a sub-agent that shares this session.
    fn add_inside(&mut self, id: &str, event: &EventView<'_>) {
        let report = SubagentReport { id: Some(id), ..SubagentReport::default() };
        let place = match self.find_subagent(report) {
            Some(place) => place,
            None => self.push_subagent(event, report),
        };
        let session = self.session.clone();
        if let Some(subagent) = self.subagent_at(place) {
            let inside = subagent.inside.get_or_insert_with(|| Self::new(session));
            inside.add_event_inside(event);
        }
        self.index.by_seq.insert(event.row.seq, (place, event.kind));
    }

    /// The same event, as the sub-agent's own.
    fn add_event_inside(&mut self, event: &EventView<'_>) {
        let row = event.row;
        self.first = Some(self.first.map_or(row.at, |first| first.min(row.at)));
        self.last = Some(self.last.map_or(row.at, |last| last.max(row.at)));
        self.agent.clone_from(&row.agent);
        self.events += 1;
        self.add_own_event(event);
    }

    fn add_decision(&mut self, row: &Row) {
        let found = row.cause.and_then(|cause| self.index.by_seq.get(&cause)).copied();
        let Some((place, kind)) = found else {
            self.decisions += 1;
            let decision = DecisionView::new(row, None);
            let item = Item {
                seq: row.seq,
                at: row.at,
                name: row.name.clone(),
                kind: Kind::Decision,
                what: What::LostEvent,
                decisions: vec![decision],
            };
            return self.turn().items.push(item);
        };
        // An event inside of a sub-agent.
        if let Some(inside) = self.subagent_at(place).and_then(|subagent| subagent.inside.as_mut())
            && row.cause.is_some_and(|cause| inside.index.by_seq.contains_key(&cause))
        {
            return inside.add_decision(row);
        }
        self.decisions += 1;
        if let Some(item) = self.item(place) {
            item.decisions.push(DecisionView::new(row, Some(kind)));
        }
    }
}

fn note(open: &mut Vec<Place>, place: Place) {
    if open.len() >= MOST_OPEN {
        open.remove(0);
    }
    open.push(place);
}

/// The call that an event of a tool is about.
fn new_call(event: &EventView<'_>) -> ToolCall {
    ToolCall {
        tool: event.row.tool.clone().unwrap_or_default(),
        class: event.tool_class,
        subject: event.subject(),
        input: event.tool_input().clone(),
        call_id: event.call_id().map(str::to_owned),
        is_removed: event.is_removed(),
        ..ToolCall::default()
    }
}

/// Whether two events are of one call. Of a removed payload only the tool is known.
fn are_one_call(call: &ToolCall, result: &ToolCall) -> bool {
    match (&call.call_id, &result.call_id) {
        (Some(own), Some(other)) => own == other,
        _ => {
            let is_removed = call.is_removed || result.is_removed;
            call.tool == result.tool && (is_removed || call.input == result.input)
        }
    }
}
