//! Sequential minimal optimisation for kernels, a working set at a time.
//!
//! ```text
//! min over α   F(α) = ½ Σ_ij α_i α_j a_i a_j k_ij + ½ Σ_i d_i α_i² − Σ_i m_i α_i
//! s.t.         0 ≤ α_i ≤ limit_i,   and Σ_i α_i t_i = 0 where the threshold b is free (t_i = ±1)
//! ```
//! Notation of [`crate::task::Constraint`]: a coefficient, t threshold coefficient, m margin; d_i = 1/(2 cost_i) for squared
//! hinge, 0 for hinge; k_ij the kernel between the rows (or differences of rows) of blocks i and j. Scores are
//! s_i = Σ_j α_j a_j k_ij, the gradient is g_i = a_i s_i + d_i α_i − m_i.
//!
//! A round takes the variables that violate optimality the most, half of them new, computes their kernel rows together,
//! solves the small problem over them by steps on two variables (one where there is no equality), and then brings all
//! gradients up to date in one pass over these rows (Wen et al., ThunderSVM, JMLR 19, 2018). Steps choose the first variable
//! by its gradient and the second by the most that a step can gain (Fan, Chen & Lin, Working set selection using second
//! order information, JMLR 6, 2005). Where curvature along a step is not positive, as indefinite kernels and duplicate rows
//! have it, the step goes to the end of the box.
//!
//! Kernel rows are f32 (f64 where rows are few) and wait in a cache of so many bytes; gradients are f64. Stops at a relative gap: all gradients are
//! known, so that primal and dual value cost O(n). Cost of a round: the new kernel rows, and n additions a variable that
//! moved. It does not shrink the problem: rows come whole.

mod working_set;

use super::certificate::best_threshold;
use super::{Progress, Stop, TracePoint, overflow, relative_gap};
use crate::error::Result;
use crate::kernel::{Element, RowCache, add_row};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::task::{Constraint, Independent, Intercept};
use rayon::prelude::*;
pub(super) use working_set::{FLAT, PartnerSearch, largest, pair_step, partner, take_row};
use working_set::{Local, Selection};

/// Kernel values between the blocks of a task.
pub(crate) trait Gram<T>: Sync {
    /// k_ii of every block.
    fn diagonal(&self) -> Vec<f64>;
    /// The rows of the named blocks.
    fn fill(&self, blocks: &[usize], outs: Vec<&mut [T]>);
}

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct Smo {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The most rounds to make.
    pub(crate) max_passes: u64,
    /// What is done about the threshold.
    pub(crate) intercept: Intercept,
    /// Bytes that kernel rows may take.
    pub(crate) cache_bytes: u64,
}

/// What a kernel solver returns.
#[derive(Clone, Debug)]
pub(crate) struct KernelSolution {
    /// One dual variable a block.
    pub(crate) alpha: Vec<f64>,
    /// b, where there is one.
    pub(crate) threshold: f64,
    /// The primal value.
    pub(crate) objective: f64,
    /// The dual value.
    pub(crate) lower_bound: f64,
    /// Rounds made.
    pub(crate) passes: u64,
    /// Why it stopped.
    pub(crate) stop: Stop,
    /// How it went.
    pub(crate) trace: Vec<TracePoint>,
    /// Kernel rows asked for, and of these computed.
    pub(crate) rows: (u64, u64),
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) alpha: f64,
    pub(super) gradient: f64,
    pub(super) limit: f64,
    /// a
    pub(super) coefficient: f64,
    /// t: ±1, or 0 where there is no equality.
    pub(super) threshold: f64,
    /// k_ii, with t_i² where the threshold is penalised.
    pub(super) own: f64,
    /// d
    pub(super) diagonal: f64,
}

/// Variables solved together: their kernel values fill the second-level cache.
const WORKING_SET: usize = 512;

