//! Tool classes: our names for what a tool does, the same for all agents. Each dialect's `names.rs` maps the
//! agent's own tool names to them.

use std::fmt;

/// What a tool does, so that one rule guards `terminal`, `run_shell_command` and `Bash` alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolClass {
    /// Runs commands or code.
    Shell,
    /// Reads files.
    FileRead,
    /// Writes or changes files.
    FileWrite,
    /// Searches for files, or for text in them.
    FileSearch,
    /// Fetches a page.
    WebFetch,
    /// Searches the web.
    WebSearch,
    /// Operates a browser or a screen.
    Browser,
    /// Hands work to another agent.
    Agent,
    /// A tool of an MCP server.
    Mcp,
    /// Stores or reads memories.
    Memory,
    /// Manages a list of tasks.
    Todo,
    /// Anything else.
    Other,
}

impl ToolClass {
    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Shell,
        Self::FileRead,
        Self::FileWrite,
        Self::FileSearch,
        Self::WebFetch,
        Self::WebSearch,
        Self::Browser,
        Self::Agent,
        Self::Mcp,
        Self::Memory,
        Self::Todo,
        Self::Other,
    ];

    /// The name people write in `hookbus.yaml` and read in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::FileRead => "file.read",
            Self::FileWrite => "file.write",
            Self::FileSearch => "file.search",
            Self::WebFetch => "web.fetch",
            Self::WebSearch => "web.search",
            Self::Browser => "browser",
            Self::Agent => "agent",
            Self::Mcp => "mcp",
            Self::Memory => "memory",
            Self::Todo => "todo",
            Self::Other => "other",
        }
    }

    /// The class with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }
}

impl fmt::Display for ToolClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
