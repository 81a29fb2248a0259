//! Sums by hour and scope while rows are read; [`super::write`] adds them to the tables. Only whole numbers, so that a
//! sum does not depend on how rows were grouped into transactions.

use std::collections::HashMap;

use hookbus::event::VerdictFigure;

/// An hour, counted from 1970 in UTC.
pub(super) const fn hour_of(micros: i64) -> i64 {
    micros.div_euclid(3_600_000_000)
}

/// Counters of one row of a figures table, in the order of its columns.
pub(super) type Counters<const N: usize> = [i64; N];

/// Columns of `f_activity`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Activity {
    Events,
    Sessions,
    Turns,
    ModelRequests,
    ToolCalls,
    Failed,
    Denied,
    Decisions,
    Blocked,
    Asked,
    Rewritten,
    InputTokens,
    OutputTokens,
    CacheReadTokens,
    CacheWriteTokens,
    ReasoningTokens,
    Cost,
}

/// The names of these columns.
pub(super) const ACTIVITY: [&str; 17] = [
    "events",
    "sessions",
    "turns",
    "model_requests",
    "tool_calls",
    "failed",
    "denied",
    "decisions",
    "blocked",
    "asked",
    "rewritten",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost",
];

/// Columns of `f_tools`.
#[derive(Debug, Clone, Copy)]
pub(super) enum ToolFigure {
    Calls,
    Failed,
    Denied,
    Unknown,
    Blocked,
    Asked,
    Timed,
    Took,
}

/// The names of these columns.
pub(super) const TOOLS: [&str; 8] =
    ["calls", "failed", "denied", "unknown", "blocked", "asked", "timed", "took"];

/// Columns of `f_hooks`.
#[derive(Debug, Clone, Copy)]
pub(super) enum HookFigure {
    Calls,
    Blocked,
    Asked,
    Rewritten,
    Context,
    Allowed,
    Failed,
    Unapproved,
    Timed,
    Took,
}

impl HookFigure {
    /// What a verdict counts as.
    pub(super) const fn of(figure: VerdictFigure) -> Option<Self> {
        match figure {
            VerdictFigure::Unapproved => Some(Self::Unapproved),
            VerdictFigure::Failed => Some(Self::Failed),
            VerdictFigure::Blocked => Some(Self::Blocked),
            VerdictFigure::Asked => Some(Self::Asked),
            VerdictFigure::Rewritten => Some(Self::Rewritten),
            VerdictFigure::Context => Some(Self::Context),
            VerdictFigure::Allowed => Some(Self::Allowed),
            VerdictFigure::Nothing => None,
        }
    }
}

/// The names of these columns.
pub(super) const HOOKS: [&str; 10] = [
    "calls",
    "blocked",
    "asked",
    "rewritten",
    "context",
    "allowed",
    "failed",
    "unapproved",
    "timed",
    "took",
];

/// The upper bounds of the latency histogram, in microseconds.
const BOUNDS: [i64; 18] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// The bucket that a span belongs to.
pub(super) fn bucket_of(micros: i64) -> i64 {
    BOUNDS.into_iter().find(|bound| micros <= *bound).unwrap_or(i64::MAX)
}

/// Where figures are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) hour: i64,
    pub(super) scope: i64,
}

/// A tool in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ToolCell {
    pub(super) cell: Cell,
    pub(super) tool: String,
    pub(super) tool_class: String,
}

/// A hook in a cell; shadow verdicts are counted apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HookCell {
    pub(super) cell: Cell,
    pub(super) hook: String,
    pub(super) shadow: bool,
}

/// A file or a host of a session in a cell; `access` is empty for a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TouchedCell {
    pub(super) cell: Cell,
    pub(super) session: String,
    pub(super) what: String,
    pub(super) access: &'static str,
}

/// What was counted since the last write.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) activity: HashMap<Cell, Counters<{ ACTIVITY.len() }>>,
    pub(super) tools: HashMap<ToolCell, Counters<{ TOOLS.len() }>>,
    pub(super) hooks: HashMap<HookCell, Counters<{ HOOKS.len() }>>,
    pub(super) latency: HashMap<(HookCell, i64), i64>,
    pub(super) files: HashMap<TouchedCell, i64>,
    pub(super) hosts: HashMap<TouchedCell, i64>,
}

/// Adds to a sum. What no honest agent reports must not stop the count.
pub(super) const fn add(sum: &mut i64, more: i64) {
    *sum = sum.saturating_add(more);
}

impl Figures {
    /// Adds to figures of the activity.
    pub(super) fn activity(&mut self, cell: Cell, figures: &[(Activity, i64)]) {
        let counters = self.activity.entry(cell).or_default();
        for (figure, count) in figures {
            add(&mut counters[*figure as usize], *count);
        }
    }

    /// Adds to figures of a tool.
    pub(super) fn tool(
        &mut self,
        cell: Cell,
        (tool, tool_class): (&str, &str),
        figures: &[(ToolFigure, i64)],
    ) {
        let key = ToolCell { cell, tool: tool.to_owned(), tool_class: tool_class.to_owned() };
        let counters = self.tools.entry(key).or_default();
        for (figure, count) in figures {
            add(&mut counters[*figure as usize], *count);
        }
    }

    /// Adds a verdict of a hook that took `took` microseconds.
    pub(super) fn hook(&mut self, key: HookCell, figure: Option<HookFigure>, took: Option<i64>) {
        let counters = self.hooks.entry(key.clone()).or_default();
        counters[HookFigure::Calls as usize] += 1;
        if let Some(figure) = figure {
            counters[figure as usize] += 1;
        }
        if let Some(took) = took {
            counters[HookFigure::Timed as usize] += 1;
            add(&mut counters[HookFigure::Took as usize], took);
            *self.latency.entry((key, bucket_of(took))).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_in_the_first_bucket_that_is_not_shorter() {
        for (micros, bound) in
            [(0, 100), (100, 100), (101, 200), (60_000_000, 60_000_000), (60_000_001, i64::MAX)]
        {
            assert_eq!(bucket_of(micros), bound, "{micros}");
        }
    }

    #[test]
    fn every_figure_has_a_column_of_its_own() {
        assert_eq!(ACTIVITY[Activity::Cost as usize], "cost");
        assert_eq!(TOOLS[ToolFigure::Took as usize], "took");
        assert_eq!(HOOKS[HookFigure::Took as usize], "took");
    }
}
