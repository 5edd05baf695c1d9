//! Converts Arrow's typed columns to a [`Dataset`] and back, for both Parquet and Arrow files.

use crate::blocks::Source;
use crate::cells::{self, Cell, Problem};
use crate::columns::{Plan, Role, Roles};
use crate::csv::hashed_cell;
use crate::hashing::{HashedCell, HashedRow, HashedRows};
use crate::output::{column_names, group_name, label_text, rows_in_input_order};
use crate::pairs::{PairCells, PairTable};
use crate::records::{self, TakeRecords};
use crate::table::{Before, RowColumns, Table, Values};
use crate::{Facts, Format, Loaded, Precision, ReadOptions};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, OffsetSizeTrait, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use maxmargin::data::{Dataset, Names, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::Once;

/// Number of cells handled at once when reading and writing. It keeps the memory for a block near ten megabytes.
const BLOCK_CELLS: usize = 1 << 20;
/// The largest number of rows handled at once.
const BLOCK_ROWS: usize = 1 << 13;
/// Number of rows that one thread transposes at a time, few enough for their cells to stay in cache.
const TASK_ROWS: usize = 64;

/// Number of rows in a block with this many columns.
pub(crate) fn block_rows(columns: usize) -> usize {
    (BLOCK_CELLS / columns.max(1)).clamp(1, BLOCK_ROWS)
}

/// Some rows of the requested columns, by their position in the file.
pub(crate) struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Option<ArrayRef>>,
}

thread_local! {
    /// Whether a panic of this thread is caught and reported as an error of the file.
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Keeps panics that [`guarded`] catches off standard error. All others are reported as before.
fn silence_guarded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
}

/// Runs a decoder of the Arrow libraries. They check most of what they read, but a damaged row count, buffer offset or
/// dictionary page makes them panic (the test on damaged files covers all three). A panic is reported as damage of the
/// file.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> std::result::Result<T, String> {
    silence_guarded();
    let outer = GUARDED.replace(true);
    let decoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode));
    GUARDED.set(outer);
    decoded.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the decoder failed").to_string()
    })
}

/// How the columns of a file are used.
pub(crate) enum Use {
    Rows(Roles),
    Pairs(Box<PairTable>),
}

/// Assigns roles to columns and refuses types that do not fit. The second result says which columns to read.
pub(crate) fn roles(schema: &Schema, options: &ReadOptions) -> Result<(Use, Vec<usize>)> {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    if let Some(table) = PairTable::of(&names, options)? {
        let needed = table.columns.needed();
        for &column in &needed {
            let field = schema.field(column);
            if !is_number(field.data_type()) && !is_text(field.data_type()) {
                return Err(unfit(field, "part of a pair", "store it as numbers or text"));
            }
        }
        return Ok((Use::Pairs(Box::new(table)), needed));
    }
    let roles = Roles::find(names, options)?;
    let mut needed = Vec::new();
    for (column, field) in schema.fields().iter().enumerate() {
        let element = list_element(field.data_type());
        if !roles.needed(column, element.is_some()) {
            continue;
        }
        let fits = match roles.roles[column] {
            Role::Feature => {
                let cells = element.unwrap_or(field.data_type());
                is_number(cells) || (options.hash.is_some() && is_text(cells))
            }
            _ => is_number(field.data_type()) || is_text(field.data_type()),
        };
        if !fits {
            let (use_of, remedy) = match roles.roles[column] {
                Role::Feature => ("a feature", "leave the column out with ⟦ignore=NAME⟧, or store it as numbers"),
                _ => ("used in the role it is named for", "store it as numbers or text, or name another column"),
            };
            return Err(unfit(field, use_of, remedy));
        }
        needed.push(column);
    }
    Ok((Use::Rows(roles), needed))
}

/// The columns that the taker chooses by name, in the order chosen, and the same in file order.
pub(crate) fn chosen(schema: &Schema, taker: &mut dyn TakeRecords) -> Result<(Vec<usize>, Vec<usize>)> {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let columns = taker.choose(&names)?;
    for &column in &columns {
        let field = schema.field(column);
        let kind = field.data_type();
        if !is_number(kind) && !is_text(kind) && !is_date(kind) {
            return Err(unfit(field, "read as text", "store it as numbers, text or dates"));
        }
    }
    let mut needed = columns.clone();
    needed.sort_unstable();
    needed.dedup();
    Ok((columns, needed))
}

