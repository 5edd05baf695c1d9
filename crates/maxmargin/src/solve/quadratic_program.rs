//! The hard margin: every margin is reached, by the smallest weights.
//!
//! ```text
//! min   ½‖w‖² [+ ½b²]
//! s.t.  a_i w·x_i + t_i b ≥ m_i   for all i that count
//! ```
//! Notation of [`crate::task::Constraint`]. Costs and losses are not used: a constraint either counts or, at cost 0,
//! does not. Its dual has no box: max Σ α_i m_i − ½‖Σ α_i a_i x_i‖² [− ½(Σ α_i t_i)²], α ≥ 0, Σ α_i t_i = 0 if b is
//! free.
//!
//! Either there are such weights, or some combination z ≥ 0 of constraints contradicts itself (Farkas): Σ z_i a_i x_i =
//! 0, Σ z_i t_i = 0 and Σ z_i m_i > 0. An interior-point method (Goulart & Chen, Clarabel: an interior-point solver for
//! conic programs with quadratic objectives, 2024) finds one or the other on a working set of constraints. If it finds
//! weights, the constraints that they violate most join the working set, which at most doubles. If it finds a
//! contradiction among some constraints, that is one among all.
//!
//! The result does not depend on the tolerance of the interior point: the weights are scaled up until the last margin
//! is reached, so they are feasible, and the bound is the recomputed dual value of the multipliers. Stops at a relative
//! gap, or when no constraint outside the working set is violated.
//!
//! Cost of a round: a factorisation for each of some 20 interior-point steps, cubic in the smaller of features and
//! working set. Programs that would take more than [`MOST_WORK`] operations a step are refused. The factorisation
//! cannot be interrupted: it runs on a separate thread, which is abandoned when the user cancels.

use super::values::{Hard, balance, dual_value, hard_primal, reached};
use super::{Progress, Solution, Stop, Witness, relative_gap};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Observer};
use crate::task::{Independent, Intercept};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct QuadraticProgram {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of rounds.
    pub max_passes: u64,
    /// How the threshold is treated.
    pub intercept: Intercept,
}

/// The result of a hard margin.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Weights that reach every margin.
    Separable(Box<Solution>),
    /// There are no such weights.
    NotSeparable(Contradiction),
}

/// Constraints that cannot hold together.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The blocks that take part and the weight of each, heaviest first.
    pub blocks: Vec<(usize, f64)>,
    /// The length of their weighted sum, relative to the mean length of a row: zero up to rounding.
    pub residual: f64,
}

/// Constraints of the first round.
pub(super) const FIRST: usize = 2000;

/// The maximum number of operations of one interior-point step: some seconds on one core.
const MOST_WORK: f64 = 1e10;

/// The maximum number of entries in the working set: with the factorisation less than two gigabytes.
const MOST_ENTRIES: usize = 20_000_000;

/// The maximum number of operations for a shorter proof of a contradiction.
const MOST_THINNING: f64 = 1e9;

/// Multipliers below this share of the largest are rounding.
pub(super) const TAKES_PART: f64 = 1e-6;

/// A combination counts as zero if its sum is below this share of its rows.
pub(super) const NOTHING: f64 = 1e-7;

/// How often the cancel flag is checked while the program is solved.
const POLL: Duration = Duration::from_millis(20);

/// The result of the interior point on a working set.
pub(super) struct Found {
    pub(super) status: SolverStatus,
    pub(super) weights: Vec<f64>,
    pub(super) threshold: f64,
    /// All variables behind the weights.
    pub(super) free: Vec<f64>,
    pub(super) multipliers: Vec<f64>,
}

/// What a program minimises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Least {
    /// ½‖w‖²
    Norm,
    /// The free scalar: the largest violation.
    Violation,
}

/// The constraints of a working set, row by row.
pub(super) struct Program {
    /// Number of weights: the first variables.
    features: usize,
    /// Number of variables.
    variables: usize,
    /// How many of them, from the first on, the norm counts.
    penalised: usize,
    least: Least,
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    right: Vec<f64>,
    pub(super) mean_length: f64,
}

