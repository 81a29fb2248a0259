//! Walks through a written word piece by piece.

use std::rc::Rc;

use super::super::follow::{Arg, Follower, Origin, Value};
use super::super::limits;
use super::super::syntax::{Parser, split_assignment};
use super::super::view::Directory;
use super::super::word::{UNKNOWN, Word};
use super::fields::Fields;
use super::{braces, quotes};

impl Follower<'_> {
    /// Expands the words of a command. Also tells whether more words may follow, and the code of `>(…)`.
    pub(crate) fn expand_words(&mut self, words: &[&str]) -> (Vec<Arg>, bool, Vec<String>) {
        let mut fields = Fields::default();
        fields.splits = true;
        fields.separators = self.separators();
        fields.args.reserve(words.len());
        for word in words {
            if fields.is_full() {
                fields.cut = true;
                break;
            }
            if is_plain(word) {
                let word = Word::literal(*word);
                fields.args.push(Arg { word, origin: Origin::Line, stream: false });
                continue;
            }
            match braces::expand(word) {
                None => {
                    let before = fields.args.len();
                    self.expand_into(word, &mut fields);
                    if let [arg] = fields.args.get_mut(before..).unwrap_or_default() {
                        arg.word.remember_written(word);
                    }
                }
                Some(expanded) => {
                    if expanded.cut {
                        self.cut(word);
                    }
                    for word in &expanded.words {
                        self.expand_into(word, &mut fields);
                    }
                }
            }
        }
        self.spend(fields.bytes);
        if fields.cut {
            self.cut(words.first().copied().unwrap_or_default());
        }
        (fields.args, fields.more, fields.readers)
    }

    /// What `IFS` is set to; values are also split at blanks if that is not known.
    fn separators(&self) -> Option<Rc<str>> {
        match self.scope.value("IFS")? {
            Value::Text(text, _) if !text.contains(UNKNOWN) => Some(text.clone()),
            Value::Text(..) | Value::Either(_) | Value::List(_) => None,
        }
    }

    /// Expands the words of a loop.
    pub(crate) fn expand_list(&mut self, words: &[&str]) -> (Vec<Arg>, bool) {
        let (args, more, _) = self.expand_words(words);
        (args, more)
    }

    /// Expands a word that stays one word: a value, a file behind `>`.
    pub(crate) fn expand_one(&mut self, word: &str) -> Arg {
        if is_plain(word) {
            return Arg { word: Word::literal(word), ..Arg::default() };
        }
        // A command may have thousands of assignments, each of which makes a variable longer.
        if !self.may_expand() {
            self.cut(word);
            return Arg { word: Word::unknown(), origin: Origin::Variable, ..Arg::default() };
        }
        let mut fields = Fields::default();
        self.expand_into(word, &mut fields);
        self.spend(fields.bytes);
        let mut arg = fields.args.pop().unwrap_or_default();
        arg.word.remember_written(word);
        arg
    }

    /// Expands a text in which quotes mean nothing: the body of a here-document, a calculation.
    pub(crate) fn expand_quoted(&mut self, text: &str) -> (String, Origin) {
        let mut fields = Fields::default();
        self.double_quoted(text, true, &mut fields);
        fields.end_word();
        self.spend(fields.bytes);
        match fields.args.pop() {
            Some(arg) => (arg.word.as_str().to_owned(), arg.origin),
            None => (String::new(), Origin::Line),
        }
    }

    fn expand_into(&mut self, word: &str, fields: &mut Fields) {
        let mut parser = Parser::new(word);
        let mut at = self.tilde(word, fields);
        let mut pieces = 0;
        while let Some(byte) = word.as_bytes().get(at).filter(|_| !fields.is_full()) {
            pieces += 1;
            if pieces > limits::PIECES {
                fields.push_value(&UNKNOWN.to_string(), Origin::Variable);
                self.cut(word);
                break;
            }
            let Ok(end) = self.piece(word, at, *byte, &mut parser, fields) else {
                fields.push_value(&UNKNOWN.to_string(), Origin::Variable);
                break;
            };
            at = end;
        }
        fields.end_word();
    }

    /// Expands the piece at a position and gives its end.
    fn piece(
        &mut self,
        word: &str,
        at: usize,
        byte: u8,
        parser: &mut Parser<'_>,
        fields: &mut Fields,
    ) -> Result<usize, ()> {
        let slice = |from: usize, to: usize| word.get(from..to).unwrap_or_default();
        match byte {
            b'\\' => {
                let escaped = slice(at + 1, word.len()).chars().next();
                match escaped {
                    Some('\n') => {}
                    Some(c) => fields.push_quoted(c.encode_utf8(&mut [0; 4]), Origin::Line),
                    None => fields.push("\\"),
                }
                Ok(at + 1 + escaped.map_or(0, char::len_utf8))
            }
            b'\'' => {
                let end = parser.piece_end(at).map_err(drop)?;
                fields.push_quoted(slice(at + 1, end - 1), Origin::Line);
                Ok(end)
            }
            b'"' => {
                let end = parser.piece_end(at).map_err(drop)?;
                let inner = slice(at + 1, end - 1);
                // `"$@"` without parameters is no word at all.
                if !self.is_empty_list(inner) {
                    fields.push_quoted("", Origin::Line);
                    self.double_quoted(inner, false, fields);
                }
                Ok(end)
            }
            b'$' => self.dollar(word, at, false, parser, fields),
            b'`' => {
                let end = parser.piece_end(at).map_err(drop)?;
                let code = quotes::unescape_backquotes(slice(at + 1, end - 1), false);
                self.substitute(&code, false, fields);
                Ok(end)
            }
            b'<' | b'>' if word.as_bytes().get(at + 1) == Some(&b'(') => {
                let end = parser.word_piece_end(at).map_err(drop)?;
                let code = slice(at + 2, end - 1);
                self.process_substitution(byte, code, fields);
                Ok(end)
            }
            b'*' | b'?' | b'[' => {
                fields.push_glob(slice(at, at + 1));
                Ok(at + 1)
            }
            _ => {
                let rest = slice(at, word.len());
                let length = rest.bytes().position(is_special).unwrap_or(rest.len()).max(1);
                fields.push(slice(at, at + length));
                Ok(at + length)
            }
        }
    }

    /// Expands a text between double quotes, or of a here-document, in which `"` is plain.
    pub(super) fn double_quoted(&mut self, text: &str, document: bool, fields: &mut Fields) {
        let mut parser = Parser::new(text);
        let mut at = 0;
        let slice = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let mut pieces = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            pieces += 1;
            if pieces > limits::PIECES {
                fields.push_quoted(&UNKNOWN.to_string(), Origin::Variable);
                self.cut(text);
                break;
            }
            let end = match byte {
                b'\\' => {
                    match text.as_bytes().get(at + 1) {
                        Some(b'\n') => {}
                        Some(b'"') if document => fields.push_quoted("\\\"", Origin::Line),
                        Some(b'$' | b'`' | b'"' | b'\\') => {
                            fields.push_quoted(slice(at + 1, at + 2), Origin::Line);
                        }
                        Some(_) | None => {
                            fields.push_quoted("\\", Origin::Line);
                            at += 1;
                            continue;
                        }
                    }
                    Ok(at + 2)
                }
                b'$' => self.dollar(text, at, true, &mut parser, fields),
                b'`' => parser.piece_end(at).map_err(drop).inspect(|end| {
                    let code = quotes::unescape_backquotes(slice(at + 1, end - 1), !document);
                    self.substitute(&code, true, fields);
                }),
                _ => {
                    let rest = slice(at, text.len());
                    let length = rest
                        .bytes()
                        .position(|byte| matches!(byte, b'\\' | b'$' | b'`'))
                        .unwrap_or(rest.len());
                    fields.push_quoted(slice(at, at + length), Origin::Line);
                    Ok(at + length.max(1))
                }
            };
            let Ok(end) = end else {
                fields.push_quoted(&UNKNOWN.to_string(), Origin::Variable);
                return;
            };
            at = end;
        }
    }

    /// `~` and `~/` at the start of a word or of the value in `name=~/x`. Gives where the rest starts.
    fn tilde(&mut self, word: &str, fields: &mut Fields) -> usize {
        let (before, value) = match split_assignment(word) {
            Some((_, _, _, value)) => word.split_at(word.len() - value.len()),
            None => ("", word),
        };
        let Some(rest) = value.strip_prefix('~') else { return 0 };
        let known = match rest.as_bytes() {
            [] | [b'/', ..] => self.start.home.clone().unwrap_or_else(|| "~".to_owned()),
            [b'+'] | [b'+', b'/', ..] => self.working_directory(),
            [b'-'] | [b'-', b'/', ..] => match self.previous_directory() {
                Some(previous) => previous,
                None => return 0,
            },
            _ => return 0,
        };
        fields.push(before);
        fields.push(&known);
        before.len() + 1 + usize::from(rest.starts_with(['+', '-']))
    }

    /// The directory that commands run in, as a path that does not depend on where the line starts.
    pub(crate) fn working_directory(&self) -> String {
        self.directory_path(&self.scope.directory)
    }

    /// The directory that `cd -` goes back to; None if the line has not left one and it is not known from before.
    pub(crate) fn previous_directory(&self) -> Option<String> {
        match &self.scope.previous {
            Some(previous) => Some(self.directory_path(previous)),
            None => self.start.variable("OLDPWD").map(str::to_owned),
        }
    }

    fn directory_path(&self, directory: &Directory) -> String {
        let unknown = || UNKNOWN.to_string();
        let start = self.start.variable("PWD");
        match directory {
            Directory::Start => start.map_or_else(unknown, str::to_owned),
            Directory::Path(path) if path.starts_with(['/', '~']) => path.clone(),
            Directory::Path(path) => start.map_or_else(unknown, |start| format!("{start}/{path}")),
            Directory::Unknown => unknown(),
        }
    }
}

/// Whether a word is its own expansion.
fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'+' | b'@' | b'%' | b'=')
    })
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`' | b'<' | b'>' | b'*' | b'?' | b'[')
}
