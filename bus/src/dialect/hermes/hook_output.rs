//! How Hermes interprets a shell hook's output: stdout is one JSON object, whatever the exit code; anything
//! else is ignored. The bus also accepts a block by exit code 2 with a reason on stderr.

use super::super::answer::{unknown_word, verdict_in};
use super::super::hook_output::{
    ParsedOutput, not_json, parse_output, replacement_text_in, text_in,
};
use super::super::{Ending, HookOutput, Interpretation};
use crate::event::{Kind, Verdict};

pub(super) fn interpret(kind: Kind, output: &HookOutput<'_>) -> Interpretation {
    let (verdict, mut failure) = match std::str::from_utf8(output.stdout).map(str::trim) {
        Err(_) => (Verdict::silent(), Some("its stdout is not UTF-8".to_owned())),
        Ok("") => (Verdict::silent(), None),
        Ok(text) => match (replacement_text_in(text, kind), parse_output(text)) {
            (Some(verdict), _) => (verdict, None),
            (None, ParsedOutput::Object(answer)) => {
                let verdict = verdict_in(&answer, kind);
                let failure = unknown_word(&answer, &verdict);
                (verdict, failure)
            }
            (None, ParsedOutput::OtherJson) => (Verdict::silent(), None),
            (None, ParsedOutput::NotJson) => (Verdict::silent(), Some(not_json(text))),
        },
    };
    if verdict.is_silent() {
        // Hermes 0.19 ignores this; to Claude Code and later versions of Hermes it is a block.
        if let (Ending::Exit(2), Some(reason)) = (output.ending, text_in(output.stderr)) {
            return Interpretation::answered(Verdict::block(reason));
        }
        failure = failure.or_else(|| output.failed_ending());
    }
    Interpretation { verdict, failure }
}
