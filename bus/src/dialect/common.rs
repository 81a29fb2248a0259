//! The dialect of hooks under a kind or a pattern, for any agent, and of agents without a dialect of their own:
//! the command line is split into words, a matcher must match the whole tool name, exit code 2 blocks, and any
//! other exit code than 0 is a failure.

use std::ffi::OsString;
use std::path::Path;

use super::answer::{unknown_word, verdict_in};
use super::hook_output::{ParsedOutput, not_json, parse_output, replacement_text_in, text_in};
use super::matcher::{anchored, tool_regex};
use super::reports::Reports;
use super::{Dialect, Ending, HookOutput, Interpretation, LaunchError, ParsedMatcher};
use crate::caller::Caller;
use crate::event::{Kind, Ruling, Verdict};

/// The common dialect.
#[derive(Debug, Clone, Copy)]
pub struct Common;

impl Dialect for Common {}

impl Reports for Common {}

/// The words of the line. `./x` and `../x` are relative to the directory of the hooks file.
pub(super) fn argv(line: &str, caller: &Caller, base: &Path) -> Result<Vec<OsString>, LaunchError> {
    let mut words = split(line, caller)?;
    let program = words[0].to_string_lossy();
    if program.starts_with("./") || program.starts_with("../") {
        words[0] = base.join(&words[0]).into_os_string();
    }
    Ok(words)
}

/// Checks that a command line can be split into words, at least one.
pub(super) fn check_line(line: &str) -> Result<(), LaunchError> {
    words_of(line).map(drop)
}

fn words_of(line: &str) -> Result<Vec<OsString>, LaunchError> {
    let words = shlex::split(line).ok_or_else(|| LaunchError::UnclosedQuote(line.to_owned()))?;
    if words.is_empty() {
        return Err(LaunchError::Empty);
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The words of a command line, at least one, with `~` at the start of the first expanded.
pub(super) fn split(line: &str, caller: &Caller) -> Result<Vec<OsString>, LaunchError> {
    let mut words = words_of(line)?;
    if let Some(program) = words.first_mut().filter(|_| line.starts_with('~')) {
        *program = caller.expand_home(&*program);
    }
    Ok(words)
}

pub(super) fn matcher(text: &str) -> ParsedMatcher {
    if text == "*" { ParsedMatcher::Everything(None) } else { tool_regex(text, &anchored(text)) }
}

pub(super) fn interpret(kind: Kind, output: &HookOutput<'_>) -> Interpretation {
    let stdout = text_in(output.stdout);
    let stderr = text_in(output.stderr);
    if let Some(verdict) = stdout.as_deref().and_then(|text| replacement_text_in(text, kind)) {
        return Interpretation::answered(verdict);
    }
    let json_text = stdout.as_deref().or(stderr.as_deref()).unwrap_or_default();
    if let ParsedOutput::Object(answer) = parse_output(json_text) {
        let verdict = verdict_in(&answer, kind);
        return match (output.ending, verdict.ruling) {
            (_, Some(Ruling::Block | Ruling::Ask)) => Interpretation::answered(verdict),
            (Ending::Exit(2), Some(Ruling::Allow) | None) => blocked(stderr),
            _ if verdict.stop => Interpretation::answered(verdict),
            // Anything milder than a block, printed by a program that then failed, is no answer to rely on.
            _ => {
                let unknown = unknown_word(&answer, &verdict);
                // What the hook wants is not known, so it does not allow anything either.
                let ruling = verdict.ruling.filter(|_| unknown.is_none());
                let failure = output.failed_ending().or(unknown);
                Interpretation { failure, verdict: Verdict { ruling, ..verdict } }
            }
        };
    }
    match (output.ending, stdout) {
        (Ending::Exit(2), stdout) => blocked(stderr.or(stdout)),
        (Ending::Exit(0), None) => Interpretation::answered(Verdict::silent()),
        // As in Claude Code and Codex: plain text at these two events is for the model.
        (Ending::Exit(0), Some(text)) if matches!(kind, Kind::SessionStart | Kind::TurnStart) => {
            Interpretation::answered(Verdict { context: Some(text), ..Verdict::silent() })
        }
        (Ending::Exit(0), Some(text)) => Interpretation::failed(Some(not_json(&text))),
        (Ending::Exit(_) | Ending::Signal(_), _) => Interpretation::failed(output.failed_ending()),
    }
}

fn blocked(reason: Option<String>) -> Interpretation {
    let reason = reason.unwrap_or_else(|| "refused by a hook (exit code 2)".to_owned());
    Interpretation::answered(Verdict::block(reason))
}
