//! The block dual of joint problems over several classes: linear, one row at a time.
//!
//! ```text
//! min  ½ Σ_m ‖w_m‖² + Σ_i C_i · loss_i(v_i),   v_im = Δ_im + s_im − s_i,y,   s = x·w + b
//! max over α   Σ_i Σ_{m≠y} α_im Δ_im − ½ Σ_m ‖w_m‖² − Σ cost*(α),   w_m = Σ_i u_im x_i
//! s.t.         α ≥ 0;  largest violation: Σ_m α_im ≤ C_i;  sum of hinges: α_im ≤ C_i;  free constants: Σ_i u_im = 0
//! ```
//! y is the class of row i, Δ its margins, u_im = −α_im for the other classes and u_iy = Σ_m α_im. A step solves the
//! block of one row exactly ([`block`]). The scores of a row for all classes come from one walk over its features: the
//! weights of a feature for all classes are side by side (Keerthi, Sundararajan, Chang, Hsieh & Lin, A sequential dual
//! method for large scale multi-class linear SVMs, KDD 2008).
//!
//! **Gap.** With w = w(α) the duality gap is the sum over rows of g_i = C_i·loss(v_i) − Σ_m α_im v_im + cost*(α_i). Near the
//! optimum the dual value of w(α) is far more exact than its primal value, because every visit fits one row at the cost of
//! others. A check therefore computes the primal value, and g_i, at the mean of the weights since the last check, on all
//! threads; the best point so far is returned. Rows whose g_i is a small share of the average leave the active set until
//! the next check.
//!
//! **Many classes.** If the largest violation counts, from [`lane::LISTED_FROM`] classes on a row keeps a list of the
//! classes that matter: those with dual variables, and those with the largest violations at the last check. Steps look at
//! these alone, so that dual variables stay few.
//!
//! **Free constants** are found by the method of multipliers, as in [`super::dual_coordinate_descent`]: steps see
//! b = b₀ + κ Σ_i u_im, and b₀ moves to b after each pass. The bound is that of the balanced point ([`duals`]).
//!
//! **Two cores** work on sparse rows, even and odd ones as there (dense rows undo too much of each other's steps): each
//! against its own copy of the weights, in which its own changes count σ-fold; then both changes are added up. A round
//! after which the dual has fallen is undone and repeated with a larger σ.
//!
//! Stops at a relative gap. Cost of a pass: the entries of the active rows times the classes. It does not solve the
//! softmax, whose dual variables are all above zero.

mod against_own;
mod duals;
mod lane;
mod sides;

pub(crate) use against_own::AgainstOwn;
pub(crate) use duals::{certified_by_classes, check_dual_of_classes, dual_of_classes, objective_of_classes};
pub(super) use duals::{dual_value, feasible, slopes_of_classes, weights_behind};

use super::dual_coordinate_descent::merge;
use super::scaled_rows::ScaledRows;
use super::{Progress, Solution, Start, Stop, Witness, overflow, relative_gap};
use crate::data::{Design, Rows, with_rows};
use crate::error::{Code, Error, Result};
use crate::parallel::{self, Spare};
use crate::random::Random;
use crate::run::{Cancel, Observer};
use crate::task::{Intercept, LANES};
use lane::{Fixed, LISTED_FROM, Lane, Point, View, gathered, matter};
use std::borrow::Cow;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct ClassBlocks {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of passes.
    pub max_passes: u64,
    /// Seeds the order of visits.
    pub seed: u64,
    /// How the constants are treated.
    pub intercept: Intercept,
}

/// The stream of random numbers for the order of visits.
const VISITS: u64 = 0x636c_6200;

/// Two lanes pay off from this many products a pass, if the weights of both lanes fit into caches and memory.
const LANES_FROM: u64 = 1 << 21;
const LANE_WEIGHTS: usize = 1 << 23;
/// Rows that store this share of their features count as dense.
const DENSE: f64 = 0.3;
/// A round takes at least this many products, and as many per weight: it costs a few passes over the weights.
const ROUND: u64 = 1 << 17;
const ROUND_PER_WEIGHT: u64 = 8;
const ROUNDS: u64 = 200;
const LEAST_ROUNDS: u64 = 8;

