//! Rates found on a sample of the constraints.
//!
//! **The first rate η₀** is the candidate from …, ¼, ½, 1, 2, 4, … that gives the smallest mean loss on the sample,
//! penalty included.
//!
//! Every candidate starts from zero and takes one pass over the same constraints in the same order, with the loss and
//! the batches of the run itself. It is judged by its last iterate. The search is that of [`crate::steps::calibrate`].
//!
//! **The longest stable rate** is for losses whose slope is unbounded, in schedules that start at 1/λ.

use super::draw::{Listed, Sampled};
use super::iterate::Iterate;
use super::{Loop, StochasticDescent};
use crate::data::Rows;
use crate::loss::Loss;
use crate::solve::scaled_rows::ScaledRows;
use crate::steps::calibrate::least;
use crate::steps::schedule::Averaging;
use crate::task::Intercept;

/// Constraints of the sample. Fewer would be noise; more would cost more than they tell.
const SAMPLE: usize = 10_000;

/// The stream of the sample; the run itself draws from stream 0.
const STREAM: u64 = 1;

/// See the top of the file.
pub(super) fn calibrated_rate<R: Rows>(
    settings: &StochasticDescent,
    problem: &dyn Sampled,
    rows: &ScaledRows<'_, R>,
    cancelled: &dyn Fn() -> bool,
) -> f64 {
    let mut sample = Listed::first(&mut *problem.draws(rows.design(), settings.seed, STREAM), SAMPLE);
    let mut cost = |rate: f64| {
        let mut iterate = Iterate::new(rows, settings.intercept, settings.project);
        let mut looped = Loop::new(settings, problem, rate, Averaging::Last);
        if !looped.pass(&mut iterate, &mut sample, cancelled) {
            return 0.0;
        }
        let loss = problem.loss();
        let total: f64 = sample.list().iter().map(|c| c.cost * loss.value(iterate.violation(c))).sum();
        let (weights, b) = iterate.point();
        let b = if settings.intercept == Intercept::Penalised { b } else { 0.0 };
        let square = weights.iter().map(|w| w * w).sum::<f64>() + b * b;
        let cost = 0.5 * square / problem.total_cost() + total / sample.list().len().max(1) as f64;
        if cost.is_finite() { cost } else { f64::INFINITY }
    };
    least(&mut cost)
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
    let sample = Listed::first(&mut *problem.draws(rows.design(), settings.seed, STREAM), SAMPLE);
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
