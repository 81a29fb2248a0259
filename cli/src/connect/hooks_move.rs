//! Moving the shell hooks of Hermes' `config.yaml` to `hookbus.yaml`, where they mean the same. Only hooks that the user
//! has approved in Hermes are moved: Hermes does not run the others either.

use std::path::Path;

use hookbus::config::HooksFile;
use serde_json::{Value, json};

use super::shell_hooks::{self, ShellHook};
use super::yaml::{self, YamlError};

/// A hook that is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MovedHook {
    pub(super) hook: ShellHook,
    /// When its script was last modified, as of the approval in Hermes.
    pub(super) script_time: Option<String>,
}

/// The configuration without the approved hooks, and those hooks. `allowlist` is the text of Hermes' approvals.
pub(super) fn take_out(
    config: &str,
    allowlist: Option<&str>,
    remarks: &mut Vec<String>,
) -> Result<(String, Vec<MovedHook>), YamlError> {
    let file = yaml::read(config)?;
    let accepts_all = file.get("hooks_auto_accept") == Some(&Value::Bool(true));
    let allowlist: Value =
        allowlist.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let approvals =
        allowlist.get("approvals").and_then(Value::as_array).cloned().unwrap_or_default();
    let (mut paths, mut moved) = (Vec::new(), Vec::new());
    for (path, hook) in shell_hooks::located(&file) {
        let Some(command) = hook.entry.get("command").and_then(Value::as_str) else { continue };
        let is_its =
            |row: &&Value| row["event"] == json!(hook.event) && row["command"] == json!(command);
        let approval = approvals.iter().find(is_its);
        if let Some(why) = obstacle(&hook) {
            remarks.push(format!("`{command}` on {} stays in Hermes: {why}", hook.event));
        } else if accepts_all || approval.is_some() {
            paths.push(path);
            let time = approval.and_then(|row| row["script_mtime_at_approval"].as_str());
            let script_time = time.map(str::to_owned);
            moved.push(MovedHook { hook, script_time });
        } else {
            remarks.push(format!(
                "`{command}` on {} stays in Hermes: you have not approved it there yet",
                hook.event
            ));
        }
    }
    Ok((yaml::remove(config, &paths)?, moved))
}

/// Why the hook would not work in `hookbus.yaml`, if so: moving it would switch a guard off.
fn obstacle(hook: &ShellHook) -> Option<String> {
    let text = json!({"hooks": {&hook.event: [&hook.entry]}}).to_string();
    match HooksFile::parse(&text, Path::new("/")) {
        Err(problem) => Some(problem.message),
        Ok(file) if file.hooks.iter().any(|hook| !hook.is_broken()) => None,
        Ok(file) => Some(file.problems.into_iter().map(|problem| problem.message).collect()),
    }
}

/// The text of `hookbus.yaml` with these hooks behind the ones that it has.
pub(super) fn put_in(text: &str, moved: &[MovedHook]) -> Result<String, YamlError> {
    let add = |text: String, MovedHook { hook, .. }: &MovedHook| {
        yaml::append(&text, "hooks", &hook.event, &hook.entry)
    };
    moved.iter().try_fold(text.to_owned(), add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\nhooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: ~/a.sh\n    - command: ~/b.sh\nmodel: x\n";

    #[test]
    fn approved_hooks_move_and_the_others_stay() {
        let allowed =
            json!({"approvals": [{"event": "pre_tool_call", "command": "~/a.sh"}]}).to_string();
        let mut remarks = Vec::new();
        let (left, moved) = take_out(CONFIG, Some(&allowed), &mut remarks).expect("an edit");
        assert_eq!(left, "# mine\nhooks:\n  pre_tool_call:\n    - command: ~/b.sh\nmodel: x\n");
        assert_eq!(remarks.len(), 1);
        for (before, after) in [
            (
                "",
                "hooks:\n  pre_tool_call:\n    - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n",
            ),
            (
                "hooks:\n  pre_tool_call:\n  - rule: {block: x}\n  # next\n  tool.after: []\nnats: {url: x}\n",
                "hooks:\n  pre_tool_call:\n  - rule: {block: x}\n  - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n  # next\n  tool.after: []\nnats: {url: x}\n",
            ),
            (
                "hooks:\n    tool.after: [] # none\n\nnats: {url: x}\n",
                "hooks:\n    tool.after: [] # none\n    pre_tool_call:\n      - {\"matcher\":\"terminal\",\"command\":\"~/a.sh\"}\n\nnats: {url: x}\n",
            ),
        ] {
            assert_eq!(put_in(before, &moved).expect("an edit"), after);
        }
    }
}
