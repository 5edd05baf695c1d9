//! Dual coordinate descent for linear tasks with one constraint a block.
//!
//! ```text
//! min over α   ½‖Σ_i α_i a_i x_i‖² + Σ_i (cost_i · loss*(α_i / cost_i) − α_i m_i)
//! s.t.         0 ≤ α_i ≤ limit_i,   and Σ_i α_i t_i = 0 where the threshold b is free
//! ```
//! Notation of [`crate::task::Constraint`]: a coefficient, t threshold coefficient, m margin; w = Σ α_i a_i x_i.
//!
//! One step minimises exactly over one α_i: G = a_i w·x_i + t_i b − m_i + d_i α_i, α_i ← clip(α_i − G / q_i), where
//! q_i = ‖a_i x_i‖² + d_i and d_i = 1/(2 cost_i) for squared hinge, 0 for hinge. A pass visits the active rows in a fresh
//! random order; rows stuck at a bound leave the active set until it has converged (Hsieh et al., A dual coordinate
//! descent method for large-scale linear SVM, ICML 2008, algorithms 1 and 3).
//!
//! **Free threshold.** One coordinate cannot move under Σ α_i t_i = 0. We add κ/2·(Σ α_i t_i)² to the dual, that is a
//! proximal term (b − b₀)²/(2κ) to the primal, let the steps see b = b₀ + κ·Σ α_i t_i, and move the centre b₀ to b after
//! each pass: the method of multipliers. What is reported does not depend on how far that has come: the primal takes the
//! best b for the current w, the dual the balanced point of [`super::certificate`].
//!
//! **Scaling** is folded in: with x' = F(x − μ) the loop keeps v = F²·Σ α a x and three scalars, so that scores of the
//! scaled rows come from the stored ones.
//!
//! Stops at a relative gap, recomputed from scratch at each check. Cost: O(entries) a pass, the same in parallel a check.
//! Steps are sequential; scores, bounds and norms use all threads. It does not solve tasks whose constraints share a
//! slack.

use super::certificate::{balance, best_threshold, dual_value, primal_of_scores};
use super::{Progress, Solution, Stop, Witness, relative_gap};
use crate::data::{Design, Rows, with_rows};
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

/// How often the cancel flag is looked at, in rows.
const POLL: usize = 512;

impl DualCoordinateDescent {
    /// Solves the task over the rows of `design`.
    pub fn solve<T: Independent>(
        &self,
        task: &T,
        design: &Design,
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
        with_rows!(design.matrix(), rows => State::new(self, task, design, rows).run(self, progress))
    }
}

/// The loop's variables, see the top of the file.
struct State<'a, T, R> {
    task: &'a T,
    design: &'a Design,
    rows: &'a R,
    intercept: Intercept,
    squared_factor: Option<Vec<f64>>,
    /// x_i · F²μ for each row, where there is a shift.
    shift_products: Option<Vec<f64>>,
    shift_norm: f64,
    curvature: Vec<f64>,
    alpha: Vec<f64>,
    /// F² · Σ α a x
    v: Vec<f64>,
    /// Σ α a
    total: f64,
    /// μ · v
    shift_dot: f64,
    /// Σ α t
    pull: f64,
    centre: f64,
    kappa: f64,
    active: Vec<u32>,
    shrink_above: f64,
    shrink_below: f64,
}

