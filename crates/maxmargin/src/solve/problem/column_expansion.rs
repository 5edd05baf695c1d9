//! The columns of an output code through kernels: shared support vectors, and the proof of the bounds.

use super::by_block::check_dual;
use super::through_kernel::around_several;
use super::{Expanded, Stated, Values, infeasible};
use crate::certificate::{ColumnWitness, Witness};
use crate::data::Design;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::values::{dual_of_square, primal_of_scores};
use crate::solve::{ThroughKernel, by_row};
use crate::task::{Binary, Column, Columns, Intercept};
use std::collections::BTreeMap;

/// The support vectors of all columns, each stored once. `terms` holds the coefficients of each row, by column.
pub(super) fn through(
    kernel: &Kernel,
    terms: &BTreeMap<usize, Vec<(usize, f64)>>,
    constants: &[f64],
    (design, columns): (&Design, usize),
) -> Result<ThroughKernel> {
    let rows: Vec<usize> = terms.keys().copied().collect();
    let coefficients = matrix(terms, columns);
    let scorer = around_several(kernel.clone(), &rows, coefficients, constants.to_vec(), (design, columns))?;
    Ok(ThroughKernel {
        reached: Vec::new(),
        common_margin: None,
        rows: None,
        definite: true,
        scorer: Some(scorer),
        merging: None,
    })
}

/// The coefficients of these rows, those of one row side by side.
fn matrix(terms: &BTreeMap<usize, Vec<(usize, f64)>>, columns: usize) -> Vec<f64> {
    let mut coefficients = vec![0.0; terms.len() * columns];
    for (own, terms) in coefficients.chunks_exact_mut(columns).zip(terms.values()) {
        terms.iter().for_each(|&(column, coefficient)| own[column] = coefficient);
    }
    coefficients
}

/// Objective and bound of a model, from scratch. Each kernel value is computed once for all columns.
pub(super) fn certify(
    task: &Columns,
    expanded: &Expanded<'_>,
    stated: &Stated<'_>,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Values> {
    let (columns, rule) = (task.code().columns(), task.rule());
    let witnesses = match stated.witness {
        None => None,
        Some(Witness::Columns(witnesses)) if witnesses.len() == columns => Some(&witnesses[..]),
        Some(_) => return Err(infeasible("it belongs to another task")),
    };
    let (scores, square) = expanded.values(cancel)?;
    let fits = scores.len() == task.rows() * columns && [0, columns].contains(&stated.free.len());
    if !fits {
        return Err(infeasible("it belongs to another task"));
    }
    let mut objective = 0.5 * square;
    // The dual points: their part without the kernel, and the coefficients of rows.
    let (mut gained, mut terms) = (0.0, BTreeMap::<usize, Vec<(usize, f64)>>::new());
    for column in 0..columns {
        cancel.check()?;
        let constant = stated.free.get(column).copied().unwrap_or(0.0);
        let (learned, rows) = match task.column(column) {
            Column::Constant(score) => {
                let score = if task.has_constants() { score } else { 0.0 };
                if constant != score || scores.iter().skip(column).step_by(columns).any(|score| *score != 0.0) {
                    return Err(infeasible("a column with one side has learned coefficients"));
                }
                continue;
            }
            Column::Learned(learned, rows) => (learned, rows),
        };
        let row = |at: usize| rows.as_ref().map_or(at, |rows| rows[at]);
        let count = rows.as_ref().map_or(task.rows(), Vec::len);
        let own: Vec<f64> = (0..count).map(|at| scores[row(at) * columns + column]).collect();
        objective += primal_of_scores(&learned, &[], &own, constant, rule);
        if let Some(witnesses) = witnesses {
            let alpha = dual_point(&witnesses[column], &learned, rule, settings)?;
            gained += dual_of_square(&learned, |block| alpha[block], 0.0, rule);
            for (at, coefficient) in by_row(&learned, &alpha) {
                terms.entry(row(at)).or_default().push((column, coefficient));
            }
        }
    }
    let lower_bound = match witnesses {
        None => None,
        Some(_) => {
            let (rows, coefficients): (Vec<usize>, _) = (terms.keys().copied().collect(), matrix(&terms, columns));
            let images = expanded.images(&rows, &coefficients, cancel)?;
            let own = rows.iter().zip(coefficients.chunks_exact(columns));
            let square: f64 = own
                .map(|(&row, own)| own.iter().zip(&images[row * columns..]).map(|(c, image)| c * image).sum::<f64>())
                .sum();
            Some(gained - 0.5 * square)
        }
    };
    Ok(Values { objective, lower_bound })
}

/// The dual point of a column, or an error if it is not feasible.
fn dual_point(witness: &ColumnWitness, task: &Binary, rule: Intercept, settings: &Settings) -> Result<Vec<f64>> {
    let ColumnWitness::Dual(sparse) = witness else { return Err(infeasible("it belongs to another task")) };
    let alpha = sparse.to_dense().ok_or_else(|| infeasible("a dual variable has no row"))?;
    check_dual(task, rule, settings.regularisation, &alpha)?;
    Ok(alpha)
}
