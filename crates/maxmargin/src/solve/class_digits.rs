//! Problems with a block of dual variables per row, and hinge loss, to the last digits: several classes, label sets.
//!
//! ```text
//! min  ½ Σ_m ‖w_m‖² + Σ_i C_i · loss_i      (a largest violation of a row, or the sum of them)
//! ```
//! With the hinge rounded off over a width δ, as in the task, the problem is piecewise quadratic, and Newton's method
//! solves it to the last digits. Once δ is so small that the same violations lie within the rounding, the constants and the
//! dual variables α(δ) are smooth functions of δ. Their values at halved widths are extrapolated to δ = 0 by polynomials
//! (Richardson), which gives a dual solution of the hinge itself. Widths are halved until two of these agree, or until
//! rounding, which grows like 1/δ, has passed what the polynomials leave: then the best of them is taken.
//!
//! The dual point is the witness. Cost: a few Newton steps for each width, rows times the square of the coordinates each.

use super::class_blocks::{AgainstOwn, dual_value, feasible, slopes_of_classes, weights_behind};
use super::{ClassDual, LinearRisk, Newton, Risk, Solution, Start, Witness, relative_gap};
use crate::data::{Dense, Design, Matrix, Scaling};
use crate::error::Result;
use crate::run::Cancel;
use crate::task::{Intercept, Roundable};

/// The first width, in margins, and how often it is halved at most.
const FIRST_WIDTH: f64 = 1.0;
const HALVINGS: usize = 24;

/// The highest degree of the polynomials.
const MOST_DEGREE: usize = 6;

/// Newton steps for a width, at most.
const STEPS: u64 = 40;

/// Extrapolated weights that differ by less than this share of the largest are the same.
const SAME: f64 = 1e-11;

/// A solution of the hinge is exact if its gap is below this.
const EXACT: f64 = 1e-12;

/// The best solution is taken if its gap, and its distance from another one, are below these.
const GOOD: f64 = 1e-10;
const NEAR: f64 = 1e-9;

/// Pivots below this share of the largest kernel value are rounding.
const PIVOT: f64 = 1e-14;

/// Rows times the square of the coordinates, at most.
const MOST_WORK: usize = 10_000_000;

/// A solution to the last digits.
pub struct ClassDigits {
    pub(super) weights: Vec<f64>,
    pub(super) constants: Vec<f64>,
    pub(super) dual: ClassDual,
    pub(super) objective: f64,
    pub(super) bound: f64,
    pub(super) steps: u64,
}

impl ClassDigits {
    fn gap(&self) -> f64 {
        relative_gap(self.objective, self.bound)
    }

    /// These weights in a solution, as a continuation of it.
    pub(super) fn in_place_of(self, before: &Solution) -> Solution {
        Solution {
            weights: self.weights,
            thresholds: self.constants,
            objective: self.objective,
            lower_bound: Some(self.bound),
            witness: Witness::Classes(self.dual),
            passes: self.steps,
            trace: Vec::new(),
            ..before.clone()
        }
    }

    /// The same with the coefficients of the rows, as many as there are classes for each, for a kernel.
    pub(super) fn through_kernel<T: AgainstOwn>(self, task: &T, before: &Solution) -> Solution {
        let outputs = task.scores();
        let mut beta = vec![0.0; task.count() * outputs];
        for (row, own) in beta.chunks_exact_mut(outputs).enumerate() {
            for (output, alpha) in self.dual.row(row) {
                let alpha = task.sign(row, output) * alpha;
                own[output] -= alpha;
                own[task.own(row)] += alpha;
            }
        }
        let mut solution = ClassDigits { weights: beta, ..self }.in_place_of(before);
        if let Some(kernel) = &mut solution.kernel {
            // No row was asked of the cache.
            kernel.rows = kernel.rows.map(|_| (0, 0));
        }
        solution
    }
}

/// Whether a problem is small enough.
pub(super) fn is_small(rows: usize, coordinates: usize) -> bool {
    coordinates.saturating_mul(coordinates).saturating_mul(rows) <= MOST_WORK
}

