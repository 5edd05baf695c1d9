//! [`ByPart`]: a task that is a sum over parts, each a function of the scores of its rows, with curvature.

use super::by_block::{check_shortfall, not_separable, proven_by_cuts};
use super::last_digits::{FEW_ENTRIES, or_better, polished_parts, to_the_end};
use super::{
    BlockDual, Expanded, Over, Problem, ProblemShape, Run, Stated, Values, infeasible, not_planned, one_by_one,
    restated, stochastic, through_kernel, weights_of,
};
use crate::certificate::Witness;
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Silent};
use crate::settings::Settings;
use crate::solve::class_digits::is_small;
use crate::solve::joint_hard_margin::{joint_hard_bound, joint_hard_primal};
use crate::solve::machine::Job;
use crate::solve::{
    ByPair, ClassBlocks, CurvedRisk, CuttingPlane, JointHardMargin, KERNEL_ROUNDING, LinearRisk, Machine, Newton, Risk,
    Sampled, Solution, Start, Stop, Verdict, balanced_values, cut_values, descent, lower_bound, quick_start,
    rounded_certificate, sampled_start, value_and_slopes,
};
use crate::task::{
    Abilities, ClickRanking, GradedComparison, Intercept, Joint, LearningTask, Ordinal, Ranking, Roundable, Separation,
};
use crate::wish::Solver;

/// A task that is a sum over parts.
pub trait PartTask: LearningTask + Roundable {
    /// Primal value and lower bound for weights and free scalars. `width` is the width over which the hinge is rounded
    /// off. None if the gradient gives as good a bound: a task with free scalars may have a better way than to minimise
    /// over them.
    fn values(&self, _at: &PartPoint<'_>, _width: Option<f64>, _cancel: &Cancel) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }

    /// Whether [`PartTask::values`] returns values.
    fn states_values(&self) -> bool {
        false
    }

    /// The task as pairs that can be drawn at random, which also gives a quick start, if it has that form.
    #[doc(hidden)]
    fn as_ranking(&self) -> Option<&Ranking> {
        None
    }

    /// The task as a joint problem over several classes, if it is one: it has a hard margin.
    #[doc(hidden)]
    fn as_joint(&self) -> Option<&Joint> {
        None
    }

    /// The block dual of the task, if it has one: a block of dual variables for each row.
    #[doc(hidden)]
    fn as_blocks(&self) -> Option<&dyn BlockDual> {
        None
    }
}

/// A point of a task that is a sum over parts.
pub struct PartPoint<'a> {
    /// The rows.
    pub design: &'a Design,
    /// One weight per feature and output.
    pub weights: &'a [f64],
    /// The free scalars.
    pub free: &'a [f64],
    /// How they are treated.
    pub rule: Intercept,
}

/// See the top of the file.
pub struct ByPart<T> {
    task: T,
    rule: Intercept,
    abilities: Abilities,
}

/// Rankers with at least this many rows start from a quick solution on `QUICK_START_PAIRS` random pairs, unless the
/// Hessian is exact: Newton's method then needs only a few steps from zero, too.
const QUICK_START_ROWS: usize = 100_000;
const QUICK_START_PAIRS: usize = 100_000;

/// Up to this many weights of several classes, the Hessian is exact and cheap.
const FEW_COORDINATES: usize = 500;

impl<T: PartTask> ByPart<T> {
    /// A task with weights, and how its free scalars are treated.
    pub fn new(task: T, rule: Intercept) -> ByPart<T> {
        ByPart { task, rule, abilities: Abilities { drawn: false, kernel: false, ..Abilities::SUMMED } }
    }

    /// The same with other abilities.
    pub(crate) fn with_abilities(self, abilities: Abilities) -> ByPart<T> {
        ByPart { abilities, ..self }
    }

    fn is_penalised(&self) -> bool {
        self.rule == Intercept::Penalised
    }