/// The first σ on two lanes, and the one with which the dual never falls.
const FIRST_SIGMA: f64 = 1.25;
const SAFE_SIGMA: f64 = 2.0;

/// Rows whose gap is below this share of the mean leave the active set.
const SMALL: f64 = 0.1;

/// The first check: earlier passes are far from any tolerance.
const FIRST_CHECK: u64 = 3;

/// A check is due when the number of sweeps over the active rows has grown by this factor since the last one, or by this
/// number.
const MORE_SWEEPS: f64 = 1.3;
const MOST_SWEEPS: u64 = 20;

/// The weights are added to their mean after at least this many products per weight.
const MEAN_PRODUCTS: u64 = 16;

/// Rows judged by one job.
const RUN: usize = 256;

/// How often the cancel flag is looked at, in visits.
const POLL: usize = 512;

/// Half the sum of the squares, on all threads.
fn half(numbers: &[f64]) -> f64 {
    const RUN: usize = 1 << 15;
    let squares = |part: &[f64]| part.iter().map(|number| number * number).sum::<f64>();
    let of = |part: usize| squares(&numbers[part * RUN..((part + 1) * RUN).min(numbers.len())]);
    0.5 * parallel::map(numbers.len().div_ceil(RUN), of).iter().sum::<f64>()
}

impl ClassBlocks {
    /// Solves a joint problem over the rows of `design`, from the dual variables of `start` if it has any.
    pub(crate) fn solve<T: AgainstOwn>(
        &self,
        task: &T,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        if !task.has_blocks() {
            return Err(Error::new(Code::Internal, "a smooth loss reached the block dual"));
        }
        if task.count() > u32::MAX as usize {
            return Err(Error::new(Code::BadSetting, "more than 4,294,967,295 rows; the block dual takes fewer"));
        }
        let progress = Progress::new(observer, cancel);
        with_rows!(design.matrix(), rows => {
            State::new(self, task, (design, rows), start, cancel)?.run(self, progress, cancel)
        })
    }
}

/// The mean of the weights since the last check. They change with every visit around the optimum, where the dual value is
/// flat and the primal value is not: near the end, the primal value of the mean is far lower.
#[derive(Default)]
struct Mean {
    sum: Point,
    /// Σ of the constants.
    constants: Vec<f64>,
    count: u32,
    /// Products since the weights were last added.
    products: u64,
}

impl Mean {
    fn add(&mut self, point: &Point, centre: &[f64], kappa: f64) {
        if self.count == 0 {
            self.sum.clone_from(point);
            self.constants.clear();
            self.constants.resize(centre.len(), 0.0);
        } else {
            self.sum.add(point);
        }
        let own = centre.iter().zip(&point.pulls).map(|(centre, pull)| centre + kappa * pull);
        self.constants.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        (self.count, self.products) = (self.count + 1, 0);
    }

    /// The mean itself. The next point that is added begins a new one.
    fn take(&mut self) -> (Point, Vec<f64>) {
        let share = 1.0 / f64::from(self.count.max(1));
        let (mut point, mut constants) = (std::mem::take(&mut self.sum), std::mem::take(&mut self.constants));
        point.scale(share);
        constants.iter_mut().for_each(|constant| *constant *= share);
        self.count = 0;
        (point, constants)
    }
}

/// The variables of the main loop.
struct State<'a, R, T> {
    fixed: Fixed<'a, R, T>,
    intercept: Intercept,
    lanes: Vec<Lane>,
    view: View,
    /// The point that two lanes share at the start of a round.
    shared: Point,
    mean: Mean,
    /// Σ α m − cost*(α)
    gain: f64,
}

/// The result of a check.
struct Checked {
    /// The weights of the scaled features, those of one feature for all classes side by side, and the constants.
    weights: Vec<f64>,
    constants: Vec<f64>,
    objective: f64,
    /// The gap of each row.
    gaps: Vec<f64>,
}

/// The best point so far.
#[derive(Default)]
struct Best {
    weights: Vec<f64>,
    constants: Vec<f64>,
    objective: Option<f64>,
}

