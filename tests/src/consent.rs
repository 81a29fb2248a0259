//! Helpers for tests about consent: a blocking hook, its answers, and `hookbus hooks approve`.

use std::path::Path;

use serde_json::{Value, json};

use crate::agents::{Act, run_at_terminal};
use crate::home::{Home, feed};

/// Why a hook that was never approved did not run.
pub const NOT_APPROVED: &str =
    "it has not been approved; a person has to check it with `hookbus hooks approve`";

/// Why a hook whose approval has lapsed did not run.
pub const LAPSED: &str =
    "it has changed since it was approved; a person has to check it with `hookbus hooks approve`";

/// A shell script that blocks with `reason`.
pub fn blocking_script(reason: &str) -> String {
    format!("#!/bin/sh\necho '{{\"decision\": \"block\", \"reason\": \"{reason}\"}}'\n")
}

/// The code of a plugin that blocks every tool call with `reason`.
pub fn blocking_plugin(reason: &str) -> String {
    format!(
        "def register(ctx):\n    ctx.register_hook('pre_tool_call', \
         lambda **k: {{'action': 'block', 'message': '{reason}'}})\n"
    )
}

/// A tool call of Hermes.
pub fn tool_call() -> Value {
    json!({"hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": {}, "session_id": "s"})
}

/// The reason with which a tool call is blocked; empty if it is not.
pub fn block_reason(home: &Home) -> String {
    block_reason_in(home, &home.work())
}

/// The same for an agent whose working directory is `folder`.
pub fn block_reason_in(home: &Home, folder: &Path) -> String {
    let mut command = home.command(["hook", "hermes"]);
    command.current_dir(folder);
    let output = feed(command, tool_call().to_string().as_bytes());
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    answer["reason"].as_str().unwrap_or_default().to_owned()
}

/// Why the first hook of the last decision failed; empty if it did not.
pub fn last_failure(home: &Home) -> String {
    home.last_decision()["verdicts"][0]["failure"].as_str().unwrap_or_default().to_owned()
}

/// Checks that the hook does not run because its approval has lapsed, and that this blocks.
#[track_caller]
pub fn assert_lapsed(home: &Home, what: &str) {
    let reason = block_reason(home);
    assert!(reason.contains(LAPSED), "{what}: `{reason}`, {}", home.last_decision());
}

/// Approves everything that waits, in `folder`.
pub fn approve_in(home: &Home, folder: &Path) {
    let mut command = home.command_at_terminal(["hooks", "approve", "--accept-hooks"]);
    command.current_dir(folder);
    let (exit, screen) = run_at_terminal(command, &[]);
    assert_eq!(exit, Some(0), "{screen}");
}

/// Runs `hookbus hooks approve` at a terminal; returns its exit code and the screen.
pub fn approve_at_terminal(
    home: &Home,
    options: &[&str],
    acts: &[Act<'_>],
) -> (Option<i32>, String) {
    let mut command = home.command([&["hooks", "approve"], options].concat());
    command.env("HOME", home.work());
    run_at_terminal(command, acts)
}
