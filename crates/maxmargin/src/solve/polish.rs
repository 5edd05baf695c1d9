//! The last digits of a dual solution: an active-set method over kernel values of the blocks.
//!
//! ```text
//! min over α   ½ Σ_ij α_i α_j q_ij + ½ Σ_i d_i α_i² − Σ_i m_i α_i,   q_ij = a_i a_j k_ij [+ t_i t_j]
//! s.t.         0 ≤ α_i ≤ limit_i,   Σ_i t_i α_i = 0 where the threshold b is free
//! ```
//! Notation of [`super::smo`], the bracketed term if b is penalised. Near the solution, the blocks strictly between
//! their limits, the *members*, are assumed to lie on their margins. With g the gradient, the step δ solves
//!
//! ```text
//! q_MM δ + t_M b = −g_M,   t·δ = −t·α
//! ```
//! The step goes as far as the first limit, where a member leaves. After a full step, the block with the most violated
//! condition (g_i + t_i b ≥ 0 at zero, ≤ 0 at its limit) enters. The learned function is unique, but the dual point
//! need not be: a block that depends linearly on the members, for instance a copy of one, moves along the dependence,
//! where the value is linear, and replaces the first member that reaches a limit. Every iterate is feasible and the
//! value never rises, so an early stop does no harm. The equality is added to the matrix as ρ·ttᵀ before it is
//! factored, which changes no solution.
//!
//! **The threshold.** If no member determines b, an interval of values is optimal. Its middle is taken, which does not
//! depend on how often a row is repeated.
//!
//! Cost: O(members³) to begin with, a kernel row and O(members²) for a block that enters or leaves, O(blocks · members)
//! a step. It gives up if this takes more multiplications than the caller allows. It needs a start near the solution,
//! and it proves nothing: the caller computes the values of the result.

use super::cholesky::Cholesky;
use super::dot;
use super::values::imbalance;
use crate::run::Cancel;
use crate::task::{Independent, Intercept};

/// Kernel values between the blocks of a task, with the signs of both.
pub(crate) trait SignedGram {
    /// a_i a_j k_ij of one block with every block.
    fn row(&self, block: usize) -> Vec<f64>;
    /// Σ_j a_i a_j k_ij α_j of every block, from scratch.
    fn reached(&self, alpha: &[f64]) -> Vec<f64>;
    /// Multiplications that a row takes.
    fn cost(&self) -> f64;
}

/// A dual point, with its threshold and what each block reaches.
#[derive(Clone, Debug)]
pub(crate) struct Polished {
    /// One dual variable per block.
    pub(crate) alpha: Vec<f64>,
    /// b
    pub(crate) threshold: f64,
    /// a_i s_i of every block, without the threshold.
    pub(crate) reached: Vec<f64>,
}

/// The maximum number of kernel values kept: one row per member, one value per block.
const MOST_VALUES: usize = 1 << 25;

/// A pivot below this share of its diagonal counts as zero: the block depends on the members.
const DEPENDENT: f64 = 1e-12;

/// The gradients are recomputed this often: updates by steps lose digits.
const ROUNDS: usize = 4;

/// Exchanges in a round, in addition to two per member.
const EXCHANGES: usize = 200;

/// A condition counts as met if it is violated by less than this share of the values around it.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// A variable this close to a limit, as a share of it, may lie on the limit: it alone does not determine the threshold.
const AT_LIMIT: f64 = 1e-11;

/// Rounds of iterative refinement.
const REFINEMENTS: usize = 2;

/// A sum counts as balanced if its imbalance is below this share, which is rounding.
const BALANCED: f64 = 1e-13;

/// The solution of a task with hinge or squared hinge loss near a feasible dual point. None if that would take more than
/// `most_work` multiplications, if the result does not balance, or after a cancel.
pub(crate) fn polish<T: Independent>(
    task: &T,
    gram: &dyn SignedGram,
    intercept: Intercept,
    start: &[f64],
    most_work: f64,
    cancel: &Cancel,
) -> Option<Polished> {
    let mut set = ActiveSet::new(task, gram, intercept, start, most_work, cancel)?;
    let mut threshold = 0.0;
    for round in 0..ROUNDS {
        let exchanges;
        (threshold, exchanges) = set.solve()?;
        set.refresh();
        if round > 0 && exchanges == 0 {
            break;
        }
    }
    // Rounding in the last step may have left a variable slightly outside its box.
    set.alpha.iter_mut().zip(&set.limits).for_each(|(alpha, &limit)| *alpha = alpha.clamp(0.0, limit));
    let free = intercept == Intercept::Free;
    if cancel.is_raised() || (free && imbalance(task, &set.alpha) > BALANCED) {
        return None;
    }
    if intercept == Intercept::Penalised {
        threshold = set.pull();
    } else if set.equality {
        threshold = set.middle_threshold().unwrap_or(threshold);
    }
    let pulled = |block: usize| if intercept == Intercept::Penalised { set.pulls[block] * threshold } else { 0.0 };
    let reached = |block: usize| {
        set.gradient[block] + set.margins[block] - set.diagonal[block] * set.alpha[block] - pulled(block)
    };
    let reached: Vec<f64> = (0..set.alpha.len()).map(reached).collect();
    let finite = threshold.is_finite() && set.alpha.iter().chain(&reached).all(|value| value.is_finite());
    finite.then_some(Polished { reached, alpha: set.alpha, threshold })
}

