//! `curl`, `wget` and the like: whether they print what they load, or which file they write it to.

use super::super::follow::{Flow, Follower, Origin, Target};
use super::super::word::Word;

/// `curl` and `wget`: what they print, and the files that they write.
pub(super) fn downloaded(follower: &mut Follower<'_>, index: usize, input: &Flow) -> Flow {
    let Some(program) = follower.view.programs.get(index) else { return Flow::default() };
    let wget = !program.program.as_str().ends_with("curl");
    let mut target = None;
    let mut stdout = !wget;
    let mut url = None;
    let mut directory = None;
    let mut args = program.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.as_str();
        let output = ["--output=", "--output-document=", "--out="];
        match text {
            "-O" if !wget => stdout = false,
            "--remote-name" | "-OJ" | "-JO" | "-LO" | "-OL" | "-sO" | "-fsSLO" | "-sSLO"
            | "-fLO" | "-LOJ" => stdout = false,
            "-o" | "--output" | "-O" | "--output-document" | "--out"
                if !(wget && text == "-o" && program.program.as_str().ends_with("wget")) =>
            {
                target = args.next().cloned();
            }
            "-P" | "--directory-prefix" if wget => directory = args.next().cloned(),
            "-d" | "--dir" if program.program.as_str().ends_with("aria2c") => {
                directory = args.next().cloned();
            }
            "--output-dir" => directory = args.next().cloned(),
            _ if text.starts_with("--directory-prefix=") || text.starts_with("--output-dir=") => {
                directory = text.split_once('=').map(|(_, path)| Word::literal(path));
            }
            _ if wget && text.starts_with("-P") => directory = text.get(2..).map(Word::literal),
            _ if output.iter().any(|option| text.starts_with(option)) => {
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
