//! The stochastic solvers, for any problem that can be sampled.

use super::Run;
use crate::error::Result;
use crate::settings::Settings;
use crate::solve::{Sampled, Solution, Stepping, StochasticDescent};
use crate::task::Intercept;
use crate::wish::Solver;

/// The stochastic descent for these settings.
pub(crate) fn descent(settings: &Settings, solver: Solver, rule: Intercept) -> StochasticDescent {
    let stochastic = &settings.stochastic;
    StochasticDescent {
        method: match solver {
            Solver::Pegasos => Stepping::Pegasos,
            Solver::Sgd => Stepping::Sgd,
            _ => Stepping::AveragedSgd,
        },
        schedule: stochastic.schedule.unwrap_or_default(),
        rate: stochastic.rate,
        batch: stochastic.batch as usize,
        project: stochastic.project,
        passes: settings.max_passes,
        seed: settings.seed,
        intercept: rule,
        keep_last: false,
        judge_every: stochastic.judge_every,
    }
}

/// Runs a stochastic solver. The referee of the run may stop it early.
pub(crate) fn stochastic(sampled: &dyn Sampled, rule: Intercept, run: &mut Run<'_>) -> Result<Solution> {
    descent(run.settings, run.solver, rule).solve(sampled, run.design, run.referee, run.observer, run.cancel)
}
