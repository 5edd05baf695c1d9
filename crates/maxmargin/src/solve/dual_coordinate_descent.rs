//! Dual coordinate descent for linear tasks with one constraint a block.
//!
//! ```text
//! min over α   ½‖Σ_i α_i a_i x_i‖² + Σ_i (cost_i · loss*(α_i / cost_i) − α_i m_i)
//! s.t.         0 ≤ α_i ≤ limit_i,   and Σ_i α_i t_i = 0 where the threshold b is free
//! ```
//! Notation of [`crate::task::Constraint`]: a coefficient, t threshold coefficient, m margin; w = Σ α_i a_i x_i.
//!
//! One step minimises exactly over one α_i: G = a_i w·x_i + t_i b − m_i + d_i α_i, α_i ← clip(α_i − G / q_i), where
//! q_i = ‖a_i x_i‖² + d_i and d_i = 1/(2 cost_i) for squared hinge, 0 for hinge; logistic loss takes a few Newton steps
//! in one variable instead (Yu, Huang & Lin, Dual coordinate descent methods for logistic regression and maximum entropy
//! models, Machine Learning 85, 2011). A constraint between two rows stands for their difference x. A pass visits the active rows in a fresh
//! random order; rows stuck at a bound leave the active set until it has converged (Hsieh et al., A dual coordinate
//! descent method for large-scale linear SVM, ICML 2008, algorithms 1 and 3).
//!
//! **Free threshold.** One coordinate cannot move under Σ α_i t_i = 0. We add κ/2·(Σ α_i t_i)² to the dual, that is a
//! proximal term (b − b₀)²/(2κ) to the primal, let the steps see b = b₀ + κ·Σ α_i t_i, and move the centre b₀ to b after
//! each pass: the method of multipliers. What is reported does not depend on how far that has come: the primal takes the
//! best b for the current w, the dual the balanced point of [`super::certificate`].
//!
//! **Scaling** is folded in: with x' = F(x − μ) the loop keeps v = F²·Σ α a (x − μ) for dense rows. Sparse rows stay
//! sparse: there it keeps v = F²·Σ α a x and three scalars, from which the scores of the scaled rows follow.
//!
//! **Two cores.** Large data are cut into two halves, even and odd rows, at any number of threads. In a round each half
//! takes steps on a small share of its rows against its own copy of the weights, in which its own changes count σ-fold
//! (as does its curvature); then both changes are added up. σ = 2 is always safe (Ma et al., Adding vs. averaging in
//! distributed primal-dual optimization, ICML 2015), σ = 1 is fastest; σ starts at 1, and a round after which the dual has
//! fallen is undone and repeated with a larger σ.
//!
//! **Data larger than memory.** Where the matrix is limited, a pass goes through blocks of rows in a random order and
//! through the rows of each in a random order ([`crate::data`], `residency.rs`): the same optimum and the same certificate
//! by another sequence of steps.
//!
//! Stops at a relative gap, recomputed from scratch at each check. Cost: O(entries) a pass, the same in parallel a check.
//! It does not solve tasks whose constraints share a slack.

use super::certificate::{balance, best_threshold, dual_value, primal_of_scores};
use super::{Progress, Solution, Start, Stop, Witness, relative_gap};
use crate::data::{Design, Rows, Visits, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::random::Random;
use crate::run::{Cancel, Observer};
use crate::task::{Independent, Intercept};
use rayon::prelude::*;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct DualCoordinateDescent {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The most passes to make.
    pub max_passes: u64,
    /// Seeds the order of visits.
    pub seed: u64,
    /// What is done about the threshold.
    pub intercept: Intercept,
}

/// This use of the seed.
const VISITS: u64 = 0x6463_6400;
/// And the one for the order of blocks.
const BLOCKS: u64 = 0x6463_6401;

/// How often the cancel flag is looked at, in rows.
const POLL: usize = 512;

impl DualCoordinateDescent {
    /// Solves the task over the rows of `design`, from the dual variables of `start` where it has any.
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
        with_rows!(design.matrix(), rows => State::new(self, task, design, rows, start)?.run(self, progress))
    }
}

