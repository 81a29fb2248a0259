//! The state of reading one text: the position, and the bounds on depth and work.

use std::borrow::Cow;

use super::super::limits;
use super::tree::{Document, List, Script};

/// The text is no shell line that bash would run, or nests too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Reads a text from its start to its end.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    text: &'a str,
    pub(super) at: usize,
    depth: usize,
    /// How many steps are left. Backtracking (`((` may open a calculation or two subshells) costs steps too, so
    /// no text takes more than linear time.
    fuel: usize,
    /// How many commands may still come.
    pub(super) commands: usize,
    pub(super) documents: Vec<Document<'a>>,
    /// The here-documents whose bodies start behind the next newline: index, delimiter, whether tabs go.
    pub(super) pending: Vec<(usize, &'a str, bool)>,
}

/// Reads a text as far as bash would run it. [`Script::unread`] is the rest.
pub(crate) fn parse(text: &str) -> Script<'_> {
    let mut parser = Parser::new(text);
    let (list, unread) = parser.top_level();
    parser.read_documents();
    Script { list, documents: parser.documents, unread: text.get(unread..).unwrap_or_default() }
}

impl<'a> Parser<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            fuel: text.len() * 8 + 256,
            commands: limits::PARSED_COMMANDS,
            documents: Vec::new(),
            pending: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    pub(super) fn bytes_from(&self, from: usize) -> &'a [u8] {
        self.text.as_bytes().get(from..).unwrap_or_default()
    }

    /// The text between two positions; empty if they are out of bounds.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Counts one step.
    pub(super) const fn burn(&mut self) -> Result<(), Unreadable> {
        if self.fuel == 0 {
            return Err(Unreadable);
        }
        self.fuel -= 1;
        Ok(())
    }

    /// Runs one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        if self.depth >= limits::NESTING {
            self.fuel = 0; // no other way of reading the same text will be less deep
            return Err(Unreadable);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The position behind the `)` of a command substitution, from behind its `(`. Its commands are read, as
    /// only the grammar tells a `)` in `case` or in a comment from the closing one.
    pub(super) fn substitution_end(&mut self, from: usize) -> Result<usize, Unreadable> {
        let (outer, kept) = (self.at, self.documents.len());
        let pending = std::mem::take(&mut self.pending);
        self.at = from;
        let read = self.nested(Self::list);
        let end = self.at;
        self.at = outer;
        self.documents.truncate(kept);
        self.pending = pending;
        read?;
        if self.byte(end) == Some(b')') { Ok(end + 1) } else { Err(Unreadable) }
    }

    /// All commands that can be read, and where the first one that cannot starts.
    fn top_level(&mut self) -> (List<'a>, usize) {
        let mut list = Vec::new();
        loop {
            let mut from = self.at;
            let read = self.skip_newlines().and_then(|()| {
                from = self.at;
                if self.at == self.len() {
                    return Ok(None);
                }
                if self.at_list_end()? {
                    return Err(Unreadable); // `fi`, `}` or `)` without its start
                }
                let item = self.and_or()?;
                match self.byte(self.at) {
                    Some(b';') if self.byte(self.at + 1) == Some(b';') => return Err(Unreadable),
                    Some(b';' | b'&') => self.at += 1,
                    Some(b'\n') | None => {}
                    Some(_) => return Err(Unreadable),
                }
                Ok(Some(item))
            });
            match read {
                Ok(Some(item)) => list.push(item),
                Ok(None) => return (list, self.len()),
                Err(Unreadable) => return (list, from),
            }
        }
    }

    /// The commands up to a word or operator that closes them, which is not consumed.
    pub(super) fn list(&mut self) -> Result<List<'a>, Unreadable> {
        let mut list = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.at_list_end()? {
                return Ok(list);
            }
            list.push(self.and_or()?);
            match self.byte(self.at) {
                Some(b';') if matches!(self.byte(self.at + 1), Some(b';' | b'&')) => {}
                Some(b';' | b'&') => self.at += 1,
                Some(b'\n') => {}
                Some(_) | None if self.at_list_end()? => {}
                Some(_) | None => return Err(Unreadable),
            }
        }
    }

    /// Skips blanks, escaped newlines, and a comment.
    pub(super) fn skip_blanks(&mut self) -> Result<(), Unreadable> {
        loop {
            self.burn()?;
            match self.byte(self.at) {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.byte(self.at + 1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let rest = self.bytes_from(self.at);
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// Skips blanks and newlines; behind a newline the bodies of its here-documents.
    pub(super) fn skip_newlines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks()?;
            if self.byte(self.at) != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.read_documents();
        }
    }

    /// Reads the bodies of the pending here-documents. One without its closing line ends with the text, as in
    /// bash.
    pub(super) fn read_documents(&mut self) {
        for (index, delimiter, tabs) in std::mem::take(&mut self.pending) {
            let rest = self.slice(self.at, self.len());
            let unquoted: String =
                delimiter.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            let (mut body, mut behind) = (rest.len(), rest.len());
            let mut position = 0;
            for line in rest.split_inclusive('\n') {
                let plain = line.strip_suffix('\n').unwrap_or(line);
                let plain = if tabs { plain.trim_start_matches('\t') } else { plain };
                if plain == unquoted {
                    (body, behind) = (position, position + line.len());
                    break;
                }
                position += line.len();
            }
            let text = rest.get(..body).unwrap_or_default();
            self.at += behind;
            if let Some(document) = self.documents.get_mut(index) {
                document.text = if tabs { without_tabs(text) } else { Cow::Borrowed(text) };
            }
        }
    }
}

/// `<<-` drops the tabs that lines start with.
fn without_tabs(text: &str) -> Cow<'_, str> {
    Cow::Owned(text.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect())
}
