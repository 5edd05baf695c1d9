//! [`Problem`]: a task over given data, as training, tuning, verifying and memory planning see it.
//!
//! There is one implementation for each *capability*, generic over the task. So hot loops are compiled for the task
//! itself, and all callers see one type of object:
//!
//! | adaptor | what the task gives | solvers |
//! |---|---|---|
//! | [`ByBlock`] | one constraint a block, and the same as a smooth or rounded sum | all of them, linear and through kernels |
//! | [`ByPart`] | a sum over parts, with curvature | Newton's method, cutting planes; kernels by Newton's method; drawn pairs |
//! | [`ByRank`] | ratings, as both | Newton's method, cutting planes; kernels by SMO |
//! | [`ByDual`] | one constraint a block, and no more | dual solvers, linear and through kernels |
//! | [`ByOracle`] | a search for the most violated of very many outputs | Frank–Wolfe, cutting planes |
//! | [`ByJointFeature`] | the same where weights belong to joint features of input and output | those of [`ByOracle`] |
//! | [`ByColumn`] | the sides and weights of rows in each column of an output code | those of [`ByBlock`], for weights |
//!
//! One function, [`plan`], decides which of these solves what.

mod block_dual;
mod by_block;
mod by_column;
mod by_dual;
mod by_joint_feature;
mod by_oracle;
mod by_part;
mod by_rank;
mod class_expansion;
mod column_expansion;
mod expanded;
mod last_digits;
mod one_by_one;
mod output_expansion;
mod plan;
mod stochastic;
mod through_kernel;

pub(crate) use block_dual::BlockDual;
pub(crate) use by_block::{BlockTask, ByBlock, ROUNDING};
pub(crate) use by_column::ByColumn;
pub use by_dual::ByDual;
pub use by_joint_feature::ByJointFeature;
pub use by_oracle::{ByOracle, Meaning};
pub use by_part::{ByPart, PartTask};
pub(crate) use by_rank::ByRank;
pub(crate) use expanded::Expanded;
pub use plan::{Support, plan, solvers_of, support_table};
pub(crate) use stochastic::{descent, stochastic};

use super::{CurvedRisk, Machine, Referee, RoundedHinge, Sampled, Solution, Start, Stop};
use crate::certificate::{Scorer, Witness, infeasible, relative_gap};
use crate::data::{Dataset, Design};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Event, Observer};
use crate::settings::Settings;
use crate::task::{Abilities, Intercept, LearningTask, Roundable};
use crate::wish::Solver;
use std::ops::ControlFlow;

/// A learning problem over given data: all that training, tuning, verifying and memory planning see of a task.
pub trait Problem: Send + Sync {
    /// What the task states about itself.
    fn task(&self) -> &dyn LearningTask;

    /// The task, to set its cost.
    fn task_mut(&mut self) -> &mut dyn LearningTask;

    /// What the task offers to solvers.
    fn abilities(&self) -> Abilities;

    /// How its free scalars are treated.
    fn rule(&self) -> Intercept;

    /// How many numbers describe a point of it.
    fn shape(&self) -> ProblemShape;

    /// Solves the problem by the solver of the run. If another solver found the solution, `run.solver` is changed to
    /// it.
    fn solve(&self, run: &mut Run<'_>) -> Result<Solution>;

    /// Primal value and lower bound of a point, from scratch. An error if the witness is not feasible.
    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values>;

    /// The loss of these rows as a function of the weights, without the penalty: what rows of a larger data set add to its
    /// objective.
    fn risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>>;

    /// Kernel values of its rows. Problems over the same rows share them, even with different costs.
    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine>;

    /// The scores of all rows, as a kernel model made of the solution would give them.
    fn kernel_scores(&self, machine: &Machine, solution: &Solution, cancel: &Cancel) -> Vec<f64>;

    /// The task as a stream of constraints, for stochastic steps.
    fn sampled(&self, settings: &Settings) -> Result<Box<dyn Sampled + '_>>;
}

/// How many numbers describe a point of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemShape {
    /// Number of scores per row.
    pub outputs: usize,
    /// Free scalars beside the weights.
    pub free: usize,
    /// Number of dual variables, if each constraint has one; 0 if they are not listed.
    pub blocks: usize,
    /// Length of a warm start with a kernel.
    pub kernel_numbers: usize,
}

/// One run of a solver.
pub struct Run<'a> {
    /// The rows: their names, and which of them are compared.
    pub data: &'a Dataset,
    /// Their features as the solver sees them.
    pub design: &'a Design,
    /// The settings.
    pub settings: &'a Settings,
    /// The planned solver; afterwards the solver that found the solution.
    pub solver: Solver,
    /// Where to start.
    pub start: Option<&'a Start>,
    /// Whether a model is made of the solution: then support vectors are collected.
    pub for_model: bool,
    /// Whether the solution may be polished to the last digits.
    pub polishes: bool,
    /// Kernel rows to share with other runs.
    pub(crate) machine: Option<&'a mut Machine>,
    /// The judge on held-out data that may stop stochastic steps early.
    pub(crate) referee: Option<&'a Referee<'a>>,
    /// Receives the progress.
    pub observer: &'a mut dyn Observer,
    /// Cancels the run.
    pub cancel: &'a Cancel,
}

