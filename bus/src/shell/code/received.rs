//! Files that come from another machine without `curl` or `wget`: `scp`, `rsync`, `sftp`, `aws s3 cp`, `gsutil`,
//! `gh release download`, `git clone`; and what is unpacked from an archive that was downloaded.

use super::super::follow::{Flow, Follower, Origin, Target};
use super::super::programs::{ParsedInvocation, Reading};
use super::super::view::Invocation;
use super::super::word::Word;

/// A file or a directory that a program fills.
enum Place {
    File(String),
    /// Everything below it.
    Below(String),
}

/// Whether the words of a program may load something; most calls of these programs do not.
pub(super) fn may_load(program: &Invocation) -> bool {
    let name = program.program.as_str().rsplit('/').next().unwrap_or_default();
    let mut words = program.args.iter().map(Word::as_str);
    match name {
        "sftp" => true,
        "scp" | "rsync" => words.any(|word| word.contains(':')),
        "gh" | "glab" | "az" => {
            words.any(|word| word.starts_with("download") || matches!(word, "clone"))
        }
        "git" | "hg" => words.any(|word| word == "clone"),
        _ => words.any(is_copy),
    }
}

/// Remembers the files that the program at an index loads or unpacks.
pub(super) fn remember(follower: &mut Follower<'_>, index: usize, input: &Flow) {
    let Some(program) = follower.view.programs.get(index).cloned() else { return };
    let parsed = ParsedInvocation::new(&program);
    let Some(reading) = parsed.readings.last() else { return };
    match reading.name {
        "tar" | "unzip" | "7z" | "cpio" => unpacked(follower, reading, input),
        "gunzip" | "gzip" | "unxz" | "xz" | "bunzip2" | "bzip2" | "zstd" | "unzstd" => {
            decompressed(follower, reading, index);
        }
        _ => {
            let flow = Flow::unknown(Origin::Download);
            for place in places(reading, &program, input) {
                match place {
                    Place::File(path) => {
                        let target = Target { path: Word::literal(path), append: false };
                        follower.wrote(&target, flow.clone(), Some(index));
                    }
                    Place::Below(path) => follower.wrote_below(&path, flow.clone()),
                }
            }
        }
    }
}

/// Where a program puts what it loads.
fn places(reading: &Reading<'_>, program: &Invocation, input: &Flow) -> Vec<Place> {
    let words: Vec<&str> = reading.operands().iter().map(|word| word.text).collect();
    match reading.name {
        "git" | "hg" => cloned(&words),
        "gh" | "glab" if reading.is_sub("repo clone") => cloned(&words),
        "gh" | "glab" => released(reading),
        "az" => {
            let all: Vec<&str> = program.args.iter().map(Word::as_str).collect();
            let value = |names: &[&str]| {
                let at = all.iter().position(|word| names.contains(word))?;
                all.get(at + 1).map(|path| (*path).to_owned())
            };
            let file = all.contains(&"download").then(|| value(&["-f", "--file"])).flatten();
            let batch = all.contains(&"download-batch").then(|| value(&["-d", "--destination"]));
            file.map(Place::File).into_iter().chain(batch.flatten().map(Place::Below)).collect()
        }
        "sftp" => {
            let mut found = copied(&words, false);
            let batch = input.text.as_deref().unwrap_or_default();
            for line in batch.lines().take(64) {
                let mut words = line.split_whitespace();
                if matches!(words.next(), Some("get" | "mget" | "reget")) {
                    let mut names = words.filter(|word| !word.starts_with('-'));
                    found.extend(names.next_back().map(|path| Place::File(base(path).to_owned())));
                }
            }
            found
        }
        _ => {
            // `aws s3 cp a b`, `gcloud storage cp a b`, `rclone copy a b`: the places are behind the action.
            let all: Vec<&str> =
                reading.arguments.operands.iter().map(|operand| operand.word.text).collect();
            let action = all.iter().position(|word| is_copy(word));
            let words = match action {
                _ if matches!(reading.name, "scp" | "rsync") => words,
                Some(at) => all.get(at + 1..).unwrap_or_default().to_vec(),
                None => return Vec::new(),
            };
            let whole = action.and_then(|at| all.get(at)).is_some_and(|it| it.ends_with("sync"));
            let options = ["recursive", "r", "archive", "a", "R"];
            copied(&words, whole || options.iter().any(|option| reading.has(option)))
        }
    }
}

/// Whether a word is an action that copies.
fn is_copy(word: &str) -> bool {
    matches!(word, "cp" | "mv" | "sync" | "rsync" | "copy" | "copyto" | "move")
}

