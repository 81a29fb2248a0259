//! What Gemini CLI says about its work. A shell command's result is a text with sections (`Output:`, `Exit Code:`, …), in
//! which the exit code is only if it is not 0. The model's answer comes in chunks, each with the tokens so far; the answer at
//! the end of a turn repeats parts of it.

use super::super::reports::{
    Answer, AnswerStanding, Question, Reported, ReportedUsage, Reports, ToolOutcome, ToolStatus,
    Usage, UsageScope, readable,
};
use super::Gemini;
use crate::event::{Kind, ToolClass};

/// What a shell result can have behind the output, each on a line of its own.
const SECTIONS: [&str; 5] =
    ["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];

impl Reports for Gemini {
    fn call_id<'a>(&self, _event: Reported<'a>) -> Option<&'a str> {
        None
    }

    fn tool_outcome(&self, event: Reported<'_>) -> ToolOutcome {
        outcome(event)
    }

    fn answer<'a>(&self, event: Reported<'a>) -> Option<Answer<'a>> {
        let text = event.text("prompt_response")?;
        Some(Answer { text, standing: AnswerStanding::Inexact })
    }

    fn chunk_text<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("llm_response.text")
    }

    fn model<'a>(&self, event: Reported<'a>) -> Option<&'a str> {
        event.text("llm_request.model")
    }

    fn usage(&self, event: Reported<'_>) -> Option<ReportedUsage> {
        let reported = event.value("llm_response.usageMetadata")?;
        let keys = [
            "promptTokenCount",
            "candidatesTokenCount",
            "cachedContentTokenCount",
            "",
            "thoughtsTokenCount",
            "totalTokenCount",
        ];
        Some(ReportedUsage { usage: Usage::read(reported, keys)?, scope: UsageScope::SoFar })
    }

    /// Gemini notifies of each approval that it asks for, and does not report the answer.
    fn question(&self, event: Reported<'_>) -> Option<Question> {
        if event.text("notification_type") != Some("ToolPermission") {
            return None;
        }
        let about = ["details.command", "details.filePath", "details.toolName", "details.prompt"];
        let about = about.iter().find_map(|path| event.text(path)).or(event.text("message"))?;
        let why = event.text("details.title").map(str::to_owned);
        Some(Question { about: about.to_owned(), why })
    }
}

fn outcome(event: Reported<'_>) -> ToolOutcome {
    let content = event.readable("tool_response.llmContent").map(|text| unwrapped(&text));
    let error = event.readable("tool_response.error");
    let error_type = event.text("tool_response.error.type");
    let is_denied = error_type == Some("policy_violation")
        || content.as_deref().is_some_and(|text| text.starts_with("Tool execution blocked: "));
    if is_denied {
        return ToolOutcome {
            status: ToolStatus::Denied,
            error: error.or(content),
            ran: Some(false),
            ..ToolOutcome::default()
        };
    }
    let is_shell = event.tool_class == Some(ToolClass::Shell);
    let shell = content.as_deref().filter(|_| is_shell).map(shell_result);
    let ToolOutcome { status, exit_code, error: shell_error, output, .. } = match shell {
        Some(shell) => shell,
        None => {
            let known = event.value("tool_response").is_some();
            let status = if known { ToolStatus::Ok } else { ToolStatus::Unknown };
            ToolOutcome { status, output: content, ..ToolOutcome::default() }
        }
    };
    let status =
        if error.is_some() || event.kind == Kind::ToolFailed { ToolStatus::Failed } else { status };
    let shown = event.value("tool_response.returnDisplay").filter(|shown| shown.is_string());
    ToolOutcome {
        status,
        exit_code,
        error: error.or(shell_error),
        output: output.or_else(|| shown.and_then(readable)),
        took: None,
        ran: Some(true),
    }
}

/// Without the marks that Gemini puts around what it does not trust.
fn unwrapped(text: &str) -> String {
    let inner = text.trim().strip_prefix("<untrusted_context>");
    let inner = inner.and_then(|text| text.strip_suffix("</untrusted_context>"));
    inner.unwrap_or(text).trim_matches('\n').to_owned()
}

/// The sections of a shell result. Those that Gemini writes are behind the output, so that a command which prints such
/// lines itself cannot hide its exit code.
fn shell_result(text: &str) -> ToolOutcome {
    let Some(body) = text.strip_prefix("Output: ") else {
        // Moved to the background or cancelled: no code is reported.
        let is_cancelled = text.starts_with("Command was");
        let status = if is_cancelled { ToolStatus::Failed } else { ToolStatus::Unknown };
        let error = is_cancelled.then(|| text.lines().next().unwrap_or_default().to_owned());
        return ToolOutcome {
            status,
            error,
            output: Some(text.to_owned()),
            ..ToolOutcome::default()
        };
    };
    let lines: Vec<&str> = body.lines().collect();
    let is_section = |line: &&&str| SECTIONS.iter().any(|section| line.starts_with(section));
    let sections = lines.iter().skip(1).rev().take_while(is_section).count();
    let (output, sections) = lines.split_at(lines.len() - sections);
    let section = |name: &str| sections.iter().rev().find_map(|line| line.strip_prefix(name));
    let exit = section("Exit Code: ").and_then(|code| code.trim().parse::<i64>().ok());
    let signal = section("Signal: ").map(|signal| format!("ended by signal {signal}"));
    let error = section("Error: ").map(str::to_owned).or(signal);
    let exit_code = if error.is_none() { Some(exit.unwrap_or(0)) } else { exit };
    let is_ok = exit_code == Some(0) && error.is_none();
    let output = output.join("\n");
    ToolOutcome {
        status: if is_ok { ToolStatus::Ok } else { ToolStatus::Failed },
        exit_code,
        error,
        output: (output != "(empty)" && !output.is_empty()).then_some(output),
        ..ToolOutcome::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_exit_code_is_read_from_behind_the_output() {
        let read = |text: &str| {
            let ToolOutcome { status, exit_code, output, .. } = shell_result(text);
            (status, exit_code, output)
        };
        let lines = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("Output: (empty)\nProcess Group PGID: 11695"),
            (ToolStatus::Ok, Some(0), None)
        );
        assert_eq!(
            read("Output: a\nb\nExit Code: 3\nProcess Group PGID: 1"),
            (ToolStatus::Failed, Some(3), lines("a\nb"))
        );
        // The command prints a code of its own.
        assert_eq!(
            read("Output: Exit Code: 0\nmore\nExit Code: 2"),
            (ToolStatus::Failed, Some(2), lines("Exit Code: 0\nmore"))
        );
        assert_eq!(read("Output: x\nSignal: 9").0, ToolStatus::Failed);
        assert_eq!(read("Command moved to background (PID: 1).").0, ToolStatus::Unknown);
        assert_eq!(unwrapped("<untrusted_context>\nHI\n</untrusted_context>"), "HI");
        assert_eq!(readable(&Value::Null), None);
    }
}
