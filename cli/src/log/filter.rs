//! The filters that SQL cannot answer: what is in a payload, how a call ended, what a hook said, which project.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use hookbus::config::did_you_mean;
use hookbus::event::{Kind, RecordedDecision};
use hookbus::log::{LogReader, Query, ReadError, Row};
use hookbus::view::EventView;
use regex::Regex;

use super::Arguments;
use crate::sessions::{grep_pattern, is_project};

/// Which of the selected rows are printed.
#[derive(Debug)]
pub(super) struct Filter {
    grep: Option<Regex>,
    blocked: bool,
    failed: bool,
    hook: Option<String>,
    project: Option<String>,
    /// The hooks that were seen, to name one that the user may have meant.
    seen: BTreeSet<String>,
    has_passed: bool,
}

impl Filter {
    pub(super) fn new(arguments: &Arguments) -> Result<Self> {
        Ok(Self {
            grep: arguments.grep.as_deref().map(grep_pattern).transpose()?,
            blocked: arguments.blocked,
            failed: arguments.failed,
            hook: arguments.hook.clone(),
            project: arguments.project.clone(),
            seen: BTreeSet::new(),
            has_passed: false,
        })
    }

    /// The kinds of rows that can pass; empty: any.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        if self.blocked || self.hook.is_some() {
            vec![Kind::Decision]
        } else if self.failed {
            let results = [Kind::ToolAfter, Kind::ToolFailed];
            results.into_iter().chain([Kind::TurnEnd, Kind::TurnFailed, Kind::ModelError]).collect()
        } else {
            Vec::new()
        }
    }

    pub(super) fn passes(&mut self, log: &LogReader, row: &Row) -> Result<bool, ReadError> {
        let passes = self.is_decided(row)
            && (!self.failed || EventView::new(row).has_failed())
            && self.grep.as_ref().is_none_or(|pattern| matches(pattern, row))
            && self.is_in_project(log, row)?;
        self.has_passed |= passes;
        Ok(passes)
    }

    /// Whether the decision in the row is one that is asked for.
    fn is_decided(&mut self, row: &Row) -> bool {
        if !self.blocked && self.hook.is_none() {
            return true;
        }
        let Ok(decision) = RecordedDecision::from_json(row.payload_json()) else { return false };
        let Some(hook) = &self.hook else { return decision.outcome.refuses() };
        let is_by = decision.verdicts.iter().any(|verdict| verdict.is_by(hook));
        self.seen.extend(decision.verdicts.into_iter().map(|verdict| verdict.hook));
        is_by && (!self.blocked || decision.outcome.refuses())
    }

    fn is_in_project(&self, log: &LogReader, row: &Row) -> Result<bool, ReadError> {
        let Some(wanted) = &self.project else { return Ok(true) };
        // A decision is where its event is.
        let event = match row.cause {
            Some(cause) => log.last(&Query { seq: Some(cause), ..Query::default() }, 1)?.pop(),
            None => None,
        };
        let project = EventView::new(event.as_ref().unwrap_or(row)).project();
        Ok(project.is_some_and(|project| is_project(&project, wanted)))
    }

    /// Fails if the hook that is asked for never said anything, and another one has a similar name.
    pub(super) fn check_hook(&self) -> Result<()> {
        let Some(hook) = self.hook.as_ref().filter(|_| !self.has_passed) else { return Ok(()) };
        if self.seen.contains(hook) {
            return Ok(());
        }
        let near = did_you_mean(hook, self.seen.iter().map(String::as_str));
        let hint = near.map_or_else(
            || "; `hookbus hooks list` shows the hooks".to_owned(),
            |near| format!("; did you mean `{near}`?"),
        );
        bail!("no hook `{hook}` has said anything in these rows{hint}")
    }
}

/// Whether the payload, the name or the tool matches. Escapes in JSON are read first.
fn matches(pattern: &Regex, row: &Row) -> bool {
    let payload = String::from_utf8_lossy(&row.payload);
    let subject = || EventView::new(row).subject();
    pattern.is_match(&payload) || pattern.is_match(&row.name) || pattern.is_match(&subject())
}
