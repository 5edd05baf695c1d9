//! Dual coordinate descent for linear tasks with one constraint per block.
//!
//! ```text
//! min over α   ½‖Σ_i α_i a_i x_i‖² + Σ_i (cost_i · loss*(α_i / cost_i) − α_i m_i)
//! s.t.         0 ≤ α_i ≤ limit_i,   and Σ_i α_i t_i = 0 where the threshold b is free
//! ```
//! Notation of [`crate::task::Constraint`]: a coefficient, t threshold coefficient, m margin; w = Σ α_i a_i x_i.
//!
//! One step minimises exactly over one α_i: G = a_i w·x_i + t_i b − m_i + d_i α_i, α_i ← clip(α_i − G / q_i), where q_i
//! = ‖a_i x_i‖² + d_i and d_i = 1/(2 cost_i) for squared hinge, 0 for hinge. Logistic loss takes a few Newton steps in
//! one variable instead (Yu, Huang & Lin, Dual coordinate descent methods for logistic regression and maximum entropy
//! models, Machine Learning 85, 2011). For a constraint between two rows, x is their difference. A pass visits the
//! active rows in a new random order. Rows stuck at a bound leave the active set until the others have converged (Hsieh
//! et al., A dual coordinate descent method for large-scale linear SVM, ICML 2008, algorithms 1 and 3).
//!
//! **Free threshold.** One coordinate cannot move under Σ α_i t_i = 0. We add κ/2·(Σ α_i t_i)² to the dual, that is a
//! proximal term (b − b₀)²/(2κ) to the primal, let the steps see b = b₀ + κ·Σ α_i t_i, and move the centre b₀ to b
//! after each pass: the method of multipliers. The reported values do not depend on how far that has converged: the
//! primal takes the best b for the current w (to about seven digits if the tolerance is coarse), the dual the balanced
//! point of [`super::values`].
//!
//! **Scaling** is folded in, and sparse rows stay sparse: see [`super::scaled_rows`].
//!
//! **Two cores.** Large data that are not scaled are cut into two halves, even and odd rows, at any number of threads.
//! In a round each half takes steps on a small share of its rows against its own copy of the weights, in which its own
//! changes count σ-fold (as does its curvature). Then both changes are added up. σ = 2 is always safe (Ma et al.,
//! Adding vs. averaging in distributed primal-dual optimization, ICML 2015), a smaller σ is faster. σ starts at 1.25
//! and grows if a pass does not reduce the gap. A round after which the dual has fallen is undone and repeated with a
//! larger σ.
//!
//! **Data larger than memory.** If the memory for the matrix is limited, a pass goes through blocks of rows in a random
//! order and through the rows of each block in a random order (`data/residency.rs`): the same optimum and the same
//! certificate, by another sequence of steps.
//!
//! Stops at a relative gap. The gap is recomputed from scratch when a free estimate suggests it: with w = w(α) the gap
//! is Σ_i (cost_i · loss(v_i) + dual cost of α_i − α_i v_i), v the violations, and each visit adds its own term. Cost:
//! O(entries) a pass, mostly dot products and fetching rows in random order; a check costs the same, in parallel. It
//! does not solve tasks whose constraints share a slack.

mod coordinate;
mod halves;

use super::values::{Balance, best_threshold, dual_value, primal_in_passing, primal_of_scores};
use super::{Progress, Sizes, Solution, Start, Stop, Witness, overflow, relative_gap};
use crate::data::{Design, NarrowScores, Rows, Visits, with_rows};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::Random;
use crate::run::{Cancel, Observer};
use crate::task::{Independent, Intercept};
use coordinate::{Fixed, Sums, View, Visited};
pub(super) use halves::merge;
use halves::{Half, Packed, round_length};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct DualCoordinateDescent {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of passes.
    pub max_passes: u64,
    /// Seeds the order of visits.
    pub seed: u64,
    /// How the threshold is treated.
    pub intercept: Intercept,
}