/// What does not change while the loop runs, see the top of the file.
struct Fixed<'a, T, R> {
    task: &'a T,
    design: &'a Design,
    rows: &'a R,
    loss: Loss,
    squared_factor: Option<Vec<f64>>,
    /// μ, where rows are dense and shifted one by one: differences of large numbers are taken before anything else.
    dense_shift: Option<&'a [f64]>,
    /// x_i · F²μ for each row, where rows are sparse and shifted.
    shift_products: Option<Vec<f64>>,
    shift_norm: f64,
    /// ‖a_i x_i‖² + κ t_i²
    curvature: Vec<f64>,
    kappa: f64,
}

/// Sums over the dual variables that scores depend on.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Σ α a
    total: f64,
    /// μ · v
    shift_dot: f64,
    /// Σ α t
    pull: f64,
    /// Σ (α m − dual cost)
    gain: f64,
}

/// How a step sees the rest of the problem.
#[derive(Clone, Copy, Debug)]
struct View {
    centre: f64,
    /// How much a step's own changes count.
    sigma: f64,
    shrink_above: f64,
    shrink_below: f64,
}

/// Extremes of the projected gradient over the rows visited.
#[derive(Clone, Copy, Debug)]
struct Spread {
    highest: f64,
    lowest: f64,
}

impl Spread {
    const NONE: Spread = Spread { highest: f64::NEG_INFINITY, lowest: f64::INFINITY };

    fn include(&mut self, projected: f64) {
        self.highest = self.highest.max(projected);
        self.lowest = self.lowest.min(projected);
    }

    fn join(self, other: Spread) -> Spread {
        Spread { highest: self.highest.max(other.highest), lowest: self.lowest.min(other.lowest) }
    }
}

/// The rows that one core works on: all of them, or every second one.
struct Half {
    /// Of row `number + halves · k` at `k`.
    alpha: Vec<f64>,
    active: Vec<u32>,
    random: Random,
    /// The weights as this half sees them within a round.
    v: Vec<f64>,
    /// Dual variables before the round at hand, in order of visit.
    undo: Vec<(usize, f64)>,
    /// Rows that stay active.
    kept: Vec<u32>,
}

/// The loop's variables.
struct State<'a, T, R> {
    fixed: Fixed<'a, T, R>,
    intercept: Intercept,
    halves: Vec<Half>,
    /// The order of blocks where memory is short.
    blocks: Random,
    visits: Visits,
    /// F² · Σ α a x
    v: Vec<f64>,
    sums: Sums,
    view: View,
}

/// Halves pay from this many entries on,
const HALVES_FROM: u64 = 1 << 20;
/// and while adding them up, a pass over the weights each round, costs little beside the rows of the round.
const ROUNDS: u64 = 200;
const LEAST_ROUNDS: u64 = 8;
const ENTRIES_A_WEIGHT: u64 = 8;

/// Rounds of a pass, or none where one core is better.
fn rounds(design: &Design) -> Option<usize> {
    let matrix = design.matrix();
    if design.factor().is_some() || design.shift().is_some() || matrix.entries() < HALVES_FROM {
        return None;
    }
    let rounds = (matrix.entries() / (ENTRIES_A_WEIGHT * matrix.cols().max(1) as u64)).min(ROUNDS);
    // Blocks are given back between rounds.
    let residency = matrix.residency();
    let least = if residency.is_limited() { 2 * residency.blocks() } else { 0 };
    (rounds >= LEAST_ROUNDS).then_some((rounds as usize).max(least))
}

