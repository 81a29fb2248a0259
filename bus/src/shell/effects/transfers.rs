//! curl, wget, aria2c, httpie.

use super::uses::{Below, Uses};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;
use crate::shell::word::Word;

/// curl: URLs are operands or values of `--url`.
pub(super) fn curl(reading: &Reading<'_>, uses: &mut Uses) {
    let urls: Vec<Text<'_>> = reading.values("url").chain(reading.operands()).collect();
    for url in &urls {
        match url.text.strip_prefix("file://") {
            Some(path) => uses.read(url.part(path)),
            None => uses.url(*url, "http"),
        }
    }
    for proxy in ["proxy", "preproxy", "socks5", "socks5-hostname", "socks4"] {
        reading.values(proxy).for_each(|url| uses.url(url, "http"));
    }
    for option in ["upload-file", "config", "netrc-file", "cert", "key", "cacert"] {
        uses.reads(reading.values(option));
    }
    for option in ["dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "libcurl"] {
        uses.writes(reading.values(option));
    }
    // `--cookie name=value` is a cookie; without `=` it is a file.
    uses.reads(reading.values("cookie").filter(|value| !value.text.contains('=')));
    for option in
        ["data", "data-binary", "data-urlencode", "json", "header", "variable", "write-out"]
    {
        for value in reading.values(option) {
            // `@file`; `name@file` for `--data-urlencode` and `--variable`.
            let named =
                matches!(option, "data-urlencode" | "variable") && !value.text.contains('=');
            let path = if named {
                value.text.split_once('@').map(|(_, path)| path)
            } else {
                value.text.strip_prefix('@')
            };
            uses.reads(path.map(|path| value.part(path)));
        }
    }
    for value in reading.values("form") {
        let path =
            value.text.split_once('=').and_then(|(_, content)| content.strip_prefix(['@', '<']));
        let path = path.and_then(|path| path.split(';').next());
        uses.reads(path.map(|path| value.part(path)));
    }
    curl_outputs(reading, &urls, uses);
}

fn curl_outputs(reading: &Reading<'_>, urls: &[Text<'_>], uses: &mut Uses) {
    if let Some(directory) = reading.value("output-dir") {
        uses.enter(directory);
    }
    uses.writes(reading.values("output"));
    if reading.has("remote-name") || reading.has("remote-name-all") {
        for url in urls {
            write_remote_name(*url, uses);
        }
    }
}

/// A file named like the last part of the URL.
fn write_remote_name(url: Text<'_>, uses: &mut Uses) {
    let path = url.text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name =
        path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    let name = if name.is_empty() { "index.html" } else { name };
    uses.word(Word::literal(name), Access::Write, Below::No);
}

/// wget, aria2c, httpie: they write a file per URL, unless told where.
pub(super) fn downloads(reading: &Reading<'_>, uses: &mut Uses) {
    for option in [
        "input-file",
        "post-file",
        "body-file",
        "load-cookies",
        "certificate",
        "private-key",
        "torrent-file",
    ] {
        uses.reads(reading.values(option));
    }
    for option in ["output-file", "append-output", "save-cookies", "log"] {
        uses.writes(reading.values(option));
    }
    let is_httpie = !matches!(reading.name, "wget" | "wget2" | "aria2c");
    let mut urls = reading.operands();
    if is_httpie {
        let words = std::mem::take(&mut urls);
        urls = httpie(&words, uses).into_iter().collect();
    }
    for url in &urls {
        uses.url(*url, "http");
    }
    let directory = reading.value("directory-prefix").or_else(|| reading.value("dir"));
    let output =
        ["output-document", "output", "out"].iter().find_map(|option| reading.value(option));
    match (output, directory) {
        (Some(output), None) => uses.write(output),
        (Some(output), Some(directory)) => {
            // wget ignores the directory if it has a file; aria2c does not.
            if reading.name == "aria2c" {
                uses.enter(directory);
            }
            uses.write(output);
        }
        (None, Some(directory)) => uses.file(directory, Access::Write, Below::Yes),
        (None, None) if is_httpie && !reading.has("download") => {}
        (None, None) if reading.has("spider") => {}
        (None, None) if reading.has("recursive") || reading.has("mirror") => {
            uses.file(Text::literal("."), Access::Write, Below::Yes);
        }
        (None, None) => urls.iter().for_each(|url| write_remote_name(*url, uses)),
    }
}

/// `http [METHOD] URL [ITEM…]`; an item `name@file` or `name=@file` sends a file. Returns the URL.
fn httpie<'a>(words: &[Text<'a>], uses: &mut Uses) -> Option<Text<'a>> {
    let is_method = |text: &str| text.len() > 2 && text.chars().all(|c| c.is_ascii_uppercase());
    let (first, rest) = words.split_first()?;
    let (url, items) = if is_method(first.text) { rest.split_first()? } else { (first, rest) };
    for item in items {
        let path = item
            .text
            .split_once('@')
            .filter(|(name, _)| !name.contains("=="))
            .map(|(_, path)| path);
        uses.reads(path.map(|path| item.part(path)));
    }
    Some(*url)
}