impl QuadraticProgram {
    /// Solves the task over the rows of `design`.
    pub fn solve<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Verdict> {
        let mut progress = Progress::new(observer, cancel);
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
            let program = Program::new(task, design, self.intercept, Least::Norm, &working, cancel)?;
            if let Some(empty) = program.empty_row() {
                return Ok(Verdict::NotSeparable(Contradiction { blocks: vec![(working[empty], 1.0)], residual: 0.0 }));
            }
            let mean_length = program.mean_length;
            let Some(found) = program.solve(cancel)? else { break Stop::Cancelled };
            pass += 1;
            let mut alpha = vec![0.0; task.blocks()];
            working.iter().zip(&found.multipliers).for_each(|(&block, &z)| alpha[block] = z.max(0.0));
            if self.intercept == Intercept::Free {
                balance(task, &mut alpha);
            }
            if matches!(found.status, SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible) {
                let found = contradiction(task, design, &alpha, mean_length, self.intercept).ok_or_else(undecided)?;
                // A few constraints are easier to read than many, but they must prove as much.
                self.thin_out(task, design, &found, &mut alpha, cancel)?;
                let thinner = contradiction(task, design, &alpha, mean_length, self.intercept);
                return Ok(Verdict::NotSeparable(thinner.unwrap_or(found)));
            }
            let bound = dual_value(&Hard(task), design, |block| alpha[block], self.intercept);
            progress.bound(Some(bound));
            let scores = design.all_scores(&found.weights);
            let least = reached(task, &scores, found.threshold);
            if let Some((weights, threshold, objective)) =
                stretched(task, design, &found.weights, found.threshold, least, self.intercept)
            {
                let thresholds = match self.intercept {
                    Intercept::None => Vec::new(),
                    Intercept::Free | Intercept::Penalised => vec![threshold],
                };
                let better = best.as_ref().is_none_or(|best| objective < best.objective);
                let ended = progress.report(pass, objective, &weights, &thresholds);
                // A witness proves only its own bound.
                if better || best.as_ref().is_some_and(|best| best.lower_bound < Some(bound)) {
                    let kept = best.take().filter(|_| !better);
                    let (weights, thresholds, objective) = match kept {
                        Some(kept) => (kept.weights, kept.thresholds, kept.objective),
                        None => (weights, thresholds, objective),
                    };
                    best = Some(Solution {
                        weights,
                        thresholds,
                        objective,
                        lower_bound: Some(bound),
                        witness: Witness::Dual(alpha),
                        passes: pass,
                        stop: Stop::Converged,
                        first_rate: None,
                        read: None,
                        kernel: None,
                        trace: Vec::new(),
                    });
                }
                if best.as_ref().and_then(Solution::gap).is_some_and(|gap| gap <= self.tolerance) {
                    break Stop::Converged;
                }
                if ended {
                    break Stop::Cancelled;
                }
            }
            let mut missed: Vec<(f64, usize)> = Vec::new();
            let mut inside = working.iter().copied().peekable();
            for &block in &counts {
                if inside.next_if_eq(&block).is_some() {
                    continue;
                }
                let c = task.constraint(block);
                let violation = c.violation(&scores, found.threshold) / c.margin;
                if violation > 1e-10 {
                    missed.push((violation, block));
                }
            }
            if missed.is_empty() {
                // No constraint can be added, and the last round gained nothing.
                break if best.is_some() { Stop::Stalled } else { return Err(undecided()) };
            }
            missed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            missed.truncate(working.len());
            working.extend(missed.into_iter().map(|(_, block)| block));
            working.sort_unstable();
        };
        let Some(solution) = best else {
            cancel.check()?;
            return Err(Error::new(
                Code::Undecided,
                format!("no weights that reach every margin were found in {pass} rounds"),
            )
            .help("raise ⟦max-passes⟧, or use a soft margin: leave ⟦margin⟧ and ⟦solver⟧ out"));
        };
        let gap = relative_gap(solution.objective, solution.lower_bound.unwrap_or(0.0));
        let stop = if gap <= self.tolerance { Stop::Converged } else { stop };
        Ok(Verdict::Separable(Box::new(Solution { passes: pass, stop, trace: progress.trace, ..solution })))
    }
}

impl QuadraticProgram {
    /// Removes constraints from a contradiction until at most one for each dimension, plus one, are left
    /// (Carathéodory), if that costs little.
    fn thin_out<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        found: &Contradiction,
        alpha: &mut [f64],
        cancel: &Cancel,
    ) -> Result<()> {
        let blocks: Vec<usize> = found.blocks.iter().map(|&(block, _)| block).collect();
        let height = design.cols() + usize::from(self.intercept != Intercept::None) + 1;
        if !thins_out(blocks.len(), height) {
            return Ok(());
        }
        let program = Program::new(task, design, self.intercept, Least::Norm, &blocks, cancel)?;
        alpha.fill(0.0);
        let weights: Vec<f64> = found.blocks.iter().map(|&(_, weight)| weight).collect();
        program.fewest(&weights).into_iter().for_each(|(at, weight)| alpha[blocks[at]] = weight);
        Ok(())
    }
}

