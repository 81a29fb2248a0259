//! tar, zip, unzip, 7z, cpio, gzip and its like.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;
use crate::shell::word::Word;

pub(super) fn archives(reading: &Reading<'_>, uses: &mut Uses) {
    match reading.name {
        "tar" => tar(reading, uses),
        "zip" => zip(reading, uses),
        "unzip" => unzip(reading, uses),
        "cpio" => cpio(reading, uses),
        _ => seven_zip(reading, uses),
    }
}

fn tar(reading: &Reading<'_>, uses: &mut Uses) {
    let lists = reading.has("list") || reading.has("diff");
    let extracts = reading.has("extract");
    for option in ["files-from", "exclude-from"] {
        uses.reads(reading.values(option));
    }
    // The archive's path is not affected by `-C`; `host:path` is on another host.
    if let Some(archive) = reading.value("file") {
        uses.file(archive, if extracts || lists { Access::Read } else { Access::Write }, Below::No);
    }
    if let Some(directory) = reading.value("directory") {
        uses.enter(directory);
    }
    if extracts && !reading.has("to-stdout") {
        here(uses, Access::Write);
    }
    if !extracts && !lists && !reading.has("delete") {
        let access = if reading.has("remove-files") { Access::Delete } else { Access::Read };
        for path in reading.operands() {
            uses.file(path, access, Below::Yes);
        }
    }
}

/// The directory that relative paths start in.
fn here(uses: &mut Uses, access: Access) {
    let path = Text::literal(".");
    uses.file(path, access, Below::Yes);
}

fn zip(reading: &Reading<'_>, uses: &mut Uses) {
    let files = reading.operands();
    let Some((archive, files)) = files.split_first() else { return };
    uses.write(*archive);
    if reading.has("delete") {
        return;
    }
    let access = if reading.has("move") { Access::Delete } else { Access::Read };
    for file in files {
        uses.file(*file, access, Below::from(reading.has("recurse-paths")));
    }
}

fn unzip(reading: &Reading<'_>, uses: &mut Uses) {
    if let Some(archive) = reading.operands().first() {
        uses.read(*archive);
    }
    if ["l", "t", "p", "c", "v", "Z"].iter().any(|option| reading.has(option)) {
        return;
    }
    match reading.value("d") {
        Some(directory) => uses.file(directory, Access::Write, Below::Yes),
        None => here(uses, Access::Write),
    }
}

fn cpio(reading: &Reading<'_>, uses: &mut Uses) {
    let extracts = reading.has("extract");
    let access = if reading.has("create") { Access::Write } else { Access::Read };
    uses.files(reading.values("file"), access, Below::No);
    uses.reads(reading.values("I"));
    uses.writes(reading.values("O"));
    if reading.has("pass-through") {
        uses.files(reading.operands(), Access::Write, Below::Yes);
    } else if extracts && !reading.has("list") {
        if let Some(directory) = reading.value("directory") {
            uses.enter(directory);
        }
        here(uses, Access::Write);
    }
}

fn seven_zip(reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    let Some((archive, files)) = words.split_first() else { return };
    let action = reading.arguments.operands.first().map_or("", |operand| operand.word.text);
    match action {
        "x" | "e" => {
            uses.read(*archive);
            match reading.value("o") {
                Some(directory) => uses.file(directory, Access::Write, Below::Yes),
                None => here(uses, Access::Write),
            }
        }
        "a" | "u" => {
            uses.write(*archive);
            let access = if reading.has("sdel") { Access::Delete } else { Access::Read };
            uses.files(files.iter().copied(), access, Below::Yes);
        }
        "d" => uses.write(*archive),
        _ => uses.read(*archive),
    }
}

/// gzip and its like replace `x` by `x.gz`: `x` is deleted, the other one written.
pub(super) fn compress(reading: &Reading<'_>, uses: &mut Uses) {
    let (ending, expands) = match reading.name {
        "gzip" | "pigz" => (".gz", reading.has("decompress")),
        "bzip2" | "pbzip2" => (".bz2", reading.has("decompress")),
        "xz" => (".xz", reading.has("decompress")),
        "zstd" => (".zst", reading.has("decompress")),
        "lz4" => (".lz4", reading.has("decompress")),
        "compress" => (".Z", reading.has("decompress")),
        "lzma" => (".lzma", reading.has("decompress")),
        "gunzip" => (".gz", true),
        "bunzip2" => (".bz2", true),
        "unxz" => (".xz", true),
        "unzstd" => (".zst", true),
        "unlzma" => (".lzma", true),
        _ => (".Z", true),
    };
    let reads_only = ["stdout", "test", "list"].iter().any(|option| reading.has(option));
    let keeps = reading.has("keep") || (matches!(ending, ".zst" | ".lz4") && !reading.has("rm"));
    let below = Below::from(reading.has("recursive"));
    for path in reading.operands() {
        let access = if reads_only || keeps { Access::Read } else { Access::Delete };
        uses.file(path, access, below);
        if reads_only {
            continue;
        }
        match reading.value("o") {
            Some(output) => uses.write(output),
            None => {
                let shorter = path.text.strip_suffix(ending).unwrap_or(path.text);
                let longer = format!("{}{ending}", path.text);
                let output = if expands { shorter.to_owned() } else { longer };
                let output = if path.glob { Word::glob(output) } else { Word::literal(output) };
                uses.word(output, Access::Write, below);
            }
        }
    }
}
