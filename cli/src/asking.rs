//! A question to the person at the terminal. Only a clear yes counts.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, Result};

use crate::output;

/// Where the question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptOn {
    /// In what is printed: it is about what was shown there.
    InTheResult,
    /// Beside it: the result may be for a program.
    Aside,
}

/// Whether somebody sits there who sees such a question and can answer it.
pub(crate) fn is_interactive(question: PromptOn) -> bool {
    let is_seen = match question {
        PromptOn::Stdout => io::stdout().is_terminal(),
        PromptOn::Stderr => io::stderr().is_terminal(),
    };
    is_seen && io::stdin().is_terminal()
}

/// Asks, and waits for the answer.
pub(crate) fn yes(stands: PromptOn, question: &str) -> Result<bool> {
    match stands {
        PromptOn::Stdout => output::bytes(format!("{question} [y/N] ").as_bytes())?,
        PromptOn::Stderr => output::to_stderr(format!("{question} [y/N]")),
    }
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read your answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
