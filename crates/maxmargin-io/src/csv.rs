//! Tables of text, in and out: columns separated by commas or tabs, or, to be read, by semicolons or bars.
//!
//! One thread splits the text into records while the others convert the cells of earlier records into numbers. The
//! result does not depend on the number of threads.

use crate::atomic::refused_write;
use crate::bad_rows::BadRows;
use crate::blocks::{self, Source};
use crate::cells::{self, Cell, Problem};
use crate::columns::{Plan, Role, Roles};
use crate::delimiter::{self, FirstLine};
use crate::hashing::{HashedCell, HashedRow, HashedRows};
use crate::kept::{Kept, RawRecord};
use crate::output::{column_names, group_name, label_text, rows_in_input_order};
use crate::pairs::{PairCells, PairTable};
use crate::records::{self, TakeRecords};
use crate::source::read_error;
use crate::table::{Before, RowColumns, Table, Values};
use crate::{Facts, Format, Loaded, Precision, ReadOptions};
use ::csv::ByteRecord;
use maxmargin::data::{Dataset, Names, Targets};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::parallel;
use maxmargin::wording::counted;
use std::io::{Read, Write};

/// The limits of a batch of records, in bytes and in rows. The limit that is reached first ends the batch.
const BATCH_BYTES: usize = 1 << 21;
const BATCH_ROWS: usize = 1 << 14;

/// Number of rows that one thread handles at a time.
const TASK_ROWS: usize = 64;

/// Reads a table with a header from text that is already decompressed.
pub fn read(file_name: &str, input: impl Read + Send, delimiter: u8, options: &ReadOptions) -> Result<Loaded> {
    match options.precision {
        Precision::F32 => read_as::<f32, _>(file_name, input, delimiter, options),
        Precision::F64 => read_as::<f64, _>(file_name, input, delimiter, options),
    }
    .map_err(|error| error.in_file(file_name))
}

fn read_as<V: Cell, R: Read + Send>(file: &str, input: R, delimiter: u8, options: &ReadOptions) -> Result<Loaded> {
    let mut records = Records::new(file, input, delimiter);
    let names = records.header(options)?;
    let format = format_of(delimiter);
    let told = |loaded: Loaded, notes: &[String]| Loaded { facts: told(loaded.facts, notes), ..loaded };
    if let Some(mut table) = PairTable::of(&names, options)? {
        records.each_batch(options, |batch| push_pairs(&mut table, batch))?;
        return table.finish(file, format).map(|loaded| told(loaded, &records.notes));
    }
    let widths = vec![None; names.len()];
    let plan = Roles::find(names, options)?.plan(&widths, options)?;
    let mut table = Table::<V>::new(&plan, options)?;
    records.each_batch(options, |batch| {
        append(&mut table, &plan, batch).map_err(|failure| (failure.row, failure.refusal(&plan, batch)))
    })?;
    table.finish(file, format, plan, options).map(|loaded| told(loaded, &records.notes))
}

/// What the reader of the table found, with what the first bytes told before all else.
fn told(facts: Facts, first: &[String]) -> Facts {
    Facts { notes: [first, &facts.notes].concat(), ..facts }
}

/// Reads some columns as text.
pub(crate) fn read_records(
    file: &str,
    input: impl Read + Send,
    delimiter: u8,
    options: &ReadOptions,
    taker: &mut dyn TakeRecords,
) -> Result<()> {
    let mut records = Records::new(file, input, delimiter);
    let columns = taker.choose(&records.header(options)?)?;
    records.each_batch(options, |batch| {
        let mut cells = Vec::with_capacity(columns.len());
        for (row, record) in batch.iter().enumerate() {
            cells.clear();
            cells.extend(columns.iter().map(|&column| records::present(&record[column])));
            taker.take(&cells, None).map_err(|bad| (row, records::refusal(&columns, bad)))?;
        }
        Ok(())
    })
}

fn format_of(delimiter: u8) -> Format {
    if delimiter == b'\t' { Format::Tsv } else { Format::Csv }
}

