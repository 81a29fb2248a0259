//! Programs whose first operand is an expression and whose others are files: grep, rg, fd, jq.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};

/// grep and its like. Without files a recursive one searches the current directory.
pub(super) fn grep(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    let always_recursive = matches!(reading.name, "rg" | "ag" | "ack");
    // `-r` is `--replace` in rg, so its long name decides.
    let below = Below::from(
        always_recursive || reading.has("recursive") || reading.has("dereference-recursive"),
    );
    uses.reads(reading.values("file"));
    let in_option = ["regexp", "file", "files", "type-list"].iter().any(|name| reading.has(name));
    let files: Vec<Text<'_>> = reading.arguments.rest().iter().map(|each| each.word).collect();
    let files = files.get(usize::from(!in_option)..).unwrap_or_default();
    for file in files {
        uses.file(*file, Access::Read, below);
    }
    let has_stdin = !invocation.stdin_from.is_empty() || invocation.stdin_text.is_some();
    if files.is_empty() && below == Below::Yes && !has_stdin {
        uses.file(Text::literal("."), Access::Read, below);
    }
}

/// fd and jq: an expression, then files.
pub(super) fn expression_first(reading: &Reading<'_>, uses: &mut Uses) {
    let below = Below::from(reading.name == "fd");
    for option in ["from-file", "slurpfile", "rawfile", "search-path", "base-directory"] {
        uses.files(reading.values(option), Access::Read, below);
    }
    let skipped = usize::from(!reading.has("from-file"));
    if reading.has("args") || reading.has("jsonargs") {
        return;
    }
    for operand in reading.arguments.rest().iter().skip(skipped) {
        uses.file(operand.word, Access::Read, below);
    }
}
