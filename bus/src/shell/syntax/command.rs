//! Pipelines, simple commands and redirections.

use super::parser::{Parser, Unreadable};
use super::scan::{ends_word, name_length};
use super::tree::{AndOr, Command, Document, Join, Pipeline, Redirect, RedirectKind, Simple};
use crate::shell::limits;

impl<'a> Parser<'a> {
    pub(super) fn and_or(&mut self) -> Result<AndOr<'a>, Unreadable> {
        let mut pipelines = vec![(Join::And, self.pipeline()?)];
        loop {
            self.skip_blanks()?;
            let join = match (self.byte(self.at), self.byte(self.at + 1)) {
                (Some(b'&'), Some(b'&')) => Join::And,
                (Some(b'|'), Some(b'|')) => Join::Or,
                _ => return Ok(AndOr { pipelines }),
            };
            self.at += 2;
            self.skip_newlines()?;
            pipelines.push((join, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline<'a>, Unreadable> {
        self.skip_prefixes()?;
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks()?;
            match (self.byte(self.at), self.byte(self.at + 1)) {
                (Some(b'|'), Some(b'|')) => return Ok(commands),
                (Some(b'|'), Some(b'&')) => self.at += 2,
                (Some(b'|'), _) => self.at += 1,
                _ => return Ok(commands),
            }
            self.skip_newlines()?;
            self.skip_bangs()?;
            commands.push(self.command()?);
        }
    }

    /// Skips `!` and `time`, which change nothing about what runs.
    fn skip_prefixes(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_bangs()?;
            if self.plain_word() != "time" {
                return Ok(());
            }
            let before = self.at;
            self.at += "time".len();
            self.skip_blanks()?;
            while matches!(self.plain_word(), "-p" | "--") {
                self.at += self.plain_word().len();
                self.skip_blanks()?;
            }
            if self.plain_word().starts_with('-') {
                self.at = before; // the program `time`, which takes more options
                return Ok(());
            }
        }
    }

    fn skip_bangs(&mut self) -> Result<(), Unreadable> {
        self.skip_blanks()?;
        while self.byte(self.at) == Some(b'!') && self.byte(self.at + 1).is_none_or(ends_word) {
            self.at += 1;
            self.skip_blanks()?;
        }
        Ok(())
    }

