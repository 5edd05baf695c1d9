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

/// The same as [`Sum`] for several outputs. Both lists are empty unless rows are sparse and shifted.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    totals: Vec<f64>,
    shift_dots: Vec<f64>,
}

impl Sums {
    /// Multiplies the sums by a factor.
    pub(super) fn scale(&mut self, factor: f64) {
        self.totals.iter_mut().chain(&mut self.shift_dots).for_each(|number| *number *= factor);
    }

    /// Adds a multiple of other sums.
    pub(super) fn add_times(&mut self, factor: f64, other: &Sums) {
        let add =
            |sum: &mut [f64], other: &[f64]| sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += factor * other);
        add(&mut self.totals, &other.totals);
        add(&mut self.shift_dots, &other.shift_dots);
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

    /// What has to be kept beside the weights of several outputs.
    pub(super) fn sums(&self, outputs: usize) -> Sums {
        let length = if self.shift_products.is_some() { outputs } else { 0 };
        Sums { totals: vec![0.0; length], shift_dots: vec![0.0; length] }
    }

    /// The scores of a scaled row for all outputs. Its weights of one feature are next to each other.
    #[inline(always)]
    pub(super) fn scores(&self, row: usize, v: &[f64], sums: &Sums, out: &mut [f64]) {
        match self.dense_shift {
            None => {
                self.rows.dots(row, v, out);
                let factor = self.design.row_factor(row);
                if factor != 1.0 {
                    out.iter_mut().for_each(|score| *score *= factor);
                }
            }
            Some(shift) => self.rows.dots_shifted(row, shift, v, out),
        }
        if let Some(products) = &self.shift_products {
            let by = self.shift_norm - products[row];
            out.iter_mut()
                .zip(sums.totals.iter().zip(&sums.shift_dots))
                .for_each(|(score, (total, dot))| *score += total * by - dot);
        }
    }

    /// The scores of a scaled row for some outputs.
    #[inline(always)]
    pub(super) fn scores_at(
        &self,
        row: usize,
        (v, outputs): (&[f64], usize),
        sums: &Sums,
        at: &[u32],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        self.rows.each(row, |column, value| {
            let value = value - self.dense_shift.map_or(0.0, |shift| shift[column]);
            if let Some(w) = v.get(column * outputs..(column + 1) * outputs) {
                out.iter_mut().zip(at).for_each(|(out, &at)| *out += value * w[at as usize]);
            }
        });
        let factor = self.design.row_factor(row);
        out.iter_mut().for_each(|score| *score *= factor);
        if let Some(products) = &self.shift_products {
            let by = self.shift_norm - products[row];
            for (score, &at) in out.iter_mut().zip(at) {
                *score += sums.totals[at as usize] * by - sums.shift_dots[at as usize];
            }
        }
    }

    /// Adds a multiple of a scaled row to the weights of every output.
    #[inline(always)]
    pub(super) fn add_to_all(&self, row: usize, steps: &mut [f64], v: &mut [f64], sums: &mut Sums) {
        let (factor, outputs) = (self.design.row_factor(row), steps.len());
        if factor != 1.0 {
            steps.iter_mut().for_each(|step| *step *= factor);
        }
        if self.squared_factor.is_none() {
            self.rows.axpys(row, steps, v);
        } else {
            self.rows.each(row, |column, value| {
                let value = self.in_square(column, value);
                let w = v[column * outputs..].iter_mut();
                w.zip(&*steps).for_each(|(w, step)| *w += value * step);
            });
        }
        if let Some(products) = &self.shift_products {
            for (output, step) in steps.iter().enumerate() {
                sums.totals[output] += step;
                sums.shift_dots[output] += step * products[row];
            }
        }
    }

    /// The same for some outputs, out of `outputs`.
    #[inline(always)]
    pub(super) fn add_to_some(
        &self,
        row: usize,
        steps: &[(u32, f64)],
        (v, outputs): (&mut [f64], usize),
        sums: &mut Sums,
    ) {
        let factor = self.design.row_factor(row);
        self.rows.each(row, |column, value| {
            let value = factor * self.in_square(column, value);
            if let Some(w) = v.get_mut(column * outputs..(column + 1) * outputs) {
                steps.iter().for_each(|&(output, step)| w[output as usize] += value * step);
            }
        });
        if let Some(products) = &self.shift_products {
            for &(output, step) in steps {
                sums.totals[output as usize] += factor * step;
                sums.shift_dots[output as usize] += factor * step * products[row];
            }
        }
    }

    /// Sets the weights of the features of a row to zero, for all outputs, and the sums with them.
    pub(super) fn clear(&self, row: usize, (v, outputs): (&mut [f64], usize), sums: &mut Sums) {
        self.rows.each(row, |column, _| {
            if let Some(w) = v.get_mut(column * outputs..(column + 1) * outputs) {
                w.fill(0.0);
            }
        });
        // Numbers that are not finite would stay so times zero.
        sums.totals.fill(0.0);
        sums.shift_dots.fill(0.0);
    }

    /// What a stored value adds to v: F²x, or F²(x − μ) for dense rows.
    #[inline(always)]
    fn in_square(&self, column: usize, value: f64) -> f64 {
        match &self.squared_factor {
            None => value,
            Some(factor) => factor[column] * (value - self.dense_shift.map_or(0.0, |shift| shift[column])),
        }
    }

    /// The weights of the scaled features for the first `outputs` of `stride` outputs.
    pub(super) fn weights_of_outputs(&self, v: &[f64], sums: &Sums, (outputs, stride): (usize, usize)) -> Vec<f64> {
        let design = self.design;
        let mut weights = Vec::with_capacity(design.cols() * outputs);
        for (column, v) in v.chunks_exact(stride).enumerate() {
            let factor = design.factor().map_or(1.0, |factor| factor[column]);
            let inverse = if factor == 0.0 { 0.0 } else { 1.0 / factor };
            weights.extend(v[..outputs].iter().map(|v| if factor == 1.0 { *v } else { v * inverse }));
            if let (Some(shift), true) = (design.shift(), self.shift_products.is_some()) {
                let own = weights.len() - outputs;
                for (w, total) in weights[own..].iter_mut().zip(&sums.totals) {
                    *w -= total * shift[column] * factor;
                }
            }
        }
        weights
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