/// A table as blocks of about this many bytes of text, in constant memory.
pub(crate) fn blocks<'a>(
    file: &'a str,
    input: Box<dyn Read + Send>,
    delimiter: u8,
    bytes: usize,
    options: &'a ReadOptions,
) -> Result<Box<dyn Source + 'a>> {
    let mut records = Records::new(file, input, delimiter);
    let opened = records.header(options).and_then(|names| {
        if let Some(table) = PairTable::of(&names, options)? {
            return Ok(Columns::Pairs(Box::new(table)));
        }
        let widths = vec![None; names.len()];
        Ok(Columns::Rows(Roles::find(names, options)?.plan(&widths, options)?))
    });
    let mut current = Batch::default();
    let columns = opened.map_err(|error| error.in_file(file))?;
    records.bad_rows = options.bad_rows.clone().filter(|_| matches!(columns, Columns::Rows(_)));
    records.live = options.live;
    if options.bad_rows.is_some() && records.bad_rows.is_none() {
        return Err(Error::new(Code::BadSetting, "bad rows can be left out of rows with features, and not of pairs")
            .in_file(file)
            .help("leave ⟦skip-bad⟧ out"));
    }
    if !records.live {
        current.read(&mut records, bytes);
    }
    let before = Before::new(options);
    Ok(match (columns, options.precision) {
        (Columns::Pairs(rows), _) => {
            Box::new(CsvBlocks { records, rows: *rows, bytes, current, next: Batch::default() })
        }
        (Columns::Rows(plan), Precision::F32) => {
            let rows = TableRows::<f32> { plan, options, table: None, before };
            Box::new(CsvBlocks { records, rows, bytes, current, next: Batch::default() })
        }
        (Columns::Rows(plan), Precision::F64) => {
            let rows = TableRows::<f64> { plan, options, table: None, before };
            Box::new(CsvBlocks { records, rows, bytes, current, next: Batch::default() })
        }
    })
}

/// How the columns of a file are used.
enum Columns {
    Rows(Plan),
    Pairs(Box<PairTable>),
}

/// Converts records, one batch at a time.
trait Rows: Send {
    /// Adds a batch.
    fn take(&mut self, records: &[ByteRecord]) -> Result<std::result::Result<(), (usize, Refusal)>>;
    /// What was added since the previous block; `None` if nothing was.
    fn block(&mut self) -> Result<Option<Dataset>>;
    /// The error for an empty table, if nothing was read so far.
    fn nothing(&self) -> Option<Error>;
    fn facts(&self, file: &str, format: Format) -> Facts;
    fn own_names(&self) -> Option<Names> {
        None
    }
}

/// Rows with features.
struct TableRows<'a, V> {
    plan: Plan,
    options: &'a ReadOptions,
    table: Option<Table<V>>,
    before: Before,
}

impl<V: Cell> Rows for TableRows<'_, V> {
    fn take(&mut self, records: &[ByteRecord]) -> Result<std::result::Result<(), (usize, Refusal)>> {
        let mut table = Table::<V>::new(&self.plan, self.options)?;
        let outcome = append(&mut table, &self.plan, records);
        self.table = Some(table).filter(|_| !records.is_empty());
        Ok(outcome.map_err(|failure| (failure.row, failure.refusal(&self.plan, records))))
    }

    fn block(&mut self) -> Result<Option<Dataset>> {
        self.table.take().map(|table| table.block(&self.plan, &mut self.before)).transpose()
    }

    fn nothing(&self) -> Option<Error> {
        (self.before.rows == 0).then(crate::table::no_rows)
    }

    fn facts(&self, file: &str, format: Format) -> Facts {
        self.before.facts(file, format, &self.plan, self.options)
    }
}

impl Rows for PairTable {
    fn take(&mut self, records: &[ByteRecord]) -> Result<std::result::Result<(), (usize, Refusal)>> {
        Ok(push_pairs(self, records))
    }

    fn block(&mut self) -> Result<Option<Dataset>> {
        PairTable::block(self)
    }

    fn nothing(&self) -> Option<Error> {
        (self.pairs() == 0).then(crate::pairs::no_pairs)
    }

    fn facts(&self, file: &str, format: Format) -> Facts {
        PairTable::facts(self, file, format)
    }

    fn own_names(&self) -> Option<Names> {
        PairTable::own_names(self)
    }
}

struct CsvBlocks<'a, T, R> {
    records: Records<'a, R>,
    rows: T,
    bytes: usize,
    current: Batch,
    next: Batch,
}

