//! [`ByBlock`]: a task with one constraint per block that is also given as a sum: every solver supports it.

use super::last_digits::{Polishing, polished};
use super::{
    Expanded, Later, Over, Problem, ProblemShape, Run, Stated, Values, infeasible, not_planned, one_by_one, restated,
    stochastic, through_kernel, weights_of,
};
use crate::certificate::{ALTERED, Witness, relative_gap};
use crate::data::{Dataset, Design, PairCounts};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::settings::Settings;
use crate::solve::values::{
    Hard, dual_of_cuts, dual_value, hard_primal, imbalance, in_box, primal_of_scores, rounded_values, smooth_bound,
};
use crate::solve::{
    ByRow, Contradiction, CurvedRisk, Cut, CuttingPlane, DualCoordinateDescent, InteriorPoint, LinearProgram,
    LinearRisk, Machine, Newton, QuadraticProgram, Risk, Sampled, Solution, Start, Stop, TracePoint, Verdict,
    bound_of_cuts, by_row, proven_by_multipliers, sampled_start, stated_violation,
};
use crate::task::{
    Abilities, Binary, ByDifference, Comparison, Independent, Intercept, LearningTask, Objective, Roundable,
};
use crate::wish::{Regularisation, Sample, Solver};
use std::borrow::Cow;

/// A task with one constraint per block, in all the forms that solvers need.
pub(crate) trait BlockTask: LearningTask + Independent + Roundable {
    /// The same task over rows of another kind.
    type Narrow: Independent + Roundable;

    /// The task over differences of two rows each, with these differences as rows, if that is faster.
    fn narrowed(&self, design: &Design, cancel: &Cancel) -> Option<Result<(Self::Narrow, Design)>>;
}

/// See the top of the file.
pub(crate) struct ByBlock<T> {
    task: T,
    rule: Intercept,
    abilities: Abilities,
}

impl<T: BlockTask> ByBlock<T> {
    /// The task, and how its free scalar is treated.
    pub(crate) fn new(task: T, rule: Intercept, abilities: Abilities) -> ByBlock<T> {
        ByBlock { task, rule, abilities }
    }
}

/// Passes of dual coordinate descent before the interior point. Together they cost about as much as one interior-point
/// step (5,000 rows of 768 features) or less (3,000 of 2,000).
const PASSES_FIRST: u64 = 50;

/// Below this tolerance differences are not rounded to f32: the error would be visible.
const ROUNDED_DIFFERENCES: f64 = 1e-4;

/// Recomputed values may differ in the last digits on another type of processor.
pub(crate) const ROUNDING: f64 = 1e-9;

/// A dual point counts as balanced if its imbalance is below this share, which is rounding.
const BALANCED: f64 = 1e-12;

impl<T: BlockTask> Problem for ByBlock<T> {
    fn task(&self) -> &dyn LearningTask {
        &self.task
    }

