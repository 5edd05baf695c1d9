//! Primal and dual values of tasks with one constraint per block, recomputed from scratch: solvers stop by them, a
//! model file records them and `verify` checks them again.
//!
//! ```text
//! primal  P(w, b) = ½‖w‖² [+ ½b²] + Σ_i cost_i · loss(m_i − a_i s_i − t_i b),  s = Xw
//! dual    D(α)    = Σ_i (α_i m_i − cost_i · loss*(α_i / cost_i)) − ½‖Σ_i α_i a_i x_i‖² [− ½(Σ α_i t_i)²]
//! ```
//! with the bracketed terms where the threshold b is penalised. Where b is free, α is feasible only if Σ α_i t_i = 0:
//! [`balance`] scales down the heavier side until that holds, which keeps every other constraint. So D of the balanced
//! point is a valid bound for any starting point.

use super::Cut;
use crate::data::Design;
use crate::error::Result;
use crate::loss::{Curve, Loss};
use crate::parallel;
use crate::random::scramble;
use crate::run::Cancel;
use crate::task::{Barrier, Constraint, Independent, Intercept};
use std::ops::Range;

/// Blocks summed together. The number is fixed, so the result does not depend on the number of threads.
const CHUNK: usize = 4096;

/// Sums a function of the block number in a fixed order.
fn sum_blocks<const N: usize>(blocks: usize, term: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    sum_chunks(blocks, &|chunk| sum_terms(chunk.map(&term)))
}

fn sum_terms<const N: usize>(terms: impl Iterator<Item = [f64; N]>) -> [f64; N] {
    let mut sums = [0.0; N];
    for terms in terms {
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    sums
}

/// Sums a function of ranges of blocks in a fixed order.
fn sum_chunks<const N: usize>(blocks: usize, sum: &(dyn Fn(Range<usize>) -> [f64; N] + Sync)) -> [f64; N] {
    sum_terms(parallel::map(chunks_of(blocks), |chunk| sum(in_chunk(chunk, blocks))).into_iter())
}

/// The number of chunks that this many blocks make.
fn chunks_of(blocks: usize) -> usize {
    blocks.div_ceil(CHUNK)
}

/// The blocks of a chunk.
fn in_chunk(chunk: usize, blocks: usize) -> Range<usize> {
    chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks)
}

/// Reduces `start` and the values of all blocks, in their order, by `choose`, whose result must not depend on the
/// grouping.
pub(super) fn chosen(
    blocks: usize,
    start: f64,
    value: impl Fn(usize) -> f64 + Sync,
    choose: impl Fn(f64, f64) -> f64 + Copy + Sync,
) -> f64 {
    let of_chunk = |chunk: usize| in_chunk(chunk, blocks).map(&value).fold(start, choose);
    parallel::map(chunks_of(blocks), of_chunk).into_iter().fold(start, choose)
}

fn half_square(w: &[f64]) -> f64 {
    0.5 * w.iter().map(|w| w * w).sum::<f64>()
}

/// The primal value for known scores.
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
    primal_of_loss(task, w, sum, threshold, intercept)
}

fn primal_of_loss<T: Independent>(task: &T, w: &[f64], sum: f64, threshold: f64, intercept: Intercept) -> f64 {
    let penalty = if intercept == Intercept::Penalised { 0.5 * threshold * threshold } else { 0.0 };
    half_square(w) + penalty + barrier(task, threshold) + sum
}

/// The same value, to the last bit, without an array of all scores: where blocks are rows, the scores are computed one
/// chunk after the other.
pub(crate) fn primal_in_passing<T: Independent>(
    task: &T,
    design: &Design,
    w: &[f64],
    threshold: f64,
    intercept: Intercept,
) -> f64 {
    if !task.blocks_are_rows() {
        return primal_of_scores(task, w, &design.all_scores(w), threshold, intercept);
    }
    let (loss, folded) = (task.loss(), design.fold(w));
    let [sum] = sum_chunks(task.blocks(), &|rows| {
        let mut scores = vec![0.0; rows.len()];
        design.scores(rows.clone(), &folded, &mut scores);
        design.passed(rows.clone());
        sum_terms(rows.zip(scores).map(|(row, score)| {
            let c = task.constraint(row);
            [c.cost * loss.value(c.violation_by(|_| score, threshold))]
        }))
    });
    primal_of_loss(task, w, sum, threshold, intercept)
}

