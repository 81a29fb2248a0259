//! Writes rows of a view as a Parquet file: every column optional, times as timestamps, one row group per few ten thousand
//! rows, so that memory does not grow with the export.

use std::io::Write;
use std::sync::Arc;

use chrono::DateTime;
use hookbus_subscribers::analytics::{Column, ColumnKind, SqlValue};
use parquet::basic::{LogicalType, Repetition, TimeUnit, TimestampType, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Rows per row group.
const GROUP: usize = 20_000;

/// Bytes of texts per row group.
const GROUP_BYTES: usize = 64 << 20;

/// A Parquet file that is being written.
pub(super) struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: &'static [Column],
    rows: Vec<Vec<SqlValue>>,
    bytes: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file with these columns.
    pub(super) fn new(out: W, columns: &'static [Column]) -> Result<Self> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_created_by("hookbus".to_owned()).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, columns, rows: Vec::new(), bytes: 0 })
    }

    /// Adds a row with a value for each column.
    pub(super) fn add(&mut self, row: Vec<SqlValue>) -> Result<()> {
        self.bytes += row.iter().map(size).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() >= GROUP || self.bytes >= GROUP_BYTES {
            self.write_group()
        } else {
            Ok(())
        }
    }

    /// Writes what is left, and the end of the file.
    pub(super) fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.close().map(drop)
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut group = self.writer.next_row_group()?;
        for (at, column) in self.columns.iter().enumerate() {
            let Some(mut writer) = group.next_column()? else { break };
            let values = rows.iter().map(|row| row.get(at).unwrap_or(&SqlValue::Null));
            match column.kind {
                ColumnKind::Text => {
                    let text = |value: &SqlValue| Some(ByteArray::from(text(value)?.into_bytes()));
                    write_column::<ByteArrayType>(&mut writer, values.map(text))?;
                }
                ColumnKind::Integer => write_column::<Int64Type>(&mut writer, values.map(integer))?,
                ColumnKind::Real => write_column::<DoubleType>(&mut writer, values.map(real))?,
                ColumnKind::Flag => {
                    let flag = |value: &SqlValue| integer(value).map(|number| number != 0);
                    write_column::<BoolType>(&mut writer, values.map(flag))?;
                }
                ColumnKind::Time => write_column::<Int64Type>(&mut writer, values.map(time))?,
            }
            writer.close()?;
        }
        group.close().map(drop)
    }
}

/// Writes the values of a column; those that are null are only marked.
fn write_column<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}

fn field(column: &Column) -> Result<Arc<Type>> {
    let (physical, logical) = match column.kind {
        ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Integer => (PhysicalType::INT64, None),
        ColumnKind::Real => (PhysicalType::DOUBLE, None),
        ColumnKind::Flag => (PhysicalType::BOOLEAN, None),
        ColumnKind::Time => {
            let timestamp = LogicalType::Timestamp(TimestampType {
                is_adjusted_to_u_t_c: true,
                unit: TimeUnit::MICROS,
            });
            (PhysicalType::INT64, Some(timestamp))
        }
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

const fn size(value: &SqlValue) -> usize {
    match value {
        SqlValue::Text(text) => text.len(),
        SqlValue::Blob(bytes) => bytes.len(),
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) => 8,
    }
}

fn text(value: &SqlValue) -> Option<String> {
    match value {
        SqlValue::Null => None,
        SqlValue::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        SqlValue::Text(text) => Some(text.clone()),
        SqlValue::Integer(number) => Some(number.to_string()),
        SqlValue::Real(number) => Some(number.to_string()),
    }
}

const fn integer(value: &SqlValue) -> Option<i64> {
    match value {
        SqlValue::Integer(number) => Some(*number),
        SqlValue::Null | SqlValue::Real(_) | SqlValue::Text(_) | SqlValue::Blob(_) => None,
    }
}

fn real(value: &SqlValue) -> Option<f64> {
    match value {
        SqlValue::Real(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "SQLite writes whole numbers so")]
        SqlValue::Integer(number) => Some(*number as f64),
        SqlValue::Null | SqlValue::Text(_) | SqlValue::Blob(_) => None,
    }
}

fn time(value: &SqlValue) -> Option<i64> {
    match value {
        SqlValue::Text(text) => {
            DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
        }
        SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_) | SqlValue::Blob(_) => None,
    }
}