    fn task_mut(&mut self) -> &mut dyn LearningTask {
        &mut self.task
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn rule(&self) -> Intercept {
        self.rule
    }

    fn shape(&self) -> ProblemShape {
        let blocks = self.task.blocks();
        ProblemShape { outputs: 1, free: Objective::thresholds(&self.task), blocks, kernel_numbers: blocks }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        if run.settings.expands() {
            return self.through_kernel(run);
        }
        if run.solver.is_stochastic() {
            return stochastic(&*self.sampled(run.settings)?, self.rule, run);
        }
        let solution = self.chosen(run)?;
        Ok(polished(run, &self.polishing(), solution))
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        if let Some(expanded) = Expanded::of(stated.scorer, design, settings, cancel)? {
            return certify_dual(&self.task, self.rule, &expanded, stated, settings, cancel);
        }
        let weights = weights_of(stated.scorer)?;
        if settings.is_hard_margin() {
            return certify_hard(&self.task, self.rule, design, weights, stated, settings, cancel);
        }
        let scores = design.scores_until(weights, cancel)?;
        let threshold = stated.threshold();
        let objective = primal_of_scores(&self.task, weights, &scores, threshold, self.rule);
        let at = At { weights, scores: &scores, threshold };
        let witness = match stated.witness {
            Some(Witness::Dual(alpha)) => {
                check_dual(&self.task, self.rule, settings.regularisation, alpha)?;
                stated.witness
            }
            Some(Witness::Rounded(_)) if settings.loss != Loss::Hinge => {
                return Err(infeasible("it belongs to another task"));
            }
            None | Some(Witness::Weights) => stated.by_weights.then_some(&Witness::Weights),
            Some(Witness::Columns(_)) => return Err(infeasible("it belongs to another task")),
            witness => witness,
        };
        let lower_bound =
            witness.map(|witness| bound(&self.task, self.rule, design, at, witness, cancel)).transpose()?;
        Ok(Values { objective, lower_bound })
    }

    fn risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Ok(Box::new(LinearRisk::new(&self.task, design, self.rule == Intercept::Penalised, cancel).without_penalty()))
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        Machine::new(Some(self.task.blocks()), self.task.second_copies(), design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, machine: &Machine, solution: &Solution, cancel: &Cancel) -> Vec<f64> {
        through_kernel::scores(&self.task, self.rule, machine, solution, cancel)
    }

    fn sampled(&self, settings: &Settings) -> Result<Box<dyn Sampled + '_>> {
        if settings.stochastic.sample == Some(Sample::Queries) {
            return Err(Error::new(Code::BadSetting, "⟦sample=queries⟧ draws queries, and explicit pairs have none")
                .help("leave ⟦sample⟧ out: every pair is drawn once a pass"));
        }
        Ok(Box::new(ByRow::new(&self.task)?))
    }
}

impl<T: BlockTask> ByBlock<T> {
    /// The coefficients of rows that a dual point stands for.
    pub(super) fn coefficients(&self, alpha: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        by_row(&self.task, alpha).into_iter()
    }

    fn polishing(&self) -> Polishing<'_, T> {
        Polishing { task: &self.task, rule: self.rule, problem: self }
    }

    fn through_kernel(&self, run: &mut Run<'_>) -> Result<Solution> {
        if run.solver.is_stochastic() {
            return one_by_one::descend(&*self.sampled(run.settings)?, &self.task, self.rule, run);
        }
        if run.solver == Solver::Lasvm {
            return one_by_one::in_one_pass(&self.task, self.rule, run);
        }
        let make = |run: &Run<'_>, bytes| self.machine(run.design, run.settings, bytes, run.cancel);
        let polishes = !run.settings.regularisation.is_nu();
        let solve = |machine: &mut Machine, run: &mut Run<'_>| {
            through_kernel::by_dual(&self.task, self.rule, polishes, machine, run)
        };
        through_kernel::with_machine(run, make, solve)
    }

    /// Runs the planned solver. If `auto` chose the interior point, dual coordinate descent runs first: for rows of
    /// moderate length at a moderate cost, such as unit rows, that is enough.
    fn chosen(&self, run: &mut Run<'_>) -> Result<Solution> {
        let (settings, solver) = (run.settings, run.solver);
        if (settings.solver, solver) != (Solver::Auto, Solver::InteriorPoint) {
            return self.once(run, settings, solver, run.start);
        }
        let coordinates = Solver::DualCoordinateDescent;
        let few = Settings { max_passes: settings.max_passes.min(PASSES_FIRST), ..settings.clone() };
        let mut before = self.once(run, &few, coordinates, run.start)?;
        let ended = matches!(before.stop, Stop::Converged | Stop::Cancelled);
        let Some(left) = settings.max_passes.checked_sub(before.passes).filter(|left| *left > 0 && !ended) else {
            run.solver = coordinates;
            return Ok(before);
        };
        let rest = Settings { max_passes: left, ..settings.clone() };
        let (passes, mut trace) = (before.passes, std::mem::take(&mut before.trace));
        let start = before.into_start();
        let mut later = Later { inner: &mut *run.observer, passes };
        let mut run = Run { observer: &mut later, machine: None, ..*run };
        let mut found = self.once(&mut run, &rest, solver, Some(&start))?;
        let seconds = trace.last().map_or(0.0, |last| last.seconds);
        let after = found.trace.iter().filter(|point| point.pass > 0);
        trace.extend(after.map(|point| TracePoint {
            pass: point.pass + passes,
            seconds: point.seconds + seconds,
            ..*point
        }));
        (found.passes, found.trace) = (found.passes + passes, trace);
        Ok(found)
    }

    /// Runs one solver, over the rows or over differences of two rows.
    fn once(&self, run: &mut Run<'_>, settings: &Settings, solver: Solver, start: Option<&Start>) -> Result<Solution> {
        let (design, cancel) = (run.design, run.cancel);
        // A barrier keeps the threshold above zero, so the start must be above zero too.
        let inside = (self.task.barrier() > 0.0 && start.is_none()).then(|| Start {
            weights: vec![0.0; design.cols()],
            thresholds: vec![1.0],
            ..Start::default()
        });
        let start = start.or(inside.as_ref());
        // Cuts are taken at kinks, and rounding the differences would move the kinks.
        let as_differences = !solver.is_hard_margin()
            && solver != Solver::CuttingPlane
            && (settings.tolerance >= ROUNDED_DIFFERENCES || design.matrix().is_double())
            && run.data.compared().is_some_and(PairCounts::as_differences);
        let narrow = if as_differences { self.task.narrowed(design, cancel) } else { None };
        let Some(narrow) = narrow else {
            return Over { task: &self.task, rule: self.rule, design, settings }.solve(run, solver, start);
        };
        let (differences, rows) = narrow?;
        let over = Over { task: &differences, rule: self.rule, design: &rows, settings };
        let solution = over.solve(run, solver, start)?;
        drop(rows);
        cancel.check_wanted()?;
        restate(solution, &self.task, self.rule, design, settings.tolerance, cancel)
    }
}

