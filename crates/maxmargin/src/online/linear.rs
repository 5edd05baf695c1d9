//! [`LinearPoint`]: the scores of rows, one or several a row, as the steps of a stream change them.
//!
//! score_k(x) = w_k · x + b_k. The weights shrink lazily and are averaged on demand (`steps/weights.rs`), so that a step
//! costs O(entries of the row · outputs). The weights of one feature are next to each other, as in a model. New features
//! and new outputs start at zero.
//!
//! A constant term is free or penalised. Penalised ones shrink like weights.

use super::state::{Learned, OnlineState};
use crate::data::Rows;
use crate::steps::weights::{Average, Weights};
use crate::wish::Intercept;

/// A free constant term takes shorter steps than the weights, since every row pulls at it.
pub(crate) const FREE_RATE: f64 = 0.01;

/// See the top of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinearPoint {
    pub(super) weights: Weights,
    outputs: usize,
    intercept: Intercept,
    /// b, one for each output; empty if there is no constant term.
    constants: Vec<f64>,
    /// Their average, if the weights have one.
    mean: Vec<f64>,
}

impl LinearPoint {
    /// All zeros, with no feature yet.
    pub(crate) fn new(outputs: usize, intercept: Intercept, averaged: bool) -> LinearPoint {
        let constants = vec![0.0; if intercept == Intercept::None { 0 } else { outputs }];
        let mean = if averaged { constants.clone() } else { Vec::new() };
        LinearPoint { weights: Weights::new(Vec::new(), averaged), outputs, intercept, constants, mean }
    }

    /// Weights and constant terms to start from.
    pub(crate) fn starting(
        weights: Vec<f64>,
        constants: Vec<f64>,
        outputs: usize,
        intercept: Intercept,
        averaged: bool,
    ) -> LinearPoint {
        let mean = if averaged { constants.clone() } else { Vec::new() };
        LinearPoint { weights: Weights::new(weights, averaged), outputs, intercept, constants, mean }
    }

    /// Number of features so far.
    pub(crate) fn features(&self) -> usize {
        self.weights.vector.len() / self.outputs.max(1)
    }

    /// Adds new features.
    pub(crate) fn grow(&mut self, features: usize) {
        self.weights.grow(features * self.outputs);
    }

    /// The score with the current weights, and the one to predict with: that of the average, if there is one.
    #[inline(always)]
    pub(crate) fn both_scores<R: Rows>(&self, rows: &R, row: usize) -> (f64, f64) {
        let (product, average) = self.weights.products(|w| rows.dot(row, w));
        let score = product + self.constants.first().copied().unwrap_or(0.0);
        (score, average.map_or(score, |average| average + self.mean.first().copied().unwrap_or(0.0)))
    }

    /// The score with the current weights.
    #[inline(always)]
    pub(crate) fn score<R: Rows>(&self, rows: &R, row: usize) -> f64 {
        rows.dot(row, &self.weights.vector) / self.weights.divisor + self.constants.first().copied().unwrap_or(0.0)
    }

    /// The scores of a row with the current weights, one for each output, and the ones to predict with. The second are
    /// left as they are, and false is returned, if there is no average.
    #[inline(always)]
    pub(crate) fn all_scores<R: Rows>(&self, rows: &R, row: usize, scores: &mut [f64], predicted: &mut [f64]) -> bool {
        rows.dots(row, &self.weights.vector, scores);
        let averaged = self.weights.average.as_ref();
        if let Some(average) = averaged {
            rows.dots(row, &average.vector, predicted);
            let both = predicted.iter_mut().zip(&*scores);
            both.for_each(|(own, score)| *own = (*own + average.fraction * score) / average.divisor);
            predicted.iter_mut().zip(&self.mean).for_each(|(own, b)| *own += b);
        }
        scores.iter_mut().for_each(|score| *score /= self.weights.divisor);
        scores.iter_mut().zip(&self.constants).for_each(|(score, b)| *score += b);
        averaged.is_some()
    }

