//! The largest margin in function values: comparisons as a linear program.
//!
//! ```text
//! max  μ   s.t.  μ ≤ 1 − |w·d_i|  for ties,   μ ≤ y_i w·d_i − 1  for decided pairs
//! ```
//! with w free: neither its length nor a loss is used. The threshold is 1, and μ is the distance that every difference
//! of scores keeps from it; the data are separable if μ > 0. In the notation of [`crate::task::Constraint`], with its
//! free scalar held at 1, this minimises the largest violation:
//!
//! ```text
//! min  s   s.t.  s ≥ m_i − t_i − a_i w·x_i   for all i that count,      s = 1 − μ
//! ```
//! The stated objective is 1 + s = 2 − μ: s may be zero, and a relative gap to zero is meaningless.
//!
//! Its dual is max Σ λ_i (m_i − t_i) over λ ≥ 0, Σ λ_i = 1, Σ λ_i a_i x_i = 0. Solved by the interior-point method of
//! [`super::quadratic_program`] on a working set, to which the most violated constraints are added.
//!
//! **The bound.** The sum g = Σ λ_i a_i x_i is zero only up to rounding. Multipliers are refused if ‖g‖ is more than a
//! 1e-8th of L = Σ λ_i ‖a_i x_i‖. For all weights of length up to R = 2‖w‖ + 10/L, twice the length of the weights
//! found plus ten thresholds per typical difference, Σ λ_i (m_i − t_i) − R·‖g‖ is a lower bound of s; λ is the witness.
//! Numbers in double precision cannot rule out larger weights.
//!
//! Reference: Venuto, Hocking, Sphanurattana & Sugiyama, Support vector comparison machines (2014).

use super::quadratic_program::{Least, Program, first_working_set, undecided};
use super::values::chosen;
use super::{Progress, Solution, Stop, Witness, relative_gap};
use crate::data::Design;
use crate::error::Result;
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::task::{Constraint, Independent, Intercept};
use clarabel::solver::SolverStatus;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct LinearProgram {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of rounds.
    pub max_passes: u64,
}

/// The value at which the free scalar of the task is held.
pub(crate) const THRESHOLD: f64 = 1.0;

/// A constraint is added if its violation exceeds the largest of the working set by more than this.
const MISSED: f64 = 1e-10;

/// The task with its scalar held fixed; in its place every constraint has the largest violation.
struct Held<'a, T>(&'a T);

impl<T: Independent> Independent for Held<'_, T> {
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    fn loss(&self) -> Loss {
        Loss::Hinge
    }

    fn constraint(&self, block: usize) -> Constraint {
        let c = self.0.constraint(block);
        Constraint { threshold: 1.0, margin: c.margin - c.threshold * THRESHOLD, ..c }
    }
}

/// One plus the largest violation of the constraints with positive cost.
pub(crate) fn stated_violation<T: Independent>(task: &T, design: &Design, weights: &[f64]) -> f64 {
    let scores = design.all_scores(weights);
    let violation = |block: usize| {
        let c = task.constraint(block);
        if c.cost > 0.0 { c.violation(&scores, THRESHOLD) } else { f64::NEG_INFINITY }
    };
    // A NaN counts as a large violation.
    let larger = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
    1.0 + chosen(task.blocks(), f64::NEG_INFINITY, violation, larger)
}

/// The sum of the multiplied constraints, relative to their sizes, counts as zero below this.
const NOTHING: f64 = 1e-8;

/// The bound that multipliers prove on the largest violation, see the top of the file. None if they are not valid
/// multipliers.
pub(crate) fn proven_by_multipliers<T: Independent>(
    task: &T,
    design: &Design,
    weights: &[f64],
    multipliers: &[f64],
) -> Option<f64> {
    let total: f64 = multipliers.iter().sum();
    let counts = |block: usize| task.constraint(block).cost > 0.0;
    let feasible =
        multipliers.iter().enumerate().all(|(block, &lambda)| lambda >= 0.0 && (lambda == 0.0 || counts(block)));
    if multipliers.len() != task.blocks() || !feasible || (total - 1.0).abs() > 1e-9 {
        return None;
    }
    let mut coefficients = vec![0.0; design.rows()];
    let (mut promised, mut lengths) = (0.0, 0.0);
    let (mut row, mut other) = (vec![0.0; design.cols()], vec![0.0; design.cols()]);
    let length = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    for (block, &lambda) in multipliers.iter().enumerate().filter(|(_, lambda)| **lambda > 0.0) {
        let c = task.constraint(block);
        coefficients[c.row] += lambda * c.coefficient;
        row.fill(0.0);
        design.fill_scaled_row(c.row, &mut row);
        if let Some(against) = c.against {
            coefficients[against] -= lambda * c.coefficient;
            other.fill(0.0);
            design.fill_scaled_row(against, &mut other);
            row.iter_mut().zip(&other).for_each(|(row, other)| *row -= other);
        }
        lengths += lambda * c.coefficient.abs() * length(&row);
        promised += lambda * (c.margin - c.threshold * THRESHOLD);
    }
    let rest = length(&design.weighted_sum(&coefficients));
    if rest.is_nan() || rest > NOTHING * lengths {
        return None;
    }
    let radius = if lengths > 0.0 { 2.0 * length(weights) + 10.0 / lengths } else { 0.0 };
    Some((1.0 + promised / total - radius * rest).max(0.0))
}