/// Sources, of which one is on another machine, then a target on this one.
fn copied(words: &[&str], below: bool) -> Vec<Place> {
    let (target, sources) = match words {
        [source] => (".", std::slice::from_ref(source)),
        [sources @ .., target] => (*target, sources),
        [] => return Vec::new(),
    };
    let remote: Vec<&&str> = sources.iter().filter(|source| is_remote(source)).collect();
    if is_remote(target) || target == "-" || remote.is_empty() {
        return Vec::new();
    }
    let mut found = vec![Place::File(target.to_owned())];
    let directory = target.trim_end_matches('/');
    for source in remote {
        let name = base(source);
        if name.is_empty() || name.contains(['*', '?']) {
            found.push(Place::Below(target.to_owned()));
        } else {
            found.push(Place::File(format!("{directory}/{name}")));
        }
    }
    if below {
        found.push(Place::Below(target.to_owned()));
    }
    found
}

/// `git clone url [directory]`: everything below the directory, whose name is the last part of the URL. A clone of a
/// repository on this machine is none.
fn cloned(words: &[&str]) -> Vec<Place> {
    let words = words.strip_prefix(&["clone"]).unwrap_or(words);
    let Some(source) = words.first() else { return Vec::new() };
    let is_local = source.starts_with(['.', '/', '~']) || !source.contains([':', '/']);
    if is_local {
        return Vec::new();
    }
    let name = base(source.trim_end_matches('/'));
    let directory = words.get(1).copied().unwrap_or(name.strip_suffix(".git").unwrap_or(name));
    if directory.is_empty() { Vec::new() } else { vec![Place::Below(directory.to_owned())] }
}

/// `gh release download`: one file, those that match, or all of a release.
fn released(reading: &Reading<'_>) -> Vec<Place> {
    let is_sub = |name: &str| reading.is_sub(name);
    if !is_sub("release download") && !is_sub("run download") {
        return Vec::new();
    }
    if let Some(file) = reading.value("output").or_else(|| reading.value("O")) {
        return vec![Place::File(file.text.to_owned())];
    }
    let directory = reading.value("dir").or_else(|| reading.value("D"));
    let directory = directory.map_or(".", |directory| directory.text);
    let patterns: Vec<&str> =
        reading.values("pattern").chain(reading.values("p")).map(|value| value.text).collect();
    if patterns.is_empty() || patterns.iter().any(|pattern| pattern.contains(['*', '?', '['])) {
        return vec![Place::Below(directory.to_owned())];
    }
    patterns.iter().map(|name| Place::File(format!("{directory}/{name}"))).collect()
}

/// What is in an archive that was downloaded is downloaded, too.
fn unpacked(follower: &mut Follower<'_>, reading: &Reading<'_>, input: &Flow) {
    let words = reading.operands();
    let first = words.first().copied();
    let (archive, directory) = match reading.name {
        "tar" if reading.has("extract") => (reading.value("file"), reading.value("directory")),
        "unzip" => (first, reading.value("d")),
        "cpio" if reading.has("extract") => (reading.value("file"), reading.value("directory")),
        "7z" => (first, reading.value("o")),
        _ => return,
    };
    let flow = match archive.filter(|archive| archive.text != "-") {
        Some(archive) => follower.written_flow(&archive.to_word()),
        None => Some(input.clone()),
    };
    let Some(origin) = flow.map(|flow| flow.origin).filter(|it| *it == Origin::Download) else {
        return;
    };
    follower.wrote_below(directory.map_or(".", |it| it.text), Flow::unknown(origin));
    // Most archives hold one directory, which has their name.
    let name = archive.map(|archive| stem(base(archive.text))).unwrap_or_default();
    if directory.is_none() && !name.is_empty() {
        follower.wrote_below(name, Flow::unknown(origin));
    }
}

/// `gunzip x.sh.gz` makes `x.sh`.
fn decompressed(follower: &mut Follower<'_>, reading: &Reading<'_>, index: usize) {
    for path in reading.operands() {
        let shorter = path.text.rsplit_once('.').map(|(shorter, _)| shorter);
        let flow = follower.written_flow(&path.to_word());
        if let (Some(shorter), Some(flow)) = (shorter, flow) {
            let target = Target { path: Word::literal(shorter), append: false };
            follower.wrote(&target, Flow { text: None, ..flow }, Some(index));
        }
    }
}

fn base(path: &str) -> &str {
    path.rsplit(['/', ':']).next().unwrap_or_default()
}

/// The name of an archive without its endings.
fn stem(name: &str) -> &str {
    let endings =
        [".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst", ".tgz", ".txz", ".tar", ".zip", ".7z"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// `host:path`, `user@host:path`, `s3://bucket/path`.
fn is_remote(place: &str) -> bool {
    place.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.starts_with('\\')
    })
}