impl<'a, T: Independent, R: Rows> Fixed<'a, T, R> {
    fn new(intercept: Intercept, task: &'a T, design: &'a Design, rows: &'a R) -> Result<Fixed<'a, T, R>> {
        let squared_factor: Option<Vec<f64>> = design.factor().map(|f| f.iter().map(|f| f * f).collect());
        let dense_shift = design.shift().filter(|_| design.matrix().is_dense());
        let sparse_shift = design.shift().filter(|_| !design.matrix().is_dense());
        let shift_weights: Option<Vec<f64>> = sparse_shift.map(|shift| match &squared_factor {
            Some(square) => shift.iter().zip(square).map(|(m, f)| m * f).collect(),
            None => shift.to_vec(),
        });
        let shift_products: Option<Vec<f64>> = shift_weights.as_ref().map(|weights| {
            let product = |row| {
                let product = rows.dot(row, weights);
                design.passed(row..row + 1);
                product
            };
            (0..design.rows()).into_par_iter().map(product).collect()
        });
        let shift_norm = match (sparse_shift, &shift_weights) {
            (Some(shift), Some(weights)) => shift.iter().zip(weights).map(|(m, w)| m * w).sum(),
            _ => 0.0,
        };
        let square_of = |row: usize| {
            let square = match &squared_factor {
                None => rows.squared_norm(row),
                Some(factor) => {
                    let mut sum = 0.0;
                    rows.each(row, |column, value| {
                        let value = value - dense_shift.map_or(0.0, |shift| shift[column]);
                        sum += factor[column] * value * value;
                    });
                    sum
                }
            };
            let shifted = shift_products.as_ref().map_or(square, |p| (square - 2.0 * p[row] + shift_norm).max(0.0));
            shifted * design.row_factor(row).powi(2)
        };
        // Differences are taken entry by entry: nearly equal rows would vanish in ‖x‖² − 2x·z + ‖z‖². Shifts cancel.
        let square_of_difference = |difference: &mut Vec<f64>, row: usize, against: usize| {
            difference.resize(design.cols(), 0.0);
            rows.each(row, |column, value| difference[column] += design.row_factor(row) * value);
            rows.each(against, |column, value| difference[column] -= design.row_factor(against) * value);
            let mut sum = 0.0;
            let mut take = |column: usize| {
                let value = std::mem::take(&mut difference[column]);
                sum += squared_factor.as_ref().map_or(1.0, |factor| factor[column]) * value * value;
            };
            rows.each(row, |column, _| take(column));
            rows.each(against, |column, _| take(column));
            sum
        };
        let mut curvature: Vec<f64> = (0..task.blocks())
            .into_par_iter()
            .with_min_len(1024)
            .map_init(Vec::new, |difference, block| {
                let c = task.constraint(block);
                let square = match c.against {
                    None => square_of(c.row),
                    Some(against) => square_of_difference(difference, c.row, against),
                };
                design.passed(c.row..c.row + 1);
                square * c.coefficient * c.coefficient
            })
            .collect();
        // The proximal term weighs about as much as the features: then a step on one row moves b as far as it moves w.
        let mean = curvature.iter().sum::<f64>() / curvature.len().max(1) as f64;
        let kappa = match intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => 1.0,
            Intercept::Free if mean > 0.0 => mean,
            Intercept::Free => 1.0,
        };
        curvature.par_iter_mut().enumerate().for_each(|(block, curvature)| {
            let t = task.constraint(block).threshold;
            *curvature += kappa * t * t;
        });
        if curvature.par_iter().any(|curvature| !curvature.is_finite()) || !kappa.is_finite() {
            return Err(overflow());
        }
        Ok(Fixed {
            task,
            design,
            rows,
            loss: task.loss(),
            squared_factor,
            dense_shift,
            shift_products,
            shift_norm,
            curvature,
            kappa,
        })
    }

    /// The score of a scaled row.
    #[inline(always)]
    fn score(&self, row: usize, v: &[f64], sums: &Sums) -> f64 {
        let mut score = match self.dense_shift {
            None => self.design.row_factor(row) * self.rows.dot(row, v),
            Some(shift) => self.rows.dot_shifted(row, shift, v),
        };
        if let Some(products) = &self.shift_products {
            score += sums.total * (self.shift_norm - products[row]) - sums.shift_dot;
        }
        score
    }

    /// Adds a multiple of a scaled row to the weights.
    #[inline(always)]
    fn add(&self, row: usize, step: f64, v: &mut [f64], sums: &mut Sums) {
        let step = step * self.design.row_factor(row);
        match (&self.squared_factor, self.dense_shift) {
            (None, _) => self.rows.axpy(row, step, v),
            (Some(factor), None) => self.rows.axpy_scaled(row, step, factor, v),
            (Some(factor), Some(shift)) => self.rows.axpy_shifted(row, step, factor, shift, v),
        }
        if let Some(products) = &self.shift_products {
            sums.total += step;
            sums.shift_dot += step * products[row];
        }
    }