/// Passes on the cells of chosen columns as text, row by row.
pub(crate) fn read_records<B: Iterator<Item = Result<Batch>>>(
    opened: Opened<B, Vec<usize>>,
    options: &ReadOptions,
    taker: &mut dyn TakeRecords,
) -> Result<()> {
    let Opened { columns, batches, .. } = opened;
    let mut texts = vec![Vec::new(); columns.len()];
    let mut number = 0;
    for batch in batches {
        options.cancel.check()?;
        let batch = batch?;
        let arrays: Option<Vec<&ArrayRef>> = columns.iter().map(|&column| batch.columns[column].as_ref()).collect();
        let arrays = arrays.ok_or_else(|| Error::new(Code::Internal, "a column was not read"))?;
        for row in 0..batch.rows {
            for (text, array) in texts.iter_mut().zip(&arrays) {
                read_text(array, row, text);
            }
            number += 1;
            let cells: Vec<&[u8]> = texts.iter().map(|text| records::present(text)).collect();
            taker.take(&cells, Some(number)).map_err(|bad| bad.error)?;
        }
    }
    Ok(())
}

fn unfit(field: &Field, use_of: &str, remedy: &str) -> Error {
    let message = format!("column `{}` is of type {} and cannot be {use_of}", field.name(), field.data_type());
    Error::new(Code::BadColumnType, message).help(remedy.replace("NAME", &cells::quoted(field.name())))
}

/// An opened file: its schema, the roles of its columns, and its batches.
pub(crate) struct Opened<B, U = Use> {
    pub(crate) schema: SchemaRef,
    pub(crate) columns: U,
    pub(crate) batches: B,
}

/// Reads all batches of a file into a dataset.
pub(crate) fn read<B: Iterator<Item = Result<Batch>>>(
    file: &str,
    path: &Path,
    format: Format,
    opened: Result<Opened<B>>,
    options: &ReadOptions,
) -> Result<Loaded> {
    let read = |Opened { schema, columns, batches }: Opened<B>| match (columns, options.precision) {
        (Use::Pairs(table), _) => read_pairs(file, format, *table, batches, options),
        (Use::Rows(roles), Precision::F32) => read_as::<f32>(file, format, &schema, roles, batches, options),
        (Use::Rows(roles), Precision::F64) => read_as::<f64>(file, format, &schema, roles, batches, options),
    };
    let mut loaded = opened.and_then(read).map_err(|error| error.in_file(file))?;
    loaded.facts.bytes = path.metadata().ok().map(|metadata| metadata.len());
    Ok(loaded)
}

/// Reads all batches into pairs of items.
fn read_pairs(
    file: &str,
    format: Format,
    mut table: PairTable,
    batches: impl Iterator<Item = Result<Batch>>,
    options: &ReadOptions,
) -> Result<Loaded> {
    for batch in batches {
        options.cancel.check()?;
        let batch = batch?;
        push_pairs(&mut table, &batch, 0..batch.rows)?;
    }
    table.finish(file, format)
}

/// Adds some rows of a batch to a table of pairs.
fn push_pairs(table: &mut PairTable, batch: &Batch, rows: Range<usize>) -> Result<()> {
    let array = |column: usize| {
        batch.columns[column].as_ref().ok_or_else(|| Error::new(Code::Internal, "a column was not read"))
    };
    let (lefts, rights) = (array(table.columns.left)?, array(table.columns.right)?);
    let outcomes = table.columns.outcome.map(array).transpose()?;
    let weights = table.columns.weight.map(array).transpose()?;
    let groups = table.columns.group.map(array).transpose()?;
    let mut texts: [Vec<u8>; 5] = Default::default();
    for row in rows {
        let [left, right, outcome, weight, group] = &mut texts;
        fn text<'a>(array: &ArrayRef, row: usize, text: &'a mut Vec<u8>) -> &'a [u8] {
            read_text(array, row, text);
            text
        }
        let cells = PairCells {
            left: text(lefts, row, left),
            right: text(rights, row, right),
            outcome: outcomes.map(|array| text(array, row, outcome)),
            weight: weights.map(|array| {
                let text = text(array, row, weight);
                (weight_at(array, row, text), text)
            }),
            group: groups.map(|array| text(array, row, group)),
        };
        let number = table.pairs() + 1;
        table.push(&cells, Some(number)).map_err(|refusal| refusal.error)?;
    }
    Ok(())
}

/// A weight, from a column of numbers or of text.
fn weight_at(array: &dyn Array, row: usize, text: &[u8]) -> std::result::Result<f64, Problem> {
    if array.is_null(row) {
        Err(Problem::Missing)
    } else if is_text(array.data_type()) {
        cells::parse(text)
    } else {
        number_at(array, row)
    }
}

