//! Σ v vᵀ over many vectors: the matrix of a Newton step. A vector is written to a tile when it is needed.
//!
//! A tile holds a fixed number of vectors and the sum is made in fixed panels of rows, so the result does not depend on
//! the number of threads.

use crate::parallel;
use crate::run::Cancel;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::ops::Range;

/// Vectors that are multiplied together: enough for an efficient matrix product, few enough to fit in the cache.
pub(super) const BATCH: usize = 256;

/// Numbers that one thread writes to a tile at a time.
const FILLED: usize = 4096;

/// Rows of the matrix that one thread adds products to at a time.
const PANEL: usize = 128;

/// The lower triangle of Σ v vᵀ over `count` vectors of length `dim`, row by row. `fill` writes the vector with the
/// given number into a slice of zeros. `passed` is called with the range of vectors that are not needed again. After a
/// cancel the result is not usable.
pub(super) fn sum_of_squares(
    count: usize,
    dim: usize,
    fill: impl Fn(usize, &mut [f64]) + Sync,
    passed: impl Fn(Range<usize>),
    cancel: &Cancel,
) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    if dim == 0 {
        return matrix;
    }
    let mut tile = vec![0.0; BATCH.min(count) * dim];
    for start in (0..count).step_by(BATCH) {
        if cancel.is_raised() {
            break;
        }
        let vectors = start..(start + BATCH).min(count);
        let tile = &mut tile[..vectors.len() * dim];
        let run = (FILLED / dim).max(1);
        parallel::chunks(tile, run * dim, |chunk, tile| {
            tile.fill(0.0);
            for (number, values) in (start + chunk * run..).zip(tile.chunks_exact_mut(dim)) {
                fill(number, values);
            }
        });
        let tile = MatRef::from_row_major_slice(tile, vectors.len(), dim);
        parallel::chunks(&mut matrix, PANEL * dim, |panel, lines| {
            if cancel.is_raised() {
                return;
            }
            let (start, height) = (panel * PANEL, lines.len() / dim);
            let width = start + height;
            let own = tile.subcols(start, height).transpose();
            let lines = MatMut::from_row_major_slice_mut(lines, height, dim).subcols_mut(0, width);
            matmul(lines, Accum::Add, own, tile.subcols(0, width), 1.0, Par::Seq);
        });
        passed(vectors);
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn tiles_and_panels_add_up() {
        for (count, dim) in [(0, 3), (5, 0), (1, 1), (5, 2), (255, 129), (600, 260)] {
            let mut random = Random::new(1, 0, 0);
            let vectors: Vec<Vec<f64>> = (0..count).map(|_| (0..dim).map(|_| random.normal()).collect()).collect();
            let fill = |number: usize, values: &mut [f64]| values.copy_from_slice(&vectors[number]);
            let matrix = sum_of_squares(count, dim, fill, |_| (), &Cancel::new());
            for row in 0..dim {
                for column in 0..=row {
                    let sum: f64 = vectors.iter().map(|v| v[row] * v[column]).sum();
                    assert!((matrix[row * dim + column] - sum).abs() < 1e-10 * (1.0 + count as f64));
                }
            }
        }
    }
}