/// The cost of the threshold itself.
fn barrier<T: Independent>(task: &T, threshold: f64) -> f64 {
    let weight = task.barrier();
    if weight > 0.0 { weight * Barrier::at(threshold).value } else { 0.0 }
}

/// Two factors that make Σ α_i t_i = 0: one for the dual variables that pull the threshold up, one for those that pull
/// it down.
#[derive(Clone, Copy)]
pub(crate) struct Balance {
    above: f64,
    below: f64,
}

impl Balance {
    /// Both factors are 1.
    pub(crate) const WHOLE: Balance = Balance { above: 1.0, below: 1.0 };

    /// The factors that shrink the heavier side. With a barrier, the side that pulls down may stay heavier.
    pub(crate) fn between<T: Independent>(task: &T, alpha: impl Fn(usize) -> f64 + Sync) -> Balance {
        let [above, below] = sum_blocks(task.blocks(), |block| {
            let pull = alpha(block) * task.constraint(block).threshold;
            [pull.max(0.0), (-pull).max(0.0)]
        });
        if above == below || (task.barrier() > 0.0 && above < below) {
            Balance::WHOLE
        } else if above > below {
            Balance { above: below / above, below: 1.0 }
        } else {
            Balance { above: 1.0, below: above / below }
        }
    }

    /// The factor for the dual variable of a constraint.
    #[inline]
    pub(crate) fn share(&self, constraint: &Constraint) -> f64 {
        if constraint.threshold > 0.0 {
            self.above
        } else if constraint.threshold < 0.0 {
            self.below
        } else {
            1.0
        }
    }
}

/// The constraints that take one of several cuts.
pub(crate) struct OfCut<'a, T> {
    task: &'a T,
    /// Their numbers.
    pub(crate) own: Vec<usize>,
}

/// The constraints of each cut.
pub(crate) fn by_cut<T: Independent>(task: &T) -> Vec<OfCut<'_, T>> {
    let mut cuts: Vec<OfCut<'_, T>> = (0..task.cuts()).map(|_| OfCut { task, own: Vec::new() }).collect();
    (0..task.blocks()).for_each(|block| cuts[task.cut(block)].own.push(block));
    cuts
}

impl<T: Independent> Independent for OfCut<'_, T> {
    fn blocks(&self) -> usize {
        self.own.len()
    }

    fn loss(&self) -> Loss {
        self.task.loss()
    }

    fn constraint(&self, block: usize) -> Constraint {
        self.task.constraint(self.own[block])
    }
}

/// Makes Σ α_i t_i = 0 by shrinking the dual variables of the heavier side; over the constraints of each cut if there
/// are several.
pub(crate) fn balance<T: Independent>(task: &T, alpha: &mut [f64]) {
    if task.cuts() > 1 {
        for cut in by_cut(task) {
            let balance = Balance::between(&cut, |block| alpha[cut.own[block]]);
            cut.own.iter().for_each(|&block| alpha[block] *= balance.share(&task.constraint(block)));
        }
        return;
    }
    let balance = Balance::between(task, |block| alpha[block]);
    parallel::update(alpha, CHUNK, |block, alpha| *alpha *= balance.share(&task.constraint(block)));
}

/// The dual value of a point, given by the variable of each block. Values outside their box are clipped to it. If the
/// threshold is free, the caller must have [`balance`]d the point, and judges the imbalance that rounding left.
pub(crate) fn dual_value<T: Independent>(
    task: &T,
    design: &Design,
    alpha: impl Fn(usize) -> f64 + Sync,
    intercept: Intercept,
) -> f64 {
    let loss = task.loss();
    let within = |block: usize| alpha(block).clamp(0.0, loss.dual_limit(task.constraint(block).cost));
    let w = weights_behind(task, design, within);
    dual_of_square(task, alpha, 2.0 * half_square(&w), intercept)
}

