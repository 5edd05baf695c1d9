//! [`ByOracle`]: structured outputs, of which a search finds the most violated one.

use super::by_block::{check_shortfall, outputs_contradicted, proven_by_cuts};
use super::plan::chosen_for_outputs;
use super::{
    Expanded, Problem, ProblemShape, Run, Stated, Values, infeasible, not_planned, output_expansion, restated,
    through_kernel, weights_of,
};
use crate::certificate::{Decoder, Witness};
use crate::data::{Dataset, Design};
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Event};
use crate::settings::Settings;
use crate::solve::oracle_risk::{MostViolated, Searches, bound_of_outputs, objective_of_outputs};
use crate::solve::output_hard_margin::{OutputHardMargin, hard_bound_of_outputs, hard_primal_of_outputs};
use crate::solve::plane_bound::{PlaneBound, Taken};
use crate::solve::{
    Contradiction, CurvedRisk, CuttingPlane, LinearRisk, Machine, Sampled, Solution, Start, Stop, Verdict, descent,
};
use crate::structured::{Rescale, Structure};
use crate::task::{Abilities, Intercept, LearningTask};
use crate::wish::Solver;

/// What the scores of a model mean, given the weights of the shared scores.
pub type Meaning = Box<dyn Fn(&[f64]) -> Decoder + Send + Sync>;

/// See the top of the file.
pub struct ByOracle {
    task: Outputs,
}

/// The task: the structure, its weight, and what is said about it.
struct Outputs {
    structure: Box<dyn Structure>,
    cost: f64,
    unit: &'static str,
    meaning: Meaning,
    /// Whether the one shared score is added to all scores.
    adds_shared: bool,
}

impl LearningTask for Outputs {
    fn set_cost(&mut self, c: f64) {
        self.cost = c;
    }

    fn total_cost(&self) -> f64 {
        self.cost * (0..self.structure.examples()).map(|example| self.structure.weight(example)).sum::<f64>()
    }

    fn constraints(&self) -> u64 {
        (0..self.structure.examples()).filter(|&example| self.structure.weight(example) > 0.0).count() as u64
    }

    fn unit(&self) -> &'static str {
        self.unit
    }

    fn decoder(&self, free: &[f64]) -> Decoder {
        (self.meaning)(free)
    }

    fn adds_free(&self) -> bool {
        self.adds_shared
    }
}

impl ByOracle {
    /// A problem with C = 1. `unit` is what one example is called, in words.
    pub fn new(structure: Box<dyn Structure>, unit: &'static str, meaning: Meaning) -> ByOracle {
        ByOracle { task: Outputs { structure, cost: 1.0, unit, meaning, adds_shared: false } }
    }

    /// The same where the one shared score is the constant term of the scores of all rows.
    pub fn adding_shared(mut self) -> ByOracle {
        self.task.adds_shared = true;
        self
    }

    /// The same with another use of the loss in constraints.
    pub fn rescaled(mut self, rescale: Rescale) -> ByOracle {
        self.task.structure = rescale.of(self.task.structure);
        self
    }

    fn most_violated<'a>(&'a self, searches: &'a Searches) -> MostViolated<'a> {
        MostViolated { structure: &*self.task.structure, cost: self.task.cost, searches }
    }

    /// The solver of a run: `auto` chooses by the number of examples and weights, or continues as the start began.
    fn chosen(&self, run: &Run<'_>) -> Solver {
        let free = run.settings.solver == Solver::Auto && run.solver == Solver::FrankWolfe;
        let structure = &self.task.structure;
        match run.start {
            _ if !free || run.settings.expands() || run.referee.is_some() => run.solver,
            // Without features, the searches are those of a user's own oracle, and line searches make many of them.
            _ if run.design.cols() == 0 => run.solver,
            Some(start) if start.outputs.is_some() => Solver::FrankWolfe,
            Some(start) if start.cuts.is_some() => Solver::CuttingPlane,
            _ => chosen_for_outputs(structure.examples(), run.design.cols() * structure.outputs() + structure.shared()),
        }
    }

