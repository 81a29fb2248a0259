//! find: the start paths are read, or deleted; some options write lists to files.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;

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
    for start in &starts {
        uses.file(*start, access, Below::Yes);
    }
    if starts.is_empty() {
        uses.file(Text::literal("."), access, Below::Yes);
    }
}