impl<'a, T: Independent, R: Rows> State<'a, T, R> {
    fn new(settings: &DualCoordinateDescent, task: &'a T, design: &'a Design, rows: &'a R) -> State<'a, T, R> {
        let squared_factor: Option<Vec<f64>> = design.factor().map(|f| f.iter().map(|f| f * f).collect());
        let shift_weights: Option<Vec<f64>> = design.shift().map(|shift| match &squared_factor {
            Some(square) => shift.iter().zip(square).map(|(m, f)| m * f).collect(),
            None => shift.to_vec(),
        });
        let shift_products: Option<Vec<f64>> = shift_weights
            .as_ref()
            .map(|weights| (0..design.rows()).into_par_iter().map(|row| rows.dot(row, weights)).collect());
        let shift_norm = match (design.shift(), &shift_weights) {
            (Some(shift), Some(weights)) => shift.iter().zip(weights).map(|(m, w)| m * w).sum(),
            _ => 0.0,
        };
        let loss = task.loss();
        let norms: Vec<f64> = (0..task.blocks())
            .into_par_iter()
            .with_min_len(1024)
            .map(|block| {
                let c = task.constraint(block);
                let square = match &squared_factor {
                    None => rows.squared_norm(c.row),
                    Some(factor) => {
                        let mut sum = 0.0;
                        rows.each(c.row, |column, value| sum += factor[column] * value * value);
                        sum
                    }
                };
                let shifted =
                    shift_products.as_ref().map_or(square, |p| (square - 2.0 * p[c.row] + shift_norm).max(0.0));
                shifted * (c.coefficient * design.row_factor(c.row)).powi(2)
            })
            .collect();
        // The proximal term weighs about as much as the features: then a step on one row moves b as far as it moves w.
        let mean = norms.iter().sum::<f64>() / norms.len().max(1) as f64;
        let kappa = match settings.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => 1.0,
            Intercept::Free => {
                if mean > 0.0 {
                    mean
                } else {
                    1.0
                }
            }
        };
        let curvature = norms
            .into_par_iter()
            .enumerate()
            .map(|(block, norm)| {
                let c = task.constraint(block);
                norm + kappa * c.threshold * c.threshold + diagonal(loss, c.cost)
            })
            .collect();
        State {
            task,
            design,
            rows,
            intercept: settings.intercept,
            squared_factor,
            shift_products,
            shift_norm,
            curvature,
            alpha: vec![0.0; task.blocks()],
            v: vec![0.0; design.cols()],
            total: 0.0,
            shift_dot: 0.0,
            pull: 0.0,
            centre: 0.0,
            kappa,
            active: (0..task.blocks() as u32).filter(|&block| task.constraint(block as usize).cost > 0.0).collect(),
            shrink_above: f64::INFINITY,
            shrink_below: f64::NEG_INFINITY,
        }
    }

    fn threshold(&self) -> f64 {
        self.centre + self.kappa * self.pull
    }

    /// The weights of the scaled features: F⁻¹v − (Σ α a)·Fμ.
    fn weights(&self) -> Vec<f64> {
        let mut w: Vec<f64> = match self.design.factor() {
            None => self.v.clone(),
            Some(factor) => self.v.iter().zip(factor).map(|(v, f)| if *f == 0.0 { 0.0 } else { v / f }).collect(),
        };
        if let Some(shift) = self.design.shift() {
            for (column, w) in w.iter_mut().enumerate() {
                *w -= self.total * shift[column] * self.design.factor().map_or(1.0, |factor| factor[column]);
            }
        }
        w
    }

