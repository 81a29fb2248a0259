//! The one table: each agent's event names to kinds, each agent's tool names to tool classes.
//!
//! Mapped by meaning, not by sound: Hermes' `on_session_end` fires after every turn and is a
//! turn's end; Gemini's `AfterModel` comes once per streamed chunk. A name that is not here is
//! still an event, of kind `other`.

use super::{Agent, Kind, ToolClass};

/// The kind of the event that `agent` calls `name`.
pub fn kind_of(agent: Agent, name: &str) -> Kind {
    table(agent)
        .iter()
        .find_map(|(pattern, kind)| fits(pattern, name).then_some(*kind))
        .unwrap_or(Kind::Other)
}

/// Whether `agent` has an event of exactly this name.
pub fn is_event_of(agent: Agent, name: &str) -> bool {
    table(agent).iter().any(|(pattern, _)| !pattern.ends_with('*') && *pattern == name)
}

/// Every event name in the table of `agent`; a name that ends in `*` stands for a family.
pub fn event_names(agent: Agent) -> impl Iterator<Item = &'static str> {
    table(agent).iter().map(|(name, _)| *name)
}

/// What the tool that `agent` calls `name` does.
pub fn tool_class_of(agent: Agent, name: &str) -> ToolClass {
    let named = TOOLS
        .iter()
        .find(|(agents, pattern, _)| agents.contains(&agent) && fits(pattern, name))
        .map(|(_, _, class)| *class);
    named.unwrap_or(ToolClass::Other)
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

const fn table(agent: Agent) -> &'static [(&'static str, Kind)] {
    match agent {
        Agent::Hermes => HERMES,
        Agent::Gemini => GEMINI,
        Agent::Claude => CLAUDE,
        Agent::Codex => CODEX,
    }
}

const HERMES: &[(&str, Kind)] = &[
    // Plugin and shell hooks of 0.19.
    ("pre_tool_call", Kind::ToolBefore),
    ("post_tool_call", Kind::ToolAfter), // also for blocked, cancelled and failed calls
    ("transform_terminal_output", Kind::ToolOutput),
    ("transform_tool_result", Kind::ToolOutput),
    ("pre_llm_call", Kind::TurnStart), // once per user turn
    ("post_llm_call", Kind::TurnAnswer),
    ("transform_llm_output", Kind::TurnOutput),
    ("pre_verify", Kind::TurnVerify),
    ("pre_api_request", Kind::ModelBefore),
    ("post_api_request", Kind::ModelAfter),
    ("api_request_error", Kind::ModelError),
    ("on_session_start", Kind::SessionStart),
    ("on_session_end", Kind::TurnEnd), // at the end of every turn
    ("on_session_finalize", Kind::SessionEnd),
    ("on_session_reset", Kind::SessionReset),
    ("subagent_start", Kind::SubagentStart),
    ("subagent_stop", Kind::SubagentStop),
    ("pre_gateway_dispatch", Kind::MessageIn),
    ("pre_approval_request", Kind::ApprovalRequest),
    ("post_approval_response", Kind::ApprovalAnswer),
    ("kanban_task_claimed", Kind::TaskClaimed),
    ("kanban_task_completed", Kind::TaskCompleted),
    ("kanban_task_blocked", Kind::TaskBlocked),
    // Gateway hooks.
    ("gateway:startup", Kind::GatewayStart),
    ("session:start", Kind::SessionStart),
    ("session:end", Kind::SessionEnd),
    ("session:reset", Kind::SessionReset),
    ("session:compress", Kind::CompactAfter), // after the fact
    ("agent:start", Kind::AgentStart),
    ("agent:step", Kind::AgentStep),
    ("agent:end", Kind::AgentEnd),
    ("command:*", Kind::Command),
    // Newer than 0.19.
    ("on_stream_start", Kind::ModelChunk),
    ("on_stream_delta", Kind::ModelChunk),
    ("on_stream_end", Kind::ModelChunk),
    ("on_interim_message", Kind::TurnOutput),
    ("transform_api_error_classification", Kind::ModelError),
    ("on_skill_lifecycle", Kind::Other),
    ("agent_loop_stopped", Kind::TurnFailed),
    ("gateway_platform_event", Kind::MessageIn),
    ("pre_command", Kind::Command),
    ("pre_transcription", Kind::MessageIn),
    ("pre_tts_synthesis", Kind::TurnOutput),
    ("pre_auxiliary_call", Kind::ModelBefore),
    ("post_auxiliary_call", Kind::ModelAfter),
    ("on_room_member_activity", Kind::Notification),
    ("on_kanban_*", Kind::TaskUpdated),
    ("reaction:added", Kind::MessageIn),
    ("reaction:removed", Kind::MessageIn),
];

