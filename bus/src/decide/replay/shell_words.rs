//! The words of a bash line and their positions in it: enough to find the programs and scripts that the line
//! names, not to run it.

use std::ops::Range;

/// Words that come before the program of a command.
const BEFORE_PROGRAM: [&str; 14] = [
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "env", "nohup",
    "command",
];

/// One simple command of a line: its words, and the range of each.
pub(super) type SimpleCommand = Vec<(String, Range<usize>)>;

/// The simple commands of `line`, the program first in each. Words that bash would expand, the targets
/// of redirections, comments, and what comes after a here-document begins are left out.
pub(super) fn simple_commands(line: &str) -> Vec<SimpleCommand> {
    let mut all = vec![SimpleCommand::new()];
    let bytes = line.as_bytes();
    let (mut at, mut redirected, mut here_document) = (0, false, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' if here_document => break,
            b' ' | b'\t' => at += 1,
            b'\n' | b';' | b'&' | b'|' | b'(' | b')' => {
                all.push(SimpleCommand::new());
                (at, redirected) = (at + 1, false);
            }
            b'<' | b'>' => {
                let rest = &line[at..];
                here_document |= rest.starts_with("<<") && !rest.starts_with("<<<");
                let arrows = rest.bytes().take_while(|byte| b"<>&-|".contains(byte)).count();
                (at, redirected) = (at + arrows, true);
            }
            b'#' => at += line[at..].find('\n').unwrap_or(line.len() - at),
            _ => {
                let end = end_of_word(bytes, at);
                // The number in `2>` is part of the redirection.
                let number = line[at..end].bytes().all(|byte| byte.is_ascii_digit())
                    && matches!(bytes.get(end), Some(b'<' | b'>'));
                if let (false, false, Some(command)) = (redirected, number, all.last_mut()) {
                    push_word(command, line, at..end);
                }
                (at, redirected) = (end, false);
            }
        }
    }
    all.retain(|command| !command.is_empty());
    all
}

/// Where the word that starts at `at` ends.
fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let (mut end, mut quote) = (at, None);
    while let Some(byte) = bytes.get(end) {
        match (quote, byte) {
            (None, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') => break,
            (None | Some(b'"'), b'\\') => end += 1,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), close) if open == *close => quote = None,
            (_, _) => {}
        }
        end += 1;
    }
    end.min(bytes.len())
}

fn push_word(command: &mut SimpleCommand, line: &str, range: Range<usize>) {
    let raw = &line[range.clone()];
    let is_assignment = raw.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    if command.is_empty() && (is_assignment || BEFORE_PROGRAM.contains(&raw)) {
        return;
    }
    let is_expanded = raw.contains(['$', '`', '*', '?', '[']) || raw.starts_with('~');
    let word = match shlex::split(raw).as_deref() {
        Some([word]) if !is_expanded => word.clone(),
        // Not a file name, but the words after it keep their positions.
        _ => String::new(),
    };
    command.push((word, range));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let all = simple_commands(line).into_iter();
        all.map(|command| command.into_iter().map(|(word, _)| word).collect()).collect()
    }

    #[test]
    fn the_program_is_the_first_word() {
        assert_eq!(words("A=1 env B=2 ./a.sh x"), [["./a.sh", "x"]]);
        assert_eq!(words("if ./a; then 'b c' d; fi"), [vec!["./a"], vec!["b c", "d"], vec!["fi"]]);
        assert_eq!(words("(a 2>b <c | d)"), [["a"], ["d"]]);
        assert_eq!(words("a $b \"$c\" # d"), [["a", "", ""]]);
        assert_eq!(words("a <<E\nb\nE"), [["a"]]);
        assert_eq!(words("a\\ b 'c"), [["a b", ""]]);
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_its_end(line in "[ -~é\\n]{0,60}") {
            for (word, range) in simple_commands(&line).into_iter().flatten() {
                prop_assert!(line.get(range).is_some_and(|raw| raw.len() >= word.len()));
            }
        }
    }
}