impl Smo {
    /// Solves the task over the kernel values of its blocks.
    pub(crate) fn solve<T: Independent, V: Element>(
        &self,
        task: &T,
        gram: &dyn Gram<V>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<KernelSolution> {
        let mut progress = Progress::new(observer, cancel);
        let mut state = State::new(self, task, gram)?;
        let mut passes = 0;
        let mut best_violation = f64::INFINITY;
        let mut idle = 0;
        let stop = loop {
            let selection = Selection::of(&state.variables, state.equality());
            // Values are cheap beside a round, but not free.
            let values = state.values(task, self.intercept, selection.threshold);
            if !(values.primal.is_finite() && values.dual.is_finite()) {
                return Err(overflow());
            }
            progress.bound(Some(values.dual.max(0.0)));
            if progress.report(passes, values.primal, &[], &[]) || progress.cancelled() {
                break Stop::Cancelled;
            }
            if relative_gap(values.primal, values.dual) <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            if selection.violation < best_violation * 0.999 {
                (best_violation, idle) = (selection.violation, 0);
            } else {
                idle += 1;
            }
            if selection.violation <= 0.0 || idle > STALLED_ROUNDS {
                break Stop::Stalled;
            }
            passes += 1;
            state.round(gram, &selection, cancel);
        };
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => state.pull(task),
            Intercept::Free => {
                let near = Selection::of(&state.variables, state.equality()).threshold;
                state.best_threshold(task, near)
            }
        };
        let values = state.values(task, self.intercept, threshold);
        Ok(KernelSolution {
            alpha: state.variables.iter().map(|variable| variable.alpha).collect(),
            threshold,
            objective: values.primal,
            lower_bound: values.dual.max(0.0),
            passes,
            stop,
            trace: progress.trace,
            rows: state.cache.counts(),
        })
    }
}

/// So many rounds without a smaller violation are too many.
const STALLED_ROUNDS: u32 = 1000;

/// Primal and dual value.
struct Values {
    primal: f64,
    dual: f64,
}

struct State<V> {
    variables: Vec<Variable>,
    /// m and cost of each block.
    margins: Vec<(f64, f64)>,
    loss: Loss,
    penalised: bool,
    cache: RowCache<V>,
    working: Vec<usize>,
}

impl<V: Element> State<V> {
    fn new<T: Independent>(settings: &Smo, task: &T, gram: &dyn Gram<V>) -> Result<State<V>> {
        let loss = task.loss();
        let penalised = settings.intercept == Intercept::Penalised;
        let diagonal = gram.diagonal();
        let blocks = task.blocks();
        let mut variables = Vec::with_capacity(blocks);
        let mut margins = Vec::with_capacity(blocks);
        for (block, &own) in diagonal.iter().enumerate().take(blocks) {
            let c = task.constraint(block);
            let extra = if loss == Loss::SquaredHinge { 0.5 / c.cost } else { 0.0 };
            let own = own + if penalised { c.threshold * c.threshold } else { 0.0 };
            variables.push(Variable {
                alpha: 0.0,
                gradient: -c.margin,
                limit: if c.cost > 0.0 { loss.dual_limit(c.cost) } else { 0.0 },
                coefficient: c.coefficient,
                threshold: if settings.intercept == Intercept::Free { c.threshold } else { 0.0 },
                own,
                diagonal: if c.cost > 0.0 { extra } else { 0.0 },
            });
            margins.push((c.margin, c.cost));
        }
        if variables.iter().any(|variable| !variable.own.is_finite() && variable.limit > 0.0) {
            return Err(overflow());
        }
        let least = (2 * WORKING_SET).min(blocks.max(1));
        let cache = RowCache::new(blocks, blocks, settings.cache_bytes, least);
        Ok(State { variables, margins, loss, penalised, cache, working: Vec::new() })
    }

    fn equality(&self) -> bool {
        self.variables.iter().any(|variable| variable.threshold != 0.0)
    }