/// A point with known scores.
#[derive(Clone, Copy)]
struct At<'a> {
    weights: &'a [f64],
    scores: &'a [f64],
    threshold: f64,
}

/// The lower bound that a witness proves at a point.
fn bound<T: Independent + Objective>(
    task: &T,
    rule: Intercept,
    design: &Design,
    at: At<'_>,
    witness: &Witness,
    cancel: &Cancel,
) -> Result<f64> {
    let At { weights, scores, threshold } = at;
    match witness {
        Witness::Dual(alpha) => Ok(dual_value(task, design, |block| alpha[block], rule)),
        Witness::Rounded(width) => {
            rounded_values(task, design, weights, scores, threshold, *width, rule, cancel).map(|values| values.1)
        }
        Witness::Classes(_) | Witness::Outputs(_) => Err(infeasible("it belongs to another task")),
        Witness::Weights => smooth_bound(task, design, scores, threshold, rule, cancel),
        Witness::Cuts(cuts) => {
            let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
            proven_by_cuts(&mut risk, cuts, cancel)
        }
        Witness::Columns(_) => Err(infeasible("it belongs to another task")),
    }
}

/// The bound of cuts, computed again with one pass per cut.
pub(super) fn proven_by_cuts(risk: &mut dyn Risk, cuts: &[Cut], cancel: &Cancel) -> Result<f64> {
    let bound = bound_of_cuts(risk, cuts, cancel)?;
    // After a cancel the result is incomplete.
    cancel.check()?;
    bound.map_err(infeasible)
}

/// A solution with objective and bound computed from the rows themselves, as `verify` computes them. After a cancel,
/// the caller still waits for them.
fn restate<T: Independent + Objective>(
    mut solution: Solution,
    task: &T,
    rule: Intercept,
    design: &Design,
    tolerance: f64,
    cancel: &Cancel,
) -> Result<Solution> {
    let (weights, threshold) = (&solution.weights, solution.threshold());
    let scores = design.all_scores(weights);
    let at = At { weights, scores: &scores, threshold };
    let objective = primal_of_scores(task, weights, &scores, threshold, rule);
    if solution.lower_bound.is_some() {
        let until = cancel.until_abandoned();
        solution.lower_bound = Some(bound(task, rule, design, at, &solution.witness, &until)?);
    }
    solution.objective = objective;
    Ok(restated(solution, tolerance))
}

