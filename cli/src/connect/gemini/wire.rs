//! The hook that `connect` writes for each event: a shell line that Gemini gives to `bash -c`. It names the program and
//! the home by absolute paths, so that neither `PATH` nor a variable of the agent's environment decides what runs.
//!
//! - Gemini replaces `$NAME` and `${NAME}` in its settings by variables of its environment, which a project's `.env`
//!   sets. The line holds no `$` that is followed by a name or a brace.
//! - Gemini takes exit 127 with text on stderr, which is what bash does about a missing program, for a block. The line
//!   looks for the program first. Without it, the agent works and its user is told, or, with `--on-failure block`,
//!   what can be blocked is blocked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use hookbus::event::OnFailure;
use serde_json::{Map, Value, json};

use crate::output::sanitize;

/// The name of the hook: Gemini shows it, and `hooksConfig.disabled` switches it off by it.
pub(super) const NAME: &str = "hookbus";

/// In seconds; below what Gemini gives a hook by default.
pub(super) const DEFAULT_DEADLINE: f64 = 55.0;

/// What Gemini gives a hook by default, and what it has to give at least beyond the hook's own deadline.
const TIMEOUT: Duration = Duration::from_mins(1);
const MARGIN: Duration = Duration::from_secs(5);

/// Variables that change what bash does before it reads its command line, or what the loader does before bash runs. A
/// project's `.env` can set them; an empty value switches each of them off.
const NEUTRALIZED: [&str; 7] =
    ["BASH_ENV", "BASHOPTS", "LD_AUDIT", "LD_DEBUG", "LD_LIBRARY_PATH", "LD_PRELOAD", "SHELLOPTS"];

/// A call of the bus, as `connect` writes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wire {
    pub(super) program: PathBuf,
    pub(super) home: PathBuf,
    /// In seconds.
    pub(super) deadline: f64,
    pub(super) on_failure: OnFailure,
}

impl Wire {
    /// Fails for paths that a JSON file cannot hold.
    pub(super) fn check(&self) -> Result<()> {
        for path in [&self.program, &self.home] {
            path.to_str().with_context(|| {
                format!(
                    "{} is not UTF-8, which settings.json has to be; move it elsewhere",
                    path.display()
                )
            })?;
        }
        Ok(())
    }

    /// The hook for an event, in a group of its own.
    pub(super) fn group(&self, event: &str) -> Value {
        let deadline = Duration::try_from_secs_f64(self.deadline).unwrap_or_default();
        let timeout = (deadline + MARGIN).max(TIMEOUT).as_millis();
        let env: Map<String, Value> =
            NEUTRALIZED.iter().map(|name| ((*name).to_owned(), json!(""))).collect();
        json!({"hooks": [{
            "type": "command",
            "name": NAME,
            "command": self.command(event),
            "timeout": u64::try_from(timeout).unwrap_or(u64::MAX),
            "env": env,
        }]})
    }

    /// The shell line for an event.
    pub(super) fn command(&self, event: &str) -> String {
        let program = quoted(&self.program.to_string_lossy());
        let otherwise = match self.answer_without_program(event) {
            Some(answer) => format!("printf '%s\\n' {}", quoted(&answer.to_string())),
            None => "exit 0".to_owned(),
        };
        // With `execfail` bash goes on if the system cannot run the file.
        format!("shopt -s execfail; [ -x {program} ] && exec {}; {otherwise}", self.call())
    }

    /// The call of the bus in that line.
    pub(super) fn call(&self) -> String {
        let program = quoted(&self.program.to_string_lossy());
        let home = quoted(&self.home.to_string_lossy());
        let on_failure = match self.on_failure {
            OnFailure::Allow => "",
            OnFailure::Block => " --on-failure block",
        };
        format!("{program} hook gemini --home {home} --deadline {}{on_failure}", self.deadline)
    }

    /// What the line prints if the program is missing. Nothing at `BeforeToolSelection`, where any JSON changes the request;
    /// not at `AfterModel`, which comes once per chunk; no block at `AfterAgent`, where Gemini would try again for ever.
    fn answer_without_program(&self, event: &str) -> Option<Value> {
        let why = format!(
            "hookbus: {} is missing or cannot run, so the bus records nothing and runs no hooks. Install it again and \
             run `hookbus connect gemini`, or run `hookbus disconnect gemini`.",
            sanitize(&self.program.to_string_lossy())
        );
        match (event, self.on_failure) {
            ("BeforeAgent" | "BeforeModel" | "BeforeTool" | "AfterTool", OnFailure::Block) => {
                let why = format!("{why} Until then nothing passes (`--on-failure block`).");
                Some(json!({"decision": "deny", "reason": why}))
            }
            ("SessionStart", OnFailure::Allow | OnFailure::Block)
            | ("BeforeAgent", OnFailure::Allow) => Some(json!({"systemMessage": why})),
            (_, OnFailure::Allow | OnFailure::Block) => None,
        }
    }