impl<'a, R: Rows, T: AgainstOwn> State<'a, R, T> {
    fn new(
        settings: &ClassBlocks,
        task: &'a T,
        (design, rows): (&'a Design, &'a R),
        start: Option<&Start>,
        cancel: &Cancel,
    ) -> Result<State<'a, R, T>> {
        let (classes, count) = (task.scores(), task.count());
        let stride = classes.next_multiple_of(LANES);
        let scaled = ScaledRows::new(design, rows);
        let mut squares = parallel::collect(count, RUN, |row| scaled.square(row));
        cancel.check_wanted()?;
        // The proximal term weighs about as much as the features: then a step on one row moves b as far as it moves w.
        let mean = squares.iter().sum::<f64>() / count.max(1) as f64;
        let kappa = match settings.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => 1.0,
            Intercept::Free if mean > 0.0 => mean,
            Intercept::Free => 1.0,
        };
        squares.iter_mut().for_each(|square| *square += kappa);
        if squares.iter().any(|square| !(square * SAFE_SIGMA).is_finite()) {
            return Err(overflow());
        }
        let listed = classes >= LISTED_FROM && task.may_list();
        let weights = design.cols() * stride;
        let products = design.matrix().entries() * stride as u64;
        let sparse = (design.matrix().entries() as f64) < DENSE * count as f64 * design.cols() as f64;
        let apart = design.factor().is_none() && design.shift().is_none() && sparse;
        let rounds = products / (ROUND_PER_WEIGHT * weights.max(1) as u64).max(ROUND);
        let two = apart && !listed && products >= LANES_FROM && weights <= LANE_WEIGHTS && rounds >= LEAST_ROUNDS;
        let number = if two { 2 } else { 1 };
        let lane = |lane: usize| {
            let random = Random::new(settings.seed, VISITS, lane as u64);
            Lane::new(lane, number, count, listed, random)
        };
        let point = || Point { v: vec![0.0; weights], sums: scaled.sums(stride), pulls: vec![0.0; stride] };
        let mut lanes: Vec<Lane> = (0..number).map(lane).collect();
        let shared = if two { point() } else { Point::default() };
        lanes.iter_mut().for_each(|lane| lane.point = point());
        let fixed = Fixed { task, rows: scaled, stride, kappa, squares, listed };
        let sigma = if two { FIRST_SIGMA } else { 1.0 };
        let view = View { centre: vec![0.0; stride], sigma, level: 0.0, whole: true };
        let mut state =
            State { fixed, intercept: settings.intercept, lanes, view, shared, mean: Mean::default(), gain: 0.0 };
        if let Some(start) = start {
            state.start_at(start);
        }
        state.lanes.iter_mut().for_each(|lane| lane.activate(|row| task.cost(row) > 0.0));
        Ok(state)
    }

    /// Takes over the dual variables of a neighbouring problem, and their weights.
    fn start_at(&mut self, start: &Start) {
        let Some(dual) = start.classes.as_ref().filter(|dual| dual.rows() == self.fixed.task.count()) else { return };
        let lanes = self.lanes.len();
        let Fixed { task, stride, .. } = self.fixed;
        let mut point = std::mem::take(&mut self.lanes[0].point);
        for (row, (classes, values)) in dual.all_lists().enumerate() {
            let mut duals: Vec<(u32, f64)> = classes.iter().copied().zip(values.iter().copied()).collect();
            task.fit(row, &mut duals);
            if duals.is_empty() {
                continue;
            }
            let signed = |&(class, value): &(u32, f64)| (class, task.sign(row, class as usize) * value);
            let mut steps: Vec<(u32, f64)> = duals.iter().map(signed).collect();
            let sum = steps.iter().map(|(_, value)| value).sum();
            steps.iter_mut().for_each(|(_, value)| *value = -*value);
            steps.push((task.own(row) as u32, sum));
            steps.iter().for_each(|&(class, step)| point.pulls[class as usize] += step);
            self.fixed.rows.add_to_some(row, &steps, (&mut point.v, stride), &mut point.sums);
            for &(class, value) in &duals {
                let own = task.conjugate(task.cost(row), value);
                self.gain += value * task.margin(row, class as usize) - own;
            }
            self.lanes[row % lanes].set(row, duals);
        }
        // The steps see b = centre + κ Σ u: set it to the neighbour's b, for any dual variables.
        if self.intercept == Intercept::Free {
            for (class, centre) in self.view.centre.iter_mut().enumerate() {
                let b = start.thresholds.get(class).copied().unwrap_or(0.0);
                *centre = b - self.fixed.kappa * point.pulls[class];
            }
        }
        if lanes == 2 {
            self.lanes[1].point = point.clone();
            self.shared = point.clone();
        }
        self.lanes[0].point = point;
    }

    /// The current point: between rounds, both lanes hold the same.
    fn point(&self) -> &Point {
        &self.lanes[0].point
    }

    fn active(&self) -> usize {
        self.lanes.iter().map(Lane::active).sum()
    }

    /// The weights of the scaled features at the current point; those of one feature for all classes are side by side.
    fn weights(&self) -> Cow<'_, [f64]> {
        let Fixed { rows, stride, task, .. } = &self.fixed;
        let Point { v, sums, .. } = self.point();
        match self.is_plain() {
            true => Cow::Borrowed(v),
            false => Cow::Owned(rows.weights_of_outputs(v, sums, (task.scores(), *stride))),
        }
    }

    /// Whether the loops keep the weights as they are.
    fn is_plain(&self) -> bool {
        let Fixed { rows, stride, task, .. } = &self.fixed;
        let design = rows.design();
        task.scores() == *stride && design.factor().is_none() && design.shift().is_none()
    }

    /// The dual value of the current point, without what free constants require.
    fn dual(&self) -> f64 {
        let penalty = if self.intercept == Intercept::Penalised { half(&self.point().pulls) } else { 0.0 };
        let design = self.fixed.design();
        // What fills up the weights of a feature is zero.
        let unscaled = design.factor().is_none() && design.shift().is_none();
        self.gain - penalty - if unscaled { half(&self.point().v) } else { half(&self.weights()) }
    }

    /// One pass over the active rows. None after a cancel.
    fn pass(&mut self, cancelled: impl Fn() -> bool) -> Option<()> {
        match self.lanes.len() {
            1 => {
                let State { lanes, fixed, view, mean, gain, .. } = self;
                let lane = &mut lanes[0];
                let products =
                    fixed.design().matrix().entries() * fixed.stride as u64 / fixed.task.count().max(1) as u64;
                lane.shuffle();
                let count = lane.active();
                for start in (0..count).step_by(POLL) {
                    if cancelled() {
                        return None;
                    }
                    let visits = start..(start + POLL).min(count);
                    mean.products += products * visits.len() as u64;
                    *gain += lane.round(visits, fixed, view);
                    if mean.products >= MEAN_PRODUCTS * lane.point.v.len() as u64 || start + POLL >= count {
                        mean.add(&lane.point, &view.centre, fixed.kappa);
                    }
                }
            }
            _ => self.pass_in_rounds(cancelled)?,
        }
        self.lanes.iter_mut().for_each(Lane::shrink);
        if self.intercept == Intercept::Free {
            let State { view, lanes, fixed, .. } = self;
            let pulls = &lanes[0].point.pulls;
            view.centre.iter_mut().zip(pulls).for_each(|(centre, pull)| *centre += fixed.kappa * pull);
        }
        Some(())
    }

    fn pass_in_rounds(&mut self, cancelled: impl Fn() -> bool) -> Option<()> {
        let share = self.active() as f64 / self.fixed.task.count().max(1) as f64;
        let State { fixed, lanes, view, shared, mean, gain, .. } = self;
        let products = share * (fixed.design().matrix().entries() * fixed.stride as u64) as f64;
        let least = (ROUND_PER_WEIGHT * shared.v.len() as u64).max(ROUND);
        let rounds = ((products as u64) / least).clamp(LEAST_ROUNDS, ROUNDS) as usize;
        let [even, odd] = &mut lanes[..] else { return None };
        even.shuffle();
        odd.shuffle();
        let mut square: f64 = shared.v.iter().map(|v| v * v).sum();
        let penalty = |pulls: &[f64], view: &View| -> f64 {
            let own = |(pull, centre): (&f64, &f64)| pull * (centre + 0.5 * fixed.kappa * pull);
            if fixed.kappa > 0.0 { pulls.iter().zip(&view.centre).map(own).sum() } else { 0.0 }
        };
        for round in 0..rounds {
            let of = |lane: &Lane| {
                let count = lane.active();
                count * round / rounds..count * (round + 1) / rounds
            };
            let (first, second) = (of(even), of(odd));
            let (even_stay, odd_stay) = (even.staying(), odd.staying());
            loop {
                if cancelled() {
                    return None;
                }
                let (a, b) = parallel::join(
                    || even.round(first.clone(), fixed, view),
                    || odd.round(second.clone(), fixed, view),
                );
                // The changes of each lane, whose own copy holds σ times as much.
                let share = 1.0 / view.sigma;
                let before = penalty(&shared.pulls, view);
                merge(&shared.pulls, &mut even.point.pulls, &mut odd.point.pulls, share);
                let merged = merge(&shared.v, &mut even.point.v, &mut odd.point.v, share);
                let change = penalty(&even.point.pulls, view) - before;
                let rise = a + b - 0.5 * (merged - square) - change;
                if rise < -1e-12 * square.max(1.0) && view.sigma < SAFE_SIGMA {
                    even.undo(even_stay, shared);
                    odd.undo(odd_stay, shared);
                    view.sigma = (view.sigma * 1.25).min(SAFE_SIGMA);
                    continue;
                }
                shared.v.copy_from_slice(&even.point.v);
                shared.pulls.copy_from_slice(&even.point.pulls);
                square = merged;
                *gain += a + b;
                break;
            }
            mean.products += (products / rounds as f64) as u64;
            if mean.products >= MEAN_PRODUCTS * shared.v.len() as u64 || round + 1 == rounds {
                mean.add(shared, &view.centre, fixed.kappa);
            }
        }
        Some(())
    }

    /// The loss and the gap of every row at the mean of the weights. Renews the lists of classes.
    fn check(&mut self, cancel: &Cancel) -> Result<Checked> {
        let rows = self.fixed.task.count();
        if self.mean.count == 0 {
            // No pass was made.
            let (point, centre) = (&self.lanes[0].point, &self.view.centre);
            self.mean.add(point, centre, self.fixed.kappa);
        }
        let (point, constants) = self.mean.take();
        let (fixed, lanes) = (&self.fixed, &self.lanes);
        let buffers: Spare<(Vec<f64>, Vec<u32>)> = Spare::default();
        let judged = parallel::map(rows.div_ceil(RUN), |run| {
            let run = run * RUN..((run + 1) * RUN).min(rows);
            let (mut loss, mut gaps, mut lists) = (0.0, Vec::with_capacity(run.len()), Vec::new());
            buffers.lend(|(z, order)| {
                z.resize(fixed.stride, 0.0);
                for row in run.clone() {
                    if fixed.task.cost(row) == 0.0 || cancel.is_raised() {
                        gaps.push(0.0);
                        lists.extend(fixed.listed.then(Vec::new));
                        continue;
                    }
                    let duals = lanes[row % lanes.len()].duals(row);
                    let (own, gap) = fixed.judge(row, (&point, &constants), duals, z);
                    loss += own;
                    gaps.push(gap);
                    if fixed.listed {
                        let mut list = Vec::new();
                        matter(z, duals, order, &mut list);
                        lists.push(list);
                    }
                }
            });
            fixed.design().passed(run);
            (loss, gaps, lists)
        });
        cancel.check_wanted()?;
        let (mut loss, mut gaps) = (0.0, Vec::with_capacity(rows));
        let mut row = 0;
        let lanes = self.lanes.len();
        for (own, part, lists) in judged {
            loss += own;
            gaps.extend(part);
            for list in lists {
                self.lanes[row % lanes].lists[row / lanes] = list;
                row += 1;
            }
        }
        let Fixed { rows, stride, task, .. } = &self.fixed;
        let weights = match self.is_plain() {
            true => point.v,
            false => rows.weights_of_outputs(&point.v, &point.sums, (task.scores(), *stride)),
        };
        let constants = match self.intercept {
            Intercept::None => Vec::new(),
            _ => constants[..task.scores()].to_vec(),
        };
        let penalty = if self.intercept == Intercept::Penalised { half(&constants) } else { 0.0 };
        let objective = half(&weights) + penalty + loss;
        if !objective.is_finite() {
            return Err(overflow());
        }
        Ok(Checked { weights, constants, objective, gaps })
    }

    /// The lower bound of the current point. If the constants are free, its dual variables are balanced first, once the
    /// gap is near the tolerance.
    fn bound(&self, objective: f64, tolerance: f64, cancel: &Cancel) -> Result<Option<f64>> {
        let dual = self.dual();
        if self.intercept != Intercept::Free {
            return Ok(Some(dual.max(0.0)));
        }
        if objective - dual > 2.0 * tolerance * objective {
            return Ok(None);
        }
        let task = self.fixed.task;
        let mut balanced = gathered(&self.lanes, task.count());
        task.balance(&mut balanced);
        dual_value(task, self.fixed.design(), &balanced, self.intercept, cancel).map(Some)
    }

    fn run(mut self, settings: &ClassBlocks, mut progress: Progress<'_>, cancel: &Cancel) -> Result<Solution> {
        let counted = (0..self.fixed.task.count()).filter(|&row| self.fixed.task.cost(row) > 0.0).count();
        // Passes over all rows: the active rows of several sweeps may make up one.
        let (mut pass, mut visits, mut sweep, mut due) = (0, 0, 0, FIRST_CHECK);
        let mut best = Best::default();
        let stop = loop {
            if pass < settings.max_passes {
                visits += self.active() as u64;
                if self.pass(|| progress.cancelled()).is_none() {
                    break Stop::Cancelled;
                }
                (pass, sweep) = (visits.div_ceil(counted.max(1) as u64), sweep + 1);
            }
            let ended = pass >= settings.max_passes;
            if !(sweep >= due || ended || self.active() == 0) {
                continue;
            }
            let Checked { weights, constants, objective, gaps } = self.check(cancel)?;
            if cancel.is_raised() {
                // The sums are incomplete.
                break Stop::Cancelled;
            }
            let gap: f64 = gaps.iter().sum();
            if best.objective.is_none_or(|best| objective < best) {
                best = Best { weights, constants, objective: Some(objective) };
            }
            let objective = best.objective.unwrap_or(objective);
            let bound = self.bound(objective, settings.tolerance, cancel)?;
            progress.bound(bound);
            if progress.report(pass, objective, &best.weights, &best.constants) {
                break Stop::Cancelled;
            }
            // The stated bound is that of the current point, which an earlier one may exceed.
            if bound.is_some_and(|bound| relative_gap(objective, bound) <= settings.tolerance) {
                break Stop::Converged;
            }
            if ended {
                break Stop::PassLimit;
            }
            due = sweep + (((MORE_SWEEPS - 1.0) * sweep as f64).ceil() as u64).min(MOST_SWEEPS);
            self.view.level = SMALL * gap / counted.max(1) as f64;
            self.view.whole = false;
            let (level, task) = (self.view.level, self.fixed.task);
            self.lanes.iter_mut().for_each(|lane| lane.activate(|row| task.cost(row) > 0.0 && gaps[row] > level));
            if self.active() == 0 || gap <= f64::EPSILON * objective {
                break Stop::Stalled;
            }
        };
        progress.check_wanted()?;
        if best.objective.is_none() {
            // Cancelled before the first check.
            let constants = match self.intercept {
                Intercept::None => Vec::new(),
                _ => self.view.centre[..self.fixed.task.scores()].to_vec(),
            };
            best = Best { weights: self.weights().into_owned(), constants, objective: Some(f64::INFINITY) };
        }
        let task = self.fixed.task;
        let mut dual = gathered(&self.lanes, task.count());
        if self.intercept == Intercept::Free {
            task.balance(&mut dual);
        }
        Ok(Solution {
            weights: best.weights,
            thresholds: best.constants,
            objective: best.objective.unwrap_or(f64::INFINITY),
            lower_bound: progress.lower_bound,
            witness: Witness::Classes(dual),
            passes: pass,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        })
    }
}
