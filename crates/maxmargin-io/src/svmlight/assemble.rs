//! Joins parsed pieces into one data set without holding the data twice: each piece is dropped once it is copied.

use super::piece::{Ids, Indices, Piece};
use crate::label_sets::{number_label, targets_of};
use crate::number::Parse;
use maxmargin::data::{Csr, Dataset, Dense, Index, Matrix, Names, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use std::collections::HashMap;

/// Builds a matrix variant from its parts, by value type.
pub(crate) trait Stored: Parse {
    fn from_dense(dense: Dense<Self>) -> Matrix;
    fn from_csr16(csr: Csr<u16, Self>) -> Matrix;
    fn from_csr32(csr: Csr<u32, Self>) -> Matrix;
}

impl Stored for f32 {
    fn from_dense(dense: Dense<f32>) -> Matrix {
        Matrix::DenseF32(dense)
    }
    fn from_csr16(csr: Csr<u16, f32>) -> Matrix {
        Matrix::Csr16F32(csr)
    }
    fn from_csr32(csr: Csr<u32, f32>) -> Matrix {
        Matrix::Csr32F32(csr)
    }
}

impl Stored for f64 {
    fn from_dense(dense: Dense<f64>) -> Matrix {
        Matrix::DenseF64(dense)
    }
    fn from_csr16(csr: Csr<u16, f64>) -> Matrix {
        Matrix::Csr16F64(csr)
    }
    fn from_csr32(csr: Csr<u32, f64>) -> Matrix {
        Matrix::Csr32F64(csr)
    }
}

/// Dense storage is better from this share of present entries on: it needs no index, and its loops need no gathers.
const DENSE_SHARE: f64 = 0.6;

/// Whether rows with this many entries are stored dense.
pub(crate) fn is_dense(rows: usize, entries: usize, cols: usize) -> bool {
    cols > 0 && entries as f64 >= DENSE_SHARE * rows as f64 * cols as f64
}

/// What is known about all pieces together.
pub(crate) struct Plan {
    pub(crate) base: u8,
    pub(crate) cols: usize,
    /// Whether rows are stored dense, if that is already decided.
    pub(crate) dense: Option<bool>,
}

/// Joins the pieces. `plan` has been checked against them.
pub(crate) fn assemble<V: Stored>(mut pieces: Vec<Piece<V>>, plan: &Plan) -> Result<Dataset> {
    let rows: usize = pieces.iter().map(Piece::rows).sum();
    let entries: usize = pieces.iter().map(|piece| piece.values.len()).sum();
    let targets = targets(&mut pieces)?;
    let weights = weights(&mut pieces);
    let groups = groups(&mut pieces)?;
    let ids = ids(&mut pieces, rows);
    let dense = plan.dense.unwrap_or_else(|| is_dense(rows, entries, plan.cols));
    let matrix = if dense {
        V::from_dense(dense_matrix(pieces, rows, plan)?)
    } else if plan.cols <= usize::from(u16::MAX) + 1 {
        V::from_csr16(sparse_matrix(pieces, rows, entries, plan))
    } else {
        V::from_csr32(sparse_matrix(pieces, rows, entries, plan))
    };
    let mut data = Dataset::new(matrix, targets)?;
    if let Some(weights) = weights {
        data = data.with_weights(weights)?;
    }
    if let Some(ids) = ids {
        data = data.with_row_ids(ids)?;
    }
    if let Some((keys, names)) = groups {
        data = data.with_group_keys(&keys, names)?;
    }
    Ok(data)
}

/// Cuts a slice into parts of the given lengths.
fn parts<T>(mut whole: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lengths
        .map(|length| {
            let (part, rest) = std::mem::take(&mut whole).split_at_mut(length);
            whole = rest;
            part
        })
        .collect()
}

fn dense_matrix<V: Stored>(pieces: Vec<Piece<V>>, rows: usize, plan: &Plan) -> Result<Dense<V>> {
    let cols = plan.cols;
    let total = rows.checked_mul(cols).ok_or_else(|| Error::new(Code::BadSetting, "the matrix is too large"))?;
    let mut values = vec![V::narrow(0.0); total];
    let places = parts(&mut values, pieces.iter().map(|piece| piece.rows() * cols).collect::<Vec<_>>().into_iter());
    let base = usize::from(plan.base);
    parallel::map_each(pieces.into_iter().zip(places).collect(), |_, (piece, place)| {
        let mut at = 0;
        for (&length, row) in piece.lengths.iter().zip(place.chunks_exact_mut(cols)) {
            let range = at..at + length as usize;
            at = range.end;
            let values = &piece.values[range.clone()];
            match &piece.indices {
                Indices::Consecutive(_) if values.is_empty() => {}
                Indices::Consecutive(first) => row[*first as usize - base..][..values.len()].copy_from_slice(values),
                Indices::Narrow(indices) => {
                    indices[range]
                        .iter()
                        .zip(values)
                        .for_each(|(&index, &value)| row[usize::from(index) - base] = value);
                }
                Indices::Wide(indices) => {
                    indices[range].iter().zip(values).for_each(|(&index, &value)| row[index as usize - base] = value);
                }
            }
        }
    });
    Dense::new(values, rows, cols)
}

fn sparse_matrix<I: Index + Default, V: Stored>(
    pieces: Vec<Piece<V>>,
    rows: usize,
    entries: usize,
    plan: &Plan,
) -> Csr<I, V> {
    let mut starts = Vec::with_capacity(rows + 1);
    starts.push(0u64);
    let mut start = 0;
    for length in pieces.iter().flat_map(|piece| &piece.lengths) {
        start += u64::from(*length);
        starts.push(start);
    }
    let mut indices = vec![I::default(); entries];
    let mut values = vec![V::narrow(0.0); entries];
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.values.len()).collect();
    let index_places = parts(&mut indices, lengths.iter().copied());
    let value_places = parts(&mut values, lengths.iter().copied());
    let base = usize::from(plan.base);
    let jobs = pieces.into_iter().zip(index_places).zip(value_places).collect();
    parallel::map_each(jobs, |_, ((piece, indices), values)| {
        values.copy_from_slice(&piece.values);
        match &piece.indices {
            Indices::Consecutive(first) => {
                let mut at = 0;
                for &length in &piece.lengths {
                    for offset in 0..length as usize {
                        indices[at] = I::from_position(*first as usize + offset - base);
                        at += 1;
                    }
                }
            }
            Indices::Narrow(from) => {
                indices.iter_mut().zip(from).for_each(|(to, &from)| *to = I::from_position(usize::from(from) - base));
            }
            Indices::Wide(from) => {
                indices.iter_mut().zip(from).for_each(|(to, &from)| *to = I::from_position(from as usize - base));
            }
        }
    });
    // The parser accepts only increasing indices, and `cols` is above the largest of them.
    Csr::from_checked_parts(starts.into(), indices.into(), values.into(), plan.cols)
}

