//! A sub-agent: what it had to do, how it ended, and what happened inside of it. It shares the session of its parent (Claude,
//! Codex) or has one of its own (Hermes), which the caller reads and attaches.

use std::time::Duration;

use super::SessionView;
use crate::dialect::SubagentReport;
use crate::event::{Seq, Time};

/// A sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    /// Its id inside of the session.
    pub id: Option<String>,
    /// Its own session, if it has one.
    pub session: Option<String>,
    /// Which type of agent it is.
    pub role: Option<String>,
    /// What it has to do.
    pub goal: Option<String>,
    /// Whether its start is recorded.
    pub is_start_recorded: bool,
    /// The row of its end, if that is recorded.
    pub ended: Option<(Seq, Time)>,
    /// How it ended, in the agent's word.
    pub status: Option<String>,
    /// What it answered.
    pub answer: Option<String>,
    /// How long it took, if the agent says so.
    pub took: Option<Duration>,
    /// What happened inside of it, as far as that is recorded.
    pub inside: Option<SessionView>,
}

impl Subagent {
    pub(super) fn new(report: SubagentReport<'_>) -> Self {
        let mut subagent = Self {
            id: None,
            session: None,
            role: None,
            goal: None,
            is_start_recorded: false,
            ended: None,
            status: None,
            answer: None,
            took: None,
            inside: None,
        };
        subagent.learn(report);
        subagent
    }

    /// Takes over what is new in a report.
    pub(super) fn learn(&mut self, report: SubagentReport<'_>) {
        let take = |own: &mut Option<String>, new: Option<&str>| {
            if let Some(new) = new.filter(|_| own.is_none()) {
                *own = Some(new.to_owned());
            }
        };
        take(&mut self.id, report.id);
        take(&mut self.session, report.session);
        take(&mut self.role, report.role);
        take(&mut self.goal, report.goal);
        take(&mut self.status, report.status);
        take(&mut self.answer, report.answer);
        self.took = self.took.or(report.took);
    }
}
