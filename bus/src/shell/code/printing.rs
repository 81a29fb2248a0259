//! What `echo` and `printf` print.

use super::super::expand::unescape_ansi;
use super::super::limits;

/// What `echo` prints.
pub(super) fn echo(args: &[&str]) -> String {
    let options = args
        .iter()
        .take_while(|arg| {
            arg.strip_prefix('-').is_some_and(|letters| {
                !letters.is_empty() && letters.chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
            })
        })
        .count();
    let (options, words) = args.split_at(options);
    let mut text = words.join(" ");
    if options.iter().any(|option| option.contains('e')) {
        text = unescape_ansi(&text);
    }
    if !options.iter().any(|option| option.contains('n')) {
        text.push('\n');
    }
    text
}

/// What `printf` prints; None if its format is beyond `%s`, `%b`, `%q`, `%d`, `%c` and `%%`.
pub(crate) fn printf(args: &[&str]) -> Option<String> {
    let args = if args.first() == Some(&"--") { args.get(1..)? } else { args };
    let (format, mut values) = args.split_first()?;
    let mut text = String::new();
    loop {
        let before = values.len();
        format_once(format, &mut values, &mut text)?;
        if values.is_empty() || values.len() == before || text.len() > limits::WORD_BYTES {
            return Some(text);
        }
    }
}

fn format_once(format: &str, values: &mut &[&str], text: &mut String) -> Option<()> {
    let mut pieces = format.split('%');
    text.push_str(&unescape_ansi(pieces.next()?));
    while let Some(piece) = pieces.next() {
        if piece.is_empty() {
            text.push('%');
            text.push_str(&unescape_ansi(pieces.next()?));
            continue;
        }
        let plain =
            piece.trim_start_matches(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.']);
        let mut rest = plain.chars();
        let kind = rest.next()?;
        let value = match values.split_first() {
            Some((value, behind)) => {
                *values = behind;
                *value
            }
            None => "",
        };
        match kind {
            's' | 'q' | 'd' | 'i' | 'u' => text.push_str(value),
            'b' => text.push_str(&unescape_ansi(value)),
            'c' => text.extend(value.chars().next()),
            _ => return None,
        }
        text.push_str(&unescape_ansi(rest.as_str()));
    }
    Some(())
}