impl<T: Rows, R: Read + Send> CsvBlocks<'_, T, R> {
    /// The rows of the current batch, while the next one is read, and whether it was the last.
    fn step(&mut self) -> (Option<(Dataset, u64)>, Result<bool>) {
        let CsvBlocks { records, rows, bytes, current, next } = self;
        // A live stream is not waited for while there is something to learn from.
        if records.live {
            current.read(records, *bytes);
            records.forget_before(current);
        }
        let live = records.live;
        let (_, mut outcome) = parallel::join(
            || {
                if !live {
                    next.read(records, *bytes)
                }
            },
            || rows.take(current.records()),
        );
        while let (Ok(Err((row, refusal))), Some(bad)) = (&mut outcome, records.bad_rows.clone()) {
            let record = &current.records[*row];
            let byte = record.position().map_or(0, csv::Position::byte);
            let refusal = std::mem::replace(refusal, Refusal::none());
            if let Err(error) = bad.put(&records.cell_error(record, refusal), records.raw(byte)) {
                return (None, Err(error));
            }
            current.remove(*row);
            outcome = rows.take(current.records());
        }
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err((row, refusal))) => return (None, Err(records.cell_error(&current.records[row], refusal))),
            Err(error) => return (None, Err(error)),
        }
        let block = match rows.block() {
            Ok(block) => block.map(|block| (block, current.end)),
            Err(error) => return (None, Err(error)),
        };
        if let Some(failure) = current.failure.take() {
            return (block, Err(records.read_error(failure)));
        }
        let ended = current.at_end;
        if let Some(error) = rows.nothing().filter(|_| ended) {
            return (None, Err(error));
        }
        if !live {
            std::mem::swap(current, next);
            records.forget_before(current);
        }
        (block, Ok(ended))
    }
}

impl<T: Rows, R: Read + Send> Source for CsvBlocks<'_, T, R> {
    fn next(&mut self) -> blocks::Batch {
        let (block, outcome) = self.step();
        let (ended, failure) = match outcome {
            Ok(ended) => (ended, None),
            Err(error) => (true, Some(error.in_file(self.records.file))),
        };
        let (blocks, ends) = block.into_iter().unzip();
        blocks::Batch { blocks, ended, failure, ends }
    }

    fn facts(&mut self) -> Facts {
        told(self.rows.facts(self.records.file, format_of(self.records.delimiter)), &self.records.notes)
    }

    fn own_names(&self) -> Option<Names> {
        self.rows.own_names()
    }
}

/// A cell that cannot be used: its column, the error without its position, and what was expected there.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) column: usize,
    pub(crate) error: Error,
    pub(crate) expected: String,
}

impl Refusal {
    /// In place of one that is used up.
    fn none() -> Refusal {
        Refusal { column: 0, error: Error::new(Code::Internal, "a bad row"), expected: String::new() }
    }
}

/// Adds a batch to a table of pairs. The error names the row.
fn push_pairs(table: &mut PairTable, batch: &[ByteRecord]) -> std::result::Result<(), (usize, Refusal)> {
    let (left, right, outcome) = (table.columns.left, table.columns.right, table.columns.outcome);
    let (weight, group) = (table.columns.weight, table.columns.group);
    for (row, record) in batch.iter().enumerate() {
        let cells = PairCells {
            left: &record[left],
            right: &record[right],
            outcome: outcome.map(|column| &record[column]),
            weight: weight.map(|column| (cells::parse(&record[column]), &record[column])),
            group: group.map(|column| &record[column]),
        };
        table.push(&cells, None).map_err(|refusal| (row, refusal))?;
    }
    Ok(())
}

/// Why reading records stopped before the end of the file.
#[derive(Debug)]
enum ReadFailure {
    /// A row with this number of fields, starting at this byte.
    Ragged {
        byte: u64,
        fields: usize,
    },
    /// The last record, starting at this byte, ends inside quotes.
    OpenQuote {
        byte: u64,
    },
    Csv(csv::Error),
    /// A bad row could not be written to the file of bad rows.
    Bad(Error),
}

/// Records that are read together. Their memory is reused.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<ByteRecord>,
    len: usize,
    failure: Option<ReadFailure>,
    at_end: bool,
    /// Where the last record ends in the text.
    end: u64,
}

