//! Opens a cache: a mapped file with a guard that verifies bytes before their first use.

use super::layout::{BLOCK, Kind, Layout, Problem, Section, Storage, TargetKind, VERSION, header_checksum, sound};
use super::rules::{self, Float, Verdict};
use crate::mapped::{MappedFile, Plain};
use crate::{Facts, Format, Loaded};
use maxmargin::data::{Buffer, Csr, Dataset, Dense, Groups, Guard, Index, Matrix, Names, Pairs, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// With at least this many blocks (or tiles of about one block), a second thread is worthwhile.
const WORTH_THREADS: usize = 8;

/// The findings that are stored, so that reading the cache reports the same as reading the original.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) index_base: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// What [`check`] verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The version of the format.
    pub version: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of blocks, each with its own checksum.
    pub blocks: u64,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Stored entries of the matrix, zeros included.
    pub entries: u64,
    /// The layout in a few words, such as `sparse, u16 index, f32`.
    pub layout: &'static str,
}

/// Maps a cache file. `file_name` is the user's name for it. The [module](super) documentation says what is verified
/// when.
pub fn open(file_name: &str, path: &Path) -> Result<Loaded> {
    Store::open(file_name, path)?.load()
}

/// Verifies every byte of a cache file.
pub fn check(path: &Path) -> Result<CheckReport> {
    let store = Store::open(&path.display().to_string(), path)?;
    let data = store.load()?.data;
    data.matrix().check(0..data.rows())?;
    if data.computed_hash()? != data.hash()? {
        return Err(Error::new(Code::DamagedCache, "the values do not match the file's data hash")
            .in_file(path.display().to_string())
            .help("convert the original file again"));
    }
    // Sections that no row needs.
    for section in &store.layout.sections {
        store.verify(section, 0..section.bytes)?;
    }
    let shape = &store.layout.shape;
    Ok(CheckReport {
        version: store.layout.version(),
        bytes: store.layout.file_bytes,
        blocks: store.layout.blocks,
        rows: shape.rows,
        cols: shape.cols,
        entries: shape.entries,
        layout: shape.storage.name(),
    })
}

fn damaged(file: &str, what: String) -> Error {
    Error::new(Code::DamagedCache, what)
        .in_file(file)
        .help("make the cache again from the original data with `maxmargin convert`")
}

/// Flags that any thread may raise. Relaxed order is enough everywhere, because the data behind a flag never change.
struct Flags(Vec<AtomicU64>);