const GEMINI: &[(&str, Kind)] = &[
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("BeforeAgent", Kind::TurnStart), // once per prompt
    ("AfterAgent", Kind::TurnEnd),
    ("BeforeModel", Kind::ModelBefore),
    ("BeforeToolSelection", Kind::ToolSelect),
    ("AfterModel", Kind::ModelChunk), // once per streamed chunk
    ("BeforeTool", Kind::ToolBefore),
    ("AfterTool", Kind::ToolAfter),
    ("Notification", Kind::Notification),
    ("PreCompress", Kind::CompactBefore), // before every model request, whether or not it compresses
];

const CLAUDE: &[(&str, Kind)] = &[
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Setup", Kind::Other),
    ("UserPromptSubmit", Kind::TurnStart),
    ("UserPromptExpansion", Kind::Command),
    ("PreToolUse", Kind::ToolBefore),
    ("PostToolUse", Kind::ToolAfter),
    ("PostToolUseFailure", Kind::ToolFailed),
    ("PostToolBatch", Kind::Other), // repeats what PostToolUse said of each call
    ("PermissionRequest", Kind::ApprovalRequest),
    ("PermissionDenied", Kind::ApprovalAnswer),
    ("Stop", Kind::TurnEnd),
    ("StopFailure", Kind::TurnFailed),
    ("SubagentStart", Kind::SubagentStart),
    ("SubagentStop", Kind::SubagentStop),
    ("PreCompact", Kind::CompactBefore),
    ("PostCompact", Kind::CompactAfter),
    ("PreModelSwitch", Kind::Other),
    ("PostModelSwitch", Kind::Other),
    ("Notification", Kind::Notification),
    ("Elicitation", Kind::ApprovalRequest),
    ("ElicitationResult", Kind::ApprovalAnswer),
    ("ConfigChange", Kind::Other),
    ("InstructionsLoaded", Kind::Other),
    ("CwdChanged", Kind::Other),
    ("FileChanged", Kind::Other),
    ("DirectoryAdded", Kind::Other),
    ("WorktreeCreate", Kind::Other),
    ("WorktreeRemove", Kind::Other),
    ("TaskCreated", Kind::TaskCreated),
    ("TaskCompleted", Kind::TaskCompleted),
    ("TeammateIdle", Kind::Notification),
    ("MessageDisplay", Kind::ModelChunk), // once per flushed piece of text
];

const CODEX: &[(&str, Kind)] = &[
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("UserPromptSubmit", Kind::TurnStart),
    ("PreToolUse", Kind::ToolBefore),
    ("PermissionRequest", Kind::ApprovalRequest),
    ("PostToolUse", Kind::ToolAfter),
    ("PreCompact", Kind::CompactBefore),
    ("PostCompact", Kind::CompactAfter),
    ("SubagentStart", Kind::SubagentStart),
    ("SubagentStop", Kind::SubagentStop),
    ("Stop", Kind::TurnEnd),
];

const H: &[Agent] = &[Agent::Hermes];
const G: &[Agent] = &[Agent::Gemini];
const C: &[Agent] = &[Agent::Claude];
const X: &[Agent] = &[Agent::Codex];
const CX: &[Agent] = &[Agent::Claude, Agent::Codex];
const HCX: &[Agent] = &[Agent::Hermes, Agent::Claude, Agent::Codex];

