//! [`read_blocks`]: data that are used once and in order, a few blocks of rows at a time, for inputs of any size.
//!
//! A [`Source`] parses batches of blocks on all threads. While one batch is parsed, the previous one is processed, also
//! on all threads, and the results of the one before that are returned in order. At most three batches are in memory.
//!
//! Three kinds of data are read completely, as one block: tables whose missing cells are filled with the mean, text in
//! columns or brackets, and a cache whose rows are not in input order. If the caller needs whole groups, data with scattered groups are read
//! completely too. If the index base of svmlight text must be detected, the text is read twice, both times in constant
//! memory; compressed or piped input is first copied to a temporary file.

use crate::hashing::Hashing;
use crate::options::{Facts, Format, Loaded, Missing, Precision, ReadOptions};
use crate::read::{Content, Input, read_input, unread};
use crate::sides::SideFiles;
use crate::source::{Compression, open};
use crate::svmlight::{Outline, Stored, SvmlightBlocks, known_base};
use crate::{cache, csv};
use maxmargin::data::{Dataset, Groups, Matrix, Names, Pairs, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use maxmargin::run::Cancel;
use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// How to cut data into blocks.
#[derive(Clone, Debug)]
pub struct BlockOptions {
    /// Whether each group must be in one block, with all its rows.
    pub whole_groups: bool,
    /// Whether rows without groups form one group.
    pub one_group: bool,
    /// Approximate size of a block in bytes: of the text in the file, or of stored values.
    pub bytes: usize,
}

impl Default for BlockOptions {
    fn default() -> BlockOptions {
        BlockOptions { whole_groups: false, one_group: false, bytes: 2 << 20 }
    }
}

/// Some rows. Targets may be missing, because blocks are for scoring.
#[derive(Debug)]
pub struct Block {
    /// The rows. Input positions count from the first row of the block.
    pub data: Dataset,
    /// Number of input rows (or pairs, if the data hold pairs) before this block.
    pub first_row: u64,
    /// The empty lines of text in columns: before the first sequence, and after each one.
    pub blank_lines: Option<Arc<[u32]>>,
    /// The words of sentences.
    pub words: Option<Arc<Names>>,
}

impl Block {
    fn of(data: Dataset, first_row: u64) -> Block {
        Block { data, first_row, blank_lines: None, words: None }
    }
}

/// What the caller receives, in order.
#[derive(Debug)]
pub enum Step<T> {
    /// The result of a block.
    Block(T),
    /// Whole groups are required, but they are scattered over the file or some rows lack an id. Everything returned so
    /// far comes again, as one block.
    Again,
}

/// What was found in the data, known at their end.
#[derive(Clone, Debug)]
pub struct Found {
    /// The findings.
    pub facts: Facts,
    /// Number of rows, or of pairs if the data hold pairs.
    pub rows: u64,
    /// Number of columns.
    pub cols: usize,
    /// Number of groups; `None` if rows have no groups or if there are too many to count.
    pub groups: Option<u64>,
}

/// Blocks that were parsed together, in input order.
pub(crate) struct Batch {
    pub(crate) blocks: Vec<Dataset>,
    /// Whether these were the last.
    pub(crate) ended: bool,
    /// The error after these blocks, if there is one.
    pub(crate) failure: Option<Error>,
    /// Where the text of each block ends in the file; empty if that is not known.
    pub(crate) ends: Vec<u64>,
}

impl Batch {
    pub(crate) fn failed(error: Error) -> Batch {
        Batch { blocks: Vec::new(), ended: true, failure: Some(error), ends: Vec::new() }
    }
}

/// Parses blocks in order.
pub(crate) trait Source: Send {
    /// The next blocks. The blocks of the call before the last are no longer in use.
    fn next(&mut self) -> Batch;
    /// The findings, once everything was read.
    fn facts(&mut self) -> Facts;
    /// The names of the columns, if they are the ids of items without features.
    fn own_names(&self) -> Option<Names> {
        None
    }
}

/// Reads data block by block; `-` is standard input. `work` processes a block, on any thread. `put` receives the
/// results in input order, on this thread. Damage is reported when it is reached; the blocks before it have been
/// returned by then.
pub fn read_blocks<T: Send>(
    file: &str,
    options: &ReadOptions,
    blocks: &BlockOptions,
    work: &(dyn Fn(&Block) -> Result<T> + Sync),
    put: &mut dyn FnMut(Step<T>) -> Result<()>,
) -> Result<Found> {
    // After a cancel, the reader may return any error. The cancel is reported instead.
    let found = read_any(file, options, blocks, work, put);
    found.map_err(|error| options.cancel.check().err().unwrap_or(error))
}

fn read_any<T: Send>(
    file: &str,
    options: &ReadOptions,
    blocks: &BlockOptions,
    work: &(dyn Fn(&Block) -> Result<T> + Sync),
    put: &mut dyn FnMut(Step<T>) -> Result<()>,
) -> Result<Found> {
    let input = Input::open(file, options)?;
    let stamps = input.stamps.clone();
    stamps.confirm(read_opened(input, options, blocks, work, put))
}

fn read_opened<T: Send>(
    mut input: Input,
    options: &ReadOptions,
    blocks: &BlockOptions,
    work: &(dyn Fn(&Block) -> Result<T> + Sync),
    put: &mut dyn FnMut(Step<T>) -> Result<()>,
) -> Result<Found> {
    if blocks.whole_groups {
        // The input may have to be read again if groups are scattered.
        input = input.spooled()?;
    }
    let needs_all = match input.format {
        Format::Svmlight | Format::Mmd => false,
        Format::Columns | Format::Trees => true,
        _ => options.missing == Missing::Mean,
    };
    if needs_all || (blocks.whole_groups && blocks.one_group) {
        return all_at_once(read_input(input, options)?, blocks, work, put);
    }
    let mut outline = None;
    if input.format == Format::Svmlight && known_base(options).is_none() {
        input = input.spooled()?;
        if let Content::File(spot) = &input.content {
            let text = open(&input.file, spot.path())?;
            outline = Some(match options.precision {
                Precision::F32 => Outline::take::<f32>(&input.file, text, blocks.bytes, options)?,
                Precision::F64 => Outline::take::<f64>(&input.file, text, blocks.bytes, options)?,
            });
        }
    }
    let based =
        ReadOptions { index_base: outline.map(|outline| outline.base).or(options.index_base), ..options.clone() };
    let options = &based;
    let mut delivery = Delivery::new(
        blocks,
        match &input.path {
            Some(path) => SideFiles::find(path)?,
            None => SideFiles::default(),
        },
    );
    let (name, format, delimiter) = (input.file.clone(), input.format, input.delimiter);
    let name = name.as_str();
    let (stream, path) = content(&mut input)?;
    let mut source: Box<dyn Source + '_> = match (format, path, options.precision) {
        (Format::Svmlight, None, Precision::F32) => {
            boxed(SvmlightBlocks::<f32, _>::new(name, stream, blocks.bytes, options), outline)?
        }
        (Format::Svmlight, None, Precision::F64) => {
            boxed(SvmlightBlocks::<f64, _>::new(name, stream, blocks.bytes, options), outline)?
        }
        (Format::Csv | Format::Tsv, None, _) => csv::blocks(name, stream, delimiter, blocks.bytes, options)?,
        #[cfg(feature = "tables")]
        (Format::Parquet, Some(path), _) => crate::parquet::blocks(name, &path, blocks.bytes, options)?,
        #[cfg(feature = "tables")]
        (Format::Arrow, Some(path), _) => crate::arrow::blocks(name, &path, blocks.bytes, options)?,
        (Format::Mmd, Some(path), _) => {
            let loaded = Hashing::check_stored(cache::open(name, &path)?, options)?;
            if loaded.data.input_order().is_some() || loaded.data.pairs().is_some() {
                return all_at_once(read_input(input, options)?, blocks, work, put);
            }
            Box::new(StoredBlocks::new(loaded, blocks))
        }
        (format, ..) => return Err(unread(name, format)),
    };
    let scattered = drive(&mut *source, &mut delivery, &options.cancel, work, put)?;
    if scattered {
        drop(source);
        put(Step::Again)?;
        return all_at_once(read_input(input, options)?, blocks, work, put);
    }
    let mut facts = source.facts();
    facts.compression = input.compression.map(Compression::name);
    facts.bytes = input.bytes.or(facts.bytes);
    facts.stamps = input.lasting_stamps(options);
    delivery.finish(facts)
}

