//! Sequential minimal optimisation for kernels, one working set at a time.
//!
//! ```text
//! min over α   F(α) = ½ Σ_ij α_i α_j a_i a_j k_ij + ½ Σ_i d_i α_i² − Σ_i m_i α_i
//! s.t.         0 ≤ α_i ≤ limit_i,   and for every group g of variables   Σ_{i in g} α_i e_i = what it is at the start
//! ```
//! Notation of [`crate::task::Constraint`]: a coefficient, t threshold coefficient, m margin; d_i = 1/(2 cost_i) for
//! squared hinge, 0 for hinge; k_ij the kernel between the rows (or differences of rows) of blocks i and j. Scores are
//! s_i = Σ_j α_j a_j k_ij, the gradient is g_i = a_i s_i + d_i α_i − m_i. Tasks differ only in their groups:
//!
//! | form | groups |
//! |---|---|
//! | costs, no free threshold | none |
//! | costs, a free threshold b | all variables, e = t = ±1, the sum is 0 |
//! | costs, several cuts | one group for each cut, e = t = ±1, each sum is 0 |
//! | ν, no free threshold | all variables, e = 1, the sum is 1; m = 0 |
//! | ν, a free threshold b | one group for each sign of t, e = 1, each sum is ½; m = 0 |
//!
//! **The ν form** (Schölkopf, Smola, Williamson & Bartlett, New support vector algorithms, Neural Computation 12, 2000)
//! asks for the largest common margin ρ instead of 1:
//!
//! ```text
//! min  ½‖θ‖² − ρ + Σ_i c_i max(0, ρ − a_i s_i − t_i b),   c_i = weight_i / (ν · all weights)
//! ```
//! With u = θ/ρ it is the form of costs at C = 1/(ρ · ν · all weights), and α/ρ is its dual point. Objective, bound and
//! gap are stated for that form, so a model is the same whichever form was used. At most a share ν of the weights
//! misses the margin, and at least that share belongs to support vectors. If ν is so small that θ = 0 is optimal, there
//! is no such C, and the solver returns an error.
//!
//! A round takes the variables that violate optimality the most, half of them new, and computes their kernel rows
//! together. It solves the small problem over them by steps on two variables of a group (or on one, without groups).
//! Then it updates all gradients in one pass over these rows (Wen et al., ThunderSVM, JMLR 19, 2018). A step chooses
//! the first variable by its gradient and the second by the largest gain of a step (Fan, Chen & Lin, Working set
//! selection using second order information, JMLR 6, 2005). If the curvature along a step is not positive, as with
//! indefinite kernels and duplicate rows, the step goes to the end of the box.
//!
//! Kernel rows are f32 (f64 for few rows) and are kept in a cache of limited size; gradients are f64. Stops at a
//! relative gap: all gradients are known, so primal and dual value cost O(n). Cost of a round: the new kernel rows, and
//! n additions for each variable that moved. With very many variables, those that rest at an end of their box are left
//! out until the others have converged ([`state`]): kernel rows are then only as long as the number of the others.

mod state;
mod working_set;

use super::values::{OfCut, balance, best_threshold, by_cut, imbalance};
use super::{Progress, Solution, Stop, ThroughKernel, TracePoint, Witness, overflow, relative_gap};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, RowCache};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::task::{Constraint, Independent, Intercept};
use state::State;
use working_set::Selection;
pub(super) use working_set::{FLAT, PartnerSearch, largest, pair_step, partner, take_row};

/// Kernel values between the blocks of a task.
pub(crate) trait Gram<V>: Sync {
    /// k_ii of every block.
    fn diagonal(&self) -> Vec<f64>;
    /// The rows of the named blocks.
    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>);
    /// The same between some of the blocks only.
    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_>;
}

/// How margins and costs are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each constraint has its own margin, and missing it costs.
    Costs,
    /// All have the largest common margin that a given share can miss: costs are shares.
    Nu,
}

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct Smo {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of rounds.
    pub(crate) max_passes: u64,
    /// How the threshold is treated.
    pub(crate) intercept: Intercept,
    /// How margins and costs are set.
    pub(crate) form: Form,
    /// Bytes that kernel rows may take.
    pub(crate) cache_bytes: u64,
    /// From this many variables on, those at rest are left out.
    pub(crate) shrink_from: usize,
}

/// Kernel rows of this many variables no longer fit in the default cache.
pub(crate) const SHRINK_FROM: usize = 40_000;