/// The stream of random numbers for the order of visits.
const VISITS: u64 = 0x6463_6400;
/// The stream of random numbers for the order of blocks of rows.
const ROW_BLOCKS: u64 = 0x6463_6401;

/// Bytes a row: signs and costs, slots (half of them twice while they are distributed), the order of visits, scores, and the
/// witness twice while it is written to the file.
const ROW_BYTES: u64 = 64;

/// What it allocates beside the features.
pub(super) fn bytes(sizes: &Sizes) -> u64 {
    ROW_BYTES * sizes.rows_and_pairs()
}

impl DualCoordinateDescent {
    /// Solves the task over the rows of `design`, from the dual variables of `start` if it has any.
    pub fn solve<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        if task.blocks() > u32::MAX as usize {
            return Err(Error::new(
                Code::BadSetting,
                "more than 4,294,967,295 rows; dual coordinate descent takes fewer",
            ));
        }
        let progress = Progress::new(observer, cancel);
        with_rows!(design.matrix(), rows => State::new(self, task, design, rows, start, cancel)?.run(self, progress))
    }
}

/// The variables of the main loop.
struct State<'a, T, R> {
    fixed: Fixed<'a, T, R>,
    intercept: Intercept,
    /// Whether the best threshold is computed from scores in f32.
    narrow: bool,
    /// Blocks of a round, if two halves work side by side.
    round_length: Option<usize>,
    halves: Vec<Half>,
    /// Draws the order of blocks of rows, if memory is limited.
    row_blocks: Random,
    visits: Visits,
    /// F² · Σ α a x
    v: Vec<f64>,
    sums: Sums,
    view: View,
}

