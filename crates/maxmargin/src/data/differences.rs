//! Differences of two rows, stored as rows of a new matrix.
//!
//! Each pair needs two rows per visit, and pairs that share few rows gain nothing from that. As differences they need
//! one row per visit, each row has its own score, and shifts cancel. A difference is right minus left after scaling,
//! rounded to the stored precision.

use super::matrix::{Csr, Dense, Matrix};
use super::row_loops::Value;
use super::{Design, Pairs, Scaling};
use crate::error::Result;
use crate::parallel;
use crate::run::Cancel;

/// Number of pairs that one thread handles at a time.
const CHUNK: usize = 4096;

impl Design {
    /// Right minus left of every pair, after scaling.
    pub(crate) fn differences(&self, pairs: &Pairs, cancel: &Cancel) -> Result<Design> {
        let matrix = match self.matrix() {
            Matrix::DenseF32(rows) if !self.scales_rows() => {
                Matrix::DenseF32(dense(self, pairs, |left, right, out| plain(self, rows, left, right, out), cancel)?)
            }
            Matrix::DenseF32(_) => {
                Matrix::DenseF32(dense(self, pairs, |left, right, out| general(self, left, right, out), cancel)?)
            }
            Matrix::DenseF64(_) => {
                Matrix::DenseF64(dense(self, pairs, |left, right, out| general(self, left, right, out), cancel)?)
            }
            matrix => match (matrix.is_double(), self.cols() <= 1 << 16) {
                (false, true) => Matrix::Csr16F32(sparse(self, pairs, |column| column as u16, cancel)?),
                (false, false) => Matrix::Csr32F32(sparse(self, pairs, |column| column as u32, cancel)?),
                (true, true) => Matrix::Csr16F64(sparse(self, pairs, |column| column as u16, cancel)?),
                (true, false) => Matrix::Csr32F64(sparse(self, pairs, |column| column as u32, cancel)?),
            },
        };
        Scaling::default().apply(&matrix, None)
    }
}

/// Dense f32 rows: shifts cancel, and there is one factor per column.
fn plain(design: &Design, rows: &Dense<f32>, left: usize, right: usize, out: &mut [f32]) {
    let (left, right) = (rows.row(left), rows.row(right));
    match design.factor() {
        None => out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = right - left),
        Some(factor) => {
            let values = left.iter().zip(right).zip(factor);
            out.iter_mut().zip(values).for_each(|(out, ((left, right), factor))| {
                *out = ((f64::from(*right) - f64::from(*left)) * factor) as f32;
            });
        }
    }
}

/// Rows of any layout.
fn general<V: Value>(design: &Design, left: usize, right: usize, out: &mut [V]) {
    let (mut one, mut other) = (vec![0.0; out.len()], vec![0.0; out.len()]);
    design.fill_scaled_row(left, &mut one);
    design.fill_scaled_row(right, &mut other);
    out.iter_mut().zip(other.iter().zip(&one)).for_each(|(out, (right, left))| *out = V::narrow(right - left));
}

fn dense<V: Value + Default>(
    design: &Design,
    pairs: &Pairs,
    difference: impl Fn(usize, usize, &mut [V]) + Sync,
    cancel: &Cancel,
) -> Result<Dense<V>>
where
    super::Buffer<V>: From<Vec<V>>,
{
    let cols = design.cols();
    let mut values = vec![V::default(); pairs.len() * cols];
    parallel::chunks(&mut values, CHUNK * cols.max(1), |chunk, values| {
        if cancel.is_raised() {
            return;
        }
        for (pair, out) in (chunk * CHUNK..).zip(values.chunks_exact_mut(cols.max(1))) {
            difference(pairs.left()[pair] as usize, pairs.right()[pair] as usize, out);
        }
    });
    cancel.check()?;
    Dense::new(values, pairs.len(), cols)
}

