//! Tasks learned with a kernel one row at a time: by stochastic steps, or by LaSVM.

use super::through_kernel::{around, proven};
use super::{Run, constant_term};
use crate::certificate::{Expansion, Scorer, Witness};
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{Element, Kernel, Points, expansion_scores};
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::gram::check_values;
use crate::solve::machine::{by_row, no_minimum, usual_cache};
use crate::solve::{KernelDescent, KernelRows, KernelSum, Lasvm, Sampled, Solution, ThroughKernel};
use crate::task::{Independent, Intercept, LearningTask};
use crate::wish::Solver;

/// The kernel and the rows of a run, prepared for kernel values.
fn points(run: &Run<'_>) -> Result<(Kernel, Points)> {
    let kernel = Kernel::resolved(&run.settings.kernel, run.design, run.settings.seed);
    check_values(&kernel, run.design)?;
    let points = Points::until(run.design, &kernel, run.cancel);
    run.cancel.check()?;
    Ok((kernel, points))
}

/// Stochastic steps, which need no dual point and take graded rows too.
pub(super) fn descend(
    sampled: &dyn Sampled,
    task: &dyn LearningTask,
    rule: Intercept,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (kernel, points) = points(run)?;
    let rows = KernelRows { design: run.design, points: &points, kernel: &kernel };
    let (settings, cancel) = (run.settings, run.cancel);
    let stochastic = &settings.stochastic;
    let descent = KernelDescent {
        // Bottou's rates fall like 1/(λt) after the first one: if that is 1/λ, they are those of Pegasos.
        schedule: stochastic.schedule.unwrap_or_default(),
        rate: stochastic.rate.filter(|_| run.solver == Solver::Sgd),
        batch: stochastic.batch as usize,
        passes: settings.max_passes,
        seed: settings.seed,
        intercept: rule,
        budget: settings.kernel.budget.map(|budget| budget as usize),
    };
    let expansion = |vectors: Matrix, coefficients: &[f64], intercept: Option<f64>| Expansion {
        kernel: rows.kernel.clone(),
        vectors,
        coefficients: coefficients.to_vec(),
        outputs: 1,
        intercepts: intercept.into_iter().collect(),
    };
    let scored = |vectors: Matrix, coefficients: &[f64]| {
        let (scores, square) = expansion(vectors, coefficients, None).against(rows.points, cancel)?;
        cancel.check()?;
        Ok((scores, square))
    };
    let KernelSum { vectors, coefficients, threshold, objective, passes, stop, merging, trace } =
        match rows.points.is_wide() {
            true => descent.solve::<f64>(sampled, rows, &scored, run.observer, cancel)?,
            false => descent.solve::<f32>(sampled, rows, &scored, run.observer, cancel)?,
        };
    let intercept = constant_term(task, rule, threshold);
    let scorer = Scorer::Expansion(expansion(vectors, &coefficients, intercept));
    Ok(Solution {
        weights: Vec::new(),
        thresholds: vec![threshold],
        objective,
        lower_bound: None,
        witness: Witness::Weights,
        passes,
        stop,
        first_rate: stochastic.rate,
        read: None,
        kernel: Some(ThroughKernel {
            reached: Vec::new(),
            common_margin: None,
            rows: None,
            definite: rows.kernel.is_definite(),
            scorer: Some(scorer),
            merging: Some(merging),
        }),
        trace,
    })
}

/// LaSVM over kernel values as exact as the rows.
pub(super) fn in_one_pass<T: Independent + LearningTask>(
    task: &T,
    rule: Intercept,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (kernel, points) = points(run)?;
    let rows = KernelRows { design: run.design, points: &points, kernel: &kernel };
    let definite = rows.kernel.is_definite();
    let solved = match rows.points.is_wide() {
        true => lasvm::<T, f64>(task, rule, rows, run),
        false => lasvm::<T, f32>(task, rule, rows, run),
    };
    let mut solution = solved.map_err(|error| if definite { error } else { no_minimum(error, task.loss()) })?;
    let alpha = std::mem::take(&mut solution.weights);
    let intercept = constant_term(task, rule, solution.threshold());
    let scorer = around(rows.kernel.clone(), by_row(task, &alpha).into_iter(), intercept, rows.design)?;
    let solution = Solution { witness: Witness::Dual(alpha), ..solution.with_scorer(scorer, definite) };
    Ok(proven(solution, definite))
}

fn lasvm<T: Independent, V: Element>(
    task: &T,
    intercept: Intercept,
    rows: KernelRows<'_>,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (&Settings { tolerance, max_passes, seed, .. }, cancel): (_, &Cancel) = (run.settings, run.cancel);
    let scored = |alpha: &[f64]| {
        let (places, coefficients): (Vec<usize>, Vec<f64>) = by_row(task, alpha).into_iter().unzip();
        let scores = expansion_scores(rows.kernel, rows.points, &places, &coefficients, rows.points, cancel);
        cancel.check()?;
        let square = places.iter().zip(&coefficients).map(|(&row, coefficient)| coefficient * scores[row]).sum();
        Ok((scores, square))
    };
    Lasvm { tolerance, max_passes, seed, intercept, cache_bytes: usual_cache(run.settings) }.solve::<T, V>(
        task,
        rows,
        &scored,
        run.observer,
        cancel,
    )
}
