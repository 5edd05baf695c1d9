//! A primal-dual interior-point method for hinge and squared hinge, one constraint per block.
//!
//! ```text
//! min  ½‖Σ α_i a_i x_i‖² + ½ Σ q_i α_i² − Σ m_i α_i   s.t.  0 ≤ α_i ≤ u_i,  Σ α_i t_i = 0 where the threshold is free
//! ```
//! Notation of [`crate::task::Constraint`]. For the hinge u is the cost and q zero; for the squared hinge u is infinite
//! and q is 1/(2·cost). With multipliers z of α ≥ 0 and v of α ≤ u, and w = Σ α a x, a solution has
//!
//! ```text
//! a_i x_i·w + q_i α_i + t_i b − m_i = z_i − v_i,   α_i z_i = 0,   (u_i − α_i) v_i = 0
//! ```
//! Newton steps with Mehrotra's correction first make the two products all alike, and then smaller (On the
//! implementation of a primal-dual interior point method, SIAM Journal on Optimization 2, 1992). After elimination, a
//! step is a linear system in the weights and the threshold,
//!
//! ```text
//! (I + Σ ã_i ã_iᵀ / D_i) Δ = …,   ã_i = (a_i x_i, t_i),   D_i = q_i + z_i/α_i + v_i/(u_i − α_i)
//! ```
//! (Ferris & Munson, Interior-point methods for massive support vector machines, SIAM Journal on Optimization 13,
//! 2002), which is formed and factored in every step. Cost: n·d² a step, and d³/3. The method needs some 10 to 40 steps
//! for any cost and any position of the rows, and few more for small gaps. This is its advantage where the rows are not
//! many times the features: there, other methods need many steps to find the set of rows on their margins.
//!
//! **Certificate.** The primal value at the weights with the best threshold, and the dual value at the balanced α. Both
//! are recomputed from the rows at every step. Stops at a relative gap. The witness is the dual point.
//!
//! It does not use a warm start as its first iterate: it always begins in the middle of the box, since the way back
//! from points near the bounds is long. The warm start (or zero weights) is only the best point so far, so the result
//! is never worse. Steps never reach a bound. At the end, the dual variables of rows away from their margins are set to
//! their bounds if the bound stays as good, so that only the other rows are support vectors.

use super::cholesky::BlockedCholesky;
use super::normal_matrix::sum_of_squares;
use super::sizes::TILE_ROWS;
use super::values::{Balance, balance, best_threshold, dual_value, primal_of_scores, weights_behind};
use super::{Progress, Sizes, Solution, Start, Stop, Witness, overflow, relative_gap};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::task::{Constraint, Independent, Intercept, Roundable};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct InteriorPoint {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of steps.
    pub(crate) max_passes: u64,
    /// How the threshold is treated.
    pub(crate) intercept: Intercept,
}

/// The first products, as a share of the mean of dual variable times distance from the margin.
const FIRST_PRODUCT: f64 = 0.1;

/// A step goes this share of the way to the nearest bound.
const SHORT_OF_BOUND: f64 = 0.995;

/// A shorter step counts as no progress.
const LEAST_STEP: f64 = 1e-9;

/// The solver has stalled at the limit of double precision after `PATIENCE` steps in which the distance between
/// objective and bound did not shrink by the factor `GAIN`.
const PATIENCE: u64 = 10;
const GAIN: f64 = 0.99;

/// A row nearer to its margin than this, as a share of the largest margin, counts as on it. The values are tried in
/// this order.
const NEAR: [f64; 3] = [1e-3, 1e-2, 1e-1];

/// Shares of each diagonal entry that are added to it, one after the other, until the matrix can be factored: if a
/// feature is nearly the same as the threshold's column, only rounding may be left of a pivot.
const RIDGES: [f64; 4] = [0.0, 1e-15, 1e-12, 1e-9];

/// A dual variable with the multipliers of its bounds.
#[derive(Clone, Copy, Debug, Default)]
struct Variable {
    alpha: f64,
    /// The distance to the upper limit; infinite if there is none.
    room: f64,
    at_zero: f64,
    at_limit: f64,
}

impl Variable {
    /// Whether the variable moves at all. With cost zero, or if nothing pulls the threshold the other way, it stays
    /// zero.
    fn counts(&self) -> bool {
        self.alpha > 0.0
    }

    /// The products that vanish at a solution.
    fn products(&self) -> [f64; 2] {
        [self.alpha * self.at_zero, if self.room.is_finite() { self.room * self.at_limit } else { 0.0 }]
    }

