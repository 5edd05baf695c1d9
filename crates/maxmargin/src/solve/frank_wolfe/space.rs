//! Scores of the rows of an example at a point, and what changes them.

use crate::data::Rows;
use crate::solve::scaled_rows::{ScaledRows, Sums};
use std::ops::Range;

/// Weights in the form in which they are changed row by row, and the weights of shared scores.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    v: Vec<f64>,
    sums: Sums,
    pub(super) shared: Vec<f64>,
}

/// The rows as the solver sees them. The solver itself is compiled once, for all layouts of the matrix.
pub(super) trait Space: Sync {
    /// Zero weights.
    fn zero(&self) -> Point;
    /// Writes the scores of some rows, those of one row side by side.
    fn scores(&self, rows: Range<usize>, at: &Point, out: &mut [f64]);
    /// Adds multiples of a row to the weights of some outputs.
    fn add(&self, row: usize, steps: &[(u32, f64)], to: &mut Point);
    /// Sets the weights of the features of a row to zero, for all outputs.
    fn clear(&self, row: usize, at: &mut Point);
    /// The weights of the scaled features.
    fn weights(&self, at: &Point) -> Vec<f64>;
}

/// Rows of one layout.
pub(super) struct Laid<'a, R> {
    pub(super) rows: ScaledRows<'a, R>,
    pub(super) outputs: usize,
    pub(super) shared: usize,
}

impl<R: Rows> Space for Laid<'_, R> {
    fn zero(&self) -> Point {
        let v = vec![0.0; self.rows.design().cols() * self.outputs];
        Point { v, sums: self.rows.sums(self.outputs), shared: vec![0.0; self.shared] }
    }

    fn scores(&self, rows: Range<usize>, at: &Point, out: &mut [f64]) {
        for (row, out) in rows.zip(out.chunks_exact_mut(self.outputs)) {
            self.rows.scores(row, &at.v, &at.sums, out);
        }
    }

    fn add(&self, row: usize, steps: &[(u32, f64)], to: &mut Point) {
        self.rows.add_to_some(row, steps, (&mut to.v, self.outputs), &mut to.sums);
    }

    fn clear(&self, row: usize, at: &mut Point) {
        self.rows.clear(row, (&mut at.v, self.outputs), &mut at.sums);
    }

    fn weights(&self, at: &Point) -> Vec<f64> {
        self.rows.weights_of_outputs(&at.v, &at.sums, (self.outputs, self.outputs))
    }
}
