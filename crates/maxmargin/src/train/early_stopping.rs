//! Stochastic solvers that stop early: by held-out data, or after the number of passes found on two samples of the
//! rows.

use super::{Posed, Poses, Watching};
use crate::data::{Dataset, Design, Scaling, folds};
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Silent};
use crate::settings::{Regularisation, Settings};
use crate::solve::{Referee, Run, Solution, StochasticDescent, descent};
use crate::task::Intercept;
use crate::wish::{EarlyStopping, Solver};

/// Runs a stochastic solver that stops by data it does not train on: those of the referee, or samples of the rows with
/// their scaling.
pub(super) fn solve(
    poses: &dyn Poses,
    posed: &Posed,
    (data, scaling): (&Dataset, &Scaling),
    referee: Option<Referee<'_>>,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (problem, settings, cancel) = (&posed.problem, run.settings, run.cancel);
    if problem.abilities().structured {
        if settings.stochastic.early_stopping == EarlyStopping::Subsamples {
            return Err(Error::new(Code::BadSetting, "samples of the rows would cut structured outputs apart")
                .help("use ⟦early-stopping=validation⟧, or give ⟦max-passes⟧"));
        }
        let referee = referee.ok_or_else(without_judge)?;
        let &mut Run { data, design, settings, solver, start, for_model, polishes, cancel, .. } = run;
        let observer = &mut *run.observer;
        let referee = Some(&referee);
        return problem.solve(&mut Run {
            data,
            design,
            settings,
            solver,
            start,
            for_model,
            polishes,
            machine: None,
            referee,
            observer,
            cancel,
        });
    }
    let descent = descent(settings, run.solver, problem.rule());
    let sampled = problem.sampled(settings)?;
    match settings.stochastic.early_stopping {
        EarlyStopping::None => descent.solve(&*sampled, run.design, None, run.observer, cancel),
        EarlyStopping::Validation => {
            let referee = referee.ok_or_else(without_judge)?;
            descent.solve(&*sampled, run.design, Some(&referee), run.observer, cancel)
        }
        EarlyStopping::Subsamples => {
            let passes = passes_by_subsamples(poses, posed, (data, scaling), settings, run.solver, cancel)?;
            let descent = StochasticDescent { passes, keep_last: true, judge_every: None, ..descent };
            // Held-out data are only reported here; they do not stop the solver.
            let mut watching = Watching { inner: &mut *run.observer, held_out: referee.map(|referee| referee.measure) };
            descent.solve(&*sampled, run.design, None, &mut watching, cancel)
        }
    }
}

/// The error for early stopping by held-out data that are missing.
fn without_judge() -> Error {
    Error::new(Code::BadSetting, "⟦early-stopping=validation⟧ needs held-out data to judge by")
        .help("add ⟦holdout=0.2⟧ or ⟦validation=FILE⟧, or use ⟦early-stopping=subsamples⟧")
}

/// Each of the two samples has a tenth of the rows, but at least this many.
const LEAST_SAMPLE: usize = 2000;
const MOST_PARTS: usize = 10;

/// Trains on one sample until the loss on another one rises, and returns the best number of passes.
fn passes_by_subsamples(
    poses: &dyn Poses,
    posed: &Posed,
    (data, scaling): (&Dataset, &Scaling),
    settings: &Settings,
    solver: Solver,
    cancel: &Cancel,
) -> Result<u64> {
    if data.pairs().is_some() {
        return Err(Error::new(Code::BadSetting, "explicit pairs are not split into samples")
            .help("use ⟦early-stopping=validation⟧, or give ⟦max-passes⟧"));
    }
    let parts = folds(data, (data.rows() / LEAST_SAMPLE).clamp(2, MOST_PARTS), settings.seed)?;
    // The same mean form as for all data, for any size of the sample.
    let settings = Settings { regularisation: Regularisation::Lambda(posed.lambda), ..settings.clone() };
    let sample = |rows: &[usize]| -> Result<(Posed, Design)> {
        let data = data.subset(rows)?;
        let named =
            |error: Error| error.help("a sample of the rows lacks what all rows have; use ⟦early-stopping=none⟧");
        Ok((Posed::new(poses, &data, &settings).map_err(named)?, scaling.apply(data.matrix(), data.groups())?))
    };
    let [learn, judge] = &parts[..2] else { return Ok(settings.max_passes) };
    let ((learned, learned_design), (judged, judged_design)) = (sample(learn)?, sample(judge)?);
    let judged = judged.problem.sampled(&settings)?;
    let measure = |weights: &[f64], thresholds: &[f64]| {
        let b = thresholds.first().copied().unwrap_or(0.0);
        let penalty = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        // The learned intercept, not the best one for these rows.
        let settled = judged.settled(&judged_design, weights, b, Intercept::None, cancel).ok()?;
        Some((settled.objective - penalty) / judged.total_cost())
    };
    let referee = Referee { measure: &measure, higher_is_better: false };
    let descent = descent(&settings, solver, learned.problem.rule());
    let sampled = learned.problem.sampled(&settings)?;
    let solution = descent.solve(&*sampled, &learned_design, Some(&referee), &mut Silent, cancel)?;
    cancel.check()?;
    Ok(solution.passes)
}
