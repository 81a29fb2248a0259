//! Compound commands: groups, conditions, loops, `case`, calculations, tests.

use super::parser::{Parser, Unreadable};
use super::scan::ends_word;
use super::tree::{Branch, Compound, List};

impl<'a> Parser<'a> {
    /// The compound command that starts with this word; None if the word starts none.
    pub(super) fn compound(&mut self, word: &str) -> Result<Option<Compound<'a>>, Unreadable> {
        let compound = match word {
            "" if self.byte(self.at) == Some(b'(') => self.parentheses()?,
            "{" => {
                self.at += 1;
                let list = self.list()?;
                self.expect("}")?;
                Compound::Group(list)
            }
            "if" => self.if_clause()?,
            "while" | "until" => {
                self.at += word.len();
                let condition = self.list()?;
                Compound::While(condition, self.do_group()?)
            }
            "for" | "select" => self.for_clause(word.len())?,
            "case" => self.case_clause()?,
            "[[" => self.test()?,
            "coproc" => self.coproc()?,
            _ => return Ok(None),
        };
        Ok(Some(compound))
    }

    /// Whether the list that is being read ends here.
    pub(super) fn at_list_end(&mut self) -> Result<bool, Unreadable> {
        self.skip_blanks()?;
        Ok(match self.byte(self.at) {
            None | Some(b')') => true,
            Some(b';') => matches!(self.byte(self.at + 1), Some(b';' | b'&')),
            Some(_) => matches!(
                self.plain_word(),
                "then" | "fi" | "do" | "done" | "elif" | "else" | "esac" | "}"
            ),
        })
    }

    fn expect(&mut self, word: &str) -> Result<(), Unreadable> {
        self.skip_newlines()?;
        if self.plain_word() != word {
            return Err(Unreadable);
        }
        self.at += word.len();
        Ok(())
    }

    /// `(( … ))` or `( … )`.
    fn parentheses(&mut self) -> Result<Compound<'a>, Unreadable> {
        if self.byte(self.at + 1) == Some(b'(')
            && let Ok(end) = self.arithmetic_end(self.at + 2)
        {
            let text = self.slice(self.at + 2, end - 2);
            self.at = end;
            return Ok(Compound::Arithmetic(text));
        }
        self.at += 1;
        let list = self.list()?;
        if self.byte(self.at) != Some(b')') {
            return Err(Unreadable);
        }
        self.at += 1;
        Ok(Compound::Subshell(list))
    }

    fn if_clause(&mut self) -> Result<Compound<'a>, Unreadable> {
        let mut branches = Vec::new();
        self.at += "if".len();
        loop {
            let condition = self.list()?;
            self.expect("then")?;
            branches.push(Branch { condition, body: self.list()? });
            match self.plain_word() {
                "elif" => self.at += "elif".len(),
                "else" => {
                    self.at += "else".len();
                    branches.push(Branch { condition: Vec::new(), body: self.list()? });
                    break;
                }
                _ => break,
            }
        }
        self.expect("fi")?;
        Ok(Compound::If(branches))
    }

    /// `do … done`, or `{ … }`, which bash takes too.
    fn do_group(&mut self) -> Result<List<'a>, Unreadable> {
        self.skip_newlines()?;
        let close = if self.plain_word() == "{" { "}" } else { "done" };
        self.expect(if close == "}" { "{" } else { "do" })?;
        let body = self.list()?;
        self.expect(close)?;
        Ok(body)
    }

    fn for_clause(&mut self, keyword: usize) -> Result<Compound<'a>, Unreadable> {
        self.at += keyword;
        self.skip_blanks()?;
        if self.byte(self.at) == Some(b'(') && self.byte(self.at + 1) == Some(b'(') {
            let end = self.arithmetic_end(self.at + 2)?;
            let header = self.slice(self.at + 2, end - 2);
            self.at = end;
            self.skip_separator()?;
            return Ok(Compound::ArithmeticFor(header, self.do_group()?));
        }
        let end = self.word_end(self.at)?;
        let name = self.slice(self.at, end);
        self.at = end;
        self.skip_newlines()?;
        let mut values = None;
        if self.plain_word() == "in" {
            self.at += "in".len();
            values = Some(self.words()?);
        }
        self.skip_separator()?;
        let body = self.do_group()?;
        Ok(Compound::For { name, values, body })
    }

    fn skip_separator(&mut self) -> Result<(), Unreadable> {
        self.skip_blanks()?;
        if self.byte(self.at) == Some(b';') {
            self.at += 1;
        }
        Ok(())
    }

    /// Words up to an operator or a newline.
    fn words(&mut self) -> Result<Vec<&'a str>, Unreadable> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks()?;
            let end = self.word_end(self.at)?;
            if end == self.at {
                return Ok(words);
            }
            words.push(self.slice(self.at, end));
            self.at = end;
        }
    }

    fn case_clause(&mut self) -> Result<Compound<'a>, Unreadable> {
        self.at += "case".len();
        self.skip_blanks()?;
        let end = self.word_end(self.at)?;
        let mut words = vec![self.slice(self.at, end)];
        self.at = end;
        self.expect("in")?;
        let mut bodies = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.plain_word() == "esac" {
                self.at += "esac".len();
                return Ok(Compound::Case(words, bodies));
            }
            if self.byte(self.at) == Some(b'(') {
                self.at += 1;
            }
            loop {
                words.append(&mut self.words()?);
                if self.byte(self.at) != Some(b'|') {
                    break;
                }
                self.at += 1;
            }
            if self.byte(self.at) != Some(b')') {
                return Err(Unreadable);
            }
            self.at += 1;
            bodies.push(self.list()?);
            while matches!(self.byte(self.at), Some(b';' | b'&')) {
                self.at += 1;
            }
        }
    }

    /// `[[ … ]]`: operators are skipped, words are kept for what they substitute.
    fn test(&mut self) -> Result<Compound<'a>, Unreadable> {
        self.at += "[[".len();
        let mut words = Vec::new();
        loop {
            self.skip_newlines()?;
            self.burn()?;
            match self.byte(self.at).ok_or(Unreadable)? {
                b'<' | b'>' if self.byte(self.at + 1) != Some(b'(') => self.at += 1,
                byte if ends_word(byte) && !matches!(byte, b'<' | b'>') => self.at += 1,
                _ => {
                    let end = self.word_end(self.at)?;
                    let word = self.slice(self.at, end);
                    self.at = end.max(self.at + 1);
                    if word == "]]" {
                        return Ok(Compound::Test(words));
                    }
                    words.push(word);
                }
            }
        }
    }

    /// `coproc`, an optional name, and a command.
    fn coproc(&mut self) -> Result<Compound<'a>, Unreadable> {
        self.at += "coproc".len();
        self.skip_blanks()?;
        let before = self.at;
        let end = self.word_end(self.at)?;
        self.at = end;
        self.skip_blanks()?;
        let named = end > before && (self.plain_word() == "{" || self.byte(self.at) == Some(b'('));
        if !named {
            self.at = before;
        }
        Ok(Compound::Coproc(Box::new(self.command()?)))
    }
}
