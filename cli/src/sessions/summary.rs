//! What one line of the list says about a session. Only its first rows and its latest results and decisions are read, so
//! that the list takes no longer in a large log.

use std::path::Path;

use anyhow::Result;
use hookbus::event::{BusId, Kind, Seq, Time};
use hookbus::log::{LogReader, Query, Row, RowCounts, RowHead, SessionBounds};
use hookbus::view::{DecisionView, EventView};
use regex::Regex;
use serde_json::{Value, json};

use crate::args::short_session;
use crate::bus_names::BusNames;
use crate::output::{Paint, counted, fit, format_duration, sanitize, shorten, when, width};

/// How many rows of a session are counted. A longer one has "more than" so many.
const MOST_ROWS: usize = 20_000;

/// How many prompts are searched.
const MOST_PROMPTS: usize = 1000;

/// How much is read of each session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// How many results and decisions.
    pub(crate) rows: usize,
    /// Whether all of its prompts.
    pub(crate) prompts: bool,
}

/// A session in the list.
#[derive(Debug, Clone)]
pub(crate) struct SessionSummary {
    pub(crate) session: String,
    pub(crate) agent: String,
    pub(crate) project: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) first: Time,
    pub(crate) last: Time,
    /// The bus that recorded its first row, if the log is an archive.
    pub(crate) bus: Option<BusId>,
    pub(crate) rows: RowCounts,
    pub(crate) blocked: usize,
    pub(crate) failed: usize,
    /// Whether there may be more of them than were read.
    pub(crate) is_at_least: bool,
    prompts: Vec<String>,
}

impl SessionSummary {
    /// Where it begins and ends; none if it has no event.
    pub(crate) fn read(log: &LogReader, session: &str) -> Result<Option<Self>> {
        let Some(SessionBounds { first, prompt, last }) = log.session_bounds(session)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            project: EventView::new(&first).project(),
            prompt: prompt.and_then(|row| EventView::new(&row).prompt()),
            bus: first.origin.map(|origin| origin.bus),
            last,
            ..Self::empty(session, &first.agent, first.at)
        }))
    }

    /// A session of which nothing is known but when it began.
    pub(crate) fn empty(session: &str, agent: &str, first: Time) -> Self {
        Self {
            session: session.to_owned(),
            agent: agent.to_owned(),
            project: None,
            prompt: None,
            first,
            last: first,
            bus: None,
            rows: RowCounts::default(),
            blocked: 0,
            failed: 0,
            is_at_least: false,
            prompts: Vec::new(),
        }
    }

    /// Counts its rows, blocks and failures before `before`, or all of them.
    pub(crate) fn count(
        &mut self,
        log: &LogReader,
        before: Option<Seq>,
        detail: Detail,
    ) -> Result<()> {
        self.rows = log.session_counts(&self.session, before, MOST_ROWS)?;
        let endings = log.session_endings(&self.session, before, detail.rows)?;
        self.is_at_least = endings.len() == detail.rows;
        for row in &endings {
            self.add_ending(row);
        }
        if detail.prompts {
            let kinds = vec![Kind::TurnStart, Kind::AgentStart];
            let query = Query { session: Some(self.session.clone()), kinds, ..Query::default() };
            let rows = log.before(&query, None, MOST_PROMPTS)?;
            self.prompts = rows.iter().filter_map(|row| EventView::new(row).prompt()).collect();
        }
        Ok(())
    }

    /// Counts one more row.
    pub(crate) fn add(&mut self, head: &RowHead) {
        if head.is_event() {
            self.rows.events += 1;
            self.last = self.last.max(head.at);
        } else if head.kind == Kind::Decision {
            self.rows.decisions += 1;
        }
    }

    /// Counts what a row says about how something ended.
    pub(crate) fn add_ending(&mut self, row: &Row) {
        if row.kind == Kind::Decision.as_str() {
            self.blocked += usize::from(DecisionView::new(row, None).refuses());
        } else {
            self.failed += usize::from(EventView::new(row).has_failed());
        }
    }

    /// Whether its project has this directory name, or is in this directory.
    pub(crate) fn is_in_project(&self, wanted: &str) -> bool {
        let Some(project) = self.project.as_deref() else { return false };
        is_project(project, wanted)
    }

    /// Whether its id or one of its prompts matches.
    pub(crate) fn matches(&self, pattern: &Regex) -> bool {
        let texts = self.prompts.iter().chain(&self.prompt).chain([&self.session]);
        texts.into_iter().any(|text| pattern.is_match(text))
    }

    /// The name of its project's directory.
    pub(crate) fn project_name(&self) -> Option<String> {
        let path = Path::new(self.project.as_deref()?);
        Some(path.file_name()?.to_string_lossy().into_owned())
    }

    pub(crate) fn to_json(&self, names: &BusNames) -> Value {
        let mut object = json!({
            "session": self.session, "short": short_session(&self.session), "agent": self.agent,
            "project": self.project, "prompt": self.prompt,
            "first": self.first.to_string(), "last": self.last.to_string(),
            "events": self.rows.events, "decisions": self.rows.decisions,
            "blocked": self.blocked, "failed": self.failed,
            "at_least": self.rows.has_more || self.is_at_least,
        });
        if let Some(bus) = self.bus {
            object["bus"] = json!(bus.to_string());
            object["bus_name"] = json!(names.name(bus));
        }
        object
    }

    /// Two lines that fit the window: what was asked, and the rest.
    pub(crate) fn fitted(
        &self,
        now: Time,
        names: &BusNames,
        paint: Paint,
        columns: usize,
    ) -> [String; 2] {
        let [title, rest] = self.lines(now, names, paint);
        let plain = || fit(&self.lines(now, names, Paint(false))[1], columns);
        let rest = if width(&rest) > columns { plain() } else { rest };
        [paint.bold(&fit(&title, columns)), rest]
    }

    /// Two lines: what was asked, and the rest.
    pub(crate) fn lines(&self, now: Time, names: &BusNames, paint: Paint) -> [String; 2] {
        let title = match self.prompt.as_deref().map(|prompt| shorten(prompt, 1000)) {
            Some(prompt) if !prompt.is_empty() => prompt,
            Some(_) | None => "(no prompt)".to_owned(),
        };
        let short = sanitize(&short_session(&self.session));
        let short = if short.is_empty() { "(no session)" } else { &short };
        let project =
            self.project_name().map_or_else(String::new, |it| format!(" in {}", shorten(&it, 24)));
        let more = if self.rows.has_more { "more than " } else { "" };
        let events = counted(u64::try_from(self.rows.events).unwrap_or(u64::MAX), "event");
        let mut rest = format!(
            "  {}  {}{project}, {}, {}, {more}{events}",
            paint.notable(short),
            sanitize(&self.agent),
            when(self.first, now),
            format_duration(self.last.since(self.first)),
        );
        let least = if self.is_at_least { "at least " } else { "" };
        for (number, what) in [(self.blocked, "blocked"), (self.failed, "failed")] {
            if number > 0 {
                rest.push_str(", ");
                rest.push_str(&paint.bad(&format!("{least}{number} {what}")));
            }
        }
        if let Some(bus) = self.bus {
            rest.push_str(", on ");
            rest.push_str(&names.describe(bus));
        }
        [title, rest]
    }
}

/// Whether a project's directory has this name, or is in this directory.
pub(crate) fn is_project(project: &str, wanted: &str) -> bool {
    let path = Path::new(project);
    let is_name = path.file_name().is_some_and(|name| name.to_string_lossy() == wanted);
    is_name || (wanted.contains('/') && path.starts_with(wanted.trim_end_matches('/')))
}
