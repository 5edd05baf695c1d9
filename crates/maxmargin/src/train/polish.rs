//! Small problems are solved to double precision, whatever the tolerance.
//!
//! **The rule.** Where `auto` chose the solver and the data have fewer than a million entries, rows (or pairs, where these
//! are more) times columns, zeros included, a solution found at the tolerance that was asked for is polished: then a row of
//! weight k is the same as that row k times and a row of weight 0 the same as none, to all digits that count, and no answer
//! depends on where a solver happened to stop. The model keeps the tolerance of the user; its certificate states what was
//! reached.
//!
//! - Smooth losses go on by Newton's method ([`Newton::polish`]), over the rows themselves. After Newton's
//!   method itself the weights are the witness, after others the dual point behind them.
//! - The hinge, and the squared hinge through a kernel, go on by an active-set method over kernel values
//!   ([`crate::solve::polish`]), whose dual point is the witness.
//! - Where the interior point came before, it first comes close enough for either, and has the last word where they fail.
//!
//! Rankings and comparisons by grades with hinge loss, whose dual has a variable a pair, are not polished; where the hinge
//! can be rounded off no further before the tolerance is met, at extreme costs, they go on by cutting planes.
//!
//! Nor are kernels polished whose values are kept in f32, which have no more digits; one-class problems and the ν form; and
//! what has so many support vectors inside their limits that it would take longer than training. There, and wherever
//! polishing ends no better, the solution stays as it was.

use super::kernels::Machine;
use super::{Problem, Tasks, as_one_risk, cutting_plane, round_off_blocks, state_graded, usual_cache};
use crate::data::Design;
use crate::error::Result;
use crate::kernel::{FEW_ROWS, KernelSettings};
use crate::loss::{Curve, Loss};
use crate::run::{Cancel, Silent};
use crate::settings::{Settings, Solver, Task};
use crate::solve::{
    CuttingPlane, InteriorPoint, KernelSolution, LinearRisk, Newton, SignedGram, Solution, Start, Stop, TracePoint,
    Witness, dual_behind, dual_value, onto_bounds, polish, primal_of_scores, relative_gap, weights_behind,
};
use crate::task::{Independent, Intercept, Objective, Roundable};

/// Problems of so many entries are solved to the tolerance alone.
const MOST_ENTRIES: usize = 1_000_000;

/// Where solvers end that leave the last digits to the active set. None costs much from there, and sets are few that are
/// not the right ones yet.
const CLOSE: f64 = 1e-8;
const CLOSE_THROUGH_KERNEL: f64 = 1e-6;

/// Rows this near to their margins, as a share of the largest, may stand on them where a solver has come [`CLOSE`].
const ON_MARGIN: f64 = 1e-4;

/// Gaps below this are a matter of rounding, and none is better than another.
const ALL_DIGITS: f64 = 1e-13;

/// Whether a problem is polished, see the top of the file.
pub(super) fn is_polished(problem: &Problem, design: &Design, settings: &Settings) -> bool {
    let pairs = problem.data.pairs().map_or(0, crate::data::Pairs::len);
    let columns = problem.data.cols().max(design.cols());
    settings.solver == Solver::Auto
        && settings.task != Task::OneClass
        && !settings.regularisation.is_nu()
        && problem.data.rows().max(pairs).saturating_mul(columns) < MOST_ENTRIES
}

/// Whether a solution has ended where polishing may begin.
pub(super) fn may_be_polished(stop: Stop) -> bool {
    matches!(stop, Stop::Converged | Stop::Stalled)
}

/// Whether a gap is as good as the one before.
pub(super) fn is_as_good(gap: Option<f64>, before: Option<f64>) -> bool {
    match (gap, before) {
        (Some(gap), Some(before)) => gap <= before.max(ALL_DIGITS),
        (gap, None) => gap.is_some(),
        (None, _) => false,
    }
}

/// A solution for weights, polished where that succeeds.
pub(super) fn polished(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    solution: Solution,
    cancel: &Cancel,
) -> Solution {
    if !is_polished(problem, design, settings) || !may_be_polished(solution.stop) {
        return solution;
    }
    let start = solution.clone().into_start();
    let better = match &problem.task {
        Tasks::Binary(task, _) => independent(problem, task, design, settings, solver, &solution, start, cancel),
        Tasks::Pairs(task) => independent(problem, task, design, settings, solver, &solution, start, cancel),
        Tasks::Ranking(_) | Tasks::Graded(_) if settings.loss == Loss::Hinge && solution.stop != Stop::Stalled => {
            return solution;
        }
        Tasks::Ranking(task) if settings.loss == Loss::Hinge => {
            by_planes(task, design, settings, &solution, &start, cancel)
        }
        Tasks::Graded(task) if settings.loss == Loss::Hinge => {
            by_planes(task, design, settings, &solution, &start, cancel)
        }
        Tasks::Ranking(task) => {
            let mut risk = LinearRisk::new(task, design, false, cancel);
            Newton::polish(&mut risk, design.cols(), &start, cancel).map(Some)
        }
        Tasks::Graded(task) => {
            let mut risk = LinearRisk::new(task, design, settings.intercept == Intercept::Penalised, cancel);
            let found = Newton::polish(&mut risk, design.cols(), &start, cancel);
            found.and_then(|found| state_graded(found, task, design, settings, cancel).map(Some))
        }
        Tasks::OneClass(..) => return solution,
    };
    // What goes wrong here went well before.
    match better {
        Ok(Some(better))
            if is_as_good(better.gap(), solution.gap())
                && better.objective <= solution.objective * (1.0 + ALL_DIGITS) =>
        {
            joined(solution, better, settings.tolerance)
        }
        _ => solution,
    }
}

