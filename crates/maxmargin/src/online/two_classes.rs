//! Rules for rows of two classes, and the loop that feeds them.
//!
//! The loop cuts rows into batches, predicts each row of a batch, counts the predictions, and hands the batch to a
//! [`TwoClassRule`], which changes the point. A rule sees rows through [`Rows`], so that nothing is copied or allocated in
//! a step. Add a rule as a file of its own: implement the trait, and name it in [`Rule`].

use super::descent::{Descent, not_for_streams};
use super::gradient::GradientRule;
use super::linear::LinearPoint;
use super::passive_aggressive::{PairedRule, Ways};
use super::progress::{Errors, ScoreCounts};
use super::state::OnlineState;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Rows, with_rows};
use crate::error::Result;
use crate::settings::{Settings, Solver, TaskSettings};
use crate::wish::Intercept;
use std::ops::Range;

/// How many rows ahead rows are prefetched.
const AHEAD: usize = 8;

/// The rows of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    /// The first row.
    pub(crate) start: usize,
    /// The class of each row: 1 or −1.
    pub(crate) signs: &'a [f64],
    /// The weight of each row; it may be zero.
    pub(crate) weights: &'a [f64],
    /// The score of each row before the step, with the current weights and not with their average.
    pub(crate) scores: &'a [f64],
}

impl Batch<'_> {
    /// Number of rows.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.signs.len()
    }
}

/// How rows of two classes change the weights. See the top of the file.
pub(crate) trait TwoClassRule: Send {
    /// Number of rows in a step.
    fn batch(&self) -> usize {
        1
    }

    /// Whether the point to predict with is an average of all points.
    fn is_averaged(&self) -> bool {
        false
    }

    /// How it steps, if it is gradient descent: its first rate is found by trials.
    fn descent(&self) -> Option<&Descent> {
        None
    }

    /// The same, to change it.
    fn descent_mut(&mut self) -> Option<&mut Descent> {
        None
    }

    /// Makes step number `step`, counted from 0, and returns the weighted sum of the losses before it.
    fn step<R: Rows>(&mut self, rows: &R, batch: &Batch<'_>, step: u64, point: &mut LinearPoint) -> f64;

    /// Both classes change places: what was remembered of positive rows belongs to negative ones, and the reverse.
    fn turn(&mut self) {}

    /// Puts what it remembers besides the point into a state.
    fn put(&self, _state: &mut OnlineState) {}

    /// Takes it out again, before this step; none if it is invalid.
    fn take(&mut self, _state: &OnlineState, _step: u64) -> Option<()> {
        Some(())
    }
}

/// The rules.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// Stochastic gradient steps.
    Gradient(GradientRule),
    /// Passive-aggressive steps.
    Paired(PairedRule),
}

/// Calls a method of whichever rule it is.
macro_rules! with_rule {
    ($rule:expr, $own:ident => $body:expr) => {
        match $rule {
            Rule::Gradient($own) => $body,
            Rule::Paired($own) => $body,
        }
    };
}
pub(super) use with_rule;

impl Rule {
    /// The rule of these settings, which are those of a classifier.
    pub(crate) fn of(settings: &Settings) -> Result<Rule> {
        match settings.solver {
            Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos => GradientRule::of(settings).map(Rule::Gradient),
            solver if solver.is_paired() || solver == Solver::PassiveAggressive => {
                super::descent::refuse(settings)?;
                let TaskSettings::Classify(task) = &settings.task else {
                    return Err(not_for_streams(solver));
                };
                let intercept = task.intercept != Intercept::None;
                Ways::of(settings, intercept).map(|ways| Rule::Paired(PairedRule::new(ways)))
            }
            solver => Err(not_for_streams(solver)),
        }
    }

    /// The passive-aggressive rule, if it is that.
    pub(crate) fn paired(&self) -> Option<&PairedRule> {
        match self {
            Rule::Paired(rule) => Some(rule),
            Rule::Gradient(_) => None,
        }
    }
}

/// What is counted and summed over the stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Steps made.
    pub(crate) steps: u64,
    /// The weighted sum of the losses before each step.
    pub(crate) loss: f64,
    /// The sum of the weights.
    pub(crate) weight: f64,
    pub(crate) errors: Errors,
    pub(crate) scores: ScoreCounts,
}

/// The rows to learn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Examples<'a> {
    /// The first row.
    pub(crate) start: usize,
    /// 1 or −1 for each row.
    pub(crate) signs: &'a [f64],
    /// The weight of each row.
    pub(crate) weights: &'a [f64],
}

/// Predicts rows and learns from them. Returns whether all numbers were finite.
pub(crate) fn learn(
    data: &Dataset,
    examples: Examples<'_>,
    rule: &mut Rule,
    point: &mut LinearPoint,
    tally: &mut Tally,
    scores: &mut Vec<f64>,
) -> bool {
    with_rows!(data.matrix(), rows => with_rule!(rule, rule => learn_with(rows, examples, rule, point, tally, scores)))
}

for_this_machine! {
    /// See [`learn_plainly`].
    fn learn_with[R: Rows, U: TwoClassRule](
        rows: &R, examples: Examples<'_>, rule: &mut U, point: &mut LinearPoint, tally: &mut Tally, scores: &mut Vec<f64>,
    ) -> bool = learn_plainly
}

#[inline(always)]
fn learn_plainly<R: Rows, U: TwoClassRule>(
    rows: &R,
    examples: Examples<'_>,
    rule: &mut U,
    point: &mut LinearPoint,
    tally: &mut Tally,
    scores: &mut Vec<f64>,
) -> bool {
    let Examples { start, signs, weights } = examples;
    let (size, count) = (rule.batch().max(1), signs.len());
    let mut finite = true;
    let mut next = 0;
    while next < count {
        let part: Range<usize> = next..(next + size).min(count);
        scores.clear();
        for row in part.clone() {
            if row + AHEAD < count {
                rows.prefetch(start + row + AHEAD);
            }
            let (score, predicted) = point.both_scores(rows, start + row);
            finite &= score.is_finite();
            let positive = signs[row] > 0.0;
            tally.errors.count((predicted >= 0.0) != positive);
            tally.scores.count(positive, predicted);
            tally.weight += weights[row];
            scores.push(score);
        }
        let batch =
            Batch { start: start + part.start, signs: &signs[part.clone()], weights: &weights[part.clone()], scores };
        tally.loss += rule.step(rows, &batch, tally.steps, point);
        tally.steps += 1;
        next = part.end;
    }
    finite && point.is_finite() && tally.loss.is_finite()
}
