//! Worktrees for Claude Code. A hook at `WorktreeCreate` replaces the agent's own `git worktree add`: Claude takes the
//! path that the hook prints, and without one the worktree fails. So `hookbus hook claude` does there what Claude
//! itself does without a hook, and at `WorktreeRemove` takes away what it made, as far as nothing is lost with it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use hookbus::json::read_leniently;
use hookbus::sys::child_signal::make_children_waitable;
use serde_json::Value;

/// Where Claude Code keeps its worktrees, below the repository.
const FOLDER: &str = ".claude/worktrees";

/// What an event of Claude Code asks of its hook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Make a worktree with this name.
    Create(String),
    /// Remove the worktree at this path.
    Remove(PathBuf),
}

impl Request {
    /// The request in a payload of Claude Code, if it is about a worktree.
    pub(crate) fn of(payload: &[u8]) -> Option<Self> {
        // Most payloads are large and about something else.
        let text = std::str::from_utf8(payload).ok().filter(|text| text.contains("Worktree"))?;
        let payload = read_leniently(text.as_bytes()).ok()?;
        let field = |key: &str| payload.get(key).and_then(Value::as_str);
        match field("hook_event_name")? {
            "WorktreeCreate" => Some(Self::Create(field("name").unwrap_or_default().to_owned())),
            "WorktreeRemove" => Some(Self::Remove(PathBuf::from(field("worktree_path")?))),
            _ => None,
        }
    }

    /// Does it; returns what Claude Code reads from stdout.
    pub(crate) fn fulfil(&self, cwd: &Path) -> Result<String> {
        match self {
            Self::Create(name) => {
                let path = create(name, cwd)?;
                Ok(format!("{}\n", path.to_str().context("the path is not UTF-8")?))
            }
            Self::Remove(path) => remove(path, cwd).map(|()| String::new()),
        }
    }
}

/// Makes the worktree `name`, or finds the one that is there already; returns its path.
fn create(name: &str, cwd: &Path) -> Result<PathBuf> {
    // The name becomes a path and a branch, and it comes from the agent.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        bail!("`{name}` cannot be the name of a worktree; use letters, digits, `.`, `_` and `-`");
    }
    let path = root(cwd)?.join(FOLDER).join(name);
    if path.join(".git").exists() {
        return Ok(path);
    }
    let branch = format!("worktree-{name}");
    let is_known = |reference: &str| {
        git(cwd, ["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")]).is_ok()
    };
    let place = path.as_os_str();
    let add = ["worktree", "add", "--quiet"].map(OsStr::new);
    if is_known(&format!("refs/heads/{branch}")) {
        git(cwd, add.into_iter().chain([place, OsStr::new(&branch)]))?;
        return Ok(path);
    }
    // As Claude Code does it: from the default branch of the remote, else from here.
    let base = if is_known("refs/remotes/origin/HEAD") { "origin/HEAD" } else { "HEAD" };
    let new = ["--no-track", "-b", &branch].map(OsStr::new);
    git(cwd, add.into_iter().chain(new).chain([place, OsStr::new(base)]))?;
    Ok(path)
}

/// Removes a worktree that [`create`] made. Git refuses if files in it would be lost; a branch with commits of its own
/// stays.
fn remove(path: &Path, cwd: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| folder.ends_with(FOLDER));
    let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    let (Some(folder), true) = (folder, is_plain) else {
        return Ok(()); // made by another program
    };
    // Not from inside of the worktree, and whether or not it is still there.
    let repository = folder.ancestors().nth(2).unwrap_or(cwd);
    if path.is_dir() {
        git(
            repository,
            ["worktree", "remove"].map(OsStr::new).into_iter().chain([path.as_os_str()]),
        )
        .context("the worktree stays; remove it with `git worktree remove --force`")?;
    }
    let branch = format!("worktree-{}", path.file_name().unwrap_or_default().to_string_lossy());
    if let Err(error) = git(repository, ["branch", "--quiet", "--delete", &branch]) {
        tracing::debug!(%error, "the branch stays");
    }
    Ok(())
}

/// The main worktree of the repository that `cwd` is in.
fn root(cwd: &Path) -> Result<PathBuf> {
    let common = git(cwd, ["rev-parse", "--path-format=absolute", "--git-common-dir"])
        .context("hookbus makes worktrees with git, as Claude Code does without a hook")?;
    let common = PathBuf::from(common.trim_end());
    let root = common.parent().filter(|_| common.ends_with(".git"));
    Ok(root.context("the repository has no working directory of its own")?.to_owned())
}

/// Runs git without the variables that could make it another repository or run other programs.
fn git<I: AsRef<OsStr>>(cwd: &Path, words: impl IntoIterator<Item = I>) -> Result<String> {
    let mut command = Command::new("git");
    command.args(words).current_dir(cwd).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    make_children_waitable();
    let output = command.output().context("git cannot be started; is it installed?")?;
    if !output.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_events_about_worktrees_ask_for_something() {
        let create = br#"{"hook_event_name": "WorktreeCreate", "name": "a"}"#;
        assert_eq!(Request::of(create), Some(Request::Create("a".to_owned())));
        let remove = br#"{"hook_event_name": "WorktreeRemove", "worktree_path": "/w"}"#;
        assert_eq!(Request::of(remove), Some(Request::Remove(PathBuf::from("/w"))));
        let other = br#"{"hook_event_name": "PreToolUse", "tool_name": "EnterWorktree"}"#;
        assert_eq!((Request::of(other), Request::of(b"Worktree")), (None, None));
    }
}
