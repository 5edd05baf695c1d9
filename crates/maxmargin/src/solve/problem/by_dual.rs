//! [`ByDual`]: a task known only by one constraint per block: dual solvers support it, for weights and with kernels.

use super::by_block::{certify_dual, certify_hard, separated};
use super::{
    Expanded, Problem, ProblemShape, Run, Stated, Values, not_planned, one_by_one, stochastic, through_kernel,
    weights_of,
};
use crate::certificate::Witness;
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::values::{dual_value, primal_of_scores};
use crate::solve::{ByRow, CurvedRisk, DualCoordinateDescent, Machine, QuadraticProgram, Sampled, Solution};
use crate::task::{Abilities, Independent, Intercept, LearningTask};
use crate::wish::Solver;

/// A task known by its constraints alone: the simplest form for your own task.
pub struct ByDual<T> {
    task: T,
    rule: Intercept,
    abilities: Abilities,
}

impl<T: Independent + LearningTask> ByDual<T> {
    /// A task with weights, and how its free scalar is treated.
    pub fn new(task: T, rule: Intercept) -> ByDual<T> {
        ByDual { task, rule, abilities: Abilities { curved: false, ..Abilities::LISTED } }
    }

    /// The same with other abilities.
    pub(crate) fn with_abilities(self, abilities: Abilities) -> ByDual<T> {
        ByDual { abilities, ..self }
    }
}

impl<T: Independent + LearningTask> Problem for ByDual<T> {
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
        let free = usize::from(self.abilities.weights && self.rule != Intercept::None);
        ProblemShape { outputs: 1, free, blocks, kernel_numbers: blocks }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        let settings = run.settings;
        if settings.expands() || !self.abilities.weights {
            if run.solver == Solver::Lasvm {
                return one_by_one::in_one_pass(&self.task, self.rule, run);
            }
            if run.solver.is_stochastic() {
                return one_by_one::descend(&*self.sampled(settings)?, &self.task, self.rule, run);
            }
            let make = |run: &Run<'_>, bytes| self.machine(run.design, run.settings, bytes, run.cancel);
            let solve = |machine: &mut Machine, run: &mut Run<'_>| {
                through_kernel::by_dual(&self.task, self.rule, false, machine, run)
            };
            return through_kernel::with_machine(run, make, solve);
        }
        if run.solver.is_stochastic() {
            return stochastic(&*self.sampled(settings)?, self.rule, run);
        }
        let &Settings { tolerance, max_passes, seed, .. } = settings;
        let (task, intercept) = (&self.task, self.rule);
        let (observer, start, cancel) = (&mut *run.observer, run.start, run.cancel);
        match run.solver {
            Solver::DualCoordinateDescent => DualCoordinateDescent { tolerance, max_passes, seed, intercept }
                .solve(task, run.design, start, observer, cancel),
            Solver::QuadraticProgram => {
                let program = QuadraticProgram { tolerance, max_passes, intercept };
                separated(run.data, task, program.solve(task, run.design, observer, cancel)?)
            }
            solver => Err(not_planned(settings, solver)),
        }
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
        let objective = primal_of_scores(&self.task, weights, &scores, stated.threshold(), self.rule);
        let lower_bound = match stated.witness {
            Some(Witness::Dual(alpha)) => {
                super::by_block::check_dual(&self.task, self.rule, settings.regularisation, alpha)?;
                Some(dual_value(&self.task, design, |block| alpha[block], self.rule))
            }
            Some(_) => return Err(super::infeasible("it belongs to another task")),
            None => None,
        };
        Ok(Values { objective, lower_bound })
    }

    fn risk<'a>(&'a self, _: &'a Design, _: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Err(Error::new(Code::Unsupported, "this task is defined only by its constraints, and is not a sum over parts")
            .help("learn from all rows at once"))
    }

    fn machine(&self, design: &Design, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        Machine::new(Some(self.task.blocks()), self.task.second_copies(), design, settings, bytes, cancel)
    }

    fn kernel_scores(&self, machine: &Machine, solution: &Solution, cancel: &Cancel) -> Vec<f64> {
        through_kernel::scores(&self.task, self.rule, machine, solution, cancel)
    }

    fn sampled(&self, _: &Settings) -> Result<Box<dyn Sampled + '_>> {
        Ok(Box::new(ByRow::new(&self.task)?))
    }
}
