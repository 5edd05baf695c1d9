//! Solvers: how a task is learned. A solver never sees labels.

mod balanced;
mod cholesky;
mod cutting_plane;
mod dual_coordinate_descent;
mod free_block;
mod gram;
mod interior_point;
mod kernel_newton;
mod lasvm;
mod linear_program;
mod linear_risk;
mod machine;
mod newton;
mod normal_matrix;
mod polish;
mod problem;
mod quadratic_program;
mod rounded_hinge;
mod sampled_start;
mod scaled_rows;
mod sgd;
mod smo;
#[cfg(test)]
mod tests;
mod values;

pub use crate::certificate::{Cut, Witness, relative_gap};
pub(crate) use balanced::balanced_values;
pub use cutting_plane::CuttingPlane;
pub(crate) use cutting_plane::bound_of_cuts;
pub use dual_coordinate_descent::DualCoordinateDescent;
pub(crate) use gram::check_values;
pub(crate) use interior_point::{InteriorPoint, onto_bounds};
pub(crate) use kernel_newton::{KernelNewton, ROUNDING as KERNEL_ROUNDING, value_and_slopes};
pub(crate) use lasvm::Lasvm;
pub use linear_program::LinearProgram;
pub(crate) use linear_program::{proven_by_multipliers, stated_violation};
pub use linear_risk::LinearRisk;
pub(crate) use linear_risk::{LONG_PART, SAMPLED_HESSIAN_DIM, TILE, most_lanes};
pub use machine::Machine;
pub(crate) use machine::{by_row, usual_cache};
pub use newton::Newton;
pub(crate) use newton::lower_bound;
pub(crate) use polish::{Polished, SignedGram, polish};
pub(crate) use problem::{ALTERED, ByBlock, ROUNDING, descent};
pub use problem::{ByDual, ByPart, PartTask, Problem, ProblemShape, Run, Stated, Support, Values, plan, support_table};
pub use quadratic_program::{Contradiction, QuadraticProgram, Verdict};
pub use rounded_hinge::RoundedHinge;
pub(crate) use rounded_hinge::rounded_certificate;
pub(crate) use sampled_start::sampled_start;
pub(crate) use sgd::quick_start;
pub(crate) use sgd::{ByPair, ByRow, Measure, Referee, Sampled, Stepping, StochasticDescent};
pub use sgd::{EarlyStopping, Merging, Sample, Schedule};
pub(crate) use sgd::{KernelDescent, KernelRows, KernelSum};
pub(crate) use smo::{Form, Gram, Reached, SHRINK_FROM, Smo};

use crate::certificate::Scorer;
use crate::error::{Code, Error, Result};
use std::time::Instant;

/// What a batch solver sees: a regularised sum it can evaluate, and move along lines of.
///
/// `f(w) = ½ Σ_{penalised j} w_j² + loss(w)`, where the first [`Risk::penalised`] coordinates are penalised and the
/// rest are free. Everything that looks at the data may fail; a solver then ends, and returns that very error.
pub trait Risk {
    /// Number of coordinates.
    fn dim(&self) -> usize;
    /// How many of them, from the first, are penalised.
    fn penalised(&self) -> usize;
    /// The value at `w`, its gradient written to `gradient`.
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64>;
    /// Prepares a line from the point of the last evaluation along `direction`. Curvature is not known again before the next
    /// evaluation.
    fn line(&mut self, direction: &[f64]) -> Result<()>;
    /// Value and slope at a step along the prepared line.
    fn along(&mut self, step: f64) -> Result<(f64, f64)>;
}

