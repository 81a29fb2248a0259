//! `find -exec` and `fd -x`: programs that run for each file that is found.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::view::Directory;
use super::super::word::{UNKNOWN, Word};

impl Follower<'_> {
    pub(super) fn find(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let roots = args
            .iter()
            .skip_while(|arg| matches!(arg.word.as_str(), "-H" | "-L" | "-P"))
            .take_while(|arg| !arg.word.as_str().starts_with(['-', '(', '!']));
        let mut found: Vec<Arg> = roots.cloned().collect();
        if found.is_empty() {
            found.push(Arg { word: Word::literal("."), ..Arg::default() });
        }
        if filters(args) {
            for arg in &mut found {
                let root = arg.word.as_str();
                let inside = format!("{}/{UNKNOWN}", root.strip_suffix('/').unwrap_or(root));
                arg.word = Word::new(inside, arg.word.is_glob());
            }
        }
        let mut rest = args;
        while let Some(at) = rest
            .iter()
            .position(|arg| matches!(arg.word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
        {
            let in_directory = rest.get(at).is_some_and(|arg| arg.word.as_str().ends_with("dir"));
            rest = rest.get(at + 1..).unwrap_or_default();
            let end = rest.iter().position(|arg| matches!(arg.word.as_str(), ";" | "+"));
            let (program, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let many = behind.first().is_some_and(|arg| arg.word.as_str() == "+");
            let mut inner = call.with(filled(program, &found));
            inner.more_args |= many;
            if in_directory {
                inner.directory = Directory::Unknown;
            }
            self.launch(inner, input);
            rest = behind;
        }
        Flow::unknown(Origin::Output)
    }

    pub(super) fn fd(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let at = args
            .iter()
            .position(|arg| matches!(arg.word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        if let Some(at) = at {
            let rest = args.get(at + 1..).unwrap_or_default();
            let end = rest.iter().position(|arg| arg.word.as_str() == ";").unwrap_or(rest.len());
            let mut program = rest.get(..end).unwrap_or_default().to_vec();
            if !program.iter().any(|arg| arg.word.as_str().contains("{}")) {
                program.push(Arg { word: Word::literal("{}"), ..Arg::default() });
            }
            let unknown = Arg { word: Word::unknown(), origin: Origin::Output, stream: false };
            let mut inner = call.with(filled(&program, &[unknown]));
            inner.more_args = true;
            self.launch(inner, input);
        }
        Flow::unknown(Origin::Output)
    }
}

/// Whether `find` looks for some files only.
fn filters(args: &[Arg]) -> bool {
    args.iter().take_while(|arg| !arg.word.as_str().starts_with("-exec")).any(|arg| {
        let text = arg.word.as_str();
        let neutral = matches!(
            text,
            "-H" | "-L"
                | "-P"
                | "-depth"
                | "-maxdepth"
                | "-mindepth"
                | "-mount"
                | "-xdev"
                | "-print"
                | "-print0"
                | "-ls"
                | "-delete"
                | "-ok"
                | "-okdir"
                | "-true"
        );
        text.starts_with('-') && !neutral && text.len() > 2
    })
}

/// The arguments with `{}` filled in.
fn filled(program: &[Arg], found: &[Arg]) -> Vec<Arg> {
    let mut args = Vec::with_capacity(program.len());
    for arg in program {
        let text = arg.word.as_str();
        match found.first() {
            _ if text == "{}" => args.extend(found.iter().cloned()),
            Some(first) if text.contains("{}") => args.push(Arg {
                word: Word::literal(text.replace("{}", first.word.as_str())),
                origin: arg.origin.max(first.origin),
                stream: false,
            }),
            Some(_) | None => args.push(arg.clone()),
        }
    }
    args
}
