//! [`PairSteps`]: the difference right − left of two rows, as a step needs it: its product with the weights, its
//! square, and its multiple that is added to them. The difference is never stored, dense or sparse. A step costs
//! O(entries of both rows).

use crate::data::{Csr, Dense, Index, Rows, Value};

const LANES: usize = 16;

/// Dense rows up to this length are always processed, even for a step of zero: a branch that is mispredicted for every
/// second pair costs more.
const SHORT: usize = 64;

pub(super) trait PairSteps: Rows {
    /// Whether a step of zero is as fast as checking for it.
    fn are_short(&self) -> bool;
    /// w · (x_right − x_left)
    fn product(&self, left: usize, right: usize, w: &[f64]) -> f64;
    /// ‖x_right − x_left‖², entry by entry, since nearly equal rows would be lost to rounding in ‖x‖² − 2x·z + ‖z‖².
    /// `scratch` is as long as the weights, all zeros before and after.
    fn square(&self, left: usize, right: usize, scratch: &mut [f64]) -> f64;
    /// w += step · (x_right − x_left)
    fn add(&self, left: usize, right: usize, step: f64, w: &mut [f64]);
}

#[inline(always)]
fn sum_of(lanes: [f64; LANES]) -> f64 {
    let mut halves = [0.0; 8];
    for lane in 0..8 {
        halves[lane] = lanes[lane] + lanes[lane + 8];
    }
    ((halves[0] + halves[4]) + (halves[2] + halves[6])) + ((halves[1] + halves[5]) + (halves[3] + halves[7]))
}

/// Σ term(right_j − left_j, w_j)
#[inline(always)]
fn sum_over<V: Value>(left: &[V], right: &[V], w: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let (right, w) = (&right[..left.len()], &w[..left.len()]);
    let mut lanes = [0.0; LANES];
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    let (w_chunks, w_rest) = w.as_chunks::<LANES>();
    for ((left, right), w) in left_chunks.iter().zip(right_chunks).zip(w_chunks) {
        for lane in 0..LANES {
            lanes[lane] += term(right[lane].wide() - left[lane].wide(), w[lane]);
        }
    }
    for (lane, ((left, right), w)) in left_rest.iter().zip(right_rest).zip(w_rest).enumerate() {
        lanes[lane] += term(right.wide() - left.wide(), *w);
    }
    sum_of(lanes)
}

impl<V: Value> PairSteps for Dense<V> {
    #[inline(always)]
    fn are_short(&self) -> bool {
        self.cols() <= SHORT
    }
    #[inline(always)]
    fn product(&self, left: usize, right: usize, w: &[f64]) -> f64 {
        sum_over(self.row(left), self.row(right), w, |difference, w| difference * w)
    }
    #[inline(always)]
    fn square(&self, left: usize, right: usize, scratch: &mut [f64]) -> f64 {
        sum_over(self.row(left), self.row(right), scratch, |difference, _| difference * difference)
    }
    #[inline(always)]
    fn add(&self, left: usize, right: usize, step: f64, w: &mut [f64]) {
        let (left, right) = (self.row(left), self.row(right));
        let (right, w) = (&right[..left.len()], &mut w[..left.len()]);
        for ((left, right), w) in left.iter().zip(right).zip(w) {
            *w += step * (right.wide() - left.wide());
        }
    }
}

