//! [`Weights`]: weights that shrink at every step, and their average, at a cost of O(entries of the rows) a step.
//!
//! ```text
//! w = W / D                 shrinking divides no weight: it raises D
//! a = (A + f·W) / E         a step on W takes f times as much from A, so that a stands still;
//!                           a ← (1 − μ)a + μw raises E and f alone
//! ```
//! When a divisor has grown large, everything is multiplied out, in O(features). Both depend on the steps alone, never
//! on where a stream was cut, so a run that is saved and continued rounds like an uninterrupted one.

use super::pair_steps::PairSteps;

/// Larger divisors are multiplied out. They would cost digits of the average.
const MOST: f64 = 1e5;

/// The average gives step t the weight (POWER + 1)/(t + POWER): late steps count more, and the influence of the first
/// ones falls like t^−POWER (Shamir and Zhang, Stochastic gradient descent for non-smooth optimization, ICML 2013).
const POWER: f64 = 3.0;

/// The average of the weights and of the threshold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Average {
    pub(crate) vector: Vec<f64>,
    pub(crate) fraction: f64,
    pub(crate) divisor: f64,
    pub(crate) threshold: f64,
}

/// See the top of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    pub(crate) vector: Vec<f64>,
    pub(crate) divisor: f64,
    pub(crate) average: Option<Average>,
}

impl Weights {
    pub(super) fn new(vector: Vec<f64>, threshold: f64, averaged: bool) -> Weights {
        let average = Average { vector: vec![0.0; vector.len()], fraction: 1.0, divisor: 1.0, threshold };
        Weights { vector, divisor: 1.0, average: averaged.then_some(average) }
    }

    /// Adds new features.
    pub(super) fn grow(&mut self, features: usize) {
        if features > self.vector.len() {
            self.vector.resize(features, 0.0);
            if let Some(average) = &mut self.average {
                average.vector.resize(features, 0.0);
            }
        }
    }

    /// w · (x_right − x_left), and the same for the average, if there is one.
    #[inline(always)]
    pub(super) fn products(&self, rows: &impl PairSteps, left: usize, right: usize) -> (f64, Option<f64>) {
        let product = rows.product(left, right, &self.vector);
        let average = self
            .average
            .as_ref()
            .map(|average| (rows.product(left, right, &average.vector) + average.fraction * product) / average.divisor);
        (product / self.divisor, average)
    }

    /// Multiplies the weights by a factor above 0 and at most 1.
    #[inline(always)]
    pub(super) fn shrink(&mut self, factor: f64) {
        self.divisor /= factor;
        if self.divisor > MOST {
            self.write_out();
        }
    }

    /// w += step · (x_right − x_left)
    #[inline(always)]
    pub(super) fn add(&mut self, rows: &impl PairSteps, left: usize, right: usize, step: f64) {
        let step = step * self.divisor;
        rows.add(left, right, step, &mut self.vector);
        if let Some(average) = &mut self.average {
            rows.add(left, right, -average.fraction * step, &mut average.vector);
        }
    }

    /// Adds the weights and the threshold after step t, counted from 1, to the average.
    #[inline(always)]
    pub(super) fn include(&mut self, t: u64, threshold: f64) {
        let Some(average) = &mut self.average else { return };
        let share = (POWER + 1.0) / (t as f64 + POWER);
        average.threshold += share * (threshold - average.threshold);
        if share >= 1.0 {
            average.vector.fill(0.0);
            (average.fraction, average.divisor) = (1.0, self.divisor);
            return;
        }
        average.divisor /= 1.0 - share;
        average.fraction += share * average.divisor / self.divisor;
        if average.divisor > MOST {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        if let Some(average) = &mut self.average {
            let (fraction, divisor) = (average.fraction, average.divisor);
            let both = average.vector.iter_mut().zip(&self.vector);
            both.for_each(|(a, w)| *a = (*a + fraction * w) / divisor);
            (average.fraction, average.divisor) = (0.0, 1.0);
        }
        let divisor = std::mem::replace(&mut self.divisor, 1.0);
        self.vector.iter_mut().for_each(|w| *w /= divisor);
    }

    /// The weights to predict with: the average, if there is one.
    pub(super) fn point(&self) -> Vec<f64> {
        match &self.average {
            None => self.vector.iter().map(|w| w / self.divisor).collect(),
            Some(average) => {
                let both = average.vector.iter().zip(&self.vector);
                both.map(|(a, w)| (a + average.fraction * w) / average.divisor).collect()
            }
        }
    }
}