    /// The longest step that keeps the variable within its bounds and its multipliers nonnegative.
    fn longest_step(&self, change: &Change) -> f64 {
        let until = |value: f64, change: f64| if change < 0.0 { -value / change } else { f64::INFINITY };
        let room = if self.room.is_finite() { until(self.room, -change.alpha) } else { f64::INFINITY };
        let multipliers = until(self.at_zero, change.at_zero).min(until(self.at_limit, change.at_limit));
        until(self.alpha, change.alpha).min(room).min(multipliers)
    }

    fn moved(&self, step: f64, change: &Change) -> Variable {
        Variable {
            alpha: self.alpha + step * change.alpha,
            room: self.room - step * change.alpha,
            at_zero: self.at_zero + step * change.at_zero,
            at_limit: self.at_limit + step * change.at_limit,
        }
    }
}

/// How a step changes a [`Variable`].
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    alpha: f64,
    at_zero: f64,
    at_limit: f64,
}

/// A step in the weights, the threshold and all dual variables.
struct Direction {
    weights: Vec<f64>,
    threshold: f64,
    changes: Vec<Change>,
}

/// The best found so far: a primal point, and a dual point that may come from another step.
struct Best {
    weights: Vec<f64>,
    threshold: f64,
    objective: f64,
    alpha: Vec<f64>,
    bound: f64,
}

/// Bytes a row: dual variables with their multipliers, two directions of these, their input, the best dual point twice, and
/// scores.
const ROW_BYTES: u64 = 192;

/// What it allocates beside the features: the rows, the system of a step, the rows below a block of it, and the tile that
/// it is added up from.
pub(super) fn bytes(sizes: &Sizes) -> u64 {
    let width = sizes.cols + 1;
    ROW_BYTES * sizes.rows_and_pairs() + (width.pow(2) + TILE_ROWS * width) * 8
}

impl InteriorPoint {
    /// Solves the task over the rows of `design`.
    pub(crate) fn solve<T: Independent + Roundable>(
        &self,
        task: &T,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        if task.loss() == Loss::Logistic {
            return Err(Error::new(Code::Internal, "the interior point is for hinge and squared hinge"));
        }
        let mut progress = Progress::new(observer, cancel);
        let mut state = State::new(task, design, self.intercept, cancel)?;
        let mut best = match start {
            Some(start) => self.best(task, design, start, cancel)?,
            None => {
                let weights = vec![0.0; design.cols()];
                self.best(task, design, &Start { weights, ..Start::default() }, cancel)?
            }
        };
        // Steps made, and the number of steps at the last point that was evaluated.
        let (mut steps, mut passes, mut last_gain) = (0, 0, 0);
        let mut least_distance = f64::INFINITY;
        let stop = loop {
            let Ok(scores) = design.scores_until(&state.weights, cancel) else { break Stop::Cancelled };
            let found = state.judged(&scores);
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            if !(found.objective.is_finite() && found.bound.is_finite()) {
                break Stop::Stalled;
            }
            passes = steps;
            // Not by the relative gap, which stays near 1 for long, nor by the best distance, where a warm start may be
            // ahead.
            if found.distance() <= GAIN * least_distance {
                (least_distance, last_gain) = (found.distance(), passes);
            }
            best = best.with(found);
            progress.bound(Some(best.bound));
            let thresholds = vec![best.threshold; task.thresholds()];
            if progress.report(passes, best.objective, &best.weights, &thresholds) {
                break Stop::Cancelled;
            }
            if best.gap() <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            if passes >= last_gain + PATIENCE {
                break Stop::Stalled;
            }
            match state.step(&scores) {
                Ok(true) => steps += 1,
                Ok(false) => break if progress.cancelled() { Stop::Cancelled } else { Stop::Stalled },
                Err(_) => break Stop::Cancelled,
            }
        };
        if stop != Stop::Cancelled {
            best = self.at_bounds(task, design, best);
        }
        let Best { weights, threshold, objective, alpha, bound } = best;
        Ok(Solution {
            weights,
            thresholds: vec![threshold; task.thresholds()],
            objective,
            lower_bound: Some(bound),
            witness: Witness::Dual(alpha),
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        })
    }

    /// Evaluates a warm start.
    fn best<T: Independent>(&self, task: &T, design: &Design, start: &Start, cancel: &Cancel) -> Result<Best> {
        let scores = design.scores_until(&start.weights, cancel)?;
        let threshold = start.thresholds.first().copied().unwrap_or(0.0);
        let alpha = start.dual.clone().unwrap_or_else(|| vec![0.0; task.blocks()]);
        let best = Best::at(task, design, self.intercept, start.weights.clone(), threshold, &scores, alpha);
        if best.objective.is_finite() { Ok(best) } else { Err(overflow()) }
    }

