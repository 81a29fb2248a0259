//! scp, rsync, rclone: sources, then a target; each on this host or on another one.

use super::address::Address;
use super::uses::{Below, Uses, is_url};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;

pub(super) fn remote_copies(reading: &Reading<'_>, uses: &mut Uses) {
    let below = match reading.name {
        "scp" => Below::from(reading.has("r")),
        "rsync" => Below::from(reading.has("recursive") || reading.has("archive")),
        _ => Below::Yes,
    };
    for option in
        ["i", "F", "exclude-from", "include-from", "files-from", "password-file", "config"]
    {
        // `rsync -i` is a flag.
        uses.reads(reading.values(option));
    }
    uses.writes(reading.values("log-file"));
    uses.files(reading.values("backup-dir"), Access::Write, Below::Yes);
    let mut words = reading.operands();
    if reading.name == "rclone" && !words.is_empty() {
        let action = words.remove(0);
        let deletes = matches!(action.text, "delete" | "purge" | "deletefile" | "rmdir");
        if deletes || words.len() < 2 {
            let access = if deletes { Access::Delete } else { Access::Read };
            return words.into_iter().for_each(|word| place(word, access, below, uses));
        }
    }
    let Some((target, sources)) = words.split_last() else { return };
    let moves = reading.has("remove-source-files");
    let source_access = if moves { Access::Delete } else { Access::Read };
    // `rsync a` lists; the only operand is a source.
    let (sources, target) =
        if sources.is_empty() { (words.as_slice(), None) } else { (sources, Some(*target)) };
    for source in sources {
        place(*source, source_access, below, uses);
    }
    let Some(target) = target else { return };
    place(target, Access::Write, below, uses);
    let deletes = [
        "delete",
        "delete-before",
        "delete-during",
        "delete-delay",
        "delete-after",
        "delete-excluded",
    ];
    if deletes.iter().any(|option| reading.has(option)) {
        place(target, Access::Delete, below, uses);
    }
}

/// A place on this host is a file; one on another host is a host.
fn place(word: Text<'_>, access: Access, below: Below, uses: &mut Uses) {
    if is_url(word.text) {
        uses.url(word, "");
    } else if let Some(address) = Address::from_remote_path(word.text) {
        uses.address(word, address);
    } else {
        uses.file(word, access, below);
    }
}
