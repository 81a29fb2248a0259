//! Reads the text of a pattern as words: quotes, `*`, `{a,b}`.

use super::error::PatternError;
use super::wildcard::ANY;

/// How many patterns one text may stand for.
const LIMIT: usize = 64;

/// The words of each alternative; `*` outside quotes is [`ANY`].
pub(super) fn alternatives(text: &str) -> Result<Vec<Vec<String>>, PatternError> {
    let mut all = vec![Vec::new()];
    for word in words(text)? {
        let spellings = word.spellings()?;
        if all.len() * spellings.len() > LIMIT {
            return Err(PatternError::TooManyAlternatives { limit: LIMIT });
        }
        all = all
            .iter()
            .flat_map(|before: &Vec<String>| {
                spellings
                    .iter()
                    .map(|spelling| [before.as_slice(), std::slice::from_ref(spelling)].concat())
            })
            .collect();
    }
    Ok(all)
}

/// A word, as pieces one after another; each piece is one of several texts.
#[derive(Default)]
struct PatternWord {
    pieces: Vec<Vec<String>>,
}

impl PatternWord {
    fn push(&mut self, letter: char) {
        match self.pieces.last_mut().map(Vec::as_mut_slice) {
            Some([text]) => text.push(letter),
            _ => self.pieces.push(vec![letter.to_string()]),
        }
    }

    fn spellings(&self) -> Result<Vec<String>, PatternError> {
        let mut all = vec![String::new()];
        for piece in &self.pieces {
            if all.len() * piece.len() > LIMIT {
                return Err(PatternError::TooManyAlternatives { limit: LIMIT });
            }
            let joined = |before: &String| -> Vec<String> {
                piece.iter().map(|text| format!("{before}{text}")).collect()
            };
            all = all.iter().flat_map(joined).collect();
        }
        Ok(all)
    }
}

fn words(text: &str) -> Result<Vec<PatternWord>, PatternError> {
    let mut words = Vec::new();
    let mut word: Option<PatternWord> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == ' ' || letter == '\t' {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match letter {
            '\'' | '"' => quoted(letter, &mut letters, word)?,
            '\\' => letters.next().into_iter().for_each(|next| word.push(next)),
            '*' => word.push(ANY),
            '{' => {
                let choices = choices(&mut letters)?;
                word.pieces.push(choices);
                // An empty piece, so that the letters behind do not become a part of the choices.
                word.pieces.push(vec![String::new()]);
            }
            '|' | ';' | '&' | '\n' | '(' | ')' => {
                return Err(PatternError::SeveralCommands { operator: letter });
            }
            '<' | '>' => return Err(PatternError::Redirection { operator: letter }),
            '$' | '`' => return Err(PatternError::Expansion { sign: letter }),
            _ => word.push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(
    quote: char,
    letters: &mut std::str::Chars<'_>,
    word: &mut PatternWord,
) -> Result<(), PatternError> {
    // `''` is a word too.
    word.pieces.push(vec![String::new()]);
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(()),
            '\\' if quote == '"' => letters.next().into_iter().for_each(|next| word.push(next)),
            _ => word.push(letter),
        }
    }
    Err(PatternError::UnclosedQuote { quote })
}

/// The texts between `{` and `}`. Without a comma the braces are just text: `find -exec rm {}`.
fn choices(letters: &mut std::str::Chars<'_>) -> Result<Vec<String>, PatternError> {
    let rest = letters.as_str();
    let end = rest.find('}').ok_or(PatternError::UnclosedBrace)?;
    let inner = &rest[..end];
    *letters = rest[end + 1..].chars();
    if !inner.contains(',') {
        return Ok(vec![format!("{{{inner}}}")]);
    }
    if let Some(sign) = inner.chars().find(|letter| "|;&<>$`'\" ".contains(*letter)) {
        return Err(match sign {
            '<' | '>' => PatternError::Redirection { operator: sign },
            '$' | '`' => PatternError::Expansion { sign },
            '\'' | '"' | ' ' => PatternError::UnclosedBrace,
            operator => PatternError::SeveralCommands { operator },
        });
    }
    let any = ANY.to_string();
    Ok(inner.split(',').map(|choice| choice.replace('*', &any)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::wildcard::shown;
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let all = alternatives(text).expect("a pattern");
        all.iter()
            .map(|words| words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn braces_are_alternatives() {
        assert_eq!(read("git push"), ["git push"]);
        assert_eq!(read("git {push,fetch} x"), ["git push x", "git fetch x"]);
        assert_eq!(
            read("{npm,pnpm} pub{lish,}x"),
            ["npm publishx", "npm pubx", "pnpm publishx", "pnpm pubx"]
        );
        assert_eq!(read("find -exec rm {}"), ["find -exec rm {}"]);
    }

    #[test]
    fn quotes_and_backslashes_take_signs_literally() {
        let words = |text| alternatives(text).expect("a pattern").remove(0);
        assert_eq!(words("rm '/*' \"a b\" c\\ d ''"), ["rm", "/*", "a b", "c d", ""]);
        assert_eq!(words("rm /*"), ["rm".to_owned(), format!("/{ANY}")]);
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, expected) in [
            ("curl | sh", "`|` joins commands"),
            ("a; b", "`;` joins commands"),
            ("echo > x", "redirects to a file"),
            ("rm $HOME", "replaced by the shell"),
            ("rm 'x", "has no end"),
            ("rm {a,b", "`{` has no end"),
            ("a {1,2,3,4,5,6,7,8} {1,2,3,4,5,6,7,8,9}", "more than 64"),
        ] {
            let error = alternatives(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