fn targets<V>(pieces: &mut [Piece<V>]) -> Result<Targets> {
    if pieces.iter().all(|piece| piece.sets.is_none()) {
        let mut all = Vec::with_capacity(pieces.iter().map(Piece::rows).sum());
        for piece in pieces {
            all.append(&mut std::mem::take(&mut piece.targets));
        }
        return Ok(Targets::Real(all.into()));
    }
    // Some row has several labels or none. All rows then have sets, and a plain target is a set of one.
    let (mut lengths, mut labels) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece.sets.take() {
            Some(mut sets) => {
                lengths.append(&mut sets.lengths);
                labels.append(&mut sets.labels);
            }
            None => {
                lengths.extend(piece.targets.iter().map(|_| 1));
                labels.extend(piece.targets.iter().map(|&target| number_label(target)));
            }
        }
        piece.targets = Vec::new();
    }
    Ok(targets_of(lengths, &labels))
}

fn weights<V>(pieces: &mut [Piece<V>]) -> Option<Vec<f64>> {
    if pieces.iter().all(|piece| piece.weights.is_empty()) {
        return None;
    }
    let mut all = Vec::new();
    for piece in pieces {
        let rows = piece.rows();
        let mut weights = std::mem::take(&mut piece.weights);
        weights.resize(rows, 1.0);
        all.append(&mut weights);
    }
    Some(all)
}

fn groups<V>(pieces: &mut [Piece<V>]) -> Result<Option<(Vec<u32>, Names)>> {
    if pieces.iter().all(|piece| piece.keys.is_empty()) {
        return Ok(None);
    }
    let mut key_of: HashMap<Box<[u8]>, u32> = HashMap::new();
    let mut names: Vec<u8> = Vec::new();
    let mut ends: Vec<u64> = Vec::new();
    let mut keys = Vec::with_capacity(pieces.iter().map(Piece::rows).sum());
    for piece in pieces {
        let global: Vec<u32> = std::mem::take(&mut piece.key_names)
            .into_iter()
            .map(|name| {
                *key_of.entry(name).or_insert_with_key(|name| {
                    names.extend_from_slice(name);
                    ends.push(names.len() as u64);
                    ends.len() as u32 - 1
                })
            })
            .collect();
        keys.extend(std::mem::take(&mut piece.keys).into_iter().map(|key| global[key as usize]));
    }
    Ok(Some((keys, Names::from_parts(names.into(), ends.into()))))
}

fn ids<V>(pieces: &mut [Piece<V>], rows: usize) -> Option<Names> {
    let all: Vec<Ids> = pieces.iter_mut().map(|piece| std::mem::take(&mut piece.ids)).collect();
    if all.iter().any(|ids| ids.incomplete) || all.iter().map(|ids| ids.ends.len()).sum::<usize>() != rows {
        return None;
    }
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows));
    for ids in all {
        let before = bytes.len() as u64;
        bytes.extend_from_slice(&ids.bytes);
        ends.extend(ids.ends.into_iter().map(|end| before + end));
    }
    Some(Names::from_parts(bytes.into(), ends.into()))
}