impl LinearProgram {
    /// Solves the task over the rows of `design`. The objective is 2 − μ.
    pub fn solve<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let held = Held(task);
        let counts: Vec<usize> = (0..task.blocks()).filter(|&block| task.constraint(block).cost > 0.0).collect();
        let mut working = first_working_set(&counts);
        let mut best: Option<Solution> = None;
        let mut pass = 0;
        let stop = loop {
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            if pass >= self.max_passes {
                break Stop::PassLimit;
            }
            let program = Program::new(&held, design, Intercept::Free, Least::Violation, &working, cancel)?;
            let Some(found) = program.solve(cancel)? else { break Stop::Cancelled };
            pass += 1;
            let unbounded = matches!(found.status, SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible);
            let mut missed: Vec<(f64, usize)> = Vec::new();
            if unbounded {
                // Without enough constraints the weights are not determined, so any constraint outside may be added.
                let mut inside = working.iter().copied().peekable();
                let outside = counts.iter().copied().filter(|block| inside.next_if_eq(block).is_none());
                missed.extend(outside.map(|block| (0.0, block)));
                let step = missed.len().div_ceil(working.len()).max(1);
                missed = missed.into_iter().step_by(step).collect();
            } else {
                let mut multipliers = vec![0.0; task.blocks()];
                let total: f64 = found.multipliers.iter().map(|z| z.max(0.0)).sum();
                let shares = found.multipliers.iter().map(|z| z.max(0.0) / total);
                working.iter().zip(shares).for_each(|(&block, share)| multipliers[block] = share);
                let objective = stated_violation(task, design, &found.weights);
                let proven = proven_by_multipliers(task, design, &found.weights, &multipliers);
                let bound = proven.unwrap_or(0.0);
                progress.bound(Some(bound));
                if !objective.is_finite() {
                    return Err(undecided());
                }
                let ended = progress.report(pass, objective, &found.weights, &[THRESHOLD]);
                let gap = relative_gap(objective, bound);
                if best.as_ref().and_then(Solution::gap).is_none_or(|before| gap < before) {
                    best = Some(Solution {
                        weights: found.weights.clone(),
                        thresholds: vec![THRESHOLD],
                        objective,
                        lower_bound: Some(bound),
                        witness: if proven.is_some() { Witness::Dual(multipliers) } else { Witness::Weights },
                        passes: pass,
                        stop: Stop::Converged,
                        first_rate: None,
                        read: None,
                        kernel: None,
                        trace: Vec::new(),
                    });
                }
                if gap <= self.tolerance {
                    break Stop::Converged;
                }
                if ended {
                    break Stop::Cancelled;
                }
                let scores = design.all_scores(&found.weights);
                let mut inside = working.iter().copied().peekable();
                for &block in &counts {
                    if inside.next_if_eq(&block).is_some() {
                        continue;
                    }
                    let violation = task.constraint(block).violation(&scores, THRESHOLD) - found.threshold;
                    if violation > MISSED {
                        missed.push((violation, block));
                    }
                }
                missed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            }
            if missed.is_empty() {
                break if best.is_some() { Stop::Stalled } else { return Err(undecided()) };
            }
            missed.truncate(working.len());
            working.extend(missed.into_iter().map(|(_, block)| block));
            working.sort_unstable();
        };
        let Some(solution) = best else {
            cancel.check()?;
            return Err(undecided());
        };
        Ok(Solution { passes: pass, stop, trace: progress.trace, ..solution })
    }
}