/// Whether a contradiction of so many constraints over so many dimensions can be made shorter at little cost.
pub(super) fn thins_out(constraints: usize, height: usize) -> bool {
    constraints as f64 * (height as f64).powi(3) <= MOST_THINNING
}

/// Coefficients, not all zero, with which the columns add up to zero. There must be more columns than rows. Uses
/// elimination with full pivoting.
fn dependence(columns: &[&[f64]], height: usize) -> Vec<f64> {
    let width = columns.len();
    let mut rows: Vec<Vec<f64>> = (0..height).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
    let mut pivot_of = vec![None; width];
    for done in 0..height {
        let mut largest = (0.0, 0, 0);
        for (row, values) in rows.iter().enumerate().skip(done) {
            for (column, value) in values.iter().enumerate() {
                if pivot_of[column].is_none() && value.abs() > largest.0 {
                    largest = (value.abs(), row, column);
                }
            }
        }
        let (size, row, column) = largest;
        if size <= 1e-12 {
            break;
        }
        rows.swap(done, row);
        pivot_of[column] = Some(done);
        let pivot = rows[done].clone();
        for (other, values) in rows.iter_mut().enumerate() {
            let factor = values[column] / pivot[column];
            if other != done && factor != 0.0 {
                values.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    let free = pivot_of.iter().position(Option::is_none).unwrap_or(0);
    (0..width)
        .map(|column| match pivot_of[column] {
            Some(row) => -rows[row][free] / rows[row][column],
            None => f64::from(u8::from(column == free)),
        })
        .collect()
}

/// Weights and threshold scaled up until every margin is reached, and their objective; none if one constraint is on the
/// wrong side. `least` is the smallest share of a margin that is reached.
fn stretched<T: Independent>(
    task: &T,
    design: &Design,
    weights: &[f64],
    threshold: f64,
    least: f64,
    intercept: Intercept,
) -> Option<(Vec<f64>, f64, f64)> {
    let mut factor = 1.0 / least;
    if !(least > 0.0 && factor.is_finite()) {
        return None;
    }
    // Rounding may leave the last margin slightly short; a few units in the last place more are enough.
    for attempt in 0..40 {
        let stretched: Vec<f64> = weights.iter().map(|w| w * factor).collect();
        let threshold = threshold * factor;
        let (objective, shortfall) = hard_primal(task, design, &stretched, threshold, intercept);
        if shortfall <= 0.0 {
            return Some((stretched, threshold, objective));
        }
        factor *= 1.0 + f64::EPSILON * f64::from(1u32 << attempt.min(20));
    }
    None
}

/// The sum of a column, relative to the sum of its absolute values, counts as zero below this.
pub(super) const COLUMN_NOTHING: f64 = 1e-5;

/// Σ_i |c_i · x_ij| for each column of the scaled rows.
fn column_sizes(design: &Design, coefficients: &[f64]) -> Vec<f64> {
    let mut sizes = vec![0.0; design.cols()];
    let mut values = vec![0.0; design.cols()];
    for (row, &coefficient) in coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0) {
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        sizes.iter_mut().zip(&values).for_each(|(size, value)| *size += (coefficient * value).abs());
    }
    sizes
}

/// The combination of constraints as a proof, if it is one.
fn contradiction<T: Independent>(
    task: &T,
    design: &Design,
    alpha: &[f64],
    mean_length: f64,
    intercept: Intercept,
) -> Option<Contradiction> {
    // The interior point leaves a small multiplier on every constraint, which is not part of the proof.
    let largest = alpha.iter().copied().fold(0.0, f64::max);
    let mut coefficients = vec![0.0; design.rows()];
    let mut absolute = vec![0.0; design.rows()];
    let (mut promised, mut total, mut pull) = (0.0, 0.0, 0.0);
    for (block, &z) in alpha.iter().enumerate().filter(|(_, z)| **z > TAKES_PART * largest) {
        let c = task.constraint(block);
        coefficients[c.row] += z * c.coefficient;
        absolute[c.row] += (z * c.coefficient).abs();
        if let Some(row) = c.against {
            coefficients[row] -= z * c.coefficient;
            absolute[row] += (z * c.coefficient).abs();
        }
        promised += z * c.margin;
        total += z;
        pull += z * c.threshold;
    }
    // The rest in a column is compared with the sizes of that column: a column of small numbers may be the one that
    // separates.
    let sizes = column_sizes(design, &absolute);
    let sum = design.weighted_sum(&coefficients);
    if sum.iter().zip(&sizes).any(|(sum, size)| sum.abs() > COLUMN_NOTHING * size) {
        return None;
    }
    let penalised = if intercept == Intercept::Penalised { pull * pull } else { 0.0 };
    let length = (sum.iter().map(|v| v * v).sum::<f64>() + penalised).sqrt();
    let residual = length / (total * mean_length);
    if !(promised > 0.0 && residual <= NOTHING) {
        return None;
    }
    let mut blocks: Vec<(usize, f64)> =
        alpha.iter().copied().enumerate().filter(|&(_, z)| z > TAKES_PART * largest).collect();
    blocks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Some(Contradiction { blocks, residual })
}

/// The first constraints, evenly spaced, so that all of the data are covered in any order.
pub(super) fn first_working_set(counts: &[usize]) -> Vec<usize> {
    let step = counts.len().div_ceil(FIRST).max(1);
    counts.iter().copied().step_by(step).collect()
}

impl Program {
    pub(super) fn new<T: Independent>(
        task: &T,
        design: &Design,
        intercept: Intercept,
        least: Least,
        working: &[usize],
        cancel: &Cancel,
    ) -> Result<Program> {
        let features = design.cols();
        let variables = features + usize::from(intercept != Intercept::None);
        let penalised = match least {
            Least::Norm => features + usize::from(intercept == Intercept::Penalised),
            Least::Violation => 0,
        };
        let mut program = Program { least, ..Program::of(features, variables, penalised) };
        let (mut row, mut other) = (vec![0.0; features], vec![0.0; features]);
        for (at, &block) in working.iter().enumerate() {
            if at % 256 == 0 {
                cancel.check()?;
            }
            let c = task.constraint(block);
            row.fill(0.0);
            design.fill_scaled_row(c.row, &mut row);
            if let Some(against) = c.against {
                other.fill(0.0);
                design.fill_scaled_row(against, &mut other);
                row.iter_mut().zip(&other).for_each(|(row, other)| *row -= other);
            }
            let mut square = 0.0;
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                program.push(at, column, -c.coefficient * value);
                square += value * value;
            }
            if intercept != Intercept::None && c.threshold != 0.0 {
                program.push(at, features, -c.threshold);
                square += 1.0;
            }
            program.close_row(c.margin, square, working.len())?;
        }
        program.checked()
    }

    /// A program without constraints that minimises half the norm of its first variables.
    pub(super) fn of(features: usize, variables: usize, penalised: usize) -> Program {
        Program {
            features,
            variables,
            penalised,
            least: Least::Norm,
            rows: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
            right: Vec::new(),
            mean_length: 0.0,
        }
    }

    /// Ends a constraint with its margin; `square` is the square of its length, and `count` the number of constraints.
    pub(super) fn close_row(&mut self, margin: f64, square: f64, count: usize) -> Result<()> {
        self.right.push(-margin);
        self.mean_length += square.sqrt() / count as f64;
        if self.values.len() > MOST_ENTRIES { Err(too_large(count, self.features)) } else { Ok(()) }
    }

    /// The program, unless it is too large or its numbers overflow.
    pub(super) fn checked(self) -> Result<Program> {
        let (mut in_row, mut in_column) = (vec![0u32; self.right.len()], vec![0u32; self.variables]);
        self.rows.iter().for_each(|&row| in_row[row] += 1);
        self.columns.iter().for_each(|&column| in_column[column] += 1);
        let squares = |counts: &[u32]| counts.iter().map(|&n| f64::from(n).powi(2)).sum::<f64>();
        // Either the features or the constraints are eliminated first, whichever costs less.
        let cubed = |n: usize| (n as f64).powi(3) / 3.0;
        let columns_first = squares(&in_column[..self.features]) + cubed(self.right.len());
        if columns_first.min(squares(&in_row) + cubed(self.features)) > MOST_WORK {
            return Err(too_large(self.right.len(), self.features));
        }
        if self.values.iter().any(|value| !value.is_finite()) {
            return Err(Error::new(Code::Overflow, "the difference of two rows overflows")
                .help("scale the features, for example with ⟦scale=standard⟧"));
        }
        Ok(self)
    }

    pub(super) fn push(&mut self, row: usize, column: usize, value: f64) {
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }

    /// A constraint without features, for instance between two equal items.
    pub(super) fn empty_row(&self) -> Option<usize> {
        let mut moves = vec![false; self.right.len()];
        self.rows.iter().for_each(|&row| moves[row] = true);
        moves.iter().position(|moves| !moves)
    }

    /// Of the constraints of a contradiction with these weights, at most one for each dimension, plus one, with their new
    /// weights.
    pub(super) fn fewest(&self, weights: &[f64]) -> Vec<(usize, f64)> {
        let height = self.variables + 1;
        // The last coordinate keeps the sum of the weights, so they cannot all vanish.
        let mut columns = vec![vec![0.0; height]; weights.len()];
        for ((&row, &column), &value) in self.rows.iter().zip(&self.columns).zip(&self.values) {
            columns[row][column] = value / self.mean_length;
        }
        columns.iter_mut().for_each(|column| column[height - 1] = 1.0);
        let mut kept: Vec<(usize, f64)> = Vec::new();
        for (at, &weight) in weights.iter().enumerate() {
            kept.push((at, weight));
            if kept.len() <= height {
                continue;
            }
            let mut change = dependence(&kept.iter().map(|&(at, _)| &columns[at][..]).collect::<Vec<_>>(), height);
            if !change.iter().any(|&c| c > 0.0) {
                change.iter_mut().for_each(|c| *c = -*c);
            }
            let share = |((_, weight), c): (&(usize, f64), &f64)| if *c > 0.0 { weight / c } else { f64::INFINITY };
            let least = kept.iter().zip(&change).map(share).fold(f64::INFINITY, f64::min);
            if !least.is_finite() {
                continue;
            }
            for (entry, c) in kept.iter_mut().zip(&change) {
                entry.1 = if entry.1 / c <= least && *c > 0.0 { 0.0 } else { (entry.1 - least * c).max(0.0) };
            }
            kept.retain(|&(_, weight)| weight > 0.0);
        }
        kept
    }

    /// Solves it on a separate thread; none after a cancel.
    pub(super) fn solve(self, cancel: &Cancel) -> Result<Option<Found>> {
        let (sender, receiver) = channel();
        let flag = cancel.clone();
        std::thread::spawn(move || {
            // After a cancel there is no receiver.
            let _ = sender.send(self.run(&flag));
        });
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(found) => return found.map(|found| Some(found).filter(|_| !cancel.is_raised())),
                Err(RecvTimeoutError::Timeout) if cancel.is_raised() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                // The thread ended without a result: it panicked.
                Err(RecvTimeoutError::Disconnected) => return Err(undecided()),
            }
        }
    }

    fn run(self, cancel: &Cancel) -> Result<Found> {
        let internal =
            |error: &dyn std::fmt::Display| Error::new(Code::Internal, format!("quadratic program: {error}"));
        let Program { features, variables, penalised, least, rows, columns, values, right, .. } = self;
        let constraints = CscMatrix::new_from_triplets(right.len(), variables, rows, columns, values);
        let diagonal: Vec<usize> = (0..penalised).collect();
        let quadratic =
            CscMatrix::new_from_triplets(variables, variables, diagonal.clone(), diagonal, vec![1.0; penalised]);
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_threads(1)
            .tol_gap_abs(1e-11)
            .tol_gap_rel(1e-11)
            .tol_feas(1e-11)
            .tol_infeas_abs(1e-10)
            .tol_infeas_rel(1e-10)
            .build()
            .map_err(|error| internal(&error))?;
        let cones = [NonnegativeConeT(right.len())];
        let mut linear = vec![0.0; variables];
        if let (Least::Violation, Some(last)) = (least, linear.last_mut()) {
            *last = 1.0;
        }
        let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings)
            .map_err(|error| internal(&error))?;
        let cancel = cancel.clone();
        solver.set_termination_callback(move |_| cancel.is_raised());
        solver.solve();
        let solution = solver.solution;
        let mut weights = solution.x;
        let free = weights.split_off(features);
        let threshold = free.first().copied().unwrap_or(0.0);
        Ok(Found { status: solution.status, weights, threshold, free, multipliers: solution.z })
    }
}

fn too_large(constraints: usize, features: usize) -> Error {
    Error::new(
        Code::BadSetting,
        format!("a program of {constraints} constraints and {features} features is too large to be solved here"),
    )
    .help("use a soft margin with a large ⟦c⟧, which approaches the same model: leave ⟦margin⟧ and ⟦solver⟧ out")
}

pub(super) fn undecided() -> Error {
    Error::new(
        Code::Undecided,
        "double precision cannot decide whether the data are separable: the margin is too small compared with the \
         features",
    )
    .help("scale the features with ⟦scale=standard⟧, or use a soft margin: leave ⟦margin⟧ and ⟦solver⟧ out")
}
