//! Whether a shell hook of Hermes calls the bus: directly, in `sh -c '…'`, or in a script that it names. With the bridge
//! beside it, its events would arrive twice. A command is only removed if its form shows that it does nothing else;
//! any other has to be changed by the user.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Whether a command calls the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusCall {
    /// It does not.
    No,
    /// It does nothing else.
    Only,
    /// It does, and possibly other work too.
    WithOtherWork,
}

/// A call anywhere in a line, except behind a `#`.
const CALL: &str =
    r#"(?m)^[^#\n]*?(?:^|[^\w.#])hookbus["'}]*\s[^\n;|&]*?\bhook\s[^\n;|&]*?\bhermes\b"#;

/// A line that is only a call: perhaps on condition that the program exists, and perhaps with its exit code ignored.
const ONLY: &str = r"(?x)^\s*
    (?:command\s+-v\s+\S+\s*(?:&?>\s*/dev/null)?(?:\s+2>&1)?\s*&&\s*)?
    (?:exec\s+)?
    (?:(?:/usr/bin/)?env\s+)?(?:\w+=\S*\s+)*(?:timeout\s+[\d.]+[smhd]?\s+)?
    (?:\S*/)?hookbus(?:\s+-\S+)*\s+hook(?:\s+-\S+(?:\s+[\d.]+)?)*\s+hermes(?:\s+-\S+(?:\s+[\d.]+)?)*
    (?:\s+2>>?\s*\S+)?
    (?:\s*(?:\|\||;)\s*(?:true|:|exit\s+0))?
    \s*;?\s*$";

/// The option of a shell that takes a command line.
const SHELL_OPTION: &str = "^-[a-z]*c$";

/// How much of a script is searched for a call.
const LONGEST_SCRIPT: u64 = 64 << 10;

/// Whether an entry of Hermes' hooks calls the bus.
pub(super) fn bus_call(entry: &Value) -> BusCall {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words = shlex::split(command).unwrap_or_default();
    let line = match words.as_slice() {
        [shell, option, line] if shell.ends_with("sh") && matches(SHELL_OPTION, option) => line,
        [..] => command,
    };
    if matches(ONLY, line) {
        return BusCall::Only;
    }
    let has_call = |text: String| matches(CALL, &text);
    let mut scripts = words.iter().filter_map(|word| script(word));
    let calls = matches(CALL, command) || scripts.any(has_call);
    if calls { BusCall::WithOtherWork } else { BusCall::No }
}

fn matches(pattern: &'static str, text: &str) -> bool {
    static KNOWN: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compiled = |pattern| Regex::new(pattern).ok().map(|regex| (pattern, regex));
        [CALL, ONLY, SHELL_OPTION].into_iter().filter_map(compiled).collect()
    });
    KNOWN.iter().any(|(known, regex)| *known == pattern && regex.is_match(text))
}

/// The text of the script that a word names. Hermes' working directory is not known, so only absolute paths count.
fn script(word: &str) -> Option<String> {
    let path = match word.strip_prefix("~/") {
        Some(rest) => std::env::home_dir()?.join(rest),
        None => PathBuf::from(word),
    };
    if !path.is_absolute() || !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST_SCRIPT).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok().filter(|text| text.starts_with("#!"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(command: &str) -> BusCall {
        bus_call(&json!({"command": command}))
    }

    #[test]
    fn a_command_that_only_calls_the_bus_is_recognised() {
        for command in [
            "hookbus hook hermes",
            "/opt/bin/hookbus --json hook --deadline 20 hermes",
            "sh -c 'command -v hookbus >/dev/null && exec hookbus hook hermes || true'",
            "bash -c 'hookbus hook hermes'",
            "env A=1 timeout 5 ~/bin/hookbus hook hermes",
            "/bin/bash -c 'command -v hookbus &>/dev/null && ~/bin/hookbus hook hermes 2>/dev/null || exit 0'",
        ] {
            assert_eq!(of(command), BusCall::Only, "{command}");
        }
    }

    #[test]
    fn other_work_beside_a_call_is_not_overlooked() {
        for command in [
            "nice ~/bin/hookbus hook hermes",
            "bash -ec '[ -x /x ] || exit 0; \"${HOOKBUS:-hookbus}\" hook hermes'",
            "sh -c 'tee -a /tmp/x | hookbus hook hermes'",
            "sh -c 'hookbus hook hermes || exit 2'",
            "sh -c 'echo \"$(hookbus hook hermes)\"'",
            "bash -c 'notify-send x & hookbus hook hermes'",
        ] {
            assert_eq!(of(command), BusCall::WithOtherWork, "{command}");
        }
    }

    #[test]
    fn the_words_alone_are_no_call() {
        for command in [
            "",
            "hookbus status",
            "hookbus hook gemini",
            "hookbus-guard hook hermes",
            "sh -c 'true # hookbus hook hermes'",
            "sh -c 'echo hookbus >> /tmp/hook; true hermes'",
            "sh -c",
        ] {
            assert_eq!(of(command), BusCall::No, "{command}");
        }
    }
}
