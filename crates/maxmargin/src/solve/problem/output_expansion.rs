//! Structured outputs through kernels: the support vectors, and the proof of the bound.
//!
//! ```text
//! w_o = Σ_j β_jo φ(x_j),   β_j = −Σ_y α_iy slope_iy for the rows j of example i
//! ```
//! Shared scores keep weights of their own.

use super::through_kernel::{around_several, proven, refuse_polish};
use super::{Expanded, Run, Stated, Values, infeasible, restated};
use crate::certificate::Witness;
use crate::error::Result;
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::Solution;
use crate::solve::frank_wolfe::BlockFrankWolfe;
use crate::solve::machine::{Job, Machine};
use crate::solve::oracle_risk::{MostViolated, expansion_of_outputs, loss_at_scores};
use crate::task::Intercept;

/// Coefficients below this share of the largest are what rounding left of rows that no multiplier moves.
const NOTHING: f64 = 1e-13;

/// Solves by Frank–Wolfe. `adds_shared` says whether the one shared score is the constant term of all scores.
pub(super) fn solve(
    blocks: &BlockFrankWolfe,
    (task, adds_shared): (&MostViolated<'_>, bool),
    machine: &mut Machine,
    run: &mut Run<'_>,
) -> Result<Solution> {
    let (settings, cancel) = (run.settings, run.cancel);
    refuse_polish(settings, machine)?;
    let job = Job { settings, rule: Intercept::None, start: None, observer: &mut *run.observer, cancel };
    let mut fitted = machine.tell_outputs(blocks, task, run.start, job)?;
    if !run.for_model {
        return Ok(fitted);
    }
    let (definite, outputs) = (machine.is_definite(), task.structure.outputs().max(1));
    let beta = std::mem::take(&mut fitted.weights);
    let least = NOTHING * beta.iter().fold(0.0f64, |most, beta| most.max(beta.abs()));
    let (mut rows, mut coefficients) = (Vec::new(), Vec::new());
    let counting = |own: &[f64]| own.iter().any(|beta| beta.abs() > least);
    for (row, own) in beta.chunks_exact(outputs).enumerate().filter(|(_, own)| counting(own)) {
        rows.push(row);
        coefficients.extend_from_slice(own);
    }
    let constants = if adds_shared { fitted.thresholds.clone() } else { Vec::new() };
    let scorer = around_several(machine.kernel.clone(), &rows, coefficients, constants, (run.design, outputs))?;
    // The values are those that `verify` computes. After a cancel, the caller still waits for them.
    let until = cancel.until_abandoned();
    if let Some(expanded) = Expanded::of(&scorer, run.design, settings, &until)? {
        let (free, witness) = (&fitted.thresholds[..], Some(&fitted.witness));
        let stated = Stated { scorer: &scorer, free, witness, claims: true, by_weights: false };
        let Values { objective, lower_bound } = certify(task, &expanded, &stated, &until)?;
        (fitted.objective, fitted.lower_bound) = (objective, lower_bound);
    }
    let fitted = restated(fitted, settings.tolerance);
    Ok(proven(fitted.with_scorer(scorer, definite), definite))
}

/// Objective and bound of a model, from scratch.
pub(super) fn certify(
    task: &MostViolated<'_>,
    expanded: &Expanded<'_>,
    stated: &Stated<'_>,
    cancel: &Cancel,
) -> Result<Values> {
    let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let (scores, square) = expanded.values(cancel)?;
    let loss = loss_at_scores(task, &scores, stated.free, cancel)?;
    let objective = 0.5 * (square + squares(stated.free)) + loss;
    let lower_bound = match stated.witness {
        None => None,
        Some(Witness::Outputs(dual)) => {
            let own = expansion_of_outputs(task.structure, task.cost, dual)?;
            let images = expanded.images(&own.rows, &own.coefficients, cancel)?;
            let outputs = task.structure.outputs().max(1);
            let mut square = squares(&own.shared);
            for (&row, own) in own.rows.iter().zip(own.coefficients.chunks_exact(outputs)) {
                square += own.iter().zip(&images[row * outputs..]).map(|(beta, image)| beta * image).sum::<f64>();
            }
            Some((own.gain - 0.5 * square).max(0.0))
        }
        Some(_) => return Err(infeasible("it belongs to another task")),
    };
    Ok(Values { objective, lower_bound })
}

/// The solver for these settings.
pub(super) fn blocks(settings: &Settings, to_the_end: bool) -> BlockFrankWolfe {
    let &Settings { tolerance, max_passes, seed, .. } = settings;
    BlockFrankWolfe { tolerance, max_passes, seed, to_the_end }
}
