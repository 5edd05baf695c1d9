//! A Cholesky factor that rows enter and leave: the matrix of an active set.
//!
//! Row by row, so that a row enters by one triangular solve. One that leaves takes its column l with it; what stands below
//! becomes the factor of L Lᵀ + l lᵀ by plane rotations (Gill, Golub, Murray & Saunders, Methods for modifying matrix
//! factorizations, Mathematics of Computation 28 (1974)). Both cost O(rows²).

use super::dot;
use faer::linalg::solvers::Llt;
use faer::{MatRef, Side};

/// The lower factor L of a positive definite matrix L Lᵀ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cholesky {
    /// Each row as long as its number.
    lower: Vec<Vec<f64>>,
}

impl Cholesky {
    /// The factor of a whole matrix, row by row, or none where a squared pivot is below a share of its diagonal.
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

    /// Lets a row in, its pivot the last of it.
    pub(crate) fn push(&mut self, row: Vec<f64>) {
        self.lower.push(row);
    }

    /// Takes a row out, and its column.
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
    fn a_matrix_with_dependent_rows_has_none() {
        let copies = [2.0, 2.0, 2.0, 2.0];
        assert!(Cholesky::of(&copies, 2, 1e-12).is_none());
    }
}