impl<'a, T: Independent, R: Rows> State<'a, T, R> {
    fn new(
        settings: &DualCoordinateDescent,
        task: &'a T,
        design: &'a Design,
        rows: &'a R,
        start: Option<&Start>,
        cancel: &Cancel,
    ) -> Result<State<'a, T, R>> {
        let (fixed, slots) = Fixed::new(settings.intercept, task, design, rows, cancel)?;
        let round_length = round_length(design, task.blocks());
        let halves = if round_length.is_some() { 2 } else { 1 };
        // Only half of the slots are held twice at a time.
        let mut slots = Some(slots);
        let half = |number: usize| {
            let slots = match &mut slots {
                Some(all) if halves == 2 && number == 0 => {
                    let own = all.iter().step_by(2).copied().collect();
                    let others = all.len() / 2;
                    (0..others).for_each(|at| all[at] = all[2 * at + 1]);
                    all.truncate(others);
                    all.shrink_to_fit();
                    own
                }
                slots => slots.take().unwrap_or_default(),
            };
            let random = Random::new(settings.seed, VISITS, number as u64);
            Half::new(number, halves, slots, random, if halves == 1 { 0 } else { design.cols() })
        };
        let mut state = State {
            fixed,
            intercept: settings.intercept,
            // If blocks are not rows, all scores must be kept in any case.
            narrow: settings.tolerance >= NARROW_TOLERANCE && task.blocks_are_rows(),
            round_length,
            halves: (0..halves).map(half).collect(),
            row_blocks: Random::new(settings.seed, ROW_BLOCKS, 0),
            visits: Visits::default(),
            v: vec![0.0; design.cols()],
            sums: Sums::default(),
            view: View {
                centre: 0.0,
                sigma: if halves == 2 { FIRST_SIGMA } else { 1.0 },
                shrink_above: f64::INFINITY,
                shrink_below: f64::NEG_INFINITY,
            },
        };
        if let Some(start) = start {
            state.start_at(start);
        }
        state.reactivate();
        Ok(state)
    }

    /// Takes over the dual variables of a neighbouring problem, and their weights.
    fn start_at(&mut self, start: &Start) {
        let Some(dual) = &start.dual else { return };
        let (fixed, halves) = (&self.fixed, self.halves.len());
        for (block, &alpha) in dual.iter().enumerate() {
            let c = fixed.task.constraint(block);
            let alpha = alpha.clamp(0.0, fixed.loss.dual_limit(c.cost));
            if alpha == 0.0 {
                continue;
            }
            self.halves[block % halves].slots[block / halves].alpha = alpha;
            let step = alpha * c.coefficient;
            fixed.rows.add(c.row, step, &mut self.v, &mut self.sums.rows);
            if let Some(row) = c.against {
                fixed.rows.add(row, -step, &mut self.v, &mut self.sums.rows);
            }
            fixed.rows.design().passed(c.row..c.row + 1);
            self.sums.pull += alpha * c.threshold;
            self.sums.gain += alpha * c.margin - fixed.loss.dual_cost(alpha, c.cost);
        }
        if halves == 2 {
            self.halves.iter_mut().for_each(|half| half.v.copy_from_slice(&self.v));
        }
        // The steps see b = centre + κ·Σ α t: set it to the neighbour's b, for any dual variables.
        if self.intercept == Intercept::Free {
            self.view.centre = start.thresholds.first().copied().unwrap_or(0.0) - fixed.kappa * self.sums.pull;
        }
    }

    fn active(&self) -> usize {
        self.halves.iter().map(|half| half.active.len()).sum()
    }

    fn threshold(&self) -> f64 {
        self.view.centre + self.fixed.kappa * self.sums.pull
    }

    /// The dual variable of a block.
    #[inline]
    fn alpha(&self, block: usize) -> f64 {
        let halves = self.halves.len();
        self.halves[block % halves].slots[block / halves].alpha
    }

    /// The weights of the scaled features.
    fn weights(&self) -> Vec<f64> {
        self.fixed.rows.weights(&self.v, &self.sums.rows)
    }

    /// One pass over the active blocks. Returns what the visits recorded, or none after a cancel.
    fn pass(&mut self, cancelled: impl Fn() -> bool) -> Option<Visited> {
        let residency = self.fixed.rows.design().matrix().residency();
        self.visits = Visits::new(&residency, &mut self.row_blocks);
        let visited = match self.round_length {
            None => {
                let State { fixed, halves, v, sums, view, visits, .. } = self;
                let half = &mut halves[0];
                half.shuffle(fixed.task, visits, &residency);
                half.pass(fixed, v, sums, view, visits, cancelled)?
            }
            Some(length) => self.pass_in_rounds(length, cancelled)?,
        };
        self.halves.iter_mut().for_each(Half::shrink);
        self.view.shrink_above = if visited.highest > 0.0 { visited.highest } else { f64::INFINITY };
        self.view.shrink_below = if visited.lowest < 0.0 { visited.lowest } else { f64::NEG_INFINITY };
        if self.intercept == Intercept::Free {
            self.view.centre = self.threshold();
        }
        Some(visited)
    }

    fn pass_in_rounds(&mut self, length: usize, cancelled: impl Fn() -> bool) -> Option<Visited> {
        let residency = self.fixed.rows.design().matrix().residency();
        // Blocks of rows are released between rounds.
        let least = if residency.is_limited() { 2 * residency.blocks() } else { 1 };
        let rounds = self.active().div_ceil(length).max(least);
        let State { fixed, halves, v, sums, view, visits, .. } = self;
        let [even, odd] = &mut halves[..] else { return None };
        let task = fixed.task;
        parallel::join(|| even.shuffle(task, visits, &residency), || odd.shuffle(task, visits, &residency));
        let mut visited = Visited::NOTHING;
        let mut square: f64 = v.iter().map(|v| v * v).sum();
        for round in 0..rounds {
            loop {
                if cancelled() {
                    return None;
                }
                let before = *sums;
                let ((a, seen_a), (b, seen_b)) = parallel::join(
                    || even.round(round, rounds, fixed, before, view),
                    || odd.round(round, rounds, fixed, before, view),
                );
                // The changes of each half, whose own copy holds σ times as much.
                let share = 1.0 / view.sigma;
                let pull = share * ((a.pull - before.pull) + (b.pull - before.pull));
                let gain = (a.gain - before.gain) + (b.gain - before.gain);
                let merged_square = merge(v, &mut even.v, &mut odd.v, share);
                let after = before.pull + pull;
                let rise = gain
                    - 0.5 * (merged_square - square)
                    - view.centre * pull
                    - 0.5 * fixed.kappa * (after * after - before.pull * before.pull);
                if rise < -1e-12 * square.max(1.0) && view.sigma < SAFE_SIGMA {
                    parallel::join(|| even.undo(v), || odd.undo(v));
                    view.sigma = (view.sigma * 1.25).min(SAFE_SIGMA);
                    continue;
                }
                v.copy_from_slice(&even.v);
                square = merged_square;
                (sums.pull, sums.gain) = (after, before.gain + gain);
                visited = visited.join(seen_a).join(seen_b);
                break;
            }
            let next = [&*even, &*odd].map(|half| half.next_round(task, round + 1, rounds));
            visits.moved(&residency, next.into_iter());
        }
        Some(visited)
    }

    /// Puts all blocks with a positive cost back into the active set.
    fn reactivate(&mut self) {
        self.halves.iter_mut().for_each(|half| half.reactivate(self.fixed.task));
        self.view.shrink_above = f64::INFINITY;
        self.view.shrink_below = f64::NEG_INFINITY;
    }

    /// ½‖w‖², from the values that the loop keeps.
    fn half_square(&self) -> f64 {
        let w = if self.fixed.rows.design().factor().is_none() && self.fixed.rows.design().shift().is_none() {
            return 0.5 * self.v.iter().map(|v| v * v).sum::<f64>();
        } else {
            self.weights()
        };
        0.5 * w.iter().map(|w| w * w).sum::<f64>()
    }

    /// The relative gap estimated from the last pass: good enough to decide when to check.
    fn guess(&self, visited: &Visited) -> f64 {
        let dual = self.sums.gain - self.half_square();
        relative_gap(dual + visited.gap, dual)
    }

    fn run(mut self, settings: &DualCoordinateDescent, mut progress: Progress<'_>) -> Result<Solution> {
        let everything = self.active();
        let mut best =
            Best { objective: f64::INFINITY, weights: Vec::new(), threshold: 0.0, bound: 0.0, balance: None };
        let mut pass = 0;
        let mut next_check = FIRST_CHECK;
        let mut next_guess = 1;
        let mut last_guess = f64::INFINITY;
        let mut inner_tolerance = 0.1;
        let stop = loop {
            let visited = if pass < settings.max_passes {
                let Some(visited) = self.pass(|| progress.cancelled()) else { break Stop::Cancelled };
                pass += 1;
                visited
            } else {
                Visited::NOTHING
            };
            let spread = visited.spread();
            let guess = self.guess(&visited);
            let promising = pass >= next_guess && guess <= PROMISING * settings.tolerance;
            // If the halves undo each other's steps, damp them before the dual falls.
            if guess > last_guess && self.halves.len() == 2 {
                self.view.sigma = (self.view.sigma * 1.25).min(SAFE_SIGMA);
            }
            last_guess = guess;
            let settled = spread <= inner_tolerance;
            let whole = self.active() == everything;
            if settled && !whole && pass < settings.max_passes {
                self.reactivate();
                last_guess = f64::INFINITY;
            }
            let last = pass >= settings.max_passes;
            let due = pass >= next_check || promising || last || (settled && whole);
            if !due {
                continue;
            }
            next_check = (pass + 1 + pass / 4).max(FIRST_CHECK);
            next_guess = pass + 1 + pass / 8;
            // The check reuses the memory of the order for the scores of all rows.
            let packed: Vec<Packed> = self.halves.iter_mut().map(Half::pack).collect();
            self.check(&mut best, settings.tolerance, last)?;
            self.halves.iter_mut().zip(&packed).for_each(|(half, packed)| half.unpack(packed));
            progress.bound(Some(best.bound));
            if last {
                // The result is the last point, whose bound may be lower than an earlier one.
                progress.lower_bound = Some(best.bound);
            }
            if progress.report(pass, best.objective, &best.weights, &best.thresholds(self.intercept)) {
                break Stop::Cancelled;
            }
            if relative_gap(best.objective, best.bound) <= settings.tolerance && best.balance.is_some() {
                break Stop::Converged;
            }
            if last {
                break Stop::PassLimit;
            }
            // The estimate ignores blocks outside the active set: if the true gap is larger, some of them must return.
            if relative_gap(best.objective, best.bound) > WRONG_GUESS * guess && self.active() < everything {
                self.reactivate();
                last_guess = f64::INFINITY;
                // The next pass visits all blocks, so its estimate is right.
                next_guess = pass + 1;
            }
            if settled && whole {
                if spread == 0.0 && self.intercept != Intercept::Free {
                    break Stop::Stalled;
                }
                inner_tolerance = (inner_tolerance * 0.25).min(spread * 0.5);
            }
        };
        if best.balance.is_none() || best.weights.is_empty() {
            // Stopped between checks: compute the true values of the current point.
            progress.check_wanted()?;
            self.check(&mut best, f64::INFINITY, true)?;
        }
        Ok(Solution {
            thresholds: best.thresholds(self.intercept),
            weights: best.weights,
            objective: best.objective,
            lower_bound: Some(best.bound),
            witness: Witness::Dual(self.into_dual(best.balance.unwrap_or(Balance::WHOLE))),
            passes: pass,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        })
    }

    /// Recomputes the primal value and keeps the better point. The dual value comes from the running sums. If it would
    /// prove the tolerance, or if `exactly` is set, it is recomputed from the dual variables.
    fn check(&self, best: &mut Best, tolerance: f64, exactly: bool) -> Result<()> {
        let w = self.weights();
        let (task, design) = (self.fixed.task, self.fixed.rows.design());
        let (threshold, objective) = self.best_value(&w);
        if !objective.is_finite() || !threshold.is_finite() {
            return Err(overflow());
        }
        if objective < best.objective || best.weights.is_empty() {
            (best.objective, best.weights, best.threshold) = (objective, w, threshold);
        }
        if self.intercept != Intercept::Free {
            let penalty = 0.5 * self.fixed.kappa * self.sums.pull * self.sums.pull;
            let bound = (self.sums.gain - self.half_square() - penalty).max(0.0);
            if !exactly && relative_gap(best.objective, bound) > tolerance {
                // The dual value never falls, so no earlier point has a better bound.
                (best.bound, best.balance) = (bound, None);
                return Ok(());
            }
        }
        let balance = match self.intercept {
            Intercept::Free => Balance::between(task, |block| self.alpha(block)),
            _ => Balance::WHOLE,
        };
        let alpha = |block: usize| self.alpha(block) * balance.share(&task.constraint(block));
        best.bound = dual_value(task, design, alpha, self.intercept);
        let proven = exactly || relative_gap(best.objective, best.bound) <= tolerance;
        best.balance = proven.then_some(balance);
        Ok(())
    }

    /// The best threshold for these weights, and the primal value there.
    fn best_value(&self, w: &[f64]) -> (f64, f64) {
        let (task, design, near) = (self.fixed.task, self.fixed.rows.design(), self.threshold());
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => near,
            Intercept::Free if self.narrow => {
                let scores = NarrowScores::new(design, w);
                best_threshold(task, |row| scores.of(row), near)
            }
            Intercept::Free => {
                let scores = design.all_scores(w);
                let threshold = best_threshold(task, |row| scores[row], near);
                return (threshold, primal_of_scores(task, w, &scores, threshold, self.intercept));
            }
        };
        (threshold, primal_in_passing(task, design, w, threshold, self.intercept))
    }

    /// The dual variables, balanced. Slots are released while the variables are written, so that both are never in
    /// memory completely at the same time.
    fn into_dual(self, balance: Balance) -> Vec<f64> {
        self.into_dual_by(1 << 16, balance)
    }

    /// The same, `at_a_time` blocks at a time, which must be even.
    fn into_dual_by(mut self, at_a_time: usize, balance: Balance) -> Vec<f64> {
        let (task, halves) = (self.fixed.task, self.halves.len());
        self.halves.iter_mut().for_each(|half| half.active = Vec::new());
        let mut dual = vec![0.0; task.blocks()];
        for (number, run) in dual.chunks_mut(at_a_time).enumerate().rev() {
            let start = number * at_a_time;
            for (block, dual) in (start..).zip(run) {
                *dual = self.alpha(block) * balance.share(&task.constraint(block));
            }
            for half in &mut self.halves {
                half.slots.truncate(start / halves);
                half.slots.shrink_to_fit();
            }
        }
        dual
    }
}

