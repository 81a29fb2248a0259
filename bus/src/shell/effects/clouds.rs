//! aws, gsutil, gcloud, az, terraform, pulumi, gh: local files that go up or come down.

use super::uses::{Below, Uses, is_url, looks_like_path};
use crate::shell::programs::Reading;
use crate::shell::view::Access;

pub(super) fn clouds(reading: &Reading<'_>, uses: &mut Uses) {
    match reading.name {
        "terraform" | "terragrunt" | "pulumi" => infrastructure(reading, uses),
        "gh" | "glab" => forge(reading, uses),
        _ => storage(reading, uses),
    }
}

fn infrastructure(reading: &Reading<'_>, uses: &mut Uses) {
    if let Some(directory) = reading.value("chdir").or_else(|| reading.value("cwd")) {
        uses.enter(directory);
    }
    for option in ["var-file", "backend-config", "config-file"] {
        uses.reads(reading.values(option));
    }
    for option in ["out", "state", "state-out", "backup"] {
        uses.writes(reading.values(option));
    }
}

/// `cp source target` and its like; `s3://…` and `gs://…` are not files.
fn storage(reading: &Reading<'_>, uses: &mut Uses) {
    let is_object = |text: &str| is_url(text);
    let below = Below::from(reading.has("recursive") || reading.has("r"));
    let words = &reading.arguments.operands;
    let copy = words
        .iter()
        .position(|operand| matches!(operand.word.text, "cp" | "mv" | "sync" | "rsync"));
    for option in
        ["body", "zip-file", "cli-input-json", "policy", "access-token-file", "flags-file"]
    {
        for value in reading.values(option) {
            let path =
                value.text.strip_prefix("fileb://").or_else(|| value.text.strip_prefix("file://"));
            if let Some(path) = path.or_else(|| looks_like_path(value.text).then_some(value.text)) {
                uses.read(value.part(path));
            }
        }
    }
    reading.values("endpoint-url").for_each(|url| uses.url(url, "https"));
    let Some(copy) = copy else { return };
    let moves = words.get(copy).is_some_and(|operand| operand.word.text == "mv");
    let syncs = words.get(copy).is_some_and(|operand| operand.word.text.ends_with("sync"));
    let places: Vec<_> = words.iter().skip(copy + 1).map(|operand| operand.word).collect();
    let Some((target, sources)) = places.split_last() else { return };
    let below = if syncs { Below::Yes } else { below };
    for source in sources.iter().filter(|source| !is_object(source.text)) {
        uses.file(*source, if moves { Access::Delete } else { Access::Read }, below);
    }
    if !is_object(target.text) {
        uses.file(*target, Access::Write, below);
        if syncs && (reading.has("delete") || reading.has("d")) {
            uses.file(*target, Access::Delete, below);
        }
    }
}

/// gh and glab: texts and uploads from files.
fn forge(reading: &Reading<'_>, uses: &mut Uses) {
    for option in ["body-file", "notes-file", "input", "env-file"] {
        uses.reads(reading.values(option));
    }
    for value in reading.values("field") {
        let path = value.text.split_once("=@").map(|(_, path)| path);
        uses.reads(path.map(|path| value.part(path)));
    }
    let words = reading.operands();
    let uploads = if reading.is_sub("gist create") {
        words.as_slice()
    } else if reading.is_sub("release create") || reading.is_sub("release upload") {
        words.get(1..).unwrap_or_default()
    } else {
        &[]
    };
    uses.reads(uploads.iter().copied());
    if reading.is_sub("release download") {
        uses.writes(reading.values("dir").chain(reading.values("output")));
    }
    if reading.is_sub("repo clone")
        && let Some(directory) = words.get(1)
    {
        uses.file(*directory, Access::Write, Below::Yes);
    }
    if reading.is_sub("ssh-key add") {
        uses.reads(words.iter().take(1).copied());
    }
}
