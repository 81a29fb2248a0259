//! Claude Code's event names and tool names, and what they mean on the bus.

use crate::event::{Kind, ToolClass};

/// Event name to kind. A name that ends in `*` stands for a family; the first match counts.
pub(super) const EVENTS: &[(&str, Kind)] = &[
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Setup", Kind::Other),
    ("UserPromptSubmit", Kind::TurnStart),
    ("UserPromptExpansion", Kind::Command),
    ("PreToolUse", Kind::ToolBefore),
    ("PostToolUse", Kind::ToolAfter),
    ("PostToolUseFailure", Kind::ToolFailed),
    ("PostToolBatch", Kind::Other), // repeats the PostToolUse of each call
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

/// Tool name to tool class. A name that ends in `*` stands for a family; the first match counts.
pub(super) const TOOLS: &[(&str, ToolClass)] = &[
    ("mcp__*", ToolClass::Mcp),
    ("ListMcpResourcesTool", ToolClass::Mcp),
    ("ReadMcpResourceTool", ToolClass::Mcp),
    ("Bash", ToolClass::Shell),
    ("BashOutput", ToolClass::Shell),
    ("KillShell", ToolClass::Shell),
    ("PowerShell", ToolClass::Shell),
    ("Read", ToolClass::FileRead),
    ("Write", ToolClass::FileWrite),
    ("Edit", ToolClass::FileWrite),
    ("MultiEdit", ToolClass::FileWrite),
    ("NotebookEdit", ToolClass::FileWrite),
    ("Glob", ToolClass::FileSearch),
    ("Grep", ToolClass::FileSearch),
    ("LS", ToolClass::FileSearch),
    ("WebFetch", ToolClass::WebFetch),
    ("WebSearch", ToolClass::WebSearch),
    ("Agent", ToolClass::Agent),
    ("Task", ToolClass::Agent),
    ("TodoWrite", ToolClass::Todo),
    ("TaskCreate", ToolClass::Todo),
    ("TaskUpdate", ToolClass::Todo),
];