/// One variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) alpha: f64,
    pub(super) gradient: f64,
    pub(super) limit: f64,
    /// a
    pub(super) coefficient: f64,
    /// e: ±1, or 0 where there are no groups.
    pub(super) sign: f64,
    /// The group it belongs to.
    pub(super) group: u16,
    /// k_ii, with t_i² where the threshold is penalised.
    pub(super) own: f64,
    /// d
    pub(super) diagonal: f64,
}

/// Variables solved together: their kernel values fit in the second-level cache.
const WORKING_SET: usize = 512;

impl Smo {
    /// A cache with at least what a round needs, and otherwise as much as its bytes allow.
    pub(crate) fn cache<V: Element>(blocks: usize, bytes: u64) -> RowCache<V> {
        RowCache::new(blocks, blocks, bytes, (2 * WORKING_SET).min(blocks.max(1)))
    }

    /// Solves the task over the kernel values of its blocks, from a feasible dual point or from the default start of
    /// the form.
    pub(crate) fn solve<T: Independent, V: Element>(
        &self,
        task: &T,
        gram: &dyn Gram<V>,
        cache: &mut RowCache<V>,
        start: Option<&[f64]>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let before = cache.counts();
        let mut state = State::new(self, task, gram, cache)?;
        match (self.form, start) {
            (Form::Costs, Some(start)) => state.begin(&self.feasible(task, start), cancel)?,
            (Form::Costs, None) => {}
            // Steps keep the sums of the groups, so these must be right from the start.
            (Form::Nu, _) => state.begin(&first_shares(task, self.intercept)?, cancel)?,
        }
        let (mut passes, mut best_violation, mut best_dual, mut idle) = (0, f64::INFINITY, f64::NEG_INFINITY, 0);
        let stop = loop {
            progress.check_wanted()?;
            let selection = state.selection();
            // The values cost little compared with a round.
            let scalars = self.scalars(&selection);
            let values = state.values(task, scalars, self.cuts(task, &selection));
            if !(values.primal.is_finite() && values.dual.is_finite()) {
                return Err(overflow());
            }
            let gap = relative_gap(values.primal, values.dual);
            if progress.cancelled() {
                progress.check_wanted()?;
                state.widen(cancel)?;
                break Stop::Cancelled;
            }
            if state.is_whole() && self.form == Form::Nu && values.square <= state.nothing() {
                return Err(too_small());
            }
            let stated = values.stated(scalars);
            match self.form {
                // While some gradients are out of date, the dual value is not a bound.
                Form::Costs if !state.is_whole() => {}
                Form::Costs => drop(progress.bound(Some(stated.dual))),
                // The C of the bound changes with ρ.
                Form::Nu => progress.lower_bound = Some(stated.dual),
            }
            if progress.report(passes, stated.primal, &[], &[]) {
                state.widen(cancel)?;
                break Stop::Cancelled;
            }
            if gap <= self.tolerance && state.is_whole() {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                state.widen(cancel)?;
                break Stop::PassLimit;
            }
            // The largest violation may go up and down for long while the values converge.
            let gained = values.dual - best_dual > LEAST_GAIN * (values.primal - values.dual);
            if gained || selection.violation < best_violation * 0.999 {
                best_violation = best_violation.min(selection.violation);
                (best_dual, idle) = (best_dual.max(values.dual), 0);
            } else {
                idle += 1;
            }
            let stuck = selection.violation <= 0.0 || idle > STALLED_ROUNDS;
            if stuck && state.is_whole() {
                break Stop::Stalled;
            }
            if stuck || (gap <= self.tolerance && !state.is_whole()) {
                state.widen(cancel)?;
                (best_violation, best_dual, idle) = (f64::INFINITY, f64::NEG_INFINITY, 0);
                continue;
            }
            passes += 1;
            let selection = if state.narrow(&selection) { state.selection() } else { selection };
            state.round(&selection, cancel);
        };
        let near = self.scalars(&state.selection());
        let scalars = Scalars {
            margin: near.margin.map(|near| best_margin(task, &state.all_reached(), self.intercept, near)),
            threshold: near.threshold,
        };
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => state.pull(task),
            Intercept::Free if task.cuts() > 1 => {
                return Ok(self.with_cuts(task, &state, (passes, stop), before, progress.trace));
            }
            Intercept::Free => {
                let task = Reached { task, margin: scalars.margin };
                let reached = state.all_reached();
                best_threshold(&task, |row| reached[row], near.threshold)
            }
        };
        let scalars = Scalars { threshold: if self.intercept == Intercept::Free { threshold } else { 0.0 }, ..scalars };
        let values = state.values(task, scalars, &[]).stated(scalars);
        let unit = scalars.margin.filter(|margin| *margin > 0.0).unwrap_or(1.0);
        let after = state.counts();
        let kernel = ThroughKernel {
            reached: state.all_reached().iter().map(|reached| reached / unit).collect(),
            common_margin: scalars.margin,
            rows: Some((after.0 - before.0, after.1 - before.1)),
            definite: true,
            scorer: None,
            merging: None,
        };
        Ok(Solution {
            weights: state.alphas().map(|alpha| alpha / unit).collect(),
            thresholds: vec![threshold / unit],
            objective: values.primal,
            lower_bound: Some(values.dual.max(0.0)),
            witness: Witness::Weights,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: Some(kernel),
            trace: progress.trace,
        })
    }

    /// The cuts estimated from the gradients, if there are several; empty otherwise.
    fn cuts<'s, T: Independent>(&self, task: &T, selection: &'s Selection) -> &'s [f64] {
        if self.intercept == Intercept::Free && task.cuts() > 1 { &selection.levels } else { &[] }
    }

    /// The solution of a task with several cuts, each set to its best value for the scores.
    fn with_cuts<T: Independent, V: Element>(
        &self,
        task: &T,
        state: &State<'_, V>,
        (passes, stop): (u64, Stop),
        before: (u64, u64),
        trace: Vec<TracePoint>,
    ) -> Solution {
        let (reached, near) = (state.all_reached(), state.selection().levels);
        let level = |cut: usize| near.get(cut).copied().unwrap_or(0.0);
        let blocks = Reached { task, margin: None };
        let best = |(cut, of_cut): (usize, &OfCut<'_, _>)| best_threshold(of_cut, |row| reached[row], level(cut));
        let thresholds: Vec<f64> = by_cut(&blocks).iter().enumerate().map(best).collect();
        let values = state.values(task, Scalars { margin: None, threshold: 0.0 }, &thresholds);
        let after = state.counts();
        let kernel = ThroughKernel {
            reached,
            common_margin: None,
            rows: Some((after.0 - before.0, after.1 - before.1)),
            definite: true,
            scorer: None,
            merging: None,
        };
        Solution {
            weights: state.alphas().collect(),
            thresholds,
            objective: values.primal,
            lower_bound: Some(values.dual.max(0.0)),
            witness: Witness::Weights,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: Some(kernel),
            trace,
        }
    }

    /// The feasible point nearest to a start: within the boxes, and balanced if the threshold is free.
    fn feasible<T: Independent>(&self, task: &T, start: &[f64]) -> Vec<f64> {
        let loss = task.loss();
        let limit = |block: usize| Some(task.constraint(block).cost).filter(|cost| *cost > 0.0);
        let mut alpha: Vec<f64> = start
            .iter()
            .enumerate()
            .map(|(block, alpha)| limit(block).map_or(0.0, |cost| alpha.clamp(0.0, loss.dual_limit(cost))))
            .collect();
        // An imbalance from rounding is left: variables at their limits should stay there.
        if self.intercept == Intercept::Free && imbalance(task, &alpha) > BALANCED {
            balance(task, &mut alpha);
        }
        alpha
    }

    /// The ρ and b estimated from the gradients.
    fn scalars(&self, selection: &Selection) -> Scalars {
        let level = |group: usize| selection.levels.get(group).copied().unwrap_or(0.0);
        match (self.form, self.intercept) {
            (Form::Costs, Intercept::Free) => Scalars { margin: None, threshold: level(0) },
            (Form::Costs, _) => Scalars { margin: None, threshold: 0.0 },
            // a s + t b = ρ, where −a s is the level of the group of t.
            (Form::Nu, Intercept::Free) => Scalars {
                margin: Some(-0.5 * (level(POSITIVE as usize) + level(NEGATIVE as usize))),
                threshold: 0.5 * (level(POSITIVE as usize) - level(NEGATIVE as usize)),
            },
            (Form::Nu, _) => Scalars { margin: Some(-level(0)), threshold: 0.0 },
        }
    }
}