fn sparse<I, V>(
    design: &Design,
    pairs: &Pairs,
    narrow: impl Fn(usize) -> I + Sync,
    cancel: &Cancel,
) -> Result<Csr<I, V>>
where
    I: super::Index,
    V: Value,
    super::Buffer<I>: From<Vec<I>>,
    super::Buffer<V>: From<Vec<V>>,
{
    let chunks: Vec<(Vec<u32>, Vec<I>, Vec<V>)> = parallel::map(pairs.len().div_ceil(CHUNK), |chunk| {
        let (mut lengths, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for pair in chunk * CHUNK..((chunk + 1) * CHUNK).min(pairs.len()) {
            if cancel.is_raised() {
                break;
            }
            design.unshifted_entries(pairs.left()[pair] as usize, &mut one);
            design.unshifted_entries(pairs.right()[pair] as usize, &mut other);
            let before = values.len();
            merge(&one, &other, |column, value| {
                indices.push(narrow(column));
                values.push(V::narrow(value));
            });
            lengths.push((values.len() - before) as u32);
        }
        (lengths, indices, values)
    });
    cancel.check()?;
    let entries = chunks.iter().map(|(_, _, values)| values.len()).sum();
    let mut starts = Vec::with_capacity(pairs.len() + 1);
    let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    starts.push(0u64);
    let mut end = 0u64;
    for (lengths, some_indices, some_values) in chunks {
        for length in lengths {
            end += u64::from(length);
            starts.push(end);
        }
        indices.extend(some_indices);
        values.extend(some_values);
    }
    Csr::new(starts, indices, values, design.cols())
}

/// The entries of `right` minus those of `left`, with rising columns. Zero differences are left out.
fn merge(left: &[(usize, f64)], right: &[(usize, f64)], mut push: impl FnMut(usize, f64)) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let (column, value) = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(&&(l, value)), Some(&&(r, _))) if l < r => {
                left.next();
                (l, -value)
            }
            (Some(&&(l, one)), Some(&&(r, other))) if l == r => {
                left.next();
                right.next();
                (l, other - one)
            }
            (_, Some(&&(r, value))) => {
                right.next();
                (r, value)
            }
            (Some(&&(l, value)), None) => {
                left.next();
                (l, -value)
            }
        };
        if value != 0.0 {
            push(column, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Scale, Targets};

    #[test]
    fn differences_are_right_minus_left_however_rows_are_stored_and_scaled() {
        let rows: Vec<Vec<(usize, f64)>> = (0..7u32)
            .map(|row| {
                (0..5)
                    .filter(|c| !(row as usize + c).is_multiple_of(3))
                    .map(|c| (c, f64::from(row * 7 % 5) - c as f64))
                    .collect()
            })
            .collect();
        let pairs = Pairs::new(vec![0, 2, 4, 6, 1], vec![1, 3, 5, 0, 6]).expect("valid");
        let sparse = Matrix::from_rows(&rows, 5).expect("valid");
        let mut values = vec![0.0f32; 35];
        for row in 0..7 {
            sparse.each_in_row(row, |column, value| values[row * 5 + column] = value as f32);
        }
        let dense = Matrix::DenseF32(Dense::new(values.clone(), 7, 5).expect("valid"));
        let double = Matrix::DenseF64(
            Dense::new(values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), 7, 5).expect("valid"),
        );
        for matrix in [sparse, dense, double] {
            for scale in [Scale::None, Scale::Standard, Scale::MaxAbs, Scale::UnitRows] {
                let data = Dataset::new(matrix.clone(), Targets::Absent).expect("valid");
                let scaling = Scaling::fit(scale, &data, &Cancel::new()).expect("valid");
                let design = scaling.apply(&matrix, None).expect("valid");
                let differences = design.differences(&pairs, &Cancel::new()).expect("valid");
                for pair in 0..pairs.len() {
                    let (mut left, mut right, mut found) = (vec![0.0; 5], vec![0.0; 5], vec![0.0; 5]);
                    design.fill_scaled_row(pairs.left()[pair] as usize, &mut left);
                    design.fill_scaled_row(pairs.right()[pair] as usize, &mut right);
                    differences.fill_scaled_row(pair, &mut found);
                    for column in 0..5 {
                        assert!((found[column] - (right[column] - left[column])).abs() < 1e-6, "{scale:?}");
                    }
                }
            }
        }
    }
}
