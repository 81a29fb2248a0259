//! Escapes: `$'…'`, and backslashes between backquotes.

use std::iter::Peekable;
use std::str::Chars;

/// The text of `$'…'`. Also what `echo -e` and `printf` make of their escapes.
pub(crate) fn unescape_ansi(text: &str) -> String {
    let mut result: Vec<u8> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' {
            escape(&mut chars, &mut result);
        } else {
            push(c, &mut result);
        }
    }
    String::from_utf8_lossy(&result).into_owned()
}

fn push(c: char, result: &mut Vec<u8>) {
    result.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// One escape, from behind its backslash.
fn escape(chars: &mut Peekable<Chars<'_>>, result: &mut Vec<u8>) {
    let Some(kind) = chars.next() else {
        result.push(b'\\');
        return;
    };
    match kind {
        'x' => result.push(low_byte(number(chars, 0, 2, 16))),
        // `\0162` is how `echo -e` writes it, `\162` how `$'…'` does.
        '0' => result.push(low_byte(number(chars, 0, 3, 8))),
        '1'..='7' => {
            let first = kind.to_digit(8).unwrap_or_default();
            result.push(low_byte(number(chars, first, 2, 8)));
        }
        'u' | 'U' => {
            let length = if kind == 'u' { 4 } else { 8 };
            if let Some(c) = char::from_u32(number(chars, 0, length, 16)) {
                push(c, result);
            }
        }
        'n' => result.push(b'\n'),
        't' => result.push(b'\t'),
        'r' => result.push(b'\r'),
        'a' => result.push(7),
        'b' => result.push(8),
        'e' | 'E' => result.push(0x1b),
        'f' => result.push(0x0c),
        'v' => result.push(0x0b),
        'c' => drop(chars.next()),
        '\\' | '\'' | '"' | '?' => push(kind, result),
        other => {
            result.push(b'\\');
            push(other, result);
        }
    }
}

fn low_byte(value: u32) -> u8 {
    u8::try_from(value & 0xff).unwrap_or_default()
}

fn number(chars: &mut Peekable<Chars<'_>>, first: u32, digits: usize, radix: u32) -> u32 {
    let mut value = first;
    for _ in 0..digits {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
        chars.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    value
}

/// The code between backquotes: a backslash before `` ` ``, `$` or `\` (between double quotes also `"`) goes.
pub(super) fn unescape_backquotes(code: &str, in_quotes: bool) -> String {
    let mut result = String::with_capacity(code.len());
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        let escapes = c == '\\'
            && chars.peek().is_some_and(|next| {
                matches!(next, '`' | '$' | '\\') || (in_quotes && *next == '"')
            });
        if escapes {
            result.extend(chars.next());
        } else {
            result.push(c);
        }
    }
    result
}