/// Σ α a x: the weights of a dual point.
pub(crate) fn weights_behind<T: Independent>(
    task: &T,
    design: &Design,
    alpha: impl Fn(usize) -> f64 + Sync,
) -> Vec<f64> {
    let coefficient = |block: usize| task.constraint(block).coefficient * alpha(block);
    if task.blocks_are_rows() {
        return design.weighted_sum_by(coefficient);
    }
    let mut coefficients = vec![0.0; design.rows()];
    for block in 0..task.blocks() {
        let (c, coefficient) = (task.constraint(block), coefficient(block));
        coefficients[c.row] += coefficient;
        if let Some(row) = c.against {
            coefficients[row] -= coefficient;
        }
    }
    design.weighted_sum(&coefficients)
}

/// The dual value of a point, given ‖Σ α a x‖².
pub(crate) fn dual_of_square<T: Independent>(
    task: &T,
    alpha: impl Fn(usize) -> f64 + Sync,
    square: f64,
    intercept: Intercept,
) -> f64 {
    let loss = task.loss();
    let [gain, pull] = sum_blocks(task.blocks(), |block| {
        let c = task.constraint(block);
        let alpha = alpha(block).clamp(0.0, loss.dual_limit(c.cost));
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
    // The objective is never negative, so zero is a better bound than a negative one.
    (gain - 0.5 * square - penalty).max(0.0)
}

/// The dual value at the dual point of a primal point, for a smooth loss and known scores: α_i = cost_i ·
/// loss'(violation_i), balanced where the threshold is free. It is a bound at every point, and equals the optimum at
/// the optimum.
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

/// Primal value and lower bound of a hinge task at a point with known scores. The bound is the dual value of the point,
/// with the hinge rounded off over a width: α_i = cost_i · h'(violation_i), balanced where the threshold is free. It is
/// a bound for the hinge itself, at any point and any width.
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

/// The value of the dual point α_i = cost_i · curve'(violation_i), or an error after a cancel.
fn value_behind<T: Independent>(
    task: &T,
    design: &Design,
    curve: Curve,
    scores: &[f64],
    threshold: f64,
    intercept: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    let alpha = |block: usize| {
        // After a cancel the value is discarded: skip the remaining blocks.
        if cancel.is_abandoned() {
            return 0.0;
        }
        let c = task.constraint(block);
        c.cost * curve.at(c.violation(scores, threshold)).derivative
    };
    let free = intercept == Intercept::Free;
    let balance = if free { Balance::between(task, alpha) } else { Balance::WHOLE };
    cancel.check()?;
    let bound = dual_value(task, design, |block| alpha(block) * balance.share(&task.constraint(block)), intercept);
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
    let mut alpha = parallel::collect(task.blocks(), CHUNK, dual_of);
    if intercept == Intercept::Free {
        balance(task, &mut alpha);
    }
    alpha
}

/// The dual point of a set of cuts, balanced where the threshold is free: α_i = Σ_k μ_k · cost_i · loss'(violation_i at
/// point k). Its bound is at least as high as that of the cuts.
pub(crate) fn dual_of_cuts<T: Independent>(task: &T, design: &Design, cuts: &[Cut], intercept: Intercept) -> Vec<f64> {
    let loss = task.loss();
    let mut alpha = vec![0.0; task.blocks()];
    for Cut { point, multiplier } in cuts {
        let (w, threshold) = point.split_at(design.cols());
        let scores = design.all_scores(w);
        let threshold = threshold.first().copied().unwrap_or(0.0);
        parallel::update(&mut alpha, CHUNK, |block, alpha| {
            let c = task.constraint(block);
            *alpha += multiplier * c.cost * loss.derivative(c.violation(&scores, threshold));
        });
    }
    if intercept == Intercept::Free {
        balance(task, &mut alpha);
    }
    alpha
}

/// Whether every dual variable lies in its box, up to rounding.
pub(crate) fn in_box<T: Independent>(task: &T, alpha: &[f64]) -> bool {
    let loss = task.loss();
    parallel::all(task.blocks(), CHUNK, |block| {
        let limit = loss.dual_limit(task.constraint(block).cost);
        alpha[block] >= 0.0 && alpha[block] <= limit * (1.0 + 1e-12)
    })
}

/// The constraints of a task without slack: the cost of a missed margin is infinite, so the dual variable has no upper
/// limit.
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

/// The smallest share of its margin that a constraint reaches, over the constraints with a positive cost.
pub(crate) fn reached<T: Independent>(task: &T, scores: &[f64], threshold: f64) -> f64 {
    let share = |block: usize| {
        let c = task.constraint(block);
        if c.cost > 0.0 { (c.margin - c.violation(scores, threshold)) / c.margin } else { f64::INFINITY }
    };
    chosen(task.blocks(), f64::INFINITY, share, |a, b| if a.is_nan() || a < b { a } else { b })
}

/// The objective of a hard margin, and the largest share of a margin that is missed; at most zero if no margin is
/// missed.
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
    // A NaN counts as a missed margin.
    let larger = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
    let shortfall = chosen(task.blocks(), f64::NEG_INFINITY, missed, larger);
    let penalty = if intercept == Intercept::Penalised { 0.5 * threshold * threshold } else { 0.0 };
    (half_square(w) + penalty, shortfall)
}

/// How far a point is from Σ α_i t_i = 0, relative to Σ |α_i t_i|; the furthest of several cuts.
pub(crate) fn imbalance<T: Independent>(task: &T, alpha: &[f64]) -> f64 {
    if task.cuts() > 1 {
        return by_cut(task).iter().map(|cut| imbalance_of_one(cut, |at| alpha[cut.own[at]])).fold(0.0, f64::max);
    }
    imbalance_of_one(task, |block| alpha[block])
}

fn imbalance_of_one<T: Independent>(task: &T, alpha: impl Fn(usize) -> f64 + Sync) -> f64 {
    let [net, total] = sum_blocks(task.blocks(), |block| {
        let pull = alpha(block) * task.constraint(block).threshold;
        [pull, pull.abs()]
    });
    if total > 0.0 { net.abs() / total } else { 0.0 }
}

/// The threshold that minimises the loss for given scores of rows. If there are several, the nearest to `near`.
pub(crate) fn best_threshold<T: Independent>(task: &T, score: impl Fn(usize) -> f64 + Sync, near: f64) -> f64 {
    match task.loss() {
        Loss::Hinge => best_for_hinge(task, score, near),
        Loss::SquaredHinge | Loss::Logistic => best_for_smooth(task, score, near),
    }
}

/// The loss is piecewise linear in b: the threshold is the kink at which its slope turns from negative to positive.
fn best_for_hinge<T: Independent>(task: &T, score: impl Fn(usize) -> f64 + Sync, near: f64) -> f64 {
    let kinks = Kinks { task, score };
    let first = -kinks.sum(|c, _| (c.cost * c.threshold).max(0.0));
    if first == 0.0 {
        // Nothing pulls the threshold up, and below all kinks the loss is zero.
        return near.min(kinks.least_above(f64::NEG_INFINITY));
    }
    let level = 1e-12 * first.abs();
    let Some(turn) = kinks.turn(first, -level) else { return near };
    let slope = first + kinks.sum(|c, kink| if kink <= turn { c.cost * c.threshold.abs() } else { 0.0 });
    if slope.abs() > level {
        return turn;
    }
    near.max(turn).min(kinks.least_above(turn))
}

/// The kink of the hinge of each block, as a function of the threshold, and by how much the slope of the sum rises
/// there. The kinks are computed when needed, never stored all at once.
struct Kinks<'a, T, S> {
    task: &'a T,
    score: S,
}

