//! Sums of kernels around some rows: the scores of kernel models, one or several per row.

use super::{Element, Kernel, Points, add_row};
use crate::parallel;
use crate::run::Cancel;

/// Σ_i coefficient_i · k(row ids_i of `left`, ·) for every row of `right`, in parallel over ranges of rows.
pub(crate) fn expansion_scores(
    kernel: &Kernel,
    left: &Points,
    ids: &[usize],
    coefficients: &[f64],
    right: &Points,
    cancel: &Cancel,
) -> Vec<f64> {
    Terms { ids, coefficients, outputs: 1 }.scores(kernel, left, right, cancel)
}

/// Weighted kernels around some rows: one weight for each row and score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// The rows.
    pub(crate) ids: &'a [usize],
    /// The weights of one row are next to each other.
    pub(crate) coefficients: &'a [f64],
    /// Number of scores.
    pub(crate) outputs: usize,
}

impl Terms<'_> {
    /// Σ_i coefficient_(i, o) · k(row ids_i of `left`, ·) for every score o of every row of `right`, in parallel over
    /// ranges of rows. Each kernel value is computed once for all scores. The scores of one row are next to each other.
    pub(crate) fn scores(&self, kernel: &Kernel, left: &Points, right: &Points, cancel: &Cancel) -> Vec<f64> {
        match (right.is_wide(), self.outputs) {
            (true, 1) => expansion_scores_in::<f64>(kernel, left, self.ids, self.coefficients, right, cancel),
            (false, 1) => expansion_scores_in::<f32>(kernel, left, self.ids, self.coefficients, right, cancel),
            (true, _) => self.several_in::<f64>(kernel, left, right, cancel),
            (false, _) => self.several_in::<f32>(kernel, left, right, cancel),
        }
    }

    fn several_in<T: Element>(&self, kernel: &Kernel, left: &Points, right: &Points, cancel: &Cancel) -> Vec<f64> {
        /// Rows that a thread works on at a time, and vectors per block: their kernel values stay in cache.
        const RUN: usize = 512;
        const MEET: usize = 128;
        let &Terms { ids, coefficients, outputs } = self;
        let mut scores = vec![0.0; right.rows() * outputs];
        parallel::chunks(&mut scores, RUN * outputs.max(1), |run, scores| {
            let count = scores.len() / outputs;
            let columns = run * RUN..run * RUN + count;
            let mut values = vec![T::ZERO; MEET * count];
            // One line of sums for each score.
            let mut sums = vec![0.0; scores.len()];
            for (ids, coefficients) in ids.chunks(MEET).zip(coefficients.chunks(MEET * outputs)) {
                if cancel.is_raised() {
                    break;
                }
                let mut outs: Vec<&mut [T]> = values.chunks_exact_mut(count).take(ids.len()).collect();
                right.fill_columns(kernel, left, ids, columns.clone(), &mut outs);
                for (output, sums) in sums.chunks_exact_mut(count).enumerate() {
                    for (values, own) in outs.iter().zip(coefficients.chunks_exact(outputs)) {
                        // Most vectors count for few of the scores.
                        if own[output] != 0.0 {
                            add_row(sums, own[output], values);
                        }
                    }
                }
            }
            for (row, scores) in scores.chunks_exact_mut(outputs).enumerate() {
                scores.iter_mut().enumerate().for_each(|(output, score)| *score = sums[output * count + row]);
            }
        });
        scores
    }
}

fn expansion_scores_in<T: Element>(
    kernel: &Kernel,
    left: &Points,
    ids: &[usize],
    coefficients: &[f64],
    right: &Points,
    cancel: &Cancel,
) -> Vec<f64> {
    /// Scores that a thread works on at a time, and rows per block: their kernel values stay in cache.
    const RUN: usize = 1024;
    const MEET: usize = 128;
    let mut scores = vec![0.0; right.rows()];
    parallel::chunks(&mut scores, RUN, |run, scores| {
        let columns = run * RUN..run * RUN + scores.len();
        let mut values = vec![T::ZERO; MEET * scores.len()];
        for (ids, coefficients) in ids.chunks(MEET).zip(coefficients.chunks(MEET)) {
            if cancel.is_raised() {
                break;
            }
            let mut outs: Vec<&mut [T]> = values.chunks_exact_mut(scores.len()).take(ids.len()).collect();
            right.fill_columns(kernel, left, ids, columns.clone(), &mut outs);
            for (&coefficient, values) in coefficients.iter().zip(&outs) {
                add_row(scores, coefficient, values);
            }
        }
    });
    scores
}
