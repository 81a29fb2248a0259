//! find: the start paths are read, or deleted; some options write lists to files.

use super::uses::{Below, Uses};
use crate::shell::launch::find_selection;
use crate::shell::programs::{Reading, Text};
use crate::shell::view::{Access, Invocation};
use crate::shell::word::Word;

pub(super) fn find(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
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
    let selection = find_selection(invocation.args.iter().map(Word::as_str));
    let starts = if starts.is_empty() { vec![Text::literal(".")] } else { starts };
    for start in &starts {
        if access == Access::Delete {
            uses.word(selection.below(&start.to_word()), access, Below::Yes);
        } else {
            uses.file(*start, access, Below::Yes);
        }
    }
}