/// Refuses a dual point that is not feasible.
pub(super) fn check_dual<T: Independent>(
    task: &T,
    rule: Intercept,
    wanted: Regularisation,
    alpha: &[f64],
) -> Result<()> {
    if alpha.len() != task.blocks() || !in_box(task, alpha) {
        return Err(infeasible("a dual variable lies outside its box"));
    }
    if rule == Intercept::Free && imbalance(task, alpha) > BALANCED {
        return Err(infeasible("its two sides do not balance"));
    }
    if let Regularisation::Nu(nu) = wanted {
        // Σα = ν·C·n shows that C belongs to the share ν.
        let (sum, limits) = (0..task.blocks())
            .fold((0.0, 0.0), |(sum, limits), block| (sum + alpha[block], limits + task.constraint(block).cost));
        if (sum - nu * limits).abs() > ROUNDING * sum.abs() {
            return Err(infeasible("it belongs to another nu"));
        }
    }
    Ok(())
}

/// Certifies a point of a kernel model, whose bound is proven by a dual point.
pub(super) fn certify_dual<T: Independent>(
    task: &T,
    rule: Intercept,
    expanded: &Expanded<'_>,
    stated: &Stated<'_>,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Values> {
    let (scores, square) = expanded.values(cancel)?;
    let objective = 0.5 * square + primal_of_scores(task, &[], &scores, stated.threshold(), rule);
    let lower_bound = match stated.witness {
        None => None,
        Some(Witness::Dual(alpha)) => {
            check_dual(task, rule, settings.regularisation, alpha)?;
            Some(expanded.dual_value(task, alpha, rule, cancel)?)
        }
        Some(_) => return Err(infeasible("it belongs to another task")),
    };
    Ok(Values { objective, lower_bound })
}

/// Refuses a point that misses a margin.
pub(super) fn check_shortfall(shortfall: f64) -> Result<()> {
    if shortfall <= ROUNDING {
        return Ok(());
    }
    let message = format!("a margin that should be reached is missed by a relative {shortfall:e}");
    Err(Error::new(Code::CertificateMismatch, message).help(ALTERED))
}

/// Certifies a hard margin. Every margin must be reached: then the weights bound the optimum from above, and the
/// witness bounds it from below.
pub(super) fn certify_hard<T: Independent>(
    task: &T,
    rule: Intercept,
    design: &Design,
    weights: &[f64],
    stated: &Stated<'_>,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Values> {
    if settings.solver == Solver::LinearProgram {
        let objective = stated_violation(task, design, weights);
        let lower_bound = match stated.witness {
            Some(Witness::Dual(multipliers)) => {
                let proven = proven_by_multipliers(task, design, weights, multipliers);
                Some(proven.ok_or_else(|| infeasible("its multipliers do not add up to one"))?)
            }
            Some(_) => return Err(infeasible("it belongs to another task")),
            None => None,
        };
        return Ok(Values { objective, lower_bound });
    }
    let (objective, shortfall) = hard_primal(task, design, weights, stated.threshold(), rule);
    check_shortfall(shortfall)?;
    cancel.check()?;
    let lower_bound = match stated.witness {
        Some(Witness::Dual(alpha)) => {
            let hard = Hard(task);
            check_dual(&hard, rule, settings.regularisation, alpha)?;
            Some(dual_value(&hard, design, |block| alpha[block], rule))
        }
        Some(_) => return Err(infeasible("it belongs to another task")),
        None => None,
    };
    Ok(Values { objective, lower_bound })
}