fn read_as<V: Cell>(
    file: &str,
    format: Format,
    schema: &Schema,
    roles: Roles,
    mut batches: impl Iterator<Item = Result<Batch>>,
    options: &ReadOptions,
) -> Result<Loaded> {
    let first = first_rows(&mut batches)?;
    let widths = list_widths(schema, &first)?;
    let plan = roles.plan(&widths, options)?;
    let mut table = Table::<V>::new(&plan, options)?;
    let block = block_rows(plan.features.len());
    for batch in std::iter::once(Ok(first)).chain(batches) {
        let batch = batch?;
        for start in (0..batch.rows).step_by(block) {
            options.cancel.check()?;
            let rows = start..(start + block).min(batch.rows);
            append(&mut table, &plan, &widths, &batch, rows, 0)?;
        }
    }
    table.finish(file, format, plan, options)
}

/// The first batch that has rows.
fn first_rows(batches: &mut impl Iterator<Item = Result<Batch>>) -> Result<Batch> {
    loop {
        match batches.next().transpose()? {
            None => {
                return Err(
                    Error::new(Code::NoRows, "the table has columns and no rows").help(crate::table::TABLE_SHAPE)
                );
            }
            Some(batch) if batch.rows == 0 => {}
            Some(batch) => return Ok(batch),
        }
    }
}

/// The file as blocks of about this many bytes of values.
pub(crate) fn blocks<'a, B: Iterator<Item = Result<Batch>> + Send + 'a>(
    file: &'a str,
    format: Format,
    opened: Result<Opened<B>>,
    bytes: usize,
    options: &'a ReadOptions,
) -> Result<Box<dyn Source + 'a>> {
    opened.and_then(|opened| table_blocks(file, format, opened, bytes, options)).map_err(|error| error.in_file(file))
}

fn table_blocks<'a, B: Iterator<Item = Result<Batch>> + Send + 'a>(
    file: &'a str,
    format: Format,
    Opened { schema, columns, mut batches }: Opened<B>,
    bytes: usize,
    options: &'a ReadOptions,
) -> Result<Box<dyn Source + 'a>> {
    let first = first_rows(&mut batches)?;
    let (batch, next_row) = (Some(first), 0);
    let roles = match columns {
        Use::Rows(roles) => roles,
        Use::Pairs(table) => {
            let rows_a_block = (bytes / PAIR_BYTES).max(1);
            return Ok(Box::new(TableBlocks { file, format, batches, batch, next_row, rows_a_block, rows: *table }));
        }
    };
    let widths = batch.as_ref().map_or(Ok(Vec::new()), |first| list_widths(&schema, first))?;
    let plan = roles.plan(&widths, options)?;
    let value = if options.precision == Precision::F32 { 4 } else { 8 };
    let rows_a_block = (bytes / (value * plan.features.len())).clamp(1, block_rows(plan.features.len()));
    let rows = TableRows { plan, widths, options, before: Before::new(options) };
    Ok(Box::new(TableBlocks { file, format, batches, batch, next_row, rows_a_block, rows }))
}

/// The size assumed for a pair of two ids when blocks are cut by their size.
const PAIR_BYTES: usize = 32;

/// Converts rows of a batch.
trait Rows: Send {
    fn block(&mut self, batch: &Batch, rows: Range<usize>) -> Result<Option<Dataset>>;
    fn facts(&self, file: &str, format: Format) -> Facts;
    fn own_names(&self) -> Option<Names> {
        None
    }
}

/// Rows with features.
struct TableRows<'a> {
    plan: Plan,
    widths: Vec<Option<usize>>,
    options: &'a ReadOptions,
    before: Before,
}

impl TableRows<'_> {
    fn block_of<V: Cell>(&mut self, batch: &Batch, rows: Range<usize>) -> Result<Dataset> {
        let mut table = Table::<V>::new(&self.plan, self.options)?;
        append(&mut table, &self.plan, &self.widths, batch, rows, self.before.rows)?;
        table.block(&self.plan, &mut self.before)
    }
}

impl Rows for TableRows<'_> {
    fn block(&mut self, batch: &Batch, rows: Range<usize>) -> Result<Option<Dataset>> {
        match self.options.precision {
            Precision::F32 => self.block_of::<f32>(batch, rows).map(Some),
            Precision::F64 => self.block_of::<f64>(batch, rows).map(Some),
        }
    }

    fn facts(&self, file: &str, format: Format) -> Facts {
        self.before.facts(file, format, &self.plan, self.options)
    }
}

impl Rows for PairTable {
    fn block(&mut self, batch: &Batch, rows: Range<usize>) -> Result<Option<Dataset>> {
        push_pairs(self, batch, rows)?;
        PairTable::block(self)
    }

    fn facts(&self, file: &str, format: Format) -> Facts {
        PairTable::facts(self, file, format)
    }