    /// The same with the dual variables of rows away from their margins at their bounds, if the gap stays as good.
    fn at_bounds<T: Independent + Roundable>(&self, task: &T, design: &Design, best: Best) -> Best {
        let scores = design.all_scores(&best.weights);
        for near in NEAR {
            let near = near * task.margin_scale();
            let mut alpha = onto_bounds(task, &scores, best.threshold, near, &best.alpha);
            if self.intercept == Intercept::Free {
                balance(task, &mut alpha);
            }
            let bound = dual_value(task, design, |block| alpha[block], self.intercept);
            if relative_gap(best.objective, bound) <= best.gap().max(self.tolerance) {
                return Best { alpha, bound, ..best };
            }
        }
        best
    }
}

/// A dual point where each row further than `near` from its margin is at the bound that it tends to.
pub(crate) fn onto_bounds<T: Independent>(
    task: &T,
    scores: &[f64],
    threshold: f64,
    near: f64,
    alpha: &[f64],
) -> Vec<f64> {
    let loss = task.loss();
    let bound = |(block, &alpha): (usize, &f64)| {
        let c = task.constraint(block);
        match c.violation(scores, threshold) {
            violation if violation < -near => 0.0,
            violation if violation > near => Some(loss.dual_limit(c.cost)).filter(|l| l.is_finite()).unwrap_or(alpha),
            _ => alpha,
        }
    };
    alpha.iter().enumerate().map(bound).collect()
}

impl Best {
    /// Evaluates weights with known scores and a dual point: the threshold is set to its best value, the dual point is
    /// balanced.
    fn at<T: Independent>(
        task: &T,
        design: &Design,
        intercept: Intercept,
        weights: Vec<f64>,
        threshold: f64,
        scores: &[f64],
        mut alpha: Vec<f64>,
    ) -> Best {
        let threshold = match intercept {
            Intercept::Free => best_threshold(task, |row| scores[row], threshold),
            Intercept::None | Intercept::Penalised => threshold,
        };
        let objective = primal_of_scores(task, &weights, scores, threshold, intercept);
        if intercept == Intercept::Free {
            balance(task, &mut alpha);
        }
        let bound = dual_value(task, design, |block| alpha[block], intercept);
        Best { weights, threshold, objective, alpha, bound }
    }

    fn gap(&self) -> f64 {
        relative_gap(self.objective, self.bound)
    }

    fn distance(&self) -> f64 {
        self.objective - self.bound
    }

    fn with(self, found: Best) -> Best {
        let (weights, threshold, objective) = match found.objective < self.objective {
            true => (found.weights, found.threshold, found.objective),
            false => (self.weights, self.threshold, self.objective),
        };
        let (alpha, bound) =
            if found.bound > self.bound { (found.alpha, found.bound) } else { (self.alpha, self.bound) };
        Best { weights, threshold, objective, alpha, bound }
    }
}

/// The variables of the main loop.
struct State<'a, T> {
    task: &'a T,
    design: &'a Design,
    intercept: Intercept,
    cancel: &'a Cancel,
    variables: Vec<Variable>,
    weights: Vec<f64>,
    threshold: f64,
    /// Whether the threshold is a variable of the linear system.
    has_threshold: bool,
}

