//! `find -exec` and `fd -x`: programs that run for each file that is found.

use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::view::Directory;
use super::super::word::Word;
use super::selection::{fd_selection, find_selection};

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
        let selection = find_selection(args.iter().map(|arg| arg.word.as_str()));
        for arg in &mut found {
            arg.word = selection.below(&arg.word);
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
        if prints_paths(args) {
            return Flow::listing(found.into_iter().map(|arg| arg.word).collect());
        }
        Flow::unknown(Origin::Output)
    }

    pub(super) fn fd(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let at = args
            .iter()
            .position(|arg| matches!(arg.word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let own: Vec<&Word> =
            args.iter().take(at.unwrap_or(args.len())).map(|arg| &arg.word).collect();
        let (selection, starts) = fd_selection(&own);
        let found: Vec<Word> = starts.iter().map(|start| selection.below(start)).collect();
        let Some(at) = at else { return Flow::listing(found) };
        let rest = args.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|arg| arg.word.as_str() == ";").unwrap_or(rest.len());
        let mut program = rest.get(..end).unwrap_or_default().to_vec();
        if !program.iter().any(|arg| arg.word.as_str().contains("{}")) {
            program.push(Arg { word: Word::literal("{}"), ..Arg::default() });
        }
        let found = if found.is_empty() { vec![Word::unknown()] } else { found };
        let found: Vec<Arg> = found
            .into_iter()
            .map(|word| Arg { word, origin: Origin::Output, stream: false })
            .collect();
        let mut inner = call.with(filled(&program, &found));
        inner.more_args |= starts.is_empty();
        self.launch(inner, input);
        Flow::unknown(Origin::Output)
    }
}

/// Whether `find` prints the paths, and not something else of its files.
fn prints_paths(args: &[Arg]) -> bool {
    let mut words = args.iter().map(|arg| arg.word.as_str());
    !words.any(|word| {
        word.starts_with("-exec")
            || word.starts_with("-printf")
            || word.starts_with("-fprint")
            || matches!(word, "-ls" | "-fls" | "-delete" | "-ok" | "-okdir" | "-quit")
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
