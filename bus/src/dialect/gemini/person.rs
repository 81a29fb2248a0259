//! Whether a person can be asked. Gemini does not report that to hooks, and ends the whole session if a hook
//! asks and there is no person. So this inspects the Gemini process above the client: it must run on a
//! terminal and must not have been started for a single prompt.

use std::path::Path;

use crate::sys::process::{arguments, has_terminal_input, parent_of};

/// How many processes above the client are searched for Gemini.
const SEARCH_DEPTH: usize = 5;

pub(super) fn can_be_asked(client: u32) -> bool {
    let above = std::iter::successors(parent_of(client), |pid| parent_of(*pid));
    let gemini =
        above.take(SEARCH_DEPTH).map(|pid| (pid, arguments(pid))).find(|(_, it)| is_gemini(it));
    gemini.is_some_and(|(pid, arguments)| has_terminal_input(pid) && !is_for_one_prompt(&arguments))
}

fn is_gemini(arguments: &[String]) -> bool {
    let names_gemini = |argument: &String| {
        Path::new(argument).file_name().is_some_and(|name| name == "gemini" || name == "gemini.js")
    };
    arguments.iter().take(4).any(names_gemini)
}

fn is_for_one_prompt(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        matches!(argument.as_str(), "-p" | "--prompt" | "--acp" | "--experimental-acp")
            || argument.starts_with("--prompt=")
    })
}
