//! Gemini's event names and tool names, and what they mean on the bus.
//! The meaning of an event counts, not its name: `AfterModel` fires once per streamed chunk.

use crate::event::{Kind, ToolClass};

/// Event name to kind. A name that ends in `*` stands for a family; the first match counts.
pub(super) const EVENTS: &[(&str, Kind)] = &[
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

/// Tool name to tool class. A name that ends in `*` stands for a family; the first match counts.
pub(super) const TOOLS: &[(&str, ToolClass)] = &[
    ("mcp_*", ToolClass::Mcp),
    ("list_mcp_resources", ToolClass::Mcp),
    ("read_mcp_resource", ToolClass::Mcp),
    ("run_shell_command", ToolClass::Shell),
    ("read_file", ToolClass::FileRead),
    ("read_many_files", ToolClass::FileRead),
    ("write_file", ToolClass::FileWrite),
    ("replace", ToolClass::FileWrite),
    ("list_directory", ToolClass::FileSearch),
    ("glob", ToolClass::FileSearch),
    ("grep_search", ToolClass::FileSearch),
    ("web_fetch", ToolClass::WebFetch),
    ("google_web_search", ToolClass::WebSearch),
    ("take_snapshot", ToolClass::Browser),
    ("invoke_agent", ToolClass::Agent),
    ("save_memory", ToolClass::Memory),
    ("write_todos", ToolClass::Todo),
    ("tracker_*", ToolClass::Todo),
];
