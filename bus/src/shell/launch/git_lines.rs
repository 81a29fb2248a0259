//! Shell lines that git runs: settings such as `core.pager`, aliases with `!`, `rebase --exec`, `submodule foreach`.

use super::super::follow::{Arg, Origin};
use super::option_lines::values;
use super::options;

/// Options before the subcommand that take the next word.
const GLOBAL: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];

/// How many settings in variables are looked at.
const SETTINGS: usize = 16;

/// The lines in the settings that variables hold: `GIT_CONFIG_KEY_0` and `GIT_CONFIG_VALUE_0`.
pub(super) fn settings(variable: impl Fn(&str) -> Option<String>) -> Vec<(String, Origin)> {
    let numbered = (0..SETTINGS).map_while(|at| {
        let key = variable(&format!("GIT_CONFIG_KEY_{at}"))?;
        let value = variable(&format!("GIT_CONFIG_VALUE_{at}")).unwrap_or_default();
        Some((key, value))
    });
    let parameters = variable("GIT_CONFIG_PARAMETERS").unwrap_or_default();
    let listed = shlex::split(&parameters).unwrap_or_default().into_iter().filter_map(|setting| {
        let (key, value) = setting.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    let lines = numbered.chain(listed).filter_map(|(key, value)| line(&key, &value));
    lines.map(|line| (line, Origin::Line)).collect()
}

/// The lines in the arguments of git.
pub(super) fn lines(args: &[Arg]) -> Vec<(String, Origin)> {
    let mut found = Vec::new();
    let at = options::leading(args, GLOBAL);
    let (global, rest) = args.split_at(at);
    found.extend(values(global, &["-c"]).into_iter().filter_map(setting));
    let Some((sub, rest)) = rest.split_first() else { return found };
    match (sub.word.as_str(), rest.first().map(|arg| arg.word.as_str()).unwrap_or_default()) {
        ("rebase", _) => found.extend(values(rest, &["-x", "--exec"])),
        ("grep", _) => found.extend(values(rest, &["-O", "--open-files-in-pager"])),
        ("difftool", _) => found.extend(values(rest, &["-x", "--extcmd"])),
        ("submodule", "foreach") => found.push(behind(rest)),
        ("bisect", "run") => found.extend(quoted(rest)),
        ("filter-branch", _) => {
            let filters = [
                "--tree-filter",
                "--index-filter",
                "--env-filter",
                "--msg-filter",
                "--commit-filter",
                "--parent-filter",
                "--tag-name-filter",
                "--setup",
            ];
            found.extend(values(rest, &filters));
        }
        ("config", _) => found.extend(configured(rest)),
        (
            "clone" | "fetch" | "pull" | "push" | "ls-remote" | "remote" | "submodule" | "archive"
            | "fetch-pack" | "send-pack",
            _,
        ) => {
            found.extend(values(rest, &["--upload-pack", "--receive-pack", "--exec"]));
            if sub.word.as_str() == "clone" {
                found.extend(values(rest, &["-c", "--config"]).into_iter().filter_map(setting));
            }
            let helpers = rest.iter().filter_map(|arg| {
                let line = arg.word.as_str().strip_prefix("ext::")?;
                Some((line.to_owned(), arg.origin))
            });
            found.extend(helpers);
        }
        _ => {}
    }
    found
}

/// The words behind `run`, which git starts as they are, as a line.
fn quoted(rest: &[Arg]) -> Option<(String, Origin)> {
    let words: Vec<&str> = rest.get(1..)?.iter().map(|arg| arg.word.as_str()).collect();
    shlex::try_join(words.iter().copied()).ok().map(|line| (line, Origin::Line))
}

/// The words behind `foreach` and its options, as a line.
fn behind(rest: &[Arg]) -> (String, Origin) {
    let rest = rest.get(1..).unwrap_or_default();
    options::joined(rest.get(options::leading(rest, &[])..).unwrap_or_default())
}

/// `git config key value`.
fn configured(rest: &[Arg]) -> Option<(String, Origin)> {
    let at = rest.iter().position(|arg| {
        let word = arg.word.as_str();
        !word.starts_with('-') && word.contains('.') && !word.contains('/')
    })?;
    let (key, value) = (rest.get(at)?, rest.get(at + 1)?);
    let line = line(key.word.as_str(), value.word.as_str())?;
    Some((line, value.origin))
}

/// The line in `key=value`.
fn setting((text, origin): (String, Origin)) -> Option<(String, Origin)> {
    let (key, value) = text.split_once('=')?;
    Some((line(key, value)?, origin))
}

/// The line that a setting holds.
fn line(key: &str, value: &str) -> Option<String> {
    let key = key.to_lowercase();
    let (section, name) = (key.split('.').next()?, key.rsplit('.').next()?);
    let is_line = match (section, name) {
        // Without `!` these name a subcommand or a helper of git.
        ("alias", _) | ("credential", "helper") => {
            return value.strip_prefix('!').map(str::to_owned);
        }
        ("core", name) => {
            matches!(name, "pager" | "editor" | "sshcommand" | "askpass" | "gitproxy" | "fsmonitor")
        }
        ("pager", _) => !matches!(value, "true" | "false"),
        ("sequence", "editor") | ("diff", "external" | "command" | "textconv") => true,
        ("difftool" | "mergetool", "cmd") | ("merge", "driver") => true,
        ("filter", "clean" | "smudge" | "process") => true,
        ("gpg", "program") | ("interactive", "difffilter") => true,
        ("uploadpack", "packobjectshook") => true,
        _ => false,
    };
    (is_line && !matches!(value, "true" | "false")).then(|| value.to_owned())
}
