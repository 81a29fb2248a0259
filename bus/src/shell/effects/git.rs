//! git: paths of the subcommands that touch files, and remotes that are written as URLs.

use super::address::Address;
use super::patches::diff_targets;
use super::uses::{Below, Uses, is_url, looks_like_path};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};
use crate::shell::word::Word;

pub(super) fn git(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    // `-C` counts before the subcommand; behind it `commit -C` is another option.
    let before = reading.arguments.options.iter().filter(|given| given.known == Some("-C ="));
    let directories: Vec<Text<'_>> = before.filter_map(|given| given.value).collect();
    changes_elsewhere(&directories, reading, uses);
    for directory in directories {
        uses.enter(directory);
    }
    if let Some(tree) = reading.value("work-tree") {
        uses.enter(tree);
    }
    let Some(sub) = reading.arguments.sub else { return };
    let name = sub.names.split('|').next().unwrap_or_default();
    match name {
        "clone" => clone(reading, uses),
        "push" | "fetch" | "pull" | "ls-remote" | "remote add" | "remote set-url"
        | "submodule add" | "archive" => remotes(name, reading, uses),
        "checkout" | "restore" => restore(name, reading, uses),
        "rm" | "mv" | "clean" | "add" => paths(name, reading, uses),
        "apply" | "am" => patches(invocation, reading, uses),
        "worktree add" | "init" => {
            uses.writes(reading.operands().into_iter().take(1));
        }
        "worktree remove" | "worktree move" => {
            let paths = reading.operands();
            let mut paths = paths.into_iter();
            uses.files(paths.by_ref().take(1), Access::Delete, Below::Yes);
            uses.writes(paths.take(1));
        }
        "reset" if reading.has("hard") => uses.file(Text::literal("."), Access::Write, Below::Yes),
        "config" => {
            let writes =
                reading.operands().len() > 1 || reading.has("unset") || reading.has("edit");
            let access = if writes { Access::Write } else { Access::Read };
            uses.files(reading.values("file"), access, Below::No);
        }
        "commit" | "tag" | "merge" | "notes add" => {
            uses.reads(reading.values("file").chain(reading.values("template")));
        }
        "format-patch" => uses.writes(reading.values("output-directory")),
        "bundle create" => uses.writes(reading.operands().into_iter().take(1)),
        "log" | "diff" | "show" => diff(reading, uses),
        "blame" | "grep" => {
            let behind = reading.arguments.rest().iter().filter(|operand| operand.behind_dashes);
            behind.for_each(|operand| uses.read(operand.word));
        }
        _ => {}
    }
}

/// Subcommands that change the repository or its files.
const CHANGES: &[&str] = &[
    "commit",
    "add",
    "checkout",
    "reset",
    "merge",
    "rebase",
    "stash",
    "clean",
    "push",
    "pull",
    "rm",
    "mv",
    "apply",
    "am",
    "cherry-pick",
    "revert",
    "switch",
    "restore",
    "worktree",
    "init",
    "gc",
    "filter-branch",
    "update-ref",
    "sparse-checkout",
];