/// Cutting planes go on where a hinge can be rounded off no further.
fn by_planes<T: Objective>(
    task: &T,
    design: &Design,
    settings: &Settings,
    before: &Solution,
    start: &Start,
    cancel: &Cancel,
) -> Result<Option<Solution>> {
    let mut risk = LinearRisk::new(task, design, settings.intercept == Intercept::Penalised, cancel);
    let max_passes = settings.max_passes.saturating_sub(before.passes);
    let planes = CuttingPlane { max_passes, ..cutting_plane(settings) };
    let found = planes.solve(&mut risk, design.cols(), Some(start), &mut Silent, cancel)?;
    cancel.check()?;
    // The cuts prove their bound whatever the weights.
    let Solution { weights, thresholds, objective, .. } =
        if before.objective < found.objective { before } else { &found };
    let (weights, thresholds, objective) = (weights.clone(), thresholds.clone(), *objective);
    Ok(Some(Solution { weights, thresholds, objective, ..found }))
}

/// The better solution with the history of both.
fn joined(before: Solution, mut better: Solution, tolerance: f64) -> Solution {
    // Rounding alone can lift a bound above the objective.
    better.lower_bound = better.lower_bound.map(|bound| bound.min(better.objective));
    let Solution { passes, stop, first_rate, mut trace, .. } = before;
    let passes = passes + better.passes;
    if let Some(&last) = trace.last() {
        let (objective, lower_bound) = (better.objective, better.lower_bound);
        trace.pop_if(|last| last.pass == passes);
        trace.push(TracePoint { pass: passes, objective, lower_bound, ..last });
    }
    let within = better.gap().is_some_and(|gap| gap <= tolerance);
    let stop = if within { Stop::Converged } else { stop };
    Solution { passes, stop, first_rate, trace, ..better }
}

#[allow(clippy::too_many_arguments)] // those of `polished`, the task, and where it starts
fn independent<T: Independent + Roundable>(
    problem: &Problem,
    task: &T,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    solution: &Solution,
    start: Start,
    cancel: &Cancel,
) -> Result<Option<Solution>> {
    if solver == Solver::InteriorPoint {
        return from_within(task, design, settings, solution, &start, cancel).map(Some);
    }
    if settings.loss != Loss::Hinge {
        return by_newton(task, design, settings, solver, &start, cancel).map(Some);
    }
    match dual_start(problem, task, design, settings, start, cancel)? {
        Some((dual, passes)) => by_active_set(task, design, settings, (&dual, passes), solution, cancel),
        None => Ok(None),
    }
}

/// A solution of the interior point, first brought closer from within: that is an answer too, where the last digits are not found.
fn from_within<T: Independent + Roundable>(
    task: &T,
    design: &Design,
    settings: &Settings,
    solution: &Solution,
    start: &Start,
    cancel: &Cancel,
) -> Result<Solution> {
    let tolerance = settings.tolerance.min(CLOSE);
    let max_passes = settings.max_passes.saturating_sub(solution.passes);
    let within = InteriorPoint { tolerance, max_passes, intercept: settings.intercept };
    let closer = within.solve(task, design, Some(start), &mut Silent, cancel)?;
    let start = closer.clone().into_start();
    let found = if settings.loss == Loss::Hinge {
        let threshold = closer.thresholds.first().copied().unwrap_or(0.0);
        let scores = design.scores_until(&closer.weights, cancel)?;
        let near = ON_MARGIN * task.margin_scale();
        let mut dual = onto_bounds(task, &scores, threshold, near, &start.dual.unwrap_or_default());
        if settings.intercept == Intercept::Free {
            balance_by_the_least_sure(task, &scores, threshold, &mut dual);
        }
        by_active_set(task, design, settings, (&dual, closer.passes), solution, cancel)?
    } else {
        Some(by_newton(task, design, settings, Solver::InteriorPoint, &start, cancel)?)
    };
    Ok(found.filter(|found| is_as_good(found.gap(), closer.gap())).unwrap_or(closer))
}

