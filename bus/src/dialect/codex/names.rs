//! Codex' event names and tool names, and what they mean on the bus.

use crate::event::{Kind, ToolClass};

/// Event name to kind. A name that ends in `*` stands for a family; the first match counts.
pub(super) const EVENTS: &[(&str, Kind)] = &[
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

/// Tool name to tool class. A name that ends in `*` stands for a family; the first match counts.
pub(super) const TOOLS: &[(&str, ToolClass)] = &[
    ("mcp__*", ToolClass::Mcp),
    ("Bash", ToolClass::Shell),
    ("shell", ToolClass::Shell),
    ("exec_command", ToolClass::Shell),
    ("write_stdin", ToolClass::Shell),
    ("view_image", ToolClass::FileRead),
    ("apply_patch", ToolClass::FileWrite),
    ("web_search", ToolClass::WebSearch),
    ("spawn_agent", ToolClass::Agent),
    ("multi_agent_*", ToolClass::Agent),
    ("update_plan", ToolClass::Todo),
];
