//! What each of Gemini's events takes, and how it puts several answers together.

use serde_json::Value;

use super::super::Takes;
use crate::event::{Body, Event};

/// How answers of several hooks are put together, by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Any deny wins, else any ask; texts are joined.
    Or,
    /// Later fields take the place of earlier ones.
    Replace,
    /// Only the tool configurations count: the strictest mode, all the names.
    ToolConfig,
    /// Nothing but a notice for the person.
    Notice,
}

impl Strategy {
    pub(super) fn of(event: &Event) -> Self {
        match event.name.as_str() {
            "BeforeModel" | "AfterModel" => Self::Replace,
            "BeforeToolSelection" => Self::ToolConfig,
            "SessionEnd" | "Notification" | "PreCompress" => Self::Notice,
            _ => Self::Or,
        }
    }
}

/// What only Gemini has a word for, and acts on at this event.
pub(super) fn own_words(event: &Event) -> &'static [&'static str] {
    match event.name.as_str() {
        "BeforeModel" => &["llm_request", "llm_response"],
        "AfterModel" => &["llm_response"],
        "BeforeToolSelection" => &["toolConfig"],
        "AfterTool" => &["tailToolCallRequest"],
        "AfterAgent" => &["clearContext"],
        _ => &[],
    }
}

/// What Gemini acts on at this event.
pub(in super::super) fn takes(event: &Event) -> Takes {
    if let Body::Unreadable { .. } = event.body {
        return Takes { block: true, ..Takes::NOTHING };
    }
    let none = Takes::NOTHING;
    match event.name.as_str() {
        // After `/clear` Gemini uses no context.
        "SessionStart" => Takes {
            context: event.field("source").and_then(Value::as_str) != Some("clear"),
            ..none
        },
        "BeforeAgent" => Takes { block: true, stop: true, context: true, ..none },
        "BeforeModel" | "AfterModel" | "AfterAgent" => Takes { block: true, stop: true, ..none },
        "BeforeTool" => Takes { block: true, ask: true, stop: true, rewrite: true, context: false },
        "AfterTool" => Takes { block: true, stop: true, context: true, ..none },
        _ => none,
    }
}
