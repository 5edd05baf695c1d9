//! Rates found on a sample of the constraints.
//!
//! **The first rate η₀** is the candidate from …, ¼, ½, 1, 2, 4, … that gives the smallest mean loss, penalty included.
//! Every candidate starts from zero and passes over the same constraints in the same order, with the loss, the batches and
//! the averages of the run itself.
//!
//! 1. *Short trials*, of up to 10,000 constraints, find a neighbourhood, downhill from 1 in both directions and past
//!    trials that are no better.
//! 2. *Long trials*, of a quarter of the run but at most 200,000 constraints, go on from there. The best rate falls with
//!    the length of a run: short trials alone prefer rates whose noise a long run does not lose.
//!
//! The last iterate of plain steps is noisy, so that one judgement of it is a matter of luck. It is judged at four points of
//! the last quarter of a trial; averages are judged once, at the end. docs/decisions/first-rates.md has measurements.
//!
//! **The longest stable rate** is for losses whose slope is unbounded, in schedules that start at 1/λ.

use super::draw::{Draw, Listed, Sampled};
use super::iterate::Iterate;
use super::{Loop, Stepping, StochasticDescent};
use crate::data::Rows;
use crate::loss::Loss;
use crate::solve::scaled_rows::ScaledRows;
use crate::steps::calibrate::{least_from, least_patiently};
use crate::steps::schedule::Averaging;
use crate::task::{Constraint, Intercept};

/// Constraints of a short trial. Fewer would be noise.
const SHORT: usize = 10_000;

/// The most constraints of a long trial.
const LONG: usize = 200_000;

/// A long trial is this part of the run.
const PART: u64 = 4;

/// The most constraints that a point is judged by.
const JUDGED: usize = 32_768;

/// Points of the last quarter of a trial at which plain steps are judged.
const POINTS: usize = 4;

/// The stream of the sample; the run itself draws from stream 0.
const STREAM: u64 = 1;

/// See the top of the file.
pub(super) fn calibrated_rate<R: Rows>(
    settings: &StochasticDescent,
    problem: &dyn Sampled,
    rows: &ScaledRows<'_, R>,
    cancelled: &dyn Fn() -> bool,
) -> f64 {
    let mut draws = problem.draws(rows.design(), settings.seed, STREAM);
    let run = (draws.count() as u64).saturating_mul(settings.passes);
    let long = usize::try_from((run / PART).max(SHORT as u64).min(run)).unwrap_or(LONG).min(LONG);
    let sample = Listed::first(&mut *draws, long);
    let trials = Trials { settings, problem, rows, sample: sample.list(), cancelled };
    let near = least_patiently(&mut |rate| trials.cost(rate, SHORT.min(long)));
    if long <= SHORT { near } else { least_from(near, &mut |rate| trials.cost(rate, long)) }
}

/// Trials over a sample.
struct Trials<'a, R> {
    settings: &'a StochasticDescent,
    problem: &'a dyn Sampled,
    rows: &'a ScaledRows<'a, R>,
    sample: &'a [Constraint],
    cancelled: &'a dyn Fn() -> bool,
}

impl<R: Rows> Trials<'_, R> {
    /// The mean regularised loss after a trial over so many constraints. The sample comes again as often as needed.
    fn cost(&self, rate: f64, length: usize) -> f64 {
        let averages = self.settings.method == Stepping::AveragedSgd;
        let averaging = match averages {
            // The first pass of the run is not averaged, and of a single pass the first half; of a trial at least a quarter.
            true => Averaging::From((length / self.settings.batch.max(1)) as u64 / self.settings.passes.clamp(2, 4)),
            false => Averaging::Last,
        };
        let mut iterate = Iterate::new(self.rows, self.settings.intercept, self.settings.project);
        let mut looped = Loop::new(self.settings, self.problem, rate, averaging);
        let points = if averages { 1 } else { POINTS };
        // The judged points are the ends of equal parts of the last quarter.
        let ends = (1..=points).map(|point| length - (points - point) * length / (4 * points));
        let (mut made, mut cost) = (0, 0.0);
        for end in ends {
            while made < end {
                let from = made % self.sample.len().max(1);
                let part = &self.sample[from..self.sample.len().min(from + end - made)];
                if part.is_empty() || !looped.pass(&mut iterate, &mut Part { list: part, next: 0 }, self.cancelled) {
                    return 0.0;
                }
                made += part.len();
            }
            cost += self.judged(&iterate, length) / points as f64;
        }
        if cost.is_finite() { cost } else { f64::INFINITY }
    }

    /// The mean regularised loss at a point.
    fn judged(&self, iterate: &Iterate<'_, R>, length: usize) -> f64 {
        let (weights, b) = iterate.point();
        let list = &self.sample[..self.sample.len().min(length).min(JUDGED)];
        let loss = self.problem.loss();
        let total: f64 = list.iter().map(|c| c.cost * loss.value(iterate.violation_of_point(c))).sum();
        let b = if self.settings.intercept == Intercept::Penalised { b } else { 0.0 };
        let square = weights.iter().map(|w| w * w).sum::<f64>() + b * b;
        0.5 * square / self.problem.total_cost() + total / list.len().max(1) as f64
    }
}

/// A part of a list of constraints.
struct Part<'a> {
    list: &'a [Constraint],
    next: usize,
}

impl Draw for Part<'_> {
    fn count(&self) -> usize {
        self.list.len()
    }

    fn start(&mut self) {
        self.next = 0;
    }

    fn next(&mut self) -> Constraint {
        let c = self.list[self.next];
        self.next += 1;
        c
    }
}

/// 1 / (2 · the largest cost · ‖direction‖²): on squared hinge loss, whose curvature is 2, a longer step can move the
/// weights farther from a row's margin than they were. No limit for losses with bounded slope.
pub(super) fn longest_stable_rate<R: Rows>(
    settings: &StochasticDescent,
    problem: &dyn Sampled,
    rows: &ScaledRows<'_, R>,
) -> f64 {
    if problem.loss() != Loss::SquaredHinge {
        return f64::INFINITY;
    }
    let sample = Listed::first(&mut *problem.draws(rows.design(), settings.seed, STREAM), SHORT);
    let mut scratch = Vec::new();
    let largest = sample.list().iter().fold(0.0f64, |largest, c| {
        let square = match c.against {
            None => rows.square(c.row),
            Some(against) => rows.square_of_difference(&mut scratch, c.row, against),
        };
        let constant = if settings.intercept == Intercept::None { 0.0 } else { c.threshold * c.threshold };
        largest.max(c.cost * (c.coefficient * c.coefficient * square + constant))
    });
    0.5 / largest
}
