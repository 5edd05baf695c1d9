//! [`Iterate`]: weights that shrink at every step, and their running average, at a cost of O(entries of the row) a
//! step.
//!
//! ```text
//! w = W / D        shrinking divides no weight: it raises D
//! a = (A + f·W) / E     the average: a step on W takes f times as much from A, so that a stands still, and
//!                       a ← (1 − μ)a + μw raises E and f alone
//! ```
//! When a divisor has grown large, everything is multiplied out again, in O(features) (Bottou, Stochastic gradient
//! descent tricks, 2012; Xu, Towards optimal one pass large scale learning with averaged stochastic gradient descent,
//! 2011). ‖w‖² is updated from step to step if projections need it: a step of δ along d adds δ·(w·d before + w·d
//! after).

use super::super::scaled_rows::{ScaledRows, Sum};
use crate::data::{Design, Rows};
use crate::task::{Constraint, Intercept};

/// The factor for the steps of a free intercept: every row pulls at it, so with full steps it would oscillate.
pub(super) const FREE_INTERCEPT: f64 = 0.01;

/// Larger divisors are multiplied out. They would cost digits of the average.
const MOST: f64 = 1e5;

/// The step of the intercept that goes with a step of the weights.
#[inline(always)]
pub(super) fn intercept_rate(intercept: Intercept, rate: f64) -> f64 {
    match intercept {
        Intercept::None => 0.0,
        Intercept::Free => FREE_INTERCEPT * rate.min(1.0),
        Intercept::Penalised => rate,
    }
}

/// A weighted sum of scaled rows.
#[derive(Clone, Debug)]
struct Vector {
    v: Vec<f64>,
    sum: Sum,
}

impl Vector {
    fn zeros(features: usize) -> Vector {
        Vector { v: vec![0.0; features], sum: Sum::default() }
    }

    fn scale(&mut self, factor: f64) {
        self.v.iter_mut().for_each(|v| *v *= factor);
        self.sum.scale(factor);
    }

    fn add(&mut self, factor: f64, other: &Vector) {
        self.v.iter_mut().zip(&other.v).for_each(|(v, other)| *v += factor * other);
        self.sum.add(factor, other.sum);
    }
}

struct Average {
    vector: Vector,
    /// f
    fraction: f64,
    /// E
    divisor: f64,
    intercept: f64,
}

/// See the top of the file.
pub(super) struct Iterate<'a, R> {
    rows: &'a ScaledRows<'a, R>,
    intercept: Intercept,
    vector: Vector,
    /// D
    divisor: f64,
    b: f64,
    /// None while the average is the iterate itself.
    average: Option<Average>,
    /// ‖w‖², if it is needed.
    square: Option<f64>,
}