impl<T: Independent + Roundable> Over<'_, T> {
    fn solve(&self, run: &mut Run<'_>, solver: Solver, start: Option<&Start>) -> Result<Solution> {
        let &Settings { tolerance, max_passes, seed, loss, .. } = self.settings;
        let (task, design, intercept, features) = (self.task, self.design, self.rule, self.design.cols());
        let (observer, cancel) = (&mut *run.observer, run.cancel);
        match solver {
            Solver::DualCoordinateDescent => DualCoordinateDescent { tolerance, max_passes, seed, intercept }
                .solve(task, design, start, observer, cancel),
            Solver::Newton if loss == Loss::Hinge => self.round_off_blocks(start, observer, cancel),
            Solver::Newton => {
                let sampled = sampled_start(task, design, intercept == Intercept::Penalised, start, cancel)?;
                let (start, newton) = (sampled.as_ref().or(start), Newton { tolerance, max_passes });
                self.as_one_risk(solver, |risk| newton.solve(risk, features, start, observer, cancel), cancel)
            }
            Solver::CuttingPlane => {
                let planes = CuttingPlane { tolerance, max_passes };
                self.as_one_risk(solver, |risk| planes.solve(risk, features, start, observer, cancel), cancel)
            }
            Solver::InteriorPoint => {
                InteriorPoint { tolerance, max_passes, intercept }.solve(task, design, start, observer, cancel)
            }
            Solver::QuadraticProgram => {
                let program = QuadraticProgram { tolerance, max_passes, intercept };
                separated(run.data, task, program.solve(task, design, observer, cancel)?)
            }
            Solver::LinearProgram => LinearProgram { tolerance, max_passes }.solve(task, design, observer, cancel),
            solver => Err(not_planned(self.settings, solver)),
        }
    }

    /// Solves the task as a sum over all constraints. Objective and bound are computed by the same sums as in `verify`:
    /// at extreme costs the order of summation matters.
    pub(super) fn as_one_risk<'r>(
        &'r self,
        solver: Solver,
        solve: impl FnOnce(&mut LinearRisk<'r, T>) -> Result<Solution>,
        cancel: &'r Cancel,
    ) -> Result<Solution> {
        let mut risk = LinearRisk::new(self.task, self.design, self.rule == Intercept::Penalised, cancel);
        let mut solution = solve(&mut risk)?;
        cancel.check_wanted()?;
        // Free its memory of the rows before the bound is computed.
        drop(risk);
        let (weights, threshold) = (&solution.weights, solution.threshold());
        let scores = self.design.all_scores(weights);
        let objective = primal_of_scores(self.task, weights, &scores, threshold, self.rule);
        if solver == Solver::Newton {
            // The dual point of the weights proves the bound for any kind of intercept. After a cancel, the caller
            // still waits for it.
            let bound = smooth_bound(self.task, self.design, &scores, threshold, self.rule, &cancel.until_abandoned())?;
            solution.lower_bound = Some(bound);
        }
        solution.objective = objective;
        Ok(self.with_smaller_witness(restated(solution, self.settings.tolerance)))
    }

    /// The same solution, proven by the dual point of its cuts if that takes fewer numbers: one per block instead of
    /// one per feature and cut.
    fn with_smaller_witness(&self, solution: Solution) -> Solution {
        let Witness::Cuts(cuts) = &solution.witness else { return solution };
        // After a cancel, do not make the caller wait for one pass per cut.
        if cuts.len() * self.design.cols() <= self.task.blocks() || solution.stop == Stop::Cancelled {
            return solution;
        }
        let alpha = dual_of_cuts(self.task, self.design, cuts, self.rule);
        let bound = dual_value(self.task, self.design, |block| alpha[block], self.rule);
        let gap = relative_gap(solution.objective, bound);
        // Rounding may move a row that lies on its margin to the other side. If that worsens the gap, keep the cuts.
        let as_good = solution.gap().is_some_and(|before| gap <= before + 1e-9);
        if as_good && (solution.stop != Stop::Converged || gap <= self.settings.tolerance) {
            return Solution { lower_bound: Some(bound), witness: Witness::Dual(alpha), ..solution };
        }
        solution
    }

    /// Solves a hinge task with a rounded kink. The dual point of the weights proves the bound.
    pub(super) fn round_off_blocks(
        &self,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let values = |weights: &[f64], thresholds: &[f64], width: f64, scores: Option<&[f64]>, cancel: &Cancel| {
            let threshold = thresholds.first().copied().unwrap_or(0.0);
            let scores = match scores {
                Some(scores) => Cow::Borrowed(scores),
                None => Cow::Owned(self.design.scores_until(weights, cancel)?),
            };
            rounded_values(self.task, self.design, weights, &scores, threshold, width, self.rule, cancel)
        };
        self.round_off(Some(&values), start, observer, cancel)
    }
}