    /// Reads a line that `connect` wrote, of this version or another one.
    pub(super) fn parse(command: &str) -> Option<Self> {
        let words = shlex::split(command).filter(|_| command.starts_with("shopt -s execfail; "))?;
        let mut words = words.into_iter().skip_while(|word| word != "exec").skip(1);
        let program = PathBuf::from(words.next()?);
        if words.next()? != "hook" || words.next()? != "gemini" {
            return None;
        }
        let (mut home, mut deadline, mut on_failure) = (None, DEFAULT_DEADLINE, OnFailure::Allow);
        while let Some(option) = words.next().filter(|word| word.starts_with("--")) {
            let value = words.next()?;
            if option == "--home" {
                home = Some(PathBuf::from(value));
                continue;
            }
            let is_last = value.ends_with(';');
            let value = value.trim_end_matches(';');
            match option.as_str() {
                "--deadline" => deadline = value.parse().ok()?,
                "--on-failure" if value == "block" => on_failure = OnFailure::Block,
                _ => {}
            }
            if is_last {
                break;
            }
        }
        Some(Self { program, home: home?, deadline, on_failure })
    }
}

/// Whether the system could run this file.
pub(super) fn is_executable(program: &Path) -> bool {
    let is_runnable = |file: fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    fs::metadata(program).is_ok_and(is_runnable)
}

/// A word for the shell in which Gemini finds no variable: each `$` ends a quoted part.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''").replace('$', "$''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const NASTY: [&str; 5] = [
        "/opt/my bus/it's \"here\"",
        "/opt/$HOME/${HOME}/$GEMINI_PROJECT_DIR",
        "/opt/`id`/$(id)/!x;#y&z|*",
        "/opt/two\nlines\\n;",
        "/opt/$'x'/$",
    ];

    fn wire(program: &str, home: &str, on_failure: OnFailure) -> Wire {
        let (program, home) = (PathBuf::from(program), PathBuf::from(home));
        Wire { program, home, deadline: 12.5, on_failure }
    }

    #[test]
    fn what_is_written_is_read_again_whatever_the_paths_hold() {
        for path in NASTY {
            for on_failure in [OnFailure::Allow, OnFailure::Block] {
                let wire = wire(path, path, on_failure);
                for event in ["SessionStart", "BeforeTool", "AfterModel"] {
                    let command = wire.command(event);
                    assert_eq!(Wire::parse(&command).as_ref(), Some(&wire), "{command}");
                }
            }
        }
        assert_eq!(Wire::parse("hookbus hook gemini --home /x"), None);
        assert_eq!(Wire::parse("shopt -s execfail; exec true"), None);
    }

    #[test]
    fn gemini_finds_no_variable_in_a_line_and_bash_reads_the_paths_as_they_are() {
        for path in NASTY {
            let command = wire(path, path, OnFailure::Allow).command("BeforeAgent");
            let after: Vec<char> = command
                .match_indices('$')
                .filter_map(|(at, _)| command[at + 1..].chars().next())
                .collect();
            assert!(after.iter().all(|next| *next == '\''), "{command}");
            let program = format!("printf %s {}", quoted(path));
            let output = Command::new("bash").args(["-c", &program]).output().expect("bash");
            assert_eq!(String::from_utf8_lossy(&output.stdout), path);
        }
    }

    #[test]
    fn without_the_program_each_event_gets_an_answer_that_it_can_take() {
        let answer = |event: &str, on_failure| {
            let command = wire("/nonexistent/it's $HOME", "/h", on_failure).command(event);
            let output = Command::new("bash").args(["-c", &command]).output().expect("bash");
            assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
        };
        for event in ["SessionStart", "BeforeAgent"] {
            let told = answer(event, OnFailure::Allow);
            let text = told["systemMessage"].as_str().unwrap_or_default();
            assert!(text.starts_with("hookbus: /nonexistent/it's $HOME is missing"), "{told}");
        }
        for event in ["BeforeToolSelection", "AfterModel", "BeforeTool", "AfterAgent", "SessionEnd"]
        {
            assert_eq!(answer(event, OnFailure::Allow), Value::Null, "{event}");
        }
        for event in ["BeforeTool", "AfterTool", "BeforeAgent", "BeforeModel"] {
            assert_eq!(answer(event, OnFailure::Block)["decision"], "deny", "{event}");
        }
        for event in ["BeforeToolSelection", "AfterModel", "AfterAgent", "SessionEnd"] {
            assert_eq!(answer(event, OnFailure::Block), Value::Null, "{event}");
        }
    }

    #[test]
    fn gemini_waits_longer_than_the_deadline() {
        let timeout = |deadline| {
            let wire = Wire { deadline, ..wire("/p", "/h", OnFailure::Allow) };
            wire.group("BeforeTool")["hooks"][0]["timeout"].clone()
        };
        assert_eq!(
            (timeout(2.0), timeout(55.0), timeout(90.0)),
            (json!(60_000), json!(60_000), json!(95_000))
        );
    }
}
