//! Primal and dual values of tasks with one constraint a block, recomputed from scratch: what solvers stop by, what a
//! model file records and what `verify` checks again.
//!
//! ```text
//! primal  P(w, b) = ½‖w‖² [+ ½b²] + Σ_i cost_i · loss(m_i − a_i s_i − t_i b),  s = Xw
//! dual    D(α)    = Σ_i (α_i m_i − cost_i · loss*(α_i / cost_i)) − ½‖Σ_i α_i a_i x_i‖² [− ½(Σ α_i t_i)²]
//! ```
//! with the bracketed terms where the threshold b is penalised. Where b is free, α is feasible only if Σ α_i t_i = 0:
//! [`balance`] shrinks the heavier side until that holds, which keeps every other constraint, so that D of the balanced
//! point is a valid bound whatever point it started from.

use super::Cut;
use crate::data::Design;
use crate::error::Result;
use crate::loss::{Curve, Loss};
use crate::run::Cancel;
use crate::task::{Barrier, Constraint, Independent, Intercept};
use rayon::prelude::*;

/// Blocks summed together; fixed, so that threads do not change a bit.
const CHUNK: usize = 4096;

/// Sums a function of the block number in a fixed order.
fn sum_blocks<const N: usize>(blocks: usize, term: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    let parts: Vec<[f64; N]> = (0..blocks.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut sums = [0.0; N];
            for block in chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks) {
                let terms = term(block);
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            sums
        })
        .collect();
    let mut total = [0.0; N];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    total
}

fn half_square(w: &[f64]) -> f64 {
    0.5 * w.iter().map(|w| w * w).sum::<f64>()
}

/// The primal value where the scores are known.
pub(crate) fn primal_of_scores<T: Independent>(
    task: &T,
    w: &[f64],
    scores: &[f64],
    threshold: f64,
    intercept: Intercept,
) -> f64 {
    let loss = task.loss();
    let [sum] = sum_blocks(task.blocks(), |block| {
        let c = task.constraint(block);
        [c.cost * loss.value(c.violation(scores, threshold))]
    });
    let penalty = if intercept == Intercept::Penalised { 0.5 * threshold * threshold } else { 0.0 };
    half_square(w) + penalty + barrier(task, threshold) + sum
}

/// What the threshold itself costs.
fn barrier<T: Independent>(task: &T, threshold: f64) -> f64 {
    let weight = task.barrier();
    if weight > 0.0 { weight * Barrier::at(threshold).value } else { 0.0 }
}

/// Makes Σ α_i t_i = 0 by shrinking the dual variables of the heavier side. A barrier takes what pulls below zero.
pub(crate) fn balance<T: Independent>(task: &T, alpha: &mut [f64]) {
    let [above, below] = sum_blocks(task.blocks(), |block| {
        let pull = alpha[block] * task.constraint(block).threshold;
        [pull.max(0.0), (-pull).max(0.0)]
    });
    if above == below || (task.barrier() > 0.0 && above < below) {
        return;
    }
    let (shrink_above, shrink_below) = if above > below { (below / above, 1.0) } else { (1.0, above / below) };
    alpha.par_iter_mut().enumerate().for_each(|(block, alpha)| {
        let t = task.constraint(block).threshold;
        if t > 0.0 {
            *alpha *= shrink_above;
        } else if t < 0.0 {
            *alpha *= shrink_below;
        }
    });
}

/// The dual value of a point. Values outside their box are brought back to it; where the threshold is free the point
/// must have been [`balance`]d, and what imbalance rounding left is judged by the caller.
pub(crate) fn dual_value<T: Independent>(task: &T, design: &Design, alpha: &[f64], intercept: Intercept) -> f64 {
    let loss = task.loss();
    let boxed = |block: usize, cost: f64| alpha[block].clamp(0.0, loss.dual_limit(cost));
    let mut coefficients = vec![0.0; design.rows()];
    for block in 0..task.blocks() {
        let c = task.constraint(block);
        let coefficient = c.coefficient * boxed(block, c.cost);
        coefficients[c.row] += coefficient;
        if let Some(row) = c.against {
            coefficients[row] -= coefficient;
        }
    }
    let w = design.weighted_sum(&mut coefficients);
    dual_of_square(task, alpha, 2.0 * half_square(&w), intercept)
}