impl<'a, T: Independent + Roundable> State<'a, T> {
    /// Begins in the middle: each dual variable is half of what it would be if the largest margin were missed,
    /// balanced, and the multipliers make all products alike. The first steps remove the margin residuals that this
    /// leaves.
    fn new(task: &'a T, design: &'a Design, intercept: Intercept, cancel: &'a Cancel) -> Result<State<'a, T>> {
        let loss = task.loss();
        let scale = Some(task.margin_scale()).filter(|scale| *scale > 0.0).unwrap_or(1.0);
        let middle = |block: usize| 0.5 * task.constraint(block).cost * loss.derivative(scale);
        let balance = if intercept == Intercept::Free { Balance::between(task, middle) } else { Balance::WHOLE };
        let mut has_threshold = false;
        let mut variables: Vec<Variable> = Vec::with_capacity(task.blocks());
        for block in 0..task.blocks() {
            let c = task.constraint(block);
            let alpha = middle(block) * balance.share(&c);
            let room = loss.dual_limit(c.cost) - alpha;
            variables.push(Variable { alpha, room, ..Variable::default() });
            has_threshold |= intercept != Intercept::None && c.threshold != 0.0 && alpha > 0.0;
        }
        let alpha = |block: usize| variables[block].alpha;
        let weights = weights_behind(task, design, alpha);
        let threshold = match intercept {
            Intercept::Penalised => {
                (0..task.blocks()).map(|block| alpha(block) * task.constraint(block).threshold).sum()
            }
            Intercept::None | Intercept::Free => 0.0,
        };
        let scores = design.scores_until(&weights, cancel)?;
        let mut state = State { task, design, intercept, cancel, variables, weights, threshold, has_threshold };
        let (mut sum, mut count) = (0.0, 0.0);
        for (block, variable) in state.variables.iter().enumerate().filter(|(_, variable)| variable.counts()) {
            // If all rows were on their margins, the products would be zero.
            let off = state.surplus(block, &scores).abs().max(1e-12 * scale);
            sum += variable.alpha.min(variable.room) * off;
            count += 1.0;
        }
        let product = FIRST_PRODUCT * sum / f64::max(count, 1.0);
        for variable in state.variables.iter_mut().filter(|variable| variable.counts()) {
            variable.at_zero = product / variable.alpha;
            variable.at_limit = product / variable.room;
        }
        Ok(state)
    }

    /// By how much a block exceeds its margin, plus the term of its own dual variable.
    fn surplus(&self, block: usize, scores: &[f64]) -> f64 {
        let c = self.task.constraint(block);
        dual_curvature(self.task.loss(), &c) * self.variables[block].alpha - c.violation(scores, self.threshold)
    }

    /// Evaluates the current point.
    fn judged(&self, scores: &[f64]) -> Best {
        let alpha = self.variables.iter().map(|variable| variable.alpha).collect();
        Best::at(self.task, self.design, self.intercept, self.weights.clone(), self.threshold, scores, alpha)
    }

    /// One step. Returns whether it made progress.
    fn step(&mut self, scores: &[f64]) -> Result<bool> {
        let loss = self.task.loss();
        let spreads: Vec<f64> = (self.variables.iter().enumerate())
            .map(|(block, variable)| {
                if !variable.counts() {
                    return 0.0;
                }
                let curvature = dual_curvature(loss, &self.task.constraint(block));
                1.0 / (curvature + variable.at_zero / variable.alpha + variable.at_limit / variable.room)
            })
            .collect();
        let Some(factor) = self.factor(&spreads) else { return Ok(false) };
        let missed: Vec<f64> = (self.variables.iter().enumerate())
            .map(|(block, variable)| variable.at_zero - variable.at_limit - self.surplus(block, scores))
            .collect();
        // The affine step towards products of zero shows how far the products can be lowered.
        let straight = self.direction(&factor, &spreads, &missed, |_, variable| variable.products().map(|p| -p))?;
        let moved = self.longest_step(&straight.changes).min(1.0);
        let (now, then) = (self.mean_product(None), self.mean_product(Some((moved, &straight.changes))));
        // While there are margin residuals, the affine step may even raise the products.
        let target = now * (then / now).min(1.0).powi(3);
        let changes = straight.changes;
        let corrected = |block: usize, variable: &Variable| {
            let (change, [at_zero, at_limit]) = (changes[block], variable.products());
            [target - at_zero - change.alpha * change.at_zero, target - at_limit + change.alpha * change.at_limit]
        };
        let Direction { weights, threshold, changes } = self.direction(&factor, &spreads, &missed, corrected)?;
        let step = (SHORT_OF_BOUND * self.longest_step(&changes)).min(1.0);
        let finite = threshold.is_finite()
            && weights.iter().all(|w| w.is_finite())
            && changes.iter().all(|change| (change.alpha + change.at_zero + change.at_limit).is_finite());
        if !finite || step <= LEAST_STEP {
            return Ok(false);
        }
        self.weights.iter_mut().zip(weights).for_each(|(w, change)| *w += step * change);
        self.threshold += step * threshold;
        for (variable, change) in self.variables.iter_mut().zip(&changes) {
            *variable = variable.moved(step, change);
        }
        Ok(true)
    }

    fn longest_step(&self, changes: &[Change]) -> f64 {
        let counted = self.variables.iter().zip(changes).filter(|(variable, _)| variable.counts());
        counted.map(|(variable, change)| variable.longest_step(change)).fold(f64::INFINITY, f64::min)
    }

    /// The mean of the products, here or after a step.
    fn mean_product(&self, moved: Option<(f64, &[Change])>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (block, variable) in self.variables.iter().enumerate().filter(|(_, variable)| variable.counts()) {
            let there = moved.map_or(*variable, |(step, changes)| variable.moved(step, &changes[block]));
            sum += there.products().iter().sum::<f64>();
            count += if variable.room.is_finite() { 2.0 } else { 1.0 };
        }
        sum / f64::max(count, 1.0)
    }

    /// The Cholesky factor of I + Σ ã ãᵀ / D, or none after a cancel or if the matrix cannot be factored.
    fn factor(&self, spreads: &[f64]) -> Option<BlockedCholesky> {
        let (task, design, features) = (self.task, self.design, self.design.cols());
        let dim = features + usize::from(self.has_threshold);
        let counted: Vec<usize> = (0..spreads.len()).filter(|&block| spreads[block] > 0.0).collect();
        let fill = |number: usize, values: &mut [f64]| {
            let c = task.constraint(counted[number]);
            let (by_feature, by_threshold) = values.split_at_mut(features);
            design.fill_scaled_row(c.row, by_feature);
            if let Some(row) = c.against {
                let mut other = vec![0.0; features];
                design.fill_scaled_row(row, &mut other);
                by_feature.iter_mut().zip(other).for_each(|(value, other)| *value -= other);
            }
            let root = spreads[counted[number]].sqrt();
            by_feature.iter_mut().for_each(|value| *value *= c.coefficient * root);
            by_threshold.fill(c.threshold * root);
        };
        let passed = |numbers: std::ops::Range<usize>| {
            if task.blocks_are_rows() {
                design.passed(counted[numbers.start]..counted[numbers.end - 1] + 1);
            }
        };
        let penalised = if self.intercept == Intercept::Penalised { dim } else { features };
        // The matrix is formed again for each ridge: a second try is rare, and a copy would double the memory.
        for ridge in RIDGES {
            let mut matrix = sum_of_squares(counted.len(), dim, fill, passed, self.cancel);
            if self.cancel.is_raised() {
                return None;
            }
            (0..penalised).for_each(|at| matrix[at * dim + at] += 1.0);
            (0..dim).for_each(|at| matrix[at * dim + at] *= 1.0 + ridge);
            let factor = BlockedCholesky::of(matrix, dim, self.cancel);
            if factor.is_some() || self.cancel.is_raised() {
                return factor;
            }
        }
        None
    }

    /// The step that removes the margin residuals `missed` and changes the products by about what `wanted` returns.
    fn direction(
        &self,
        factor: &BlockedCholesky,
        spreads: &[f64],
        missed: &[f64],
        wanted: impl Fn(usize, &Variable) -> [f64; 2],
    ) -> Result<Direction> {
        let (task, features) = (self.task, self.design.cols());
        // After the products are eliminated, this is the right-hand side of each block.
        let asked: Vec<f64> = (self.variables.iter().enumerate())
            .map(|(block, variable)| {
                if spreads[block] == 0.0 {
                    return 0.0;
                }
                let [at_zero, at_limit] = wanted(block, variable);
                missed[block] + at_zero / variable.alpha - at_limit / variable.room
            })
            .collect();
        let behind = |block: usize| self.variables[block].alpha + spreads[block] * asked[block];
        let mut right = weights_behind(task, self.design, behind);
        right.iter_mut().zip(&self.weights).for_each(|(right, w)| *right -= w);
        if self.has_threshold {
            let pull: f64 = (0..task.blocks()).map(|block| behind(block) * task.constraint(block).threshold).sum();
            right.push(if self.intercept == Intercept::Penalised { pull - self.threshold } else { pull });
        }
        let mut weights = factor.solve(&right);
        let threshold = if self.has_threshold { weights.split_off(features)[0] } else { 0.0 };
        let scores = self.design.scores_until(&weights, self.cancel)?;
        let changes = (self.variables.iter().enumerate())
            .map(|(block, variable)| {
                if spreads[block] == 0.0 {
                    return Change::default();
                }
                let c = Constraint { margin: asked[block], ..task.constraint(block) };
                let alpha = spreads[block] * c.violation(&scores, threshold);
                let [at_zero, at_limit] = wanted(block, variable);
                Change {
                    alpha,
                    at_zero: (at_zero - variable.at_zero * alpha) / variable.alpha,
                    at_limit: (at_limit + variable.at_limit * alpha) / variable.room,
                }
            })
            .collect();
        Ok(Direction { weights, threshold, changes })
    }
}

/// The second derivative of the dual cost of a variable; zero at cost zero, where the variable does not move.
fn dual_curvature(loss: Loss, constraint: &Constraint) -> f64 {
    if loss == Loss::SquaredHinge && constraint.cost > 0.0 { 0.5 / constraint.cost } else { 0.0 }
}