/// A risk with second derivatives, at the point of the last evaluation.
pub trait CurvedRisk: Risk {
    /// Whether the whole Hessian is cheap enough to form.
    fn has_exact_hessian(&self) -> bool;
    /// The Hessian, row by row.
    fn hessian(&mut self) -> Result<Vec<f64>>;
    /// The Hessian times a direction.
    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) -> Result<()>;
    /// The Hessian by the coordinates that are not penalised alone, row by row.
    fn free_hessian(&mut self) -> Result<Vec<f64>> {
        let (dim, penalised) = (self.dim(), self.penalised());
        let mut block = Vec::with_capacity((dim - penalised) * (dim - penalised));
        for coordinate in penalised..dim {
            let (mut unit, mut column) = (vec![0.0; dim], vec![0.0; dim]);
            unit[coordinate] = 1.0;
            self.hessian_times(&unit, &mut column)?;
            block.extend_from_slice(&column[penalised..]);
        }
        Ok(block)
    }
    /// Something like the Hessian that is cheap to form and to solve with.
    fn preconditioner(&mut self) -> Result<Preconditioner>;
}

/// Something like a Hessian, to speed up conjugate gradients.
#[derive(Clone, Debug, PartialEq)]
pub enum Preconditioner {
    /// A symmetric matrix, row by row, of which the lower triangle counts.
    Matrix(Vec<f64>),
    /// A diagonal matrix.
    Diagonal(Vec<f64>),
}

/// Why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The relative gap is within the tolerance.
    Converged,
    /// The allowed passes are used up.
    PassLimit,
    /// No step improves the objective any more, at the limit of double precision.
    Stalled,
    /// The user or the observer asked.
    Cancelled,
    /// The passes asked for are made, and the method has no bound to stop by.
    Finished,
    /// Held-out data were judged worse pass after pass.
    EarlyStopped,
    /// The passes asked for are made, and none ended below the objective of zero weights, which are what is returned.
    NoGain,
}

/// One row of a solver's history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePoint {
    /// Passes so far.
    pub pass: u64,
    /// Primal value of the best point so far.
    pub objective: f64,
    /// Best lower bound so far.
    pub lower_bound: Option<f64>,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Where a solver starts: the solution of a neighbouring problem over the same rows.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// One weight a feature; where rows have several scores, those of a feature for all of them side by side.
    pub weights: Vec<f64>,
    /// The free scalars.
    pub thresholds: Vec<f64>,
    /// The dual variables, where the neighbour had any, already within the bounds of this problem.
    pub dual: Option<Vec<f64>>,
    /// The width over which the neighbour's hinge was rounded off, where it was.
    pub width: Option<f64>,
}

/// What a solver over kernel values finds beside what every solver finds.
#[derive(Clone, Debug)]
pub struct ThroughKernel {
    /// a_i s_i of every block, or the score of every row.
    pub reached: Vec<f64>,
    /// The margin ρ that all of it was divided by, in the ν form.
    pub common_margin: Option<f64>,
    /// Kernel rows asked for, and of these computed.
    pub rows: Option<(u64, u64)>,
    /// Whether the kernel is known to be positive definite, as bounds need it.
    pub definite: bool,
    /// The support vectors, where a model is made of the solution.
    pub scorer: Option<Scorer>,
    /// What a budget of support vectors cost, where steps were stochastic.
    pub merging: Option<Merging>,
}

/// What a solver returns: one type for all of them.
#[derive(Clone, Debug)]
pub struct Solution {
    /// One weight a feature; where rows have several scores, those of a feature for all of them side by side. Through a kernel
    /// one dual variable a block, or where groups are ranked one coefficient a row.
    pub weights: Vec<f64>,
    /// The free scalars.
    pub thresholds: Vec<f64>,
    /// The primal value at these weights.
    pub objective: f64,
    /// A proven lower bound on the optimum.
    pub lower_bound: Option<f64>,
    /// What proves it.
    pub witness: Witness,
    /// Passes made.
    pub passes: u64,
    /// Why it stopped.
    pub stop: Stop,
    /// The first rate η₀ of a stochastic solver that has one: the one asked for, or found on a sample.
    pub first_rate: Option<f64>,
    /// What was found through a kernel, where there is one.
    pub kernel: Option<ThroughKernel>,
    /// How it went.
    pub trace: Vec<TracePoint>,
}

impl Solution {
    /// The same with support vectors.
    pub(crate) fn with_scorer(mut self, scorer: Scorer, definite: bool) -> Solution {
        if let Some(kernel) = &mut self.kernel {
            (kernel.scorer, kernel.definite) = (Some(scorer), definite);
        }
        self
    }

