//! find: the start paths are read, or deleted; some options write lists to files.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;
use crate::shell::word::{UNKNOWN, Word};

pub(super) fn find(reading: &Reading<'_>, uses: &mut Uses) {
    let access = if reading.has("delete") { Access::Delete } else { Access::Read };
    for option in ["fprint", "fprint0", "fls", "fprintf"] {
        uses.writes(reading.values(option));
    }
    for option in ["newer", "anewer", "cnewer", "samefile", "files0-from"] {
        uses.reads(reading.values(option));
    }
    // Signs of the expression, and the format of `-fprintf file format`.
    let is_sign = |text: &str| matches!(text, "(" | ")" | "!" | "," | "\\(" | "\\)" | "\\!");
    let operands = reading.arguments.rest().iter().map(|operand| operand.word);
    let has_format = reading.has("fprintf");
    let starts: Vec<Text<'_>> = operands
        .filter(|word| !is_sign(word.text) && (!has_format || !word.text.contains('%')))
        .collect();
    // Files of certain names are deleted, wherever below the start they are: which ones is not known.
    let is_some = access == Access::Delete && SELECTIVE.iter().any(|filter| reading.has(filter));
    let starts = if starts.is_empty() { vec![Text::literal(".")] } else { starts };
    for start in &starts {
        if is_some {
            let word = Word::literal(format!("{}/{UNKNOWN}", start.text.trim_end_matches('/')));
            uses.word(word, access, Below::Yes);
        } else {
            uses.file(*start, access, Below::Yes);
        }
    }
}

/// Tests that choose files by name or age. Those that hold for most files are no choice.
const SELECTIVE: [&str; 12] = [
    "name",
    "iname",
    "path",
    "ipath",
    "wholename",
    "regex",
    "iregex",
    "mtime",
    "mmin",
    "empty",
    "newer",
    "size",
];
