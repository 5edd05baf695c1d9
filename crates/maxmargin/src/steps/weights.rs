//! [`Weights`]: weights that shrink at every step, and their average, at a cost of O(entries of the rows) a step.
//!
//! ```text
//! w = W / D                 shrinking divides no weight: it raises D
//! a = (A + f·W) / E         a step on W takes f times as much from A, so that a stands still;
//!                           a ← (1 − μ)a + μw raises E and f alone
//! ```
//! When a divisor has grown large, everything is multiplied out, in O(features). Both depend on the steps alone, never
//! on where a stream was cut, so a run that is saved and continued rounds like an uninterrupted one.
//!
//! The weights do not know rows: callers pass the product with a vector and the addition to one.

/// Larger divisors are multiplied out. They would cost digits of the average.
const MOST: f64 = 1e5;

/// The average of the weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Average {
    /// A
    pub(crate) vector: Vec<f64>,
    /// f
    pub(crate) fraction: f64,
    /// E
    pub(crate) divisor: f64,
}

/// See the top of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// W
    pub(crate) vector: Vec<f64>,
    /// D
    pub(crate) divisor: f64,
    /// The average, if there is one.
    pub(crate) average: Option<Average>,
}

impl Weights {
    /// Weights to start from, with or without an average.
    pub(crate) fn new(vector: Vec<f64>, averaged: bool) -> Weights {
        let average = Average { vector: vec![0.0; vector.len()], fraction: 1.0, divisor: 1.0 };
        Weights { vector, divisor: 1.0, average: averaged.then_some(average) }
    }

    /// Adds new weights of zero.
    pub(crate) fn grow(&mut self, length: usize) {
        if length > self.vector.len() {
            self.vector.resize(length, 0.0);
            if let Some(average) = &mut self.average {
                average.vector.resize(length, 0.0);
            }
        }
    }

    /// The product with the weights, and that with the average, if there is one. `dot` is the product with a vector.
    #[inline(always)]
    pub(crate) fn products(&self, dot: impl Fn(&[f64]) -> f64) -> (f64, Option<f64>) {
        let product = dot(&self.vector);
        let average =
            self.average.as_ref().map(|average| (dot(&average.vector) + average.fraction * product) / average.divisor);
        (product / self.divisor, average)
    }

    /// Multiplies the weights by a factor from 0 to 1.
    #[inline(always)]
    pub(crate) fn shrink(&mut self, factor: f64) {
        if factor * MOST < 1.0 {
            self.write_out();
            self.vector.iter_mut().for_each(|w| *w *= factor);
            return;
        }
        self.divisor /= factor;
        if self.divisor > MOST {
            self.write_out();
        }
    }

    /// w += step · x. `add` adds a multiple of x to a vector.
    #[inline(always)]
    pub(crate) fn add(&mut self, step: f64, mut add: impl FnMut(f64, &mut [f64])) {
        let step = step * self.divisor;
        add(step, &mut self.vector);
        if let Some(average) = &mut self.average {
            add(-average.fraction * step, &mut average.vector);
        }
    }

    /// a ← (1 − μ)a + μw, if there is an average.
    #[inline(always)]
    pub(crate) fn include(&mut self, share: f64) {
        let Some(average) = &mut self.average else { return };
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
    pub(crate) fn point(&self) -> Vec<f64> {
        match &self.average {
            None => self.vector.iter().map(|w| w / self.divisor).collect(),
            Some(average) => {
                let both = average.vector.iter().zip(&self.vector);
                both.map(|(a, w)| (a + average.fraction * w) / average.divisor).collect()
            }
        }
    }

    /// Whether divisors and fraction are in the range that steps keep them in. Restored weights are checked with this.
    pub(crate) fn is_sound(&self) -> bool {
        let average = self.average.as_ref();
        self.divisor >= 1.0
            && average.is_none_or(|a| a.divisor >= 1.0 && a.fraction >= 0.0 && a.vector.len() == self.vector.len())
    }
}
