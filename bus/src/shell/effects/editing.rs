//! Programs that run a script on files, or edit them: sed, awk, perl, vim, formatters, interpreters.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;

/// sed, awk, perl, ruby, yq: the first operand is the script, unless an option has it; `-i` writes the files.
pub(super) fn editing(reading: &Reading<'_>, uses: &mut Uses) {
    let awk_writes = reading.values("include").any(|value| value.text == "inplace");
    let (script_options, in_place): (&[&str], bool) = match reading.name {
        "sed" => (&["e", "f"], reading.has("i")),
        "awk" => (&["f", "e", "E"], awk_writes),
        "perl" => (&["e", "E"], reading.has("i")),
        "ruby" => (&["e"], reading.has("i")),
        _ => (&["from-file"], reading.has("inplace")),
    };
    let script_is_file = matches!(reading.name, "perl" | "ruby");
    let in_option = script_options.iter().any(|name| reading.has(name));
    if matches!(reading.name, "sed" | "awk") {
        uses.reads(reading.values("file"));
    }
    let mut files = reading.operands();
    // macOS: `sed -i '' script file`.
    if reading.name == "sed" && in_place && files.first().is_some_and(|first| first.text.is_empty())
    {
        files.remove(0);
    }
    let skipped = usize::from(!in_option);
    if script_is_file && !in_option {
        uses.reads(files.iter().take(1).copied());
        // What follows are the script's own arguments.
        return;
    }
    let access = if in_place { Access::Write } else { Access::Read };
    for file in files.into_iter().skip(skipped) {
        // awk: `name=value` sets a variable.
        if reading.name != "awk" || !file.text.contains('=') {
            uses.file(file, access, Below::No);
        }
    }
}

/// Every file may be written; `+10` and `+command` are not files.
pub(super) fn vim(reading: &Reading<'_>, uses: &mut Uses) {
    let reads_only = reading.written == "view" || reading.has("R");
    let access = if reads_only { Access::Read } else { Access::Write };
    for file in reading.operands().into_iter().filter(|file| !file.text.starts_with('+')) {
        uses.file(file, access, Below::No);
    }
    for option in ["S", "u"] {
        uses.reads(reading.values(option));
    }
    uses.writes(reading.values("w").chain(reading.values("W")));
}

/// An interpreter reads its script, unless an option says what to run.
pub(super) fn script(reading: &Reading<'_>, uses: &mut Uses) {
    let code_options: &[&str] = match reading.name {
        "python" => &["c", "m"],
        "node" | "tsx" | "ts-node" | "lua" => &["e", "p"],
        "php" => &["r", "S", "B", "R"],
        "deno" => &[],
        _ => &["c", "s"],
    };
    if reading.name == "php" {
        uses.reads(reading.values("file"));
    }
    for option in ["rcfile", "require", "import", "env-file"] {
        uses.reads(reading.values(option));
    }
    served(reading, uses);
    let in_operand = reading.name == "deno" && reading.is_sub("eval");
    if in_operand || code_options.iter().any(|option| reading.has(option)) {
        return;
    }
    if let Some(script) = reading.operands().first().filter(|script| !script.text.contains("://")) {
        uses.read(*script);
    } else if let Some(url) = reading.operands().first() {
        uses.url(*url, "");
    }
}

/// `python -m http.server --directory dir`, `php -S address -t dir`: everybody who asks can read all files there.
fn served(reading: &Reading<'_>, uses: &mut Uses) {
    let here = Text::literal(".");
    let directory = match reading.name {
        "python" if reading.value("m").is_some_and(|module| module.text == "http.server") => {
            let words = reading.operands();
            let option = |word: &Text<'_>| matches!(word.text, "-d" | "--directory");
            let apart = words.iter().position(option).and_then(|at| words.get(at + 1)).copied();
            let joined = words.iter().find_map(|word| {
                word.text.strip_prefix("--directory=").map(|path| word.part(path))
            });
            apart.or(joined).unwrap_or(here)
        }
        "php" if reading.has("S") => reading.value("t").unwrap_or(here),
        _ => return,
    };
    uses.file(directory, Access::Read, Below::Yes);
}

/// A formatter reads, and writes with `--write` or `--fix`. Some write unless told otherwise.
pub(super) fn formatter(reading: &Reading<'_>, uses: &mut Uses) {
    let by_default = matches!(reading.name, "black" | "isort" | "rustfmt") && !reading.has("check");
    let writes = by_default || reading.has("write");
    let access = if writes { Access::Write } else { Access::Read };
    for path in reading.operands() {
        if !matches!(path.text, "check" | "format" | "lint") {
            uses.file(path, access, Below::Yes);
        }
    }
}
