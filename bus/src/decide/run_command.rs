//! Running a hook's command about an event: what it reads on stdin, and how its output becomes a verdict.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::replay::in_original_folder;
use super::run::{HookRun, blocking_by_default, failed, record};
use crate::config::{Command, Hook};
use crate::consent::script_paths;
use crate::dialect::{Ending, HookOutput, Interpretation};
use crate::event::{Event, Seq, VerdictRecord};
use crate::exec::{self, Finished, Program, fill_placeholders, script_hash};
use crate::sys::fs::may_execute;

/// The exit code of Python, Perl and some shells when their script does not exist. A script that does exist
/// uses the same code to block.
const SCRIPT_NOT_FOUND: i32 = 2;

/// The exit code of shells, `env`, `timeout` and the like when they may not execute what they are to run.
const NOT_EXECUTABLE: i32 = 126;

/// Runs the command of `hook` about `event`.
pub(super) async fn run_command(
    run: &HookRun<'_, '_>,
    hook: &Hook,
    command: &Command,
    event: &Event,
) -> VerdictRecord {
    let started = Instant::now();
    let dialect = hook.dialect(event.agent);
    let caller = &run.caller(hook);
    let base = &run.plan.active(hook).file.base;
    let written = match dialect.argv(&command.text, caller, base) {
        Ok(words) => words,
        Err(error) => return failed(hook, error.to_string(), started.elapsed()),
    };
    let words = fill_placeholders(written.clone(), command, Some(event));
    let script = script_hash(&words, caller);
    let sandbox = run.replay.map(|replay| &replay.sandbox);
    let words = match sandbox {
        // Before placeholders are filled: a value from the event must not be taken for a file.
        Some(_) => fill_placeholders(in_original_folder(written, caller), command, Some(event)),
        None => words,
    };
    let timeout = command.timeout.min(run.time_left());
    let program = Program { words: &words, env: &command.env, caller, sandbox };
    let late_output = dialect.late_output();
    let (interpretation, exit) =
        match exec::run(&program, input(run, event), timeout, late_output).await {
            Ok(finished) => {
                let Finished { stdout, stderr, ending, held_open } = &finished;
                let exit = match ending {
                    Ending::Exit(code) => Some(*code),
                    Ending::Signal(_) => None,
                };
                if let Some(why) = unusable_script(&finished, &program) {
                    let record = failed(&blocking_by_default(hook), why, started.elapsed());
                    return VerdictRecord { exit, script, ..record };
                }
                let output = HookOutput { stdout, stderr, ending: *ending };
                let mut interpretation = dialect.interpret(event.kind, &output);
                if *held_open && interpretation.verdict.is_silent() {
                    let why = "it ended without an answer, and a child holds its output open";
                    interpretation.failure.get_or_insert_with(|| why.to_owned());
                }
                (interpretation, exit)
            }
            Err(error) if error.is_shortage() => {
                run.note_shortage(hook);
                let why = error.to_string();
                let record = failed(&blocking_by_default(hook), why, started.elapsed());
                return VerdictRecord { script, ..record };
            }
            Err(error) => {
                let record = failed(hook, error.to_string(), started.elapsed());
                return VerdictRecord { script, ..record };
            }
        };
    let Interpretation { verdict, failure } = interpretation;
    VerdictRecord { exit, script, ..record(hook, verdict, failure, started.elapsed()) }
}

/// What a command reads from stdin.
fn input(run: &HookRun<'_, '_>, event: &Event) -> Vec<u8> {
    let hookbus = json!({
        "id": event.id.to_string(),
        "seq": run.seq.map(Seq::as_i64),
        "time": event.at.to_string(),
        "kind": event.kind.as_str(),
        "agent": event.agent.as_str(),
        "tool_class": event.tool.as_ref().map(|tool| tool.class.as_str()),
    });
    with_hookbus_object(&event.raw, &hookbus)
}

/// A payload, byte for byte, with the `hookbus` object put in before its last brace.
pub fn with_hookbus_object(raw: &[u8], hookbus: &Value) -> Vec<u8> {
    let end = raw.iter().rposition(|byte| *byte == b'}').unwrap_or(raw.len());
    let head = &raw[..end];
    let comma = if head.trim_ascii_end().ends_with(b"{") { "" } else { "," };
    [head, format!("{comma}\"hookbus\":{hookbus}}}").as_bytes()].concat()
}

/// Why the program could not run the script that it was given, if so: its stderr must say the same. Not a failure of
/// the script, which was never asked.
fn unusable_script(finished: &Finished, program: &Program<'_>) -> Option<String> {
    if !finished.stdout.trim_ascii().is_empty() {
        return None;
    }
    let stderr = String::from_utf8_lossy(&finished.stderr).to_lowercase();
    let is_named = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        stderr.contains(&name)
    };
    let named = || script_paths(program.words, program.caller);
    match finished.ending {
        Ending::Exit(SCRIPT_NOT_FOUND) => {
            let missing = named().missing.filter(is_named).filter(|_| stderr.contains("open"))?;
            Some(format!("`{}` does not exist; check the path", missing.display()))
        }
        Ending::Exit(NOT_EXECUTABLE) => {
            let file =
                named().files.into_iter().find(|file| is_named(file) && !may_execute(file))?;
            Some(format!("`{0}` is not executable; run `chmod +x {0}`", file.display()))
        }
        Ending::Exit(_) | Ending::Signal(_) => None,
    }
}
