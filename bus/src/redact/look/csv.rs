//! Tables whose header names a password: what browsers and password managers export, what `psql` and `mysql` print.

use std::ops::Range;

use super::plausible::is_placeholder;
use super::{Look, Rank};

const MAX_ROWS: usize = 512;
const MAX_LINE: usize = 4096;

/// The values of the column whose name the keyword `,password` or `password,` is.
pub(crate) fn csv_column(look: &mut Look<'_>, keyword: Range<usize>) {
    let before = look.before(keyword.start);
    let before = before.get(before.len().saturating_sub(512)..).unwrap_or_default();
    let mark = if look.slice(keyword.clone()).contains(&b'|') { b'|' } else { b',' };
    let is_header =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte == mark || b"_-. \"".contains(byte);
    // A bare quote begins the JSON string around the table.
    let is_outside =
        |at: usize| look.is_json && look.byte(at) == Some(b'"') && look.view.quote_level(at) == 0;
    let inside =
        |(index, byte): &(usize, &u8)| is_header(byte) && !is_outside(keyword.start - 1 - index);
    let start = keyword.start - before.iter().rev().enumerate().take_while(inside).count();
    let rest = look.from(keyword.start);
    let len = rest.iter().take(512).take_while(|byte| is_header(byte)).count();
    let end = keyword.start + len;
    let mut at = match look.from(end) {
        [b'\r', b'\n', ..] => end + 2,
        [b'\n', ..] => end + 1,
        _ => return,
    };
    look.spend(end - start);
    let header = look.slice(start..end);
    let columns = memchr::memchr_iter(mark, header).count() + 1;
    let front = usize::from(look.byte(keyword.start) == Some(mark));
    let column = memchr::memchr_iter(mark, look.slice(start..keyword.start + front)).count();
    // The line between the header and the rows.
    let line = look.from(at);
    let rule = line.iter().take(MAX_LINE).take_while(|byte| b"-+|: \r".contains(byte)).count();
    if mark == b'|' && rule > 0 && line.get(rule) == Some(&b'\n') {
        at += rule + 1;
    }
    for _ in 0..MAX_ROWS {
        let Some(next) = row(look, at, columns, column, mark) else { return };
        at = next;
    }
}

/// Adds the value in `column` of the row at `at` if the row has as many columns as the header. Returns where the next one starts.
fn row(look: &mut Look<'_>, at: usize, columns: usize, column: usize, mark: u8) -> Option<usize> {
    let line = look.from(at);
    let line = line.get(..MAX_LINE).unwrap_or(line);
    let is_end = |at: usize| look.is_json && look.view.quote_level(at) == 0;
    let end = |(index, byte): (usize, &u8)| match byte {
        b'\n' => Some(index),
        b'"' if is_end(at + index) => Some(index),
        _ => None,
    };
    let len = line.iter().enumerate().find_map(end).unwrap_or(line.len());
    look.spend(len + 1);
    let mut fields = Vec::with_capacity(columns);
    let mut in_quotes = false;
    let mut start = at;
    for (index, byte) in line.get(..len)?.iter().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            byte if *byte == mark && !in_quotes => {
                fields.push(start..at + index);
                start = at + index + 1;
            }
            _ => {}
        }
    }
    fields.push(start..at + len);
    if fields.len() != columns {
        return None;
    }
    let field = fields.get(column)?.clone();
    let text = look.slice(field.clone());
    let trimmed = text.trim_ascii();
    let open = text.len() - text.trim_ascii_start().len();
    let quote =
        usize::from(trimmed.len() > 2 && trimmed.starts_with(b"\"") && trimmed.ends_with(b"\""));
    let value = field.start + open + quote..field.start + open + trimmed.len() - quote;
    if value.len() >= 4 && !is_placeholder(look.slice(value.clone())) {
        look.add(value, "password", Rank::Placed);
    }
    Some(at + len + 1)
}
