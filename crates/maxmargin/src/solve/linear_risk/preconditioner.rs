//! An approximation of the Hessian of a [`LinearRisk`], cheap to form, to speed up conjugate gradients.
//!
//! ```text
//! Σ_i h_i (x_i − x̄)(x_i − x̄)ᵀ + penalty
//! ```
//! h is the diagonal of the task's Hessian by the scores. x̄ is the mean of a part weighted by h if only differences of
//! scores count, else zero. With few coordinates, the sum is over all rows; with more, over a sample of the rows with
//! h > 0; with many, only its diagonal is used, with x̄ = 0. With several scores per row, there is one such sum for each
//! score, on the diagonal of a block matrix, and no sampling.

use super::super::normal_matrix::{BATCH, sum_of_squares};
use super::super::{Preconditioner, Risk};
use super::hessian::{EXACT_HESSIAN_DIM, Product};
use super::{LinearRisk, SAMPLED_HESSIAN_DIM};
use crate::error::Result;
use crate::parallel;
use crate::task::{Curvature, Place};
use std::ops::Range;

/// Sampled rows per coordinate.
const SAMPLED_ROWS: usize = 2;

/// A row with a positive second derivative.
#[derive(Clone, Copy)]
pub(in crate::solve) struct Curved {
    row: usize,
    /// The second derivative by its score, above zero.
    weight: f64,
    /// The mixed derivative by its score and the threshold, if there is one.
    cross: f64,
}

/// At most `most` rows, evenly spread.
fn spread(curved: Vec<Curved>, most: usize) -> Vec<Curved> {
    let (count, taken) = (curved.len(), curved.len().min(most));
    (0..taken).map(|at| curved[at * count / taken]).collect()
}