/// A start counts as balanced if its imbalance is below this share, which is rounding.
const BALANCED: f64 = 1e-13;

/// The solver has stalled after this many rounds without a smaller violation and without a rise of the dual value by
/// this share of the gap.
const STALLED_ROUNDS: u32 = 1000;
const LEAST_GAIN: f64 = 1e-6;

/// The groups of the ν form with a free threshold.
const POSITIVE: u8 = 0;
const NEGATIVE: u8 = 1;

/// The scalars of the primal problem.
#[derive(Clone, Copy, Debug)]
struct Scalars {
    /// ρ, in the ν form.
    margin: Option<f64>,
    /// b, if it is free.
    threshold: f64,
}

/// Primal and dual value; in the ν form both with ρ added, which makes them those of the form of costs times ρ².
#[derive(Clone, Copy, Debug)]
struct Values {
    primal: f64,
    dual: f64,
    /// ‖Σ α a φ‖²
    square: f64,
}

impl Values {
    /// The values of the form of costs.
    fn stated(self, scalars: Scalars) -> Values {
        match scalars.margin {
            Some(margin) if margin > 0.0 => {
                let unit = margin * margin;
                Values { primal: self.primal / unit, dual: self.dual / unit, square: self.square / unit }
            }
            _ => self,
        }
    }
}