    /// The first of the free scalars; 0 where there is none.
    pub fn threshold(&self) -> f64 {
        self.thresholds.first().copied().unwrap_or(0.0)
    }

    /// What each block or row reached, where kernel values were learned from.
    pub(crate) fn reached(&self) -> &[f64] {
        self.kernel.as_ref().map_or(&[], |kernel| &kernel.reached)
    }

    /// The relative gap.
    pub fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }

    /// Where another solver goes on from, or the same for a neighbouring problem.
    pub(crate) fn into_start(self) -> Start {
        let (dual, width) = match self.witness {
            Witness::Dual(alpha) => (Some(alpha), None),
            Witness::Rounded(width) => (None, Some(width)),
            // What else proves a bound holds for its own problem alone.
            Witness::Weights | Witness::Cuts(_) => (None, None),
        };
        Start { weights: self.weights, thresholds: self.thresholds, dual, width }
    }
}

/// The error for numbers that grew too large.
pub(crate) fn overflow() -> Error {
    Error::new(Code::Overflow, "the objective is not a finite number any more").help(
        "features, weights or the cost are too large: scale the features or the weights down, or try a smaller [[c]]",
    )
}

/// a·b as far as the shorter goes, in eight sums side by side, which the processor adds at once.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let count = a.len().min(b.len());
    let (a, b) = (&a[..count], &b[..count]);
    let mut sums = [0.0; 8];
    let (a_parts, b_parts) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Keeps the best bound and the history, and tells the observer.
pub(crate) struct Progress<'a> {
    observer: &'a mut dyn crate::run::Observer,
    cancel: &'a crate::run::Cancel,
    start: Instant,
    pub(crate) lower_bound: Option<f64>,
    pub(crate) trace: Vec<TracePoint>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(observer: &'a mut dyn crate::run::Observer, cancel: &'a crate::run::Cancel) -> Progress<'a> {
        // Every objective here is a sum of squares and losses, so zero is a bound before any other is known.
        Progress { lower_bound: Some(0.0), ..Progress::unbounded(observer, cancel) }
    }

    /// For methods that prove no bound, not even zero: a relative gap of 1 would look like a failure, and say nothing.
    pub(crate) fn unbounded(
        observer: &'a mut dyn crate::run::Observer,
        cancel: &'a crate::run::Cancel,
    ) -> Progress<'a> {
        Progress { observer, cancel, start: Instant::now(), lower_bound: None, trace: Vec::new() }
    }

    /// Who is told, for a solver within a method that reports on its own.
    pub(crate) fn observer(&mut self) -> &mut dyn crate::run::Observer {
        self.observer
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancel.is_raised()
    }

    /// An error once nobody wants what has been found.
    pub(crate) fn check_wanted(&self) -> Result<()> {
        self.cancel.check_wanted()
    }

    /// Raises the bound where the new one is better. Returns the best.
    pub(crate) fn bound(&mut self, bound: Option<f64>) -> Option<f64> {
        if let Some(bound) = bound.filter(|bound| bound.is_finite()) {
            self.lower_bound = Some(self.lower_bound.map_or(bound, |best| best.max(bound)));
        }
        self.lower_bound
    }

    /// Records a pass; true where the observer wants an end.
    pub(crate) fn report(&mut self, pass: u64, objective: f64, weights: &[f64], thresholds: &[f64]) -> bool {
        self.report_judged(pass, objective, weights, thresholds, None)
    }

    /// The same where the solver has looked at held-out data itself.
    pub(crate) fn report_judged(
        &mut self,
        pass: u64,
        objective: f64,
        weights: &[f64],
        thresholds: &[f64],
        held_out: Option<f64>,
    ) -> bool {
        let lower_bound = self.lower_bound;
        self.trace.push(TracePoint { pass, objective, lower_bound, seconds: self.start.elapsed().as_secs_f64() });
        let event = crate::run::Event::Pass { pass, objective, lower_bound, weights, thresholds, held_out };
        self.observer.report(&event).is_break()
    }
}