/// The solution of a hard margin, or an error that names the contradicting rows.
pub(super) fn separated<T: Independent>(data: &Dataset, task: &T, verdict: Verdict) -> Result<Solution> {
    let Contradiction { blocks, residual } = match verdict {
        Verdict::Separable(solution) => return Ok(*solution),
        Verdict::NotSeparable(contradiction) => contradiction,
    };
    let name = |block: usize| {
        let c = task.constraint(block);
        match c.against {
            Some(other) if c.threshold > 0.0 => format!("{} like {}", data.row_name(c.row), data.row_name(other)),
            Some(worse) => format!("{} over {}", data.row_name(c.row), data.row_name(worse)),
            None => data.row_name(c.row),
        }
    };
    let pairs = blocks.iter().any(|&(block, _)| task.constraint(block).against.is_some());
    Err(contradicted(&blocks, name, pairs, residual))
}

/// The error that names rows of several classes that contradict each other.
pub(super) fn not_separable(data: &Dataset, found: &Contradiction) -> Error {
    contradicted(&found.blocks, |row| data.row_name(row), false, found.residual)
}

/// The error that names examples of structured outputs that contradict each other. `unit` is what one is called.
pub(super) fn outputs_contradicted(
    blocks: &[(usize, f64)],
    name: impl Fn(usize) -> String,
    unit: &str,
    residual: f64,
) -> Error {
    let (list, count) = listed(blocks, name);
    let message = match count {
        1 => format!("not separable: no weights give the true output of {list} its margin over all others"),
        _ => format!(
            "not separable: no weights give every true output its margin; {count} examples prove it ({list}): a \
             weighted sum of what tells their outputs apart is zero up to {residual:.0e}"
        ),
    };
    Error::new(Code::NotSeparable, message).help(format!(
        "use a soft margin, in which every {unit} may miss its margin at a cost: leave ⟦margin⟧ out and set ⟦c⟧"
    ))
}

/// The first few names of a contradiction, and how many it has.
fn listed(blocks: &[(usize, f64)], name: impl Fn(usize) -> String) -> (String, usize) {
    const SHOWN: usize = 4;
    let mut named: Vec<String> = blocks.iter().take(SHOWN).map(|&(block, _)| name(block)).collect();
    if blocks.len() > SHOWN {
        named.push("…".to_string());
    }
    (named.join(", "), blocks.len())
}

/// The error for a contradiction of pairs, or of rows.
fn contradicted(blocks: &[(usize, f64)], name: impl Fn(usize) -> String, pairs: bool, residual: f64) -> Error {
    let (list, count) = listed(blocks, name);
    let message = match (pairs, count) {
        (true, 1) => format!("not separable: {list} cannot be satisfied, because both have the same features"),
        (false, 1) => format!("not separable: the features of {list} cannot reach a margin"),
        (true, _) => format!(
            "not separable: {count} pairs contradict each other ({list}), so no weights satisfy all of them; the \
             proof is a weighted sum of them that is zero up to {residual:.0e}"
        ),
        (false, _) => format!(
            "not separable: no weights separate the classes without error; {count} rows prove it ({list}): a weighted \
             sum of them is zero up to {residual:.0e}"
        ),
    };
    Error::new(Code::NotSeparable, message)
        .help("use a soft margin, which allows violations at a cost: leave ⟦margin⟧ and ⟦solver⟧ out and set ⟦c⟧")
}

impl BlockTask for Binary {
    type Narrow = Binary;

    fn narrowed(&self, _: &Design, _: &Cancel) -> Option<Result<(Binary, Design)>> {
        None
    }
}

impl BlockTask for Comparison {
    type Narrow = ByDifference;

    fn narrowed(&self, design: &Design, cancel: &Cancel) -> Option<Result<(ByDifference, Design)>> {
        Some(self.differences(design, cancel).map(|rows| (self.over_differences(), rows)))
    }
}
