//! Solvers: how a task is learned. A solver never sees labels.

mod balanced;
mod cholesky;
mod class_blocks;
mod class_digits;
mod class_kernel;
mod cuts;
mod cutting_plane;
mod dual_coordinate_descent;
mod frank_wolfe;
mod free_block;
mod gram;
mod interior_point;
mod joint_hard_margin;
mod kernel_newton;
mod lasvm;
mod linear_program;
mod linear_risk;
mod machine;
mod newton;
mod normal_matrix;
mod oracle_risk;
mod output_hard_margin;
mod output_space;
mod plane_bound;
mod polish;
mod problem;
mod quadratic_program;
mod rounded_hinge;
mod sampled_start;
mod scaled_rows;
mod sgd;
mod shared_rows;
mod sizes;
mod smo;
mod sum_of_risks;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use crate::certificate::{ALTERED, infeasible};
pub use crate::certificate::{ClassDual, ColumnWitness, Cut, OutputDual, SparseDual, Witness, relative_gap};
pub(crate) use crate::task::{BlockForm, LANES, solve_block};
pub(crate) use balanced::balanced_values;
pub use class_blocks::ClassBlocks;
pub(crate) use class_blocks::{
    AgainstOwn, certified_by_classes, check_dual_of_classes, dual_of_classes, objective_of_classes,
};
pub(crate) use class_kernel::{ClassKernel, class_loss};
pub(crate) use cuts::cut_values;
pub use cutting_plane::CuttingPlane;
pub(crate) use cutting_plane::bound_of_cuts;
pub use dual_coordinate_descent::DualCoordinateDescent;
pub(crate) use gram::check_values;
pub(crate) use interior_point::{InteriorPoint, onto_bounds};
pub use joint_hard_margin::JointHardMargin;
pub(crate) use kernel_newton::{KernelNewton, ROUNDING as KERNEL_ROUNDING, value_and_slopes};
pub(crate) use lasvm::Lasvm;
pub use linear_program::LinearProgram;
pub(crate) use linear_program::{proven_by_multipliers, stated_violation};
pub(crate) use linear_risk::LONG_PART;
pub use linear_risk::LinearRisk;
pub use machine::Machine;
pub(crate) use machine::{by_row, usual_cache};
pub use newton::Newton;
pub(crate) use newton::lower_bound;
pub(crate) use polish::{Polished, SignedGram, polish};
pub(crate) use problem::{ByBlock, ByColumn, ByRank, ROUNDING, descent};
pub use problem::{
    ByDual, ByJointFeature, ByOracle, ByPart, Meaning, PartTask, Problem, ProblemShape, Run, Stated, Support, Values,
    plan, solvers_of, support_table,
};
pub use quadratic_program::{Contradiction, QuadraticProgram, Verdict};
pub use rounded_hinge::RoundedHinge;
pub(crate) use rounded_hinge::rounded_certificate;
pub(crate) use sampled_start::sampled_start;
pub(crate) use sgd::quick_start;
pub(crate) use sgd::{ByPair, ByRow, Measure, Referee, Sampled, Stepping, StochasticDescent};
pub use sgd::{EarlyStopping, Merging, Sample, Schedule};
pub(crate) use sgd::{KernelDescent, KernelRows, KernelSum};
pub(crate) use sizes::{Queries, Sizes, TILE_THREADS};
pub(crate) use smo::{Form, Gram, Reached, SHRINK_FROM, Smo};
pub use sum_of_risks::SumOfRisks;

use crate::certificate::Scorer;
use crate::error::{Code, Error, Result};
use std::time::Instant;

/// What a batch solver sees: a regularised sum that it can evaluate, at a point and along a line.
///
/// `f(w) = ½ Σ_{penalised j} w_j² + loss(w)`, where the first [`Risk::penalised`] coordinates are penalised and the
/// rest are free. Every method that reads the data may fail. The solver then stops and returns that same error.
pub trait Risk {
    /// Number of coordinates.
    fn dim(&self) -> usize;
    /// How many coordinates are penalised: these come first.
    fn penalised(&self) -> usize;
    /// Returns the value at `w` and writes its gradient to `gradient`.
    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64>;
    /// Prepares a line from the point of the last evaluation along `direction`. The curvature is unknown from here
    /// until the next evaluation.
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
    /// The block of the Hessian that belongs to the free (not penalised) coordinates, row by row.
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
    /// An approximation of the Hessian that is cheap to form and to solve with.
    fn preconditioner(&mut self) -> Result<Preconditioner>;
}

/// An approximation of a Hessian, to speed up conjugate gradients.
#[derive(Clone, Debug, PartialEq)]
pub enum Preconditioner {
    /// A symmetric matrix, row by row. Only the lower triangle is used.
    Matrix(Vec<f64>),
    /// A diagonal matrix.
    Diagonal(Vec<f64>),
}

/// Why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The relative gap is within the tolerance.
    Converged,
    /// The solver made the maximum number of passes.
    PassLimit,
    /// No step improves the objective any more, at the limit of double precision.
    Stalled,
    /// The user or the observer asked the solver to stop.
    Cancelled,
    /// The time that the settings allow is over.
    TimeLimit,
    /// The solver made the requested number of passes. The method has no bound to stop by.
    Finished,
    /// The result on held-out data got worse for several passes.
    EarlyStopped,
    /// The solver made the requested number of passes, and none ended below the objective of zero weights. It returns
    /// zero weights.
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

