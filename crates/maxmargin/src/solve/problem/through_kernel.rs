//! What solutions with a kernel share: support vectors, last digits, and valid bounds.

use super::last_digits::{Budget, is_as_good, joined, tell};
use super::{Run, constant_term};
use crate::certificate::{Expansion, Scorer, Witness};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::kernel::Kernel;
use crate::run::{Cancel, Event};
use crate::settings::Settings;
use crate::solve::machine::{Job, Machine, by_row, usual_cache};
use crate::solve::{Solution, Stop};
use crate::task::{Independent, Intercept, LearningTask};
use std::time::Instant;

/// The tolerance to which solvers run before the active set finds the last digits.
const CLOSE: f64 = 1e-6;

/// A scorer made of the rows with nonzero coefficients. With precomputed kernel values, the columns are the kernel
/// values with all rows, so the coefficients are weights.
pub(super) fn around(
    kernel: Kernel,
    coefficients: impl Iterator<Item = (usize, f64)>,
    intercept: Option<f64>,
    design: &Design,
) -> Result<Scorer> {
    let (rows, coefficients): (Vec<usize>, Vec<f64>) = coefficients.unzip();
    around_several(kernel, &rows, coefficients, intercept.into_iter().collect(), (design, 1))
}

/// The same for several scores per row, with the coefficients of each of these rows next to each other.
pub(super) fn around_several(
    kernel: Kernel,
    rows: &[usize],
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    (design, outputs): (&Design, usize),
) -> Result<Scorer> {
    if kernel == Kernel::Precomputed {
        let mut weights = vec![0.0; design.cols() * outputs];
        let first = design.cols() - design.rows();
        for (row, own) in rows.iter().zip(coefficients.chunks_exact(outputs)) {
            weights[(first + row) * outputs..][..outputs].copy_from_slice(own);
        }
        return Ok(Scorer::Linear { weights, outputs, intercepts });
    }
    Ok(Scorer::Expansion(Expansion { kernel, vectors: design.copied(rows)?, coefficients, outputs, intercepts }))
}

/// Solves with a kernel, over the machine of the run or a new one.
pub(super) fn with_machine(
    run: &mut Run<'_>,
    make: impl FnOnce(&Run<'_>, u64) -> Result<Machine>,
    solve: impl FnOnce(&mut Machine, &mut Run<'_>) -> Result<Solution>,
) -> Result<Solution> {
    match run.machine.take() {
        Some(machine) => solve(machine, run),
        None => {
            let mut machine = make(run, usual_cache(run.settings))?;
            solve(&mut machine, run)
        }
    }
}

/// Solves a task with one constraint per block by its dual.
pub(super) fn by_dual<T: Independent + LearningTask>(
    task: &T,
    rule: Intercept,
    polishes: bool,
    machine: &mut Machine,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (settings, cancel) = (run.settings, run.cancel);
    refuse_polish(settings, machine)?;
    let start = run.start.and_then(|start| start.dual.as_deref());
    let job = Job { settings, rule, start, observer: &mut *run.observer, cancel };
    let mut fitted = machine.minimise(task, job)?;
    if !run.for_model {
        return Ok(fitted);
    }
    let definite = machine.is_definite();
    if definite && polishes {
        let closer = Settings { tolerance: settings.tolerance.min(CLOSE), ..settings.clone() };
        fitted = polished(run, fitted, machine.is_wide(), |fitted, work| {
            machine.with_all_digits(task, rule, &closer, (fitted, work), cancel)
        });
    }
    let intercept = constant_term(task, rule, fitted.threshold());
    let scorer = around(machine.kernel.clone(), by_row(task, &fitted.weights).into_iter(), intercept, run.design)?;
    let alpha = std::mem::take(&mut fitted.weights);
    let witness = Witness::Dual(alpha);
    Ok(proven(Solution { witness, ..fitted.with_scorer(scorer, definite) }, definite))
}

/// Refuses to polish what has no more digits.
pub(super) fn refuse_polish(settings: &Settings, machine: &Machine) -> Result<()> {
    let why = match (settings.polish, machine.is_wide(), machine.is_definite()) {
        (false, ..) | (true, true, true) => return Ok(()),
        (true, _, false) => "this kernel is not positive definite, so that no bound is proven",
        (true, false, true) => "values of this kernel are kept in single precision, as for more than 4,096 rows",
    };
    Err(Error::new(Code::BadSetting, format!("⟦polish⟧ finds the last digits of a solution, and {why}"))
        .help("leave ⟦polish⟧ out"))
}

/// A solution with a kernel, polished if that succeeds. `closer` gets the number of multiplications that it may take.
pub(super) fn polished(
    run: &mut Run<'_>,
    fitted: Solution,
    wide: bool,
    closer: impl FnOnce(&Solution, f64) -> Result<Option<Solution>>,
) -> Solution {
    let Some(Budget { work, .. }) = Budget::of(run, &fitted).filter(|_| wide) else { return fitted };
    let began = Instant::now();
    if run.observer.report(&Event::Polishing).is_break() {
        return fitted;
    }
    match closer(&fitted, work) {
        Ok(Some(better)) if is_as_good(better.gap(), fitted.gap()) => {
            let joined = joined(fitted, better, run.settings.tolerance, began);
            tell(run, &joined);
            joined
        }
        _ => fitted,
    }
}

/// If the kernel is not positive definite, a dual value is not a bound, and no witness proves it.
pub(super) fn proven(solution: Solution, definite: bool) -> Solution {
    if definite {
        return solution;
    }
    let stop = if solution.stop == Stop::Converged { Stop::Finished } else { solution.stop };
    Solution { stop, lower_bound: None, witness: Witness::Weights, ..solution }
}

/// The scores of all rows of a task with one constraint per block.
pub(super) fn scores<T: Independent + LearningTask>(
    task: &T,
    rule: Intercept,
    machine: &Machine,
    solution: &Solution,
    cancel: &Cancel,
) -> Vec<f64> {
    if !task.blocks_are_rows() {
        let (rows, numbers): (Vec<usize>, Vec<f64>) = by_row(task, &solution.weights).into_iter().unzip();
        let mut scores = machine.expansion_scores(&rows, &numbers, cancel);
        if let Some(constant) = constant_term(task, rule, solution.threshold()) {
            scores.iter_mut().for_each(|score| *score += constant);
        }
        return scores;
    }
    // The values reached already include a penalised threshold.
    let constant = task.offset().unwrap_or(if rule == Intercept::Free { solution.threshold() } else { 0.0 });
    let reached = solution.reached().iter().enumerate();
    reached.map(|(row, reached)| task.constraint(row).coefficient * reached + constant).collect()
}
