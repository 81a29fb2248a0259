//! A session in `hookbus top`: what `hookbus sessions` says about it, counted on with every new row.

use anyhow::Result;
use hookbus::event::{Kind, Seq, Time};
use hookbus::log::{LogReader, RowHead};
use serde_json::{Value, json};

use super::log_tail::WINDOW;
use crate::bus_names::BusNames;
use crate::sessions::{Detail, SessionSummary};

/// A session, and what happened in it last.
#[derive(Debug, Clone)]
pub(super) struct LiveSession {
    pub(super) summary: SessionSummary,
    /// The kind of its last event, and the tool.
    pub(super) last_event: Option<(Kind, Option<String>)>,
    /// Its last row, which may be a decision.
    pub(super) last_seq: Seq,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionState {
    /// It had an event within the window.
    Live,
    /// It had none for longer.
    Idle,
    /// Its agent has ended it.
    Ended,
}

impl SessionState {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Idle => "idle",
            Self::Ended => "ended",
        }
    }
}

impl LiveSession {
    /// Where it begins, with what was counted before `before`; none if it has no event.
    pub(super) fn read(
        log: &LogReader,
        session: &str,
        before: Seq,
        detail: Detail,
    ) -> Result<Option<Self>> {
        let Some(mut summary) = SessionSummary::read(log, session)? else { return Ok(None) };
        summary.count(log, Some(before), detail)?;
        Ok(Some(Self { summary, last_event: None, last_seq: before }))
    }

    /// Counts one more row.
    pub(super) fn add(&mut self, head: &RowHead) {
        self.summary.add(head);
        self.last_seq = head.seq;
        if head.is_event() {
            self.last_event = Some((head.kind, head.tool.clone()));
        }
    }

    /// Reads its first prompt, if that was not there yet.
    pub(super) fn read_prompt(&mut self, log: &LogReader) -> Result<()> {
        if self.summary.prompt.is_none()
            && let Some(summary) = SessionSummary::read(log, &self.summary.session)?
        {
            self.summary.prompt = summary.prompt;
            self.summary.project = self.summary.project.take().or(summary.project);
        }
        Ok(())
    }

    pub(super) fn state(&self, now: Time) -> SessionState {
        if matches!(self.last_event, Some((Kind::SessionEnd, _))) {
            SessionState::Ended
        } else if now.since(self.summary.last) > WINDOW {
            SessionState::Idle
        } else {
            SessionState::Live
        }
    }

    pub(super) fn to_json(&self, now: Time) -> Value {
        let mut object = self.summary.to_json(&BusNames::none());
        let (kind, tool) = match &self.last_event {
            Some((kind, tool)) => (Some(kind.as_str()), tool.as_deref()),
            None => (None, None),
        };
        object["state"] = json!(self.state(now).as_str());
        object["last_event"] = json!({"kind": kind, "tool": tool});
        object
    }
}
