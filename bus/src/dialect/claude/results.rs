//! What Claude Code says about the end of a tool call: `PostToolUse` is a success, `PostToolUseFailure` has an `error`, whose
//! first line names the exit code of a command. Tokens are reported for sub-agents only.

use serde_json::Value;

use super::super::reports::{
    Reported, ReportedUsage, ToolOutcome, ToolStatus, Usage, UsageScope, readable,
};
use crate::event::{Kind, ToolClass};

pub(super) fn tool_outcome(event: Reported<'_>) -> ToolOutcome {
    let took = event.millis("duration_ms");
    if event.kind == Kind::ToolFailed {
        let error = event.readable("error");
        let exit_code = error.as_deref().and_then(exit_code);
        let rest = error.as_deref().filter(|_| exit_code.is_some());
        let output = rest.and_then(|error| error.split_once('\n')).map(|(_, rest)| rest.to_owned());
        return ToolOutcome {
            status: ToolStatus::Failed,
            exit_code,
            error,
            output,
            took,
            ran: Some(true),
        };
    }
    let response = event.value("tool_response");
    let is_shell = event.tool_class == Some(ToolClass::Shell);
    let interrupted = event.value("tool_response.interrupted").and_then(Value::as_bool);
    let status = match (interrupted, response) {
        (Some(true), _) => ToolStatus::Failed,
        (_, Some(_)) => ToolStatus::Ok,
        (_, None) => ToolStatus::Unknown,
    };
    let streams = || {
        let texts = ["tool_response.stdout", "tool_response.stderr"];
        let texts: Vec<&str> = texts.iter().filter_map(|path| event.text(path)).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    };
    let is_streams = response.is_some_and(|response| response.get("stdout").is_some());
    let output = if is_streams { streams() } else { response.and_then(readable) };
    ToolOutcome {
        status,
        exit_code: (is_shell && status == ToolStatus::Ok).then_some(0),
        error: (status == ToolStatus::Failed).then(|| "interrupted".to_owned()),
        output,
        took,
        ran: Some(true),
    }
}

pub(super) fn usage(event: Reported<'_>) -> Option<ReportedUsage> {
    let reported = event.value("tool_response.usage")?;
    let keys = [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "",
        "",
    ];
    let mut usage = Usage::read(reported, keys)?;
    usage.total_tokens = event.value("tool_response.totalTokens").and_then(Value::as_u64);
    usage.reasoning_tokens =
        reported.pointer("/output_tokens_details/thinking_tokens").and_then(Value::as_u64);
    Some(ReportedUsage { usage, scope: UsageScope::Subagent })
}

/// The code in `Exit code 3`, at the start of an error.
fn exit_code(error: &str) -> Option<i64> {
    error.lines().next()?.strip_prefix("Exit code ")?.trim().parse().ok()
}