    /// w_k += step_k · x for every output. `scratch` is as long as `steps`.
    #[inline(always)]
    pub(crate) fn add_all<R: Rows>(&mut self, rows: &R, row: usize, steps: &[f64], scratch: &mut [f64]) {
        self.weights.add(1.0, |factor, w| {
            scratch.iter_mut().zip(steps).for_each(|(scaled, step)| *scaled = factor * step);
            rows.axpys(row, scratch, w);
        });
    }

    /// w_k += step · x and w_l −= step · x, without touching the weights of other outputs.
    #[inline(always)]
    pub(crate) fn add_between<R: Rows>(&mut self, rows: &R, row: usize, up: usize, down: usize, step: f64) {
        let outputs = self.outputs;
        self.weights.add(step, |step, w| {
            rows.each(row, |column, value| {
                // A row of a mapped file may name a column that is not there.
                if let Some(w) = w.get_mut(column * outputs..(column + 1) * outputs) {
                    w[up] += step * value;
                    w[down] -= step * value;
                }
            });
        });
    }

    /// w_k += step_k · x for some outputs, without touching the weights of others.
    #[inline(always)]
    pub(crate) fn add_some<R: Rows>(&mut self, rows: &R, row: usize, steps: &[(u32, f64)]) {
        let outputs = self.outputs;
        self.weights.add(1.0, |factor, w| {
            rows.each(row, |column, value| {
                // A row of a mapped file may name a column that is not there.
                if let Some(w) = w.get_mut(column * outputs..(column + 1) * outputs) {
                    steps.iter().for_each(|&(output, step)| w[output as usize] += factor * step * value);
                }
            });
        });
    }

    /// w += step · x, for one output.
    #[inline(always)]
    pub(crate) fn add<R: Rows>(&mut self, rows: &R, row: usize, step: f64) {
        self.weights.add(step, |step, w| rows.axpy(row, step, w));
    }

    /// Adds to the constant term of an output, if there is one.
    #[inline(always)]
    pub(crate) fn move_constant(&mut self, output: usize, step: f64) {
        if let Some(constant) = self.constants.get_mut(output) {
            *constant += step;
        }
    }

    /// Number of scores per row.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Whether there are constant terms.
    pub(crate) fn has_constants(&self) -> bool {
        self.intercept != Intercept::None
    }

    /// The factor of the steps of a constant term, for steps of this length of the weights. No penalty would bring a free
    /// one back from a long step.
    #[inline(always)]
    pub(crate) fn constant_rate(&self, rate: f64) -> f64 {
        match self.intercept {
            Intercept::None => 0.0,
            Intercept::Free => FREE_RATE * rate.min(1.0),
            Intercept::Penalised => rate,
        }
    }

    /// Multiplies everything penalised by a factor from 0 to 1.
    #[inline(always)]
    pub(crate) fn shrink(&mut self, factor: f64) {
        self.weights.shrink(factor);
        if self.intercept == Intercept::Penalised {
            self.constants.iter_mut().for_each(|b| *b *= factor);
        }
    }

    /// Adds the point to the average with this share, if there is an average.
    #[inline(always)]
    pub(crate) fn include(&mut self, share: f64) {
        self.weights.include(share);
        self.mean.iter_mut().zip(&self.constants).for_each(|(mean, b)| *mean += share * (b - *mean));
    }

