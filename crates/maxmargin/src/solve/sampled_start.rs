//! The start of Newton's method on many rows: the solution for a sample of them.
//!
//! For n rows of a random sample, the solution lies about dim/n of the objective above the optimum for all rows. So a
//! sample of a few hundred rows per coordinate leaves one or two steps over all rows instead of seven.

use super::{CurvedRisk, LinearRisk, Newton, Start};
use crate::data::Design;
use crate::error::Result;
use crate::run::{Cancel, Silent};
use crate::task::{Curvature, Directions, Objective, Place, Slopes};
use std::ops::Range;

/// The sample has this many rows per coordinate, and at least [`LEAST_ROWS`].
const ROWS_A_COORDINATE: usize = 500;
const LEAST_ROWS: usize = 16 * 1024;

/// The sample is used only if it is smaller than the data by this factor.
const LEAST_STRIDE: usize = 8;

/// The tolerance for the sample, and the maximum number of passes.
const TOLERANCE: f64 = 1e-3;
const MOST_PASSES: u64 = 12;

/// The solution for a sample of the parts, or none if it is not worth the time: if there are few rows, if steps are not
/// exact, or if `start` is already near a solution. If `start` sets only thresholds, the sample starts there.
pub(crate) fn sampled_start<T: Curvature>(
    task: &T,
    design: &Design,
    penalise_thresholds: bool,
    start: Option<&Start>,
    cancel: &Cancel,
) -> Result<Option<Start>> {
    let rows: usize = (0..task.parts()).map(|part| task.rows(part).len()).sum();
    let weights = design.cols() * task.outputs();
    let wanted = (ROWS_A_COORDINATE * (weights + task.thresholds())).max(LEAST_ROWS);
    let stride = rows / wanted;
    let begun = start.is_some_and(|start| start.weights.iter().any(|&weight| weight != 0.0));
    // If parts were as long as the sample, there would be no sample.
    if begun || stride < LEAST_STRIDE || task.parts() < 8 * stride {
        return Ok(None);
    }
    let thinned = Thinned { task, stride };
    let mut risk = LinearRisk::new(&thinned, design, penalise_thresholds, cancel);
    if !risk.has_exact_hessian() {
        return Ok(None);
    }
    let newton = Newton { tolerance: TOLERANCE, max_passes: MOST_PASSES };
    let solution = newton.solve(&mut risk, weights, start, &mut Silent, cancel)?;
    Ok(Some(Start { weights: solution.weights, thresholds: solution.thresholds, ..Start::default() }))
}

/// Every n-th part of a task, with weight n.
struct Thinned<'a, T> {
    task: &'a T,
    stride: usize,
}

impl<T: Objective> Thinned<'_, T> {
    /// The place in the whole task.
    fn seen<'p>(&self, at: &Place<'p>) -> Place<'p> {
        Place { part: at.part * self.stride, ..*at }
    }

    fn scale(&self, numbers: &mut [f64]) {
        numbers.iter_mut().for_each(|number| *number *= self.stride as f64);
    }

    /// Runs `add`, with which the task adds one part to `sums`, and multiplies the result by the stride.
    fn add_scaled<R>(&self, sums: &mut [f64], add: impl FnOnce(&mut [f64]) -> R) -> R {
        let mut own = vec![0.0; sums.len()];
        let result = add(&mut own);
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += self.stride as f64 * own);
        result
    }
}

impl<T: Objective> Objective for Thinned<'_, T> {
    type Memo = T::Memo;

    fn parts(&self) -> usize {
        self.task.parts().div_ceil(self.stride)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.task.rows(part * self.stride)
    }

    fn thresholds(&self) -> usize {
        self.task.thresholds()
    }

    fn outputs(&self) -> usize {
        self.task.outputs()
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut T::Memo) -> Result<f64> {
        let Slopes { scores, thresholds } = slopes;
        let value = self.add_scaled(thresholds, |sums| {
            self.task.evaluate(&self.seen(at), Slopes { scores: &mut *scores, thresholds: sums }, memo)
        })?;
        self.scale(scores);
        Ok(self.stride as f64 * value)
    }
}