    fn whole_risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> LinearRisk<'a, T> {
        LinearRisk::new(&self.task, design, self.is_penalised(), cancel)
    }

    /// Runs the planned solver.
    fn once(&self, run: &mut Run<'_>) -> Result<Solution> {
        let (design, settings, cancel) = (run.design, run.settings, run.cancel);
        let &Settings { tolerance, max_passes, .. } = settings;
        let features = design.cols() * self.task.outputs();
        let quick = self.quick_start(run);
        let start = run.start.or(quick.as_ref());
        match run.solver {
            Solver::Newton if settings.loss == Loss::Hinge => {
                let over = Over { task: &self.task, rule: self.rule, design, settings };
                let values = |weights: &[f64], free: &[f64], width: f64, _: Option<&[f64]>, cancel: &Cancel| {
                    let at = PartPoint { design, weights, free, rule: self.rule };
                    let found = self.task.values(&at, Some(width), cancel)?;
                    found.ok_or_else(|| Error::new(Code::Internal, "the task states no values of its own"))
                };
                let own = self.task.states_values().then_some(&values as super::RoundedValues<'_>);
                over.round_off(own, start, run.observer, cancel)
            }
            Solver::Newton => {
                let sampled = sampled_start(&self.task, design, self.is_penalised(), start, cancel)?;
                let start = sampled.as_ref().or(start);
                let newton = Newton { tolerance, max_passes };
                let mut risk = self.whole_risk(design, cancel);
                let solution = newton.solve(&mut risk, features, start, run.observer, cancel)?;
                drop(risk);
                cancel.check_wanted()?;
                self.stated(solution, design, tolerance, cancel)
            }
            Solver::DualCoordinateDescent => {
                let task = self.task.as_blocks().ok_or_else(|| not_planned(settings, run.solver))?;
                let blocks = ClassBlocks { tolerance, max_passes, seed: settings.seed, intercept: self.rule };
                let solution = task.solve_by_blocks(&blocks, design, start, run.observer, cancel)?;
                cancel.check_wanted()?;
                self.restated_by_classes(solution, design, tolerance, cancel)
            }
            Solver::CuttingPlane => {
                let planes = CuttingPlane { tolerance, max_passes };
                planes.solve(&mut self.whole_risk(design, cancel), features, start, run.observer, cancel)
            }
            Solver::QuadraticProgram if let Some(joint) = self.task.as_joint() => {
                let program = JointHardMargin { tolerance, max_passes, intercept: self.rule };
                match program.solve(joint, design, run.observer, cancel)? {
                    Verdict::Separable(solution) => Ok(*solution),
                    Verdict::NotSeparable(found) => Err(not_separable(run.data, &found)),
                }
            }
            solver => Err(not_planned(settings, solver)),
        }
    }

    /// Certifies the hard margin of several classes.
    fn certify_hard(&self, joint: &Joint, stated: &Stated<'_>, design: &Design, cancel: &Cancel) -> Result<Values> {
        let weights = weights_of(stated.scorer)?;
        let (objective, shortfall) = joint_hard_primal(joint, design, weights, stated.free, self.rule, cancel)?;
        check_shortfall(shortfall)?;
        let lower_bound = match stated.witness {
            Some(Witness::Classes(dual)) => Some(joint_hard_bound(joint, design, dual, self.rule).map_err(infeasible)?),
            Some(_) => return Err(infeasible("it belongs to another task")),
            None => None,
        };
        Ok(Values { objective, lower_bound })
    }

    /// Whether these are few rows with a block of dual variables each and hinge loss, for which `auto` takes Newton's method: it finds
    /// the last digits, too.
    fn is_small_joint(&self, run: &Run<'_>) -> bool {
        let (rows, cols) = (run.design.rows(), run.design.cols());
        self.task.as_blocks().is_some_and(|task| cols * task.scores_of_a_row() <= FEW_COORDINATES)
            && run.settings.solver == Solver::Auto
            && run.settings.loss == Loss::Hinge
            && !run.settings.is_hard_margin()
            && rows * cols <= FEW_ENTRIES
    }

    /// A solution of a small problem, continued as far as it goes.
    fn to_last_digits(&self, run: &mut Run<'_>, solution: Solution) -> Solution {
        let (design, cancel) = (run.design, run.cancel);
        let left = run.settings.max_passes.saturating_sub(solution.passes);
        let small = |task: &&dyn BlockDual| is_small(design.rows(), design.cols() * task.scores_of_a_row());
        let (Some(task), true) =
            (self.task.as_blocks().filter(small), run.polishes && solution.stop == Stop::Converged && left > 0)
        else {
            return to_the_end(run, solution, Solution::into_start, |run| self.once(run));
        };
        or_better(run, solution, |_, solution| {
            let found = task.last_digits(design, self.rule, cancel)?;
            Ok(found.filter(|found| found.steps <= left).map(|found| found.in_place_of(solution)))
        })
    }

    /// The start for rankings of many rows.
    fn quick_start(&self, run: &Run<'_>) -> Option<Start> {
        let ranking = self.task.as_ranking()?;
        let quick = run.solver == Solver::Newton
            && run.start.is_none()
            && run.design.rows() >= QUICK_START_ROWS
            && !self.whole_risk(run.design, run.cancel).has_exact_hessian();
        quick.then(|| Start {
            weights: quick_start(ranking, run.design, run.settings.seed, QUICK_START_PAIRS, run.cancel),
            ..Start::default()
        })
    }

    /// A solution of Newton's method with the values that `verify` computes, if the task computes its own. After a
    /// cancel, the caller still waits for them.
    fn stated(&self, mut solution: Solution, design: &Design, tolerance: f64, cancel: &Cancel) -> Result<Solution> {
        let Solution { weights, thresholds, .. } = &solution;
        let at = PartPoint { design, weights, free: thresholds, rule: self.rule };
        let Some((objective, bound)) = self.task.values(&at, None, &cancel.until_abandoned())? else {
            return Ok(solution);
        };
        (solution.objective, solution.lower_bound) = (objective, Some(bound));
        Ok(restated(solution, tolerance))
    }

    /// A solution of the block dual with the values that `verify` computes. After a cancel, the caller still waits for
    /// them.
    fn restated_by_classes(
        &self,
        mut solution: Solution,
        design: &Design,
        tolerance: f64,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let until = cancel.until_abandoned();
        if let (Some(task), Witness::Classes(dual)) = (self.task.as_blocks(), &solution.witness) {
            let point = (&solution.weights[..], &solution.thresholds[..]);
            solution.objective = task.objective_by_rows(design, point, self.rule, &until)?;
            solution.lower_bound = Some(task.bound_of(design, dual, self.rule, &until)?);
        }
        Ok(restated(solution, tolerance))
    }

    /// Solves with a kernel, over coefficients of the rows.
    fn through_kernel(&self, machine: &mut Machine, run: &mut Run<'_>) -> Result<Solution> {
        if let Some(task) = self.task.as_blocks() {
            return task.solve_through_kernel(self.rule, machine, run);
        }
        let (settings, cancel) = (run.settings, run.cancel);
        through_kernel::refuse_polish(settings, machine)?;
        let start = run.start.and_then(|start| start.dual.as_deref());
        let job = Job { settings, rule: Intercept::None, start, observer: &mut *run.observer, cancel };
        let mut fitted = machine.descend(&self.task, job, false)?;
        if !run.for_model {
            return Ok(fitted);
        }
        let definite = machine.is_definite();
        if definite {
            fitted = through_kernel::polished(run, fitted, machine.is_wide(), |fitted, work| {
                let (start, observer) = (Some(&fitted.weights[..]), &mut Silent);
                // A step from here on takes as much as one before.
                let most = if work.is_finite() { fitted.passes } else { settings.max_passes };
                let settings = &Settings { max_passes: settings.max_passes.min(most), ..settings.clone() };
                let job = Job { settings, rule: Intercept::None, start, observer, cancel };
                machine.descend(&self.task, job, true).map(Some)
            });
        }
        let coefficients = std::mem::take(&mut fitted.weights);
        let counted = coefficients.iter().copied().enumerate().filter(|entry| entry.1 != 0.0);
        let scorer = through_kernel::around(machine.kernel.clone(), counted, None, run.design)?;
        Ok(through_kernel::proven(fitted.with_scorer(scorer, definite), definite))
    }

    /// Certifies a kernel model whose expansion alone proves the bound: f is 1-strongly convex in the norm of the
    /// kernel, and with g the slopes by the scores its gradient is Σ β φ + Σ g φ.
    fn certify_expanded(&self, expanded: &Expanded<'_>, stated: &Stated<'_>, cancel: &Cancel) -> Result<Values> {
        if stated.witness.is_some() || !self.abilities.kernel {
            return Err(infeasible("it belongs to another task"));
        }
        let (scores, square) = expanded.values(cancel)?;
        let (loss, slopes) = value_and_slopes(&self.task, &scores, cancel)?;
        let (ids, slopes): (Vec<usize>, Vec<f64>) =
            slopes.into_iter().enumerate().filter(|(_, slope)| *slope != 0.0).unzip();
        let images = expanded.images(&ids, &slopes, cancel)?;
        let (mut cross, mut bent) = (0.0, 0.0);
        for (&row, slope) in ids.iter().zip(&slopes) {
            cross += slope * scores[row];
            bent += slope * images[row];
        }
        let objective = 0.5 * square + loss;
        let gap = 0.5 * (square + 2.0 * cross + bent);
        if gap.is_nan() || gap < -KERNEL_ROUNDING * objective.abs() {
            return Err(infeasible("the kernel is not positive definite"));
        }
        let bound = (objective - gap.max(0.0)).max(0.0);
        Ok(Values { objective, lower_bound: stated.claims.then_some(bound) })
    }
}

