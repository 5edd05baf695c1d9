//! Small problems are solved to double precision, for any tolerance, and others on request.
//!
//! **The rule.** If `auto` chose the solver and the data have fewer than a million entries, rows (or pairs, if these
//! are more) times columns, zeros included, a solution found at the given tolerance is polished, as long as that takes
//! no more multiplications than the training did, or few ([`ALWAYS`]). The setting `polish` asks for it at any size and
//! cost. In a polished model a row of weight k gives the same result as that row k times, and a row of weight 0 the same
//! as no row, to all relevant digits, and the result does not depend on where a solver happened to stop. The model keeps
//! the tolerance of the user; its certificate states the gap that was reached. Multiplications are counted, not
//! measured, so that the same data give the same model.
//!
//! - Smooth losses continue with Newton's method ([`Newton::polish`]), over the rows themselves. After Newton's method
//!   itself the weights are the witness, after other solvers the dual point of the weights.
//! - The hinge, and the squared hinge with a kernel, continue with an active-set method over kernel values
//!   ([`crate::solve::polish`]), whose dual point is the witness.
//! - After the interior point, the interior point first gets close enough for either method, and its result is used if
//!   they fail.
//!
//! Rankings and comparisons by grades with hinge loss are not polished: their dual has one variable per pair. At
//! extreme costs the rounding of the hinge may reach its limit before the tolerance is met; then they continue with
//! cutting planes up to the tolerance, whatever that costs.
//!
//! These are not polished either: kernels whose values are kept in f32, which have no more digits; problems known by
//! their constraints alone; and the ν form. There, and whenever polishing gives no better result, the solution stays as
//! it was.

use super::{ByBlock, Over, PartTask, Problem, Run};
use crate::certificate::Witness;
use crate::data::{Design, Pairs};
use crate::error::Result;
use crate::kernel::{FEW_ROWS, KernelSettings};
use crate::loss::{Curve, Loss};
use crate::run::{Cancel, Event, Observer, Silent};
use crate::settings::Settings;
use crate::solve::machine::{Job, usual_cache};
use crate::solve::values::{dual_behind, dual_value, primal_of_scores, weights_behind};
use crate::solve::{
    CuttingPlane, InteriorPoint, LinearRisk, Newton, SignedGram, Solution, Start, Stop, TracePoint, onto_bounds, polish,
};
use crate::task::{Independent, Intercept, Objective, Roundable};
use crate::wish::Solver;
use std::time::Instant;

/// Problems with this many entries or more are solved to the tolerance only.
const MOST_ENTRIES: usize = 1_000_000;

/// The tolerance to which solvers run before the active set finds the last digits. From there few sets have to be
/// tried, and each costs little.
const CLOSE: f64 = 1e-8;

/// Once a solver is this [`CLOSE`], rows nearer to their margins than this share of the largest margin may lie on them.
const ON_MARGIN: f64 = 1e-4;

/// Gaps below this are rounding, and count as equal.
const ALL_DIGITS: f64 = 1e-13;

/// Multiplications that polishing may take even if the training took fewer: about a hundredth of a second.
const ALWAYS: f64 = 3e7;

/// Steps that polishing may take even if the training took fewer.
const ALWAYS_STEPS: u64 = 10;

/// Rounds over kernel values that take about as many multiplications as computing all of these values once.
const LEAST_ROUNDS: f64 = 100.0;

/// Features from which Newton's method does not compute its Hessian.
const EXACT_HESSIAN: f64 = 500.0;

/// What polishing may cost.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// Multiplications.
    pub(super) work: f64,
    /// The solver of the training, and its passes.
    trained: (Solver, u64),
}

impl Budget {
    /// What a solution allows; none if it is not polished. See the top of the file.
    pub(super) fn of(run: &Run<'_>, solution: &Solution) -> Option<Budget> {
        if !run.polishes || run.settings.is_hard_margin() || !matches!(solution.stop, Stop::Converged | Stop::Stalled) {
            return None;
        }
        if run.settings.polish {
            return Some(Budget { work: f64::INFINITY, trained: (run.solver, u64::MAX) });
        }
        let pairs = run.data.pairs().map_or(0, Pairs::len);
        let columns = run.data.cols().max(run.design.cols());
        let small = run.data.rows().max(pairs).saturating_mul(columns) < MOST_ENTRIES;
        let work = match solution.kernel.as_ref().and_then(|kernel| kernel.rows) {
            Some((_, computed)) => computed as f64 * run.design.matrix().entries() as f64,
            None => solution.passes as f64 * of_a_pass(run.design, run.solver),
        };
        let trained = (run.solver, solution.passes.max(ALWAYS_STEPS));
        (run.settings.solver == Solver::Auto && small).then_some(Budget { work: work.max(ALWAYS), trained })
    }

