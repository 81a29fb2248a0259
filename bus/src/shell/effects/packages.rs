//! Package managers and make: where they install to, what they install from. What they write into their own caches
//! and the project's usual directories is not reported.

use super::uses::{Below, Uses, is_url};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;

pub(super) fn packages(reading: &Reading<'_>, uses: &mut Uses) {
    match reading.name {
        "make" | "gnumake" | "ninja" | "samu" => make(reading, uses),
        "npm" | "pnpm" | "bun" | "yarn" => npm(reading, uses),
        _ => pip(reading, uses),
    }
}

/// `-C dir -f file`: the file is in that directory.
fn make(reading: &Reading<'_>, uses: &mut Uses) {
    if let Some(directory) = reading.value("C") {
        uses.enter(directory);
    }
    uses.reads(reading.values("f"));
}

fn npm(reading: &Reading<'_>, uses: &mut Uses) {
    for option in ["prefix", "cache", "pack-destination"] {
        uses.files(reading.values(option), Access::Write, Below::Yes);
    }
    uses.reads(reading.values("userconfig"));
    reading.values("registry").for_each(|url| uses.url(url, "https"));
    let installs =
        ["install", "exec", "dlx", "link", "publish"].iter().any(|sub| reading.is_sub(sub));
    if installs {
        // `npm publish` takes a directory; the others packages, or paths that begin with `.`, `/` or `~`.
        sources(reading, uses);
    }
    let names_registry = reading.is_sub("config set")
        && reading.operands().first().is_some_and(|word| word.text.starts_with("registry"));
    if names_registry {
        for word in reading.operands() {
            let url = word.text.strip_prefix("registry=").unwrap_or(word.text);
            if is_url(url) {
                uses.url(word.part(url), "https");
            }
        }
    }
    let has_code = ["e", "eval", "p", "print"].iter().any(|option| reading.has(option));
    if reading.name == "bun" && !has_code {
        let script = reading.operands().first().copied();
        uses.reads(script.filter(|script| script.text.contains(['.', '/'])));
    }
}

fn pip(reading: &Reading<'_>, uses: &mut Uses) {
    for option in ["requirement", "requirements", "constraint", "cert", "config-file"] {
        uses.reads(reading.values(option));
    }
    for option in ["target", "root", "prefix", "dest", "wheel-dir", "install-dir", "log", "src"] {
        uses.files(reading.values(option), Access::Write, Below::Yes);
    }
    let urls =
        ["index-url", "extra-index-url", "find-links", "source", "proxy", "index", "default-index"];
    for option in urls {
        reading
            .values(option)
            .filter(|url| is_url(url.text))
            .for_each(|url| uses.url(url, "https"));
    }
    for value in reading.values("editable") {
        source(value, uses);
    }
    sources(reading, uses);
}

fn sources(reading: &Reading<'_>, uses: &mut Uses) {
    reading.operands().into_iter().for_each(|word| source(word, uses));
}

/// A package is a name, a URL, `name @ URL`, or a path.
fn source(word: Text<'_>, uses: &mut Uses) {
    let url = word.text.split_once('@').map_or(word.text, |(_, url)| url.trim());
    let path = word.text.strip_prefix("file:").unwrap_or(word.text);
    let ending = path.rsplit('.').next().unwrap_or_default();
    let is_package_file = matches!(ending, "whl" | "tgz") && ending.len() < path.len();
    if is_url(word.text) {
        uses.url(word, "https");
    } else if is_url(url) {
        uses.url(word.part(url), "https");
    } else if word.text.starts_with("git@") {
        uses.url(word.part(word.text.split(':').next().unwrap_or(word.text)), "ssh");
    } else if path.starts_with(['.', '/', '~']) || is_package_file {
        uses.file(word.part(path), Access::Read, Below::Yes);
    }
}
