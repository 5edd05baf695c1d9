//! The stochastic solvers on each task, and when they stop early.

use super::{Problem, Tasks};
use crate::data::{Dataset, Design, Scaling, folds};
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Observer, Silent};
use crate::settings::{Regularisation, Settings, Solver};
use crate::solve::{ByPair, ByRow, EarlyStopping, Method, Referee, Sample, Sampled, Solution, StochasticDescent};
use crate::task::Intercept;

/// Runs a stochastic solver on the task; a referee may end it early.
pub(super) fn solve(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    referee: Option<&Referee<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    descent(settings, solver).solve(&*sampled(problem, settings)?, design, referee, observer, cancel)
}

fn descent(settings: &Settings, solver: Solver) -> StochasticDescent {
    let stochastic = &settings.stochastic;
    StochasticDescent {
        method: match solver {
            Solver::Pegasos => Method::Pegasos,
            Solver::Sgd => Method::Sgd,
            _ => Method::AveragedSgd,
        },
        schedule: stochastic.schedule.unwrap_or_default(),
        rate: stochastic.rate,
        batch: stochastic.batch as usize,
        project: stochastic.project,
        passes: settings.max_passes,
        seed: settings.seed,
        intercept: settings.free(),
        keep_last: false,
    }
}

/// The task as a stream of constraints.
pub(super) fn sampled<'a>(problem: &'a Problem, settings: &Settings) -> Result<Box<dyn Sampled + 'a>> {
    Ok(match &problem.task {
        Tasks::Binary(task, _) => Box::new(ByRow::new(task)?),
        Tasks::OneClass(..) => return Err(Error::new(Code::Internal, "a one-class model is learned through a kernel")),
        Tasks::Pairs(_) if settings.stochastic.sample == Some(Sample::Queries) => {
            return Err(Error::new(Code::BadSetting, "--sample queries draws queries, and explicit pairs have none")
                .help("leave --sample out: every pair is drawn once a pass"));
        }
        Tasks::Pairs(task) => Box::new(ByRow::new(task)?),
        Tasks::Graded(_) => return Err(Error::new(Code::Internal, "comparisons by grades are not drawn")),
        Tasks::Ranking(task) => {
            Box::new(ByPair::new(task, settings.loss, settings.stochastic.sample.unwrap_or_default(), None))
        }
    })
}

/// Runs a stochastic solver that stops by data it does not learn from: those of the referee, or a sample of its own.
#[allow(clippy::too_many_arguments)] // the run, and what its samples are made of
pub(super) fn solve_with_early_stopping(
    problem: &Problem,
    data: &Dataset,
    scaling: &Scaling,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    referee: Option<Referee<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    match settings.stochastic.early_stopping {
        EarlyStopping::None => solve(problem, design, settings, solver, None, observer, cancel),
        EarlyStopping::Validation => {
            let referee = referee.ok_or_else(|| {
                Error::new(Code::BadSetting, "--early-stopping validation needs held-out data to judge by")
                    .help("add --holdout 0.2 or --validation FILE, or use --early-stopping subsamples")
            })?;
            solve(problem, design, settings, solver, Some(&referee), observer, cancel)
        }
        EarlyStopping::Subsamples => {
            let passes = passes_by_subsamples(problem, data, scaling, settings, solver, cancel)?;
            let descent = StochasticDescent { passes, keep_last: true, ..descent(settings, solver) };
            let sampled = sampled(problem, settings)?;
            match referee {
                // Held-out data are shown, and decide nothing here.
                Some(referee) => {
                    let mut watching = super::Watching { inner: observer, held_out: Some(referee.measure) };
                    descent.solve(&*sampled, design, None, &mut watching, cancel)
                }
                None => descent.solve(&*sampled, design, None, observer, cancel),
            }
        }
    }
}

/// Each of the two samples has a tenth of the rows, or more where that would be fewer than this.
const LEAST_SAMPLE: usize = 2000;
const MOST_PARTS: usize = 10;

/// Learns from one sample until the loss on another one rises, and returns the passes that were best.
fn passes_by_subsamples(
    problem: &Problem,
    data: &Dataset,
    scaling: &Scaling,
    settings: &Settings,
    solver: Solver,
    cancel: &Cancel,
) -> Result<u64> {
    if data.pairs().is_some() {
        return Err(Error::new(Code::BadSetting, "explicit pairs are not split into samples")
            .help("use --early-stopping validation, or give --max-passes"));
    }
    let parts = folds(data, (data.rows() / LEAST_SAMPLE).clamp(2, MOST_PARTS), settings.seed)?;
    // The same mean form as for all data, whatever the size of the sample.
    let settings = Settings { regularisation: Regularisation::Lambda(problem.lambda), ..settings.clone() };
    let sample = |rows: &[usize]| -> Result<(Problem, Design)> {
        let data = data.subset(rows)?;
        let named =
            |error: Error| error.help("a sample of the rows lacks what all rows have; use --early-stopping none");
        Ok((Problem::new(&data, &settings).map_err(named)?, scaling.apply(data.matrix(), data.groups())?))
    };
    let [learn, judge] = &parts[..2] else { return Ok(settings.max_passes) };
    let ((learned, learned_design), (judged, judged_design)) = (sample(learn)?, sample(judge)?);
    let judged = sampled(&judged, &settings)?;
    let measure = |weights: &[f64], thresholds: &[f64]| {
        let b = thresholds.first().copied().unwrap_or(0.0);
        let penalty = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        // The intercept that was learned, not the one that would be best here.
        let settled = judged.settled(&judged_design, weights, b, Intercept::None, cancel).ok()?;
        Some((settled.objective - penalty) / judged.total_cost())
    };
    let referee = Referee { measure: &measure, higher_is_better: false };
    let solution = solve(&learned, &learned_design, &settings, solver, Some(&referee), &mut Silent, cancel)?;
    cancel.check()?;
    Ok(solution.passes)
}