    /// How many passes of a solver it allows, at most `most`.
    pub(super) fn passes(&self, design: &Design, solver: Solver, most: u64) -> u64 {
        let (trained_by, passes) = self.trained;
        // A number too large for an integer becomes the largest one.
        let within = (self.work / of_a_pass(design, solver).max(1.0)) as u64;
        most.min(if solver == trained_by { passes } else { within })
    }
}

/// About how many multiplications a solver takes a pass.
fn of_a_pass(design: &Design, solver: Solver) -> f64 {
    let (entries, features) = (design.matrix().entries() as f64, design.cols() as f64);
    entries
        * match solver {
            Solver::Newton => 2.0 + 0.5 * features.min(EXACT_HESSIAN),
            Solver::InteriorPoint => 2.0 + features,
            _ => 2.0,
        }
}

/// Whether a gap is as good as the one before.
pub(super) fn is_as_good(gap: Option<f64>, before: Option<f64>) -> bool {
    match (gap, before) {
        (Some(gap), Some(before)) => gap <= before.max(ALL_DIGITS),
        (gap, None) => gap.is_some(),
        (None, _) => false,
    }
}

/// The better of two solutions for weights. An error while polishing is ignored, since the first solution is still
/// valid.
pub(super) fn or_better(
    run: &mut Run<'_>,
    solution: Solution,
    better: impl FnOnce(&mut Run<'_>, &Solution) -> Result<Option<Solution>>,
) -> Solution {
    let began = Instant::now();
    if run.observer.report(&Event::Polishing).is_break() {
        return solution;
    }
    let better = better(run, &solution);
    match better {
        Ok(Some(better))
            if is_as_good(better.gap(), solution.gap())
                && better.objective <= solution.objective * (1.0 + ALL_DIGITS) =>
        {
            let joined = joined(solution, better, run.settings.tolerance, began);
            tell(run, &joined);
            joined
        }
        _ => solution,
    }
}

/// Reports a polished solution. The run has ended, so a request to stop changes nothing.
pub(super) fn tell(run: &mut Run<'_>, solution: &Solution) {
    let Solution { passes, objective, lower_bound, weights, thresholds, .. } = solution;
    _ = run.observer.report(&Event::Pass {
        pass: *passes,
        objective: *objective,
        lower_bound: *lower_bound,
        weights,
        thresholds,
        held_out: None,
    });
}

/// The better solution with the history of both. `began` is when polishing began.
pub(super) fn joined(before: Solution, mut better: Solution, tolerance: f64, began: Instant) -> Solution {
    // Rounding can lift a bound above the objective.
    better.lower_bound = better.lower_bound.map(|bound| bound.min(better.objective));
    let Solution { passes, stop, first_rate, read, mut trace, .. } = before;
    let passes = passes + better.passes;
    if let Some(&last) = trace.last() {
        let (objective, lower_bound) = (better.objective, better.lower_bound);
        trace.pop_if(|last| last.pass == passes);
        let seconds = last.seconds + began.elapsed().as_secs_f64();
        trace.push(TracePoint { pass: passes, objective, lower_bound, seconds });
    }
    let rows = before.kernel.and_then(|kernel| kernel.rows);
    if let (Some(kernel), Some((asked, computed))) = (&mut better.kernel, rows) {
        kernel.rows = kernel.rows.map(|rows| (rows.0 + asked, rows.1 + computed));
    }
    let within = better.gap().is_some_and(|gap| gap <= tolerance);
    let stop = if within { Stop::Converged } else { stop };
    Solution { passes, stop, first_rate, read, trace, ..better }
}

/// Solutions of tasks without a dual variable for each row are continued to the limit of double precision if they are
/// over at most this many entries: a weight of k then gives the same model as the row k times.
pub(super) const FEW_ENTRIES: usize = 50_000;

/// Continues from a solution that has converged as far as it goes, and returns the better one.
pub(super) fn to_the_end(
    run: &Run<'_>,
    solution: Solution,
    into_start: impl FnOnce(Solution) -> Start,
    solve: impl FnOnce(&mut Run<'_>) -> Result<Solution>,
) -> Solution {
    let left = run.settings.max_passes.saturating_sub(solution.passes);
    if !run.polishes || solution.stop != Stop::Converged || left == 0 {
        return solution;
    }
    let settings = &Settings { tolerance: 0.0, max_passes: left, ..run.settings.clone() };
    let start = into_start(solution.clone());
    let (start, observer): (_, &mut dyn Observer) = (Some(&start), &mut Silent);
    let found = solve(&mut Run { observer, machine: None, start, settings, polishes: false, ..*run });
    match found {
        Ok(found) if !run.cancel.is_raised() && found.gap() <= solution.gap() => {
            let Solution { passes, mut trace, .. } = solution;
            let (pass, objective, lower_bound) = (passes + found.passes, found.objective, found.lower_bound);
            let seconds = trace.last().map_or(0.0, |last| last.seconds);
            trace.push(TracePoint { pass, objective, lower_bound, seconds });
            Solution { passes: pass, stop: Stop::Converged, trace, ..found }
        }
        _ => solution,
    }
}

/// A solution of a sum over parts, polished if that succeeds.
pub(super) fn polished_parts<T: PartTask>(
    run: &mut Run<'_>,
    task: &T,
    rule: Intercept,
    solution: Solution,
    stated: impl FnOnce(Solution) -> Result<Solution>,
) -> Solution {
    let (design, settings, cancel) = (run.design, run.settings, run.cancel);
    let hinge = settings.loss == Loss::Hinge;
    let Some(budget) = Budget::of(run, &solution) else { return solution };
    if hinge && solution.stop != Stop::Stalled {
        return solution;
    }
    let features = design.cols() * task.outputs();
    or_better(run, solution, |_, solution| {
        let start = solution.clone().into_start();
        if hinge {
            return by_planes(task, rule, design, settings, solution, &start, cancel);
        }
        let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
        let steps = budget.passes(design, Solver::Newton, Newton::POLISHING_STEPS);
        if steps == 0 {
            return Ok(None);
        }
        Newton::polish(&mut risk, features, &start, steps, cancel).and_then(stated).map(Some)
    })
}

/// Continues with cutting planes when the width of a rounded hinge cannot shrink any further.
fn by_planes<T: Objective>(
    task: &T,
    rule: Intercept,
    design: &Design,
    settings: &Settings,
    before: &Solution,
    start: &Start,
    cancel: &Cancel,
) -> Result<Option<Solution>> {
    let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
    let max_passes = settings.max_passes.saturating_sub(before.passes);
    let planes = CuttingPlane { tolerance: settings.tolerance, max_passes };
    let found = planes.solve(&mut risk, design.cols() * task.outputs(), Some(start), &mut Silent, cancel)?;
    cancel.check()?;
    // The cuts prove their bound for any weights.
    let Solution { weights, thresholds, objective, .. } =
        if before.objective < found.objective { before } else { &found };
    let (weights, thresholds, objective) = (weights.clone(), thresholds.clone(), *objective);
    Ok(Some(Solution { weights, thresholds, objective, ..found }))
}

/// A task with one constraint per block, to be polished.
pub(super) struct Polishing<'a, T> {
    pub(super) task: &'a T,
    pub(super) rule: Intercept,
    pub(super) problem: &'a ByBlock<T>,
}

/// A solution for weights, polished if that succeeds.
pub(super) fn polished<T: super::BlockTask>(
    run: &mut Run<'_>,
    polishing: &Polishing<'_, T>,
    solution: Solution,
) -> Solution {
    let Some(budget) = Budget::of(run, &solution) else { return solution };
    or_better(run, solution, |run, solution| {
        let start = solution.clone().into_start();
        polishing.better(run, solution, start, budget)
    })
}

impl<T: super::BlockTask> Polishing<'_, T> {
    fn over<'b>(&'b self, run: &'b Run<'_>) -> Over<'b, T> {
        Over { task: self.task, rule: self.rule, design: run.design, settings: run.settings }
    }

    fn better(&self, run: &Run<'_>, solution: &Solution, start: Start, budget: Budget) -> Result<Option<Solution>> {
        let over = self.over(run);
        if run.solver == Solver::InteriorPoint {
            return over.brought_closer(solution, &start, budget, run.cancel).map(Some);
        }
        if run.settings.loss != Loss::Hinge {
            return over.by_newton(run.solver, &start, budget, run.cancel);
        }
        match self.dual_start(run, start, budget)? {
            Some((dual, passes)) => over.by_active_set((&dual, passes), solution, budget.work, run.cancel),
            None => Ok(None),
        }
    }

    /// A dual point of the hinge that is close enough for the active set, and the number of passes that it took.
    fn dual_start(&self, run: &Run<'_>, start: Start, budget: Budget) -> Result<Option<(Vec<f64>, u64)>> {
        let (task, design, settings, cancel) = (self.task, run.design, run.settings, run.cancel);
        if let Some(alpha) = start.dual {
            let all_rows = LinearBlocks { task, design }.cost() * task.blocks() as f64;
            if settings.tolerance <= CLOSE || task.blocks() > FEW_ROWS || all_rows > budget.work {
                return Ok(Some((alpha, 0)));
            }
            // Here features are many and rows are few, so steps on two variables are faster than passes over all.
            let linear = Settings { kernel: KernelSettings::default(), ..settings.clone() };
            let mut machine = self.problem.machine(design, &linear, usual_cache(settings), cancel)?;
            // A round computes at most a working set of rows, mostly from those it has.
            let rounds = (budget.work / all_rows.max(1.0)).ceil() * LEAST_ROUNDS;
            let max_passes = settings.max_passes.min(rounds as u64);
            let closer = Settings { tolerance: CLOSE, max_passes, ..linear };
            let start = Some(&alpha[..]);
            let job = Job { settings: &closer, rule: self.rule, start, observer: &mut Silent, cancel };
            return Ok(Some((machine.minimise(task, job)?.weights, 0)));
        }
        let max_passes = budget.passes(design, Solver::Newton, settings.max_passes);
        let closer = Settings { tolerance: settings.tolerance.min(CLOSE), max_passes, ..settings.clone() };
        let over = Over { settings: &closer, ..self.over(run) };
        let found = over.round_off_blocks(Some(&start), &mut Silent, cancel)?;
        let Witness::Rounded(width) = found.witness else { return Ok(None) };
        let threshold = found.threshold();
        let scores = design.scores_until(&found.weights, cancel)?;
        let mut alpha = dual_behind(task, Curve::Rounded(width), &scores, threshold, Intercept::None);
        if self.rule == Intercept::Free {
            balance_by_the_least_sure(task, &scores, threshold, &mut alpha);
        }
        Ok(Some((alpha, found.passes)))
    }
}