/// The dual value of a point, given ‖Σ α a x‖².
pub(crate) fn dual_of_square<T: Independent>(task: &T, alpha: &[f64], square: f64, intercept: Intercept) -> f64 {
    let loss = task.loss();
    let boxed = |block: usize, cost: f64| alpha[block].clamp(0.0, loss.dual_limit(cost));
    let [gain, pull] = sum_blocks(task.blocks(), |block| {
        let c = task.constraint(block);
        let alpha = boxed(block, c.cost);
        [alpha * c.margin - loss.dual_cost(alpha, c.cost), alpha * c.threshold]
    });
    let weight = task.barrier();
    let penalty = if weight > 0.0 {
        Barrier::conjugate(weight, pull)
    } else if intercept == Intercept::Penalised {
        0.5 * pull * pull
    } else {
        0.0
    };
    // The objective is never negative, so a worse bound than zero says nothing.
    (gain - 0.5 * square - penalty).max(0.0)
}

/// The dual value that a primal point of a smooth loss, known by its scores, stands for: α_i = cost_i ·
/// loss'(violation_i), balanced where the threshold is free. A bound whatever the point, and the optimum at the optimum.
pub(crate) fn smooth_bound<T: Independent>(
    task: &T,
    design: &Design,
    scores: &[f64],
    threshold: f64,
    intercept: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    debug_assert!(task.loss().is_smooth());
    value_behind(task, design, Curve::Sharp(task.loss()), scores, threshold, intercept, cancel)
}

/// Primal value and lower bound of a hinge task at a point whose scores are known. The bound is the dual value that the
/// point stands for once the hinge is rounded off over a width: α_i = cost_i · h'(violation_i), balanced where the threshold
/// is free. It holds for the hinge itself, whatever point and width.
#[allow(clippy::too_many_arguments)] // a problem, a point of it, and a flag
pub(crate) fn rounded_values<T: Independent>(
    task: &T,
    design: &Design,
    w: &[f64],
    scores: &[f64],
    threshold: f64,
    width: f64,
    intercept: Intercept,
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    debug_assert!(task.loss() == Loss::Hinge);
    let primal = primal_of_scores(task, w, scores, threshold, intercept);
    let bound = value_behind(task, design, Curve::Rounded(width), scores, threshold, intercept, cancel)?;
    Ok((primal, bound))
}

/// The value of the dual point α_i = cost_i · curve'(violation_i), or an error once somebody asks for an end.
fn value_behind<T: Independent>(
    task: &T,
    design: &Design,
    curve: Curve,
    scores: &[f64],
    threshold: f64,
    intercept: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    let alpha = dual_behind(task, curve, scores, threshold, intercept);
    cancel.check()?;
    let bound = dual_value(task, design, &alpha, intercept);
    cancel.check()?;
    Ok(bound)
}

/// The dual point α_i = cost_i · curve'(violation_i), balanced where the threshold is free.
pub(crate) fn dual_behind<T: Independent>(
    task: &T,
    curve: Curve,
    scores: &[f64],
    threshold: f64,
    intercept: Intercept,
) -> Vec<f64> {
    let dual_of = |block: usize| {
        let c = task.constraint(block);
        c.cost * curve.at(c.violation(scores, threshold)).derivative
    };
    let mut alpha: Vec<f64> = (0..task.blocks()).into_par_iter().with_min_len(CHUNK).map(dual_of).collect();
    if intercept == Intercept::Free {
        balance(task, &mut alpha);
    }
    alpha
}

/// The dual point that cuts stand for, balanced where the threshold is free: α_i = Σ_k μ_k · cost_i · loss'(violation_i at
/// point k). It proves what the cuts prove, or more.
pub(crate) fn dual_of_cuts<T: Independent>(task: &T, design: &Design, cuts: &[Cut], intercept: Intercept) -> Vec<f64> {
    let loss = task.loss();
    let mut alpha = vec![0.0; task.blocks()];
    for Cut { point, multiplier } in cuts {
        let (w, threshold) = point.split_at(design.cols());
        let scores = design.all_scores(w);
        let threshold = threshold.first().copied().unwrap_or(0.0);
        alpha.par_iter_mut().with_min_len(CHUNK).enumerate().for_each(|(block, alpha)| {
            let c = task.constraint(block);
            *alpha += multiplier * c.cost * loss.derivative(c.violation(&scores, threshold));
        });
    }
    if intercept == Intercept::Free {
        balance(task, &mut alpha);
    }
    alpha
}

/// Whether every dual variable lies in its box, to rounding.
pub(crate) fn in_box<T: Independent>(task: &T, alpha: &[f64]) -> bool {
    let loss = task.loss();
    (0..task.blocks()).into_par_iter().all(|block| {
        let limit = loss.dual_limit(task.constraint(block).cost);
        alpha[block] >= 0.0 && alpha[block] <= limit * (1.0 + 1e-12)
    })
}

/// The constraints of a task without slack: missing a margin that counts costs without limit, so that its dual variable
/// has none.
pub(crate) struct Hard<'a, T>(pub(crate) &'a T);