impl<T: PartTask> Problem for ByPart<T> {
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
        let rows = (0..self.task.parts()).map(|part| self.task.rows(part).end).max().unwrap_or(0);
        let outputs = self.task.outputs();
        ProblemShape { outputs, free: self.task.thresholds(), blocks: 0, kernel_numbers: rows * outputs }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        let settings = run.settings;
        if settings.expands() {
            if run.solver.is_stochastic() {
                return one_by_one::descend(&*self.sampled(settings)?, &self.task, self.rule, run);
            }
            let make = |run: &Run<'_>, bytes| self.machine(run.design, run.settings, bytes, run.cancel);
            return through_kernel::with_machine(run, make, |machine, run| self.through_kernel(machine, run));
        }
        if let (true, Some(joint)) = (run.solver.is_stochastic(), self.task.as_joint()) {
            let descent = descent(settings, run.solver, self.rule);
            return descent.solve_classes(joint, run.design, run.referee, run.observer, run.cancel);
        }
        if run.solver.is_stochastic() {
            return stochastic(&*self.sampled(settings)?, self.rule, run);
        }
        if settings.polish && settings.loss == Loss::Hinge {
            return Err(Error::new(
                Code::BadSetting,
                "⟦polish⟧ needs a smooth loss here: the hinge of this task has one dual variable per pair",
            )
            .help("leave ⟦polish⟧ out and set a small ⟦tolerance⟧, or use ⟦loss=squared-hinge⟧"));
        }
        let small = self.is_small_joint(run);
        if small {
            run.solver = Solver::Newton;
        }
        let mut solution = self.once(run)?;
        if small {
            solution = self.to_last_digits(run, solution);
        }
        let (design, cancel) = (run.design, run.cancel);
        // For other solvers `verify` does not take the weights as a proof.
        let by_weights = run.solver == Solver::Newton;
        let stated = |solution: Solution| match self.task.as_blocks() {
            Some(task) if !by_weights => {
                let point = (&solution.weights[..], &solution.thresholds[..]);
                let dual = task.dual_near(design, point, self.rule, cancel)?;
                let solution = Solution { witness: Witness::Classes(dual), ..solution };
                self.restated_by_classes(solution, design, settings.tolerance, cancel)
            }
            _ => self.stated(solution, design, settings.tolerance, cancel),
        };
        Ok(polished_parts(run, &self.task, self.rule, solution, stated))
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        if let Some(expanded) = Expanded::of(stated.scorer, design, settings, cancel)? {
            return match self.task.as_blocks() {
                Some(task) => task.certify_through_kernel(self.rule, &expanded, stated, cancel),
                None => self.certify_expanded(&expanded, stated, cancel),
            };
        }
        if let (true, Some(joint)) = (settings.is_hard_margin(), self.task.as_joint()) {
            return self.certify_hard(joint, stated, design, cancel);
        }
        let weights = weights_of(stated.scorer)?;
        let mut free = stated.free.to_vec();
        free.resize(self.task.thresholds(), 0.0);
        let at = PartPoint { design, weights, free: &free, rule: self.rule };
        let width = match stated.witness {
            Some(Witness::Rounded(width)) if settings.loss == Loss::Hinge => Some(*width),
            Some(Witness::Dual(_) | Witness::Rounded(_) | Witness::Columns(_) | Witness::Outputs(_)) => {
                return Err(infeasible("it belongs to another task"));
            }
            _ => None,
        };
        let by_cuts = matches!(stated.witness, Some(Witness::Cuts(_)));
        let own = if by_cuts { None } else { self.task.values(&at, width, cancel)? };
        if let Some((objective, bound)) = own {
            return Ok(Values { objective, lower_bound: (width.is_some() || stated.by_weights).then_some(bound) });
        }
        if let Some(Witness::Classes(dual)) = stated.witness {
            let task = self.task.as_blocks().ok_or_else(|| infeasible("it belongs to another task"))?;
            let objective = task.objective_by_rows(design, (weights, &free), self.rule, cancel)?;
            let lower_bound = Some(task.bound_of(design, dual, self.rule, cancel)?);
            return Ok(Values { objective, lower_bound });
        }
        let mut risk = self.whole_risk(design, cancel);
        let point = [weights, &free[..]].concat();
        let mut gradient = vec![0.0; point.len()];
        let objective = risk.evaluate(&point, &mut gradient)?;
        // After a cancel the value is incomplete.
        cancel.check()?;
        let lower_bound = match stated.witness {
            Some(Witness::Cuts(cuts)) => Some(proven_by_cuts(&mut risk, cuts, cancel)?),
            Some(Witness::Rounded(width)) => {
                rounded_certificate(&self.task, design, &point, *width, self.is_penalised(), cancel)?
            }
            _ if stated.by_weights => lower_bound(&mut risk, &point, objective, &gradient)?,
            _ => None,
        };
        Ok(Values { objective, lower_bound })
    }

    fn risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Ok(Box::new(self.whole_risk(design, cancel).without_penalty()))
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        Machine::new(None, None, design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, _: &Machine, solution: &Solution, _: &Cancel) -> Vec<f64> {
        solution.reached().to_vec()
    }

    fn sampled(&self, settings: &Settings) -> Result<Box<dyn Sampled + '_>> {
        match self.task.as_ranking() {
            Some(ranking) => {
                let sample = settings.stochastic.sample.unwrap_or_default();
                Ok(Box::new(ByPair::new(ranking, settings.loss, sample, None)))
            }
            None => Err(Error::new(Code::Internal, "the constraints of this task are not drawn")),
        }
    }
}

