//! Whether a shell hook of Hermes calls the bus: by itself, inside of `sh -c '…'`, or in a script that it names.
//! Then it is a wire, and a second one beside the bridge. Only the lines that people really write for nothing but
//! that call are taken for nothing but that; what else has a call in it is for a person to look at.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What a command has to do with the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// It does not call it.
    Nothing,
    /// That is all it does.
    Only,
    /// It calls it, and may do something else too.
    AndMore,
}

/// A call, wherever it stands in a line, but not behind a `#`.
const CALL: &str =
    r#"(?m)^[^#\n]*?(?:^|[^\w.#])hookbus["'}]*\s[^\n;|&]*?\bhook\s[^\n;|&]*?\bhermes\b"#;

/// A line with nothing but a call: perhaps only if there is such a program, and perhaps whatever it says.
const ONLY: &str = r"(?x)^\s*
    (?:command\s+-v\s+\S+\s*(?:&?>\s*/dev/null)?(?:\s+2>&1)?\s*&&\s*)?
    (?:exec\s+)?
    (?:(?:/usr/bin/)?env\s+)?(?:\w+=\S*\s+)*(?:timeout\s+[\d.]+[smhd]?\s+)?
    (?:\S*/)?hookbus(?:\s+-\S+)*\s+hook(?:\s+-\S+(?:\s+[\d.]+)?)*\s+hermes(?:\s+-\S+(?:\s+[\d.]+)?)*
    (?:\s+2>>?\s*\S+)?
    (?:\s*(?:\|\||;)\s*(?:true|:|exit\s+0))?
    \s*;?\s*$";

/// The option of a shell after which a line comes.
const A_LINE: &str = "^-[a-z]*c$";

/// Nobody's wrapper is longer.
const LONGEST_SCRIPT: u64 = 64 << 10;

/// What an entry of Hermes' hooks has to do with the bus.
pub(super) fn calls(entry: &Value) -> Calls {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words = shlex::split(command).unwrap_or_default();
    let line = match words.as_slice() {
        [shell, option, line] if shell.ends_with("sh") && matches(A_LINE, option) => line,
        [..] => command,
    };
    if matches(ONLY, line) {
        return Calls::Only;
    }
    let has_a_call = |text: String| matches(CALL, &text);
    let mut scripts = words.iter().filter_map(|word| script(word));
    if matches(CALL, command) || scripts.any(has_a_call) { Calls::AndMore } else { Calls::Nothing }
}

fn matches(pattern: &'static str, text: &str) -> bool {
    static KNOWN: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compiled = |pattern| Regex::new(pattern).ok().map(|regex| (pattern, regex));
        [CALL, ONLY, A_LINE].into_iter().filter_map(compiled).collect()
    });
    KNOWN.iter().any(|(known, regex)| *known == pattern && regex.is_match(text))
}

/// What is in the script that a word names. Where Hermes will stand nobody knows, so only whole paths count.
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

    fn of(command: &str) -> Calls {
        calls(&json!({"command": command}))
    }

    #[test]
    fn nothing_but_a_call_is_known_by_its_words() {
        for command in [
            "hookbus hook hermes",
            "/opt/bin/hookbus --json hook --deadline 20 hermes",
            "sh -c 'command -v hookbus >/dev/null && exec hookbus hook hermes || true'",
            "bash -c 'hookbus hook hermes'",
            "env A=1 timeout 5 ~/bin/hookbus hook hermes",
            "/bin/bash -c 'command -v hookbus &>/dev/null && ~/bin/hookbus hook hermes 2>/dev/null || exit 0'",
        ] {
            assert_eq!(of(command), Calls::Only, "{command}");
        }
    }

    #[test]
    fn what_a_command_may_do_besides_is_not_overlooked() {
        for command in [
            "nice ~/bin/hookbus hook hermes",
            "bash -ec '[ -x /x ] || exit 0; \"${HOOKBUS:-hookbus}\" hook hermes'",
            "sh -c 'tee -a /tmp/x | hookbus hook hermes'",
            "sh -c 'hookbus hook hermes || exit 2'",
            "sh -c 'echo \"$(hookbus hook hermes)\"'",
            "bash -c 'notify-send x & hookbus hook hermes'",
        ] {
            assert_eq!(of(command), Calls::AndMore, "{command}");
        }
    }

    #[test]
    fn what_only_has_the_words_is_no_call() {
        for command in [
            "",
            "hookbus status",
            "hookbus hook gemini",
            "hookbus-guard hook hermes",
            "sh -c 'true # hookbus hook hermes'",
            "sh -c 'echo hookbus >> /tmp/hook; true hermes'",
            "sh -c",
        ] {
            assert_eq!(of(command), Calls::Nothing, "{command}");
        }
    }
}
