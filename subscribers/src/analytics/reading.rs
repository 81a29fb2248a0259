//! What a row says beyond its columns. It follows from the row alone, so that rows can be read on another thread than the one
//! that counts them: [`RowReader`] reads, [`super::projection`] joins what was read with what came before.

use std::collections::HashSet;
use std::sync::Arc;

use hookbus::dialect::{ReportedUsage, ToolOutcome};
use hookbus::event::{Kind, Outcome, RecordedDecision, RecordedVerdict, one_line};
use hookbus::log::Row;
use hookbus::view::{Effects, EffectsMemory, EventView};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::figures::HookFigure;
use super::pruned::{self, PrunedRows};

/// How many characters of prompts, commands, reasons and errors are kept.
pub(super) const TEXT: usize = 500;

/// How many characters of names are kept: tools, models, hooks, directories.
pub(super) const NAME: usize = 300;

/// The longest span that is believed, in microseconds (116 days). Sums of a million of them are still whole numbers.
pub(super) const LONGEST: i64 = 10_000_000_000_000;

/// How many sessions a reader remembers.
const MOST_SESSIONS: usize = 20_000;

/// What a row says.
#[derive(Debug)]
pub(super) enum Said {
    /// A row about the bus itself.
    Bus(BusSaid),
    /// A decision; none if it is not one that this version can read.
    Decision(Option<DecisionSaid>),
    /// An event of an agent.
    Event(EventSaid),
}

/// What a row about the bus itself says.
#[derive(Debug, Default)]
pub(super) struct BusSaid {
    /// The machine, in rows of earlier versions.
    pub(super) host: Option<String>,
    /// Rows whose payloads were removed or redacted.
    pub(super) pruned: Vec<PrunedRows>,
}

/// What an event says.
#[derive(Debug, Default)]
pub(super) struct EventSaid {
    pub(super) project: Option<String>,
    pub(super) model: Option<String>,
    /// The prompt, if a turn starts.
    pub(super) prompt: Option<String>,
    /// The call, if one starts.
    pub(super) call: Option<CallSaid>,
    /// The result of a call.
    pub(super) result: Option<ResultSaid>,
    /// Few events have it.
    pub(super) usage: Option<Box<ReportedUsage>>,
}

/// By which a result is joined with its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallJoin {
    /// The agent's id.
    pub(super) id: Option<String>,
    /// A number that follows from the input, if there is no id.
    pub(super) input_hash: i64,
}

/// What the start of a call says.
#[derive(Debug)]
pub(super) struct CallSaid {
    pub(super) join: CallJoin,
    /// The command, path or address, shortened.
    pub(super) about: String,
    pub(super) effects: Arc<Effects>,
}

/// What the result of a call says.
#[derive(Debug)]
pub(super) struct ResultSaid {
    pub(super) join: CallJoin,
    pub(super) outcome: ToolOutcome,
}

/// What a decision says.
#[derive(Debug)]
pub(super) struct DecisionSaid {
    pub(super) outcome: Outcome,
    /// The hook that the outcome comes from: the first that said it, and was not in shadow mode.
    pub(super) hook: Option<String>,
    /// What that hook gave as its reason.
    pub(super) reason: Option<String>,
    pub(super) took: Option<i64>,
    pub(super) waited_for: bool,
    pub(super) verdicts: Vec<VerdictSaid>,
}

/// What one hook said in a decision.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
pub(super) struct VerdictSaid {
    pub(super) hook: String,
    pub(super) verdict: String,
    /// What it counts as.
    pub(super) figure: Option<HookFigure>,
    pub(super) shadow: bool,
    pub(super) failed: bool,
    pub(super) unapproved: bool,
    pub(super) of_project: bool,
    pub(super) reason: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) took: Option<i64>,
}

/// What is not known of a session yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) project: bool,
    pub(super) model: bool,
}

/// Reads rows.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    effects: EffectsMemory,
    /// Sessions whose project or model this reader has read.
    projects: HashSet<String>,
    models: HashSet<String>,
}

impl RowReader {
    /// What the row says. To be asked for all rows of one bus in log order: project and model are read until they are
    /// found.
    pub(super) fn read_next(&mut self, row: &Row) -> Said {
        let kind = Kind::parse(&row.kind).unwrap_or(Kind::Other);
        let wanted = Wanted {
            project: !self.projects.contains(&row.session),
            model: !self.models.contains(&row.session),
        };
        let said = self.read(row, kind, wanted);
        if let Said::Event(event) = &said {
            note(&mut self.projects, wanted.project && event.project.is_some(), &row.session);
            note(&mut self.models, wanted.model && event.model.is_some(), &row.session);
        }
        said
    }

    /// What the row says, if this is wanted of its session.
    pub(super) fn read(&mut self, row: &Row, kind: Kind, wanted: Wanted) -> Said {
        if kind.is_of_bus() {
            return Said::Bus(read_bus_row(row, kind));
        }
        if kind == Kind::Decision {
            let decision = RecordedDecision::from_json(row.payload_json());
            return Said::Decision(decision.ok().map(DecisionSaid::new));
        }
        Said::Event(self.read_event(row, kind, wanted))
    }

