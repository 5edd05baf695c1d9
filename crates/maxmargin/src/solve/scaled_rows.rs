//! [`ScaledRows`]: scores and sums of scaled rows for loops that visit one row at a time.
//!
//! With x' = F(x − μ) such a loop keeps v = F²·Σ c (x − μ) for dense rows, from which both the scores of scaled rows
//! and the weights w = F⁻¹v follow. Sparse rows stay sparse: there it keeps v = F²·Σ c x and two scalars in [`Sum`],
//! from which the scores of the scaled rows follow. All of it is linear in the coefficients c.

use crate::data::{Design, Rows};
use crate::parallel;

/// A weighted sum of scaled rows, in the form the loops keep it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    /// Σ c
    total: f64,
    /// μ · v
    shift_dot: f64,
}

impl Sum {
    /// Multiplies the sum by a factor.
    pub(super) fn scale(&mut self, factor: f64) {
        self.total *= factor;
        self.shift_dot *= factor;
    }

    /// Adds a multiple of another sum.
    pub(super) fn add(&mut self, factor: f64, other: Sum) {
        self.total += factor * other.total;
        self.shift_dot += factor * other.shift_dot;
    }
}

/// See the top of the file.
pub(super) struct ScaledRows<'a, R> {
    design: &'a Design,
    rows: &'a R,
    squared_factor: Option<Vec<f64>>,
    /// μ, if rows are dense and shifted one by one: the shift is subtracted first, since it may be a difference of
    /// large numbers.
    dense_shift: Option<&'a [f64]>,
    /// x_i · F²μ for each row, if rows are sparse and shifted.
    shift_products: Option<Vec<f64>>,
    shift_norm: f64,
}

impl<'a, R: Rows> ScaledRows<'a, R> {
    pub(super) fn new(design: &'a Design, rows: &'a R) -> ScaledRows<'a, R> {
        let squared_factor: Option<Vec<f64>> = design.factor().map(|f| f.iter().map(|f| f * f).collect());
        let dense_shift = design.shift().filter(|_| design.matrix().is_dense());
        let sparse_shift = design.shift().filter(|_| !design.matrix().is_dense());
        let shift_weights: Option<Vec<f64>> = sparse_shift.map(|shift| match &squared_factor {
            Some(square) => shift.iter().zip(square).map(|(m, f)| m * f).collect(),
            None => shift.to_vec(),
        });
        let shift_products: Option<Vec<f64>> = shift_weights.as_ref().map(|weights| {
            let product = |row| {
                let product = rows.dot(row, weights);
                design.passed(row..row + 1);
                product
            };
            parallel::collect(design.rows(), 1024, product)
        });
        let shift_norm = match (sparse_shift, &shift_weights) {
            (Some(shift), Some(weights)) => shift.iter().zip(weights).map(|(m, w)| m * w).sum(),
            _ => 0.0,
        };
        ScaledRows { design, rows, squared_factor, dense_shift, shift_products, shift_norm }
    }

    pub(super) fn design(&self) -> &'a Design {
        self.design
    }

    /// Prefetches a row that is needed soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, row: usize) {
        self.rows.prefetch(row);
    }

    /// Prefetches the position of a row, well before [`ScaledRows::prefetch`].
    #[inline(always)]
    pub(super) fn prefetch_start(&self, row: usize) {
        self.rows.prefetch_start(row);
    }

    /// The score of a scaled row.
    #[inline(always)]
    pub(super) fn score(&self, row: usize, v: &[f64], sum: &Sum) -> f64 {
        let mut score = match self.dense_shift {
            None => self.design.row_factor(row) * self.rows.dot(row, v),
            Some(shift) => self.rows.dot_shifted(row, shift, v),
        };
        if let Some(products) = &self.shift_products {
            score += sum.total * (self.shift_norm - products[row]) - sum.shift_dot;
        }
        score
    }

    /// Adds a multiple of a scaled row to the sum.
    #[inline(always)]
    pub(super) fn add(&self, row: usize, step: f64, v: &mut [f64], sum: &mut Sum) {
        let step = step * self.design.row_factor(row);
        match (&self.squared_factor, self.dense_shift) {
            (None, _) => self.rows.axpy(row, step, v),
            (Some(factor), None) => self.rows.axpy_scaled(row, step, factor, v),
            (Some(factor), Some(shift)) => self.rows.axpy_shifted(row, step, factor, shift, v),
        }
        if let Some(products) = &self.shift_products {
            sum.total += step;
            sum.shift_dot += step * products[row];
        }
    }

    /// The weights of the scaled features: F⁻¹v, minus (Σ c)·Fμ if v does not include the shift.
    pub(super) fn weights(&self, v: &[f64], sum: &Sum) -> Vec<f64> {
        let design = self.design;
        let mut w: Vec<f64> = match design.factor() {
            None => v.to_vec(),
            Some(factor) => v.iter().zip(factor).map(|(v, f)| if *f == 0.0 { 0.0 } else { v / f }).collect(),
        };
        if let (Some(shift), None) = (design.shift(), self.dense_shift) {
            for (column, w) in w.iter_mut().enumerate() {
                *w -= sum.total * shift[column] * design.factor().map_or(1.0, |factor| factor[column]);
            }
        }
        w
    }

    /// ‖x'‖²
    pub(super) fn square(&self, row: usize) -> f64 {
        let square = match &self.squared_factor {
            None => self.rows.squared_norm(row),
            Some(factor) => {
                let mut sum = 0.0;
                self.rows.each(row, |column, value| {
                    let value = value - self.dense_shift.map_or(0.0, |shift| shift[column]);
                    sum += factor[column] * value * value;
                });
                sum
            }
        };
        let shifted =
            self.shift_products.as_ref().map_or(square, |p| (square - 2.0 * p[row] + self.shift_norm).max(0.0));
        shifted * self.design.row_factor(row).powi(2)
    }

    /// ‖x' − z'‖². Differences are taken entry by entry: for nearly equal rows, ‖x‖² − 2x·z + ‖z‖² would be lost to
    /// rounding. Shifts cancel. `difference` is a work buffer, all zeros before and after.
    pub(super) fn square_of_difference(&self, difference: &mut Vec<f64>, row: usize, against: usize) -> f64 {
        let design = self.design;
        difference.resize(design.cols(), 0.0);
        self.rows.each(row, |column, value| difference[column] += design.row_factor(row) * value);
        self.rows.each(against, |column, value| difference[column] -= design.row_factor(against) * value);
        let mut sum = 0.0;
        let mut take = |column: usize| {
            let value = std::mem::take(&mut difference[column]);
            sum += self.squared_factor.as_ref().map_or(1.0, |factor| factor[column]) * value * value;
        };
        self.rows.each(row, |column, _| take(column));
        self.rows.each(against, |column, _| take(column));
        sum
    }
}