    /// The rounds of a run of cutting planes beside their bound.
    fn rounds(&self, solution: &Solution, taken: Taken, one_slack: bool) -> Event<'static> {
        let cost = |example: usize| self.task.cost * self.task.structure.weight(example);
        let costs = (0..self.task.structure.examples()).map(cost).filter(|cost| *cost > 0.0);
        let (total, least) = costs.fold((0.0, f64::INFINITY), |(sum, least), cost| (sum + cost, least.min(cost)));
        let accuracy = (solution.objective - solution.lower_bound.unwrap_or(0.0)).max(0.0) / total;
        // The slopes of the one-slack form are sums over all examples with their costs.
        let square = if one_slack { taken.largest / (total * total) } else { taken.largest };
        let bound = PlaneBound { total, least, square, loss: self.task.structure.largest_loss(), accuracy };
        let most = if one_slack { bound.of_one_slack() } else { bound.of_many_slacks() };
        let (rounds, planes) = (solution.passes, taken.planes);
        Event::Rounds { rounds, planes, most, square, loss: bound.loss, accuracy }
    }

    /// The error that names examples that contradict each other.
    fn not_separable(&self, data: &Dataset, found: &Contradiction) -> Error {
        let structure = &self.task.structure;
        let name = |example: usize| {
            let rows = structure.rows(example);
            if rows.len() == data.rows() && data.groups().is_none() && rows.len() > 1 {
                return "all rows together".to_string();
            }
            let first = rows.start;
            let group = data.groups().and_then(|groups| {
                let group = groups.starts().iter().position(|start| *start == first as u64)?;
                Some(groups.names().get(group))
            });
            group.map_or_else(|| data.row_name(first), |group| format!("{} `{group}`", self.task.unit))
        };
        outputs_contradicted(&found.blocks, name, self.task.unit, found.residual)
    }

    /// A solution that did not converge, at the weights of its start if these are better: the solver continues from the
    /// outputs with multipliers, whose weights may be worse than the best ones met.
    fn not_worse(&self, solution: Solution, start: &Start, design: &Design, cancel: &Cancel) -> Result<Solution> {
        let fits = start.weights.len() == solution.weights.len() && start.thresholds.len() == solution.thresholds.len();
        if !fits {
            return Ok(solution);
        }
        let searches = Searches::default();
        let (task, until) = (self.most_violated(&searches), cancel.until_abandoned());
        let objective = objective_of_outputs(&task, design, (&start.weights, &start.thresholds), &until)?;
        Ok(match objective < solution.objective {
            true => {
                Solution { weights: start.weights.clone(), thresholds: start.thresholds.clone(), objective, ..solution }
            }
            false => solution,
        })
    }

    /// A solution with the values that `verify` computes. After a cancel, the caller still waits for them.
    fn restated(&self, mut solution: Solution, design: &Design, tolerance: f64, cancel: &Cancel) -> Result<Solution> {
        let until = cancel.until_abandoned();
        let (searches, cost) = (Searches::default(), self.task.cost);
        let task = self.most_violated(&searches);
        let point = (&solution.weights[..], &solution.thresholds[..]);
        solution.objective = objective_of_outputs(&task, design, point, &until)?;
        if let Witness::Outputs(dual) = &solution.witness {
            solution.lower_bound = Some(bound_of_outputs(task.structure, cost, design, dual, &until)?);
        }
        Ok(restated(solution, tolerance))
    }
}

/// Certifies a hard margin: the weights must reach every margin, and the witness bounds the objective from below.
fn certify_hard(task: &MostViolated<'_>, stated: &Stated<'_>, design: &Design, cancel: &Cancel) -> Result<Values> {
    let weights = weights_of(stated.scorer)?;
    let (objective, shortfall) = hard_primal_of_outputs(task, design, (weights, stated.free), cancel)?;
    check_shortfall(shortfall)?;
    let lower_bound = match stated.witness {
        Some(Witness::Outputs(dual)) => Some(hard_bound_of_outputs(task, design, dual, cancel)?),
        Some(_) => return Err(infeasible("it belongs to another task")),
        None => None,
    };
    Ok(Values { objective, lower_bound })
}

impl Problem for ByOracle {
    fn task(&self) -> &dyn LearningTask {
        &self.task
    }

    fn task_mut(&mut self) -> &mut dyn LearningTask {
        &mut self.task
    }

    fn abilities(&self) -> Abilities {
        Abilities::STRUCTURED
    }

    /// Shared scores are weights of their own.
    fn rule(&self) -> Intercept {
        Intercept::Penalised
    }

