//! The table of a sweep as a Parquet file: a column each, with its type.
//!
//! A column of whole numbers is INT64, of numbers DOUBLE, everything else a UTF-8 string; `key`, `scenario`, `status`
//! and `error` are always strings. All are optional: an empty cell of `points.csv` is null. Rows are in the order of
//! the table, in one row group, uncompressed, so equal tables give equal files.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::table::{cells, columns};
use super::{Store, SweepError, of_store};
use watershed_files as files;

/// Columns that are strings whatever they look like.
const WORDS: [&str; 4] = ["key", "scenario", "status", "error"];

/// The type of a column.
fn physical(name: &str, cells: &[&str]) -> Physical {
    let mut some = cells.iter().filter(|cell| !cell.is_empty()).peekable();
    if WORDS.contains(&name) || some.peek().is_none() {
        Physical::BYTE_ARRAY
    } else if some.clone().all(|cell| cell.parse::<i64>().is_ok()) {
        Physical::INT64
    } else if some
        .all(|cell| cell.parse::<f64>().is_ok() && cell.parse::<u64>().is_err() || cell.parse::<i64>().is_ok())
    {
        Physical::DOUBLE
    } else {
        Physical::BYTE_ARRAY
    }
}

/// Writes a column; empty cells are null.
fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: &[&str],
    value: impl Fn(&str) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().filter(|cell| !cell.is_empty()).map(|cell| value(cell)).collect();
    let there: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_empty())).collect();
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    Ok(())
}

/// Writes the points of the sweep in a folder to a Parquet file; how many there are.
///
/// # Errors
/// The folder holds no sweep, or the file cannot be written.
pub fn parquet(folder: &Path, file: &Path) -> Result<usize, SweepError> {
    if !Store::exists(folder) {
        return Err(SweepError::Usage(super::no_results(folder)));
    }
    let store = Store::open(folder)?;
    let sweep = of_store(&store, folder)?;
    let rows = store.rows();
    let names = columns(&sweep);
    let table: Vec<Vec<String>> = rows.iter().map(|row| cells(&sweep, row)).collect();
    let body =
        |out: &mut std::io::BufWriter<files::AtomicFile>| written(out, &names, &table).map_err(std::io::Error::other);
    files::write_with(file, body).map_err(|error| SweepError::Write { path: file.to_owned(), error })?;
    Ok(rows.len())
}

fn written(out: impl Write + Send, names: &[String], table: &[Vec<String>]) -> Result<(), ParquetError> {
    let column = |at: usize| table.iter().map(|row| row[at].as_str()).collect::<Vec<&str>>();
    let types: Vec<Physical> = names.iter().enumerate().map(|(at, name)| physical(name, &column(at))).collect();
    let mut fields = Vec::new();
    for (name, physical) in names.iter().zip(&types) {
        let mut field = Type::primitive_type_builder(name, *physical).with_repetition(Repetition::OPTIONAL);
        if *physical == Physical::BYTE_ARRAY {
            field = field.with_converted_type(ConvertedType::UTF8);
        }
        fields.push(Arc::new(field.build()?));
    }
    let schema = Arc::new(Type::group_type_builder("points").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_created_by("watershed".into()).build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (at, physical) in types.iter().enumerate() {
        let Some(mut target) = group.next_column()? else { break };
        let cells = column(at);
        match physical {
            Physical::INT64 => write::<Int64Type>(&mut target, &cells, |cell| cell.parse().unwrap_or_default())?,
            Physical::DOUBLE => write::<DoubleType>(&mut target, &cells, |cell| cell.parse().unwrap_or_default())?,
            _ => write::<ByteArrayType>(&mut target, &cells, |cell| cell.into())?,
        }
        target.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}
