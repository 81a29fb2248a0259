//! Results of queries for people and programs: as a table, as CSV, as JSON.

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use hookbus_subscribers::analytics::SqlValue;
use serde_json::{Map, Value, json};

use crate::output::{Paint, shorten};
use crate::settings::Window;

/// The widest column of a table in a pipe.
const WIDEST: usize = 60;

/// The columns between two columns of a table.
const GAP: u16 = 2;

/// What happens to a cell that is wider than its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// It is cut, so that each row is one line.
    Cut,
    /// It goes on in the next line.
    Wrap,
}

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

/// The lines of a table of results, safe for a terminal and fitted to the window.
pub(crate) fn table(
    columns: &[String],
    rows: &[Vec<SqlValue>],
    paint: Paint,
    window: Window,
) -> Vec<String> {
    let most = if window.is_fitted { window.columns } else { WIDEST };
    let mut cells = vec![columns.iter().map(|name| shorten(name, most)).collect::<Vec<_>>()];
    let texts =
        |row: &Vec<SqlValue>| row.iter().map(|value| shorten(&shown(value), most)).collect();
    cells.extend(rows.iter().map(texts));
    let mut table = new_table(cells, Overflow::Cut, window);
    for (at, column) in table.column_iter_mut().enumerate() {
        if is_numeric(rows, at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines = lines_of(&table);
    if let Some(heads) = lines.first_mut() {
        *heads = paint.bold(heads);
    }
    lines
}

/// The lines of a table of texts without colours. The texts have to be safe for a terminal.
pub(crate) fn lines(rows: Vec<Vec<String>>, overflow: Overflow, window: Window) -> Vec<String> {
    lines_of(&new_table(rows, overflow, window))
}

fn new_table(rows: Vec<Vec<String>>, overflow: Overflow, window: Window) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_truncation_indicator("…");
    for cells in rows {
        let mut row = Row::from(cells);
        if overflow == Overflow::Cut {
            row.max_height(1);
        }
        table.add_row(row);
    }
    let last = table.column_count().saturating_sub(1);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if at < last { GAP } else { 0 }));
    }
    if window.is_fitted {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(window.columns).unwrap_or(u16::MAX));
    }
    table
}

fn lines_of(table: &Table) -> Vec<String> {
    table.lines().map(|line| line.trim_end().to_owned()).collect()
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
    use crate::output::width;

    #[test]
    fn csv_quotes_what_would_break_a_line() {
        assert_eq!(csv_line(["a", "b,c", "d\"e", "f\ng", ""]), "a,\"b,c\",\"d\"\"e\",\"f\ng\",");
    }

    const PIPE: Window = Window { columns: 120, lines: None, is_fitted: false };

    #[test]
    fn a_table_shows_no_character_that_moves_the_cursor() {
        let rows = [vec![SqlValue::Text("a\u{1b}[2Jb".to_owned()), SqlValue::Integer(7)]];
        let lines = table(&["x".to_owned(), "n".to_owned()], &rows, Paint(false), PIPE);
        assert_eq!(lines, ["x       n", "a\u{fffd}[2Jb  7"]);
    }

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_them_and_fitted_to_the_window() {
        let rows = ["漢字", "ab", "👩‍💻"]
            .map(|text| vec![SqlValue::Text(text.to_owned()), SqlValue::Integer(7)]);
        let names = ["x".to_owned(), "n".to_owned()];
        let lines = table(&names, &rows, Paint(false), PIPE);
        assert_eq!(lines, ["x     n", "漢字  7", "ab    7", "👩‍💻    7"]);
        let rows = [vec![SqlValue::Text("漢字 text 👩‍💻 ".repeat(9)), SqlValue::Integer(12_345)]];
        let window = Window { columns: 40, lines: None, is_fitted: true };
        let lines = table(&names, &rows, Paint(false), window);
        assert_eq!(lines.len(), 2, "one line for each row: {lines:?}");
        assert!(lines[1].contains('…') && lines[1].ends_with("  12345"), "{lines:?}");
        assert!(lines.iter().all(|line| width(line) <= 40), "{lines:?}");
    }
}