impl Flags {
    fn new(count: usize) -> Flags {
        Flags((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn is_raised(&self, flag: usize) -> bool {
        self.0.get(flag / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (flag % 64) & 1 == 1)
    }

    /// Whether this call raised the flag.
    fn raise(&self, flag: usize) -> bool {
        let bit = 1 << (flag % 64);
        self.0[flag / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

/// A mapped file whose layout and block index are valid.
struct Store {
    file: String,
    map: Arc<MappedFile>,
    layout: Layout,
    checksums: Buffer<u64>,
    verified: Flags,
}

impl Store {
    fn open(file: &str, path: &Path) -> Result<Arc<Store>> {
        let map = MappedFile::open(file, path)?;
        let layout = Layout::decode(map.bytes()).map_err(|problem| match problem {
            Problem::Version(version) => Error::new(
                Code::CacheVersion,
                format!("the cache has version {version} and this program reads versions up to {VERSION}"),
            )
            .in_file(file)
            .help("use a newer maxmargin, or make the cache again from the original data"),
            Problem::Damaged(what) => damaged(file, format!("this is not a complete cache file: {what}")),
        })?;
        // The layout fits the length of the file, so these views exist.
        let index = map.view::<u64>(layout.index_offset, layout.blocks + 1);
        let Some((&stored, checksums)) = index.as_deref().and_then(|index| index.split_last()) else {
            return Err(damaged(file, "its block index lies outside the file".to_string()));
        };
        let header = &map.bytes()[..layout.header_bytes as usize];
        if !sound(xxh3_64_with_seed(crate::mapped::as_bytes(checksums), header_checksum(header)), stored) {
            return Err(damaged(
                file,
                format!("its block index at byte {} does not match its checksum", layout.index_offset),
            ));
        }
        let blocks = checksums.len();
        let checksums = index.as_ref().map(|index| index.slice(0..blocks)).unwrap_or_else(|| Vec::new().into());
        Ok(Arc::new(Store { file: file.to_string(), map, layout, checksums, verified: Flags::new(blocks) }))
    }

    fn damaged_section(&self, kind: Kind, what: &str) -> Error {
        let offset = self.layout.section(kind).map_or(0, |section| section.offset);
        damaged(&self.file, format!("the section `{}` at byte {offset} is damaged: {what}", kind.name()))
    }

    /// Compares the blocks that hold the given bytes of a section with their checksums, unless that was done before. If
    /// the range goes to the end of the section, the zeros after it are included.
    fn verify(&self, section: &Section, bytes: Range<u64>) -> Result<()> {
        let end = if bytes.end == section.bytes { section.blocks() } else { bytes.end.div_ceil(BLOCK) };
        let blocks = bytes.start / BLOCK..end;
        let verify = |block| self.verify_block(section, block).err();
        let error = if blocks.end.saturating_sub(blocks.start) < WORTH_THREADS as u64 {
            blocks.clone().find_map(verify)
        } else {
            parallel::find_first((blocks.end - blocks.start) as usize, |number| verify(blocks.start + number as u64))
        };
        error.map_or(Ok(()), Err)
    }

    fn verify_block(&self, section: &Section, block: u64) -> Result<()> {
        let number = (section.first_block + block) as usize;
        if self.verified.is_raised(number) {
            return Ok(());
        }
        let start = section.offset + block * BLOCK;
        let end = (start + BLOCK).min(section.offset + section.span);
        if !sound(xxh3_64(&self.map.bytes()[start as usize..end as usize]), self.checksums[number]) {
            return Err(damaged(
                &self.file,
                format!(
                    "the section `{}` is damaged: the block at byte {start} does not match its checksum",
                    section.kind.name()
                ),
            ));
        }
        self.verified.raise(number);
        Ok(())
    }

    fn verify_whole(&self, kinds: &[Kind]) -> Result<()> {
        let mut sections = kinds.iter().filter_map(|&kind| self.layout.section(kind));
        sections.try_for_each(|section| self.verify(section, 0..section.bytes))
    }

    fn judge(&self, kind: Kind, verdict: Verdict) -> Result<()> {
        verdict.map_err(|what| self.damaged_section(kind, &what))
    }

    fn view<T: Plain>(&self, kind: Kind) -> Option<Buffer<T>> {
        let section = self.layout.section(kind)?;
        self.map.view(section.offset, section.count())
    }

    fn need<T: Plain>(&self, kind: Kind) -> Result<Buffer<T>> {
        self.view(kind).ok_or_else(|| self.damaged_section(kind, "it is missing"))
    }

    fn names(&self, bytes: Kind, ends: Kind) -> Option<Names> {
        Some(Names::from_parts(self.view(bytes)?, self.view(ends)?))
    }

    fn targets(&self) -> Result<Targets> {
        let names = || {
            let names = self.names(Kind::LabelNameBytes, Kind::LabelNameEnds);
            names.ok_or_else(|| self.damaged_section(Kind::LabelNameBytes, "it is missing"))
        };
        Ok(match self.layout.shape.targets {
            TargetKind::Absent => Targets::Absent,
            TargetKind::Real => Targets::Real(self.need(Kind::TargetValues)?),
            TargetKind::Labels => Targets::Labels { names: names()?, codes: self.need(Kind::LabelCodes)? },
            TargetKind::Sets => Targets::Sets {
                names: names()?,
                starts: self.need(Kind::SetStarts)?,
                codes: self.need(Kind::SetCodes)?,
            },
        })
    }

    /// Builds the data set over the map and verifies what is needed before any row is used.
    fn load(self: &Arc<Store>) -> Result<Loaded> {
        self.verify_whole(&[
            Kind::Facts,
            Kind::Fill,
            Kind::FeatureNameBytes,
            Kind::FeatureNameEnds,
            Kind::GroupStarts,
            Kind::LabelNameBytes,
            Kind::LabelNameEnds,
            Kind::PairLeft,
            Kind::PairRight,
            Kind::PairOutcomes,
            Kind::PairWeights,
            Kind::PairGroups,
            Kind::PairGroupNameBytes,
            Kind::PairGroupNameEnds,
        ])?;
        let facts: StoredFacts = serde_json::from_slice(&self.need::<u8>(Kind::Facts)?)
            .map_err(|error| self.damaged_section(Kind::Facts, &error.to_string()))?;
        let mut data = Dataset::new(self.matrix()?, self.targets()?)?;
        if let Targets::Labels { names, .. } | Targets::Sets { names, .. } = data.targets() {
            self.judge(Kind::LabelNameEnds, rules::names(names))?;
        }
        if let Some(names) = self.names(Kind::FeatureNameBytes, Kind::FeatureNameEnds) {
            self.judge(Kind::FeatureNameEnds, rules::names(&names))?;
            data = data.with_feature_names(names)?;
        }
        if let Some(names) = self.names(Kind::GroupNameBytes, Kind::GroupNameEnds) {
            let starts = self.need::<u64>(Kind::GroupStarts)?;
            self.judge(Kind::GroupStarts, rules::group_starts(&starts, self.layout.shape.rows))?;
            data = data.with_groups(Groups::new(starts, names)?)?;
        }
        if let Some(weights) = self.view::<f64>(Kind::Weights) {
            data = data.with_weights(weights)?;
        }
        if let Some(ids) = self.names(Kind::RowIdBytes, Kind::RowIdEnds) {
            data = data.with_row_ids(ids)?;
        }
        if let Some(order) = self.view::<u64>(Kind::InputOrder) {
            data = data.with_input_order(order)?;
        }
        if let Some(pairs) = self.pairs()? {
            data = data.with_pairs(pairs)?;
        }
        let facts = Facts {
            file: self.file.clone(),
            format: Some(Format::Mmd),
            index_base: facts.index_base,
            notes: facts.notes,
            fill: self.view::<f64>(Kind::Fill).map(|fill| fill.to_vec()),
            bytes: Some(self.layout.file_bytes),
            ..Facts::default()
        };
        Ok(Loaded { data: data.with_hash(self.layout.shape.hash), facts })
    }

    /// The pairs, if there are any. Their content is checked first.
    fn pairs(&self) -> Result<Option<Pairs>> {
        let Some(left) = self.view::<u32>(Kind::PairLeft) else { return Ok(None) };
        let right = self.need::<u32>(Kind::PairRight)?;
        self.judge(Kind::PairLeft, rules::pairs(&left, &right, self.layout.shape.rows))?;
        let mut pairs = Pairs::new(left, right)?;
        if let Some(numbers) = self.view::<u8>(Kind::PairOutcomes) {
            let outcomes = rules::outcomes(&numbers);
            pairs = pairs.with_outcomes(outcomes.map_err(|what| self.damaged_section(Kind::PairOutcomes, &what))?)?;
        }
        if let Some(weights) = self.view::<f64>(Kind::PairWeights) {
            self.judge(Kind::PairWeights, rules::weights(&weights))?;
            pairs = pairs.with_weights(weights)?;
        }
        if let Some(names) = self.names(Kind::PairGroupNameBytes, Kind::PairGroupNameEnds) {
            let codes = self.need::<u32>(Kind::PairGroups)?;
            self.judge(Kind::PairGroups, rules::pair_groups(&codes, &names))?;
            pairs = pairs.with_groups(codes, names)?;
        }
        Ok(Some(pairs))
    }

    fn matrix(self: &Arc<Store>) -> Result<Matrix> {
        Ok(match self.layout.shape.storage {
            Storage::DenseF32 => Matrix::DenseF32(self.dense()?),
            Storage::DenseF64 => Matrix::DenseF64(self.dense()?),
            Storage::Csr16F32 => Matrix::Csr16F32(self.sparse()?),
            Storage::Csr32F32 => Matrix::Csr32F32(self.sparse()?),
            Storage::Csr16F64 => Matrix::Csr16F64(self.sparse()?),
            Storage::Csr32F64 => Matrix::Csr32F64(self.sparse()?),
        })
    }

    fn size(&self, number: u64) -> Result<usize> {
        usize::try_from(number).map_err(|_| damaged(&self.file, format!("{number} is too large for this machine")))
    }

    fn dense<V: Float>(self: &Arc<Store>) -> Result<Dense<V>> {
        let (rows, cols) = (self.size(self.layout.shape.rows)?, self.size(self.layout.shape.cols)?);
        let values = self.need::<V>(Kind::Values)?;
        let content = DenseRows { values: values.clone(), cols };
        Ok(Dense::new(values, rows, cols)?.guarded(Arc::new(Watch::new(self, content)?)))
    }

    fn sparse<I: Index + Plain, V: Float>(self: &Arc<Store>) -> Result<Csr<I, V>> {
        let cols = self.size(self.layout.shape.cols)?;
        let starts = self.need::<u64>(Kind::Starts)?;
        let (indices, values) = (self.need::<I>(Kind::Indices)?, self.need::<V>(Kind::Values)?);
        let content = SparseRows { starts: starts.clone(), indices: indices.clone(), values: values.clone(), cols };
        let guard = Arc::new(Watch::new(self, content)?);
        Ok(Csr::guarded(starts, indices, values, cols, guard))
    }

    /// Verifies what is stored for each row outside the matrix, and the names of groups.
    fn verify_sides(&self) -> Result<()> {
        self.verify_whole(&[
            Kind::GroupNameBytes,
            Kind::GroupNameEnds,
            Kind::TargetValues,
            Kind::LabelCodes,
            Kind::SetStarts,
            Kind::SetCodes,
            Kind::Weights,
            Kind::RowIdBytes,
            Kind::RowIdEnds,
            Kind::InputOrder,
        ])?;
        let kind = match self.layout.shape.targets {
            TargetKind::Absent | TargetKind::Real => Kind::TargetValues,
            TargetKind::Labels => Kind::LabelCodes,
            TargetKind::Sets => Kind::SetCodes,
        };
        self.judge(kind, rules::targets(&self.targets()?))?;
        if let Some(names) = self.names(Kind::GroupNameBytes, Kind::GroupNameEnds) {
            self.judge(Kind::GroupNameEnds, rules::names(&names))?;
        }
        if let Some(weights) = self.view::<f64>(Kind::Weights) {
            self.judge(Kind::Weights, rules::weights(&weights))?;
        }
        if let Some(ids) = self.names(Kind::RowIdBytes, Kind::RowIdEnds) {
            self.judge(Kind::RowIdEnds, rules::names(&ids))?;
        }
        if let Some(order) = self.view::<u64>(Kind::InputOrder) {
            self.judge(Kind::InputOrder, rules::input_order(&order, self.layout.shape.rows))?;
        }
        Ok(())
    }
}

/// The stored rows, in any layout.
trait Content: Send + Sync {
    /// Verifies these rows: the checksums first, then the content.
    fn verify(&self, store: &Store, rows: Range<usize>) -> Result<()>;
    /// The bytes of these rows in each section.
    fn bytes(&self, rows: Range<usize>) -> Vec<(Kind, Range<u64>)>;
}

fn span<T>(entries: Range<usize>) -> Range<u64> {
    (entries.start * size_of::<T>()) as u64..(entries.end * size_of::<T>()) as u64
}

struct DenseRows<V> {
    values: Buffer<V>,
    cols: usize,
}

impl<V: Float> Content for DenseRows<V> {
    fn verify(&self, store: &Store, rows: Range<usize>) -> Result<()> {
        let range = rows.start * self.cols..rows.end * self.cols;
        verify_entries(store, Kind::Values, &range, size_of::<V>())?;
        verify_finite(store, &self.values[range])
    }

    fn bytes(&self, rows: Range<usize>) -> Vec<(Kind, Range<u64>)> {
        vec![(Kind::Values, span::<V>(rows.start * self.cols..rows.end * self.cols))]
    }
}

struct SparseRows<I, V> {
    starts: Buffer<u64>,
    indices: Buffer<I>,
    values: Buffer<V>,
    cols: usize,
}

impl<I: Index + Plain, V: Float> Content for SparseRows<I, V> {
    fn verify(&self, store: &Store, rows: Range<usize>) -> Result<()> {
        verify_entries(store, Kind::Starts, &(rows.start..rows.end + 1), size_of::<u64>())?;
        let starts = &self.starts[rows.start..rows.end + 1];
        let entries = self.values.len() as u64;
        // The last start is the first start of the next rows. If every run of starts rises, all of them rise.
        let framed = rules::starts_rise(starts, entries)
            && (rows.start > 0 || starts.first() == Some(&0))
            && (rows.end + 1 < self.starts.len() || starts.last() == Some(&entries));
        if !framed {
            return Err(store.damaged_section(
                Kind::Starts,
                &format!("rows {} to {} do not start one after the other", rows.start, rows.end),
            ));
        }
        let range = starts[0] as usize..starts[starts.len() - 1] as usize;
        verify_entries(store, Kind::Indices, &range, size_of::<I>())?;
        verify_entries(store, Kind::Values, &range, size_of::<V>())?;
        if !rules::rows_increase(starts, &self.indices[range.clone()], self.cols) {
            return Err(store.damaged_section(
                Kind::Indices,
                &format!("within rows {} to {} they do not increase, or exceed the columns", rows.start, rows.end),
            ));
        }
        verify_finite(store, &self.values[range])
    }

    fn bytes(&self, rows: Range<usize>) -> Vec<(Kind, Range<u64>)> {
        let most = self.values.len();
        let end = (self.starts[rows.end] as usize).min(most);
        let entries = (self.starts[rows.start] as usize).min(end)..end;
        // The starts were read just now, so they are released last.
        vec![
            (Kind::Indices, span::<I>(entries.clone())),
            (Kind::Values, span::<V>(entries)),
            (Kind::Starts, span::<u64>(rows)),
        ]
    }
}

fn verify_entries(store: &Store, kind: Kind, range: &Range<usize>, width: usize) -> Result<()> {
    let section = store.layout.section(kind).ok_or_else(|| store.damaged_section(kind, "it is missing"))?;
    store.verify(section, (range.start * width) as u64..(range.end * width) as u64)
}

fn verify_finite<V: Float>(store: &Store, values: &[V]) -> Result<()> {
    if V::all_finite(values) {
        return Ok(());
    }
    Err(store.damaged_section(Kind::Values, "a value is infinite or not a number"))
}

/// The guard of a mapped matrix. Rows are verified in tiles. The number of rows in a tile is a power of two, and a tile
/// is about as large as a block.
struct Watch<C> {
    store: Arc<Store>,
    content: C,
    rows: usize,
    /// The number of a row's tile is the row number without this many low bits.
    shift: u32,
    tiles: usize,
    checked: Flags,
    unchecked_tiles: AtomicUsize,
    all_checked: AtomicBool,
    sides_checked: AtomicBool,
}

impl<C: Content> Watch<C> {
    fn new(store: &Arc<Store>, content: C) -> Result<Watch<C>> {
        let rows = store.size(store.layout.shape.rows)?;
        let kinds = [Kind::Starts, Kind::Indices, Kind::Values];
        let bytes: u64 = kinds.iter().filter_map(|&kind| store.layout.section(kind)).map(|section| section.bytes).sum();
        let rows_a_tile = u128::from(BLOCK) * rows as u128 / u128::from(bytes.max(1));
        let shift = rows_a_tile.max(1).ilog2().min(usize::BITS - 1);
        // At most twice as many tiles as blocks, for any number of rows.
        let tiles = (rows.saturating_sub(1) >> shift) + 1;
        Ok(Watch {
            store: Arc::clone(store),
            content,
            rows,
            shift,
            tiles,
            checked: Flags::new(tiles),
            unchecked_tiles: AtomicUsize::new(tiles),
            all_checked: AtomicBool::new(false),
            sides_checked: AtomicBool::new(false),
        })
    }

    fn each_span(&self, rows: Range<usize>, visit: impl Fn(&MappedFile, Range<u64>)) {
        let rows = rows.start.min(self.rows)..rows.end.min(self.rows);
        if rows.is_empty() {
            return;
        }
        for (kind, bytes) in self.content.bytes(rows) {
            if let Some(section) = self.store.layout.section(kind) {
                visit(&self.store.map, section.offset + bytes.start..section.offset + bytes.end.min(section.bytes));
            }
        }
    }

    fn check_tile(&self, tile: usize) -> Result<()> {
        if self.checked.is_raised(tile) {
            return Ok(());
        }
        let start = tile << self.shift;
        let end = if tile + 1 == self.tiles { self.rows } else { (tile + 1) << self.shift };
        self.content.verify(&self.store, start..end)?;
        if self.checked.raise(tile) && self.unchecked_tiles.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.all_checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl<C: Content> Guard for Watch<C> {
    fn check(&self, rows: Range<usize>) -> Result<()> {
        // Threads that arrive at the same time may do the same work twice. That is better than waiting, because a
        // waiting thread may be the one that should help.
        if !self.sides_checked.load(Ordering::Relaxed) {
            self.store.verify_sides()?;
            self.sides_checked.store(true, Ordering::Relaxed);
        }
        if self.all_checked.load(Ordering::Relaxed) || (rows.is_empty() && self.rows > 0) {
            return Ok(());
        }
        let first = rows.start >> self.shift;
        let end = ((rows.end.max(1) - 1) >> self.shift).saturating_add(1).min(self.tiles);
        let mut tiles = first..end;
        let error = if tiles.len() < WORTH_THREADS {
            tiles.find_map(|tile| self.check_tile(tile).err())
        } else {
            // Neighbouring tiles share blocks, so each thread takes neighbouring tiles.
            let runs = tiles.len().div_ceil(WORTH_THREADS);
            parallel::find_first(runs, |run| {
                let from = first + run * WORTH_THREADS;
                (from..(from + WORTH_THREADS).min(end)).find_map(|tile| self.check_tile(tile).err())
            })
        };
        error.map_or(Ok(()), Err)
    }

    #[inline]
    fn is_checked(&self, row: usize) -> bool {
        self.all_checked.load(Ordering::Relaxed) || self.checked.is_raised(row >> self.shift)
    }

    fn will_need(&self, rows: Range<usize>) {
        self.each_span(rows, MappedFile::will_need);
    }

    fn release(&self, rows: Range<usize>) {
        self.each_span(rows, MappedFile::release);
    }
}

impl<C> fmt::Debug for Watch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unchecked = self.unchecked_tiles.load(Ordering::Relaxed);
        write!(f, "Watch({}, {unchecked} of {} tiles unchecked)", self.store.file, self.tiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sparse data set with all optional parts, as a file.
    fn file() -> Vec<u8> {
        let names = |count: usize| (0..count).map(|name| format!("name {name}")).collect::<Names>();
        let matrix = Csr::new(vec![0, 2, 2, 5], vec![1u16, 3, 0, 2, 3], vec![1.0f32; 5], 4).expect("valid");
        let targets = Targets::Sets { names: names(3), starts: vec![0, 1, 3, 3].into(), codes: vec![2, 0, 1].into() };
        let data = Dataset::new(Matrix::Csr16F32(matrix), targets)
            .and_then(|data| data.with_groups(Groups::new(vec![0, 1, 3], names(2))?))
            .and_then(|data| data.with_weights(vec![1.0, 0.5, 2.0]))
            .and_then(|data| data.with_feature_names(names(4)))
            .and_then(|data| data.with_row_ids(names(3)))
            .and_then(|data| data.with_input_order(vec![2, 0, 1]))
            .expect("fits");
        let mut bytes = Vec::new();
        super::super::write(&Loaded { data, facts: Facts::default() }, &mut bytes).expect("written");
        bytes
    }

    /// Recomputes all checksums, as an attacker would.
    fn sign(layout: &Layout, bytes: &mut [u8]) {
        let mut index = Vec::new();
        for section in &layout.sections {
            let span = &bytes[section.offset as usize..(section.offset + section.span) as usize];
            index.extend(span.chunks(BLOCK as usize).flat_map(|block| xxh3_64(block).to_le_bytes()));
        }
        let seed = header_checksum(&bytes[..layout.header_bytes as usize]);
        index.extend(xxh3_64_with_seed(&index, seed).to_le_bytes());
        bytes[layout.index_offset as usize..].copy_from_slice(&index);
    }

    fn use_everything(bytes: &[u8]) -> Result<()> {
        let stored = tempfile::NamedTempFile::new().expect("a temporary file");
        std::io::Write::write_all(&mut stored.as_file(), bytes).expect("written");
        check(stored.path())?;
        let data = open("forged", stored.path())?.data;
        data.matrix().check(0..data.rows())?;
        // The stored hash saves a pass over the data, so this data set has none.
        data.clone().with_weights(vec![1.0; data.rows()])?.hash()?;
        let mut scores = vec![0.0; data.rows()];
        data.matrix().scores(0..data.rows(), &vec![1.0; data.cols()], &mut scores);
        data.to_input_order(scores);
        data.select(&(0..data.rows()).collect::<Vec<_>>()).map(drop)
    }

    #[test]
    fn forged_content_under_right_checksums_is_refused_or_harmless() {
        let sound = file();
        let layout = Layout::decode(&sound).expect("sound");
        use_everything(&sound).expect("sound");
        for at in layout.header_bytes as usize..layout.index_offset as usize {
            for change in [0x01, 0xff] {
                let mut forged = sound.clone();
                forged[at] ^= change;
                sign(&layout, &mut forged);
                if let Err(error) = use_everything(&forged) {
                    assert_eq!(error.code(), Code::DamagedCache, "byte {at}: {error}");
                }
            }
        }
    }

    #[test]
    fn each_rule_is_asked_about_each_section() {
        let sound = file();
        let layout = Layout::decode(&sound).expect("sound");
        let forgeries: [(Kind, usize, &[u8]); 10] = [
            (Kind::Facts, 0, b"["),
            (Kind::FeatureNameEnds, 0, &[0xff; 8]),
            (Kind::GroupStarts, 8, &[9]),
            (Kind::SetStarts, 8, &[4]),
            (Kind::SetCodes, 0, &[3]),
            (Kind::Weights, 0, &(-1.0f64).to_le_bytes()),
            (Kind::InputOrder, 0, &[3]),
            (Kind::Starts, 8, &[6]),
            (Kind::Indices, 2, &[1]),
            (Kind::Values, 0, &f32::NAN.to_le_bytes()),
        ];
        for (kind, at, content) in forgeries {
            let mut forged = sound.clone();
            let at = layout.section(kind).expect("there").offset as usize + at;
            forged[at..at + content.len()].copy_from_slice(content);
            sign(&layout, &mut forged);
            let error = use_everything(&forged).expect_err("forged");
            assert_eq!(error.code(), Code::DamagedCache, "{kind:?}: {error}");
        }
    }
}
