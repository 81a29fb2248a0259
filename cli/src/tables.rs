//! Results of queries for people and programs: as a table, as CSV, as JSON.

use hookbus_subscribers::analytics::SqlValue;
use serde_json::{Map, Value, json};

use crate::output::{Paint, pad, pad_left, shorten, width};

/// The widest column of a table.
const WIDEST: usize = 60;

/// A value as JSON. A BLOB is hex.
pub(crate) fn to_json(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => json!(number),
        SqlValue::Real(number) => json!(number),
        SqlValue::Text(text) => json!(text),
        SqlValue::Blob(bytes) => json!(hex::encode(bytes)),
    }
}

/// A row as a JSON object. Of columns with the same name, the last one counts.
pub(crate) fn object(columns: &[String], row: &[SqlValue]) -> Map<String, Value> {
    columns.iter().zip(row).map(|(name, value)| (name.clone(), to_json(value))).collect()
}

/// A value as text; null is empty.
pub(crate) fn to_text(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(bytes) => hex::encode(bytes),
    }
}

/// A line of CSV (RFC 4180, with `\n`).
pub(crate) fn csv_line<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        if value.contains(['"', ',', '\n', '\r']) {
            line.push('"');
            line.push_str(&value.replace('"', "\"\""));
            line.push('"');
        } else {
            line.push_str(value);
        }
    }
    line
}

/// Whether a column holds numbers only, and is set right.
fn is_numeric(rows: &[Vec<SqlValue>], at: usize) -> bool {
    let is_number = |row: &Vec<SqlValue>| {
        matches!(row.get(at), Some(SqlValue::Integer(_) | SqlValue::Real(_) | SqlValue::Null))
    };
    rows.iter().all(is_number)
}

/// The lines of a table, safe for a terminal.
pub(crate) fn table(columns: &[String], rows: &[Vec<SqlValue>], paint: Paint) -> Vec<String> {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|value| shorten(&shown(value), WIDEST)).collect())
        .collect();
    let heads: Vec<String> = columns.iter().map(|name| shorten(name, WIDEST)).collect();
    let column = |at: usize| {
        let of = |row: &Vec<String>| row.get(at).map_or(0, |cell| width(cell));
        cells.iter().chain([&heads]).map(of).max().unwrap_or(0)
    };
    let columns: Vec<(usize, bool)> =
        (0..heads.len()).map(|at| (column(at), is_numeric(rows, at))).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&columns).map(|(cell, (columns, is_numeric))| {
            if *is_numeric { pad_left(cell, *columns) } else { pad(cell, *columns) }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(paint.bold(&line(&heads))).chain(cells.iter().map(|row| line(row))).collect()
}

/// A value as people read it: numbers with few digits behind the point.
pub(crate) fn shown(value: &SqlValue) -> String {
    match value {
        SqlValue::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{number:.0}")
        }
        SqlValue::Real(number) if number.abs() < 10.0 => format!("{number:.3}"),
        SqlValue::Real(number) => format!("{number:.1}"),
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Text(_) | SqlValue::Blob(_) => {
            to_text(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_would_break_a_line() {
        assert_eq!(csv_line(["a", "b,c", "d\"e", "f\ng", ""]), "a,\"b,c\",\"d\"\"e\",\"f\ng\",");
    }

    #[test]
    fn a_table_shows_no_character_that_moves_the_cursor() {
        let rows = [vec![SqlValue::Text("a\u{1b}[2Jb".to_owned()), SqlValue::Integer(7)]];
        let lines = table(&["x".to_owned(), "n".to_owned()], &rows, Paint(false));
        assert_eq!(lines, ["x       n", "a\u{fffd}[2Jb  7"]);
    }

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_them() {
        let rows =
            ["漢字", "ab"].map(|text| vec![SqlValue::Text(text.to_owned()), SqlValue::Integer(7)]);
        let lines = table(&["x".to_owned(), "n".to_owned()], &rows, Paint(false));
        assert_eq!(lines, ["x     n", "漢字  7", "ab    7"]);
    }
}