impl<T: Independent + Roundable> Over<'_, T> {
    /// Improves a solution of the interior point: first with the interior point itself, whose result is used if the
    /// last digits are not found.
    fn brought_closer(&self, solution: &Solution, start: &Start, budget: Budget, cancel: &Cancel) -> Result<Solution> {
        let (task, design, settings) = (self.task, self.design, self.settings);
        let tolerance = settings.tolerance.min(CLOSE);
        let left = settings.max_passes.saturating_sub(solution.passes);
        let max_passes = budget.passes(design, Solver::InteriorPoint, left);
        let within = InteriorPoint { tolerance, max_passes, intercept: self.rule };
        let closer = within.solve(task, design, Some(start), &mut Silent, cancel)?;
        let start = closer.clone().into_start();
        let found = if settings.loss == Loss::Hinge {
            let threshold = closer.threshold();
            let scores = design.scores_until(&closer.weights, cancel)?;
            let near = ON_MARGIN * task.margin_scale();
            let mut dual = onto_bounds(task, &scores, threshold, near, &start.dual.unwrap_or_default());
            if self.rule == Intercept::Free {
                balance_by_the_least_sure(task, &scores, threshold, &mut dual);
            }
            self.by_active_set((&dual, closer.passes), solution, budget.work, cancel)?
        } else {
            self.by_newton(Solver::InteriorPoint, &start, budget, cancel)?
        };
        Ok(found.filter(|found| is_as_good(found.gap(), closer.gap())).unwrap_or(closer))
    }

    /// Polishes a hinge solution from a dual point, given with the number of passes that led there.
    fn by_active_set(
        &self,
        (dual, passes): (&[f64], u64),
        before: &Solution,
        work: f64,
        cancel: &Cancel,
    ) -> Result<Option<Solution>> {
        let (task, design, rule) = (self.task, self.design, self.rule);
        let gram = LinearBlocks { task, design };
        let Some(found) = polish(task, &gram, rule, dual, work, cancel) else { return Ok(None) };
        let weights = weights_behind(task, design, |block| found.alpha[block]);
        let scores = design.scores_until(&weights, cancel)?;
        let lower_bound = dual_value(task, design, |block| found.alpha[block], rule);
        let objective = primal_of_scores(task, &weights, &scores, found.threshold, rule);
        cancel.check()?;
        Ok(Some(Solution {
            objective,
            lower_bound: Some(lower_bound),
            thresholds: vec![found.threshold; before.thresholds.len()],
            weights,
            witness: Witness::Dual(found.alpha),
            passes,
            stop: Stop::Converged,
            first_rate: None,
            read: None,
            kernel: None,
            trace: Vec::new(),
        }))
    }

    /// Polishes a smooth loss from weights.
    fn by_newton(&self, solver: Solver, start: &Start, budget: Budget, cancel: &Cancel) -> Result<Option<Solution>> {
        let features = self.design.cols();
        let steps = budget.passes(self.design, Solver::Newton, Newton::POLISHING_STEPS);
        if steps == 0 {
            return Ok(None);
        }
        let found =
            self.as_one_risk(Solver::Newton, |risk| Newton::polish(risk, features, start, steps, cancel), cancel)?;
        if solver == Solver::Newton {
            return Ok(Some(found));
        }
        // For this solver `verify` does not take the weights as a proof. The dual point of the weights proves the same
        // bound.
        let scores = self.design.scores_until(&found.weights, cancel)?;
        let curve = Curve::Sharp(self.settings.loss);
        let alpha = dual_behind(self.task, curve, &scores, found.threshold(), self.rule);
        Ok(Some(Solution { witness: Witness::Dual(alpha), ..found }))
    }
}

