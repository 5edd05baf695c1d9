//! [`AgainstOwn`]: a task with several scores per row, each of whose dual variables sets one score against the score of
//! the row's own output.
//!
//! ```text
//! violation  v_m = Δ_m + σ_m (s_m − s_own)          σ_m = 1: the own score is to lie above;  σ_m = −1: below
//! coefficients of α_m:  −σ_m for output m,  σ_m for the own output
//! ```
//! Two tasks have this form: several classes in one problem, where the own output is the class of the row and every σ is
//! 1, and label sets, where it is the calibration score, which lies between the labels of the row and the others.

use super::duals::Flows;
use crate::certificate::ClassDual;
use crate::loss::Loss;
use crate::task::{BlockForm, Joint, JointForm, highest, solve_block};

/// See the top of the file.
pub(crate) trait AgainstOwn: Sync {
    /// Number of rows.
    fn count(&self) -> usize;

    /// Number of scores per row.
    fn scores(&self) -> usize;

    /// Whether the loss has dual variables of this form.
    fn has_blocks(&self) -> bool;

    /// The output against which a row's other outputs are set.
    fn own(&self, row: usize) -> usize;

    /// The weight of a row's loss.
    fn cost(&self, row: usize) -> f64;

    /// The margin between an output and the own one.
    fn margin(&self, row: usize, output: usize) -> f64;

    /// σ of an output.
    fn sign(&self, row: usize, output: usize) -> f64;

    /// Whether rows may keep lists of the outputs that matter. Every σ must be 1.
    fn may_list(&self) -> bool;

    /// Turns scores into violations. That of the own output is −∞, and so are numbers after the last output.
    fn violations(&self, row: usize, scores: &mut [f64]);

    /// Adds σ_m times an amount to every violation.
    fn shift(&self, row: usize, violations: &mut [f64], amount: f64);

    /// The loss of a row at these violations, with its cost. The length of the list is a multiple of `LANES`.
    fn loss(&self, row: usize, violations: &[f64]) -> f64;

    /// What a dual variable costs.
    fn conjugate(&self, cost: f64, alpha: f64) -> f64;

    /// Replaces the violations, without the row's own part, by the best dual variables. `near` is a guess of what is
    /// returned: the number from which all of them follow. `spare` is a work buffer.
    fn solve(&self, row: usize, violations: &mut [f64], q: f64, near: f64, spare: &mut Vec<f64>) -> f64;

    /// Scales the dual variables of a row down to their limits, if they exceed them.
    fn fit(&self, row: usize, duals: &mut Vec<(u32, f64)>);

    /// Whether the dual variables of a row keep their limits, but for this share.
    fn fits(&self, row: usize, duals: (&[u32], &[f64]), within: f64) -> bool;

    /// The loss of a row at these scores, with its cost. `slopes` is a work buffer.
    fn loss_at(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64;

    /// The derivatives of the loss of a row by its scores, without its cost.
    fn slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]);

    /// Makes a dual point feasible for free constants.
    fn balance(&self, dual: &mut ClassDual);

    /// By how much a dual point misses what free constants require, as a share of all of it.
    fn imbalance(&self, dual: &ClassDual) -> f64;
}

/// How the dual variables see the loss of a joint problem; none for the softmax.
pub(crate) fn form_of(joint: &Joint) -> Option<BlockForm> {
    match (joint.form(), joint.loss()) {
        (JointForm::Largest, _) => Some(BlockForm::Largest),
        (JointForm::Sum, Loss::SquaredHinge) => Some(BlockForm::Squares),
        (JointForm::Sum, _) => Some(BlockForm::Sum),
        (JointForm::Softmax, _) => None,
    }
}

impl AgainstOwn for Joint {
    fn count(&self) -> usize {
        self.rows()
    }

    #[inline(always)]
    fn scores(&self) -> usize {
        self.classes()
    }

    fn has_blocks(&self) -> bool {
        form_of(self).is_some()
    }