    /// The unquoted characters up to the end of the word at the position: what a reserved word is compared with.
    pub(super) fn plain_word(&self) -> &'a str {
        let rest = self.bytes_from(self.at);
        // No reserved word is longer; this keeps looking at each word cheap.
        let length = rest
            .iter()
            .take(10)
            .position(|byte| ends_word(*byte))
            .unwrap_or_else(|| rest.len().min(10));
        self.slice(self.at, self.at + length)
    }

    pub(super) fn command(&mut self) -> Result<Command<'a>, Unreadable> {
        self.skip_blanks()?;
        self.commands = self.commands.checked_sub(1).ok_or(Unreadable)?;
        let word = self.plain_word();
        if let Some(compound) = self.nested(|parser| parser.compound(word))? {
            let mut redirects = Vec::new();
            while let Some(redirect) = self.redirect()? {
                add(&mut redirects, redirect)?;
            }
            return Ok(Command::Compound(compound, redirects));
        }
        if word == "function" {
            return self.function_keyword();
        }
        self.simple()
    }

    fn simple(&mut self) -> Result<Command<'a>, Unreadable> {
        let mut simple = Simple::default();
        loop {
            if let Some(redirect) = self.redirect()? {
                add(&mut simple.redirects, redirect)?;
                continue;
            }
            match self.byte(self.at) {
                Some(b'(') => {
                    if let ([name], []) = (simple.words.as_slice(), simple.redirects.as_slice()) {
                        return self.function(name);
                    }
                    return Err(Unreadable);
                }
                Some(byte) if !ends_word(byte) || self.opens_process_substitution() => {
                    let end = self.word_end(self.at)?;
                    simple.words.push(self.slice(self.at, end));
                    self.at = end;
                }
                Some(_) | None => break,
            }
        }
        if simple.words.is_empty() && simple.redirects.is_empty() {
            return Err(Unreadable);
        }
        Ok(Command::Simple(simple))
    }

    fn opens_process_substitution(&self) -> bool {
        matches!(self.byte(self.at), Some(b'<' | b'>')) && self.byte(self.at + 1) == Some(b'(')
    }

    /// `name ( )` and a body, from the parenthesis.
    fn function(&mut self, name: &'a str) -> Result<Command<'a>, Unreadable> {
        self.at += 1;
        self.skip_blanks()?;
        if self.byte(self.at) != Some(b')') {
            return Err(Unreadable);
        }
        self.at += 1;
        self.function_body(name)
    }

    fn function_keyword(&mut self) -> Result<Command<'a>, Unreadable> {
        self.at += "function".len();
        self.skip_blanks()?;
        let end = self.word_end(self.at)?;
        let name = self.slice(self.at, end);
        self.at = end;
        self.skip_blanks()?;
        if self.byte(self.at) == Some(b'(') {
            let before = self.at;
            self.at += 1;
            self.skip_blanks()?;
            if self.byte(self.at) == Some(b')') {
                self.at += 1;
            } else {
                self.at = before; // the body is a subshell
            }
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: &'a str) -> Result<Command<'a>, Unreadable> {
        self.skip_newlines()?;
        let from = self.at;
        match self.nested(Self::command)? {
            Command::Compound(..) => Ok(Command::Function(name, self.slice(from, self.at))),
            Command::Simple(_) | Command::Function(..) => Err(Unreadable),
        }
    }

    /// The redirection at the position, behind blanks.
    fn redirect(&mut self) -> Result<Option<Redirect<'a>>, Unreadable> {
        self.skip_blanks()?;
        let fd = self.descriptor();
        let operator = self.at + fd.map_or(0, str::len);
        let Some((length, kind)) = self.redirect_operator(operator) else {
            return Ok(None);
        };
        self.at = operator + length;
        self.skip_blanks()?;
        let end = self.word_end(self.at)?;
        let target = self.slice(self.at, end);
        if target.is_empty() {
            return Err(Unreadable);
        }
        self.at = end;
        let kind = match kind {
            RedirectKind::HereDocument(tabs) => {
                let expands = !target.contains(['\'', '"', '\\']);
                self.pending.push((self.documents.len(), target, tabs == 1));
                self.documents.push(Document { text: "".into(), expands });
                RedirectKind::HereDocument(self.documents.len() - 1)
            }
            RedirectKind::Read
            | RedirectKind::Write
            | RedirectKind::Append
            | RedirectKind::ReadWrite
            | RedirectKind::Duplicate
            | RedirectKind::HereString => kind,
        };
        Ok(Some(Redirect { fd, kind, target }))
    }

    /// The number or `{name}` right before a redirection operator.
    fn descriptor(&self) -> Option<&'a str> {
        let rest = self.slice(self.at, self.len());
        let length = match rest.as_bytes().first()? {
            b'0'..=b'9' => rest.bytes().take_while(u8::is_ascii_digit).count(),
            b'{' => {
                let name = name_length(rest.get(1..)?);
                if name == 0 || rest.as_bytes().get(name + 1) != Some(&b'}') {
                    return None;
                }
                name + 2
            }
            _ => return None,
        };
        matches!(rest.as_bytes().get(length), Some(b'<' | b'>')).then(|| rest.get(..length))?
    }

    /// The operator at a position and its length. A here-document's index is 1 here if tabs are dropped.
    fn redirect_operator(&self, at: usize) -> Option<(usize, RedirectKind)> {
        let rest = self.bytes_from(at);
        let found = match rest {
            [b'<', b'<', b'<', ..] => (3, RedirectKind::HereString),
            [b'<', b'<', b'-', ..] => (3, RedirectKind::HereDocument(1)),
            [b'<', b'<', ..] => (2, RedirectKind::HereDocument(0)),
            [b'<' | b'>', b'&', ..] => (2, RedirectKind::Duplicate),
            [b'<', b'>', ..] => (2, RedirectKind::ReadWrite),
            [b'<' | b'>', b'(', ..] => return None,
            [b'<', ..] => (1, RedirectKind::Read),
            [b'>', b'>', ..] | [b'&', b'>', b'>', ..] => {
                (if rest.first() == Some(&b'&') { 3 } else { 2 }, RedirectKind::Append)
            }
            [b'>', b'|', ..] | [b'&', b'>', ..] => (2, RedirectKind::Write),
            [b'>', ..] => (1, RedirectKind::Write),
            _ => return None,
        };
        Some(found)
    }
}

fn add<'a>(redirects: &mut Vec<Redirect<'a>>, redirect: Redirect<'a>) -> Result<(), Unreadable> {
    if redirects.len() >= limits::REDIRECTS {
        return Err(Unreadable);
    }
    redirects.push(redirect);
    Ok(())
}
