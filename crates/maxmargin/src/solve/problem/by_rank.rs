//! [`ByRank`]: ratings. Batch solvers see them as a sum over rows ([`ByPart`]), kernels by the dual of single
//! constraints with an equality for each cut.
//!
//! No solver knows the order of cuts. The explicit form is therefore solved with cuts that are free or tied together,
//! until the solution is that of the whole task ([`retied`]). Objective and bound are always those of the whole task.

use super::last_digits::{FEW_ENTRIES, to_the_end};
use super::{ByPart, Expanded, Later, Problem, ProblemShape, Run, Stated, Values, infeasible, through_kernel};
use crate::certificate::{Witness, relative_gap};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::settings::Settings;
use crate::solve::cuts::{AtDual, cut_values, retied};
use crate::solve::machine::Job;
use crate::solve::values::in_box;
use crate::solve::{CurvedRisk, LinearRisk, Machine, Sampled, Solution, Start, Stop, TracePoint, by_row};
use crate::task::{Abilities, AtCuts, Independent, Intercept, LearningTask, Objective, Ordinal};
use crate::wish::Solver;

/// See the top of the file.
pub(crate) struct ByRank {
    task: Ordinal,
    abilities: Abilities,
    /// Whether it is learned with kernel values.
    expands: bool,
}

/// Which cuts are tied together is found at this tolerance first.
const COARSE: f64 = 1e-2;

/// The most rounds in which cuts are tied together or set free.
const MOST_ROUNDS: u32 = 200;

/// Solutions with a kernel over at most this many constraints are continued to the limit of double precision.
const FEW_BLOCKS: usize = 2_000;

/// Objective and bound of a solution for the whole task, and the scores of all rows.
type Judge<'a> = &'a dyn Fn(&Solution, &Cancel) -> Result<((f64, f64), Vec<f64>)>;

impl ByRank {
    /// The problem for these settings.
    pub(crate) fn new(task: Ordinal, abilities: Abilities, settings: &Settings) -> ByRank {
        ByRank { task, abilities, expands: settings.expands() }
    }

    fn part(&self, task: Ordinal) -> ByPart<Ordinal> {
        ByPart::new(task, Intercept::Free).with_abilities(self.abilities)
    }