/// The share of a sum that belongs to a group of the ν form, and the group of a constraint.
fn nu_group(intercept: Intercept, c: &Constraint) -> (f64, u8) {
    match intercept {
        Intercept::Free if c.threshold < 0.0 => (0.5, NEGATIVE),
        Intercept::Free => (0.5, POSITIVE),
        _ => (1.0, 0),
    }
}

/// A feasible point of the ν form: the first blocks of each group at their limits.
fn first_shares<T: Independent>(task: &T, intercept: Intercept) -> Result<Vec<f64>> {
    let mut left = [0.0; 2];
    for block in 0..task.blocks() {
        let (share, group) = nu_group(intercept, &task.constraint(block));
        left[usize::from(group)] = share;
    }
    let mut alpha = vec![0.0; task.blocks()];
    for (block, alpha) in alpha.iter_mut().enumerate() {
        let c = task.constraint(block);
        let left = &mut left[usize::from(nu_group(intercept, &c).1)];
        *alpha = c.cost.min(*left);
        *left -= *alpha;
    }
    // If the limits add up to the sum up to rounding, at most this much is left over.
    const ROUNDING: f64 = 1e-9;
    let missing = left[0].max(left[1]);
    if missing <= ROUNDING {
        return Ok(alpha);
    }
    let whole = if intercept == Intercept::Free { 0.5 } else { 1.0 };
    // All limits add up to 1/ν.
    let limits: f64 = (0..task.blocks()).map(|block| task.constraint(block).cost).sum();
    let largest = (1.0 - missing / whole) / limits;
    Err(Error::new(
        Code::BadSetting,
        format!("⟦nu⟧ is too large: the smaller class allows at most {:.4}", 0.99995 * largest),
    )
    .help("nu is at most twice the share of the smaller class: give a smaller one, or add ⟦class-weight=balanced⟧"))
}

fn too_small() -> Error {
    Error::new(
        Code::NuTooSmall,
        "⟦nu⟧ is too small for these data: a larger share of them violates every positive margin, so the weights \
         are zero",
    )
    .help(
        "try a larger ⟦nu⟧; where classes overlap, a more flexible kernel helps too: ⟦kernel=gaussian⟧, a \
           larger ⟦gamma⟧",
    )
}

/// The ρ with the smallest cost. If b is free, it is computed for each side separately.
fn best_margin<T: Independent>(task: &T, reached: &[f64], intercept: Intercept, near: f64) -> f64 {
    let mut sides: [(Vec<(f64, f64)>, f64); 2] = Default::default();
    for (block, &reached) in reached.iter().enumerate().take(task.blocks()) {
        let c = task.constraint(block);
        let (share, group) = nu_group(intercept, &c);
        let side = &mut sides[usize::from(group)];
        side.1 = share;
        side.0.push((reached, c.cost));
    }
    let quantile = |(values, share): &mut (Vec<(f64, f64)>, f64)| {
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut left = *share;
        for &(value, cost) in &*values {
            left -= cost;
            if left <= 1e-12 {
                return value;
            }
        }
        values.last().map_or(near, |last| last.0)
    };
    match intercept {
        Intercept::Free => {
            let [one, other] = &mut sides;
            0.5 * (quantile(one) + quantile(other))
        }
        _ => quantile(&mut sides[0]),
    }
}

/// A task in which every block has its own score, with coefficient and rows already applied.
pub(crate) struct Reached<'a, T> {
    pub(crate) task: &'a T,
    /// The common margin, in the ν form.
    pub(crate) margin: Option<f64>,
}

impl<T: Independent> Independent for Reached<'_, T> {
    fn blocks(&self) -> usize {
        self.task.blocks()
    }

    fn loss(&self) -> Loss {
        self.task.loss()
    }

    fn constraint(&self, block: usize) -> Constraint {
        let own = self.task.constraint(block);
        // The scores are indexed by block.
        Constraint { row: block, against: None, coefficient: 1.0, margin: self.margin.unwrap_or(own.margin), ..own }
    }

    fn cut(&self, block: usize) -> usize {
        self.task.cut(block)
    }

    fn cuts(&self) -> usize {
        self.task.cuts()
    }
}
