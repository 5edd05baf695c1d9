//! Tables as rows of text cells, for data that are neither features nor pairs, such as games and ratings.
//!
//! [`read_records`] passes on the requested columns, row by row and in constant memory, from any table format.
//! [`write_records`] writes rows of text and numbers as CSV or TSV.

use crate::atomic::refused_write;
use crate::cells;
use crate::csv::Refusal;
use crate::mapped::MappedFile;
use crate::read::{Content, Input};
use crate::source::Compression;
use crate::{Facts, Format, ReadOptions};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use std::io::Write;

/// A cell that cannot be used.
#[derive(Debug)]
pub struct BadCell {
    /// The index among the requested columns.
    pub column: usize,
    /// The error. Its position is added later.
    pub error: Error,
    /// What was expected there.
    pub expected: String,
}

/// Receives the rows of a table.
pub trait TakeRecords: Send {
    /// Chooses which columns to read, given the names of all.
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>>;

    /// Receives a row: the cells of the chosen columns in the order chosen, trimmed, and empty if missing. `row` is the
    /// number of the row, for errors that will have no line number.
    fn take(&mut self, cells: &[&[u8]], row: Option<usize>) -> std::result::Result<(), BadCell>;
}

/// Reads some columns of a table in any format as text, row by row. Words for missing values, such as `NA`, become
/// empty cells.
pub fn read_records(file: &str, options: &ReadOptions, taker: &mut dyn TakeRecords) -> Result<Facts> {
    let Input { file: name, format, delimiter, compression, content, bytes, stamps, .. } = Input::open(file, options)?;
    let outcome = match (format, content) {
        (Format::Csv | Format::Tsv, content) => match content {
            Content::Stream(stream) => crate::csv::read_records(&name, stream, delimiter, options, taker),
            Content::File(spot) => {
                let mapped = MappedFile::open(&name, spot.path())?;
                crate::csv::read_records(&name, mapped.bytes(), delimiter, options, taker)
            }
        },
        #[cfg(feature = "tables")]
        (Format::Parquet, Content::File(spot)) => crate::parquet::read_records(spot.path(), options, taker),
        #[cfg(feature = "tables")]
        (Format::Arrow, Content::File(spot)) => crate::arrow::read_records(spot.path(), options, taker),
        (other, _) => Err(Error::new(Code::UnknownFormat, format!("a table is needed, and this file is {other}"))
            .help("give a CSV, TSV, Parquet or Arrow file with named columns")),
    };
    // After a cancel, the reader may return any error. The cancel is reported instead.
    stamps.confirm(outcome).map_err(|error| options.cancel.check().err().unwrap_or(error).in_file(&name))?;
    let compression = compression.map(Compression::name);
    let notes = crate::delimiter::note(delimiter).into_iter().collect();
    Ok(Facts { file: name, format: Some(format), compression, notes, bytes, ..Facts::default() })
}

/// A cell as takers receive it.
pub(crate) fn present(cell: &[u8]) -> &[u8] {
    if cells::is_missing(cell) { &[] } else { cell.trim_ascii() }
}

/// The error of a cell, with the column number of the file.
pub(crate) fn refusal(chosen: &[usize], bad: BadCell) -> Refusal {
    Refusal { column: chosen.get(bad.column).copied().unwrap_or(0), error: bad.error, expected: bad.expected }
}

/// Writes rows of text and numbers to a table.
pub struct RecordWriter<'a> {
    writer: ::csv::Writer<&'a mut dyn Write>,
    cancel: Cancel,
    text: Vec<u8>,
    rows: u64,
}

impl RecordWriter<'_> {
    /// Adds a cell of text to the row.
    pub fn text(&mut self, cell: impl AsRef<[u8]>) -> Result<()> {
        self.writer.write_field(cell).map_err(|error| refused_write(&error.into()))
    }

    /// Adds a number to the row, in the shortest form that parses as the same value.
    pub fn number(&mut self, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(Error::new(
                Code::Overflow,
                format!("row {} of the output would hold {value}: a number of the input is too large", self.rows),
            )
            .help("scale the numbers of the input down"));
        }
        self.text.clear();
        cells::print(value, true, &mut self.text);
        self.writer.write_field(&self.text).map_err(|error| refused_write(&error.into()))
    }

    /// Ends the row.
    pub fn end(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(1024) {
            self.cancel.check()?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(|error| refused_write(&error.into()))
    }
}

/// Writes a table, completely or not at all. It is compressed if its name ends in `.gz` or `.zst`; `-` is standard
/// output.
pub fn write_records(
    file: &str,
    format: Format,
    cancel: &Cancel,
    content: impl FnOnce(&mut RecordWriter<'_>) -> Result<()>,
) -> Result<()> {
    let delimiter = match format {
        Format::Csv => b',',
        Format::Tsv => b'\t',
        other => {
            return Err(Error::new(Code::UnknownFormat, format!("the output must be CSV or TSV, not {other}"))
                .in_file(file)
                .help("end the name in .csv or .tsv, which may be followed by .gz or .zst"));
        }
    };
    crate::write_text_file(file, |out| {
        let writer = ::csv::WriterBuilder::new().delimiter(delimiter).buffer_capacity(1 << 17).from_writer(out);
        let mut records = RecordWriter { writer, cancel: cancel.clone(), text: Vec::new(), rows: 0 };
        content(&mut records)?;
        // After a cancel, the file is not put in place.
        cancel.check()?;
        records.writer.flush().map_err(|error| refused_write(&error))
    })
}
