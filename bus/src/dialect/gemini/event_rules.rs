//! The rules of each of Gemini's events: which answers it acts on, and how it merges several.

use serde_json::Value;

use super::super::{Capabilities, NoticePlace};
use crate::event::Event;

/// How Gemini merges the answers of several hooks, by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Any deny wins, else any ask; texts are joined.
    Or,
    /// Later fields replace earlier ones.
    Replace,
    /// Only tool configurations count: the strictest mode, the union of the names.
    ToolConfig,
    /// Only the notice for the user counts.
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

/// The answers that only Gemini has, and acts on at this event.
pub(super) fn own_answers(event: &Event) -> &'static [&'static str] {
    match event.name.as_str() {
        "BeforeModel" => &["llm_request", "llm_response"],
        "AfterModel" => &["llm_response"],
        "BeforeToolSelection" => &["toolConfig"],
        "AfterTool" => &["tailToolCallRequest"],
        "AfterAgent" => &["clearContext"],
        _ => &[],
    }
}

/// Which answers Gemini acts on at this event.
pub(super) fn capabilities(event: &Event) -> Capabilities {
    if event.is_unreadable() {
        return Capabilities { block: true, ..Capabilities::NONE };
    }
    let none = Capabilities::NONE;
    match event.name.as_str() {
        // After `/clear` Gemini uses no context.
        "SessionStart" => Capabilities {
            context: event.field("source").and_then(Value::as_str) != Some("clear"),
            ..none
        },
        "BeforeAgent" => Capabilities { block: true, stop: true, context: true, ..none },
        "BeforeModel" | "AfterModel" | "AfterAgent" => {
            Capabilities { block: true, stop: true, ..none }
        }
        "BeforeTool" => {
            Capabilities { block: true, ask: true, stop: true, rewrite: true, context: false }
        }
        "AfterTool" => Capabilities { block: true, stop: true, context: true, ..none },
        _ => none,
    }
}

/// Gemini shows a `systemMessage` at every event but `BeforeToolSelection`, where any answer changes the request. A
/// refused turn or request shows it in place of the reason, and `suppressOutput` hides it. An event that cannot be
/// read can be any of them: if it is let through, the user has to know, also at the price of `toolConfig` `AUTO`,
/// which is what Gemini uses anyway.
pub(super) fn notice_place(event: &Event, answer: Option<&Value>) -> NoticePlace {
    let has = |key: &str| answer.is_some_and(|answer| answer.get(key).is_some());
    match event.name.as_str() {
        "BeforeToolSelection" => NoticePlace::Nowhere,
        _ if event.is_unreadable() && (has("decision") || has("continue")) => NoticePlace::Nowhere,
        "BeforeAgent" | "AfterAgent" | "BeforeModel" | "AfterModel"
            if has("decision") || has("continue") =>
        {
            NoticePlace::Nowhere
        }
        _ if has("suppressOutput") => NoticePlace::Nowhere,
        _ => NoticePlace::InAnswer,
    }
}