/// `git -C directory commit`: a repository elsewhere is changed.
fn changes_elsewhere(directories: &[Text<'_>], reading: &Reading<'_>, uses: &mut Uses) {
    let mut operands = reading.arguments.operands.iter().map(|operand| operand.word.text);
    let action = operands.next();
    let changes = action.is_some_and(|name| CHANGES.contains(&name));
    // `stash list`, `worktree list`
    if !changes || operands.next().is_some_and(|action| matches!(action, "list" | "show")) {
        return;
    }
    let base = uses.base.clone();
    // Each `-C` starts in the one before it.
    if let Some((last, before)) = directories.split_last() {
        for directory in before {
            uses.enter(*directory);
        }
        if action == Some("clean") {
            uses.file(*last, Access::Write, Below::Yes);
        }
        uses.enter(*last);
        // The directory itself is not written as a whole: it may contain other things, such as a home directory does.
        uses.word(Word::literal(".git"), Access::Write, Below::Yes);
    }
    uses.files(reading.values("work-tree"), Access::Write, Below::Yes);
    uses.files(reading.values("git-dir"), Access::Write, Below::Yes);
    uses.base = base;
}

fn diff(reading: &Reading<'_>, uses: &mut Uses) {
    uses.writes(reading.values("output"));
    let all = reading.has("no-index");
    for operand in reading.arguments.rest().iter().filter(|operand| all || operand.behind_dashes) {
        uses.read(operand.word);
    }
}

/// `git clone URL [directory]`: without a directory the last part of the URL names it.
fn clone(reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    let Some(url) = words.first() else { return };
    remote(*url, Access::Read, uses);
    match words.get(1) {
        Some(directory) => uses.file(*directory, Access::Write, Below::Yes),
        None => {
            let name = url.text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
            let name = name.strip_suffix(".git").unwrap_or(name);
            uses.word(Word::literal(name), Access::Write, Below::Yes);
        }
    }
}

/// A repository: a URL, `user@host:path`, or a directory.
fn remote(word: Text<'_>, access: Access, uses: &mut Uses) {
    // `ext::line` is no address: git runs the line.
    if word.text.starts_with("ext::") {
        return;
    }
    if let Some(path) = word.text.strip_prefix("file://") {
        uses.file(word.part(path), access, Below::Yes);
    } else if is_url(word.text) || !word.to_word().is_known() && !word.text.contains(':') {
        uses.url(word, "");
    } else if let Some(address) = Address::from_remote_path(word.text) {
        uses.address(word, address);
    } else if looks_like_path(word.text) {
        uses.file(word, access, Below::Yes);
    }
}

fn remotes(name: &str, reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    let access = if name == "push" { Access::Write } else { Access::Read };
    let url = match name {
        "remote add" | "remote set-url" => words.get(1),
        "archive" => {
            uses.writes(reading.values("output"));
            reading.values("remote").for_each(|url| remote(url, Access::Read, uses));
            None
        }
        _ => words.first(),
    };
    reading.values("repo").for_each(|url| remote(url, access, uses));
    if name == "submodule add" {
        uses.writes(words.get(1).copied());
    }
    // `origin` is the name of a remote; so is an unknown word, most of the time.
    let Some(url) = url else { return };
    if url.text.contains(['/', ':']) || name.starts_with("remote") || name == "submodule add" {
        remote(*url, access, uses);
    }
}

/// The files that `git checkout` and `git restore` overwrite.
fn restore(name: &str, reading: &Reading<'_>, uses: &mut Uses) {
    let operands = reading.arguments.rest();
    let has_dashes = operands.iter().any(|operand| operand.behind_dashes);
    for operand in operands {
        let text = operand.word.text;
        // `git checkout branch`, `git checkout commit file`: only `.` and what is behind `--` is a file for sure.
        let is_file = name == "restore" || operand.behind_dashes || matches!(text, "." | "./");
        let looks_like_file = !has_dashes && text.contains('.') && !text.contains("..");
        if is_file || (looks_like_file && !reading.has("b") && !reading.has("B")) {
            uses.file(operand.word, Access::Write, Below::Yes);
        }
    }
    if name == "checkout" && reading.has("force") && !has_dashes {
        uses.file(Text::literal("."), Access::Write, Below::Yes);
    }
}

fn paths(name: &str, reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    let dry = reading.has("dry-run");
    match name {
        "rm" if !reading.has("cached") && !dry => {
            let below = Below::from(reading.has("r"));
            uses.files(words, Access::Delete, below);
        }
        "mv" if !dry => {
            let Some((target, sources)) = words.split_last() else { return };
            uses.files(sources.iter().copied(), Access::Delete, Below::Yes);
            uses.file(*target, Access::Write, Below::Yes);
        }
        "clean" if dry => {}
        "clean" if words.is_empty() => uses.file(Text::literal("."), Access::Delete, Below::Yes),
        "clean" => uses.files(words, Access::Delete, Below::Yes),
        "add" => uses.files(words, Access::Read, Below::Yes),
        _ => {}
    }
}

/// `git apply`: the patch is read; the files that it names are written, if it is in the line.
fn patches(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    uses.reads(reading.operands());
    if reading.has("check") || reading.has("stat") || reading.has("cached") {
        return;
    }
    if let Some(text) = &invocation.stdin_text {
        if let Some(directory) = reading.value("directory") {
            uses.enter(directory);
        }
        let strip = reading.value("p").and_then(|value| value.text.parse().ok()).unwrap_or(1);
        diff_targets(text.as_str(), strip, uses);
    }
}