/// The first σ on two halves. Measured on text: 1 costs a fifth more visits, 2 a seventh.
const FIRST_SIGMA: f64 = 1.25;

/// At this tolerance or a coarser one, scores are f32: the threshold then costs about a ten millionth more, which is
/// negligible.
const NARROW_TOLERANCE: f64 = 1e-4;

/// With this σ the dual never falls.
const SAFE_SIGMA: f64 = 2.0;

/// No check before this pass unless the estimate suggests one: the first passes are far from any tolerance.
const FIRST_CHECK: u64 = 8;

/// If the gap is this many times the estimate, more steps on the active blocks would not explain it.
const WRONG_GUESS: f64 = 2.0;

/// A check is worth its pass over the data once the estimate, which lags behind, is within this factor of the
/// tolerance.
const PROMISING: f64 = 1.25;

/// The best primal and the best dual point so far.
struct Best {
    objective: f64,
    weights: Vec<f64>,
    threshold: f64,
    bound: f64,
    /// The factors that balance the current dual variables, if the bound was recomputed from them.
    balance: Option<Balance>,
}

impl Best {
    fn thresholds(&self, intercept: Intercept) -> Vec<f64> {
        if intercept == Intercept::None { Vec::new() } else { vec![self.threshold] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Scaling};
    use crate::loss::Loss;
    use crate::task::Constraint;

    struct Rows(usize);

    impl Independent for Rows {
        fn blocks(&self) -> usize {
            self.0
        }

        fn loss(&self) -> Loss {
            Loss::Hinge
        }

        fn constraint(&self, block: usize) -> Constraint {
            let sign = if block.is_multiple_of(3) { 1.0 } else { -1.0 };
            Constraint { row: block, against: None, coefficient: sign, threshold: sign, margin: 1.0, cost: 100.0 }
        }
    }

    #[test]
    fn dual_variables_come_out_in_order_however_many_are_written_at_a_time() {
        for rows in [1, 2, 9, 40, 41] {
            let dense = Dense::new(vec![1.0; rows], rows, 1).expect("rows of one length");
            let design = Scaling::default().apply(&Matrix::DenseF64(dense.clone()), None).expect("no scaling");
            let (task, intercept) = (Rows(rows), Intercept::Free);
            let settings = DualCoordinateDescent { tolerance: 1e-3, max_passes: 1, seed: 0, intercept };
            for halves in [1, 2] {
                for at_a_time in [2, 4, 10, 64] {
                    let mut state =
                        State::new(&settings, &task, &design, &dense, None, &Cancel::new()).expect("finite");
                    let (_, slots) = Fixed::new(intercept, &task, &design, &dense, &Cancel::new()).expect("finite");
                    let own = |number| slots.iter().skip(number).step_by(halves).copied().collect();
                    let random = Random::new(0, 0, 0);
                    state.halves =
                        (0..halves).map(|number| Half::new(number, halves, own(number), random.clone(), 0)).collect();
                    for block in 0..rows {
                        state.halves[block % halves].slots[block / halves].alpha = 1.0 + block as f64;
                    }
                    let balance = Balance::between(&task, |block| 1.0 + block as f64);
                    let expected: Vec<f64> =
                        (0..rows).map(|at| (1.0 + at as f64) * balance.share(&task.constraint(at))).collect();
                    assert_eq!(state.into_dual_by(at_a_time, balance), expected, "{rows} {halves} {at_a_time}");
                }
            }
        }
    }
}