/// The content to read: a stream of text, or the path of a file.
pub(crate) fn content(input: &mut Input) -> Result<(Box<dyn Read + Send>, Option<PathBuf>)> {
    // A stream is read once, so the input does not keep it.
    let mut stream: Box<dyn Read + Send> = Box::new(std::io::empty());
    let path = match &mut input.content {
        Content::Stream(content) => {
            std::mem::swap(content, &mut stream);
            None
        }
        Content::File(spot) if matches!(input.format, Format::Svmlight | Format::Csv | Format::Tsv) => {
            stream = Box::new(open(&input.file, spot.path())?);
            None
        }
        Content::File(spot) => Some(spot.path().to_path_buf()),
    };
    Ok((stream, path))
}

fn boxed<'a, V: Stored + 'a, R: Read + Send + 'a>(
    source: Option<SvmlightBlocks<'a, V, R>>,
    outline: Option<Outline>,
) -> Result<Box<dyn Source + 'a>> {
    let source = source.ok_or_else(|| Error::new(Code::Internal, "the index base is known here"))?;
    Ok(match outline {
        Some(outline) => Box::new(source.in_layout(outline.dense)),
        None => Box::new(source),
    })
}

/// Returns everything as one block.
fn all_at_once<T>(
    loaded: Loaded,
    blocks: &BlockOptions,
    work: &(dyn Fn(&Block) -> Result<T> + Sync),
    put: &mut dyn FnMut(Step<T>) -> Result<()>,
) -> Result<Found> {
    let Loaded { mut data, facts } = loaded;
    if blocks.one_group && data.groups().is_none() {
        let rows = data.rows();
        data = data.with_groups(Groups::one(rows))?;
    }
    data.matrix().check(0..data.rows())?;
    let rows = data.pairs().map_or(data.rows(), Pairs::len) as u64;
    let (cols, groups) = (data.cols(), data.groups().map(|groups| groups.len() as u64));
    let (blank_lines, words) = (facts.blank_lines.clone(), facts.words.clone());
    put(Step::Block(work(&Block { data, first_row: 0, blank_lines, words })?))?;
    Ok(Found { facts, rows, cols, groups })
}

