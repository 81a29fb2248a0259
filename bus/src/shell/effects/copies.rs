//! mv, cp, ln, install; and what changes files without reading them: shred, mktemp, chmod and its like.

use super::uses::{Below, Uses};
use crate::shell::programs::{OptionName, Reading};
use crate::shell::view::Access;
use crate::shell::word::Word;

/// The sources are read, or moved away; the last operand is written, or the directory of `-t`.
pub(super) fn copies(reading: &Reading<'_>, uses: &mut Uses) {
    let all = reading.operands();
    if reading.name == "install" && reading.has("directory") {
        return uses.writes(all);
    }
    let directory = reading.value("target-directory");
    let (sources, target) = match (directory, all.split_last()) {
        (Some(_), _) => (all.as_slice(), directory),
        // `ln x` makes a link to x here.
        (None, Some((only, []))) if reading.name == "ln" => {
            let name = only.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            (all.as_slice(), Some(only.part(name)))
        }
        (None, Some((only, []))) => (std::slice::from_ref(only), None),
        (None, Some((target, sources))) => (sources, Some(*target)),
        (None, None) => return,
    };
    let (access, below) = match reading.name {
        "mv" => (Access::Delete, Below::Yes),
        "cp" => (Access::Read, Below::from(reading.has("r") || reading.has("a"))),
        _ => (Access::Read, Below::No),
    };
    for source in sources {
        uses.file(*source, access, below);
    }
    if let Some(target) = target {
        uses.file(target, Access::Write, below);
    }
}

/// Overwrites; with `-u` it also removes.
pub(super) fn shred(reading: &Reading<'_>, uses: &mut Uses) {
    let removes = reading.has("u") || reading.has("remove");
    let access = if removes { Access::Delete } else { Access::Write };
    for path in reading.operands() {
        uses.file(path, access, Below::No);
    }
}

/// Makes a file or a directory, in `/tmp` if no path is given.
pub(super) fn mktemp(reading: &Reading<'_>, uses: &mut Uses) {
    let template = reading.operands().first().copied();
    let in_temporary = reading.has("t") || reading.has("tmpdir");
    match template {
        Some(template) if !in_temporary => uses.write(template),
        _ => {
            let directory = reading.value("tmpdir").map_or("/tmp", |directory| directory.text);
            let name = template.map_or("tmp.XXXXXXXXXX", |template| template.text);
            uses.word(Word::literal(format!("{directory}/{name}")), Access::Write, Below::No);
        }
    }
}

/// chmod and its like: the first operand is a mode or an owner, unless an option says it.
pub(super) fn modes(reading: &Reading<'_>, uses: &mut Uses) {
    let below = Below::from(reading.has("R") || reading.has("recursive"));
    if let Some(reference) = reading.value("reference") {
        uses.read(reference);
    }
    let is_mode =
        |name: OptionName<'_>| matches!(name, OptionName::Short(c) if "rwxXst".contains(c));
    let dashed_mode = reading.arguments.options.iter().any(|given| {
        // `chmod -x file`: the mode looks like an option.
        reading.name == "chmod" && given.known.is_none() && is_mode(given.name)
    });
    let skipped = match reading.name {
        "chattr" => {
            // `+i`, `=i`; `-i` is taken for an option.
            let all = reading.operands();
            usize::from(all.first().is_some_and(|word| word.text.starts_with(['+', '='])))
        }
        "setfacl" => 0,
        "chcon" if ["user", "role", "type", "range"].iter().any(|name| reading.has(name)) => 0,
        _ if reading.has("reference") || dashed_mode => 0,
        _ => 1,
    };
    for path in reading.operands().into_iter().skip(skipped) {
        uses.file(path, Access::Write, below);
    }
}
