//! The second derivatives by a few free scalars, which may be linearly dependent: a Cholesky factor with pivots.
//!
//! If the curvature of some scalars follows from others, for instance because adding a constant to all of them changes
//! nothing, only the pivots move. The next pivot is the scalar with the largest remaining share of its own curvature,
//! so the sizes of the scalars do not matter.

use super::cholesky::Cholesky;
use super::dot;

/// A pivot below this share of the scalar's own curvature counts as zero.
pub(super) const DEPENDENT: f64 = 1e-12;

/// See the top of the file.
pub(super) struct FreeBlock {
    count: usize,
    /// The scalars that do not depend on others, in the order of the factor.
    pivots: Vec<usize>,
    factor: Cholesky,
}

impl FreeBlock {
    /// The factor of a symmetric matrix, given row by row, that is positive semidefinite up to rounding. A pivot below
    /// the share `least` of the scalar's own curvature counts as zero. Among equals, the first becomes the next pivot.
    pub(super) fn of(matrix: &[f64], count: usize, least: f64) -> FreeBlock {
        let mut block = FreeBlock { count, pivots: Vec::new(), factor: Cholesky::default() };
        loop {
            let mut best: Option<(usize, Vec<f64>, f64, f64)> = None;
            for scalar in (0..count).filter(|scalar| !block.pivots.contains(scalar)) {
                let own = matrix[scalar * count + scalar];
                let entries = block.pivots.iter().map(|&pivot| matrix[scalar * count + pivot]);
                let (row, pivot) = block.factor.row(entries, own);
                let share = pivot / own;
                if share > least && best.as_ref().is_none_or(|best| share > best.3) {
                    best = Some((scalar, row, pivot, share));
                }
            }
            let Some((scalar, mut row, pivot, _)) = best else { return block };
            row.push(pivot.sqrt());
            block.pivots.push(scalar);
            block.factor.push(row);
        }
    }

    /// Some x with H x = `right`, if there is one. It is zero at the dependent scalars.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let solved = self.factor.solve(self.pivots.iter().map(|&pivot| right[pivot]).collect());
        let mut all = vec![0.0; self.count];
        self.pivots.iter().zip(solved).for_each(|(&pivot, value)| all[pivot] = value);
        all
    }

    /// ½ gᵀH⁻¹g: how much a quadratic function with this gradient could still fall.
    pub(super) fn fall(&self, gradient: &[f64]) -> f64 {
        0.5 * dot(gradient, &self.solve(gradient))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_block_is_solved_and_a_singular_one_as_far_as_it_goes() {
        // Second derivatives of ½(a + 2b)² + 3·10¹²·b²: two sizes, and one direction without curvature in c.
        let matrix = [1.0, 2.0, 0.0, 2.0, 4.0 + 6e12, 0.0, 0.0, 0.0, 0.0];
        let block = FreeBlock::of(&matrix, 3, DEPENDENT);
        let right = [5.0, 10.0 + 1.2e13, 0.0];
        let solved = block.solve(&right);
        assert!((solved[0] - 1.0).abs() < 1e-9 && (solved[1] - 2.0).abs() < 1e-9 && solved[2] == 0.0);
        assert!((block.fall(&right) / (0.5 * (5.0 + 2.0 * right[1])) - 1.0).abs() < 1e-12);
        // Only differences count: I − 11ᵀ/3.
        let third = 1.0 / 3.0;
        let matrix: Vec<f64> = (0..9).map(|at| if at % 4 == 0 { 1.0 - third } else { -third }).collect();
        let block = FreeBlock::of(&matrix, 3, DEPENDENT);
        assert_eq!(block.pivots.len(), 2);
        let right = [0.5, -0.2, -0.3];
        let solved = block.solve(&right);
        for row in 0..3 {
            assert!((dot(&matrix[3 * row..][..3], &solved) - right[row]).abs() < 1e-15);
        }
        assert!(FreeBlock::of(&[], 0, DEPENDENT).solve(&[]).is_empty());
    }
}