    /// Minimises over one dual variable. Returns the projected gradient before the step, or none where the row is stuck
    /// at its bound and may leave the active set.
    #[inline(always)]
    fn step(&self, block: usize, slot: &mut f64, v: &mut [f64], sums: &mut Sums, view: &View) -> Option<f64> {
        let c = self.task.constraint(block);
        let limit = self.loss.dual_limit(c.cost);
        let alpha = *slot;
        let mut score = self.score(c.row, v, sums);
        if let Some(row) = c.against {
            score -= self.score(row, v, sums);
        }
        let threshold = view.centre + self.kappa * sums.pull;
        let gradient = c.coefficient * score + c.threshold * threshold - c.margin;
        let curvature = view.sigma * self.curvature[block];
        let (new, projected) = if self.loss == Loss::Logistic {
            let new = logistic_minimiser(alpha, gradient, curvature, c.cost);
            (new, (alpha - new) * (curvature + 4.0 / c.cost))
        } else {
            let diagonal = diagonal(self.loss, c.cost);
            let gradient = gradient + diagonal * alpha;
            let projected = if alpha == 0.0 {
                if gradient > view.shrink_above {
                    return None;
                }
                gradient.min(0.0)
            } else if alpha == limit {
                if gradient < view.shrink_below {
                    return None;
                }
                gradient.max(0.0)
            } else {
                gradient
            };
            if projected == 0.0 {
                return Some(0.0);
            }
            let curvature = curvature + diagonal;
            let new = if curvature > 0.0 {
                (alpha - gradient / curvature).clamp(0.0, limit)
            } else if gradient < 0.0 {
                // A row of zeros: nothing but its bound holds it.
                limit
            } else {
                0.0
            };
            (new, projected)
        };
        if new == alpha {
            return Some(projected);
        }
        *slot = new;
        let change = new - alpha;
        let step = view.sigma * change * c.coefficient;
        self.add(c.row, step, v, sums);
        if let Some(row) = c.against {
            self.add(row, -step, v, sums);
        }
        sums.pull += view.sigma * change * c.threshold;
        sums.gain += change * c.margin - self.loss.dual_cost(new, c.cost) + self.loss.dual_cost(alpha, c.cost);
        Some(projected)
    }
}

/// The z in [0, C] with g + q·(z − α) + ln(z / (C − z)) = 0: the logistic step. In t = ln(z / (C − z)) the left side rises
/// with slope at least 1, so that Newton's method within a bracket always ends.
fn logistic_minimiser(alpha: f64, gradient: f64, curvature: f64, cost: f64) -> f64 {
    let (mut low, mut high) = (-gradient - curvature * (cost - alpha), -gradient + curvature * alpha);
    let mut t = if alpha > 0.0 && alpha < cost { (alpha / (cost - alpha)).ln() } else { 0.5 * (low + high) };
    t = t.clamp(low, high);
    let mut z = alpha;
    for _ in 0..100 {
        let small = (-t.abs()).exp();
        let near = cost * small / (1.0 + small);
        z = if t > 0.0 { cost - near } else { near };
        let value = gradient + curvature * (z - alpha) + t;
        if value > 0.0 {
            high = t
        } else {
            low = t
        }
        let slope = 1.0 + curvature * near * (1.0 - near / cost);
        let newton = t - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - t).abs() <= 1e-12 * (1.0 + t.abs()) {
            break;
        }
        t = next;
    }
    z
}