    /// Solves with the cuts free or tied together, until they are in order. `solve` solves one of these problems;
    /// `judge` gives objective and bound of its solution for the whole task, and the scores of all rows.
    fn in_order(
        &self,
        run: &mut Run<'_>,
        solve: &mut dyn FnMut(Ordinal, &mut Run<'_>) -> Result<Solution>,
        judge: Judge<'_>,
    ) -> Result<Solution> {
        let (settings, cancel) = (run.settings, run.cancel);
        let mut task = self.task.tied((0..self.task.cuts() as u32).collect());
        let (mut start, mut passes, mut trace) = (run.start.cloned(), 0, Vec::<TracePoint>::new());
        let mut coarse = settings.tolerance < COARSE;
        for round in 0..MOST_ROUNDS {
            let mut later = Later { inner: &mut *run.observer, passes };
            let observer: &mut dyn Observer = if round == 0 { &mut *later.inner } else { &mut later };
            let tolerance = if coarse { COARSE } else { settings.tolerance };
            let left = settings.max_passes.saturating_sub(passes);
            let left = Settings { max_passes: left, tolerance, ..settings.clone() };
            let machine = run.machine.as_deref_mut();
            let polishes = run.polishes && !coarse;
            let mut inner = Run { observer, machine, start: start.as_ref(), settings: &left, polishes, ..*run };
            let mut solution = solve(task.clone(), &mut inner)?;
            run.solver = inner.solver;
            let seconds = trace.last().map_or(0.0, |last| last.seconds);
            let added = solution.trace.drain(..).filter(|point| round == 0 || point.pass > 0);
            trace.extend(added.map(|point| TracePoint {
                pass: point.pass + passes,
                seconds: point.seconds + seconds,
                ..point
            }));
            passes += solution.passes;
            task.spread(&mut solution.thresholds);
            let cancelled = solution.stop == Stop::Cancelled;
            // After a cancel, the caller still waits for the values of the last point.
            let until = if cancelled { cancel.until_abandoned() } else { cancel.clone() };
            let ((objective, bound), scores) = judge(&solution, &until)?;
            let gap = relative_gap(objective, bound);
            let width = if let Witness::Rounded(width) = &solution.witness { Some(*width) } else { None };
            let next = match cancelled || gap <= settings.tolerance {
                true => None,
                false => retied(&AtCuts { task: &task, scores: &scores, cuts: &solution.thresholds, width }, &solution),
            };
            // The cuts are in order: now the whole precision.
            let finer = next.is_none() && coarse && !cancelled && gap > settings.tolerance;
            coarse &= !finer;
            let next = next.or_else(|| finer.then(|| task.clone()));
            let limited = passes >= settings.max_passes;
            if let (Some(next), false) = (next, limited || round + 1 == MOST_ROUNDS) {
                task = next;
                start = Some(match self.expands {
                    true => Start { dual: Some(solution.weights), ..Start::default() },
                    false => solution.into_start(),
                });
                continue;
            }
            if !solution.thresholds.is_sorted() {
                solution.thresholds.sort_unstable_by(f64::total_cmp);
            }
            let ((objective, bound), _) = judge(&solution, &until)?;
            let stop = match solution.stop {
                Stop::Cancelled => Stop::Cancelled,
                _ if relative_gap(objective, bound) <= settings.tolerance => Stop::Converged,
                _ if limited => Stop::PassLimit,
                _ => Stop::Stalled,
            };
            // The last report states the values of the whole task.
            let told = TracePoint { pass: passes, objective, lower_bound: Some(bound), seconds: 0.0 };
            let seconds = trace.pop_if(|last| last.pass == passes).map_or(0.0, |last| last.seconds);
            trace.push(TracePoint { seconds, ..told });
            return Ok(Solution { objective, lower_bound: Some(bound), passes, stop, trace, ..solution });
        }
        Err(Error::new(Code::Internal, "no round of tied cuts was made"))
    }

    fn weights(&self, run: &mut Run<'_>) -> Result<Solution> {
        if !self.task.is_ordered() {
            let part = self.part(self.task.clone());
            let solution = part.solve(run)?;
            let small = self.task.len() * run.design.cols() <= FEW_ENTRIES;
            if run.settings.loss != Loss::Hinge || run.solver != Solver::Newton || !small {
                return Ok(solution);
            }
            return Ok(to_the_end(run, solution, Solution::into_start, |run| part.solve(run)));
        }
        let design = run.design;
        let mut solve = |task: Ordinal, run: &mut Run<'_>| self.part(task).solve(run);
        let judge = |solution: &Solution, cancel: &Cancel| {
            let Solution { weights, thresholds, witness, .. } = solution;
            let width = if let Witness::Rounded(width) = witness { Some(*width) } else { None };
            let values = cut_values(&self.task, design, weights, thresholds, width, cancel)?;
            Ok((values, design.scores_until(weights, cancel)?))
        };
        self.in_order(run, &mut solve, &judge)
    }

    /// Solves with a kernel, by the dual.
    fn through_kernel(&self, machine: &mut Machine, run: &mut Run<'_>) -> Result<Solution> {
        let (cancel, for_model) = (run.cancel, run.for_model);
        through_kernel::refuse_polish(run.settings, machine)?;
        if run.settings.polish {
            let message =
                "⟦polish⟧ finds the last digits of a solution, and ratings through a kernel have one equality a cut";
            return Err(Error::new(Code::Unsupported, message).help("leave ⟦polish⟧ out, and set a small ⟦tolerance⟧"));
        }
        let minimised = |machine: &mut Machine, task: &Ordinal, run: &mut Run<'_>| {
            let start = run.start.and_then(|start| start.dual.as_deref());
            let observer = &mut *run.observer;
            machine.minimise(task, Job { settings: run.settings, rule: Intercept::Free, start, observer, cancel })
        };
        let mut solution = if self.task.is_ordered() {
            let machine = std::cell::RefCell::new(&mut *machine);
            let mut solve = |task: Ordinal, run: &mut Run<'_>| minimised(&mut machine.borrow_mut(), &task, run);
            let judge = |solution: &Solution, cancel: &Cancel| {
                let Solution { weights: alpha, thresholds: cuts, .. } = solution;
                let scores = self.row_scores(solution);
                let at = AtDual { task: &self.task, alpha };
                let point: f64 = alpha.iter().zip(solution.reached()).map(|(alpha, reached)| alpha * reached).sum();
                let primal = 0.5 * point + AtCuts { task: &self.task, scores: &scores, cuts, width: None }.loss();
                let machine = machine.borrow();
                let bound = at.bound(|ids, numbers| Ok(machine.expansion_scores(ids, numbers, cancel)))?;
                Ok(((primal, bound), scores))
            };
            self.in_order(run, &mut solve, &judge)?
        } else {
            let solution = minimised(machine, &self.task, run)?;
            let small = self.task.blocks() <= FEW_BLOCKS && machine.is_wide() && machine.is_definite();
            let dual = |found: Solution| Start { dual: Some(found.weights), ..Start::default() };
            match small && for_model {
                true => to_the_end(run, solution, dual, |run| minimised(machine, &self.task, run)),
                false => solution,
            }
        };
        if !for_model {
            return Ok(solution);
        }
        let definite = machine.is_definite();
        let coefficients = by_row(&self.task, &solution.weights).into_iter();
        let scorer = through_kernel::around(machine.kernel.clone(), coefficients, None, run.design)?;
        let witness = Witness::Dual(std::mem::take(&mut solution.weights));
        Ok(through_kernel::proven(Solution { witness, ..solution.with_scorer(scorer, definite) }, definite))
    }