impl<I: Index, V: Value> PairSteps for Csr<I, V> {
    #[inline(always)]
    fn are_short(&self) -> bool {
        false
    }
    #[inline(always)]
    fn product(&self, left: usize, right: usize, w: &[f64]) -> f64 {
        self.dot(right, w) - self.dot(left, w)
    }
    #[inline(always)]
    fn square(&self, left: usize, right: usize, scratch: &mut [f64]) -> f64 {
        let ((left_indices, left_values), (right_indices, right_values)) = (self.row(left), self.row(right));
        // An index past the end means that a memory-mapped file is being changed: it is ignored.
        for (index, value) in left_indices.iter().zip(left_values) {
            if let Some(slot) = scratch.get_mut(index.position()) {
                *slot = value.wide();
            }
        }
        // Four sums, since each addition waits for the one before it.
        let mut lanes = [0.0; 4];
        let mut meet = |lane: usize, index: I, value: f64| {
            if let Some(slot) = scratch.get_mut(index.position()) {
                let difference = value - std::mem::take(slot);
                lanes[lane] += difference * difference;
            }
        };
        let (index_chunks, index_rest) = right_indices.as_chunks::<4>();
        let (value_chunks, value_rest) = right_values.as_chunks::<4>();
        for (indices, values) in index_chunks.iter().zip(value_chunks) {
            for (lane, (&index, value)) in indices.iter().zip(values).enumerate() {
                meet(lane, index, value.wide());
            }
        }
        index_rest.iter().zip(value_rest).for_each(|(&index, &value)| meet(0, index, value.wide()));
        // The entries of the left row that the right row does not have.
        let (index_chunks, index_rest) = left_indices.as_chunks::<4>();
        for indices in index_chunks {
            for (lane, &index) in indices.iter().enumerate() {
                meet(lane, index, 0.0);
            }
        }
        index_rest.iter().for_each(|&index| meet(0, index, 0.0));
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    }
    #[inline(always)]
    fn add(&self, left: usize, right: usize, step: f64, w: &mut [f64]) {
        self.axpy(right, step, w);
        self.axpy(left, -step, w);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, with_rows};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn differences_are_those_of_rows_written_out(
            entries in prop::collection::vec(prop::option::weighted(0.6, -4.0..4.0f64), 2..140),
            step in -2.0..2.0f64,
        ) {
            let cols = entries.len() / 2;
            let entries: Vec<Option<f64>> = entries.iter().map(|value| value.map(|value| f64::from(value as f32))).collect();
            let rows: Vec<Vec<(usize, f64)>> = entries[..2 * cols]
                .chunks(cols)
                .map(|row| row.iter().enumerate().filter_map(|(column, value)| value.map(|value| (column, value))).collect())
                .collect();
            let plain: Vec<f64> = entries[..2 * cols].iter().map(|value| value.unwrap_or(0.0)).collect();
            let difference: Vec<f64> = (0..cols).map(|column| plain[cols + column] - plain[column]).collect();
            let w: Vec<f64> = (0..cols).map(|column| (column as f64 * 0.7).sin()).collect();
            let narrow: Vec<f32> = plain.iter().map(|&value| value as f32).collect();
            let starts: Vec<u64> = vec![0, rows[0].len() as u64, (rows[0].len() + rows[1].len()) as u64];
            let indices: Vec<u32> = rows.iter().flatten().map(|entry| entry.0 as u32).collect();
            let values: Vec<f64> = rows.iter().flatten().map(|entry| entry.1).collect();
            for matrix in [
                Matrix::DenseF32(Dense::new(narrow, 2, cols).expect("two rows")),
                Matrix::DenseF64(Dense::new(plain, 2, cols).expect("two rows")),
                Matrix::Csr32F64(Csr::new(starts, indices, values, cols).expect("two rows")),
            ] {
                let (mut moved, mut scratch) = (w.clone(), vec![0.0; cols]);
                let (product, square) = with_rows!(&matrix, rows => {
                    rows.add(0, 1, step, &mut moved);
                    (rows.product(0, 1, &w), rows.square(0, 1, &mut scratch))
                });
                let expected: f64 = difference.iter().zip(&w).map(|(d, w)| d * w).sum();
                prop_assert!((product - expected).abs() < 1e-10);
                prop_assert!((square - difference.iter().map(|d| d * d).sum::<f64>()).abs() < 1e-10);
                prop_assert!(scratch.iter().all(|&value| value == 0.0));
                for column in 0..cols {
                    prop_assert!((moved[column] - w[column] - step * difference[column]).abs() < 1e-12);
                }
            }
        }
    }
}