impl<'a, T: Independent, R: Rows> State<'a, T, R> {
    fn new(
        settings: &DualCoordinateDescent,
        task: &'a T,
        design: &'a Design,
        rows: &'a R,
        start: Option<&Start>,
    ) -> Result<State<'a, T, R>> {
        let halves = if rounds(design).is_some() { 2 } else { 1 };
        let half = |number: usize| Half {
            alpha: vec![0.0; (task.blocks() + halves - 1 - number) / halves],
            active: Vec::new(),
            random: Random::new(settings.seed, VISITS, number as u64),
            v: Vec::new(),
            undo: Vec::new(),
            kept: Vec::new(),
        };
        let mut state = State {
            fixed: Fixed::new(settings.intercept, task, design, rows)?,
            intercept: settings.intercept,
            halves: (0..halves).map(half).collect(),
            blocks: Random::new(settings.seed, BLOCKS, 0),
            visits: Visits::default(),
            v: vec![0.0; design.cols()],
            sums: Sums::default(),
            view: View { centre: 0.0, sigma: 1.0, shrink_above: f64::INFINITY, shrink_below: f64::NEG_INFINITY },
        };
        if let Some(start) = start {
            state.start_at(start);
        }
        state.reactivate();
        Ok(state)
    }

    /// Takes over the dual variables of a neighbouring problem, and the weights they stand for.
    fn start_at(&mut self, start: &Start) {
        let Some(dual) = &start.dual else { return };
        let (fixed, halves) = (&self.fixed, self.halves.len());
        for (block, &alpha) in dual.iter().enumerate() {
            let c = fixed.task.constraint(block);
            let alpha = alpha.clamp(0.0, fixed.loss.dual_limit(c.cost));
            if alpha == 0.0 {
                continue;
            }
            self.halves[block % halves].alpha[block / halves] = alpha;
            let step = alpha * c.coefficient;
            fixed.add(c.row, step, &mut self.v, &mut self.sums);
            if let Some(row) = c.against {
                fixed.add(row, -step, &mut self.v, &mut self.sums);
            }
            fixed.design.passed(c.row..c.row + 1);
            self.sums.pull += alpha * c.threshold;
            self.sums.gain += alpha * c.margin - fixed.loss.dual_cost(alpha, c.cost);
        }
        // The steps see b = centre + κ·Σ α t: the neighbour's b, whatever its dual variables pull.
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

    /// The dual variables of all rows.
    fn alpha(&self) -> Vec<f64> {
        let halves = self.halves.len();
        (0..self.fixed.task.blocks()).map(|block| self.halves[block % halves].alpha[block / halves]).collect()
    }

    /// The weights of the scaled features: F⁻¹v, less (Σ α a)·Fμ where v leaves the shift out.
    fn weights(&self) -> Vec<f64> {
        let design = self.fixed.design;
        let mut w: Vec<f64> = match design.factor() {
            None => self.v.clone(),
            Some(factor) => self.v.iter().zip(factor).map(|(v, f)| if *f == 0.0 { 0.0 } else { v / f }).collect(),
        };
        if let (Some(shift), None) = (design.shift(), self.fixed.dense_shift) {
            for (column, w) in w.iter_mut().enumerate() {
                *w -= self.sums.total * shift[column] * design.factor().map_or(1.0, |factor| factor[column]);
            }
        }
        w
    }

    /// One pass over the active rows; returns the spread of the projected gradient, or none where cancelled.
    fn pass(&mut self, cancelled: impl Fn() -> bool) -> Option<f64> {
        let (task, residency) = (self.fixed.task, self.fixed.design.matrix().residency());
        self.visits = Visits::new(&residency, &mut self.blocks);
        for half in &mut self.halves {
            half.random.shuffle(&mut half.active);
            self.visits.arrange(&residency, &mut half.active, |block| task.constraint(block as usize).row);
            half.kept.clear();
        }
        let spread = match rounds(self.fixed.design) {
            None => self.pass_alone(cancelled)?,
            Some(rounds) => self.pass_in_rounds(rounds, cancelled)?,
        };
        for half in &mut self.halves {
            std::mem::swap(&mut half.active, &mut half.kept);
        }
        self.view.shrink_above = if spread.highest > 0.0 { spread.highest } else { f64::INFINITY };
        self.view.shrink_below = if spread.lowest < 0.0 { spread.lowest } else { f64::NEG_INFINITY };
        if self.intercept == Intercept::Free {
            self.view.centre = self.threshold();
        }
        Some((spread.highest - spread.lowest).max(0.0))
    }

    fn pass_alone(&mut self, cancelled: impl Fn() -> bool) -> Option<Spread> {
        let mut spread = Spread::NONE;
        let (task, residency) = (self.fixed.task, self.fixed.design.matrix().residency());
        let half = &mut self.halves[0];
        for (at, &block) in half.active.iter().enumerate() {
            if at.is_multiple_of(POLL) {
                if cancelled() {
                    return None;
                }
                self.visits.moved(&residency, std::iter::once(Some(task.constraint(block as usize).row)));
            }
            let slot = &mut half.alpha[block as usize];
            if let Some(projected) = self.fixed.step(block as usize, slot, &mut self.v, &mut self.sums, &self.view) {
                spread.include(projected);
                half.kept.push(block);
            }
        }
        self.visits.moved(&residency, std::iter::once(None));
        Some(spread)
    }

    fn pass_in_rounds(&mut self, rounds: usize, cancelled: impl Fn() -> bool) -> Option<Spread> {
        let mut spread = Spread::NONE;
        let mut square: f64 = self.v.iter().map(|v| v * v).sum();
        for round in 0..rounds {
            loop {
                if cancelled() {
                    return None;
                }
                let (fixed, v, sums, view) = (&self.fixed, &self.v, self.sums, self.view);
                let [even, odd] = &mut self.halves[..] else { return None };
                let work = |half: &mut Half| half.round(round, rounds, fixed, v, sums, &view);
                let (a, b) = rayon::join(|| work(even), || work(odd));
                // What each half changed, of which its own copy holds σ times as much.
                let share = 1.0 / view.sigma;
                let pull = share * ((a.0.pull - sums.pull) + (b.0.pull - sums.pull));
                let gain = (a.0.gain - sums.gain) + (b.0.gain - sums.gain);
                let merged: Vec<f64> = v
                    .iter()
                    .zip(even.v.iter().zip(&odd.v))
                    .map(|(v, (a, b))| v + share * ((a - v) + (b - v)))
                    .collect();
                let merged_square: f64 = merged.iter().map(|v| v * v).sum();
                let (before, after) = (sums.pull, sums.pull + pull);
                let rise = gain
                    - 0.5 * (merged_square - square)
                    - view.centre * pull
                    - 0.5 * fixed.kappa * (after * after - before * before);
                if rise < -1e-12 * square.max(1.0) && view.sigma < SAFE_SIGMA {
                    self.halves.iter_mut().for_each(Half::undo);
                    self.view.sigma = (view.sigma * 1.25).min(SAFE_SIGMA);
                    continue;
                }
                (self.v, square) = (merged, merged_square);
                self.sums.pull = after;
                self.sums.gain += gain;
                spread = spread.join(a.1).join(b.1);
                break;
            }
            let (task, residency) = (self.fixed.task, self.fixed.design.matrix().residency());
            let next = |half: &Half| half.active.get(half.active.len() * (round + 1) / rounds).copied();
            let next = self.halves.iter().map(next).map(|block| Some(task.constraint(block? as usize).row));
            self.visits.moved(&residency, next);
        }
        Some(spread)
    }

    /// All rows that can cost anything back into the active set.
    fn reactivate(&mut self) {
        let (task, halves) = (self.fixed.task, self.halves.len());
        for (number, half) in self.halves.iter_mut().enumerate() {
            half.active = (number..task.blocks())
                .step_by(halves)
                .filter(|&block| task.constraint(block).cost > 0.0)
                .map(|block| block as u32)
                .collect();
        }
        self.view.shrink_above = f64::INFINITY;
        self.view.shrink_below = f64::NEG_INFINITY;
    }

    fn run(mut self, settings: &DualCoordinateDescent, mut progress: Progress<'_>) -> Result<Solution> {
        let everything = self.active();
        let mut best = Best { objective: f64::INFINITY, weights: Vec::new(), threshold: 0.0, alpha: self.alpha() };
        let mut pass = 0;
        let mut next_check = 1;
        let mut inner_tolerance = 0.1;
        let stop = loop {
            let spread = if pass < settings.max_passes {
                let Some(spread) = self.pass(|| progress.cancelled()) else { break Stop::Cancelled };
                pass += 1;
                spread
            } else {
                0.0
            };
            let settled = spread <= inner_tolerance;
            let whole = self.active() == everything;
            if settled && !whole && pass < settings.max_passes {
                self.reactivate();
            }
            let last = pass >= settings.max_passes;
            if pass < next_check && !last && !(settled && whole) {
                continue;
            }
            next_check = pass + 1 + pass / 4;
            self.check(&mut best, &mut progress)?;
            if progress.report(pass, best.objective, &best.weights, &best.thresholds(self.intercept)) {
                break Stop::Cancelled;
            }
            let gap = progress.lower_bound.map_or(f64::INFINITY, |bound| relative_gap(best.objective, bound));
            if gap <= settings.tolerance {
                break Stop::Converged;
            }
            if last {
                break Stop::PassLimit;
            }
            if settled && whole {
                if spread == 0.0 && self.intercept != Intercept::Free {
                    break Stop::Stalled;
                }
                inner_tolerance = (inner_tolerance * 0.25).min(spread * 0.5);
            }
        };
        if best.weights.is_empty() {
            // Cancelled within the first pass: what there is, with its honest value.
            self.check(&mut best, &mut progress)?;
        }
        Ok(Solution {
            thresholds: best.thresholds(self.intercept),
            weights: best.weights,
            objective: best.objective,
            lower_bound: progress.lower_bound,
            witness: Witness::Dual(best.alpha),
            passes: pass,
            stop,
            trace: progress.trace,
        })
    }

    /// Recomputes primal and dual values and keeps the better ones.
    fn check(&self, best: &mut Best, progress: &mut Progress<'_>) -> Result<()> {
        let w = self.weights();
        let scores = self.fixed.design.all_scores(&w);
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => self.threshold(),
            Intercept::Free => best_threshold(self.fixed.task, &scores, self.threshold()),
        };
        let objective = primal_of_scores(self.fixed.task, &w, &scores, threshold, self.intercept);
        if !objective.is_finite() || !threshold.is_finite() {
            return Err(overflow());
        }
        if objective < best.objective || best.weights.is_empty() {
            *best = Best { objective, weights: w, threshold, alpha: std::mem::take(&mut best.alpha) };
        }
        let mut alpha = self.alpha();
        if self.intercept == Intercept::Free {
            balance(self.fixed.task, &mut alpha);
        }
        let bound = dual_value(self.fixed.task, self.fixed.design, &alpha, self.intercept);
        if progress.lower_bound.is_none_or(|known| bound > known) {
            best.alpha = alpha;
        }
        progress.bound(Some(bound));
        Ok(())
    }
}