    /// The score of each row, from what its first constraint reaches.
    fn row_scores(&self, solution: &Solution) -> Vec<f64> {
        let reached = &solution.reached()[..self.task.len()];
        reached.iter().enumerate().map(|(row, reached)| self.task.constraint(row).coefficient * reached).collect()
    }

    /// Objective and bound of a kernel model.
    fn certify_expanded(&self, expanded: &Expanded<'_>, stated: &Stated<'_>, cancel: &Cancel) -> Result<Values> {
        let (scores, square) = expanded.values(cancel)?;
        let cuts = stated.free;
        if cuts.len() != self.task.cuts() {
            return Err(infeasible("it has another number of cuts"));
        }
        let objective = 0.5 * square + AtCuts { task: &self.task, scores: &scores, cuts, width: None }.loss();
        let lower_bound = match stated.witness {
            None => None,
            Some(Witness::Dual(alpha)) if alpha.len() == self.task.blocks() && in_box(&self.task, alpha) => {
                let at = AtDual { task: &self.task, alpha };
                Some(at.bound(|ids, numbers| expanded.images(ids, numbers, cancel))?)
            }
            Some(Witness::Dual(_)) => return Err(infeasible("a dual variable lies outside its box")),
            Some(_) => return Err(infeasible("it belongs to another task")),
        };
        Ok(Values { objective, lower_bound })
    }
}

impl Problem for ByRank {
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
        Intercept::Free
    }

    fn shape(&self) -> ProblemShape {
        let kernel_numbers = self.task.blocks();
        // Weights need no variable for each constraint.
        let blocks = if self.expands { kernel_numbers } else { 0 };
        ProblemShape { outputs: 1, free: Objective::thresholds(&self.task), blocks, kernel_numbers }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        if !run.settings.expands() {
            return self.weights(run);
        }
        let make = |run: &Run<'_>, bytes| self.machine(run.design, run.settings, bytes, run.cancel);
        through_kernel::with_machine(run, make, |machine, run| self.through_kernel(machine, run))
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        if let Some(expanded) = Expanded::of(stated.scorer, design, settings, cancel)? {
            return self.certify_expanded(&expanded, stated, cancel);
        }
        if self.task.is_ordered() && matches!(stated.witness, Some(Witness::Cuts(_))) {
            return Err(infeasible("it belongs to cuts that are not in order"));
        }
        self.part(self.task.clone()).certify(stated, design, settings, cancel)
    }

    fn risk<'a>(&'a self, design: &'a Design, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Ok(Box::new(LinearRisk::new(&self.task, design, false, cancel).without_penalty()))
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        Machine::new(Some(self.task.blocks()), self.task.second_copies(), design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, _: &Machine, solution: &Solution, _: &Cancel) -> Vec<f64> {
        self.row_scores(solution)
    }

    fn sampled(&self, _: &Settings) -> Result<Box<dyn Sampled + '_>> {
        Err(Error::new(Code::Internal, "the constraints of this task are not drawn"))
    }
}
