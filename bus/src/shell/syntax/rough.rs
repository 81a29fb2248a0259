//! What can still be recognised in a text that bash would refuse: its words, cut at everything that could
//! separate commands. Quotes are dropped, nothing is expanded.

use super::super::limits;
use super::super::word::UNKNOWN;

/// The words of each fragment.
pub(crate) fn fragments(text: &str) -> Vec<Vec<String>> {
    let mut rough = Rough { fragments: Vec::new(), words: Vec::new(), word: None };
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if rough.fragments.len() >= limits::PROGRAMS {
            break;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') if chars.clone().any(|later| later == c) => quote = Some(c),
            (None, '\'' | '"') => {}
            (Some('\''), c) => rough.push(c),
            (_, '\\') => {
                if let Some(escaped) = chars.next().filter(|escaped| *escaped != '\n') {
                    rough.push(escaped);
                }
            }
            (_, '$') if chars.peek().is_some_and(|next| next.is_alphanumeric() || *next == '_') => {
                while chars.next_if(|next| next.is_alphanumeric() || *next == '_').is_some() {}
                rough.push(UNKNOWN);
            }
            (_, '`' | '(' | ')') => rough.end_fragment(),
            (Some(_), c) => rough.push(c),
            (None, '\n' | ';' | '&' | '|' | '{' | '}') => rough.end_fragment(),
            (None, '<' | '>') => rough.end_word(),
            (None, c) if c.is_whitespace() => rough.end_word(),
            (None, c) => rough.push(c),
        }
    }
    rough.end_fragment();
    rough.fragments
}

struct Rough {
    fragments: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
}

impl Rough {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        if self.words.len() < limits::WORDS {
            self.words.extend(self.word.take());
        }
        self.word = None;
    }

    fn end_fragment(&mut self) {
        self.end_word();
        let mut words = std::mem::take(&mut self.words);
        let leading = words.iter().take_while(|word| skipped(word)).count();
        words.drain(..leading);
        if !words.is_empty() {
            self.fragments.push(words);
        }
    }
}

/// Whether a word before a program is none itself.
fn skipped(word: &str) -> bool {
    matches!(
        word,
        "if" | "then"
            | "else"
            | "elif"
            | "fi"
            | "do"
            | "done"
            | "while"
            | "until"
            | "!"
            | "time"
            | "$"
            | "[["
            | "esac"
            | "coproc"
    ) || super::split_assignment(word).is_some()
}