    fn shape(&self) -> ProblemShape {
        let structure = &self.task.structure;
        let rows = (0..structure.examples()).map(|example| structure.rows(example).end).max().unwrap_or(0);
        let outputs = structure.outputs();
        ProblemShape { outputs, free: structure.shared(), blocks: 0, kernel_numbers: rows * outputs }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        run.solver = self.chosen(run);
        let &mut Run { design, settings, solver, start, cancel, .. } = run;
        let &Settings { tolerance, max_passes, .. } = settings;
        let searches = Searches::default();
        let task = self.most_violated(&searches);
        let blocks = output_expansion::blocks(settings, solver == Solver::NSlack);
        if settings.expands() {
            if !matches!(solver, Solver::FrankWolfe | Solver::NSlack) {
                return Err(not_planned(settings, solver));
            }
            let make = |run: &Run<'_>, bytes| self.machine(run.design, run.settings, bytes, run.cancel);
            let posed = (&task, self.task.adds_shared);
            let solve =
                |machine: &mut Machine, run: &mut Run<'_>| output_expansion::solve(&blocks, posed, machine, run);
            return through_kernel::with_machine(run, make, solve);
        }
        if run.referee.is_some() && matches!(solver, Solver::CuttingPlane | Solver::QuadraticProgram) {
            let message = format!("`{}` does not stop by held-out data", solver.name());
            return Err(Error::new(Code::BadSetting, message)
                .help("leave ⟦early-stopping⟧ out, or use frank-wolfe, n-slack or a stochastic solver"));
        }
        let solution = match solver {
            Solver::FrankWolfe => blocks.solve(&task, (design, run.referee), start, run.observer, cancel)?.0,
            Solver::NSlack => {
                let (solution, taken) = blocks.solve(&task, (design, run.referee), start, run.observer, cancel)?;
                // The answer does not matter: the run is over.
                let _ = run.observer.report(&self.rounds(&solution, taken, false));
                solution
            }
            Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos => {
                let descent = descent(settings, solver, Intercept::Penalised);
                // Its objective is already that of the stored weights.
                return descent.solve_outputs(&task, design, run.referee, run.observer, cancel);
            }
            Solver::QuadraticProgram => {
                let program = OutputHardMargin { tolerance, max_passes };
                return match program.solve(&task, design, run.observer, cancel)? {
                    Verdict::Separable(solution) => Ok(*solution),
                    Verdict::NotSeparable(found) => Err(self.not_separable(run.data, &found)),
                };
            }
            Solver::CuttingPlane => {
                let planes = CuttingPlane { tolerance, max_passes };
                let features = design.cols() * task.structure.outputs();
                let mut risk = LinearRisk::new(&task, design, true, cancel);
                let (solution, taken) = planes.solve_counted(&mut risk, features, start, run.observer, cancel)?;
                let (calls, seconds) = searches.total();
                // The answers do not matter: the run is over.
                let _ = run.observer.report(&Event::Searches { calls, seconds });
                let _ = run.observer.report(&self.rounds(&solution, taken, true));
                solution
            }
            solver => return Err(not_planned(settings, solver)),
        };
        cancel.check_wanted()?;
        let solution = self.restated(solution, design, tolerance, cancel)?;
        match start.filter(|_| run.referee.is_none() && solution.stop != Stop::Converged) {
            Some(start) => self.not_worse(solution, start, design, cancel),
            None => Ok(solution),
        }
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        let searches = Searches::default();
        let task = self.most_violated(&searches);
        if stated.free.len() != task.structure.shared() {
            return Err(infeasible("the shared scores do not fit the data"));
        }
        if settings.is_hard_margin() {
            return certify_hard(&task, stated, design, cancel);
        }
        if let Some(expanded) = Expanded::of(stated.scorer, design, settings, cancel)? {
            return output_expansion::certify(&task, &expanded, stated, cancel);
        }
        let weights = weights_of(stated.scorer)?;
        let objective = objective_of_outputs(&task, design, (weights, stated.free), cancel)?;
        let lower_bound = match stated.witness {
            Some(Witness::Outputs(dual)) => Some(bound_of_outputs(task.structure, task.cost, design, dual, cancel)?),
            Some(Witness::Cuts(cuts)) => {
                Some(proven_by_cuts(&mut LinearRisk::new(&task, design, true, cancel), cuts, cancel)?)
            }
            Some(_) => return Err(infeasible("it belongs to another task")),
            None => None,
        };
        Ok(Values { objective, lower_bound })
    }

    fn risk<'a>(&'a self, _: &'a Design, _: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Err(Error::new(Code::Unsupported, "the loss of structured outputs has no curvature")
            .help("learn from all rows at once"))
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        Machine::new(None, None, design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, _: &Machine, solution: &Solution, _: &Cancel) -> Vec<f64> {
        let constant = solution.thresholds.first().filter(|_| self.task.adds_shared).copied().unwrap_or(0.0);
        solution.reached().iter().map(|score| score + constant).collect()
    }

    fn sampled(&self, _: &Settings) -> Result<Box<dyn Sampled + '_>> {
        Err(Error::new(Code::Internal, "structured outputs are not drawn one by one"))
    }
}