impl<T: Independent> Independent for Hard<'_, T> {
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    fn loss(&self) -> Loss {
        Loss::Hinge
    }

    fn constraint(&self, block: usize) -> Constraint {
        let c = self.0.constraint(block);
        Constraint { cost: if c.cost > 0.0 { f64::INFINITY } else { 0.0 }, ..c }
    }
}

/// The smallest share of its margin that a constraint reaches, of those that count.
pub(crate) fn reached<T: Independent>(task: &T, scores: &[f64], threshold: f64) -> f64 {
    let share = |block: usize| {
        let c = task.constraint(block);
        if c.cost > 0.0 { (c.margin - c.violation(scores, threshold)) / c.margin } else { f64::INFINITY }
    };
    (0..task.blocks())
        .into_par_iter()
        .map(share)
        .reduce(|| f64::INFINITY, |a, b| if a.is_nan() || a < b { a } else { b })
}

/// The objective of a hard margin, and by which share of itself a margin is missed at most; not above zero where none is.
pub(crate) fn hard_primal<T: Independent>(
    task: &T,
    design: &Design,
    w: &[f64],
    threshold: f64,
    intercept: Intercept,
) -> (f64, f64) {
    let scores = design.all_scores(w);
    let missed = |block: usize| {
        let c = task.constraint(block);
        if c.cost > 0.0 { c.violation(&scores, threshold) / c.margin } else { f64::NEG_INFINITY }
    };
    let shortfall = (0..task.blocks()).into_par_iter().map(missed);
    // What is no number is no margin that is reached.
    let shortfall = shortfall.reduce(|| f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b });
    let penalty = if intercept == Intercept::Penalised { 0.5 * threshold * threshold } else { 0.0 };
    (half_square(w) + penalty, shortfall)
}

/// How far a point is from Σ α_i t_i = 0, relative to Σ |α_i t_i|.
pub(crate) fn imbalance<T: Independent>(task: &T, alpha: &[f64]) -> f64 {
    let [net, total] = sum_blocks(task.blocks(), |block| {
        let pull = alpha[block] * task.constraint(block).threshold;
        [pull, pull.abs()]
    });
    if total > 0.0 { net.abs() / total } else { 0.0 }
}

/// The threshold that minimises the loss for given scores, the nearest to `near` where there are several.
pub(crate) fn best_threshold<T: Independent>(task: &T, scores: &[f64], near: f64) -> f64 {
    match task.loss() {
        Loss::Hinge => best_for_hinge(task, scores, near),
        Loss::SquaredHinge | Loss::Logistic => best_for_smooth(task, scores, near),
    }
}

/// The loss is piecewise linear in b: walk up its sorted kinks until the slope turns from negative to positive.
fn best_for_hinge<T: Independent>(task: &T, scores: &[f64], near: f64) -> f64 {
    let mut kinks: Vec<(f64, f64)> = (0..task.blocks())
        .into_par_iter()
        .filter_map(|block| {
            let c = task.constraint(block);
            let weight = c.cost * c.threshold.abs();
            (weight > 0.0).then(|| (c.violation(scores, 0.0) / c.threshold, weight))
        })
        .collect();
    kinks.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let [mut slope] = sum_blocks(task.blocks(), |block| {
        let c = task.constraint(block);
        [-(c.cost * c.threshold).max(0.0)]
    });
    let rounding = 1e-12 * slope.abs();
    for (at, &(kink, weight)) in kinks.iter().enumerate() {
        slope += weight;
        if slope.abs() <= rounding {
            let end = kinks.get(at + 1).map_or(kink, |next| next.0).max(kink);
            return near.max(kink).min(end);
        }
        if slope > 0.0 {
            return kink;
        }
    }
    near
}

/// The loss is smooth and convex in b: Newton steps within a shrinking bracket.
fn best_for_smooth<T: Independent>(task: &T, scores: &[f64], near: f64) -> f64 {
    let loss = task.loss();
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut b = near;
    for _ in 0..200 {
        let [slope, curvature] = sum_blocks(task.blocks(), |block| {
            let c = task.constraint(block);
            let violation = c.violation(scores, b);
            let weight = c.cost * c.threshold;
            [-weight * loss.derivative(violation), weight * c.threshold * loss.curvature(violation)]
        });
        if slope == 0.0 {
            return b;
        }
        if slope > 0.0 {
            high = b
        } else {
            low = b
        }
        let newton = b - slope / curvature;
        let next = if newton > low && newton < high {
            newton
        } else if low.is_finite() && high.is_finite() {
            0.5 * (low + high)
        } else {
            newton
        };
        if next == b || !next.is_finite() {
            return b;
        }
        b = next;
    }
    b
}