/// A point with the claims about it.
pub struct Stated<'a> {
    /// How rows are scored.
    pub scorer: &'a Scorer,
    /// The free scalars; empty if there are none.
    pub free: &'a [f64],
    /// What proves the lower bound, in addition to the point.
    pub witness: Option<&'a Witness>,
    /// Whether a bound is claimed at all.
    pub claims: bool,
    /// Whether the weights alone are claimed to prove it.
    pub by_weights: bool,
}

impl Stated<'_> {
    /// The first of the free scalars.
    fn threshold(&self) -> f64 {
        self.free.first().copied().unwrap_or(0.0)
    }
}

/// The values of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// The primal value.
    pub objective: f64,
    /// The lower bound that the witness proves.
    pub lower_bound: Option<f64>,
}

/// The weights of a linear scorer, mapped or not.
pub(super) fn weights_of(scorer: &Scorer) -> Result<&[f64]> {
    match scorer {
        Scorer::Linear { weights, .. } => Ok(weights),
        Scorer::Mapped(mapped) => Ok(&mapped.weights),
        Scorer::Expansion(_) => Err(Error::new(Code::Internal, "a sum of kernels has no weights")),
    }
}

/// A solution whose objective or bound was recomputed has converged only if the new values say so.
pub(super) fn restated(solution: Solution, tolerance: f64) -> Solution {
    let within = solution.gap().is_some_and(|gap| gap <= tolerance);
    let stop = if solution.stop == Stop::Converged && !within { Stop::Stalled } else { solution.stop };
    Solution { stop, ..solution }
}

/// The constant term of scores: fixed in advance, or the free scalar if it is added to scores.
pub(crate) fn constant_term(task: &dyn LearningTask, rule: Intercept, threshold: f64) -> Option<f64> {
    task.offset().or_else(|| (task.adds_free() && rule != Intercept::None).then_some(threshold))
}

/// Forwards the reports of a solver that continues from the result of another. It leaves out pass 0, which was already
/// reported.
pub(super) struct Later<'a> {
    pub(super) inner: &'a mut dyn Observer,
    pub(super) passes: u64,
}

impl Observer for Later<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let mut event = event.clone();
        match &mut event {
            Event::Pass { pass: 0, .. } => return ControlFlow::Continue(()),
            Event::Pass { pass, .. } => *pass += self.passes,
            _ => {}
        }
        self.inner.report(&event)
    }
}

/// A task over rows, with the settings.
pub(super) struct Over<'a, T> {
    pub(super) task: &'a T,
    /// How its free scalar is treated.
    pub(super) rule: Intercept,
    pub(super) design: &'a Design,
    pub(super) settings: &'a Settings,
}

/// Primal value and lower bound of a rounded hinge, for weights, thresholds, a width, and scores if they are known.
pub(super) type RoundedValues<'a> = &'a dyn Fn(&[f64], &[f64], f64, Option<&[f64]>, &Cancel) -> Result<(f64, f64)>;

impl<T: Roundable> Over<'_, T> {
    /// Solves a hinge task with a rounded kink. Without `values` the sums over pairs prove the bound.
    pub(super) fn round_off(
        &self,
        values: Option<RoundedValues<'_>>,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let &Settings { tolerance, max_passes, .. } = self.settings;
        let penalise_thresholds = self.rule == Intercept::Penalised;
        let hinge = RoundedHinge { tolerance, max_passes, penalise_thresholds };
        let Some(values) = values else {
            return hinge.solve(self.task, self.design, start, observer, cancel);
        };
        let prove = |weights: &[f64], thresholds: &[f64], width: f64, scores: Option<&[f64]>| {
            values(weights, thresholds, width, scores, cancel)
        };
        let mut solution = hinge.solve_proven(self.task, self.design, Some(&prove), start, observer, cancel)?;
        cancel.check_wanted()?;
        if let (Witness::Rounded(width), false) = (&solution.witness, solution.stop == Stop::Converged) {
            // Stopped without a proof: compute the true values, which may be good enough.
            let (primal, bound) =
                values(&solution.weights, &solution.thresholds, *width, None, &cancel.until_abandoned())?;
            (solution.objective, solution.lower_bound) = (primal, Some(bound));
            if solution.stop != Stop::Cancelled && relative_gap(primal, bound) <= tolerance {
                solution.stop = Stop::Converged;
            }
        }
        Ok(solution)
    }
}

/// The error for a combination of task and solver that [`plan`] never returns.
pub(super) fn not_planned(settings: &Settings, solver: Solver) -> Error {
    let (task, loss): (_, Loss) = (settings.task.name(), settings.loss);
    Error::new(Code::Internal, format!("`{task}` with {} loss reached `{}`", loss.name(), solver.name()))
}
