//! Claude Code. Its events are decoded and recorded; decision hooks do not run for it yet.

mod names;
mod results;

use super::claude_family::ClaudeFamily;

/// The dialect of Claude Code.
pub(super) static CLAUDE: ClaudeFamily = ClaudeFamily {
    events: names::EVENTS,
    tools: names::TOOLS,
    session_variable: Some("CLAUDE_CODE_SESSION_ID"),
    recorded_variables: &[
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_PID",
    ],
    turn_field: "prompt_id",
    tool_outcome: results::tool_outcome,
    usage: results::usage,
};
