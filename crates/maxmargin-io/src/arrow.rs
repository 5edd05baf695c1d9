//! Arrow IPC files and streams, in and out.

use crate::blocks::Source;
use crate::claims::check_arrow;
use crate::record_batch::{self, Batch, Opened};
use crate::records::TakeRecords;
use crate::{Format, Loaded, ReadOptions};
use arrow_array::RecordBatchReader;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// Reads an Arrow IPC file or stream.
pub fn read(file_name: &str, path: &Path, options: &ReadOptions) -> Result<Loaded> {
    record_batch::read(file_name, path, Format::Arrow, batches(path, options), options)
}

/// The file as blocks of about this many bytes of values.
pub(crate) fn blocks<'a>(
    file: &'a str,
    path: &Path,
    bytes: usize,
    options: &'a ReadOptions,
) -> Result<Box<dyn Source + 'a>> {
    record_batch::blocks(file, Format::Arrow, batches(path, options), bytes, options)
}

/// Reads some columns as text.
pub(crate) fn read_records(path: &Path, options: &ReadOptions, taker: &mut dyn TakeRecords) -> Result<()> {
    let opened = opened(path, |schema| record_batch::chosen(schema, taker))?;
    record_batch::read_records(opened, options, taker)
}

/// The schema of a file or stream, the roles of its columns, and its batches.
fn batches(path: &Path, options: &ReadOptions) -> Result<Opened<Batches>> {
    opened(path, |schema| record_batch::roles(schema, options))
}

type Batches = Box<dyn Iterator<Item = Result<Batch>> + Send>;

/// The same for the columns that `roles` names.
fn opened<U>(path: &Path, roles: impl FnOnce(&Schema) -> Result<(U, Vec<usize>)>) -> Result<Opened<Batches, U>> {
    let mut magic = Vec::new();
    open(path)?.take(6).read_to_end(&mut magic).map_err(unreadable)?;
    if magic.starts_with(b"FEA1") {
        return Err(Error::new(Code::BadTable, "this is Feather version 1, and only version 2 (Arrow IPC) is read")
            .help("write the table again as Feather version 2, Arrow or Parquet"));
    }
    let is_file = magic == b"ARROW1";
    check_arrow(path, is_file).map_err(|claim| bad_file(&claim))?;
    let schema = open_batches(path, is_file, None)?.schema();
    let (columns, needed) = roles(&schema)?;
    let width = schema.fields().len();
    let mut reader = open_batches(path, is_file, Some(needed.clone()))?;
    let batches = std::iter::from_fn(move || {
        let found = match guarded(|| reader.next().transpose()) {
            Ok(found) => found?,
            Err(error) => return Some(Err(error)),
        };
        if found.num_columns() != needed.len() {
            return Some(Err(bad_file("a batch has another number of columns than the schema")));
        }
        let mut batch = Batch { rows: found.num_rows(), columns: vec![None; width] };
        for (&column, array) in needed.iter().zip(found.columns()) {
            batch.columns[column] = Some(array.clone());
        }
        Some(Ok(batch))
    });
    Ok(Opened { schema, columns, batches: Box::new(batches) })
}

/// The batches of a file or a stream, with all columns or some.
fn open_batches(path: &Path, is_file: bool, columns: Option<Vec<usize>>) -> Result<Box<dyn RecordBatchReader + Send>> {
    let input = open(path)?;
    guarded(|| -> std::result::Result<Box<dyn RecordBatchReader + Send>, ArrowError> {
        if is_file {
            Ok(Box::new(FileReader::try_new(input, columns)?))
        } else {
            Ok(Box::new(StreamReader::try_new(input, columns)?))
        }
    })
}

fn guarded<T>(decode: impl FnOnce() -> std::result::Result<T, ArrowError>) -> Result<T> {
    match record_batch::guarded(decode) {
        Ok(result) => result.map_err(|error| bad_file(&error.to_string())),
        Err(message) => Err(bad_file(&message)),
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(Code::FileNotFound, "there is no such file").help("check the path"),
        _ => Error::new(Code::FileUnreadable, error.to_string()).help("check its permissions"),
    }
}

fn bad_file(message: &str) -> Error {
    Error::new(Code::BadTable, format!("the Arrow file cannot be read: {message}"))
        .help("the file is damaged, cut short or not Arrow IPC; write it again")
}

/// Writes an Arrow IPC file, with rows in input order.
pub fn write(data: &Dataset, out: impl Write + Send) -> Result<()> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => crate::atomic::refused_write(&error),
        other => crate::atomic::refused_write(&std::io::Error::other(other)),
    };
    let schema = record_batch::schema_of(data);
    let mut writer = FileWriter::try_new(out, &schema).map_err(failed)?;
    for batch in record_batch::batches(data, &schema)? {
        writer.write(&batch?).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}