impl<'a, R: Rows> Iterate<'a, R> {
    pub(super) fn new(rows: &'a ScaledRows<'a, R>, intercept: Intercept, knows_its_length: bool) -> Iterate<'a, R> {
        Iterate {
            vector: Vector::zeros(rows.design().cols()),
            rows,
            intercept,
            divisor: 1.0,
            b: 0.0,
            average: None,
            square: knows_its_length.then_some(0.0),
        }
    }

    /// The rows.
    pub(super) fn design(&self) -> &'a Design {
        self.rows.design()
    }

    /// Prefetches the rows of a constraint that is needed soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, c: &Constraint) {
        self.rows.prefetch(c.row);
        if let Some(row) = c.against {
            self.rows.prefetch(row);
        }
    }

    /// The constraint's coefficient times its score or difference of scores.
    #[inline(always)]
    fn score(&self, c: &Constraint) -> f64 {
        c.coefficient * self.raw(&self.vector, c) / self.divisor
    }

    /// The score or difference of scores of a constraint by a vector.
    #[inline(always)]
    fn raw(&self, vector: &Vector, c: &Constraint) -> f64 {
        let mut score = self.rows.score(c.row, &vector.v, &vector.sum);
        if let Some(row) = c.against {
            score -= self.rows.score(row, &vector.v, &vector.sum);
        }
        score
    }

    /// By how much the constraint is missed at the average, if there is one.
    pub(super) fn violation_of_point(&self, c: &Constraint) -> f64 {
        let Some(average) = &self.average else { return self.violation(c) };
        let score = self.raw(&average.vector, c) + average.fraction * self.raw(&self.vector, c);
        c.margin - c.coefficient * score / average.divisor - c.threshold * average.intercept
    }

    /// By how much the constraint is missed.
    #[inline(always)]
    pub(super) fn violation(&self, c: &Constraint) -> f64 {
        c.margin - self.score(c) - c.threshold * self.b
    }

    /// Multiplies everything penalised by a factor from 0 to 1.
    #[inline(always)]
    pub(super) fn shrink(&mut self, factor: f64) {
        if factor * MOST < self.divisor {
            self.write_out();
            self.vector.scale(factor);
        } else {
            self.divisor /= factor;
        }
        if self.intercept == Intercept::Penalised {
            self.b *= factor;
        }
        if let Some(square) = &mut self.square {
            *square *= factor * factor;
        }
    }

    /// Takes a step of length `rate` against the slope of a constraint's loss, which pulls with force `pull`.
    #[inline(always)]
    pub(super) fn add(&mut self, c: &Constraint, rate: f64, pull: f64) {
        let amount = rate * pull;
        let before = self.square.map(|_| self.score(c));
        let step = amount * c.coefficient * self.divisor;
        let along = |vector: &mut Vector, step: f64| {
            self.rows.add(c.row, step, &mut vector.v, &mut vector.sum);
            if let Some(row) = c.against {
                self.rows.add(row, -step, &mut vector.v, &mut vector.sum);
            }
        };
        along(&mut self.vector, step);
        if let Some(average) = &mut self.average {
            along(&mut average.vector, -average.fraction * step);
        }
        if let (Some(square), Some(before)) = (self.square, before) {
            self.square = Some((square + amount * (before + self.score(c))).max(0.0));
        }
        self.b += intercept_rate(self.intercept, rate) * pull * c.threshold;
    }

    /// Projects the penalised coordinates onto a ball if they are outside.
    #[inline(always)]
    pub(super) fn project(&mut self, radius: f64) {
        let Some(square) = self.square else { return };
        let penalised = if self.intercept == Intercept::Penalised { square + self.b * self.b } else { square };
        if penalised > radius * radius {
            self.shrink(radius / penalised.sqrt());
        }
    }

    /// Separates the average from the iterate. Must be called before the first step whose weight in the average is
    /// below 1.
    #[inline(always)]
    pub(super) fn begin_average(&mut self) {
        if self.average.is_none() {
            self.average = Some(Average {
                vector: Vector::zeros(self.vector.v.len()),
                fraction: 1.0,
                divisor: self.divisor,
                intercept: self.b,
            });
        }
    }

    /// a ← (1 − μ)a + μw; does nothing while the average is the iterate itself.
    #[inline(always)]
    pub(super) fn include(&mut self, weight: f64) {
        let Some(average) = &mut self.average else { return };
        average.divisor /= 1.0 - weight;
        average.fraction += weight * average.divisor / self.divisor;
        average.intercept += weight * (self.b - average.intercept);
        if average.divisor > MOST {
            self.write_out();
        }
    }

    /// Makes all divisors 1.
    fn write_out(&mut self) {
        if let Some(average) = &mut self.average {
            average.vector.add(average.fraction, &self.vector);
            average.vector.scale(1.0 / average.divisor);
            (average.fraction, average.divisor) = (0.0, 1.0);
        }
        self.vector.scale(1.0 / self.divisor);
        self.divisor = 1.0;
    }

    /// Recomputes ‖w‖², so that rounding does not add up over many steps.
    pub(super) fn refresh(&mut self) {
        if self.square.is_some() {
            self.write_out();
            let w = self.rows.weights(&self.vector.v, &self.vector.sum);
            self.square = Some(w.iter().map(|w| w * w).sum());
        }
    }

    /// The weights of the scaled features and the intercept, averaged if there is an average.
    pub(super) fn point(&self) -> (Vec<f64>, f64) {
        let Some(average) = &self.average else {
            let mut vector = self.vector.clone();
            vector.scale(1.0 / self.divisor);
            return (self.rows.weights(&vector.v, &vector.sum), self.b);
        };
        let mut vector = average.vector.clone();
        vector.add(average.fraction, &self.vector);
        vector.scale(1.0 / average.divisor);
        (self.rows.weights(&vector.v, &vector.sum), average.intercept)
    }

    #[cfg(test)]
    pub(super) fn square(&self) -> Option<f64> {
        self.square
    }

    #[cfg(test)]
    pub(super) fn b(&self) -> f64 {
        self.b
    }
}
