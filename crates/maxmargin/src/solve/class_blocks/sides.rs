//! Label sets as problems with a block of dual variables per row: the calibration score is the own output.
//!
//! **Free constants** require Σ_i σ_im α_im = 0 for every label m: what the rows with the label pull it up equals what the
//! others pull it down. The larger of the two sums is scaled down, which keeps all limits. The coefficients of the
//! calibration score then add up to zero, too.

use super::against_own::AgainstOwn;
use crate::certificate::ClassDual;
use crate::task::{Separation, highest, solve_sides};

/// The dual variables of the labels of a row, and of the others, added up.
fn sums(task: &Separation, row: usize, duals: impl Iterator<Item = (u32, f64)>) -> [f64; 2] {
    let own = task.set(row);
    let mut sums = [0.0; 2];
    duals.for_each(|(label, value)| sums[usize::from(own.binary_search(&label).is_ok())] += value);
    sums
}

/// What the rows with each label pull it up, and what the others pull it down.
fn pulls(task: &Separation, dual: &ClassDual) -> Vec<[f64; 2]> {
    let mut pulls = vec![[0.0; 2]; task.labels()];
    for (row, (labels, values)) in dual.all_lists().enumerate() {
        let own = task.set(row);
        for (&label, &value) in labels.iter().zip(values) {
            pulls[label as usize][usize::from(own.binary_search(&label).is_ok())] += value;
        }
    }
    pulls
}

impl AgainstOwn for Separation {
    fn count(&self) -> usize {
        self.rows()
    }

    #[inline(always)]
    fn scores(&self) -> usize {
        self.labels() + 1
    }

    fn has_blocks(&self) -> bool {
        self.is_hinge()
    }

    #[inline(always)]
    fn own(&self, _: usize) -> usize {
        self.labels()
    }

    #[inline(always)]
    fn cost(&self, row: usize) -> f64 {
        Separation::cost(self, row)
    }

    #[inline(always)]
    fn margin(&self, _: usize, _: usize) -> f64 {
        1.0
    }

    #[inline(always)]
    fn sign(&self, row: usize, output: usize) -> f64 {
        if self.set(row).binary_search(&(output as u32)).is_ok() { -1.0 } else { 1.0 }
    }

    fn may_list(&self) -> bool {
        false
    }

    #[inline(always)]
    fn violations(&self, row: usize, scores: &mut [f64]) {
        let middle = self.labels();
        let score = scores[middle];
        scores.iter_mut().for_each(|z| *z += 1.0 - score);
        for &label in self.set(row) {
            let z = &mut scores[label as usize];
            *z = 2.0 - *z;
        }
        scores[middle..].fill(f64::NEG_INFINITY);
    }

    #[inline(always)]
    fn shift(&self, row: usize, violations: &mut [f64], amount: f64) {
        violations.iter_mut().for_each(|z| *z += amount);
        self.set(row).iter().for_each(|&label| violations[label as usize] -= 2.0 * amount);
    }

    #[inline(always)]
    fn loss(&self, row: usize, violations: &[f64]) -> f64 {
        let own = self.set(row);
        let mine = own.iter().map(|&label| violations[label as usize]).fold(0.0, f64::max);
        // Usually the worst label is none of the row's own, and one walk finds it.
        let all = highest(violations);
        let others = match all > mine || own.is_empty() {
            true => all,
            false => {
                let is_other = |label: &usize| own.binary_search(&(*label as u32)).is_err();
                (0..self.labels()).filter(is_other).map(|label| violations[label]).fold(0.0, f64::max)
            }
        };
        Separation::cost(self, row) * (mine + others.max(0.0))
    }

    #[inline(always)]
    fn conjugate(&self, _: f64, _: f64) -> f64 {
        0.0
    }

    #[inline(always)]
    fn solve(&self, row: usize, violations: &mut [f64], q: f64, near: f64, spare: &mut Vec<f64>) -> f64 {
        solve_sides(violations, self.set(row), (q, Separation::cost(self, row)), near, spare)
    }

    fn fit(&self, row: usize, duals: &mut Vec<(u32, f64)>) {
        let cost = Separation::cost(self, row);
        let shares = sums(self, row, duals.iter().copied()).map(|sum| (cost / sum).min(1.0));
        let own = self.set(row);
        for (label, value) in duals.iter_mut() {
            *value *= shares[usize::from(own.binary_search(label).is_ok())];
        }
        duals.retain(|(_, value)| *value > 0.0);
    }

    fn fits(&self, row: usize, (labels, values): (&[u32], &[f64]), within: f64) -> bool {
        let most = Separation::cost(self, row) * (1.0 + within);
        sums(self, row, labels.iter().copied().zip(values.iter().copied())).into_iter().all(|sum| sum <= most)
    }

    fn loss_at(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64 {
        self.loss_of_row(row, scores, slopes)
    }

    fn slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]) {
        Separation::slopes(self, row, scores, slopes);
    }

    fn balance(&self, dual: &mut ClassDual) {
        // A second round takes what the first left by rounding.
        for _ in 0..2 {
            let pulls = pulls(self, dual);
            let mut balanced = ClassDual::default();
            for row in 0..dual.rows() {
                let own = self.set(row);
                let scaled = dual.row(row).map(|(label, value)| {
                    let side = usize::from(own.binary_search(&(label as u32)).is_ok());
                    let [this, other] = [pulls[label][side], pulls[label][1 - side]];
                    (label, if this > other { value * (other / this) } else { value })
                });
                balanced.push(scaled.filter(|(_, value)| *value > 0.0));
            }
            *dual = balanced;
        }
    }

    fn imbalance(&self, dual: &ClassDual) -> f64 {
        let (mut apart, mut all) = (0.0, 0.0);
        for [down, up] in pulls(self, dual) {
            apart += f64::abs(up - down);
            all += up + down;
        }
        if all > 0.0 { apart / all } else { 0.0 }
    }
}