/// How many constraints of how many a stochastic solver used: more than all of them after a whole pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Constraints that had a step, with repetitions.
    pub constraints: u64,
    /// All constraints.
    pub of: u64,
}

/// Where a solver starts: the solution of a neighbouring problem over the same rows.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// One weight per feature. Where rows have several scores, the weights of one feature for all scores are side by
    /// side.
    pub weights: Vec<f64>,
    /// The free scalars.
    pub thresholds: Vec<f64>,
    /// The dual variables, if the neighbouring problem had any, already within the bounds of this problem.
    pub dual: Option<Vec<f64>>,
    /// The same for joint problems over several classes.
    pub classes: Option<ClassDual>,
    /// The same for structured outputs.
    pub outputs: Option<OutputDual>,
    /// The cuts of the neighbouring problem, whose points are good for cuts here.
    pub cuts: Option<Vec<Cut>>,
    /// The width over which the hinge of the neighbouring problem was rounded off, if it was.
    pub width: Option<f64>,
}

/// Additional results of solvers over kernel values.
#[derive(Clone, Debug)]
pub struct ThroughKernel {
    /// a_i s_i of every block, or the score of every row.
    pub reached: Vec<f64>,
    /// The margin ρ by which all of it was divided, in the ν form.
    pub common_margin: Option<f64>,
    /// Kernel rows requested, and how many of these were computed.
    pub rows: Option<(u64, u64)>,
    /// Whether the kernel is known to be positive definite. Bounds need that.
    pub definite: bool,
    /// The support vectors, if a model is made of the solution.
    pub scorer: Option<Scorer>,
    /// What a budget of support vectors cost, for stochastic steps.
    pub merging: Option<Merging>,
}

/// What a solver returns: one type for all of them.
#[derive(Clone, Debug)]
pub struct Solution {
    /// One weight per feature. Where rows have several scores, the weights of one feature for all scores are side by
    /// side. With a kernel: one dual variable per block, or, where groups are ranked or several classes told apart, the
    /// coefficients of each row.
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
    /// Why the solver stopped.
    pub stop: Stop,
    /// The first rate η₀ of a stochastic solver that has one: the rate from the settings, or the one found on a sample.
    pub first_rate: Option<f64>,
    /// What was read for these weights, if a stochastic solver was judged more often than once a pass.
    pub read: Option<Read>,
    /// Results that only solvers with a kernel have.
    pub kernel: Option<ThroughKernel>,
    /// The history, one entry per pass.
    pub trace: Vec<TracePoint>,
}

impl Solution {
    /// The same solution with support vectors.
    pub(crate) fn with_scorer(mut self, scorer: Scorer, definite: bool) -> Solution {
        if let Some(kernel) = &mut self.kernel {
            (kernel.scorer, kernel.definite) = (Some(scorer), definite);
        }
        self
    }

    /// The first free scalar, or 0 if there is none.
    pub fn threshold(&self) -> f64 {
        self.thresholds.first().copied().unwrap_or(0.0)
    }

    /// a_i s_i of each block, or the score of each row, if the solver used kernel values.
    pub(crate) fn reached(&self) -> &[f64] {
        self.kernel.as_ref().map_or(&[], |kernel| &kernel.reached)
    }

    /// The relative gap.
    pub fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }

    /// A warm start for another solver, or for the same solver on a neighbouring problem.
    pub(crate) fn into_start(self) -> Start {
        let start = Start { weights: self.weights, thresholds: self.thresholds, ..Start::default() };
        match self.witness {
            Witness::Dual(alpha) => Start { dual: Some(alpha), ..start },
            Witness::Classes(dual) => Start { classes: Some(dual), ..start },
            Witness::Outputs(dual) => Start { outputs: Some(dual), ..start },
            Witness::Rounded(width) => Start { width: Some(width), ..start },
            // Other proofs of a bound hold only for their own problem.
            Witness::Weights | Witness::Cuts(_) | Witness::Columns(_) => start,
        }
    }
}

/// The error for numbers that grew too large.
pub(crate) fn overflow() -> Error {
    Error::new(Code::Overflow, "the objective is no longer a finite number").help(
        "features, weights or the cost are too large: scale the features or the weights down, or try a smaller ⟦c⟧",
    )
}

/// a·b up to the length of the shorter one, in eight separate sums, which the processor adds in parallel.
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

    /// For methods that prove no bound, not even zero: a relative gap of 1 would look like a failure and tell nothing.
    pub(crate) fn unbounded(
        observer: &'a mut dyn crate::run::Observer,
        cancel: &'a crate::run::Cancel,
    ) -> Progress<'a> {
        Progress { observer, cancel, start: Instant::now(), lower_bound: None, trace: Vec::new() }
    }

    /// The observer, for a solver inside a method that reports by itself.
    pub(crate) fn observer(&mut self) -> &mut dyn crate::run::Observer {
        self.observer
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancel.is_raised()
    }

    /// Returns an error if the result will be discarded.
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

    /// Records a pass. Returns true if the observer asks to stop.
    pub(crate) fn report(&mut self, pass: u64, objective: f64, weights: &[f64], thresholds: &[f64]) -> bool {
        self.report_judged(pass, objective, weights, thresholds, None)
    }

    /// The same for a solver that has already computed the result on held-out data.
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
