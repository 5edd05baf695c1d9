//! Cholesky factors: [`Cholesky`], which rows can enter and leave, and [`BlockedCholesky`], for a large matrix.
//!
//! **An active set** has a factor kept row by row, so that a row enters by one triangular solve. When a row leaves, its
//! column l leaves too, and the part below becomes the factor of L Lᵀ + l lᵀ by plane rotations (Gill, Golub, Murray &
//! Saunders, Methods for modifying matrix factorizations, Mathematics of Computation 28 (1974)). Both cost O(rows²).
//!
//! **A large matrix** is factored one block of columns after the other: the square on the diagonal, the rows below it,
//! and the update of the rest, which takes most of the time and is shared by all threads. Blocks depend on the size
//! alone, so the number of threads does not change the result. Between blocks the factorisation can be cancelled.

use super::dot;
use crate::parallel;
use crate::run::Cancel;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Llt;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par, Side};

/// The lower factor L of a positive definite matrix L Lᵀ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cholesky {
    /// The row with index i has i + 1 entries.
    lower: Vec<Vec<f64>>,
}

impl Cholesky {
    /// The factor of a whole matrix, given row by row, or none if a squared pivot is below a share of its diagonal.
    pub(crate) fn of(matrix: &[f64], count: usize, least: f64) -> Option<Cholesky> {
        let factor = Llt::new(MatRef::from_row_major_slice(matrix, count, count), Side::Lower).ok()?;
        let lower = factor.L();
        let row = |row: usize| (0..=row).map(|column| lower[(row, column)]).collect::<Vec<f64>>();
        let lower: Vec<Vec<f64>> = (0..count).map(row).collect();
        let sound = |(at, row): (usize, &Vec<f64>)| row[at] * row[at] > least * matrix[at * count + at];
        lower.iter().enumerate().all(sound).then_some(Cholesky { lower })
    }

    pub(crate) fn rows(&self) -> usize {
        self.lower.len()
    }

    /// The row of the factor that a new last row of the matrix would have, and its squared pivot.
    pub(crate) fn row(&self, entries: impl IntoIterator<Item = f64>, own: f64) -> (Vec<f64>, f64) {
        let mut row: Vec<f64> = Vec::with_capacity(self.rows() + 1);
        for (lower, entry) in self.lower.iter().zip(entries) {
            row.push((entry - dot(lower, &row)) / lower[row.len()]);
        }
        let pivot = own - dot(&row, &row);
        (row, pivot)
    }

    /// Adds a row, with its pivot as the last entry.
    pub(crate) fn push(&mut self, row: Vec<f64>) {
        self.lower.push(row);
    }

    /// Removes a row and its column.
    pub(crate) fn remove(&mut self, at: usize) {
        self.lower.remove(at);
        let mut rotations: Vec<(f64, f64)> = Vec::with_capacity(self.lower.len() - at);
        for row in &mut self.lower[at..] {
            let mut left = row.remove(at);
            for (value, &(cosine, sine)) in row[at..].iter_mut().zip(&rotations) {
                (*value, left) = (cosine * *value + sine * left, cosine * left - sine * *value);
            }
            if let Some(pivot) = row.last_mut() {
                let length = pivot.hypot(left);
                rotations.push((*pivot / length, left / length));
                *pivot = length;
            }
        }
    }

    /// Lᵀ x = right.
    pub(crate) fn back(&self, mut right: Vec<f64>) -> Vec<f64> {
        for at in (0..right.len()).rev() {
            right[at] /= self.lower[at][at];
            let value = right[at];
            right[..at].iter_mut().zip(&self.lower[at]).for_each(|(right, lower)| *right -= lower * value);
        }
        right
    }

    /// L Lᵀ x = right.
    pub(crate) fn solve(&self, mut right: Vec<f64>) -> Vec<f64> {
        for at in 0..right.len() {
            right[at] = (right[at] - dot(&self.lower[at], &right[..at])) / self.lower[at][at];
        }
        self.back(right)
    }
}

