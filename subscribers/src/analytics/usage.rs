//! Tokens and cost of one request to a model, or of a sub-agent with all of its requests.

use hookbus::dialect::{ReportedUsage, Usage, UsageScope};

use super::figures::{Activity, Cell, hour_of};

/// A row of `p_usage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsageRow {
    pub(super) bus: i64,
    pub(super) seq: i64,
    pub(super) scope: i64,
    pub(super) session: String,
    pub(super) turn: i64,
    pub(super) time: i64,
    pub(super) covers: String,
    pub(super) numbers: Numbers,
}

/// Tokens, and the cost in billionths of a US dollar. What was not reported is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) input: Option<i64>,
    pub(super) output: Option<i64>,
    pub(super) cache_read: Option<i64>,
    pub(super) cache_write: Option<i64>,
    pub(super) reasoning: Option<i64>,
    pub(super) total: Option<i64>,
    pub(super) cost: Option<i64>,
}

/// More tokens than any request has: a larger number is a mistake or a lie, and must not spoil a sum.
const MOST_TOKENS: u64 = 1 << 40;

/// More than any request costs, in US dollars.
const MOST_COST: f64 = 1e6;

impl Numbers {
    pub(super) fn of(usage: &Usage) -> Self {
        let tokens = |count: Option<u64>| {
            count.filter(|count| *count < MOST_TOKENS).and_then(|count| i64::try_from(count).ok())
        };
        let cost = usage.cost_usd.filter(|cost| (0.0..MOST_COST).contains(cost));
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1e15")]
        let cost = cost.map(|cost| (cost * 1e9).round() as i64);
        Self {
            input: tokens(usage.input_tokens),
            output: tokens(usage.output_tokens),
            cache_read: tokens(usage.cache_read_tokens),
            cache_write: tokens(usage.cache_write_tokens),
            reasoning: tokens(usage.reasoning_tokens),
            total: tokens(usage.total_tokens),
            cost,
        }
    }

    /// What these are more than `earlier`, for the figures.
    pub(super) fn beyond(&self, earlier: &Self) -> [(Activity, i64); 6] {
        let more = |now: Option<i64>, then: Option<i64>| now.unwrap_or(0) - then.unwrap_or(0);
        [
            (Activity::InputTokens, more(self.input, earlier.input)),
            (Activity::OutputTokens, more(self.output, earlier.output)),
            (Activity::CacheReadTokens, more(self.cache_read, earlier.cache_read)),
            (Activity::CacheWriteTokens, more(self.cache_write, earlier.cache_write)),
            (Activity::ReasoningTokens, more(self.reasoning, earlier.reasoning)),
            (Activity::Cost, more(self.cost, earlier.cost)),
        ]
    }
}

impl UsageRow {
    /// Where it is counted.
    pub(super) const fn cell(&self) -> Cell {
        Cell { hour: hour_of(self.time), scope: self.scope }
    }
}

/// What reported numbers cover.
pub(super) const fn covers(usage: &ReportedUsage) -> &'static str {
    match usage.scope {
        UsageScope::Request | UsageScope::SoFar => "request",
        UsageScope::Subagent => "subagent",
    }
}
