//! Hermes' event names and tool names, and what they mean on the bus.
//! The meaning of an event counts, not its name: `on_session_end` fires after every turn and is a turn's end.

use crate::event::{Kind, ToolClass};

/// Event name to kind. A name that ends in `*` stands for a family; the first match counts.
pub(super) const EVENTS: &[(&str, Kind)] = &[
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

/// Tool name to tool class. A name that ends in `*` stands for a family; the first match counts.
pub(super) const TOOLS: &[(&str, ToolClass)] = &[
    ("mcp__*", ToolClass::Mcp),
    ("terminal", ToolClass::Shell),
    ("process", ToolClass::Shell),
    ("read_terminal", ToolClass::Shell),
    ("close_terminal", ToolClass::Shell),
    ("execute_code", ToolClass::Shell),
    ("read_file", ToolClass::FileRead),
    ("vision_analyze", ToolClass::FileRead),
    ("video_analyze", ToolClass::FileRead),
    ("write_file", ToolClass::FileWrite),
    ("patch", ToolClass::FileWrite),
    ("search_files", ToolClass::FileSearch),
    ("web_extract", ToolClass::WebFetch),
    ("web_search", ToolClass::WebSearch),
    ("x_search", ToolClass::WebSearch),
    ("browser_*", ToolClass::Browser),
    ("computer_use", ToolClass::Browser),
    ("delegate_task", ToolClass::Agent),
    ("memory", ToolClass::Memory),
    ("session_search", ToolClass::Memory),
    ("todo", ToolClass::Todo),
    ("kanban_*", ToolClass::Todo),
];