impl<T: Curvature> LinearRisk<'_, T> {
    pub(super) fn like_hessian(&mut self) -> Result<Preconditioner> {
        let dim = self.dim();
        if dim <= EXACT_HESSIAN_DIM {
            return self.covariance().map(Preconditioner::Matrix);
        }
        if dim <= SAMPLED_HESSIAN_DIM && self.outputs == 1 && !self.has_short_rows() {
            return self.sampled_hessian(SAMPLED_ROWS * dim).map(Preconditioner::Matrix);
        }
        self.squares().map(Preconditioner::Diagonal)
    }

    /// The diagonal of Σ h x xᵀ, with the penalty. A free scalar gets 1.
    fn squares(&self) -> Result<Vec<f64>> {
        let parts: Vec<Vec<f64>> = parallel::try_map(self.lanes.len(), |lane| {
            let mut sum = vec![0.0; self.weights()];
            for (at, memo) in self.remembered(&self.lanes[lane]) {
                if self.cancel.is_raised() {
                    break;
                }
                let rows = self.task.rows(at.part);
                let mut weights = vec![0.0; at.scores.len()];
                self.task.diagonal(&at, memo, &mut weights)?;
                for (row, weights) in rows.clone().zip(weights.chunks_exact(self.outputs)) {
                    match weights {
                        [weight] => self.design.add_squares(row, *weight, &mut sum),
                        weights => self.design.add_squares_of_outputs(row, weights, &mut sum),
                    }
                }
                self.design.passed(rows);
            }
            Ok(sum)
        })?;
        let mut squares = vec![1.0; self.dim()];
        squares[..self.penalised()].fill(self.penalty);
        for part in parts {
            squares.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        Ok(squares)
    }

    /// Σ_i h_i (x_i − x̄)(x_i − x̄)ᵀ over all rows. If only differences of scores count, x̄ is the part's mean weighted
    /// by h.
    fn covariance(&mut self) -> Result<Vec<f64>> {
        let (dim, weights, outputs) = (self.dim(), self.weights(), self.outputs);
        let batch = (BATCH / outputs).max(1);
        let mut matrix = self.sum_products(|this, lane, sum, _| {
            let mut product = Product::new(dim, weights);
            let mut features = Vec::new();
            for (at, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(at.part);
                let mut curvatures = vec![0.0; at.scores.len()];
                this.task.diagonal(&at, memo, &mut curvatures)?;
                let mean = this.mean_of_part(&at, &curvatures);
                for (chunk, curvatures) in curvatures.chunks(batch * outputs).enumerate() {
                    if this.cancel.is_raised() {
                        break;
                    }
                    let start = rows.start + chunk * batch;
                    let (tile, out) = product.next(curvatures.len(), sum);
                    for (row, lines) in (start..).zip(tile.chunks_exact_mut(dim * outputs)) {
                        this.fill_lines(row, &mut features, lines);
                    }
                    let slots = tile.chunks_exact_mut(dim).zip(out.chunks_exact_mut(dim));
                    for (number, (&curvature, (values, out))) in curvatures.iter().zip(slots).enumerate() {
                        if outputs == 1 {
                            values.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
                        } else {
                            let own = values.iter_mut().zip(&mean).skip(number % outputs).step_by(outputs);
                            own.for_each(|(value, mean)| *value -= mean);
                        }
                        out.iter_mut().zip(&*values).for_each(|(out, value)| *out = curvature * value);
                    }
                    this.design.passed(start..start + curvatures.len() / outputs);
                }
            }
            product.flush(sum);
            Ok(())
        })?;
        // Free thresholds keep their scale.
        (self.penalised()..dim).for_each(|threshold| matrix[threshold * dim + threshold] = 1.0);
        Ok(matrix)
    }

    /// The mean of the scaled features of a part, weighted by the second derivatives, for each output; zero if
    /// constants count.
    fn mean_of_part(&self, at: &Place<'_>, curvatures: &[f64]) -> Vec<f64> {
        let mut mean = vec![0.0; self.weights()];
        if self.task.only_differences_count() {
            let total = |output: usize| curvatures.iter().skip(output).step_by(self.outputs).sum::<f64>();
            let totals: Vec<f64> = (0..self.outputs).map(total).collect();
            let share = |(number, h): (usize, &f64)| {
                let total = totals[number % self.outputs];
                if total > 0.0 { h / total } else { 0.0 }
            };
            let mut shares: Vec<f64> = curvatures.iter().enumerate().map(share).collect();
            let mut counts = vec![0.0; self.outputs];
            self.accumulate(self.task.rows(at.part), &mut shares, &mut mean, &mut counts);
            self.design.unfold_outputs(&mut mean, &counts);
        }
        mean
    }

    /// A sample of about `most` rows with a positive second derivative, by part. If rows are separate, it takes at most
    /// `most` rows, evenly spread over all of them. Otherwise it takes whole parts, or evenly spread rows of a part
    /// that is too long. Second derivatives are scaled up to make up for the rows left out. Rows have one score.
    pub(in crate::solve) fn curved_sample(&self, most: usize) -> Result<Vec<Vec<Curved>>> {
        let separate = self.task.rows_are_separate();
        let by_lane: Vec<Vec<Vec<Curved>>> = parallel::try_map(self.lanes.len(), |lane| {
            let (mut found, mut weights, mut cross) = (Vec::new(), Vec::new(), Vec::new());
            for (at, memo) in self.remembered(&self.lanes[lane]) {
                if self.cancel.is_raised() {
                    break;
                }
                let rows = self.task.rows(at.part);
                weights.resize(rows.len(), 0.0);
                cross.clear();
                cross.resize(rows.len(), 0.0);
                self.task.diagonal(&at, memo, &mut weights)?;
                // With several free scalars, the mixed derivatives stay zero.
                if separate && self.task.thresholds() == 1 {
                    self.task.by_threshold(&at, memo, &mut cross)?;
                }
                let all = rows.zip(&weights).zip(&cross);
                let curved = all.filter(|((_, weight), _)| **weight > 0.0);
                found.push(curved.map(|((row, &weight), &cross)| Curved { row, weight, cross }).collect());
            }
            Ok(found)
        })?;
        let mut parts: Vec<Vec<Curved>> =
            by_lane.into_iter().flatten().filter(|part: &Vec<Curved>| !part.is_empty()).collect();
        if separate {
            parts = vec![parts.concat()];
        }
        let count: usize = parts.iter().map(Vec::len).sum();
        let mut sample: Vec<Vec<Curved>> =
            parts.into_iter().step_by((count / most).max(1)).map(|part| spread(part, most)).collect();
        let taken: usize = sample.iter().map(Vec::len).sum();
        let counted = count as f64 / taken.max(1) as f64;
        for curved in sample.iter_mut().flatten() {
            (curved.weight, curved.cross) = (counted * curved.weight, counted * curved.cross);
        }
        Ok(sample)
    }

    /// The same sum over a sample: the lower triangle.
    pub(in crate::solve) fn sampled_hessian(&self, most: usize) -> Result<Vec<f64>> {
        let (dim, features) = (self.dim(), self.weights());
        let parts = self.curved_sample(most)?;
        let means: Vec<Vec<f64>> = match self.task.only_differences_count() {
            true => parallel::map(parts.len(), |part| self.mean_of(&parts[part])),
            false => Vec::new(),
        };
        let sample: Vec<(usize, Curved)> = parts
            .into_iter()
            .enumerate()
            .flat_map(|(part, rows)| rows.into_iter().map(move |row| (part, row)))
            .collect();
        let fill = |number: usize, values: &mut [f64]| {
            let (part, Curved { row, weight, cross }) = sample[number];
            self.design.fill_scaled_row(row, &mut values[..features]);
            if let Some(mean) = means.get(part) {
                values.iter_mut().zip(mean).for_each(|(value, mean)| *value -= mean);
            }
            // With this value as its feature, a single threshold has the right products with the weights. Several
            // thresholds have zeros.
            values[features..].fill(cross / weight);
            let root = weight.sqrt();
            values.iter_mut().for_each(|value| *value *= root);
        };
        let passed = |numbers: Range<usize>| {
            self.design.passed(sample[numbers.start].1.row..sample[numbers.end - 1].1.row + 1);
        };
        let mut matrix = sum_of_squares(sample.len(), dim, fill, passed, self.cancel);
        // The diagonal of the penalty. A free threshold gets 1, so that its diagonal is positive.
        let penalised = self.penalised();
        let added = |coordinate: usize| if coordinate < penalised { self.penalty } else { 1.0 };
        (0..dim).for_each(|coordinate| matrix[coordinate * dim + coordinate] += added(coordinate));
        Ok(matrix)
    }

    /// The mean of the scaled features of rows, weighted by their second derivatives.
    fn mean_of(&self, rows: &[Curved]) -> Vec<f64> {
        let (mut mean, mut values) = (vec![0.0; self.weights()], vec![0.0; self.weights()]);
        let total: f64 = rows.iter().map(|curved| curved.weight).sum();
        for curved in rows {
            if self.cancel.is_raised() {
                break;
            }
            values.fill(0.0);
            self.design.fill_scaled_row(curved.row, &mut values);
            let share = curved.weight / total;
            mean.iter_mut().zip(&values).for_each(|(mean, value)| *mean += share * value);
        }
        mean
    }
}
