//! Claude Code's events about worktrees, where a hook replaces what the agent does: `hookbus hook claude` makes the
//! worktree as Claude Code does without a hook, in a real git repository.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookbus_tests::home::{Home, HookOutput, feed};
use serde_json::json;

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(words)
        .current_dir(folder)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with one commit.
fn repository(home: &Home) -> PathBuf {
    let folder = home.work().join("repo");
    fs::create_dir_all(folder.join("sub")).expect("a directory");
    git(&folder, &["init", "--quiet"]);
    fs::write(folder.join("file.txt"), "committed\n").expect("a file");
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "--message", "first"]);
    folder
}

fn claude(home: &Home, cwd: &Path, event: &serde_json::Value) -> HookOutput {
    let mut command = home.command(["hook", "claude"]);
    // A repository's `.env` could set this, and git would work on another repository.
    command.current_dir(cwd).env("GIT_DIR", "/nonexistent");
    feed(command, event.to_string().as_bytes())
}

fn create(home: &Home, cwd: &Path, name: &str) -> HookOutput {
    claude(
        home,
        cwd,
        &json!({"hook_event_name": "WorktreeCreate", "session_id": "s", "name": name}),
    )
}

#[test]
fn the_worktree_is_where_claude_code_would_have_made_it() {
    let home = Home::new();
    let repository = repository(&home);
    let output = create(&home, &repository.join("sub"), "labwt");
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    let path = PathBuf::from(output.stdout.trim_end());
    assert_eq!(path, repository.canonicalize().expect("a path").join(".claude/worktrees/labwt"));
    assert_eq!(git(&path, &["branch", "--show-current"]), "worktree-labwt");
    assert_eq!(fs::read_to_string(path.join("file.txt")).expect("checked out"), "committed\n");
    assert!(git(&repository, &["worktree", "list"]).contains("labwt"));
    let again = create(&home, &repository, "labwt");
    assert_eq!((again.exit, again.stdout), (Some(0), output.stdout), "the one that is there");
    let inside = create(&home, &path, "second");
    assert!(inside.stdout.ends_with("repo/.claude/worktrees/second\n"), "{}", inside.stdout);
    assert_eq!(home.log(&["--name", "WorktreeCreate"]).len(), 3, "each is recorded");
}

#[test]
fn a_worktree_starts_from_the_default_branch_of_the_remote() {
    let home = Home::new();
    let origin = repository(&home);
    let clone = home.work().join("clone");
    git(&home.work(), &["clone", "--quiet", &origin.to_string_lossy(), "clone"]);
    let default = git(&clone, &["rev-parse", "origin/HEAD"]);
    git(&clone, &["commit", "--quiet", "--allow-empty", "--message", "local"]);
    let path = PathBuf::from(create(&home, &clone, "fresh").stdout.trim_end());
    assert_eq!(git(&path, &["rev-parse", "HEAD"]), default);
}

#[test]
fn a_worktree_that_cannot_be_made_is_an_error_with_a_reason_and_never_silence() {
    let home = Home::new();
    let repository = repository(&home);
    for (cwd, name, words) in [
        (home.work(), "labwt", "as Claude Code does without a hook"),
        (repository.clone(), "../../outside", "cannot be the name of a worktree"),
        (repository.clone(), "-b", "cannot be the name of a worktree"),
        (repository.clone(), "", "cannot be the name of a worktree"),
    ] {
        let output = create(&home, &cwd, name);
        assert_eq!((output.exit, output.stdout.as_str()), (Some(1), ""), "{name}");
        assert!(output.stderr.contains(words), "{name}: {}", output.stderr);
    }
    assert_eq!(home.log(&["--name", "WorktreeCreate"]).len(), 4, "each is recorded");
}

#[test]
fn a_worktree_is_removed_unless_work_would_be_lost() {
    let home = Home::new();
    let repository = repository(&home);
    let remove = |path: &Path| {
        let event = json!({
            "hook_event_name": "WorktreeRemove", "session_id": "s", "worktree_path": path,
        });
        claude(&home, path, &event)
    };
    let make = |name: &str| {
        let path = PathBuf::from(create(&home, &repository, name).stdout.trim_end());
        assert!(path.is_absolute(), "{name}: {path:?}");
        path
    };
    let (clean, edited, foreign) = (make("clean"), make("edited"), home.work().join("foreign"));
    fs::write(edited.join("new.txt"), "work\n").expect("a file");
    git(&repository, &["worktree", "add", "--quiet", &foreign.to_string_lossy()]);
    assert_eq!(remove(&clean).exit, Some(0));
    assert!(!clean.exists() && !git(&repository, &["branch"]).contains("worktree-clean"));
    let output = remove(&edited);
    assert!(output.exit == Some(1) && output.stderr.contains("stays"), "{}", output.stderr);
    assert!(edited.join("new.txt").exists());
    assert_eq!(remove(&foreign).exit, Some(0));
    assert!(foreign.exists(), "another program made it");
}
