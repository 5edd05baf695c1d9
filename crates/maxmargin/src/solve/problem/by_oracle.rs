//! [`ByOracle`]: structured outputs, of which a search finds the most violated one.

use super::by_block::proven_by_cuts;
use super::{Problem, ProblemShape, Run, Stated, Values, infeasible, not_planned, restated, weights_of};
use crate::certificate::{Decoder, Witness};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Event};
use crate::settings::Settings;
use crate::solve::frank_wolfe::BlockFrankWolfe;
use crate::solve::oracle_risk::{MostViolated, Searches, bound_of_outputs, objective_of_outputs};
use crate::solve::{CurvedRisk, CuttingPlane, LinearRisk, Machine, Sampled, Solution};
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
        ProblemShape { outputs: structure.outputs(), free: structure.shared(), blocks: 0, kernel_numbers: 0 }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        let &mut Run { design, settings, solver, start, cancel, .. } = run;
        let &Settings { tolerance, max_passes, seed, .. } = settings;
        let searches = Searches::default();
        let task = self.most_violated(&searches);
        let solution = match solver {
            Solver::FrankWolfe | Solver::NSlack => {
                let to_the_end = solver == Solver::NSlack;
                let blocks = BlockFrankWolfe { tolerance, max_passes, seed, to_the_end };
                blocks.solve(&task, design, start, run.observer, cancel)?
            }
            Solver::CuttingPlane => {
                let planes = CuttingPlane { tolerance, max_passes };
                let features = design.cols() * task.structure.outputs();
                let mut risk = LinearRisk::new(&task, design, true, cancel);
                let solution = planes.solve(&mut risk, features, start, run.observer, cancel)?;
                let (calls, seconds) = searches.total();
                // The answer does not matter: the run is over.
                let _ = run.observer.report(&Event::Searches { calls, seconds });
                solution
            }
            solver => return Err(not_planned(settings, solver)),
        };
        cancel.check_wanted()?;
        self.restated(solution, design, tolerance, cancel)
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, _: &Settings, cancel: &Cancel) -> Result<Values> {
        let searches = Searches::default();
        let task = self.most_violated(&searches);
        let weights = weights_of(stated.scorer)?;
        if stated.free.len() != task.structure.shared() {
            return Err(infeasible("the shared scores do not fit the data"));
        }
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

    fn machine(&self, _: &Design, _: &Settings, _: u64, _: &Cancel) -> Result<Machine> {
        Err(Error::new(Code::Unsupported, "structured outputs learn weights, and a kernel model has none")
            .help("use ⟦approximate=nystrom:1000⟧, or leave ⟦kernel⟧ out"))
    }

    fn kernel_scores(&self, _: &Machine, _: &Solution, _: &Cancel) -> Vec<f64> {
        Vec::new()
    }

    fn sampled(&self, _: &Settings) -> Result<Box<dyn Sampled + '_>> {
        Err(Error::new(Code::Internal, "structured outputs are not drawn one by one"))
    }
}
