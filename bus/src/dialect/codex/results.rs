//! What Codex says about the end of a tool call. A shell command's result is its output and nothing else, so that its status
//! is unknown; a patch names its exit code. Calls that fail before they run have no `PostToolUse`.

use serde_json::Value;

use super::super::reports::{Reported, ReportedUsage, ToolOutcome, ToolStatus, readable};
use crate::event::ToolClass;

pub(super) fn tool_outcome(event: Reported<'_>) -> ToolOutcome {
    let response = event.value("tool_response");
    let text = response.and_then(Value::as_str);
    // A command prints what it likes: only of other tools the first line is Codex' own.
    let is_shell = event.tool_class == Some(ToolClass::Shell);
    let exit_code = text.filter(|_| !is_shell).and_then(exit_code);
    let body = text.filter(|_| exit_code.is_some()).and_then(|text| text.split_once("\nOutput:\n"));
    let is_error = event.value("tool_response.isError").and_then(Value::as_bool) == Some(true);
    let status = match exit_code {
        Some(0) => ToolStatus::Ok,
        Some(_) => ToolStatus::Failed,
        None if is_error => ToolStatus::Failed,
        None => ToolStatus::Unknown,
    };
    let output = body.map_or_else(
        || response.and_then(readable),
        |(_, body)| Some(body.to_owned()).filter(|body| !body.is_empty()),
    );
    ToolOutcome {
        status,
        exit_code,
        error: output.clone().filter(|_| status == ToolStatus::Failed),
        output,
        took: None,
        ran: Some(true),
    }
}

/// Codex reports no tokens in its hooks.
pub(super) const fn usage(_event: Reported<'_>) -> Option<ReportedUsage> {
    None
}

/// The code in `Exit code: 0`, at the start of a result.
fn exit_code(text: &str) -> Option<i64> {
    text.lines().next()?.strip_prefix("Exit code: ")?.trim().parse().ok()
}