/// The state of the method.
struct ActiveSet<'a> {
    gram: &'a dyn SignedGram,
    cancel: &'a Cancel,
    /// Whether the equality Σ t α = 0 holds.
    equality: bool,
    penalised: bool,
    /// t, m, d and the limits.
    pulls: Vec<f64>,
    margins: Vec<f64>,
    diagonal: Vec<f64>,
    limits: Vec<f64>,
    alpha: Vec<f64>,
    gradient: Vec<f64>,
    /// ρ
    weight: f64,
    /// By how much conditions may be violated.
    slack: f64,
    members: Vec<usize>,
    /// q of each member with every block, d included.
    rows: Vec<Vec<f64>>,
    /// The factor of q_MM + ρ·ttᵀ.
    factor: Cholesky,
    work: f64,
    most_work: f64,
}

impl<'a> ActiveSet<'a> {
    fn new<T: Independent>(
        task: &T,
        gram: &'a dyn SignedGram,
        intercept: Intercept,
        start: &[f64],
        most_work: f64,
        cancel: &'a Cancel,
    ) -> Option<ActiveSet<'a>> {
        let (loss, blocks) = (task.loss(), task.blocks());
        let constraints = || (0..blocks).map(|block| task.constraint(block));
        let limits: Vec<f64> =
            constraints().map(|c| if c.cost > 0.0 { loss.dual_limit(c.cost) } else { 0.0 }).collect();
        // Half the second derivative of the conjugate: d α² / 2 with d = 1 / (2 cost) for the squared hinge.
        let diagonal = constraints().map(|c| if c.cost > 0.0 { 2.0 * loss.dual_cost(1.0, c.cost) } else { 0.0 });
        let pulls: Vec<f64> = constraints().map(|c| c.threshold).collect();
        let felt = (0..blocks).any(|block| pulls[block] != 0.0 && limits[block] > 0.0);
        let alpha: Vec<f64> = start.iter().zip(&limits).map(|(alpha, limit)| alpha.clamp(0.0, *limit)).collect();
        let mut set = ActiveSet {
            gram,
            cancel,
            equality: intercept == Intercept::Free && felt,
            penalised: intercept == Intercept::Penalised,
            margins: constraints().map(|c| c.margin).collect(),
            diagonal: diagonal.collect(),
            pulls,
            limits,
            gradient: vec![0.0; blocks],
            weight: 1.0,
            slack: 0.0,
            members: Vec::new(),
            rows: Vec::new(),
            factor: Cholesky::default(),
            work: 0.0,
            most_work,
            alpha,
        };
        set.refresh();
        let inside: Vec<usize> = (0..blocks).filter(|&block| set.is_inside(block)).collect();
        let count = inside.len() as f64;
        let work = count * count * count / 6.0 + count * gram.cost();
        if inside.len().saturating_mul(blocks) > MOST_VALUES || work > most_work {
            return None;
        }
        if let Some(&first) = inside.first() {
            let row = set.row(first);
            let most = inside.iter().map(|&block| row[block].abs()).fold(0.0, f64::max);
            set.weight = if most > 0.0 { most } else { 1.0 };
        }
        if !set.enter_together(&inside) {
            inside.into_iter().take_while(|_| !cancel.is_raised()).for_each(|block| _ = set.enter(block));
        }
        Some(set)
    }

    fn is_inside(&self, block: usize) -> bool {
        self.alpha[block] > 0.0 && self.alpha[block] < self.limits[block]
    }

    /// Σ t α
    fn pull(&self) -> f64 {
        self.alpha.iter().zip(&self.pulls).map(|(alpha, pull)| alpha * pull).sum()
    }

    fn has_ended(&self) -> bool {
        self.cancel.is_raised() || self.work > self.most_work || self.members.len() * self.alpha.len() > MOST_VALUES
    }

    /// Recomputes the gradient. Its error so far becomes the slack of the conditions.
    fn refresh(&mut self) {
        let first = self.gradient.iter().all(|gradient| *gradient == 0.0);
        let reached = self.gram.reached(&self.alpha);
        let pull = if self.penalised { self.pull() } else { 0.0 };
        let (mut off, mut size) = (0.0f64, 0.0f64);
        for (block, reached) in reached.into_iter().enumerate() {
            let own = self.diagonal[block] * self.alpha[block] + self.pulls[block] * pull;
            let gradient = reached + own - self.margins[block];
            off = off.max((gradient - self.gradient[block]).abs());
            size = size.max(reached.abs()).max(self.margins[block].abs());
            self.gradient[block] = gradient;
        }
        self.slack = ROUNDING * size;
        if !first {
            self.slack = self.slack.max(2.0 * off);
        }
    }

    fn row(&mut self, block: usize) -> Vec<f64> {
        let mut row = self.gram.row(block);
        self.work += self.gram.cost();
        if self.penalised {
            row.iter_mut().zip(&self.pulls).for_each(|(value, pull)| *value += self.pulls[block] * pull);
        }
        row[block] += self.diagonal[block];
        row
    }

    /// An entry of the matrix that is factored, given the row of its first block.
    fn entry(&self, row: &[f64], first: usize, second: usize) -> f64 {
        let held = if self.equality { self.weight * self.pulls[first] * self.pulls[second] } else { 0.0 };
        row[second] + held
    }

    /// The row of the factor that a block would have after the members, and its squared pivot.
    fn factor_row(&mut self, row: &[f64], block: usize) -> (Vec<f64>, f64) {
        let entries = self.members.iter().map(|&member| self.entry(row, block, member));
        let found = self.factor.row(entries, self.entry(row, block, block));
        self.work += 0.5 * (self.members.len() * self.members.len()) as f64;
        found
    }

    fn push(&mut self, block: usize, row: Vec<f64>, mut factor: Vec<f64>, pivot: f64) {
        let least = f64::EPSILON * self.entry(&row, block, block).abs();
        factor.push(pivot.max(least).max(f64::MIN_POSITIVE).sqrt());
        self.members.push(block);
        self.rows.push(row);
        self.factor.push(factor);
    }

    /// Removes members.
    fn dismiss(&mut self, blocks: &[usize]) {
        for at in (0..self.members.len()).rev().filter(|&at| blocks.contains(&self.members[at])).collect::<Vec<_>>() {
            self.members.remove(at);
            self.rows.remove(at);
            self.factor.remove(at);
            self.work += ((self.members.len() - at) * (self.members.len() - at)) as f64;
        }
    }

    /// Adds the first members all at once, which is faster. Returns false, and adds none, if one depends on others.
    fn enter_together(&mut self, blocks: &[usize]) -> bool {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(blocks.len());
        for &block in blocks {
            if self.cancel.is_raised() {
                return false;
            }
            rows.push(self.row(block));
        }
        let entries = blocks.iter().zip(&rows);
        let matrix: Vec<f64> = entries
            .flat_map(|(&first, row)| blocks.iter().map(move |&second| (first, row, second)))
            .map(|(first, row, second)| self.entry(row, first, second))
            .collect();
        let Some(factor) = Cholesky::of(&matrix, blocks.len(), DEPENDENT) else { return false };
        (self.members, self.rows, self.factor) = (blocks.to_vec(), rows, factor);
        self.work += (blocks.len() as f64).powi(3) / 6.0;
        true
    }

    /// Adds a block, unless it depends on the members and reaches a limit before any of them. Returns true if anything
    /// moved or the block is in.
    fn enter(&mut self, block: usize) -> bool {
        let row = self.row(block);
        let mut moved = false;
        loop {
            let (factor, pivot) = self.factor_row(&row, block);
            if pivot > DEPENDENT * self.entry(&row, block, block) || self.has_ended() {
                self.push(block, row, factor, pivot);
                return true;
            }
            let mut direction: Vec<f64> = self.factor.back(factor.clone()).into_iter().map(|value| -value).collect();
            direction.push(1.0);
            let blocks: Vec<usize> = self.members.iter().copied().chain([block]).collect();
            let mut slope: f64 = blocks.iter().zip(&direction).map(|(&k, d)| d * self.gradient[k]).sum();
            if slope > 0.0 {
                direction.iter_mut().for_each(|value| *value = -*value);
                slope = -slope;
            }
            let (limit, stopped) = self.first_limits(&blocks, &direction, f64::INFINITY);
            // If rounding left some curvature, the step ends at its minimum if that comes first.
            let lowest = if pivot > 0.0 { -slope / pivot } else { f64::INFINITY };
            let step = limit.min(lowest);
            if !step.is_finite() {
                return moved;
            }
            let rows: Vec<&[f64]> = self.rows.iter().chain([&row]).map(Vec::as_slice).collect();
            advance(&mut self.alpha, &mut self.gradient, &blocks, &rows, &direction, step);
            moved |= step > 0.0;
            if lowest < limit {
                self.push(block, row, factor, pivot);
                return true;
            }
            stopped.iter().for_each(|&(block, end)| self.alpha[block] = end);
            let stopped: Vec<usize> = stopped.into_iter().map(|(block, _)| block).collect();
            self.dismiss(&stopped);
            if stopped.contains(&block) {
                return moved;
            }
        }
    }

    /// How far a direction goes, at most `most`, and the blocks that stop it there, with the limits they reach.
    fn first_limits(&self, blocks: &[usize], direction: &[f64], most: f64) -> (f64, Vec<(usize, f64)>) {
        let room = |block: usize, d: f64| {
            if d < 0.0 {
                self.alpha[block] / -d
            } else if d > 0.0 {
                (self.limits[block] - self.alpha[block]) / d
            } else {
                f64::INFINITY
            }
        };
        let pairs = || blocks.iter().copied().zip(direction.iter().copied());
        let step = pairs().map(|(block, d)| room(block, d)).fold(most, f64::min).max(0.0);
        let ends = |(block, d): (usize, f64)| (block, if d < 0.0 { 0.0 } else { self.limits[block] });
        let stopped = pairs().filter(|&(block, d)| room(block, d) <= step && room(block, d) < most).map(ends).collect();
        (step, stopped)
    }

    /// The step to the optimum over the members with the equality alone, and the threshold there if the members
    /// determine it.
    fn step(&mut self) -> (Vec<f64>, Option<f64>) {
        let members = &self.members;
        let pulls: Vec<f64> = members.iter().map(|&block| self.pulls[block]).collect();
        let holds = self.equality && pulls.iter().any(|&pull| pull != 0.0);
        let pulled = if holds { self.factor.solve(pulls.clone()) } else { Vec::new() };
        let held = dot(&pulls, &pulled);
        let (mut delta, mut threshold) = (vec![0.0; members.len()], 0.0);
        for _ in 0..=REFINEMENTS {
            let rest = members.iter().zip(&self.rows).map(|(&block, row)| {
                let moved: f64 = members.iter().zip(&delta).map(|(&member, d)| row[member] * d).sum();
                -self.gradient[block] - moved - if holds { self.pulls[block] * threshold } else { 0.0 }
            });
            let correction = self.factor.solve(rest.collect());
            if !holds {
                delta.iter_mut().zip(correction).for_each(|(delta, correction)| *delta += correction);
                continue;
            }
            // The equality requires t·(δ + u − v y) = −t·α. b moves by y, minus the part that ρ accounts for.
            let missing = self.pull() + dot(&pulls, &delta);
            let share = (dot(&pulls, &correction) + missing) / held;
            for ((delta, correction), pulled) in delta.iter_mut().zip(correction).zip(&pulled) {
                *delta += correction - share * pulled;
            }
            threshold += share - self.weight * missing;
        }
        self.work += (members.len() * (2 * (REFINEMENTS + 2) * members.len() + self.alpha.len())) as f64;
        (delta, holds.then_some(threshold))
    }

    /// Exchanges blocks until every condition is met, or the limit is reached. Returns the threshold, and how many
    /// blocks entered or left. None if the result is not usable.
    fn solve(&mut self) -> Option<(f64, usize)> {
        let (mut exchanges, mut found) = (0, 0.0);
        let mut hopeless = vec![false; self.alpha.len()];
        let mut entered = None;
        for _ in 0..EXCHANGES + 2 * self.members.len() {
            if self.has_ended() {
                return None;
            }
            let (delta, threshold) = self.step();
            if delta.iter().any(|value| !value.is_finite()) {
                return None;
            }
            let (step, stopped) = self.first_limits(&self.members, &delta, 1.0);
            let rows: Vec<&[f64]> = self.rows.iter().map(Vec::as_slice).collect();
            advance(&mut self.alpha, &mut self.gradient, &self.members, &rows, &delta, step);
            if !stopped.is_empty() {
                exchanges += 1;
                stopped.iter().for_each(|&(block, end)| self.alpha[block] = end);
                let stopped: Vec<usize> = stopped.into_iter().map(|(block, _)| block).collect();
                // It entered and left at once: its condition looks violated only because of rounding.
                if let Some(block) = entered.filter(|block| step == 0.0 && stopped.contains(block)) {
                    hopeless[block] = true;
                }
                self.dismiss(&stopped);
                entered = None;
                continue;
            }
            if entered.is_some_and(|block| self.is_inside(block)) {
                hopeless.fill(false);
            }
            let worst;
            (found, worst) = match threshold {
                Some(threshold) => (threshold, self.most_missed(threshold, &hopeless)),
                None if self.equality => {
                    let (low, high) = self.interval(|block| self.members.contains(&block));
                    match (low, high) {
                        (Some((low, block)), Some((high, _))) if low > high + self.slack && !hopeless[block] => {
                            (0.5 * (low + high), Some(block))
                        }
                        _ => {
                            let middle = middle(low, high);
                            (middle, self.most_missed(middle, &hopeless))
                        }
                    }
                }
                None => (0.0, self.most_missed(0.0, &hopeless)),
            };
            let Some(block) = worst else { break };
            exchanges += 1;
            if !self.enter(block) {
                hopeless[block] = true;
            }
            entered = Some(block);
        }
        Some((found, exchanges))
    }

    /// The block with the most violated condition.
    fn most_missed(&self, threshold: f64, hopeless: &[bool]) -> Option<usize> {
        let (mut worst, mut most) = (None, self.slack);
        for block in (0..self.alpha.len()).filter(|&block| self.limits[block] > 0.0 && !hopeless[block]) {
            let slope = self.gradient[block] + if self.equality { self.pulls[block] * threshold } else { 0.0 };
            let missed = if self.alpha[block] <= 0.0 { -slope } else { slope };
            // Members meet their conditions.
            if missed > most && !self.is_inside(block) && !self.members.contains(&block) {
                (worst, most) = (Some(block), missed);
            }
        }
        worst
    }

    /// The lowest and the highest threshold that meet the conditions of all blocks except some, with the blocks that
    /// set them.
    fn interval(&self, but: impl Fn(usize) -> bool) -> (End, End) {
        let (mut low, mut high): (End, End) = (None, None);
        for block in 0..self.alpha.len() {
            let pull = self.pulls[block];
            if pull == 0.0 || self.limits[block] <= 0.0 || but(block) {
                continue;
            }
            let at = -self.gradient[block] / pull;
            // At one limit or the other, up to rounding.
            let at_zero = self.alpha[block] <= 0.0 || self.alpha[block] < 0.5 * self.limits[block];
            if (pull > 0.0) == at_zero {
                low = Some(low.filter(|low| low.0 >= at).unwrap_or((at, block)));
            } else {
                high = Some(high.filter(|high| high.0 <= at).unwrap_or((at, block)));
            }
        }
        (low, high)
    }

    /// Whether a block is inside its limits by more than rounding.
    fn is_well_inside(&self, block: usize) -> bool {
        let (alpha, limit) = (self.alpha[block], self.limits[block]);
        if limit.is_finite() { alpha > AT_LIMIT * limit && limit - alpha > AT_LIMIT * limit } else { alpha > 0.0 }
    }

    /// The middle of all optimal thresholds, if no block inside its limits determines the threshold.
    fn middle_threshold(&self) -> Option<f64> {
        if (0..self.alpha.len()).any(|block| self.pulls[block] != 0.0 && self.is_well_inside(block)) {
            return None;
        }
        let (low, high) = self.interval(|_| false);
        Some(middle(low, high))
    }
}

/// An end of an interval of thresholds, if there is one, and the block that sets it.
type End = Option<(f64, usize)>;

fn middle(low: End, high: End) -> f64 {
    match (low, high) {
        (Some((low, _)), Some((high, _))) => 0.5 * (low + high),
        (Some((end, _)), None) | (None, Some((end, _))) => end,
        (None, None) => 0.0,
    }
}

/// Moves some of the dual variables and updates all gradients.
fn advance(alpha: &mut [f64], gradient: &mut [f64], blocks: &[usize], rows: &[&[f64]], direction: &[f64], step: f64) {
    for ((&block, row), d) in blocks.iter().zip(rows).zip(direction) {
        let moved = step * d;
        if moved != 0.0 {
            alpha[block] += moved;
            gradient.iter_mut().zip(*row).for_each(|(gradient, value)| *gradient += moved * value);
        }
    }
}
