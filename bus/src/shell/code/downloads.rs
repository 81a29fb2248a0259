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
                follower.wrote(
                    &Target { path: Word::literal(name), append: false },
                    flow,
                    Some(index),
                );
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
