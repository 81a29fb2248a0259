//! Yes/no questions to the user at the terminal. Only a clear yes counts.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, Result};
use hookbus::sys::process::has_own_terminal;

use crate::output;

/// The stream that a question is printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptOn {
    /// Below the result that the question is about.
    Stdout,
    /// Where stdout may be read by a program.
    Stderr,
}

/// Whether a user can see a question on this stream and answer it.
pub(crate) fn is_interactive(stream: PromptOn) -> bool {
    let is_seen = match stream {
        PromptOn::Stdout => io::stdout().is_terminal(),
        PromptOn::Stderr => io::stderr().is_terminal(),
    };
    is_seen && io::stdin().is_terminal()
}

/// Whether the user is at the terminal that this process belongs to, and sees its output. A program that an agent
/// started has its input and output elsewhere.
pub(crate) fn is_user_at_terminal() -> bool {
    is_interactive(PromptOn::Stdout) && has_own_terminal(io::stdin())
}

/// Asks a yes/no question and reads the answer.
pub(crate) fn yes_no(stream: PromptOn, question: &str) -> Result<bool> {
    match stream {
        PromptOn::Stdout => output::bytes(format!("{question} [y/N] ").as_bytes())?,
        PromptOn::Stderr => output::to_stderr(format!("{question} [y/N]")),
    }
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read your answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
