//! Finds the event and the decision that the user means.

use anyhow::{Context, Result, bail};
use hookbus::event::{Kind, Outcome, RecordedDecision, Seq};
use hookbus::log::{LogReader, Query, ReadError, RecordedEvent, Row};

use crate::args::find_session;
use crate::output::sanitize;

/// How many decisions `last` looks at for one that held the agent back.
const MOST_DECISIONS: usize = 10_000;

/// A recorded event and the decision about it.
#[derive(Debug)]
pub(super) struct FoundDecision {
    pub(super) event: Row,
    /// None if no hook had anything to say.
    pub(super) decision: Option<Row>,
}

impl FoundDecision {
    /// The decision that `what` names: a row, a session or `last`.
    pub(super) fn find(log: &LogReader, what: &str) -> Result<Self> {
        if what == "last" {
            let decision = last_decision(log)?.context(
                "no decision is recorded yet; `hookbus hooks test --command 'git push --force'` tries your hooks",
            )?;
            return Self::of_decision(log, decision);
        }
        if let Ok(seq) = what.parse::<i64>()
            && let Some(row) = row(log, Seq::from_i64(seq))?
        {
            return Self::of_row(log, row);
        }
        match find_session(log, what) {
            Ok(session) => Self::of_session(log, &session),
            Err(error) if matches!(error.downcast_ref(), Some(ReadError::NoSession(_))) => {
                let last = log.head()?.map_or(0, |(seq, _)| seq.as_i64());
                let what = sanitize(what);
                bail!(
                    "there is no row or session `{what}`; the last row is {last}, `hookbus log` lists them"
                )
            }
            Err(error) => Err(error),
        }
    }

    fn of_row(log: &LogReader, row: Row) -> Result<Self> {
        if row.kind == Kind::Decision.as_str() {
            return Self::of_decision(log, row);
        }
        if Kind::parse(&row.kind).is_some_and(Kind::is_of_bus) {
            bail!(
                "row {} is about hookbus itself ({}); `hookbus log --seq {}` shows it",
                row.seq,
                sanitize(&row.kind),
                row.seq
            );
        }
        let decision = match log.seq_of(row.id.of_decision())? {
            Some(seq) => self::row(log, seq)?,
            None => None,
        };
        Ok(Self { event: row, decision })
    }

    fn of_decision(log: &LogReader, decision: Row) -> Result<Self> {
        let seq = decision.seq;
        let event = match decision.cause {
            Some(cause) => row(log, cause)?,
            None => None,
        };
        let event = event.with_context(|| {
            format!("row {seq} is a decision about an event that is not in this log")
        })?;
        Ok(Self { event, decision: Some(decision) })
    }

    fn of_session(log: &LogReader, session: &str) -> Result<Self> {
        let kind = Some(Kind::Decision.as_str().to_owned());
        let query = Query { session: Some(session.to_owned()), kind, ..Query::default() };
        let decision = log.last(&query, 1)?.pop().with_context(|| {
            let session = sanitize(session);
            format!("no hook had anything to say in session {session}; `hookbus show {session}` shows it")
        })?;
        Self::of_decision(log, decision)
    }

    /// The event as a replay reads it.
    pub(super) fn recorded(&self) -> RecordedEvent {
        let Row { seq, id, at, agent, session, kind, context, payload, origin, .. } = &self.event;
        RecordedEvent {
            seq: *seq,
            id: *id,
            at: *at,
            agent: agent.clone(),
            session: session.clone(),
            kind: kind.clone(),
            context: context.clone(),
            payload: payload.clone(),
            is_removed: self.event.removed.is_some(),
            decision: self.decision.as_ref().map(|row| row.payload.clone()),
            origin: origin.map(|origin| (origin.bus, origin.seq)),
        }
    }
}

pub(super) fn row(log: &LogReader, seq: Seq) -> Result<Option<Row>, ReadError> {
    let query = Query { seq: Some(seq), ..Query::default() };
    Ok(log.last(&query, 1)?.pop())
}

/// The last decision that blocked, asked or stopped; else the last one.
fn last_decision(log: &LogReader) -> Result<Option<Row>, ReadError> {
    let kind = Some(Kind::Decision.as_str().to_owned());
    let query = Query { kind, ..Query::default() };
    for count in [100, MOST_DECISIONS] {
        let rows = log.last(&query, count)?;
        if let Some(row) = rows.into_iter().rev().find(held_back) {
            return Ok(Some(row));
        }
    }
    Ok(log.last(&query, 1)?.pop())
}

fn held_back(row: &Row) -> bool {
    let decision = RecordedDecision::from_json(row.payload_json());
    decision.is_ok_and(|it| matches!(it.outcome, Outcome::Block | Outcome::Ask | Outcome::Stop))
}
