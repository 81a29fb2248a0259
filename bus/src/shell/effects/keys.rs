//! ssh-keygen, gpg, openssl, crontab: what they do with a file depends on their options.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;
use crate::shell::word::Word;

pub(super) fn keys(reading: &Reading<'_>, uses: &mut Uses) {
    match reading.name {
        "ssh-keygen" => ssh_keygen(reading, uses),
        "gpg" => gpg(reading, uses),
        "openssl" => openssl(reading, uses),
        _ => crontab(reading, uses),
    }
}

fn ssh_keygen(reading: &Reading<'_>, uses: &mut Uses) {
    let reads = ["l", "y", "e", "i", "B", "F", "L", "Y"].iter().any(|option| reading.has(option));
    for path in reading.values("f") {
        if reads {
            uses.read(path);
        } else {
            uses.write(path);
            let makes_key = !reading.has("R") && !reading.has("p") && !reading.has("c");
            if makes_key {
                let public = Word::literal(format!("{}.pub", path.text));
                uses.word(public, Access::Write, Below::No);
            }
        }
    }
    uses.reads(reading.values("s"));
    uses.reads(reading.operands());
}

fn gpg(reading: &Reading<'_>, uses: &mut Uses) {
    uses.writes(reading.values("output"));
    for option in ["passphrase-file", "recipient-file", "options", "keyring"] {
        uses.reads(reading.values(option));
    }
    reading.values("keyserver").for_each(|url| uses.url(url, "hkps"));
    // These take keys, not files.
    let takes_keys = [
        "export",
        "export-secret-keys",
        "export-secret-subkeys",
        "delete-key",
        "delete-secret-key",
        "delete-secret-and-public-key",
        "recv-keys",
        "send-keys",
        "list-keys",
        "list-secret-keys",
        "edit-key",
        "gen-key",
    ];
    if !takes_keys.iter().any(|option| reading.has(option)) {
        uses.reads(reading.operands());
    }
}

fn openssl(reading: &Reading<'_>, uses: &mut Uses) {
    let reads = [
        "in",
        "inkey",
        "key",
        "cert",
        "CA",
        "CAkey",
        "CAfile",
        "config",
        "extfile",
        "sigfile",
        "signature",
        "sign",
        "verify",
        "kfile",
        "certfile",
        "paramfile",
    ];
    for option in reads {
        uses.reads(reading.values(option));
    }
    for option in ["out", "keyout", "writerand"] {
        uses.writes(reading.values(option));
    }
    for option in ["passin", "passout", "pass"] {
        for value in reading.values(option) {
            let path = value.text.strip_prefix("file:");
            uses.reads(path.map(|path| value.part(path)));
        }
    }
    for option in ["connect", "host", "proxy"] {
        reading.values(option).for_each(|host| uses.url(host, "tls"));
    }
    // `openssl dgst file`; the first operand is the subcommand.
    let words = reading.operands();
    if words
        .first()
        .is_some_and(|sub| matches!(sub.text, "dgst" | "sha256" | "sha1" | "md5" | "sha512"))
    {
        uses.reads(words.get(1..).unwrap_or_default().iter().copied());
    }
}

/// `crontab file` reads the file; so do not the options.
fn crontab(reading: &Reading<'_>, uses: &mut Uses) {
    let files: Vec<Text<'_>> = reading.operands();
    if !reading.has("l") && !reading.has("r") && !reading.has("e") {
        uses.reads(files);
    }
}
