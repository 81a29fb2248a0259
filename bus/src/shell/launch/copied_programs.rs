//! Programs that the line copies, links or moves: under its new name a program is still the one that it was.

use super::super::code::{plain_path, source_and_target};
use super::super::follow::{Arg, Call, Flow, Follower};
use super::super::view::Invocation;
use super::super::word::Word;

/// How many copies are remembered.
const COPIES: usize = 64;

/// A copy of a program, or a link to one.
#[derive(Debug)]
pub(crate) struct CopiedProgram {
    /// Where it is, from where the line starts.
    place: String,
    /// The program that it is a copy of.
    original: Word,
    /// Whether the shell was told to start it by its name alone (`hash -p`).
    hashed: bool,
}

impl Follower<'_> {
    /// Remembers what `cp`, `mv`, `ln`, `install`, `dd` or `hash -p` makes.
    pub(super) fn remember_copy(&mut self, index: usize) {
        let Some(program) = self.view.programs.get(index) else { return };
        let name = program.program.as_str().rsplit('/').next().unwrap_or_default();
        let (original, copy, hashed) = match name {
            "cp" | "mv" | "ln" | "install" | "rsync" | "gcp" | "gmv" | "gln" => {
                let Some((original, copy)) = source_and_target(program) else { return };
                (original.clone(), copy.clone(), false)
            }
            "dd" => match (value(program, "if="), value(program, "of=")) {
                (Some(original), Some(copy)) => (original, copy, false),
                _ => return,
            },
            "hash" => match program.args.as_slice() {
                [option, original, copy] if option.as_str() == "-p" => {
                    (original.clone(), copy.clone(), true)
                }
                _ => return,
            },
            _ => return,
        };
        self.remember_copied(&original, &copy, hashed);
    }

    /// Remembers that the program `cat` at an index has written a copy of its file.
    pub(crate) fn remember_cat(&mut self, index: usize, copy: &Word) {
        let Some(program) = self.view.programs.get(index) else { return };
        if let ("cat" | "/bin/cat", [original]) =
            (program.program.as_str(), program.args.as_slice())
        {
            let original = original.clone();
            self.remember_copied(&original, copy, false);
        }
    }

    fn remember_copied(&mut self, original: &Word, copy: &Word, hashed: bool) {
        let plain = |word: &Word| {
            let text = word.as_str();
            word.is_known() && !word.is_glob() && !text.is_empty() && !text.contains(':')
        };
        // What the line has written is followed by its text.
        if !plain(original) || !plain(copy) || self.written_flow(original).is_some() {
            return;
        }
        let place = plain_path(&self.located(copy.as_str()));
        let original = self.copy_at(original.as_str()).unwrap_or(original).clone();
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        self.copied_programs.retain(|known| known.place != place);
        // Under the same name it is known anyway.
        if base(original.as_str()) != base(&place) && self.copied_programs.len() < COPIES {
            self.copied_programs.push(CopiedProgram { place, original, hashed });
        }
    }

    /// The program that the file with this path was copied from.
    fn copy_at(&self, path: &str) -> Option<&Word> {
        let place = plain_path(&self.located(path));
        let found = self.copied_programs.iter().find(|copy| copy.place == place);
        found.map(|copy| &copy.original)
    }

    /// The program that one with this name was copied from.
    fn original(&self, program: &str) -> Option<&Word> {
        if program.contains('/') {
            return self.copy_at(program);
        }
        let searched = self.scope.value("PATH").is_some();
        let found = self.copied_programs.iter().find(|copy| {
            let (directory, name) = copy.place.rsplit_once('/').unwrap_or(("", &copy.place));
            name == program && (copy.hashed || searched || directory.ends_with("bin"))
        });
        found.map(|copy| &copy.original)
    }

    /// Starts the original of a copied program; None if this is none.
    pub(super) fn launch_original(&mut self, call: &Call, input: &Flow) -> Option<Flow> {
        if self.copied_programs.is_empty() {
            return None;
        }
        let original = self.original(call.args.first()?.word.as_str())?.clone();
        let first = Arg { word: original, ..Arg::default() };
        let rest = call.args.iter().skip(1).cloned();
        let inner = call.with(std::iter::once(first).chain(rest).collect());
        self.list_call(call.clone(), input);
        Some(self.launch(inner, input))
    }
}

/// The value of `if=x`.
fn value(program: &Invocation, key: &str) -> Option<Word> {
    let value = program.args.iter().find_map(|word| word.as_str().strip_prefix(key))?;
    Some(Word::literal(value))
}
