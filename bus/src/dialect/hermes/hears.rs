//! What Hermes listens for, by event and by wire.

use super::super::Takes;
use crate::event::{Body, Event, Kind, Wire};

/// What Hermes acts on at one event.
#[derive(Clone, Copy)]
pub(super) enum Hears {
    /// A refusal of a tool call.
    Block,
    /// The same, a question to a person, or another input.
    Directive,
    /// A word that keeps it at work.
    Continue,
    /// Text for the model.
    Context,
    /// A text in place of the one it has.
    Text,
    /// Whether a message comes in, and with which text.
    Message,
    /// Whether a slash command runs, and which.
    Command,
    /// Nothing.
    Nothing,
}

impl Hears {
    pub(super) fn at(event: &Event) -> Self {
        match (event.name.as_str(), &event.body, event.wire) {
            // Nobody knows which event it was: the one answer that can stop a tool call.
            (_, Body::Unreadable { .. }, Wire::Shell) => Self::Block,
            (_, Body::Unreadable { .. }, Wire::Bridge) => Self::Directive,
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

/// What Hermes acts on at this event.
pub(in crate::dialect) fn takes(event: &Event) -> Takes {
    let nothing = Takes::NOTHING;
    match Hears::at(event) {
        Hears::Block | Hears::Continue => Takes { block: true, ..nothing },
        Hears::Directive => Takes { block: true, ask: true, rewrite: true, ..nothing },
        Hears::Message | Hears::Command => Takes { block: true, rewrite: true, ..nothing },
        Hears::Text => Takes { rewrite: true, ..nothing },
        Hears::Context => Takes { context: true, ..nothing },
        Hears::Nothing => nothing,
    }
}