impl<T: Independent, S: Fn(usize) -> f64 + Sync> Kinks<'_, T, S> {
    /// About this many kinks are sorted in a round.
    const FEW: usize = 4096;

    #[inline]
    fn of(&self, block: usize) -> Option<(f64, f64)> {
        let c = self.task.constraint(block);
        let weight = c.cost * c.threshold.abs();
        (weight > 0.0).then(|| (c.violation_by(&self.score, 0.0) / c.threshold, weight))
    }

    /// The kinks of the blocks of a chunk that lie strictly between two values.
    fn between(&self, chunk: usize, ends: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
        let blocks = in_chunk(chunk, self.task.blocks());
        blocks.filter_map(|block| self.of(block)).filter(move |&(kink, _)| kink > ends.0 && kink < ends.1)
    }

    fn chunks(&self) -> usize {
        chunks_of(self.task.blocks())
    }

    fn sum(&self, term: impl Fn(&Constraint, f64) -> f64 + Sync) -> f64 {
        let [sum] = sum_blocks(self.task.blocks(), |block| {
            [self.of(block).map_or(0.0, |(kink, _)| term(&self.task.constraint(block), kink))]
        });
        sum
    }

    fn least_above(&self, value: f64) -> f64 {
        let least =
            |chunk| self.between(chunk, (value, f64::INFINITY)).map(|(kink, _)| kink).fold(f64::INFINITY, f64::min);
        parallel::map(self.chunks(), least).into_iter().fold(f64::INFINITY, f64::min)
    }

    /// The first kink from which the slope is at least `wanted`. Left of all kinks the slope is `slope`. Each round
    /// sorts a sample of the kinks, finds the two neighbours in the sample between which the answer lies, and continues
    /// with the kinks between them, until none are left.
    fn turn(&self, mut slope: f64, wanted: f64) -> Option<f64> {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for round in 0.. {
            let ends = (low, high);
            let left = |chunk: usize| self.between(chunk, ends).count();
            let left: usize = parallel::map(self.chunks(), left).into_iter().sum();
            if left == 0 {
                return high.is_finite().then_some(high);
            }
            let stride = left.div_ceil(Self::FEW);
            // Each chunk and round starts at another offset: the order of the rows may be periodic.
            let first = |chunk: usize| (scramble(scramble(round) ^ chunk as u64) % stride as u64) as usize;
            let some = |chunk: usize| self.between(chunk, ends).skip(first(chunk)).step_by(stride).collect::<Vec<_>>();
            let some: Vec<Vec<(f64, f64)>> = parallel::map(self.chunks(), some);
            let mut dividers: Vec<f64> = some.into_iter().flatten().map(|(kink, _)| kink).collect();
            dividers.sort_unstable_by(f64::total_cmp);
            dividers.dedup();
            let rises = self.rises(&dividers, ends);
            for (&divider, [before, here]) in dividers.iter().zip(rises) {
                if slope + before >= wanted {
                    high = divider;
                    break;
                }
                slope += before + here;
                if slope >= wanted {
                    return Some(divider);
                }
                low = divider;
            }
        }
        None
    }

    /// By how much the slope rises between each divider and the one before it, and at the divider itself.
    fn rises(&self, dividers: &[f64], ends: (f64, f64)) -> Vec<[f64; 2]> {
        /// Fixed, so that the result does not depend on the number of threads.
        const LANES: usize = 16;
        let lane = |lane: usize| {
            let mut rises = vec![[0.0; 2]; dividers.len() + 1];
            for chunk in self.chunks() * lane / LANES..self.chunks() * (lane + 1) / LANES {
                for (kink, weight) in self.between(chunk, ends) {
                    let at = dividers.partition_point(|&divider| divider < kink);
                    rises[at][usize::from(dividers.get(at) == Some(&kink))] += weight;
                }
            }
            rises
        };
        let lanes: Vec<Vec<[f64; 2]>> = parallel::map(LANES, lane);
        let sum = |at: usize| [0, 1].map(|part| lanes.iter().map(|rises| rises[at][part]).sum());
        (0..dividers.len()).map(sum).collect()
    }
}