impl<T: Curvature> Curvature for Thinned<'_, T> {
    fn diagonal(&self, at: &Place<'_>, memo: &T::Memo, out: &mut [f64]) -> Result<()> {
        self.task.diagonal(&self.seen(at), memo, out)?;
        self.scale(out);
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        self.task.only_differences_count()
    }

    fn rows_are_separate(&self) -> bool {
        self.task.rows_are_separate()
    }

    fn by_threshold(&self, at: &Place<'_>, memo: &T::Memo, out: &mut [f64]) -> Result<f64> {
        let corner = self.task.by_threshold(&self.seen(at), memo, out)?;
        self.scale(out);
        Ok(self.stride as f64 * corner)
    }

    fn has_cuts(&self) -> bool {
        self.task.has_cuts()
    }

    fn each_cut(&self, at: &Place<'_>, memo: &T::Memo, number: usize, visit: &mut dyn FnMut(usize, f64)) {
        let scaled = &mut |cut: usize, value: f64| visit(cut, self.stride as f64 * value);
        self.task.each_cut(&self.seen(at), memo, number, scaled);
    }

    fn curvature(&self, at: &Place<'_>, memo: &T::Memo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let Slopes { scores, thresholds } = out;
        self.add_scaled(thresholds, |sums| {
            self.task.curvature(&self.seen(at), memo, along, Slopes { scores: &mut *scores, thresholds: sums })
        })?;
        self.scale(scores);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Dense, Matrix, Scale, Scaling, Targets};
    use crate::loss::Loss;
    use crate::random::Random;
    use crate::solve::Risk;
    use crate::task::{Binary, ClassWeight, Classes};

    fn noisy_classes(rows: usize, cols: usize) -> Dataset {
        let mut random = Random::new(7, 0, 0);
        let values: Vec<f64> = (0..rows * cols).map(|_| random.uniform() - 0.5).collect();
        let classes: Vec<f64> = values
            .chunks_exact(cols)
            .map(|row| if row[0] + 0.3 * row[1] + 0.4 * (random.uniform() - 0.3) > 0.0 { 1.0 } else { -1.0 })
            .collect();
        let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).expect("valid"));
        Dataset::new(matrix, Targets::Real(classes.into())).expect("valid")
    }

    fn task(data: &Dataset) -> Binary {
        let classes = Classes::find(data.targets(), None).expect("two classes");
        Binary::new(data, &classes, &ClassWeight::Equal, Loss::SquaredHinge, 0.7, true).expect("valid")
    }

    fn design(data: &Dataset) -> Design {
        let scaling = Scaling::fit(Scale::None, data, &Cancel::new()).expect("valid");
        scaling.apply(data.matrix(), None).expect("valid")
    }

    #[test]
    fn a_thinned_task_is_every_nth_part_with_weight_n() {
        let data = noisy_classes(20_000, 3);
        let whole = task(&data);
        let thinned = Thinned { task: &whole, stride: 3 };
        let rows: Vec<usize> = (0..thinned.parts()).flat_map(|part| thinned.rows(part)).collect();
        assert!(rows.len() < 12_000, "{} rows", rows.len());
        let picked = data.subset(&rows).and_then(|data| data.with_weights(vec![3.0; rows.len()])).expect("valid");
        let (twin, cancel, w) = (task(&picked), Cancel::new(), [0.7, -0.4, 0.2, 0.1]);
        let (all, few) = (design(&data), design(&picked));
        let mut thin = LinearRisk::new(&thinned, &all, false, &cancel);
        let mut plain = LinearRisk::new(&twin, &few, false, &cancel);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
        let (mut slope, mut expected) = ([0.0; 4], [0.0; 4]);
        let value = thin.evaluate(&w, &mut slope).expect("a value");
        assert!(close(&[value], &[plain.evaluate(&w, &mut expected).expect("a value")]));
        assert!(close(&slope, &expected));
        let whole = plain.hessian().expect("a Hessian");
        assert!(close(&thin.hessian().expect("a Hessian"), &whole));
        assert!(close(&thin.free_hessian().expect("a block"), &whole[15..]));
        thin.hessian_times(&[1.0, 2.0, -1.0, 0.5], &mut slope).expect("a product");
        plain.hessian_times(&[1.0, 2.0, -1.0, 0.5], &mut expected).expect("a product");
        assert!(close(&slope, &expected));
    }

    #[test]
    fn a_sample_leads_near_the_solution() {
        let rows = LEAST_STRIDE * LEAST_ROWS;
        let data = noisy_classes(rows, 4);
        let (task, all, cancel) = (task(&data), design(&data), Cancel::new());
        let start = sampled_start(&task, &all, false, None, &cancel).expect("solved").expect("enough rows");
        let newton = Newton { tolerance: 1e-10, max_passes: 50 };
        let solve = |start: Option<&Start>| {
            let mut risk = LinearRisk::new(&task, &all, false, &cancel);
            newton.solve(&mut risk, 4, start, &mut Silent, &cancel).expect("solved")
        };
        let (plain, sampled) = (solve(None), solve(Some(&start)));
        assert!((plain.objective - sampled.objective).abs() <= 1e-9 * plain.objective);
        let first = sampled.trace[0].objective;
        assert!(first <= 1.01 * plain.objective, "{first} against {}", plain.objective);
        assert!(sampled.passes < plain.passes);
        // A start with weights needs no sample, and neither do few rows.
        assert!(sampled_start(&task, &all, false, Some(&start), &cancel).expect("fine").is_none());
        let few = noisy_classes(LEAST_ROWS, 4);
        let few_task = self::task(&few);
        assert!(sampled_start(&few_task, &design(&few), false, None, &cancel).expect("fine").is_none());
    }
}