/// The lower factor of a matrix too large to be factored in one step, see the top of the file.
pub(super) struct BlockedCholesky {
    /// Row by row; the values above the diagonal are not used.
    lower: Vec<f64>,
    dim: usize,
}

/// Columns of a block.
const BLOCK: usize = 128;

impl BlockedCholesky {
    /// The factor of a matrix given row by row, of which only the lower triangle is used. None if it is not positive
    /// definite up to rounding, or after a cancel.
    pub(super) fn of(mut matrix: Vec<f64>, dim: usize, cancel: &Cancel) -> Option<BlockedCholesky> {
        let mut below = Vec::new();
        for start in (0..dim).step_by(BLOCK) {
            if cancel.is_raised() {
                return None;
            }
            let (width, end) = (BLOCK.min(dim - start), (start + BLOCK).min(dim));
            let (upper, rest) = matrix.split_at_mut(end * dim);
            let square = MatMut::from_row_major_slice_mut(&mut upper[start * dim..], width, dim);
            let mut square = square.subcols_mut(start, width);
            let factor = Llt::new(square.as_ref(), Side::Lower).ok()?;
            square.copy_from(factor.L());
            let square = square.as_ref();
            // The rows below are not contiguous in the matrix: they are solved for in a separate buffer.
            below.clear();
            below.extend(rest.chunks_exact(dim).flat_map(|row| &row[start..end]));
            parallel::chunks(&mut below, BLOCK * width, |_, rows| {
                let rows = MatMut::from_row_major_slice_mut(rows, rows.len() / width, width);
                solve_lower_triangular_in_place(square, rows.transpose_mut(), Par::Seq);
            });
            let all = MatRef::from_row_major_slice(&below, below.len() / width, width);
            parallel::chunks(rest, BLOCK * dim, |panel, lines| {
                if cancel.is_raised() {
                    return;
                }
                let height = lines.len() / dim;
                let own = &below[panel * BLOCK * width..][..height * width];
                lines.chunks_exact_mut(dim).zip(own.chunks_exact(width)).for_each(|(line, own)| {
                    line[start..end].copy_from_slice(own);
                });
                let reach = panel * BLOCK + height;
                let lines = MatMut::from_row_major_slice_mut(lines, height, dim).subcols_mut(end, reach);
                let own = MatRef::from_row_major_slice(own, height, width);
                matmul(lines, Accum::Add, own, all.subrows(0, reach).transpose(), -1.0, Par::Seq);
            });
        }
        (!cancel.is_raised()).then_some(BlockedCholesky { lower: matrix, dim })
    }