impl Batch {
    fn read<R: Read>(&mut self, source: &mut Records<'_, R>, bytes: usize) {
        self.len = 0;
        self.failure = None;
        let start = source.reader.position().byte();
        self.end = start;
        while self.len < BATCH_ROWS && source.reader.position().byte() - start < bytes as u64 {
            if source.live && self.len > 0 && source.is_drained() {
                return;
            }
            if self.len == self.records.len() {
                self.records.push(ByteRecord::new());
            }
            let record = &mut self.records[self.len];
            match source.next(record) {
                Ok(true) => {
                    self.len += 1;
                    self.end = source.reader.position().byte();
                }
                Ok(false) => {
                    self.at_end = true;
                    return;
                }
                Err(ReadFailure::Ragged { byte, fields }) if source.bad_rows.is_some() => {
                    if let Err(error) = source.put_away(byte, fields) {
                        self.failure = Some(ReadFailure::Bad(error));
                        return;
                    }
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }

    /// Removes a record. Its memory is kept for later ones.
    fn remove(&mut self, record: usize) {
        self.records[record..self.len].rotate_left(1);
        self.len -= 1;
    }

    fn records(&self) -> &[ByteRecord] {
        &self.records[..self.len]
    }
}

/// The records of a file. The raw text of the latest one is kept for messages.
struct Records<'a, R> {
    file: &'a str,
    delimiter: u8,
    reader: csv::Reader<Kept<R>>,
    columns: usize,
    /// What the delimiter and the first line tell.
    notes: Vec<String>,
    /// Where the previous record starts.
    last: u64,
    ended: bool,
    /// Whether rows are used as soon as they arrive.
    live: bool,
    /// Where rows that cannot be read go.
    bad_rows: Option<BadRows>,
}

impl<'a, R: Read> Records<'a, R> {
    fn new(file: &'a str, input: R, delimiter: u8) -> Records<'a, R> {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            // Rows of another length are detected here, where they can be shown.
            .flexible(true)
            .buffer_capacity(1 << 17)
            .from_reader(Kept::new(input));
        Records {
            file,
            delimiter,
            reader,
            columns: 0,
            notes: delimiter::note(delimiter).into_iter().collect(),
            last: 0,
            ended: false,
            live: false,
            bad_rows: None,
        }
    }

    /// Whether no whole line is left of what arrived.
    fn is_drained(&self) -> bool {
        let next = self.reader.position().byte();
        let kept = self.reader.get_ref();
        next >= kept.received() || memchr::memchr(b'\n', kept.since(next)).is_none()
    }

    /// The text of the record that starts at this byte.
    fn raw(&self, byte: u64) -> &[u8] {
        let text = self.reader.get_ref().since(byte);
        &text[..RawRecord::split(text, self.delimiter).end]
    }

    /// Writes a row with a wrong number of fields to the file of bad rows.
    fn put_away(&self, byte: u64, fields: usize) -> Result<()> {
        let Some(bad) = &self.bad_rows else { return Ok(()) };
        bad.put(&self.read_error(ReadFailure::Ragged { byte, fields }), self.raw(byte))
    }

    /// Reads the names of the columns.
    fn header(&mut self, options: &ReadOptions) -> Result<Vec<String>> {
        let mut record = ByteRecord::new();
        match self.next(&mut record) {
            Ok(true) => {}
            Ok(false) => return Err(Error::new(Code::NoRows, "the file is empty").help(crate::table::TABLE_SHAPE)),
            Err(failure) => return Err(self.read_error(failure)),
        }
        let byte = record.position().map_or(0, csv::Position::byte);
        let mut names = Vec::with_capacity(record.len());
        for (column, field) in record.iter().enumerate() {
            match std::str::from_utf8(field) {
                Ok(name) if !name.contains('\0') => names.push(name.trim().to_string()),
                _ => {
                    let (place, _) = self.place(byte, column, "a column name in UTF-8");
                    return Err(Error::new(Code::NotText, "the names of the columns are not UTF-8 text")
                        .at(place)
                        .help("save the table as UTF-8; compressed files and spreadsheets are not text tables"));
                }
            }
        }
        let value = || names.iter().find(|name| name.parse::<f64>().is_ok()).unwrap_or(&names[0]);
        let message = match FirstLine::of(&names, options) {
            FirstLine::Names => None,
            FirstLine::NumberedNames => {
                self.notes.push("the first line numbers the columns: taken as their names".to_string());
                None
            }
            FirstLine::Values => {
                Some(format!("no header? the first line holds values such as `{}`, not the names of columns", value()))
            }
            FirstLine::Either => {
                let line = names.join(&char::from(self.delimiter).to_string());
                Some(format!("no header? the first line, `{line}`, may be a row of values or the names of columns"))
            }
            FirstLine::AskedByNumber => Some(format!(
                "no header? a column is named by the number `{}`, and the first line holds that as a value",
                value()
            )),
        };
        if let Some(message) = message {
            let (place, _) = self.place(byte, 0, "the names of the columns");
            return Err(Error::new(Code::BadTable, message).at(place).help(
                "put a first line with a name for each column, such as `target,f1,f2`; columns are named, not numbered",
            ));
        }
        self.columns = names.len();
        Ok(names)
    }

    fn next(&mut self, record: &mut ByteRecord) -> std::result::Result<bool, ReadFailure> {
        if self.ended {
            return Ok(false);
        }
        let start = self.reader.position().byte();
        self.reader.get_mut().begin(start);
        match self.reader.read_byte_record(record) {
            Ok(true) => {
                self.last = record.position().map_or(0, csv::Position::byte);
                if record.len() != self.columns && self.columns > 0 {
                    return Err(ReadFailure::Ragged { byte: self.last, fields: record.len() });
                }
                Ok(true)
            }
            Ok(false) => {
                self.ended = true;
                if RawRecord::split(self.reader.get_ref().since(self.last), self.delimiter).open_quote {
                    return Err(ReadFailure::OpenQuote { byte: self.last });
                }
                Ok(false)
            }
            Err(error) => {
                self.ended = true;
                Err(ReadFailure::Csv(error))
            }
        }
    }

    /// Passes on all records, batch by batch, while the next ones are read.
    fn each_batch(
        &mut self,
        options: &ReadOptions,
        mut take: impl FnMut(&[ByteRecord]) -> std::result::Result<(), (usize, Refusal)> + Send,
    ) -> Result<()>
    where
        R: Send,
    {
        let (mut current, mut next) = (Batch::default(), Batch::default());
        current.read(self, BATCH_BYTES);
        loop {
            options.cancel.check()?;
            let (_, outcome) = parallel::join(|| next.read(self, BATCH_BYTES), || take(current.records()));
            if let Err((row, refusal)) = outcome {
                return Err(self.cell_error(&current.records[row], refusal));
            }
            if let Some(failure) = current.failure.take() {
                return Err(self.read_error(failure));
            }
            if current.at_end {
                return Ok(());
            }
            std::mem::swap(&mut current, &mut next);
            self.forget_before(&current);
        }
    }

    fn forget_before(&mut self, batch: &Batch) {
        let first = batch.records().first().and_then(ByteRecord::position).map(csv::Position::byte);
        self.reader.get_mut().forget_before(first.unwrap_or(self.last).min(self.last));
    }

    /// The position of a field in the record that starts at `byte`, and whether the record has a quote that never
    /// closes.
    fn place(&self, byte: u64, field: usize, expected: &str) -> (Place, bool) {
        let kept = self.reader.get_ref();
        let raw = kept.since(byte);
        let record = RawRecord::split(raw, self.delimiter);
        let token = record.fields.get(field).cloned().unwrap_or(record.end..record.end);
        let line_start = memchr::memrchr(b'\n', &raw[..token.start]).map_or(0, |newline| newline + 1);
        let line_end = memchr::memchr(b'\n', &raw[token.start..]).map_or(raw.len(), |newline| token.start + newline);
        let line = raw[line_start..line_end].strip_suffix(b"\r").unwrap_or(&raw[line_start..line_end]);
        let place = Place {
            file: self.file.to_string(),
            line: Some(kept.line_of(byte + token.start as u64)),
            column: Some((token.start - line_start) as u64 + 1),
            excerpt: Some(Excerpt::of_line(line, token.start - line_start..token.end - line_start, expected)),
        };
        (place, record.open_quote)
    }

    fn open_quote(&self, byte: u64) -> Error {
        let raw = RawRecord::split(self.reader.get_ref().since(byte), self.delimiter);
        let (place, _) = self.place(byte, raw.fields.len().saturating_sub(1), "a quote that opens and never closes");
        Error::new(Code::BadTable, "a quote opens here and is not closed before the end of the file")
            .at(place)
            .help("close the quote; a quote that is part of the text is written twice inside quotes")
    }

    fn cell_error(&self, record: &ByteRecord, refusal: Refusal) -> Error {
        let byte = record.position().map_or(0, csv::Position::byte);
        let (place, open_quote) = self.place(byte, refusal.column, &format!("expected {}", refusal.expected));
        if open_quote { self.open_quote(byte) } else { refusal.error.at(place) }
    }

    fn read_error(&self, failure: ReadFailure) -> Error {
        match failure {
            ReadFailure::Ragged { byte, fields } => {
                let (place, open_quote) =
                    self.place(byte, self.columns, "expected as many fields as there are columns");
                if open_quote {
                    return self.open_quote(byte);
                }
                let (fields, columns) =
                    (counted(fields as u64, "field", "fields"), counted(self.columns as u64, "column", "columns"));
                Error::new(Code::BadTable, format!("this row has {fields}, and the table has {columns}"))
                    .at(place)
                    .help("correct the row; a field that contains the delimiter must stand in quotes")
            }
            ReadFailure::OpenQuote { byte } => self.open_quote(byte),
            ReadFailure::Bad(error) => error,
            ReadFailure::Csv(error) => match error.into_kind() {
                csv::ErrorKind::Io(error) => input_error(error),
                other => Error::new(Code::BadTable, format!("the table cannot be read: {other:?}"))
                    .help("check the file in a text editor or a spreadsheet program"),
            },
        }
    }
}

/// The error of the input. It may wrap an error of this crate that an inner reader passed on.
fn input_error(error: std::io::Error) -> Error {
    let read_error = read_error(&error);
    match error.into_inner().map(|inner| inner.downcast::<Error>()) {
        Some(Ok(ours)) => *ours,
        _ => read_error,
    }
}

/// A cell that cannot be used.
#[derive(Clone, Copy, Debug)]
struct CellFailure {
    row: usize,
    column: usize,
    role: Role,
    problem: Problem,
}

impl CellFailure {
    /// The message about it.
    fn refusal(&self, plan: &Plan, batch: &[ByteRecord]) -> Refusal {
        let found = String::from_utf8_lossy(batch[self.row].get(self.column).unwrap_or_default());
        let (error, expected) = cells::cell_error(self.role, self.problem, &plan.names[self.column], &found, None);
        Refusal { column: self.column, error, expected }
    }
}

/// Converts a batch into rows of the table. If several cells are bad, the first is reported.
fn append<V: Cell>(table: &mut Table<V>, plan: &Plan, records: &[ByteRecord]) -> std::result::Result<(), CellFailure> {
    let cols = table.values.cols();
    let Table { values, rows } = table;
    let (cells, others) = parallel::join(
        || {
            if values.hashed.is_some() {
                return hash_block(values, plan, records);
            }
            values.block(records.len(), |out, fill| {
                let tasks = out.chunks_mut(cols * TASK_ROWS).zip(records.chunks(TASK_ROWS)).collect();
                let missing = parallel::map_each(tasks, |task, (out, records)| {
                    parse_rows(out, records, plan, fill, task * TASK_ROWS)
                });
                missing.into_iter().sum()
            })
        },
        || push_rows(rows, records, plan),
    );
    match (cells, others) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(failure), Ok(())) | (Ok(()), Err(failure)) => Err(failure),
        (Err(left), Err(right)) => Err(if (left.row, left.column) < (right.row, right.column) { left } else { right }),
    }
}

/// Adds rows whose features are hashed.
fn hash_block<V: Cell>(
    values: &mut Values<V>,
    plan: &Plan,
    records: &[ByteRecord],
) -> std::result::Result<(), CellFailure> {
    let Some(columns) = &values.hashed else { return Ok(()) };
    let parts = parallel::map_each(records.chunks(TASK_ROWS).collect(), |task, records| {
        let (mut out, mut line) = (HashedRows::default(), HashedRow::default());
        for (row, record) in records.iter().enumerate() {
            let cell = |feature: usize| hashed_cell::<V>(&record[plan.features[feature].column]);
            columns.line(plan.features_a_row(), &mut out, &mut line, cell).map_err(|(feature, problem)| {
                let (row, column) = (task * TASK_ROWS + row, plan.features[feature].column);
                CellFailure { row, column, role: Role::Feature, problem }
            })?;
        }
        Ok((records.len(), out))
    });
    for part in parts {
        let (lines, rows) = part?;
        values.take_hashed(lines, rows);
    }
    Ok(())
}

/// A cell of text that is to be hashed: a word, unless it is a number.
pub(crate) fn hashed_cell<V: Cell>(text: &[u8]) -> std::result::Result<HashedCell<'_>, Problem> {
    match cells::parse::<V>(text) {
        Ok(value) => Ok(HashedCell::Number(value.wide())),
        Err(Problem::NotANumber) => Ok(HashedCell::Word(text.trim_ascii())),
        Err(problem) => Err(problem),
    }
}

