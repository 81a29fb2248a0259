//! Which form of answer Hermes reads at each event, by wire.

use super::super::Capabilities;
use crate::event::{Event, Kind, Wire};

/// The one form of answer that Hermes reads at an event.
#[derive(Clone, Copy)]
pub(super) enum AnswerSlot {
    /// The refusal of a tool call.
    Block,
    /// The refusal of a tool call, a question to the user, or another input.
    Directive,
    /// A message that makes the agent go on working.
    Continue,
    /// Text for the model.
    Context,
    /// A text that replaces the event's own text.
    Text,
    /// Whether an incoming message is accepted, and with which text.
    Message,
    /// Whether a slash command runs, and which.
    Command,
    /// No answer is read.
    Nothing,
}

impl AnswerSlot {
    pub(super) fn at(event: &Event) -> Self {
        match (event.name.as_str(), event.is_unreadable(), event.wire) {
            // The event is unknown, so give the one answer that can stop a tool call.
            (_, true, Wire::Shell) => Self::Block,
            (_, true, Wire::Bridge) => Self::Directive,
            ("pre_tool_call", _, Wire::Shell) => Self::Block,
            ("pre_tool_call", _, Wire::Bridge) => Self::Directive,
            ("pre_verify", ..) => Self::Continue,
            ("pre_llm_call", ..) => Self::Context,
            ("pre_gateway_dispatch", _, Wire::Bridge) => Self::Message,
            (_, _, Wire::Bridge) if event.kind == Kind::Command => Self::Command,
            (name, _, Wire::Bridge) if TRANSFORMS.contains(&name) => Self::Text,
            _ => Self::Nothing,
        }
    }
}

const TRANSFORMS: [&str; 3] =
    ["transform_terminal_output", "transform_tool_result", "transform_llm_output"];

/// Which answers Hermes acts on at this event.
pub(super) fn capabilities(event: &Event) -> Capabilities {
    let none = Capabilities::NONE;
    match AnswerSlot::at(event) {
        AnswerSlot::Block | AnswerSlot::Continue => Capabilities { block: true, ..none },
        AnswerSlot::Directive => Capabilities { block: true, ask: true, rewrite: true, ..none },
        AnswerSlot::Message | AnswerSlot::Command => {
            Capabilities { block: true, rewrite: true, ..none }
        }
        AnswerSlot::Text => Capabilities { rewrite: true, ..none },
        AnswerSlot::Context => Capabilities { context: true, ..none },
        AnswerSlot::Nothing => none,
    }
}