    /// Σ α t
    fn pull<T: Independent>(&self, task: &T) -> f64 {
        self.variables
            .iter()
            .enumerate()
            .map(|(block, variable)| variable.alpha * task.constraint(block).threshold)
            .sum()
    }

    /// a_i s_i of a block, with t_i b where the threshold is penalised: what its gradient is made of.
    fn reached(&self, block: usize) -> f64 {
        let variable = &self.variables[block];
        variable.gradient + self.margins[block].0 - variable.diagonal * variable.alpha
    }

    fn values<T: Independent>(&self, task: &T, intercept: Intercept, threshold: f64) -> Values {
        const CHUNK: usize = 4096;
        let free = if intercept == Intercept::Free { threshold } else { 0.0 };
        let parts: Vec<[f64; 3]> = self
            .variables
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, variables)| {
                let mut sums = [0.0; 3];
                for (at, variable) in variables.iter().enumerate() {
                    let block = chunk * CHUNK + at;
                    let ((margin, cost), reached) = (self.margins[block], self.reached(block));
                    sums[0] += variable.alpha * reached;
                    sums[1] += variable.alpha * margin - self.loss.dual_cost(variable.alpha, cost);
                    sums[2] += cost * self.loss.value(margin - reached - task.constraint(block).threshold * free);
                }
                sums
            })
            .collect();
        let mut total = [0.0; 3];
        parts.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
        let [square, gain, losses] = total;
        Values { primal: 0.5 * square + losses, dual: gain - 0.5 * square }
    }

    /// The b that costs the least.
    fn best_threshold<T: Independent>(&self, task: &T, near: f64) -> f64 {
        let reached: Vec<f64> = (0..self.variables.len()).map(|block| self.reached(block)).collect();
        best_threshold(&Reached(task), &reached, near)
    }

    fn round(&mut self, gram: &dyn Gram<V>, selection: &Selection, cancel: &Cancel) {
        self.working = selection.working_set(&self.working, &self.variables, WORKING_SET);
        self.cache.prepare(&self.working, |missing, outs| gram.fill(missing, outs));
        if cancel.is_raised() {
            return;
        }
        let mut local = Local::new(&self.working, &self.variables, &self.cache, self.penalised);
        local.solve(self.equality(), selection.violation);
        // What moved, as multiples of kernel rows.
        let moved: Vec<(usize, f64, f64)> = self
            .working
            .iter()
            .zip(local.alphas())
            .filter_map(|(&block, alpha)| {
                let variable = &mut self.variables[block];
                let change = alpha - variable.alpha;
                variable.alpha = alpha;
                (change != 0.0).then_some((block, change * variable.coefficient, change))
            })
            .collect();
        let pull: f64 = if self.penalised { moved.iter().map(|&(_, step, _)| step).sum() } else { 0.0 };
        const CHUNK: usize = 1024;
        let cache = &self.cache;
        self.variables.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, variables)| {
            let start = chunk * CHUNK;
            let mut sums = [pull; CHUNK];
            for &(block, step, _) in &moved {
                add_row(&mut sums[..variables.len()], step, &cache.row(block)[start..]);
            }
            for (variable, sum) in variables.iter_mut().zip(&sums) {
                variable.gradient += variable.coefficient * sum;
            }
        });
        for &(block, _, change) in &moved {
            let variable = &mut self.variables[block];
            variable.gradient += variable.diagonal * change;
        }
    }
}

/// A task in which every block has a score of its own: coefficient and rows have done their work.
struct Reached<'a, T>(&'a T);

impl<T: Independent> Independent for Reached<'_, T> {
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    fn loss(&self) -> Loss {
        self.0.loss()
    }

    fn constraint(&self, block: usize) -> Constraint {
        // What was scored stands where the scores are looked up.
        Constraint { row: block, against: None, coefficient: 1.0, ..self.0.constraint(block) }
    }
}
