//! [`PairBlocks`]: pairs that are used once and in order, in bounded memory, for inputs of any size.

use crate::blocks::{Batch, Source, content};
use crate::options::{Facts, Format, ReadOptions};
use crate::read::{Input, unread};
use crate::source_stream::SourceStream;
use crate::{cache, csv};
use maxmargin::data::{Dataset, Names, Pairs};
use maxmargin::error::{Code, Error, Result};

/// Number of pairs in a stored block.
const STORED_PAIRS: usize = 1 << 14;

/// An iterator over blocks of pairs, in input order. Each is a [`Dataset`] with [`Pairs`] over its own rows:
///
/// - a table with two items per row ([`crate::Pairing::Sides`], [`crate::Pairing::Comparisons`]): two rows per pair;
/// - pairs over items that are already read ([`crate::Pairing::Of`]): all items each time, sharing their memory;
/// - items without features ([`crate::Pairing::Comparisons`]): a row for each item in the block, with its id, and a
///   column for each item seen so far. An item keeps its column. Blocks have no feature names; [`PairBlocks::items`]
///   has all of them.
///
/// The file may be `-` for standard input, and text may be compressed. The text of a block is read before the previous
/// block is returned, so that at most two blocks are in memory in addition to the ids.
///
/// ```
/// use maxmargin_io::{PairBlocks, Pairing, ReadOptions};
/// # let folder = tempfile::tempdir().unwrap();
/// # let games = folder.path().join("games.csv");
/// std::fs::write(&games, "left,right,outcome\nann,bob,left\nbob,cid,tie\n").unwrap();
/// let options = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
/// let mut blocks = PairBlocks::open(games.to_str().unwrap(), &options, 1 << 20).unwrap();
/// for block in &mut blocks {
///     let block = block.unwrap();
///     let pairs = block.pairs().unwrap();
///     for pair in 0..pairs.len() {
///         let (left, right) = (pairs.left()[pair] as usize, pairs.right()[pair] as usize);
///         println!("{} {} {}", block.row_name(left), block.row_name(right), pairs.outcome(pair).name());
///     }
/// }
/// assert_eq!((blocks.pairs(), blocks.items().unwrap().len()), (2, 3));
/// blocks.facts().notes.iter().for_each(|note| println!("{note}"));
/// ```
pub struct PairBlocks<'a> {
    blocks: SourceStream<'a>,
    pairs: u64,
}

impl<'a> PairBlocks<'a> {
    /// Opens a file, or `-` for standard input. Blocks have about this many bytes of text or of values.
    pub fn open(file: &'a str, options: &'a ReadOptions, bytes: usize) -> Result<PairBlocks<'a>> {
        PairBlocks::opened(file, options, bytes.max(1)).map_err(|error| options.cancel.check().err().unwrap_or(error))
    }

    fn opened(file: &'a str, options: &'a ReadOptions, bytes: usize) -> Result<PairBlocks<'a>> {
        let mut input = Input::open(file, options)?;
        let name = if file == "-" { "standard input" } else { file };
        let (stream, path) = content(&mut input)?;
        let source: Box<dyn Source + 'a> = match (input.format, path) {
            (Format::Csv | Format::Tsv, None) => csv::blocks(name, stream, input.delimiter, bytes, options)?,
            #[cfg(feature = "tables")]
            (Format::Parquet, Some(path)) => crate::parquet::blocks(name, &path, bytes, options)?,
            #[cfg(feature = "tables")]
            (Format::Arrow, Some(path)) => crate::arrow::blocks(name, &path, bytes, options)?,
            (Format::Mmd, Some(path)) => {
                let loaded = cache::open(name, &path)?;
                loaded.data.matrix().check(0..loaded.data.rows())?;
                Box::new(StoredPairs { data: loaded.data, facts: loaded.facts, next: 0 })
            }
            (Format::Svmlight, _) => return Err(none(name)),
            (format, _) => return Err(unread(name, format)),
        };
        Ok(PairBlocks { blocks: SourceStream::new(source, input, options), pairs: 0 })
    }

    /// Number of pairs in the blocks so far.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The ids of the columns of blocks, if items have no features: those of a model first, then the others in the
    /// order of their first appearance.
    pub fn items(&self) -> Option<Names> {
        self.blocks.own_names()
    }

    /// The findings. The notes are complete at the end.
    pub fn facts(&mut self) -> Facts {
        self.blocks.facts()
    }
}

impl Iterator for PairBlocks<'_> {
    type Item = Result<Dataset>;

    fn next(&mut self) -> Option<Result<Dataset>> {
        let step = self.blocks.next()?.and_then(|block| match block.pairs() {
            Some(pairs) => {
                self.pairs += pairs.len() as u64;
                Ok(block)
            }
            None => Err(none(self.blocks.file())),
        });
        if step.is_err() {
            self.blocks.stop();
        }
        Some(step)
    }
}

fn none(file: &str) -> Error {
    Error::new(Code::NoPairs, "the file holds no pairs")
        .in_file(file)
        .help("give a table with columns `left`, `right` and `outcome`, or `left.NAME`, `right.NAME` and `outcome`")
}

/// Runs of pairs from a cache, over its mapped rows.
struct StoredPairs {
    data: Dataset,
    facts: Facts,
    next: usize,
}

impl Source for StoredPairs {
    fn next(&mut self) -> Batch {
        let count = self.data.pairs().map_or(0, Pairs::len);
        let end = (self.next + STORED_PAIRS).min(count);
        let part = match self.data.pairs() {
            Some(pairs) => {
                let picked: Vec<usize> = (self.next..end).collect();
                self.data.clone().with_pairs(pairs.select(&picked))
            }
            None => Ok(self.data.clone()),
        };
        self.next = end;
        match part {
            Ok(block) => Batch { blocks: vec![block], ended: end == count, failure: None, ends: Vec::new() },
            Err(error) => Batch::failed(error),
        }
    }

    fn facts(&mut self) -> Facts {
        self.facts.clone()
    }
}