/// The first row that fits decides.
const TOOLS: &[(&[Agent], &str, ToolClass)] = &[
    (HCX, "mcp__*", ToolClass::Mcp),
    (G, "mcp_*", ToolClass::Mcp),
    (C, "ListMcpResourcesTool", ToolClass::Mcp),
    (C, "ReadMcpResourceTool", ToolClass::Mcp),
    (G, "list_mcp_resources", ToolClass::Mcp),
    (G, "read_mcp_resource", ToolClass::Mcp),
    // shell: whatever runs commands or code
    (H, "terminal", ToolClass::Shell),
    (H, "process", ToolClass::Shell),
    (H, "read_terminal", ToolClass::Shell),
    (H, "close_terminal", ToolClass::Shell),
    (H, "execute_code", ToolClass::Shell),
    (G, "run_shell_command", ToolClass::Shell),
    (CX, "Bash", ToolClass::Shell),
    (C, "BashOutput", ToolClass::Shell),
    (C, "KillShell", ToolClass::Shell),
    (C, "PowerShell", ToolClass::Shell),
    (X, "shell", ToolClass::Shell),
    (X, "exec_command", ToolClass::Shell),
    (X, "write_stdin", ToolClass::Shell),
    // files
    (H, "read_file", ToolClass::FileRead),
    (H, "vision_analyze", ToolClass::FileRead),
    (H, "video_analyze", ToolClass::FileRead),
    (G, "read_file", ToolClass::FileRead),
    (G, "read_many_files", ToolClass::FileRead),
    (C, "Read", ToolClass::FileRead),
    (X, "view_image", ToolClass::FileRead),
    (H, "write_file", ToolClass::FileWrite),
    (H, "patch", ToolClass::FileWrite),
    (G, "write_file", ToolClass::FileWrite),
    (G, "replace", ToolClass::FileWrite),
    (C, "Write", ToolClass::FileWrite),
    (C, "Edit", ToolClass::FileWrite),
    (C, "MultiEdit", ToolClass::FileWrite),
    (C, "NotebookEdit", ToolClass::FileWrite),
    (X, "apply_patch", ToolClass::FileWrite),
    (H, "search_files", ToolClass::FileSearch),
    (G, "list_directory", ToolClass::FileSearch),
    (G, "glob", ToolClass::FileSearch),
    (G, "grep_search", ToolClass::FileSearch),
    (C, "Glob", ToolClass::FileSearch),
    (C, "Grep", ToolClass::FileSearch),
    (C, "LS", ToolClass::FileSearch),
    // the web
    (H, "web_extract", ToolClass::WebFetch),
    (G, "web_fetch", ToolClass::WebFetch),
    (C, "WebFetch", ToolClass::WebFetch),
    (H, "web_search", ToolClass::WebSearch),
    (H, "x_search", ToolClass::WebSearch),
    (G, "google_web_search", ToolClass::WebSearch),
    (C, "WebSearch", ToolClass::WebSearch),
    (X, "web_search", ToolClass::WebSearch),
    (H, "browser_*", ToolClass::Browser),
    (H, "computer_use", ToolClass::Browser),
    (G, "take_snapshot", ToolClass::Browser),
    // other agents
    (H, "delegate_task", ToolClass::Agent),
    (G, "invoke_agent", ToolClass::Agent),
    (C, "Agent", ToolClass::Agent),
    (C, "Task", ToolClass::Agent),
    (X, "spawn_agent", ToolClass::Agent),
    (X, "multi_agent_*", ToolClass::Agent),
    // memory and lists
    (H, "memory", ToolClass::Memory),
    (H, "session_search", ToolClass::Memory),
    (G, "save_memory", ToolClass::Memory),
    (H, "todo", ToolClass::Todo),
    (H, "kanban_*", ToolClass::Todo),
    (G, "write_todos", ToolClass::Todo),
    (G, "tracker_*", ToolClass::Todo),
    (C, "TodoWrite", ToolClass::Todo),
    (C, "TaskCreate", ToolClass::Todo),
    (C, "TaskUpdate", ToolClass::Todo),
    (X, "update_plan", ToolClass::Todo),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_names_mislead_meaning_wins() {
        assert_eq!(kind_of(Agent::Hermes, "pre_llm_call"), Kind::TurnStart);
        assert_eq!(kind_of(Agent::Hermes, "pre_api_request"), Kind::ModelBefore);
        assert_eq!(kind_of(Agent::Hermes, "on_session_end"), Kind::TurnEnd);
        assert_eq!(kind_of(Agent::Hermes, "on_session_finalize"), Kind::SessionEnd);
        assert_eq!(kind_of(Agent::Gemini, "AfterModel"), Kind::ModelChunk);
        assert_eq!(kind_of(Agent::Hermes, "command:deploy"), Kind::Command);
    }

    #[test]
    fn a_name_nobody_knows_is_still_an_event() {
        assert_eq!(kind_of(Agent::Gemini, "pre_tool_call"), Kind::Other);
        assert_eq!(kind_of(Agent::Hermes, ""), Kind::Other);
    }

    #[test]
    fn one_class_covers_the_shells_of_all_agents() {
        for (agent, name) in [
            (Agent::Hermes, "terminal"),
            (Agent::Gemini, "run_shell_command"),
            (Agent::Claude, "Bash"),
            (Agent::Codex, "Bash"),
        ] {
            assert_eq!(tool_class_of(agent, name), ToolClass::Shell, "{agent} {name}");
        }
        assert_eq!(tool_class_of(Agent::Gemini, "mcp_echo_shout"), ToolClass::Mcp);
        assert_eq!(tool_class_of(Agent::Hermes, "mcp__lab__echo"), ToolClass::Mcp);
    }

    #[test]
    fn the_agents_have_the_events_their_fact_sheets_count() {
        let shell_hooks = HERMES.iter().take_while(|(name, _)| !name.contains(':')).count();
        assert_eq!(shell_hooks, 23);
        assert_eq!(GEMINI.len(), 11);
        assert_eq!(CLAUDE.len(), 33);
        assert_eq!(CODEX.len(), 11);
    }
}