    fn read_event(&mut self, row: &Row, kind: Kind, wanted: Wanted) -> EventSaid {
        let of_model = kind == Kind::ModelBefore && wanted.model;
        if !is_read(kind) && !of_model && !wanted.project {
            return EventSaid::default();
        }
        let event = EventView::new(row);
        let name = |text: &str| Some(one_line(text, NAME)).filter(|name| !name.is_empty());
        let mut said = EventSaid::default();
        if wanted.project {
            said.project = event.project().and_then(|project| name(&project));
        }
        if is_read(kind) || of_model {
            said.model = event.model().and_then(name);
        }
        if !is_read(kind) {
            return said;
        }
        said.usage = event.usage().map(Box::new);
        if kind == Kind::TurnStart {
            said.prompt = event.prompt().map(|prompt| one_line(&prompt, TEXT));
        }
        if kind == Kind::ToolBefore {
            said.call = Some(self.call(&event));
        }
        if matches!(kind, Kind::ToolAfter | Kind::ToolFailed) {
            let outcome = ToolOutcome { output: None, ..event.outcome() };
            said.result = Some(ResultSaid { join: CallJoin::new(&event), outcome });
        }
        said
    }

    /// What a call does, from its start, or from its result if the start is not there.
    pub(super) fn call(&mut self, event: &EventView<'_>) -> CallSaid {
        CallSaid {
            join: CallJoin::new(event),
            about: one_line(&event.subject(), TEXT),
            effects: self.effects.effects(event),
        }
    }
}

/// Remembers a session, if `is_known`.
fn note(sessions: &mut HashSet<String>, is_known: bool, session: &str) {
    if is_known {
        if sessions.len() >= MOST_SESSIONS {
            sessions.clear();
        }
        sessions.insert(session.to_owned());
    }
}

/// Whether figures depend on the payload of an event of this kind.
const fn is_read(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::SessionStart
            | Kind::TurnStart
            | Kind::TurnEnd
            | Kind::ModelChunk
            | Kind::ModelAfter
            | Kind::ToolBefore
            | Kind::ToolAfter
            | Kind::ToolFailed
            | Kind::SubagentStart
            | Kind::SubagentStop
    )
}

fn read_bus_row(row: &Row, kind: Kind) -> BusSaid {
    let is_removal = matches!(kind, Kind::LogPruned | Kind::LogRedacted);
    // Rows of earlier versions do not tell who recorded them; the start of a daemon does.
    if !is_removal && row.identity.is_some() {
        return BusSaid::default();
    }
    let payload = row.payload_json();
    let host = payload.get("host").and_then(Value::as_str).filter(|_| row.identity.is_none());
    BusSaid {
        host: host.map(|host| one_line(host, NAME)),
        pruned: if is_removal { pruned::read(&payload, kind) } else { Vec::new() },
    }
}

impl CallJoin {
    fn new(event: &EventView<'_>) -> Self {
        let id = event.call_id().map(|id| one_line(id, NAME));
        let input_hash = if id.is_some() { 0 } else { input_hash(event) };
        Self { id, input_hash }
    }
}

fn input_hash(event: &EventView<'_>) -> i64 {
    let digest = Sha256::digest(event.tool_input().to_string().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

impl DecisionSaid {
    fn new(decision: RecordedDecision) -> Self {
        let RecordedDecision { outcome, verdicts, waited_for, ms, .. } = decision;
        let verdicts: Vec<VerdictSaid> = verdicts.into_iter().map(VerdictSaid::new).collect();
        let said = |it: &&VerdictSaid| !it.shadow && it.verdict == outcome.as_str();
        let deciding = verdicts.iter().find(said);
        let hook = deciding.map(|verdict| verdict.hook.clone());
        let reason = deciding.and_then(|verdict| verdict.reason.clone());
        Self { outcome, hook, reason, took: micros_of(ms), waited_for, verdicts }
    }
}

impl VerdictSaid {
    fn new(recorded: RecordedVerdict) -> Self {
        let figure = HookFigure::of(recorded.figure());
        Self {
            hook: one_line(&recorded.hook, NAME),
            verdict: one_line(&recorded.verdict, NAME),
            figure,
            shadow: recorded.shadow,
            failed: recorded.failure.is_some(),
            unapproved: recorded.unapproved,
            of_project: recorded.of_project,
            reason: recorded.failure.or(recorded.reason).map(|reason| one_line(&reason, TEXT)),
            exit_code: recorded.exit,
            took: micros_of(recorded.ms),
        }
    }
}

/// Microseconds of a span in milliseconds, as decisions record them.
fn micros_of(ms: Option<f64>) -> Option<i64> {
    let micros = (ms?.max(0.0) * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "a cast to a whole number saturates")]
    let micros = micros as i64;
    Some(micros.min(LONGEST))
}