/// Runs the three stages in parallel. Returns true if whole groups are required but scattered.
fn drive<T: Send>(
    source: &mut dyn Source,
    delivery: &mut Delivery<'_>,
    cancel: &Cancel,
    work: &(dyn Fn(&Block) -> Result<T> + Sync),
    put: &mut dyn FnMut(Step<T>) -> Result<()>,
) -> Result<bool> {
    let mut batch = source.next();
    let mut ready: Vec<T> = Vec::new();
    loop {
        cancel.check()?;
        let Batch { blocks, ended, failure, .. } = batch;
        let ended = ended || failure.is_some();
        let Some(blocks) = delivery.arrange(blocks, ended && failure.is_none())? else { return Ok(true) };
        let (mut made, mut next, mut outcome) = (Vec::new(), None, Ok(()));
        rayon::in_place_scope(|scope| {
            let (made, next) = (&mut made, &mut next);
            let source = &mut *source;
            if !ended {
                scope.spawn(move |_| *next = Some(source.next()));
            }
            scope.spawn(move |_| *made = parallel::map(blocks.len(), |number| work(&blocks[number])));
            outcome = std::mem::take(&mut ready).into_iter().try_for_each(|made| put(Step::Block(made)));
        });
        outcome?;
        let mut failure = failure;
        for made in made {
            match made {
                Ok(made) => ready.push(made),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        match (failure, next) {
            (None, Some(next)) => batch = next,
            (failure, _) => {
                ready.into_iter().try_for_each(|made| put(Step::Block(made)))?;
                return failure.map_or(Ok(false), Err);
            }
        }
    }
}

/// If groups need not be whole, they are counted only up to this number.
const MOST_COUNTED: usize = 1 << 20;

/// What is known over all blocks, and a group that is not yet complete.
struct Delivery<'a> {
    options: &'a BlockOptions,
    sides: SideFiles,
    rows: u64,
    cols: usize,
    /// Hashes of the names of all groups; `None` once there are too many to count.
    names: Option<HashSet<u64>>,
    last_name: Option<u64>,
    /// Whether the rows so far have ids.
    with_ids: Option<bool>,
    open: Option<Open>,
}

/// The group at the end of the rows so far.
struct Open {
    first_row: u64,
    parts: Vec<Dataset>,
}

impl<'a> Delivery<'a> {
    fn new(options: &'a BlockOptions, sides: SideFiles) -> Delivery<'a> {
        Delivery {
            options,
            sides,
            rows: 0,
            cols: 0,
            names: Some(HashSet::new()),
            last_name: None,
            with_ids: None,
            open: None,
        }
    }

    /// Turns the next rows into blocks with their position in the input; `None` if whole groups are required and one is
    /// scattered.
    fn arrange(&mut self, parts: Vec<Dataset>, last: bool) -> Result<Option<Vec<Block>>> {
        let mut blocks = Vec::with_capacity(parts.len() + 1);
        for data in parts {
            self.cols = self.cols.max(data.cols());
            let first_row = self.rows;
            if let Some(pairs) = data.pairs() {
                // Pairs hold their own weights and groups.
                self.sides = SideFiles::default();
                self.rows += pairs.len() as u64;
                blocks.push(Block::of(data, first_row));
                continue;
            }
            let data = self.sides.add(data)?;
            self.rows += data.rows() as u64;
            if !self.options.whole_groups {
                self.count(&data);
                blocks.push(Block::of(data, first_row));
            } else if !self.group(data, first_row, &mut blocks)? {
                return Ok(None);
            }
        }
        if last {
            blocks.extend(self.open.take().map(Open::close).transpose()?);
        }
        Ok(Some(blocks))
    }

    /// Counts the groups of a block.
    fn count(&mut self, data: &Dataset) {
        let (Some(names), Some(groups)) = (&mut self.names, data.groups()) else { return };
        names.extend((0..groups.len()).map(|group| xxh3_64(groups.names().get_bytes(group))));
        if names.len() > MOST_COUNTED {
            self.names = None;
        }
    }

    /// Cuts rows between groups and keeps the last group until its end is seen. Returns false if a group is scattered.
    fn group(&mut self, data: Dataset, first_row: u64, blocks: &mut Vec<Block>) -> Result<bool> {
        let Some(groups) = data.groups() else {
            blocks.push(Block::of(data, first_row));
            return Ok(true);
        };
        // If only some rows have ids, ids are not used, which is known only at the end.
        let with_ids = data.row_ids().is_some();
        if data.input_order().is_some() || *self.with_ids.get_or_insert(with_ids) != with_ids {
            return Ok(false);
        }
        let mut begun = 0;
        for group in 0..groups.len() {
            let name = xxh3_64(groups.names().get_bytes(group));
            if group == 0 && self.last_name == Some(name) {
                if let Some(open) = &mut self.open {
                    open.parts.push(data.run(groups.range(0))?);
                }
                begun = 1;
            } else if !self.names.get_or_insert_default().insert(name) {
                return Ok(false);
            }
            self.last_name = Some(name);
        }
        if begun == groups.len() {
            return Ok(true);
        }
        blocks.extend(self.open.take().map(Open::close).transpose()?);
        let (start, end) = (groups.range(begun).start, groups.range(groups.len() - 1).start);
        if start < end {
            blocks.push(Block::of(data.run(start..end)?, first_row + start as u64));
        }
        let tail = data.run(end..data.rows())?;
        self.open = Some(Open { first_row: first_row + end as u64, parts: vec![tail] });
        Ok(true)
    }

    fn finish(self, mut facts: Facts) -> Result<Found> {
        facts.notes.extend(self.sides.finish()?);
        let groups = self.names.map(|names| names.len() as u64).filter(|&count| count > 0);
        Ok(Found { facts, rows: self.rows, cols: self.cols, groups })
    }
}

impl Open {
    fn close(mut self) -> Result<Block> {
        let first_row = self.first_row;
        if self.parts.len() == 1
            && let Some(data) = self.parts.pop()
        {
            return Ok(Block::of(data, first_row));
        }
        let matrix = Matrix::join(&self.parts.iter().map(Dataset::matrix).collect::<Vec<_>>())?;
        let rows = matrix.rows() as u64;
        let name: Option<Names> = self.parts[0].groups().map(|groups| groups.names().clone());
        let mut data = Dataset::new(matrix, Targets::Absent)?
            .with_groups(Groups::new(vec![0, rows], name.unwrap_or_else(|| [""].into_iter().collect()))?)?;
        let ids: Option<Vec<&Names>> = self.parts.iter().map(Dataset::row_ids).collect();
        if let Some(ids) = ids {
            data = data.with_row_ids(
                ids.iter().flat_map(|ids| (0..ids.len()).map(|row| ids.get_bytes(row))).collect::<Names>(),
            )?;
        }
        Ok(Block::of(data, first_row))
    }
}

/// Blocks of mapped data: runs of rows, released after use.
pub(crate) struct StoredBlocks {
    loaded: Loaded,
    rows_a_block: usize,
    next: usize,
    /// First rows of the two previous batches. The older one is no longer in use.
    begun: [usize; 2],
}

impl StoredBlocks {
    pub(crate) fn new(loaded: Loaded, blocks: &BlockOptions) -> StoredBlocks {
        let bytes = loaded.data.matrix().bytes().max(1);
        let rows = loaded.data.rows().max(1);
        let rows_a_block = (blocks.bytes as u128 * rows as u128 / u128::from(bytes)).clamp(1, rows as u128) as usize;
        StoredBlocks { loaded, rows_a_block, next: 0, begun: [0, 0] }
    }
}

impl Source for StoredBlocks {
    fn next(&mut self) -> Batch {
        let data = &self.loaded.data;
        let rows = data.rows();
        data.matrix().release(self.begun[0]..self.begun[1]);
        self.begun = [self.begun[1], self.next];
        let count = 4 * parallel::threads();
        let end = (self.next + count * self.rows_a_block).min(rows);
        let starts: Vec<usize> = (self.next..end).step_by(self.rows_a_block).collect();
        self.next = end;
        let made = parallel::map_each(starts, |_, start| data.run(start..(start + self.rows_a_block).min(end)));
        let (mut blocks, mut failure) = (Vec::with_capacity(made.len()), None);
        for made in made {
            match made {
                Ok(block) => blocks.push(block),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        Batch { blocks, ended: end == rows, failure, ends: Vec::new() }
    }

    fn facts(&mut self) -> Facts {
        self.loaded.facts.clone()
    }
}