/// With this σ the dual never falls.
const SAFE_SIGMA: f64 = 2.0;

impl Half {
    /// Steps on one round's share of the rows; returns the sums as this half sees them and the spread.
    fn round<T: Independent, R: Rows>(
        &mut self,
        round: usize,
        rounds: usize,
        fixed: &Fixed<'_, T, R>,
        v: &[f64],
        sums: Sums,
        view: &View,
    ) -> (Sums, Spread) {
        self.v.clear();
        self.v.extend_from_slice(v);
        self.undo.clear();
        let (mut sums, mut spread) = (sums, Spread::NONE);
        let count = self.active.len();
        for at in count * round / rounds..count * (round + 1) / rounds {
            let block = self.active[at];
            let slot = &mut self.alpha[block as usize / 2];
            let before = *slot;
            if let Some(projected) = fixed.step(block as usize, slot, &mut self.v, &mut sums, view) {
                spread.include(projected);
                self.kept.push(block);
                self.undo.push((block as usize / 2, before));
            }
        }
        (sums, spread)
    }

    /// Takes the last round back.
    fn undo(&mut self) {
        self.kept.truncate(self.kept.len() - self.undo.len());
        for &(at, before) in self.undo.iter().rev() {
            self.alpha[at] = before;
        }
    }
}

/// The best primal and the best dual point so far.
struct Best {
    objective: f64,
    weights: Vec<f64>,
    threshold: f64,
    alpha: Vec<f64>,
}

impl Best {
    fn thresholds(&self, intercept: Intercept) -> Vec<f64> {
        if intercept == Intercept::None { Vec::new() } else { vec![self.threshold] }
    }
}

/// The error for numbers that grew too large.
pub(super) fn overflow() -> Error {
    Error::new(Code::Overflow, "the objective is not a finite number any more")
        .help("the features or the cost are too large: scale the features down, or try a smaller -c")
}

/// What the conjugate of the loss adds to the curvature of α.
#[inline]
fn diagonal(loss: Loss, cost: f64) -> f64 {
    match loss {
        Loss::Hinge => 0.0,
        Loss::SquaredHinge => 0.5 / cost,
        Loss::Logistic => 0.0,
    }
}