/// Makes Σ α t = 0 by changing the blocks nearest to their margins. Scaling down a whole side would move every block of
/// it off its limit, and each would have to return.
fn balance_by_the_least_sure<T: Independent>(task: &T, scores: &[f64], threshold: f64, alpha: &mut [f64]) {
    let missed = |block: usize| task.constraint(block).violation(scores, threshold).abs();
    let mut order: Vec<(f64, usize)> = (0..alpha.len()).map(|block| (missed(block), block)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut pull: f64 = (0..alpha.len()).map(|block| alpha[block] * task.constraint(block).threshold).sum();
    for (_, block) in order {
        if pull == 0.0 {
            break;
        }
        let c = task.constraint(block);
        if c.threshold != 0.0 {
            let next = (alpha[block] - pull / c.threshold).clamp(0.0, c.cost);
            pull += (next - alpha[block]) * c.threshold;
            alpha[block] = next;
        }
    }
}

/// Inner products of blocks, by passes over the rows.
struct LinearBlocks<'a, T> {
    task: &'a T,
    design: &'a Design,
}

impl<T: Independent> SignedGram for LinearBlocks<'_, T> {
    fn row(&self, block: usize) -> Vec<f64> {
        let mut alpha = vec![0.0; self.task.blocks()];
        alpha[block] = 1.0;
        self.reached(&alpha)
    }

    fn reached(&self, alpha: &[f64]) -> Vec<f64> {
        let scores = self.design.all_scores(&weights_behind(self.task, self.design, |block| alpha[block]));
        let reached = |block: usize| {
            let c = self.task.constraint(block);
            c.coefficient * (scores[c.row] - c.against.map_or(0.0, |row| scores[row]))
        };
        (0..self.task.blocks()).map(reached).collect()
    }

    fn cost(&self) -> f64 {
        2.0 * self.design.matrix().entries() as f64 + self.task.blocks() as f64
    }
}
