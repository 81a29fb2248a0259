//! Runs an observer's command: launched as a decision hook's, with the same input, but only whether it
//! succeeded counts.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use hookbus::caller::Caller;
use hookbus::config::{Action, Command, Hook};
use hookbus::dialect::{Ending, LateOutput, LaunchError};
use hookbus::exec::{self, Program, RunError, StartError, argv, find_program};
use hookbus::log::Row;
use tokio::process::Child;

use super::input::DeliveryContext;
use crate::observer::{Observer, recorded_event};

/// Why a command did not handle an event.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The user has not approved it as it is now.
    #[error("{0}")]
    NotApproved(String),
    /// Its line cannot be split into words.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It could not be started, or did not end in time.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It ended with something else than exit code 0.
    #[error("{0}")]
    Failed(String),
    /// The entry has no command.
    #[error("the entry has no command")]
    NoCommand,
}

/// Runs the command of `hook` on `row`.
pub(super) async fn run(
    observer: &Observer,
    hook: &Hook,
    row: &Row,
    context: &DeliveryContext,
) -> Result<(), CommandError> {
    let Action::Command(command) = &hook.action else { return Err(CommandError::NoCommand) };
    let caller = context.caller(observer, hook, row);
    if let Some(refusal) = observer.approvals.refusal(hook, &caller, hook.timeout()).await {
        return Err(CommandError::NotApproved(refusal.why));
    }
    let words = words(observer, hook, command, Some(row), &caller)?;
    let program = Program { words: &words, env: &command.env, caller: &caller, sandbox: None };
    let (input, timeout) = (context.input(row), command.timeout);
    let finished = exec::run(&program, input, timeout, LateOutput::Ignore).await?;
    let failed = match finished.ending {
        Ending::Exit(0) => return Ok(()),
        Ending::Exit(code) => format!("exit code {code}"),
        Ending::Signal(signal) => format!("killed by signal {signal}"),
    };
    Err(CommandError::Failed(with_last_line(&failed, &finished.stderr)))
}

/// Starts an observer's long-lived command, with pipes to its stdin and stdout.
pub(super) fn start_long_lived(
    observer: &Observer,
    context: &DeliveryContext,
) -> Result<Child, CommandError> {
    let hook = observer.first_entry();
    let Action::Command(command) = &hook.action else { return Err(CommandError::NoCommand) };
    let mut caller = observer.caller(&context.env);
    if context.replayed {
        caller.set_var("HOOKBUS_REPLAY", "1");
    }
    if let Some(refusal) = observer.approvals.refusal_now(hook, &caller) {
        return Err(CommandError::NotApproved(refusal.why));
    }
    let words = words(observer, hook, command, None, &caller)?;
    let [program, arguments @ ..] = words.as_slice() else {
        return Err(RunError::from(StartError::Empty).into());
    };
    let Some(file) = find_program(program, &command.env, &caller) else {
        let program = program.display().to_string();
        return Err(RunError::from(StartError::NotOnPath(program)).into());
    };
    let started = tokio::process::Command::new(file)
        .arg0(program)
        .args(arguments)
        .env_clear()
        .envs(caller.env.iter().map(|(key, value)| (key, value)))
        .envs(command.env.iter().map(|(key, value)| (key, value)))
        .current_dir(if observer.base.is_dir() { &observer.base } else { Path::new("/") })
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    started.map_err(|error| RunError::from(StartError::new(program, error)).into())
}

fn words(
    observer: &Observer,
    hook: &Hook,
    command: &Command,
    row: Option<&Row>,
    caller: &Caller,
) -> Result<Vec<OsString>, LaunchError> {
    let event = row.and_then(recorded_event);
    let dialect = match &event {
        Some(event) => hook.dialect(event.agent),
        None => hook.possible_dialects()[0],
    };
    argv(command, dialect, event.as_ref(), caller, &observer.base)
}

/// What went wrong, with the last line that the program printed.
fn with_last_line(what: &str, stderr: &[u8]) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    match stderr.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(last) => format!("{what}: {}", last.chars().take(300).collect::<String>()),
        None => what.to_owned(),
    }
}
