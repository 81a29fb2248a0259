//! `curl`, `wget` and the like: whether they print what they load, or which file they write it to.

use super::super::follow::{Flow, Follower, Origin, Target};
use super::super::view::Invocation;
use super::super::word::Word;

/// Options that hold the file that is written.
const OUTPUT: &[&str] = &["--output=", "--output-document=", "--out="];

/// `curl` and `wget`: what they print, and the files that they write.
pub(super) fn downloaded(follower: &mut Follower<'_>, index: usize, input: &Flow) -> Flow {
    let Some(program) = follower.view.programs.get(index) else { return Flow::default() };
    let wget = !program.program.as_str().ends_with("curl");
    let mut target = None;
    let mut stdout = !wget;
    let mut url = None;
    let directory = directory(program);
    let mut args = program.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.as_str();
        match text {
            "-O" if !wget => stdout = false,
            "--remote-name" | "-OJ" | "-JO" | "-LO" | "-OL" | "-sO" | "-fsSLO" | "-sSLO"
            | "-fLO" | "-LOJ" => stdout = false,
            "-o" | "--output" | "-O" | "--output-document" | "--out"
                if !(wget && text == "-o" && program.program.as_str().ends_with("wget")) =>
            {
                target = args.next().cloned();
            }
            _ if is_directory_option(text, program) => {
                args.next();
            }
            _ if OUTPUT.iter().any(|option| text.starts_with(option)) => {
                target = text.split_once('=').map(|(_, path)| Word::literal(path));
            }
            _ if is_short_with_output(text, wget) => target = args.next().cloned(),
            _ if text.starts_with("-qO") || (wget && text.starts_with("-O")) => {
                let path =
                    text.trim_start_matches("-q").trim_start_matches("-O").trim_start_matches('O');
                target = Some(Word::literal(path));
            }
            _ if !text.starts_with('-') => url = Some(text.to_owned()),
            _ => {}
        }
    }
    let flow = Flow::unknown(Origin::Download.max(input.origin));
    let inside = |name: &str| match &directory {
        Some(directory) => {
            Word::literal(format!("{}/{name}", directory.as_str().trim_end_matches('/')))
        }
        None => Word::literal(name),
    };
    // `wget -O` does not care about the directory.
    if let (Some(path), Some(_), false) = (&target, &directory, wget) {
        target = Some(inside(path.as_str()));
    }
    match target {
        Some(path) if path.as_str() == "-" || path.as_str() == "/dev/stdout" => flow,
        Some(path) => {
            follower.wrote(&Target { path, append: false }, flow, Some(index));
            Flow::unknown(Origin::Output)
        }
        None if stdout => flow,
        None => {
            let name = url.as_deref().and_then(remote_name);
            if let Some(name) = name {
                let path = inside(name);
                follower.wrote(&Target { path, append: false }, flow, Some(index));
            }
            Flow::unknown(Origin::Output)
        }
    }
}

/// Whether the next word is the directory that files are put into.
fn is_directory_option(option: &str, program: &Invocation) -> bool {
    let name = program.program.as_str();
    match option {
        "-P" => !name.ends_with("curl"),
        "-d" | "--dir" => name.ends_with("aria2c"),
        _ => matches!(option, "--directory-prefix" | "--output-dir"),
    }
}

/// The directory that files are put into.
fn directory(program: &Invocation) -> Option<Word> {
    let mut words = program.args.iter();
    while let Some(word) = words.next() {
        let text = word.as_str();
        if is_directory_option(text, program) {
            return words.next().cloned();
        }
        let joined = ["--directory-prefix=", "--output-dir=", "--dir="];
        if let Some(path) = joined.iter().find_map(|option| text.strip_prefix(option)) {
            return Some(Word::literal(path));
        }
        let short = text.strip_prefix("-P").filter(|_| is_directory_option("-P", program));
        if let Some(path) = short {
            return Some(Word::literal(path));
        }
    }
    None
}

/// `-sSLo file`, `-qO file`: short options of which the last takes the file.
fn is_short_with_output(text: &str, wget: bool) -> bool {
    let last = if wget { 'O' } else { 'o' };
    text.len() > 2
        && !text.starts_with("--")
        && text.starts_with('-')
        && text.ends_with(last)
        && text.chars().skip(1).all(|c| c.is_ascii_alphabetic())
}

/// The name under which a URL is stored.
fn remote_name(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    (!name.is_empty() && path.contains('/')).then_some(name)
}