fn parse_rows<V: Cell>(
    out: &mut [V],
    records: &[ByteRecord],
    plan: &Plan,
    fill: Option<&[V]>,
    first_row: usize,
) -> std::result::Result<u64, CellFailure> {
    let mut missing = 0;
    for (row, (record, out)) in records.iter().zip(out.chunks_exact_mut(plan.features.len())).enumerate() {
        for (index, (feature, out)) in plan.features.iter().zip(out).enumerate() {
            *out = match (cells::parse(&record[feature.column]), fill) {
                (Ok(value), _) => value,
                (Err(Problem::Missing), Some(fill)) => {
                    missing += 1;
                    fill[index]
                }
                (Err(problem), _) => {
                    let (row, column) = (first_row + row, feature.column);
                    return Err(CellFailure { row, column, role: Role::Feature, problem });
                }
            };
        }
    }
    Ok(missing)
}

fn push_rows(rows: &mut RowColumns, records: &[ByteRecord], plan: &Plan) -> std::result::Result<(), CellFailure> {
    for (row, record) in records.iter().enumerate() {
        let failure = |column, role| move |problem| CellFailure { row, column, role, problem };
        if let Some(column) = plan.target {
            rows.push_target(&record[column]).map_err(failure(column, Role::Target))?;
        }
        for &column in &plan.labels {
            rows.push_label(cells::parse(&record[column])).map_err(failure(column, Role::Label))?;
        }
        if let Some(column) = plan.group {
            rows.push_group(&record[column]).map_err(failure(column, Role::Group))?;
        }
        if let Some(column) = plan.weight {
            rows.push_weight(cells::parse(&record[column])).map_err(failure(column, Role::Weight))?;
        }
        if let Some(column) = plan.id {
            rows.push_id(&record[column]);
        }
        if let Some(column) = plan.outcome {
            rows.push_outcome(&record[column]).map_err(failure(column, Role::Outcome))?;
        }
    }
    Ok(())
}