/// The loss is smooth and convex in b: Newton steps within a shrinking bracket.
fn best_for_smooth<T: Independent>(task: &T, score: impl Fn(usize) -> f64 + Sync, near: f64) -> f64 {
    let loss = task.loss();
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut b = near;
    for _ in 0..200 {
        let [slope, curvature] = sum_blocks(task.blocks(), |block| {
            let c = task.constraint(block);
            let violation = c.violation_by(&score, b);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Rows with a sign and a cost each.
    struct Signed(Vec<(f64, f64)>);

    impl Independent for Signed {
        fn blocks(&self) -> usize {
            self.0.len()
        }

        fn loss(&self) -> Loss {
            Loss::Hinge
        }

        fn constraint(&self, block: usize) -> Constraint {
            let (sign, cost) = self.0[block];
            Constraint { row: block, against: None, coefficient: sign, threshold: sign, margin: 1.0, cost }
        }
    }

    /// All kinks, sorted: the first interval on which the loss is smallest.
    fn least_by_sorting(task: &Signed, scores: &[f64]) -> (f64, f64) {
        let mut kinks: Vec<f64> = (0..task.blocks())
            .map(|block| task.constraint(block))
            .filter(|c| c.cost > 0.0)
            .map(|c| c.violation(scores, 0.0) / c.threshold)
            .collect();
        kinks.sort_unstable_by(f64::total_cmp);
        let loss = |b: f64| primal_of_scores(task, &[], scores, b, Intercept::Free);
        // The loss is convex, so bisection finds the minimum.
        let (mut low, mut high) = (0, kinks.len() - 1);
        while low < high {
            let middle = (low + high) / 2;
            if loss(kinks[middle]) <= loss(kinks[middle + 1]) * (1.0 + 1e-14) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        let least = loss(kinks[low]);
        let last = (low..kinks.len()).take_while(|&at| loss(kinks[at]) <= least * (1.0 + 1e-13)).last();
        (kinks[low], kinks[last.unwrap_or(low)])
    }

    #[test]
    fn the_threshold_of_a_hinge_is_the_one_that_sorting_all_kinks_finds() {
        let mut random = Random::new(7, 0, 0);
        // Repeated values, costs of zero, a flat stretch, and enough blocks for several rounds of division.
        for (blocks, grain, costs) in [
            (2, 0.0, 1),
            (3, 0.0, 1),
            (50, 0.5, 3),
            (5_000, 0.25, 2),
            (40_000, 0.0, 1),
            (60_001, 0.01, 3),
            (60_000, 9.0, 1),
        ] {
            for share in [0.5, 0.03] {
                let row = |random: &mut Random| {
                    let sign = if random.uniform() < share { 1.0 } else { -1.0 };
                    (sign, if costs > 1 { random.below(costs) as f64 } else { 0.3 })
                };
                let mut rows: Vec<(f64, f64)> = (0..blocks).map(|_| row(&mut random)).collect();
                // Both classes occur.
                (rows[0], rows[1]) = ((1.0, 1.0), (-1.0, 1.0));
                let score = |random: &mut Random| {
                    let score = random.normal();
                    if grain > 0.0 { (score / grain).round() * grain } else { score }
                };
                let scores: Vec<f64> = (0..blocks).map(|_| score(&mut random)).collect();
                let task = Signed(rows);
                let (low, high) = least_by_sorting(&task, &scores);
                for near in [-3.0, 0.1, 3.0] {
                    let found = best_threshold(&task, |row| scores[row], near);
                    let loss = |b: f64| primal_of_scores(&task, &[], &scores, b, Intercept::Free);
                    assert!(
                        loss(found) <= loss(low) * (1.0 + 1e-12),
                        "{blocks} {grain} {share}: {found}, {low} {high}"
                    );
                    assert!(
                        found >= low - 1e-12 && found <= high + 1e-12,
                        "{blocks} {grain} {share}: {found} {low} {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_class_alone_leaves_the_threshold_wherever_nothing_costs() {
        let task = Signed(vec![(-1.0, 1.0), (-1.0, 2.0)]);
        assert_eq!(best_threshold(&task, |row| [0.5, 0.25][row], -9.0), -9.0);
        assert_eq!(best_threshold(&task, |row| [0.5, 0.25][row], 0.0), -1.5);
        let task = Signed(vec![(1.0, 1.0), (1.0, 2.0)]);
        assert_eq!(best_threshold(&task, |row| [0.5, 0.25][row], 9.0), 9.0);
        assert_eq!(best_threshold(&task, |row| [0.5, 0.25][row], 0.0), 0.75);
    }

    #[test]
    fn costs_that_pull_nowhere_leave_the_threshold_where_it_is() {
        let task = Signed(vec![(1.0, 0.0), (-1.0, 0.0)]);
        assert_eq!(best_threshold(&task, |row| [0.2, 0.4][row], 0.7), 0.7);
    }
}
