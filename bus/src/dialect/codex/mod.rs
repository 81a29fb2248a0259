//! Codex CLI. Its events are decoded and recorded; decision hooks do not run for it yet.

mod names;
mod results;

use super::claude_family::ClaudeFamily;

/// The dialect of Codex.
pub(super) static CODEX: ClaudeFamily = ClaudeFamily {
    events: names::EVENTS,
    tools: names::TOOLS,
    session_variable: None,
    recorded_variables: &["CODEX_HOME"],
    turn_field: "turn_id",
    tool_outcome: results::tool_outcome,
    usage: results::usage,
};
