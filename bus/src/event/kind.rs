//! Our names for the moments of an agent's life, the same across agents.

use std::fmt;

/// Writes the enum, its text and its list from one table, so that they cannot drift apart.
macro_rules! kinds {
    ($($variant:ident = $text:literal, $doc:literal;)*) => {
        /// What kind of moment an event is, whatever its agent calls it.
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
    SessionStart = "session.start", "A session begins, or is taken up again.";
    SessionEnd = "session.end", "A session is over.";
    SessionReset = "session.reset", "A session was swapped for a fresh one.";
    TurnStart = "turn.start", "A person's prompt is about to be worked on.";
    TurnVerify = "turn.verify", "The agent wants to finish after changing files.";
    TurnOutput = "turn.output", "The final text, before it is shown.";
    TurnAnswer = "turn.answer", "The final text, as it was given.";
    TurnEnd = "turn.end", "The agent is done with a prompt.";
    TurnFailed = "turn.failed", "A turn ended in an error.";
    ModelBefore = "model.before", "A request is about to go to the model.";
    ModelChunk = "model.chunk", "A piece of the model's answer arrived.";
    ModelAfter = "model.after", "The model has answered.";
    ModelError = "model.error", "A request to the model failed.";
    ToolSelect = "tool.select", "The model is about to be offered tools.";
    ToolBefore = "tool.before", "A tool is about to run.";
    ToolOutput = "tool.output", "A tool's output, before the model sees it.";
    ToolAfter = "tool.after", "A tool has run.";
    ToolFailed = "tool.failed", "A tool ran and failed.";
    ApprovalRequest = "approval.request", "A person is about to be asked.";
    ApprovalAnswer = "approval.answer", "A person, or their stand-in, has answered.";
    SubagentStart = "subagent.start", "A sub-agent is about to work.";
    SubagentStop = "subagent.stop", "A sub-agent is done.";
    AgentStart = "agent.start", "A gateway hands a message to its agent.";
    AgentStep = "agent.step", "One round of a gateway's agent.";
    AgentEnd = "agent.end", "A gateway's agent is done with a message.";
    MessageIn = "message.in", "A gateway received a message.";
    Command = "command", "A slash command was given.";
    CompactBefore = "compact.before", "The history is about to be shortened.";
    CompactAfter = "compact.after", "The history was shortened.";
    TaskCreated = "task.created", "A task was put on a board.";
    TaskClaimed = "task.claimed", "A task was taken up.";
    TaskCompleted = "task.completed", "A task was done.";
    TaskBlocked = "task.blocked", "A task is stuck.";
    TaskUpdated = "task.updated", "A task changed in another way.";
    Notification = "notification", "The agent wants a person's attention.";
    GatewayStart = "gateway.start", "A gateway came up.";
    Decision = "decision", "What the bus answered; points at its cause.";
    HooksLoaded = "hooks.loaded", "The hooks in force changed; holds their content.";
    Other = "other", "A name nobody here has heard of.";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