    /// The same scores with more outputs, those that are new at zero. `place` gives the output of each old one and its
    /// factor.
    pub(crate) fn spread(&self, outputs: usize, place: &[(usize, usize, f64)]) -> LinearPoint {
        let spread = |old: &[f64]| -> Vec<f64> {
            let rows = old.len() / self.outputs.max(1);
            let mut new = vec![0.0; rows * outputs];
            for (old, new) in old.chunks_exact(self.outputs.max(1)).zip(new.chunks_exact_mut(outputs.max(1))) {
                place.iter().for_each(|&(from, to, factor)| new[to] += factor * old[from]);
            }
            new
        };
        let weights = Weights {
            vector: spread(&self.weights.vector),
            divisor: self.weights.divisor,
            average: self.weights.average.as_ref().map(|average| Average {
                vector: spread(&average.vector),
                fraction: average.fraction,
                divisor: average.divisor,
            }),
        };
        // There is a constant for every output, also if there was no output before.
        let moved = |old: &[f64]| -> Vec<f64> {
            let mut new = vec![0.0; if self.has_constants() { outputs } else { 0 }];
            place.iter().filter(|_| !old.is_empty()).for_each(|&(from, to, factor)| new[to] += factor * old[from]);
            new
        };
        let constants = moved(&self.constants);
        let mean = if self.weights.average.is_some() { moved(&self.mean) } else { Vec::new() };
        LinearPoint { weights, outputs, intercept: self.intercept, constants, mean }
    }

    /// Turns the signs of all weights and constant terms.
    pub(crate) fn negate(&mut self) {
        let average = self.weights.average.iter_mut().flat_map(|average| &mut average.vector);
        let own = self.weights.vector.iter_mut().chain(average);
        own.chain(&mut self.constants).chain(&mut self.mean).for_each(|value| *value = -*value);
    }

    /// The weights and constant terms to predict with.
    pub(crate) fn point(&self) -> (Vec<f64>, Vec<f64>) {
        let constants = if self.weights.average.is_some() { &self.mean } else { &self.constants };
        (self.weights.point(), constants.clone())
    }

    /// Puts everything into a state. `scales` is D, and for an average also f and E.
    pub(crate) fn put(&self, state: &mut OnlineState) {
        let mut scales = vec![self.weights.divisor];
        if let Some(average) = &self.weights.average {
            scales.extend([average.fraction, average.divisor]);
            state.put_reals("average", average.vector.clone());
        }
        let scaled = self.weights.divisor != 1.0 || self.weights.average.is_some();
        state.put_reals("scales", scales);
        if scaled {
            state.put_reals("weights", self.weights.vector.clone());
        }
        if !self.constants.is_empty() {
            state.put_reals("constants", [&self.constants[..], &self.mean[..]].concat());
        }
    }

    /// Takes everything from the state of a model; none if it is invalid or predicts something else than the model.
    pub(crate) fn take(
        state: &OnlineState,
        learned: &Learned<'_>,
        outputs: usize,
        intercept: Intercept,
        averaged: bool,
    ) -> Option<LinearPoint> {
        let (&divisor, rest) = state.reals("scales")?.split_first()?;
        let vector = state.reals("weights").unwrap_or(learned.weights).to_vec();
        let average = match (state.reals("average"), rest, averaged) {
            (None, [], false) => None,
            (Some(vector), &[fraction, divisor], true) => Some(Average { vector: vector.to_vec(), fraction, divisor }),
            _ => return None,
        };
        let weights = Weights { vector, divisor, average };
        let count = if intercept == Intercept::None { 0 } else { outputs };
        let all = state.reals("constants").unwrap_or_default();
        if all.len() != if averaged { 2 * count } else { count } {
            return None;
        }
        let (constants, mean) = all.split_at(count);
        let point = LinearPoint { weights, outputs, intercept, constants: constants.to_vec(), mean: mean.to_vec() };
        let sound = point.weights.is_sound() && point.weights.vector.len().is_multiple_of(outputs.max(1));
        let (weights, constants) = point.point();
        (sound && weights == learned.weights && constants == learned.intercepts).then_some(point)
    }

    /// Whether all numbers that a step changes at once are finite. Weights are checked when a model is made.
    pub(crate) fn is_finite(&self) -> bool {
        self.weights.divisor.is_finite() && self.constants.iter().all(|b| b.is_finite())
    }
}