/// Solves the task over these features, or none if no width shows the solution.
pub(super) fn class_digits<T: AgainstOwn + Roundable>(
    task: &T,
    design: &Design,
    rule: Intercept,
    cancel: &Cancel,
) -> Result<Option<ClassDigits>> {
    let (features, penalised) = (design.cols() * task.scores(), rule == Intercept::Penalised);
    let numbers = |count: usize| vec![0.0; count];
    let mut start = Start { weights: numbers(features), thresholds: numbers(task.thresholds()), ..Start::default() };
    let mut limits = Limits::default();
    // The best so far, and whether another one is near.
    let mut found: Option<(ClassDigits, bool)> = None;
    let mut steps = 0;
    for halving in 0..=HALVINGS as i32 {
        let rounded = task.rounded(FIRST_WIDTH * task.margin_scale() * 0.5f64.powi(halving));
        let mut risk = LinearRisk::new(&rounded, design, penalised, cancel);
        let solved = Newton::polish(&mut risk, features, &start, STEPS, cancel)?;
        drop(risk);
        steps += solved.passes;
        let slopes = slopes_of_classes(&rounded, design, (&solved.weights, &solved.thresholds), cancel)?;
        let count = slopes.len();
        limits.halve([&slopes[..], &solved.thresholds].concat());
        (start.weights, start.thresholds) = (solved.weights, solved.thresholds);
        for limit in limits.of_degree.iter().skip(1) {
            let (slopes, constants) = limit.split_at(count);
            let dual = feasible(task, slopes, rule);
            let next = judged(task, design, rule, (dual, constants.to_vec(), steps), cancel)?;
            let apart = found.as_ref().map_or(f64::INFINITY, |(found, _)| apart(&found.weights, &next.weights));
            if next.gap() <= EXACT && apart <= SAME {
                return Ok(Some(next));
            }
            match &mut found {
                Some((found, is_near)) if found.gap() < next.gap() => *is_near |= apart <= NEAR,
                _ => found = Some((next, apart <= NEAR)),
            }
        }
    }
    Ok(found.filter(|(found, is_near)| *is_near && found.gap() <= GOOD).map(|(found, _)| found))
}

/// The limits of numbers that depend smoothly on a width, by their values at widths that are halved.
#[derive(Default)]
struct Limits {
    /// By polynomials of degree 0, 1 and so on through the last values (Neville).
    of_degree: Vec<Vec<f64>>,
}

impl Limits {
    /// Takes the numbers at half the last width.
    fn halve(&mut self, now: Vec<f64>) {
        let mut next = vec![now];
        for (degree, before) in (1..=MOST_DEGREE as i32).zip(&self.of_degree) {
            let factor = 2f64.powi(degree);
            let numbers = next[degree as usize - 1].iter().zip(before);
            next.push(numbers.map(|(now, before)| (factor * now - before) / (factor - 1.0)).collect());
        }
        self.of_degree = next;
    }
}

/// Objective and bound of a dual point with constants.
fn judged<T: AgainstOwn + Roundable>(
    task: &T,
    design: &Design,
    rule: Intercept,
    (dual, mut constants, steps): (ClassDual, Vec<f64>, u64),
    cancel: &Cancel,
) -> Result<ClassDigits> {
    let (weights, pulls) = weights_behind(task, design, &dual, cancel)?;
    match rule {
        Intercept::Penalised => constants = pulls,
        Intercept::None => {}
        Intercept::Free => {
            // A number added to all of them changes nothing: they have the mean zero, as elsewhere.
            let mean = constants.iter().sum::<f64>() / constants.len().max(1) as f64;
            constants.iter_mut().for_each(|constant| *constant -= mean);
        }
    }
    let point = [&weights[..], &constants[..]].concat();
    let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
    let objective = risk.evaluate(&point, &mut vec![0.0; point.len()])?;
    drop(risk);
    let bound = dual_value(task, design, &dual, rule, cancel)?.min(objective);
    cancel.check()?;
    Ok(ClassDigits { weights, constants, dual, objective, bound, steps })
}

/// The largest difference of two lists of weights, as a share of the largest weight.
fn apart(one: &[f64], other: &[f64]) -> f64 {
    let largest = one.iter().fold(0.0f64, |most, w| most.max(w.abs()));
    let most = one.iter().zip(other).fold(0.0f64, |most, (one, other)| most.max((one - other).abs()));
    if most > 0.0 { most / largest } else { 0.0 }
}

/// Features whose inner products are these kernel values, given row by row: a Cholesky factor with pivots.
pub(super) fn features_behind(mut values: Vec<f64>, rows: usize) -> Result<Design> {
    let largest = (0..rows).map(|row| values[row * rows + row]).fold(0.0, f64::max);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while columns.len() < rows {
        let diagonal = |row: usize| values[row * rows + row];
        let pivot = (1..rows).fold(0, |best, row| if diagonal(row) > diagonal(best) { row } else { best });
        let root = diagonal(pivot);
        if root.is_nan() || root <= PIVOT * largest {
            break;
        }
        let column: Vec<f64> = (0..rows).map(|row| values[row * rows + pivot] / root.sqrt()).collect();
        for (row, line) in values.chunks_exact_mut(rows).enumerate() {
            line.iter_mut().zip(&column).for_each(|(value, entry)| *value -= column[row] * entry);
        }
        columns.push(column);
    }
    let entries: Vec<f64> = (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
    let matrix = Matrix::DenseF64(Dense::new(entries, rows, columns.len())?);
    Scaling::default().apply(&matrix, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_have_their_limits() {
        let at = |x: f64| vec![3.0 - 2.0 * x + 0.5 * x * x - 4.0 * x * x * x, 1.0 / (1.0 + x)];
        let mut limits = Limits::default();
        (0..9).for_each(|halving| limits.halve(at(0.5f64.powi(halving))));
        assert_eq!(limits.of_degree.len(), MOST_DEGREE + 1);
        assert!((limits.of_degree[3][0] - 3.0).abs() < 1e-13);
        assert!((limits.of_degree[1][1] - 1.0).abs() > 1e-6 && (limits.of_degree[6][1] - 1.0).abs() < 1e-9);
    }
}