/// Writes a table with a header. Rows are in input order, and each value is in the shortest form that parses as the
/// same value. Data with pairs become a table with two items per row.
pub fn write(data: &Dataset, delimiter: u8, out: &mut dyn Write) -> Result<()> {
    if let Some(pairs) = data.pairs() {
        return crate::wide::write_csv(data, pairs, delimiter, out);
    }
    let failed = |error: csv::Error| refused_write(&error.into());
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).buffer_capacity(1 << 17).from_writer(out);
    let (roles, features) = column_names(data);
    writer.write_record(roles.iter().chain(&features)).map_err(failed)?;
    data.matrix().check(0..data.rows())?;
    let double = data.matrix().is_double();
    let mut cells = vec![0.0f64; data.cols()];
    let mut text = Vec::new();
    for row in rows_in_input_order(data) {
        match data.targets() {
            Targets::Absent => {}
            Targets::Real(values) => {
                text.clear();
                cells::print(values[row], true, &mut text);
                writer.write_field(&text).map_err(failed)?;
            }
            targets => writer.write_field(label_text(targets, row)).map_err(failed)?,
        }
        if data.groups().is_some() {
            writer.write_field(&*group_name(data, row)).map_err(failed)?;
        }
        if let Some(weights) = data.weights() {
            text.clear();
            cells::print(weights[row], true, &mut text);
            writer.write_field(&text).map_err(failed)?;
        }
        if let Some(ids) = data.row_ids() {
            writer.write_field(ids.get_bytes(row)).map_err(failed)?;
        }
        cells.fill(0.0);
        data.matrix().each_in_row(row, |column, value| cells[column] = value);
        for &value in &cells {
            text.clear();
            cells::print(value, double, &mut text);
            writer.write_field(&text).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush().map_err(|error| refused_write(&error))
}