    /// One pass over the active rows; returns the spread of the projected gradient, or none where cancelled.
    fn pass(&mut self, random: &mut Random, cancelled: impl Fn() -> bool) -> Option<f64> {
        let loss = self.task.loss();
        random.shuffle(&mut self.active);
        let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut at = 0;
        let mut kept = self.active.len();
        while at < kept {
            if at.is_multiple_of(POLL) && cancelled() {
                return None;
            }
            let block = self.active[at] as usize;
            let c = self.task.constraint(block);
            let limit = loss.dual_limit(c.cost);
            let alpha = self.alpha[block];
            let row_factor = self.design.row_factor(c.row);
            let mut score = row_factor * self.rows.dot(c.row, &self.v);
            if let Some(products) = &self.shift_products {
                score += self.total * (self.shift_norm - products[c.row]) - self.shift_dot;
            }
            let gradient =
                c.coefficient * score + c.threshold * self.threshold() - c.margin + diagonal(loss, c.cost) * alpha;
            let stuck =
                (alpha == 0.0 && gradient > self.shrink_above) || (alpha == limit && gradient < self.shrink_below);
            if stuck {
                kept -= 1;
                self.active.swap(at, kept);
                continue;
            }
            at += 1;
            let projected = if alpha == 0.0 {
                gradient.min(0.0)
            } else if alpha == limit {
                gradient.max(0.0)
            } else {
                gradient
            };
            highest = highest.max(projected);
            lowest = lowest.min(projected);
            if projected == 0.0 {
                continue;
            }
            let curvature = self.curvature[block];
            let new = if curvature > 0.0 {
                (alpha - gradient / curvature).clamp(0.0, limit)
            } else if gradient < 0.0 {
                // A row of zeros: nothing but its bound holds it.
                limit
            } else {
                0.0
            };
            let step = (new - alpha) * c.coefficient * row_factor;
            if new == alpha {
                continue;
            }
            self.alpha[block] = new;
            match &self.squared_factor {
                None => self.rows.axpy(c.row, step, &mut self.v),
                Some(factor) => self.rows.axpy_scaled(c.row, step, factor, &mut self.v),
            }
            self.pull += (new - alpha) * c.threshold;
            if let Some(products) = &self.shift_products {
                self.total += step;
                self.shift_dot += step * products[c.row];
            }
        }
        self.active.truncate(kept);
        self.shrink_above = if highest > 0.0 { highest } else { f64::INFINITY };
        self.shrink_below = if lowest < 0.0 { lowest } else { f64::NEG_INFINITY };
        if self.intercept == Intercept::Free {
            self.centre = self.threshold();
        }
        Some((highest - lowest).max(0.0))
    }

    /// All rows back into the active set.
    fn reactivate(&mut self) {
        let task = self.task;
        self.active = (0..task.blocks() as u32).filter(|&block| task.constraint(block as usize).cost > 0.0).collect();
        self.shrink_above = f64::INFINITY;
        self.shrink_below = f64::NEG_INFINITY;
    }

    fn run(mut self, settings: &DualCoordinateDescent, mut progress: Progress<'_>) -> Result<Solution> {
        let mut random = Random::new(settings.seed, VISITS, 0);
        let everything = self.active.len();
        let mut best = Best { objective: f64::INFINITY, weights: Vec::new(), threshold: 0.0, alpha: Vec::new() };
        let mut pass = 0;
        let mut next_check = 1;
        let mut inner_tolerance = 0.1;
        let stop = loop {
            let spread = if pass < settings.max_passes {
                let Some(spread) = self.pass(&mut random, || progress.cancelled()) else { break Stop::Cancelled };
                pass += 1;
                spread
            } else {
                0.0
            };
            let settled = spread <= inner_tolerance;
            let whole = self.active.len() == everything;
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
        let scores = self.design.all_scores(&w);
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => self.threshold(),
            Intercept::Free => best_threshold(self.task, &scores, self.threshold()),
        };
        let objective = primal_of_scores(self.task, &w, &scores, threshold, self.intercept);
        if !objective.is_finite() {
            return Err(Error::new(Code::Overflow, "the objective is not a finite number any more")
                .help("the features or the cost are too large; try --scale standard or a smaller -c"));
        }
        if objective < best.objective || best.weights.is_empty() {
            *best = Best { objective, weights: w, threshold, alpha: std::mem::take(&mut best.alpha) };
        }
        let mut alpha = self.alpha.clone();
        if self.intercept == Intercept::Free {
            balance(self.task, &mut alpha);
        }
        let bound = dual_value(self.task, self.design, &alpha, self.intercept);
        if progress.lower_bound.is_none_or(|known| bound > known) {
            best.alpha = alpha;
        }
        progress.bound(Some(bound));
        Ok(())
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

/// What the conjugate of the loss adds to the curvature of α.
#[inline]
fn diagonal(loss: Loss, cost: f64) -> f64 {
    match loss {
        Loss::Hinge => 0.0,
        Loss::SquaredHinge => 0.5 / cost,
    }
}
