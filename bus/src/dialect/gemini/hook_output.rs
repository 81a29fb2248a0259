//! How Gemini interprets a hook's output: it reads stdout, or stderr if stdout is empty. JSON takes precedence
//! over the exit code; text with an exit code of 2 or more is a refusal (127 for a missing program included).

use super::super::answer::{unknown_word, verdict_in};
use super::super::hook_output::{ParsedOutput, parse_output, text_in};
use super::super::{Ending, HookOutput, Interpretation};
use crate::event::{Kind, Verdict};

pub(super) fn interpret(kind: Kind, output: &HookOutput<'_>) -> Interpretation {
    let Some(text) = text_in(output.stdout).or_else(|| text_in(output.stderr)) else {
        return Interpretation::failed(output.failed_ending());
    };
    match parse_output(&text) {
        ParsedOutput::Object(answer) => {
            let verdict = verdict_in(&answer, kind);
            let failure = match output.ending {
                Ending::Exit(1) | Ending::Signal(_) => output.failed_ending(),
                Ending::Exit(_) => unknown_word(&answer, &verdict),
            };
            return Interpretation { verdict, failure };
        }
        // Gemini ignores JSON that is not an object.
        ParsedOutput::OtherJson => return Interpretation::failed(output.failed_ending()),
        ParsedOutput::NotJson => {}
    }
    let notice = |text: String| Verdict { notice: Some(text), ..Verdict::silent() };
    match output.ending {
        Ending::Exit(0) => Interpretation::answered(notice(text)),
        Ending::Exit(1) => Interpretation {
            verdict: notice(format!("Warning: {text}")),
            failure: output.failed_ending(),
        },
        Ending::Exit(_) => Interpretation::answered(Verdict::block(text)),
        Ending::Signal(_) => {
            Interpretation { verdict: notice(text), failure: output.failed_ending() }
        }
    }
}