/// The hinge from a dual point and the passes that led there.
fn by_active_set<T: Independent>(
    task: &T,
    design: &Design,
    settings: &Settings,
    (dual, passes): (&[f64], u64),
    before: &Solution,
    cancel: &Cancel,
) -> Result<Option<Solution>> {
    let rule = settings.intercept;
    let gram = LinearBlocks { task, design };
    let Some(found) = polish(task, &gram, rule, dual, cancel) else { return Ok(None) };
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
        trace: Vec::new(),
    }))
}

/// A smooth loss from weights.
fn by_newton<T: Independent + Roundable>(
    task: &T,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    start: &Start,
    cancel: &Cancel,
) -> Result<Solution> {
    let solve = |risk: &mut LinearRisk<'_, T>| Newton::polish(risk, design.cols(), start, cancel);
    let found = as_one_risk(task, design, settings, Solver::Newton, solve, cancel)?;
    if solver == Solver::Newton {
        return Ok(found);
    }
    // Nobody expects the weights to prove anything here: the dual point behind them does, and the same.
    let threshold = found.thresholds.first().copied().unwrap_or(0.0);
    let scores = design.scores_until(&found.weights, cancel)?;
    let alpha = dual_behind(task, Curve::Sharp(settings.loss), &scores, threshold, settings.intercept);
    Ok(Solution { witness: Witness::Dual(alpha), ..found })
}

/// A dual point of the hinge near enough for the active set, and the passes that it took.
fn dual_start<T: Independent + Roundable>(
    problem: &Problem,
    task: &T,
    design: &Design,
    settings: &Settings,
    start: Start,
    cancel: &Cancel,
) -> Result<Option<(Vec<f64>, u64)>> {
    if let Some(alpha) = start.dual {
        if settings.tolerance <= CLOSE || task.blocks() > FEW_ROWS {
            return Ok(Some((alpha, 0)));
        }
        // Features are many here and so rows are few: steps on two variables are quicker than passes over all.
        let linear = Settings { kernel: KernelSettings::default(), ..settings.clone() };
        let mut machine = Machine::new(problem, design, &linear, usual_cache(settings), cancel)?;
        let closer = Settings { tolerance: CLOSE, ..linear };
        let fitted = machine.fit(problem, &closer, Some(&alpha), &mut Silent, cancel)?;
        return Ok(Some((fitted.numbers, 0)));
    }
    let closer = Settings { tolerance: settings.tolerance.min(CLOSE), ..settings.clone() };
    let found = round_off_blocks(task, design, &closer, Some(&start), &mut Silent, cancel)?;
    let Witness::Rounded(width) = found.witness else { return Ok(None) };
    let threshold = found.thresholds.first().copied().unwrap_or(0.0);
    let scores = design.scores_until(&found.weights, cancel)?;
    let mut alpha = dual_behind(task, Curve::Rounded(width), &scores, threshold, Intercept::None);
    if settings.intercept == Intercept::Free {
        balance_by_the_least_sure(task, &scores, threshold, &mut alpha);
    }
    Ok(Some((alpha, found.passes)))
}

/// Makes Σ α t = 0 by the blocks nearest to their margins. To shrink a whole side would take every block of it off its limit,
/// and each would have to find back.
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
}

impl Machine {
    /// A solution through the kernel, polished where that succeeds.
    pub(super) fn polished(
        &mut self,
        problem: &Problem,
        design: &Design,
        settings: &Settings,
        fitted: KernelSolution,
        cancel: &Cancel,
    ) -> KernelSolution {
        if !is_polished(problem, design, settings) || !may_be_polished(fitted.stop) {
            return fitted;
        }
        let closer = Settings { tolerance: settings.tolerance.min(CLOSE_THROUGH_KERNEL), ..settings.clone() };
        let better = self.with_all_digits(problem, &closer, &fitted, cancel);
        let gap = |of: &KernelSolution| Some(relative_gap(of.objective, of.lower_bound));
        match better {
            Ok(Some(mut better)) if is_as_good(gap(&better), gap(&fitted)) => {
                better.lower_bound = better.lower_bound.min(better.objective);
                better.passes += fitted.passes;
                better.rows = (better.rows.0 + fitted.rows.0, better.rows.1 + fitted.rows.1);
                better.trace = fitted.trace;
                if let Some(&last) = better.trace.last() {
                    let (pass, objective, lower_bound) = (better.passes, better.objective, Some(better.lower_bound));
                    better.trace.pop_if(|last| last.pass == pass);
                    better.trace.push(TracePoint { pass, objective, lower_bound, ..last });
                }
                let within = gap(&better).is_some_and(|gap| gap <= settings.tolerance);
                better.stop = if within { Stop::Converged } else { fitted.stop };
                better
            }
            _ => fitted,
        }
    }
}