    fn own_names(&self) -> Option<Names> {
        PairTable::own_names(self)
    }
}

struct TableBlocks<'a, B, T> {
    file: &'a str,
    format: Format,
    batches: B,
    /// The current batch; `None` at the end.
    batch: Option<Batch>,
    next_row: usize,
    rows_a_block: usize,
    rows: T,
}

impl<B: Iterator<Item = Result<Batch>> + Send, T: Rows> TableBlocks<'_, B, T> {
    fn step(&mut self) -> Result<Option<Dataset>> {
        while let Some(batch) = &self.batch {
            if self.next_row < batch.rows {
                let rows = self.next_row..(self.next_row + self.rows_a_block).min(batch.rows);
                self.next_row = rows.end;
                return self.rows.block(batch, rows);
            }
            self.batch = None;
            self.batch = self.batches.next().transpose()?;
            self.next_row = 0;
        }
        Ok(None)
    }
}

impl<B: Iterator<Item = Result<Batch>> + Send, T: Rows> Source for TableBlocks<'_, B, T> {
    fn next(&mut self) -> crate::blocks::Batch {
        match self.step() {
            Ok(block) => crate::blocks::Batch {
                ended: block.is_none(),
                blocks: block.into_iter().collect(),
                failure: None,
                ends: Vec::new(),
            },
            Err(error) => crate::blocks::Batch::failed(error.in_file(self.file)),
        }
    }

    fn facts(&mut self) -> Facts {
        self.rows.facts(self.file, self.format)
    }

    fn own_names(&self) -> Option<Names> {
        self.rows.own_names()
    }
}

fn is_number(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(
        data_type,
        Int8 | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float16
            | Float32
            | Float64
            | Boolean
            | Decimal32(..)
            | Decimal64(..)
            | Decimal128(..)
            | Decimal256(..)
    )
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn is_date(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// The type of a list's elements.
fn list_element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}

/// The length of the lists of each column: from the type, or from the first list.
fn list_widths(schema: &Schema, first: &Batch) -> Result<Vec<Option<usize>>> {
    let mut widths = Vec::with_capacity(schema.fields().len());
    for (field, array) in schema.fields().iter().zip(&first.columns) {
        let Some(array) = array.as_ref().filter(|_| list_element(field.data_type()).is_some()) else {
            widths.push(None);
            continue;
        };
        let width = if let Some(list) = array.as_fixed_size_list_opt() {
            usize::try_from(list.value_length()).ok()
        } else {
            let length = |row: usize| match array.data_type() {
                DataType::LargeList(_) => array.as_list::<i64>().value_length(row) as usize,
                _ => array.as_list::<i32>().value_length(row) as usize,
            };
            (0..array.len()).find(|&row| !array.is_null(row)).map(length)
        };
        let width = width.ok_or_else(|| {
            Error::new(Code::BadTable, format!("column `{}` begins with {} empty lists", field.name(), array.len()))
                .help("leave the column out with ⟦ignore⟧, or put a row with a list first")
        })?;
        widths.push(Some(width));
    }
    Ok(widths)
}

/// A column's plain values, and where the list of each row starts among them (`usize::MAX` if there is none).
struct View<'a> {
    leaf: &'a dyn Array,
    starts: Option<Vec<usize>>,
    nullable: bool,
}

impl View<'_> {
    /// Where the value of a row is, if it has one. `row` counts from the first row of the view, `own` from that of the
    /// batch.
    fn place(&self, row: usize, own: usize, element: usize) -> Option<usize> {
        let at = match &self.starts {
            None => own,
            Some(starts) => Some(starts[row]).filter(|&start| start != usize::MAX)? + element,
        };
        (!(self.nullable && self.leaf.is_null(at))).then_some(at)
    }
}

fn view<'a>(
    array: &'a ArrayRef,
    width: Option<usize>,
    rows: Range<usize>,
) -> std::result::Result<View<'a>, (usize, usize)> {
    fn starts<O: OffsetSizeTrait>(
        array: &ArrayRef,
        width: usize,
        rows: Range<usize>,
    ) -> std::result::Result<Vec<usize>, (usize, usize)> {
        let list = array.as_list::<O>();
        rows.map(|row| {
            if list.is_null(row) {
                return Ok(usize::MAX);
            }
            let length = list.value_length(row).as_usize();
            if length == width { Ok(list.value_offsets()[row].as_usize()) } else { Err((row, length)) }
        })
        .collect()
    }
    let (leaf, starts): (&dyn Array, _) = match (width, array.data_type()) {
        (Some(width), DataType::List(_)) => (array.as_list::<i32>().values(), Some(starts::<i32>(array, width, rows)?)),
        (Some(width), DataType::LargeList(_)) => {
            (array.as_list::<i64>().values(), Some(starts::<i64>(array, width, rows)?))
        }
        (Some(width), DataType::FixedSizeList(..)) => {
            let list = array.as_fixed_size_list();
            let start = |row| if list.is_null(row) { usize::MAX } else { list.value_offset_at(row) };
            debug_assert_eq!(list.value_length() as usize, width);
            (list.values(), Some(rows.map(start).collect()))
        }
        _ => (array, None),
    };
    Ok(View { leaf, starts, nullable: leaf.null_count() > 0 })
}