impl PartTask for Joint {
    fn as_joint(&self) -> Option<&Joint> {
        Some(self)
    }

    fn as_blocks(&self) -> Option<&dyn BlockDual> {
        Some(self)
    }
}

impl PartTask for Separation {
    fn as_blocks(&self) -> Option<&dyn BlockDual> {
        Some(self)
    }
}

/// Its cuts are free, and the dual point of a point is made feasible.
impl PartTask for Ordinal {
    fn values(&self, at: &PartPoint<'_>, width: Option<f64>, cancel: &Cancel) -> Result<Option<(f64, f64)>> {
        cut_values(self, at.design, at.weights, at.free, width, cancel).map(Some)
    }

    fn states_values(&self) -> bool {
        true
    }
}

impl PartTask for ClickRanking {}

impl PartTask for Ranking {
    fn as_ranking(&self) -> Option<&Ranking> {
        Some(self)
    }
}

/// Its threshold is free, and the dual point of a point is balanced.
impl PartTask for GradedComparison {
    fn values(&self, at: &PartPoint<'_>, width: Option<f64>, cancel: &Cancel) -> Result<Option<(f64, f64)>> {
        let threshold = at.free.first().copied().unwrap_or(0.0);
        let penalised = at.rule == Intercept::Penalised;
        balanced_values(self, at.design, at.weights, threshold, width, penalised, cancel).map(Some)
    }

    fn states_values(&self) -> bool {
        true
    }
}
