//! Kinds: our names for lifecycle events, the same for all agents. Each dialect's `names.rs` maps the agent's
//! own event names to them.

use std::fmt;

/// Writes the enum, its text and its list from one table, so that they cannot drift apart.
macro_rules! kinds {
    ($($variant:ident = $text:literal, $doc:literal;)*) => {
        /// What kind of event it is, whatever the agent calls it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $(#[doc = $doc] $variant,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name people write in `hookbus.yaml` and read in the log.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The kind with this name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

kinds! {
    SessionStart = "session.start", "A session begins or is resumed.";
    SessionEnd = "session.end", "A session has ended.";
    SessionReset = "session.reset", "A session was replaced by a new one.";
    TurnStart = "turn.start", "The agent is about to work on a prompt.";
    TurnVerify = "turn.verify", "The agent wants to finish after changing files.";
    TurnOutput = "turn.output", "The final text, before the user sees it.";
    TurnAnswer = "turn.answer", "The final text, as the user got it.";
    TurnEnd = "turn.end", "The agent is done with a prompt.";
    TurnFailed = "turn.failed", "A turn ended in an error.";
    ModelBefore = "model.before", "A request is about to go to the model.";
    ModelChunk = "model.chunk", "A part of the model's answer has arrived.";
    ModelAfter = "model.after", "The model has answered.";
    ModelError = "model.error", "A request to the model failed.";
    ToolSelect = "tool.select", "The model is about to be offered tools.";
    ToolBefore = "tool.before", "A tool is about to run.";
    ToolOutput = "tool.output", "A tool's output, before the model sees it.";
    ToolAfter = "tool.after", "A tool has run.";
    ToolFailed = "tool.failed", "A tool ran and failed.";
    ApprovalRequest = "approval.request", "The user is about to be asked for an approval.";
    ApprovalAnswer = "approval.answer", "The user, or an automatic approval, has answered.";
    SubagentStart = "subagent.start", "A sub-agent is about to work.";
    SubagentStop = "subagent.stop", "A sub-agent is done.";
    AgentStart = "agent.start", "A gateway hands a message to its agent.";
    AgentStep = "agent.step", "One round of a gateway's agent.";
    AgentEnd = "agent.end", "A gateway's agent is done with a message.";
    MessageIn = "message.in", "A gateway received a message.";
    Command = "command", "The user gave a slash command.";
    CompactBefore = "compact.before", "The agent is about to compress its history.";
    CompactAfter = "compact.after", "The agent has compressed its history.";
    TaskCreated = "task.created", "A task was put on a board.";
    TaskClaimed = "task.claimed", "A task was claimed.";
    TaskCompleted = "task.completed", "A task was completed.";
    TaskBlocked = "task.blocked", "A task is blocked.";
    TaskUpdated = "task.updated", "A task changed in another way.";
    Notification = "notification", "The agent notifies the user.";
    GatewayStart = "gateway.start", "A gateway has started.";
    Decision = "decision", "What the bus answered to the event in `cause`.";
    HooksLoaded = "hooks.loaded", "The hooks in force changed; holds their content.";
    HooksApproved = "hooks.approved", "The user approved a hook.";
    HooksRevoked = "hooks.revoked", "The user revoked the approval of a hook.";
    SettingsChanged = "settings.changed", "Settings of the bus changed, other than its hooks.";
    DaemonStarted = "daemon.started", "A daemon of the bus has started.";
    SessionHeld = "session.held", "The user keeps a session from being pruned.";
    SessionReleased = "session.released", "The user allows a session to be pruned again.";
    LogPruned = "log.pruned", "Payloads or rows were removed on purpose; tells which.";
    LogRedacted = "log.redacted", "Secrets in older rows were redacted on purpose; tells which rows.";
    LogCheckpoint = "log.checkpoint", "The last row and its hash were signed.";
    Other = "other", "The event's name is not in the dialect's table.";
}

impl Kind {
    /// Whether rows of this kind are about the bus itself, and not about an event of an agent.
    pub const fn is_of_bus(self) -> bool {
        matches!(
            self,
            Self::HooksLoaded
                | Self::HooksApproved
                | Self::HooksRevoked
                | Self::SettingsChanged
                | Self::DaemonStarted
                | Self::SessionHeld
                | Self::SessionReleased
                | Self::LogPruned
                | Self::LogRedacted
                | Self::LogCheckpoint
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
