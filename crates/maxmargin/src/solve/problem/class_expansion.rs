//! Joint problems over several classes through kernels: the support vectors, and the proof of the bound.

use super::through_kernel::{around_several, polished, proven, refuse_polish};
use super::{Expanded, Run, Stated, Values, infeasible};
use crate::certificate::{ClassDual, Witness};
use crate::error::Result;
use crate::parallel;
use crate::run::Cancel;
use crate::solve::class_digits::{class_digits, features_behind, is_small};
use crate::solve::machine::{Job, Machine};
use crate::solve::{AgainstOwn, Solution, check_dual_of_classes, class_loss};
use crate::task::{Intercept, Roundable};

/// Kernels have more features than this over most data.
const FEWEST_FEATURES: usize = 10;

/// Solves by the dual.
pub(super) fn solve<T: AgainstOwn + Roundable>(
    task: &T,
    rule: Intercept,
    machine: &mut Machine,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let settings = run.settings;
    refuse_polish(settings, machine)?;
    let start = run.start.and_then(|start| start.dual.as_deref());
    let job = Job { settings, rule, start, observer: &mut *run.observer, cancel: run.cancel };
    let mut fitted = machine.tell_apart(task, job)?;
    if !run.for_model {
        return Ok(fitted);
    }
    let (definite, classes) = (machine.is_definite(), task.scores());
    let (rows, cancel) = (run.design.rows(), run.cancel);
    if definite && is_small(rows, FEWEST_FEATURES * classes) {
        fitted = polished(run, fitted, machine.is_wide(), |fitted, _| {
            let features = features_behind(machine.all_values(), rows)?;
            if !is_small(rows, features.cols() * classes) {
                return Ok(None);
            }
            let found = class_digits(task, &features, rule, cancel)?;
            Ok(found.map(|found| found.through_kernel(task, fitted)))
        });
    }
    let beta = std::mem::take(&mut fitted.weights);
    let (mut rows, mut coefficients) = (Vec::new(), Vec::new());
    for (row, own) in beta.chunks_exact(classes).enumerate().filter(|(_, own)| own.iter().any(|beta| *beta != 0.0)) {
        rows.push(row);
        coefficients.extend_from_slice(own);
    }
    let constants = fitted.thresholds.clone();
    let scorer = around_several(machine.kernel.clone(), &rows, coefficients, constants, (run.design, classes))?;
    Ok(proven(fitted.with_scorer(scorer, definite), definite))
}

/// Objective and bound of a model, from scratch.
pub(super) fn certify<T: AgainstOwn>(
    task: &T,
    rule: Intercept,
    expanded: &Expanded<'_>,
    stated: &Stated<'_>,
    cancel: &Cancel,
) -> Result<Values> {
    /// Rows whose losses are added up together.
    const RUN: usize = 1024;
    let (mut scores, mut square) = expanded.values(cancel)?;
    let classes = task.scores();
    let fits = scores.len() == task.count() * classes && task.has_blocks();
    if !fits || ![0, classes].contains(&stated.free.len()) {
        return Err(infeasible("it belongs to another task"));
    }
    if !stated.free.is_empty() {
        let constants = stated.free.iter();
        scores
            .chunks_exact_mut(classes)
            .for_each(|own| own.iter_mut().zip(constants.clone()).for_each(|(s, b)| *s += b));
    }
    if rule == Intercept::Penalised {
        square += stated.free.iter().map(|b| b * b).sum::<f64>();
    }
    let losses = parallel::map(task.count().div_ceil(RUN), |run| -> f64 {
        let rows = run * RUN..((run + 1) * RUN).min(task.count());
        rows.map(|row| class_loss(task, row, &scores[row * classes..(row + 1) * classes])).sum()
    });
    let objective = 0.5 * square + losses.iter().sum::<f64>();
    let lower_bound = match stated.witness {
        None => None,
        Some(Witness::Classes(dual)) => Some(dual_value(task, rule, dual, expanded, cancel)?),
        Some(_) => return Err(infeasible("it belongs to another task")),
    };
    Ok(Values { objective, lower_bound })
}

/// The dual value of a point, or an error if it is not feasible.
fn dual_value<T: AgainstOwn>(
    task: &T,
    rule: Intercept,
    dual: &ClassDual,
    expanded: &Expanded<'_>,
    cancel: &Cancel,
) -> Result<f64> {
    let classes = task.scores();
    check_dual_of_classes(task, dual, rule)?;
    let (mut rows, mut coefficients, mut sums) = (Vec::new(), Vec::new(), vec![0.0; classes]);
    let mut gained = 0.0;
    for row in 0..task.count() {
        let class = task.own(row);
        let mut own = vec![0.0; classes];
        for (m, alpha) in dual.row(row) {
            let signed = task.sign(row, m) * alpha;
            own[m] -= signed;
            own[class] += signed;
            gained += alpha * task.margin(row, m);
        }
        if own.iter().any(|beta| *beta != 0.0) {
            sums.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
            rows.push(row);
            coefficients.extend_from_slice(&own);
        }
    }
    let images = expanded.images(&rows, &coefficients, cancel)?;
    let mut square = 0.0;
    for (&row, own) in rows.iter().zip(coefficients.chunks_exact(classes)) {
        square += own.iter().zip(&images[row * classes..]).map(|(beta, image)| beta * image).sum::<f64>();
    }
    if rule == Intercept::Penalised {
        square += sums.iter().map(|sum| sum * sum).sum::<f64>();
    }
    Ok(gained - 0.5 * square)
}