    #[inline(always)]
    fn own(&self, row: usize) -> usize {
        self.class(row)
    }

    #[inline(always)]
    fn cost(&self, row: usize) -> f64 {
        Joint::cost(self, row)
    }

    #[inline(always)]
    fn margin(&self, row: usize, output: usize) -> f64 {
        Joint::margin(self, row, output)
    }

    #[inline(always)]
    fn sign(&self, _: usize, _: usize) -> f64 {
        1.0
    }

    fn may_list(&self) -> bool {
        // Where every violation counts, most classes have dual variables.
        form_of(self) == Some(BlockForm::Largest)
    }

    #[inline(always)]
    fn violations(&self, row: usize, scores: &mut [f64]) {
        let (own, classes) = (self.class(row), self.classes());
        let score = scores[own];
        match self.equal_margin(row) {
            Some(margin) => {
                let add = margin - score;
                scores.iter_mut().for_each(|z| *z += add);
            }
            None => {
                for (class, z) in scores[..classes].iter_mut().enumerate() {
                    *z += Joint::margin(self, row, class) - score;
                }
            }
        }
        scores[own] = f64::NEG_INFINITY;
        scores[classes..].fill(f64::NEG_INFINITY);
    }

    #[inline(always)]
    fn shift(&self, _: usize, violations: &mut [f64], amount: f64) {
        violations.iter_mut().for_each(|z| *z += amount);
    }

    #[inline(always)]
    fn loss(&self, row: usize, violations: &[f64]) -> f64 {
        let cost = Joint::cost(self, row);
        match form_of(self) {
            Some(BlockForm::Largest) => cost * highest(violations).max(0.0),
            Some(BlockForm::Squares) => cost * violations.iter().map(|z| z.max(0.0).powi(2)).sum::<f64>(),
            _ => cost * violations.iter().map(|z| z.max(0.0)).sum::<f64>(),
        }
    }

    #[inline(always)]
    fn conjugate(&self, cost: f64, alpha: f64) -> f64 {
        if form_of(self) == Some(BlockForm::Squares) { alpha * alpha / (4.0 * cost) } else { 0.0 }
    }

    #[inline(always)]
    fn solve(&self, row: usize, violations: &mut [f64], q: f64, near: f64, _: &mut Vec<f64>) -> f64 {
        solve_block(form_of(self).unwrap_or(BlockForm::Sum), violations, q, Joint::cost(self, row), near)
    }

    fn fit(&self, row: usize, duals: &mut Vec<(u32, f64)>) {
        let (form, cost) = (form_of(self), Joint::cost(self, row));
        let sum: f64 = duals.iter().map(|(_, value)| value).sum();
        let share = if form == Some(BlockForm::Largest) { (cost / sum).min(1.0) } else { 1.0 };
        for (_, value) in duals.iter_mut() {
            *value = match form {
                Some(BlockForm::Squares) if cost > 0.0 => *value,
                Some(BlockForm::Largest) => share * *value,
                _ => value.min(cost),
            };
        }
        duals.retain(|(_, value)| *value > 0.0);
    }

    fn fits(&self, row: usize, (_, values): (&[u32], &[f64]), within: f64) -> bool {
        let cost = Joint::cost(self, row);
        let most = match form_of(self) {
            Some(BlockForm::Largest) => values.iter().sum::<f64>(),
            Some(BlockForm::Squares) if cost == 0.0 => values.len() as f64,
            Some(BlockForm::Squares) => 0.0,
            _ => values.iter().copied().fold(0.0, f64::max),
        };
        most <= cost * (1.0 + within)
    }

    fn loss_at(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64 {
        self.loss_of_row(row, scores, slopes)
    }

    fn slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]) {
        Joint::slopes(self, row, scores, slopes);
    }

    fn balance(&self, dual: &mut ClassDual) {
        Flows::of(self, dual).balance(self, dual);
    }

    fn imbalance(&self, dual: &ClassDual) -> f64 {
        Flows::of(self, dual).imbalance()
    }
}
