//! Whether a shell hook that the user wrote for an agent calls the bus: directly, in `sh -c '…'`, or in a script that it
//! names. Beside what `connect` installs, its events would arrive twice. A command is only removed if its form shows that
//! it does nothing else; any other has to be changed by the user.

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

/// A call anywhere in a line, except behind a `#`. `AGENT` stands for the name of the agent, here and below.
const CALL: &str =
    r#"(?m)^[^#\n]*?(?:^|[^\w.#])hookbus["'}]*\s[^\n;|&]*?\bhook\s[^\n;|&]*?\bAGENT\b"#;

/// A line that is only a call: perhaps on condition that the program exists, and perhaps with its exit code ignored.
const ONLY: &str = r"(?x)^\s*
    (?:command\s+-v\s+\S+\s*(?:&?>\s*/dev/null)?(?:\s+2>&1)?\s*&&\s*)?
    (?:exec\s+)?
    (?:(?:/usr/bin/)?env\s+)?(?:\w+=\S*\s+)*(?:timeout\s+[\d.]+[smhd]?\s+)?
    (?:\S*/)?hookbusOPTIONS\s+hookOPTIONS\s+AGENTOPTIONS
    (?:\s+2>>?\s*\S+)?
    (?:\s*(?:\|\||;)\s*(?:true|:|exit\s+0))?
    \s*;?\s*$";

/// A home that a call names; another form (`~`, `$HOME`) depends on the agent's environment.
const HOME: &str = r#"\s--home[=\s]\s*["']?(/[^\s"';|&<>]*)"#;

/// Options, each with a number, a policy or a path behind it if it takes one.
const OPTIONS: &str = r#"(?:\s+-\S+(?:\s+(?:[\d.]+|allow|block|["']?(?:[/~]|\$\{?\w)[^\s;|&<>()`]*|'[^']*'|"[^"$`]*"))?)*"#;

/// The option of a shell that takes a command line.
const SHELL_OPTION: &str = "^-[a-z]*c$";

/// How much of a script is searched for a call.
const LONGEST_SCRIPT: u64 = 64 << 10;

/// The expressions for one agent.
struct Patterns {
    agent: &'static str,
    call: Regex,
    only: Regex,
    shell_option: Regex,
    home: Regex,
}

static PATTERNS: LazyLock<Vec<Patterns>> = LazyLock::new(|| {
    let compiled = |agent| {
        let of_agent =
            |text: &str| Regex::new(&text.replace("OPTIONS", OPTIONS).replace("AGENT", agent)).ok();
        let (call, only) = (of_agent(CALL)?, of_agent(ONLY)?);
        let (shell_option, home) = (of_agent(SHELL_OPTION)?, of_agent(HOME)?);
        Some(Patterns { agent, call, only, shell_option, home })
    };
    ["hermes", "gemini"].into_iter().filter_map(compiled).collect()
});

/// Whether a hook of `agent` calls the bus.
pub(super) fn bus_call(entry: &Value, agent: &str) -> BusCall {
    let Some(patterns) = PATTERNS.iter().find(|patterns| patterns.agent == agent) else {
        return BusCall::No;
    };
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words = shlex::split(command).unwrap_or_default();
    let line = match words.as_slice() {
        [shell, option, line]
            if shell.ends_with("sh") && patterns.shell_option.is_match(option) =>
        {
            line
        }
        [..] => command,
    };
    if patterns.only.is_match(line) {
        return BusCall::Only;
    }
    let has_call = |text: String| patterns.call.is_match(&text);
    let mut scripts = words.iter().filter_map(|word| script(word));
    let calls = patterns.call.is_match(command) || scripts.any(has_call);
    if calls { BusCall::WithOtherWork } else { BusCall::No }
}

/// The home that each call of `agent` in an entry names; none if it does not name one.
pub(super) fn homes_called(entry: &Value, agent: &str) -> Vec<Option<PathBuf>> {
    let Some(patterns) = PATTERNS.iter().find(|patterns| patterns.agent == agent) else {
        return Vec::new();
    };
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let words = shlex::split(command).unwrap_or_default();
    let texts = std::iter::once(command.to_owned()).chain(words.iter().filter_map(|it| script(it)));
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let calls = lines.iter().filter(|line| patterns.call.is_match(line));
    let home = |line: &String| {
        let named = patterns.home.captures(line)?.get(1)?;
        Some(PathBuf::from(named.as_str()))
    };
    calls.map(home).collect()
}

/// The text of the script that a word names. The agent's working directory is not known, so only absolute paths count.
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
        bus_call(&json!({"command": command}), "hermes")
    }

    #[test]
    fn the_name_of_the_agent_counts_and_so_do_options_with_values() {
        for (command, expected) in [
            ("hookbus hook gemini", BusCall::Only),
            ("hookbus --home ~/bus hook gemini --deadline 5", BusCall::Only),
            ("hookbus hook gemini --home '/my bus' --on-failure block", BusCall::Only),
            ("command -v hookbus >/dev/null && exec hookbus hook gemini || true", BusCall::Only),
            ("sh -c 'hookbus hook gemini'", BusCall::Only),
            ("hookbus hook gemini --home \"$(id)\"", BusCall::WithOtherWork),
            ("hookbus hook hermes", BusCall::No),
        ] {
            assert_eq!(bus_call(&json!({"command": command}), "gemini"), expected, "{command}");
        }
    }

    #[test]
    fn a_command_that_only_calls_the_bus_is_recognised() {
        for command in [
            "hookbus hook hermes",
            "/opt/bin/hookbus --json hook --deadline 20 hermes",
            "sh -c 'command -v hookbus >/dev/null && exec hookbus hook hermes || true'",
            "bash -c 'hookbus hook hermes'",
            "/opt/bin/hookbus hook hermes --home /home/me/.hookbus --on-failure block --deadline 20",
            "hookbus --home \"/home/me/.hookbus\" hook hermes",
            "env A=1 timeout 5 ~/bin/hookbus hook hermes",
            "/bin/bash -c 'command -v hookbus &>/dev/null && ~/bin/hookbus hook hermes 2>/dev/null || exit 0'",
        ] {
            assert_eq!(of(command), BusCall::Only, "{command}");
        }
    }

    #[test]
    fn the_home_that_a_call_names_is_found() {
        let homes = |command: &str| homes_called(&json!({"command": command}), "hermes");
        let named = || vec![Some(PathBuf::from("/home/me/.hookbus"))];
        assert_eq!(
            homes("hookbus hook hermes --home /home/me/.hookbus --on-failure block"),
            named()
        );
        assert_eq!(homes("sh -c 'hookbus --home=/home/me/.hookbus hook hermes || true'"), named());
        for command in ["hookbus hook hermes", "hookbus hook hermes --home ~/.hookbus"] {
            assert_eq!(homes(command), [None], "{command}");
        }
        assert_eq!(homes("hookbus status"), []);
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
