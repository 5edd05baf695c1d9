//! Writes a cache in one pass, in order, without seeking.

use super::layout::{BLOCK, Kind, Layout, Shape, Storage, TargetKind, header_checksum};
use super::read::StoredFacts;
use super::rules::{self, Float, Verdict};
use crate::Loaded;
use crate::atomic::{WriteError, write_atomically};
use crate::mapped::as_bytes;
use maxmargin::data::{Csr, Dataset, Dense, Index, Matrix, Names, Pairs, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Writes a cache file. An existing file is replaced only once the new one is complete.
pub fn save(loaded: &Loaded, path: &Path) -> Result<()> {
    write_atomically(path, |out| {
        write(loaded, out)?;
        // The data may be mapped themselves.
        Ok::<(), WriteError>(loaded.facts.stamps.check()?)
    })
}

/// Writes a cache to any writer. Bytes are written in order, so a pipe is possible.
pub fn write(loaded: &Loaded, out: &mut impl Write) -> std::result::Result<(), WriteError> {
    let data = &loaded.data;
    data.matrix().check(0..data.rows())?;
    let facts = StoredFacts { index_base: loaded.facts.index_base, notes: loaded.facts.notes.clone() };
    let facts = serde_json::to_vec(&facts).map_err(io::Error::from)?;
    let mut parts = vec![(Kind::Facts, &facts[..])];
    if let Some(fill) = &loaded.facts.fill {
        parts.push((Kind::Fill, as_bytes(fill)));
    }
    let starts = data.matrix().starts();
    let shape = collect(data, starts.as_deref().unwrap_or_default(), &mut parts)?;
    let outcomes: Option<Vec<u8>> =
        data.pairs().and_then(Pairs::outcomes).map(|outcomes| outcomes.iter().map(|outcome| *outcome as u8).collect());
    if let Some(pairs) = data.pairs() {
        put_pairs(pairs, outcomes.as_deref(), data.rows(), &mut parts)?;
    }
    let lengths: Vec<(Kind, u64)> = parts.iter().map(|(kind, bytes)| (*kind, bytes.len() as u64)).collect();
    let layout = Layout::plan(shape, &lengths).map_err(|what| unsound(&what))?;

    let header = layout.encode();
    out.write_all(&header)?;
    let mut sink = Sink { out, state: Xxh3::new(), room: BLOCK, checksums: Vec::with_capacity(layout.blocks as usize) };
    for (section, (_, bytes)) in layout.sections.iter().zip(&parts) {
        sink.put(bytes)?;
        sink.put_zeros(section.span - section.bytes)?;
        sink.end_section();
    }
    let checksums = sink.checksums;
    debug_assert_eq!(checksums.len() as u64, layout.blocks);
    let index = as_bytes(&checksums);
    out.write_all(index)?;
    out.write_all(&xxh3_64_with_seed(index, header_checksum(&header)).to_le_bytes())?;
    Ok(())
}

/// The error for data that no reader makes and that [`super::open`] would refuse.
fn unsound(what: &str) -> Error {
    Error::new(Code::Internal, format!("the data cannot be stored in a cache: {what}"))
}

/// Collects the parts of the data set, in the order of the kinds. `starts` are the starts of its rows if they are
/// sparse.
fn collect<'a>(data: &'a Dataset, starts: &'a [u64], parts: &mut Vec<(Kind, &'a [u8])>) -> Result<Shape> {
    let rows = data.rows() as u64;
    let sound = |verdict: Verdict| verdict.map_err(|what| unsound(&what));
    let put_names = |parts: &mut Vec<(Kind, &'a [u8])>, kinds: [Kind; 2], names: &'a Names| {
        let (bytes, ends) = names.parts();
        parts.push((kinds[0], bytes));
        parts.push((kinds[1], as_bytes(ends)));
        sound(rules::names(names))
    };
    if let Some(names) = data.feature_names() {
        put_names(parts, [Kind::FeatureNameBytes, Kind::FeatureNameEnds], names)?;
    }
    if let Some(groups) = data.groups() {
        sound(rules::group_starts(groups.starts(), rows))?;
        parts.push((Kind::GroupStarts, as_bytes(groups.starts())));
        put_names(parts, [Kind::GroupNameBytes, Kind::GroupNameEnds], groups.names())?;
    }
    sound(rules::targets(data.targets()))?;
    let labels = [Kind::LabelNameBytes, Kind::LabelNameEnds];
    let targets = match data.targets() {
        Targets::Absent => TargetKind::Absent,
        Targets::Real(values) => {
            parts.push((Kind::TargetValues, as_bytes(values)));
            TargetKind::Real
        }
        Targets::Labels { names, codes } => {
            put_names(parts, labels, names)?;
            parts.push((Kind::LabelCodes, as_bytes(codes)));
            TargetKind::Labels
        }
        Targets::Sets { names, starts, codes } => {
            put_names(parts, labels, names)?;
            parts.push((Kind::SetStarts, as_bytes(starts)));
            parts.push((Kind::SetCodes, as_bytes(codes)));
            TargetKind::Sets
        }
    };
    if let Some(weights) = data.weights() {
        sound(rules::weights(weights))?;
        parts.push((Kind::Weights, as_bytes(weights)));
    }
    if let Some(ids) = data.row_ids() {
        put_names(parts, [Kind::RowIdBytes, Kind::RowIdEnds], ids)?;
    }
    if let Some(order) = data.input_order() {
        sound(rules::input_order(order, rows))?;
        parts.push((Kind::InputOrder, as_bytes(order)));
    }
    let storage = match data.matrix() {
        Matrix::DenseF32(matrix) => dense(matrix, parts, Storage::DenseF32)?,
        Matrix::DenseF64(matrix) => dense(matrix, parts, Storage::DenseF64)?,
        Matrix::Csr16F32(matrix) => sparse(matrix, starts, parts, Storage::Csr16F32)?,
        Matrix::Csr32F32(matrix) => sparse(matrix, starts, parts, Storage::Csr32F32)?,
        Matrix::Csr16F64(matrix) => sparse(matrix, starts, parts, Storage::Csr16F64)?,
        Matrix::Csr32F64(matrix) => sparse(matrix, starts, parts, Storage::Csr32F64)?,
    };
    let (cols, entries) = (data.cols() as u64, data.matrix().entries());
    Ok(Shape { storage, targets, rows, cols, entries, hash: data.hash()? })
}

/// Adds the parts of the pairs.
fn put_pairs<'a>(
    pairs: &'a Pairs,
    outcomes: Option<&'a [u8]>,
    rows: usize,
    parts: &mut Vec<(Kind, &'a [u8])>,
) -> Result<()> {
    rules::pairs(pairs.left(), pairs.right(), rows as u64).map_err(|what| unsound(&what))?;
    parts.push((Kind::PairLeft, as_bytes(pairs.left())));
    parts.push((Kind::PairRight, as_bytes(pairs.right())));
    parts.extend(outcomes.map(|outcomes| (Kind::PairOutcomes, outcomes)));
    if let Some(weights) = pairs.weights() {
        rules::weights(weights).map_err(|what| unsound(&what))?;
        parts.push((Kind::PairWeights, as_bytes(weights)));
    }
    if let Some((codes, names)) = pairs.groups() {
        rules::names(names).map_err(|what| unsound(&what))?;
        let (bytes, ends) = names.parts();
        parts.push((Kind::PairGroups, as_bytes(codes)));
        parts.push((Kind::PairGroupNameBytes, bytes));
        parts.push((Kind::PairGroupNameEnds, as_bytes(ends)));
    }
    Ok(())
}

fn dense<'a, V: Float>(matrix: &'a Dense<V>, parts: &mut Vec<(Kind, &'a [u8])>, storage: Storage) -> Result<Storage> {
    put_values(matrix.values(), parts)?;
    Ok(storage)
}

fn sparse<'a, I: Index + crate::mapped::Plain, V: Float>(
    matrix: &'a Csr<I, V>,
    starts: &'a [u64],
    parts: &mut Vec<(Kind, &'a [u8])>,
    storage: Storage,
) -> Result<Storage> {
    parts.push((Kind::Starts, as_bytes(starts)));
    parts.push((Kind::Indices, as_bytes(matrix.indices())));
    put_values(matrix.values(), parts)?;
    Ok(storage)
}

fn put_values<'a, V: Float>(values: &'a [V], parts: &mut Vec<(Kind, &'a [u8])>) -> Result<()> {
    let chunks: Vec<&[V]> = values.chunks(1 << 16).collect();
    if !parallel::all(chunks.len(), 1, |chunk| V::all_finite(chunks[chunk])) {
        return Err(Error::new(Code::NotFinite, "a feature value is infinite or not a number")
            .help("correct the value or drop the row"));
    }
    parts.push((Kind::Values, as_bytes(values)));
    Ok(())
}

/// Passes bytes on and records the checksum of each block.
struct Sink<'a, W> {
    out: &'a mut W,
    state: Xxh3,
    /// Bytes left in the current block.
    room: u64,
    checksums: Vec<u64>,
}

impl<W: Write> Sink<'_, W> {
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.room as usize));
            self.out.write_all(now)?;
            self.state.update(now);
            self.room -= now.len() as u64;
            if self.room == 0 {
                self.end_block();
            }
            bytes = later;
        }
        Ok(())
    }

    fn put_zeros(&mut self, count: u64) -> io::Result<()> {
        // The gap before a section is less than a page.
        self.put(&[0; 4096][..count as usize])
    }

    fn end_block(&mut self) {
        self.checksums.push(self.state.digest());
        self.state.reset();
        self.room = BLOCK;
    }

    fn end_section(&mut self) {
        if self.room < BLOCK {
            self.end_block();
        }
    }
}
