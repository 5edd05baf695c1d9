//! Parquet files, in and out.
//!
//! The columns are divided among the threads. Each thread decodes its own columns, and all of them decode the same
//! rows. So files with one row group are also read in parallel, and only one block of rows is held in addition to the
//! result.

use crate::blocks::Source;
use crate::claims::check_pages;
use crate::record_batch::{self, Batch, Opened};
use crate::records::TakeRecords;
use crate::{Format, Loaded, ReadOptions};
use arrow_schema::Schema;
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Number of blocks of rows in a row group that is written.
const BLOCKS_A_GROUP: usize = 16;

/// Reads a Parquet file.
pub fn read(file_name: &str, path: &Path, options: &ReadOptions) -> Result<Loaded> {
    record_batch::read(file_name, path, Format::Parquet, batches(path, options), options)
}

/// The file as blocks of about this many bytes of values.
pub(crate) fn blocks<'a>(
    file: &'a str,
    path: &Path,
    bytes: usize,
    options: &'a ReadOptions,
) -> Result<Box<dyn Source + 'a>> {
    record_batch::blocks(file, Format::Parquet, batches(path, options), bytes, options)
}

/// Reads some columns as text.
pub(crate) fn read_records(path: &Path, options: &ReadOptions, taker: &mut dyn TakeRecords) -> Result<()> {
    let opened = opened(path, |schema| record_batch::chosen(schema, taker))?;
    record_batch::read_records(opened, options, taker)
}

/// The schema of a file, the roles of its columns, and its batches.
fn batches(path: &Path, options: &ReadOptions) -> Result<Opened<Lockstep>> {
    opened(path, |schema| record_batch::roles(schema, options))
}

/// The same for the columns that `roles` names.
fn opened<U>(path: &Path, roles: impl FnOnce(&Schema) -> Result<(U, Vec<usize>)>) -> Result<Opened<Lockstep, U>> {
    let file = open(path)?;
    let bytes = file.metadata().ok().map(|metadata| metadata.len());
    let metadata = guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?.map_err(damaged)?;
    let chunks = check_bounds(&metadata, bytes.unwrap_or(u64::MAX))?;
    check_pages(path, chunks.into_iter()).map_err(|claim| bad_file(&claim))?;
    let schema = metadata.schema().clone();
    let (columns, needed) = roles(&schema)?;
    let threads = parallel::threads().clamp(1, needed.len().max(1));
    let rows = record_batch::block_rows(needed.len());
    let mut readers = Vec::with_capacity(threads);
    for part in needed.chunks(needed.len().div_ceil(threads).max(1)) {
        // Each reader needs its own handle, because clones of one handle share their position in the file.
        let file = open(path)?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), part.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .with_projection(mask)
            .with_batch_size(rows);
        let reader = guarded(|| builder.build())?.map_err(damaged)?;
        readers.push((part.to_vec(), reader));
    }
    let batches = Lockstep { readers, columns: schema.fields().len() };
    Ok(Opened { schema, columns, batches })
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(Code::FileNotFound, "there is no such file").help("check the path"),
        _ => Error::new(Code::FileUnreadable, error.to_string()).help("check its permissions"),
    })
}

fn damaged(error: ParquetError) -> Error {
    bad_file(&error.to_string())
}

fn bad_file(message: &str) -> Error {
    Error::new(Code::BadTable, format!("the Parquet file cannot be read: {message}"))
        .help("the file is damaged, cut short or not Parquet; write it again")
}

/// The bytes of all column chunks. Refuses those that are not inside the file.
fn check_bounds(metadata: &ArrowReaderMetadata, file_bytes: u64) -> Result<Vec<(u64, u64)>> {
    let mut chunks = Vec::new();
    for group in metadata.metadata().row_groups() {
        for chunk in group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(i64::MAX).min(chunk.data_page_offset());
            let bytes = u64::try_from(start)
                .ok()
                .zip(u64::try_from(chunk.compressed_size()).ok())
                .and_then(|(start, length)| Some((start, start.checked_add(length)?)));
            match bytes {
                Some((start, end)) if group.num_rows() >= 0 && end <= file_bytes => chunks.push((start, end)),
                _ => return Err(bad_file("a column lies outside of the file")),
            }
        }
    }
    Ok(chunks)
}

fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T> {
    record_batch::guarded(decode).map_err(|message| bad_file(&message))
}

/// Readers over different columns of one file. They read the same rows at a time.
struct Lockstep {
    readers: Vec<(Vec<usize>, ParquetRecordBatchReader)>,
    columns: usize,
}

impl Iterator for Lockstep {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let parts: Vec<_> =
            parallel::map_each(self.readers.iter_mut().collect(), |_, (_, reader)| guarded(|| reader.next()));
        if parts.iter().all(|part| matches!(part, Ok(None))) {
            return None;
        }
        let mut batch = Batch { rows: 0, columns: vec![None; self.columns] };
        for (index, ((columns, _), part)) in self.readers.iter().zip(parts).enumerate() {
            let part = match part {
                Ok(Some(Ok(part))) => part,
                Ok(Some(Err(error))) => return Some(Err(bad_file(&error.to_string()))),
                Err(error) => return Some(Err(error)),
                Ok(None) => return Some(Err(bad_file("some columns end before others"))),
            };
            if index == 0 {
                batch.rows = part.num_rows();
            }
            if part.num_rows() != batch.rows || part.num_columns() != columns.len() {
                return Some(Err(bad_file("some columns have more rows than others")));
            }
            for (&column, array) in columns.iter().zip(part.columns()) {
                batch.columns[column] = Some(array.clone());
            }
        }
        Some(Ok(batch))
    }
}

/// Writes a Parquet file, with rows in input order.
pub fn write(data: &Dataset, out: impl Write + Send) -> Result<()> {
    let failed = |error: ParquetError| match error {
        ParquetError::External(cause) => {
            let cause = cause.downcast().map_or_else(std::io::Error::other, |cause: Box<std::io::Error>| *cause);
            crate::atomic::refused_write(&cause)
        }
        other => crate::atomic::refused_write(&std::io::Error::other(other)),
    };
    let schema = record_batch::schema_of(data);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(failed)?))
        .set_max_row_group_row_count(Some(record_batch::block_rows(schema.fields().len()) * BLOCKS_A_GROUP))
        .build();
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(failed)?;
    for batch in record_batch::batches(data, &schema)? {
        writer.write(&batch?).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}