    /// The solution of L Lᵀ x = right.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = right.to_vec();
        let lower = MatRef::from_row_major_slice(&self.lower, self.dim, self.dim);
        let mut column = MatMut::from_column_major_slice_mut(&mut solution, self.dim, 1);
        solve_lower_triangular_in_place(lower, column.as_mut(), Par::Seq);
        solve_upper_triangular_in_place(lower.transpose(), column, Par::Seq);
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A positive definite matrix, row by row.
    fn matrix(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, 0, 0);
        let rows: Vec<f64> = (0..count * (count + 2)).map(|_| random.normal()).collect();
        let row = |at: usize| &rows[at * (count + 2)..(at + 1) * (count + 2)];
        (0..count * count).map(|at| dot(row(at / count), row(at % count))).collect()
    }

    fn grown(matrix: &[f64], count: usize, members: &[usize]) -> Cholesky {
        let mut factor = Cholesky::default();
        for (at, &member) in members.iter().enumerate() {
            let entries = members[..at].iter().map(|&other| matrix[member * count + other]);
            let (mut row, pivot) = factor.row(entries, matrix[member * count + member]);
            row.push(pivot.sqrt());
            factor.push(row);
        }
        factor
    }

    fn assert_factor_of(factor: &Cholesky, matrix: &[f64], count: usize, members: &[usize]) {
        assert_eq!(factor.rows(), members.len());
        for (at, &a) in members.iter().enumerate() {
            assert!(factor.lower[at].len() == at + 1 && factor.lower[at][at] > 0.0);
            for (other, &b) in members[..=at].iter().enumerate() {
                let product = dot(&factor.lower[at], &factor.lower[other]);
                let scale = (matrix[a * count + a] * matrix[b * count + b]).sqrt();
                assert!((product - matrix[a * count + b]).abs() < 1e-12 * scale, "{at} {other}");
            }
        }
    }

    #[test]
    fn rows_enter_and_leave_and_the_factor_multiplies_out() {
        for count in [1, 2, 7, 20, 65] {
            let matrix = matrix(count, count as u64);
            let mut members: Vec<usize> = (0..count).rev().collect();
            let mut factor = grown(&matrix, count, &members);
            assert_factor_of(&factor, &matrix, count, &members);
            let mut random = Random::new(9, 1, 0);
            while !members.is_empty() {
                let at = random.below(members.len() as u64) as usize;
                members.remove(at);
                factor.remove(at);
                assert_factor_of(&factor, &matrix, count, &members);
            }
        }
    }

    #[test]
    fn a_whole_matrix_and_its_rows_one_by_one_have_one_factor_that_solves() {
        for count in [1, 3, 40, 129] {
            let matrix = matrix(count, 5);
            let whole = Cholesky::of(&matrix, count, 1e-12).expect("positive definite");
            let members: Vec<usize> = (0..count).collect();
            assert_factor_of(&whole, &matrix, count, &members);
            let right: Vec<f64> = (0..count).map(|at| at as f64 - 2.0).collect();
            let solved = whole.solve(right.clone());
            let again = grown(&matrix, count, &members).solve(right.clone());
            for at in 0..count {
                let product = dot(&matrix[at * count..(at + 1) * count], &solved);
                assert!((product - right[at]).abs() < 1e-8 * (1.0 + right[at].abs()), "{product} {}", right[at]);
                assert!((solved[at] - again[at]).abs() < 1e-8 * (1.0 + solved[at].abs()));
            }
        }
    }

    #[test]
    fn a_factor_made_by_blocks_solves() {
        for count in [0, 1, 7, 127, 128, 129, 300, 641] {
            let matrix = matrix(count, 11);
            // The other triangle does not count.
            let mut lower = matrix.clone();
            (0..count).for_each(|row| lower[row * count + row + 1..(row + 1) * count].fill(f64::NAN));
            let factor = BlockedCholesky::of(lower, count, &Cancel::new()).expect("positive definite");
            let right: Vec<f64> = (0..count).map(|at| (at % 7) as f64 - 2.0).collect();
            let solved = factor.solve(&right);
            let largest = solved.iter().fold(1.0, |largest: f64, x| largest.max(x.abs()));
            for at in 0..count {
                let product = dot(&matrix[at * count..(at + 1) * count], &solved);
                assert!((product - right[at]).abs() < 1e-9 * largest * count as f64, "{count} {at}: {product}");
            }
        }
    }

    #[test]
    fn a_blocked_factor_is_none_for_an_indefinite_matrix_or_after_a_cancel() {
        let mut indefinite = matrix(200, 3);
        indefinite[150 * 200 + 150] = -1.0;
        assert!(BlockedCholesky::of(indefinite, 200, &Cancel::new()).is_none());
        let asked = Cancel::new();
        asked.raise();
        assert!(BlockedCholesky::of(matrix(200, 3), 200, &asked).is_none());
    }

    #[test]
    fn a_matrix_with_dependent_rows_has_none() {
        let copies = [2.0, 2.0, 2.0, 2.0];
        assert!(Cholesky::of(&copies, 2, 1e-12).is_none());
    }
}
