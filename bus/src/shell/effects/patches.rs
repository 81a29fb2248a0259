//! Patches: `apply_patch` with its own format, `patch` and `git apply` with unified diffs.

use super::uses::{Below, Uses};
use crate::shell::programs::Reading;
use crate::shell::view::{Access, Invocation};
use crate::shell::word::Word;

/// `apply_patch` gets its patch as an argument or on stdin.
pub(super) fn apply_patch(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    let arguments = invocation.args.iter().chain(&invocation.stdin_text);
    let before = uses.files.len();
    for text in arguments {
        patch_targets(text.as_str(), uses);
    }
    // `apply_patch file`: the patch is not in the line.
    if uses.files.len() == before {
        let files = reading.operands().into_iter().filter(|word| !word.text.contains('\n'));
        uses.reads(files);
    }
}

/// The files that a patch in the format of `apply_patch` names.
fn patch_targets(text: &str, uses: &mut Uses) {
    for line in text.lines() {
        let Some(line) = line.trim().strip_prefix("*** ") else { continue };
        let Some((action, path)) = line.split_once(": ") else { continue };
        let access = match action {
            "Add File" | "Update File" | "Move to" => Access::Write,
            "Delete File" => Access::Delete,
            _ => continue,
        };
        uses.word(Word::literal(path.trim()), access, Below::No);
    }
}

/// `patch [file [patchfile]]`: the file is written; without one those that the patch names.
pub(super) fn patch(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    uses.reads(reading.values("input").chain(words.get(1).copied()));
    if let Some(directory) = reading.value("directory") {
        uses.enter(directory);
    }
    if reading.has("dry-run") {
        return;
    }
    uses.writes(reading.values("output").chain(words.first().copied()));
    uses.writes(reading.values("reject-file"));
    match &invocation.stdin_text {
        Some(text) if words.is_empty() => {
            let strip = reading.value("strip").and_then(|value| value.text.parse().ok());
            diff_targets(text.as_str(), strip.unwrap_or(0), uses);
        }
        // Which files there the patch names is not known.
        None if words.is_empty() => uses.word(Word::literal("."), Access::Write, Below::No),
        Some(_) | None => {}
    }
}

/// The files that a unified diff changes or deletes, without the first `strip` parts of their paths.
pub(super) fn diff_targets(text: &str, strip: usize, uses: &mut Uses) {
    let path_of = |line: &str| {
        let path = line.split('\t').next().unwrap_or(line).trim();
        let stripped = path.splitn(strip + 1, '/').last().unwrap_or(path);
        (path != "/dev/null").then(|| Word::literal(stripped))
    };
    let mut old = None;
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("--- ") {
            old = path_of(path);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            match (path_of(path), old.take()) {
                (Some(new), _) => uses.word(new, Access::Write, Below::No),
                (None, Some(old)) => uses.word(old, Access::Delete, Below::No),
                (None, None) => {}
            }
        }
    }
}
