//! `hookbus sessions`: the recorded sessions, latest first: what was asked, where, when, and how it went.

mod summary;

use anyhow::{Context, Result};
use clap::Args;
use hookbus::event::{Clock, SystemClock, Time};
use hookbus::log::{LogReader, SessionCursor};
use regex::{Regex, RegexBuilder};

pub(crate) use self::summary::{Detail, SessionSummary, is_project};
use crate::args::{open_log, parse_agent, parse_time};
use crate::bus_names::BusNames;
use crate::cli::Exit;
use crate::output::{self, Paint};
use crate::settings::{Format, Settings};

/// How many sessions are looked at in one go.
const PAGE: usize = 20;

/// How many results and decisions are read for the sessions of a page.
const ROWS_PER_PAGE: usize = 8000;

const EXAMPLES: &str = "\
Examples:
  hookbus sessions                        The latest sessions
  hookbus sessions --project shop -n 50   The last 50 in this directory
  hookbus sessions --since 7d --failed    Those of a week with a failure
  hookbus sessions --grep 'deploy'        Those whose prompt is about it";

/// The arguments of `hookbus sessions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only this agent: hermes, gemini, claude or codex
    #[arg(long, value_name = "AGENT", help_heading = "Filters")]
    agent: Option<String>,
    /// Only projects with this directory name, or in this directory
    #[arg(long, value_name = "NAME|DIR", help_heading = "Filters")]
    project: Option<String>,
    /// Only those that were active since then: 2h (ago), today, 2026-11-16
    #[arg(long, value_name = "TIME", help_heading = "Filters")]
    since: Option<String>,
    /// Only those in which something was blocked
    #[arg(long, help_heading = "Filters")]
    blocked: bool,
    /// Only those in which a tool call or a turn failed
    #[arg(long, help_heading = "Filters")]
    failed: bool,
    /// Only those whose prompts or id match this text or regular expression
    #[arg(long, value_name = "TEXT", help_heading = "Filters")]
    grep: Option<String>,
    /// Only the latest N [default: all; at a terminal, one screenful]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Filters")]
    last: Option<usize>,
}

/// Which sessions are listed.
#[derive(Default)]
struct Selection {
    agent: Option<String>,
    project: Option<String>,
    since: Option<Time>,
    blocked: bool,
    failed: bool,
    grep: Option<Regex>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let selection = Selection {
        agent: arguments.agent.as_deref().map(parse_agent).transpose()?,
        project: arguments.project.clone(),
        since: arguments.since.as_deref().map(parse_time).transpose()?,
        blocked: arguments.blocked,
        failed: arguments.failed,
        grep: arguments.grep.as_deref().map(grep_pattern).transpose()?,
    };
    let log = open_log(settings)?;
    let screenful = settings.window.lines.map(|lines| (lines.saturating_sub(3) / 2).max(3));
    let is_screenful = arguments.last.is_none() && format == Format::Text && screenful.is_some();
    let most = arguments.last.or(screenful.filter(|_| is_screenful));
    let names = if log.is_archive() { BusNames::read(&log)? } else { BusNames::none() };
    let (paint, now) = (Paint(settings.colour), SystemClock.now());
    let mut listed = 0;
    let has_more = each_session(&log, &selection, most, |summary| {
        listed += 1;
        match format {
            Format::Json => output::line(summary.to_json(&names).to_string())?,
            Format::Text => {
                let lines = summary.fitted(now, &names, paint, settings.window.columns);
                lines.iter().try_for_each(output::line)?;
            }
        }
        Ok(())
    })?;
    if format == Format::Text && listed == 0 {
        output::line(selection.nothing())?;
    }
    if is_screenful && has_more {
        let more = format!("more with `hookbus sessions -n {}`", listed * 4);
        output::line(paint.dim(&more))?;
    }
    Ok(Exit::Success)
}

/// The latest sessions, those that were active since then, at most `most`; and whether there are more.
pub(crate) fn recent(
    log: &LogReader,
    since: Option<Time>,
    most: usize,
) -> Result<(Vec<SessionSummary>, bool)> {
    let selection = Selection { since, ..Selection::default() };
    let mut found = Vec::new();
    let has_more = each_session(log, &selection, Some(most), |summary| {
        found.push(summary.clone());
        Ok(())
    })?;
    Ok((found, has_more))
}

/// What `--grep` looks for: a regular expression, or the text itself if it is none.
pub(crate) fn grep_pattern(text: &str) -> Result<Regex> {
    let build = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build();
    build(text).or_else(|_| build(&regex::escape(text))).context("cannot search for this text")
}

/// Calls `each` with the selected sessions, latest first, at most `most`. Returns whether there are more.
fn each_session(
    log: &LogReader,
    selection: &Selection,
    most: Option<usize>,
    mut each: impl FnMut(&SessionSummary) -> Result<()>,
) -> Result<bool> {
    let mut cursor = SessionCursor::default();
    let most = most.unwrap_or(usize::MAX);
    let page = most.saturating_add(1).min(PAGE);
    let detail = Detail { rows: ROWS_PER_PAGE / page, prompts: selection.grep.is_some() };
    let mut listed = 0;
    loop {
        let sessions = log.next_sessions(&mut cursor, page)?;
        if sessions.is_empty() {
            return Ok(false);
        }
        for session in sessions {
            if listed == most {
                return Ok(true);
            }
            let Some(mut summary) = SessionSummary::read(log, &session)? else { continue };
            // Sessions come by their last row, so that no later one is in the time range either.
            if selection.since.is_some_and(|since| summary.last < since) {
                return Ok(false);
            }
            if !selection.may_have(&summary) {
                continue;
            }
            summary.count(log, None, detail)?;
            if selection.has(&summary) {
                each(&summary)?;
                listed += 1;
            }
        }
    }
}

impl Selection {
    /// What can be told before its rows are counted.
    fn may_have(&self, summary: &SessionSummary) -> bool {
        let is_agent = self.agent.as_ref().is_none_or(|agent| *agent == summary.agent);
        is_agent && self.project.as_deref().is_none_or(|project| summary.is_in_project(project))
    }

    fn has(&self, summary: &SessionSummary) -> bool {
        let matches = |pattern: &Regex| summary.matches(pattern);
        (!self.blocked || summary.blocked > 0)
            && (!self.failed || summary.failed > 0)
            && self.grep.as_ref().is_none_or(matches)
    }

    fn nothing(&self) -> String {
        let is_filtered = self.project.is_some()
            || self.since.is_some()
            || self.blocked
            || self.failed
            || self.grep.is_some();
        match (&self.agent, is_filtered) {
            (_, true) => "no session matches; `hookbus sessions` lists all".to_owned(),
            (Some(agent), false) => format!("no sessions of {agent} are recorded"),
            (None, false) => {
                "no sessions are recorded yet; `hookbus connect` wires an agent".to_owned()
            }
        }
    }
}