fn append<V: Cell>(
    table: &mut Table<V>,
    plan: &Plan,
    widths: &[Option<usize>],
    batch: &Batch,
    rows: Range<usize>,
    rows_before: usize,
) -> Result<()> {
    let first_row = rows_before + table.values.rows() + 1;
    let absent = || Error::new(Code::Internal, "a column that is needed was not read");
    let mut views = Vec::with_capacity(batch.columns.len());
    for (column, array) in batch.columns.iter().enumerate() {
        let made = array.as_ref().map(|array| view(array, widths[column], rows.clone())).transpose();
        views.push(made.map_err(|(row, length)| {
            Error::new(
                Code::BadTable,
                format!(
                    "row {}, column `{}`: a list of {length} where the lists before have {}",
                    first_row + row - rows.start,
                    plan.names[column],
                    widths[column].unwrap_or_default()
                ),
            )
            .help("all lists of a column must be of one length")
        })?);
    }
    let sources: Vec<(&View<'_>, usize)> = plan
        .features
        .iter()
        .map(|feature| views[feature.column].as_ref().map(|view| (view, feature.element.unwrap_or(0))))
        .collect::<Option<_>>()
        .ok_or_else(absent)?;
    let failure = |(row, column, name, role, problem): (usize, usize, &str, Role, Problem)| {
        let mut found = Vec::new();
        if let Some(array) = &batch.columns[column] {
            read_text(array, row, &mut found);
        }
        let found = String::from_utf8_lossy(&found);
        cells::cell_error(role, problem, name, &found, Some(first_row + row - rows.start)).0
    };
    let cols = sources.len();
    let Table { values, rows: others } = table;
    let (cells, others) = parallel::join(
        || {
            if values.hashed.is_some() {
                return hash_block(values, plan.features_a_row(), &sources, rows.clone());
            }
            values.block(rows.len(), |out, fill| {
                let tasks = parallel::map_each(out.chunks_mut(cols * TASK_ROWS).collect(), |task, out| {
                    let start = task * TASK_ROWS;
                    write_rows(out, &sources, start..start + out.len() / cols, rows.start, fill)
                });
                tasks.into_iter().sum::<std::result::Result<u64, _>>()
            })
        },
        || push_rows(others, plan, batch, rows.clone()),
    );
    let cells = cells.map_err(|(row, feature, problem)| {
        let feature = &plan.features[feature];
        (row, feature.column, feature.name.as_str(), Role::Feature, problem)
    });
    let others =
        others.map_err(|(row, column, role, problem)| (row, column, plan.names[column].as_str(), role, problem));
    let first = match (cells.err(), others.err()) {
        (Some(left), Some(right)) => Some(if (left.0, left.1) < (right.0, right.1) { left } else { right }),
        (left, right) => left.or(right),
    };
    first.map_or(Ok(()), |first| Err(failure(first)))
}

/// Adds rows whose features are hashed. The error names the row of the batch and the feature.
fn hash_block<V: Cell>(
    values: &mut Values<V>,
    features: usize,
    sources: &[(&View<'_>, usize)],
    rows: Range<usize>,
) -> std::result::Result<(), (usize, usize, Problem)> {
    let Some(columns) = &values.hashed else { return Ok(()) };
    let starts: Vec<usize> = rows.clone().step_by(TASK_ROWS).collect();
    let parts = parallel::map_each(starts, |_, start| {
        let (mut out, mut line) = (HashedRows::default(), HashedRow::default());
        let part = start..(start + TASK_ROWS).min(rows.end);
        let mut texts = vec![Vec::new(); sources.len()];
        for row in part.clone() {
            for ((view, element), text) in sources.iter().zip(&mut texts) {
                text.clear();
                if let Some(at) = view.place(row - rows.start, row, *element)
                    && is_text(view.leaf.data_type())
                {
                    text_at(view.leaf, at, text);
                }
            }
            let cell = |feature: usize| {
                let (view, element) = sources[feature];
                let at = view.place(row - rows.start, row, element).ok_or(Problem::Missing)?;
                if is_text(view.leaf.data_type()) {
                    return hashed_cell::<V>(&texts[feature]);
                }
                number_at::<V>(view.leaf, at).map(|value| HashedCell::Number(value.wide()))
            };
            let hashed = columns.line(features, &mut out, &mut line, cell);
            hashed.map_err(|(feature, problem)| (row, feature, problem))?;
        }
        Ok((part.len(), out))
    });
    for part in parts {
        let (lines, rows) = part?;
        values.take_hashed(lines, rows);
    }
    Ok(())
}

/// Writes some rows of a block. The error names the row of the batch and the feature.
fn write_rows<V: Cell>(
    out: &mut [V],
    sources: &[(&View<'_>, usize)],
    rows: Range<usize>,
    offset: usize,
    fill: Option<&[V]>,
) -> std::result::Result<u64, (usize, usize, Problem)> {
    let mut missing = 0;
    let mut first: Option<(usize, usize, Problem)> = None;
    for (feature, &(view, element)) in sources.iter().enumerate() {
        let out = out[feature..].iter_mut().step_by(sources.len());
        let column = Column { view, element, rows: rows.clone(), offset, fill: fill.map(|fill| fill[feature]) };
        // One loop per type, so that the common types need no type check for each cell.
        let (absent, failure) = match view.leaf.data_type() {
            DataType::Float32 => {
                let values = view.leaf.as_primitive::<Float32Type>().values();
                column.write(out, |at| cells::check(V::narrow(f64::from(values[at]))))
            }
            DataType::Float64 => {
                let values = view.leaf.as_primitive::<Float64Type>().values();
                column.write(out, |at| cells::check(V::narrow(values[at])))
            }
            DataType::Int32 => {
                let values = view.leaf.as_primitive::<Int32Type>().values();
                column.write(out, |at| Ok(V::from_signed(i64::from(values[at]))))
            }
            DataType::Int64 => {
                let values = view.leaf.as_primitive::<Int64Type>().values();
                column.write(out, |at| Ok(V::from_signed(values[at])))
            }
            _ => column.write(out, |at| number_at(view.leaf, at)),
        };
        missing += absent;
        if let Some((row, problem)) = failure
            && first.is_none_or(|(first_row, ..)| row < first_row)
        {
            first = Some((row, feature, problem));
        }
    }
    first.map_or(Ok(missing), Err)
}

/// Some rows of one feature while they are copied to the table.
struct Column<'a, V> {
    view: &'a View<'a>,
    element: usize,
    rows: Range<usize>,
    offset: usize,
    fill: Option<V>,
}

impl<V: Cell> Column<'_, V> {
    /// Writes the cells. Returns how many were missing, and the first bad cell with its row in the batch.
    #[inline]
    fn write<'o>(
        &self,
        out: impl Iterator<Item = &'o mut V>,
        value: impl Fn(usize) -> std::result::Result<V, Problem>,
    ) -> (u64, Option<(usize, Problem)>) {
        let mut missing = 0;
        for (slot, row) in out.zip(self.rows.clone()) {
            let at = match &self.view.starts {
                None => Some(self.offset + row),
                Some(starts) => Some(starts[row]).filter(|&start| start != usize::MAX).map(|at| at + self.element),
            };
            let value = match at {
                Some(at) if !(self.view.nullable && self.view.leaf.is_null(at)) => value(at),
                _ => Err(Problem::Missing),
            };
            *slot = match (value, self.fill) {
                (Ok(value), _) => value,
                (Err(Problem::Missing), Some(fill)) => {
                    missing += 1;
                    fill
                }
                (Err(problem), _) => return (missing, Some((self.offset + row, problem))),
            };
        }
        (missing, None)
    }
}

type RowFailure = (usize, usize, Role, Problem);

fn push_rows(
    others: &mut RowColumns,
    plan: &Plan,
    batch: &Batch,
    rows: Range<usize>,
) -> std::result::Result<(), RowFailure> {
    let array = |column: Option<usize>| column.and_then(|column| batch.columns[column].as_ref().map(|a| (column, a)));
    let (target, group, weight, id) = (array(plan.target), array(plan.group), array(plan.weight), array(plan.id));
    let outcome = array(plan.outcome);
    let mut text = Vec::new();
    for row in rows {
        if let Some((column, array)) = target {
            // Booleans are read as two words, as in text.
            let words = is_text(array.data_type()) || *array.data_type() == DataType::Boolean;
            let outcome = if let Some(own) = labels_at(array, row) {
                others.push_target_list(own.into_iter());
                Ok(())
            } else if array.is_null(row) {
                if others.takes_sets() { others.push_target(b"") } else { Err(Problem::Missing) }
            } else if words {
                read_text(array, row, &mut text);
                others.push_target(&text)
            } else {
                number_at(array, row).and_then(|value| others.push_target_number(value))
            };
            outcome.map_err(|problem| (row, column, Role::Target, problem))?;
        }
        for &column in &plan.labels {
            let Some(array) = batch.columns[column].as_ref() else { continue };
            read_text(array, row, &mut text);
            others.push_label(cells::parse(&text)).map_err(|problem| (row, column, Role::Label, problem))?;
        }
        if let Some((column, array)) = group {
            read_text(array, row, &mut text);
            others.push_group(&text).map_err(|problem| (row, column, Role::Group, problem))?;
        }
        if let Some((column, array)) = weight {
            read_text(array, row, &mut text);
            others.push_weight(weight_at(array, row, &text)).map_err(|problem| (row, column, Role::Weight, problem))?;
        }
        if let Some((_, array)) = id {
            read_text(array, row, &mut text);
            others.push_id(&text);
        }
        if let Some((column, array)) = outcome {
            read_text(array, row, &mut text);
            others.push_outcome(&text).map_err(|problem| (row, column, Role::Outcome, problem))?;
        }
    }
    Ok(())
}

/// The labels of a cell that holds a list; none for other cells.
fn labels_at(array: &dyn Array, row: usize) -> Option<Vec<Vec<u8>>> {
    let own = match array.data_type() {
        _ if array.is_null(row) => return None,
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        _ => return None,
    };
    let mut text = Vec::new();
    let each = (0..own.len()).filter(|&at| !own.is_null(at)).map(|at| {
        read_text(&own, at, &mut text);
        text.clone()
    });
    Some(each.collect())
}

/// Reads a cell as text; empty if the cell is missing.
fn read_text(array: &dyn Array, row: usize, text: &mut Vec<u8>) {
    text.clear();
    if !array.is_null(row) {
        text_at(array, row, text);
    }
}

/// A cell that is not null as a number, rounded once.
fn number_at<V: Cell>(array: &dyn Array, row: usize) -> std::result::Result<V, Problem> {
    macro_rules! decimal {
        ($type:ty) => {
            cells::parse(array.as_primitive::<$type>().value_as_string(row).as_bytes())
        };
    }
    match array.data_type() {
        DataType::Int8 => Ok(V::from_signed(array.as_primitive::<Int8Type>().value(row).into())),
        DataType::Int16 => Ok(V::from_signed(array.as_primitive::<Int16Type>().value(row).into())),
        DataType::Int32 => Ok(V::from_signed(array.as_primitive::<Int32Type>().value(row).into())),
        DataType::Int64 => Ok(V::from_signed(array.as_primitive::<Int64Type>().value(row))),
        DataType::UInt8 => Ok(V::from_unsigned(array.as_primitive::<UInt8Type>().value(row).into())),
        DataType::UInt16 => Ok(V::from_unsigned(array.as_primitive::<UInt16Type>().value(row).into())),
        DataType::UInt32 => Ok(V::from_unsigned(array.as_primitive::<UInt32Type>().value(row).into())),
        DataType::UInt64 => Ok(V::from_unsigned(array.as_primitive::<UInt64Type>().value(row))),
        DataType::Float16 => cells::check(V::narrow(array.as_primitive::<Float16Type>().value(row).to_f64())),
        DataType::Float32 => cells::check(V::narrow(array.as_primitive::<Float32Type>().value(row).into())),
        DataType::Float64 => cells::check(V::narrow(array.as_primitive::<Float64Type>().value(row))),
        DataType::Boolean => Ok(V::from_unsigned(array.as_boolean().value(row).into())),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        _ => Err(Problem::NotANumber),
    }
}

/// Appends a cell that is not null as text; nothing if the type has no text form.
fn text_at(array: &dyn Array, row: usize, out: &mut Vec<u8>) {
    use std::io::Write;
    macro_rules! printed {
        ($type:ty) => {{
            // Writing to a vector cannot fail.
            let _ = write!(out, "{}", array.as_primitive::<$type>().value(row));
        }};
    }
    macro_rules! decimal {
        ($type:ty) => {
            out.extend_from_slice(array.as_primitive::<$type>().value_as_string(row).as_bytes())
        };
    }
    macro_rules! date {
        ($type:ty) => {
            if let Some(date) = array.as_primitive::<$type>().value_as_date(row) {
                let _ = write!(out, "{date}");
            }
        };
    }
    match array.data_type() {
        DataType::Utf8 => out.extend_from_slice(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => out.extend_from_slice(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => out.extend_from_slice(array.as_string_view().value(row).as_bytes()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            let key = number_at::<f64>(dictionary.keys(), row).map_or(usize::MAX, |key| key as usize);
            if key < values.len() && !values.is_null(key) {
                text_at(values, key, out);
            }
        }
        DataType::Int8 => printed!(Int8Type),
        DataType::Int16 => printed!(Int16Type),
        DataType::Int32 => printed!(Int32Type),
        DataType::Int64 => printed!(Int64Type),
        DataType::UInt8 => printed!(UInt8Type),
        DataType::UInt16 => printed!(UInt16Type),
        DataType::UInt32 => printed!(UInt32Type),
        DataType::UInt64 => printed!(UInt64Type),
        DataType::Float16 => printed!(Float16Type),
        DataType::Float32 => cells::print(array.as_primitive::<Float32Type>().value(row).into(), false, out),
        DataType::Float64 => cells::print(array.as_primitive::<Float64Type>().value(row), true, out),
        DataType::Boolean => {
            out.extend_from_slice(if array.as_boolean().value(row) { b"true" } else { b"false" });
        }
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Date32 => date!(Date32Type),
        DataType::Date64 => date!(Date64Type),
        DataType::Timestamp(TimeUnit::Second, _) => date!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => date!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => date!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => date!(TimestampNanosecondType),
        _ => {}
    }
}

/// The columns of a table of these data.
pub(crate) fn schema_of(data: &Dataset) -> SchemaRef {
    if let Some(pairs) = data.pairs() {
        return crate::wide::schema_of(data, pairs);
    }
    let (roles, features) = column_names(data);
    let mut types = Vec::with_capacity(roles.len());
    match data.targets() {
        Targets::Absent => {}
        Targets::Real(_) => types.push(DataType::Float64),
        Targets::Labels { .. } | Targets::Sets { .. } => types.push(DataType::Utf8),
    }
    types.extend(data.groups().map(|_| DataType::Utf8));
    types.extend(data.weights().map(|_| DataType::Float64));
    types.extend(data.row_ids().map(|_| DataType::Utf8));
    let value = if data.matrix().is_double() { DataType::Float64 } else { DataType::Float32 };
    let mut fields: Vec<Field> =
        roles.into_iter().zip(types).map(|(name, data_type)| Field::new(name, data_type, false)).collect();
    fields.extend(features.into_iter().map(|name| Field::new(name, value.clone(), false)));
    Arc::new(Schema::new(fields))
}

/// The rows as batches, in input order; pairs as two items per row.
pub(crate) fn batches<'a>(
    data: &'a Dataset,
    schema: &SchemaRef,
) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>> {
    if let Some(pairs) = data.pairs() {
        return Ok(Box::new(crate::wide::batches(data, pairs, schema)?));
    }
    data.matrix().check(0..data.rows())?;
    let rows = rows_in_input_order(data);
    let size = block_rows(schema.fields().len());
    let schema = Arc::clone(schema);
    Ok(Box::new((0..rows.len()).step_by(size).map(move |start| {
        let rows = &rows[start..(start + size).min(rows.len())];
        batch_of(data, &schema, rows)
    })))
}

fn batch_of(data: &Dataset, schema: &SchemaRef, rows: &[usize]) -> Result<RecordBatch> {
    let reals = |values: &[f64]| -> ArrayRef {
        Arc::new(rows.iter().map(|&row| values[row]).collect::<Vec<f64>>().into_iter().collect::<Float64Array>())
    };
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    match data.targets() {
        Targets::Absent => {}
        Targets::Real(values) => columns.push(reals(values)),
        targets => {
            columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|&row| label_text(targets, row)))))
        }
    }
    if data.groups().is_some() {
        columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|&row| group_name(data, row)))));
    }
    if let Some(weights) = data.weights() {
        columns.push(reals(weights));
    }
    if let Some(ids) = data.row_ids() {
        columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|&row| ids.get(row)))));
    }
    let matrix = data.matrix();
    if matrix.is_double() {
        let mut values = vec![vec![0.0f64; rows.len()]; data.cols()];
        for (at, &row) in rows.iter().enumerate() {
            matrix.each_in_row(row, |column, value| values[column][at] = value);
        }
        columns.extend(values.into_iter().map(|values| Arc::new(Float64Array::from(values)) as ArrayRef));
    } else {
        let mut values = vec![vec![0.0f32; rows.len()]; data.cols()];
        for (at, &row) in rows.iter().enumerate() {
            // Exact: the value was widened from f32.
            matrix.each_in_row(row, |column, value| values[column][at] = value as f32);
        }
        columns.extend(values.into_iter().map(|values| Arc::new(Float32Array::from(values)) as ArrayRef));
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| Error::new(Code::Internal, error.to_string()))
}
