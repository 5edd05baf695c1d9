//! The block of one row in the terms of coefficients β: β_m = −σ_m α_m for the outputs that are set against the own one,
//! whose coefficient is −Σ β_m.

use crate::solve::class_blocks::AgainstOwn;
use crate::task::LANES;

/// One row of a problem.
pub(super) struct Block<'a, T> {
    pub(super) task: &'a T,
    pub(super) row: usize,
    /// k(x, x), with the constant.
    pub(super) own: f64,
}

/// Work buffers.
#[derive(Default)]
pub(super) struct Spare {
    z: Vec<f64>,
    more: Vec<f64>,
}

/// The value of a block and its part of the duality gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockGap {
    /// The loss, with its cost.
    pub(super) loss: f64,
    /// The part of the duality gap that belongs to the row. Never negative.
    pub(super) gap: f64,
}

impl<T: AgainstOwn> Block<'_, T> {
    /// The violations at these scores.
    fn violations(&self, scores: &[f64], z: &mut Vec<f64>) {
        z.clear();
        z.extend_from_slice(scores);
        z.resize(scores.len().next_multiple_of(LANES), 0.0);
        self.task.violations(self.row, z);
    }

    /// The loss and the gap. `beta` holds β.
    pub(super) fn gap(&self, scores: &[f64], beta: &[f64], spare: &mut Spare) -> BlockGap {
        let &Block { task, row, .. } = self;
        if task.cost(row) == 0.0 {
            return BlockGap::default();
        }
        self.violations(scores, &mut spare.z);
        let own = task.own(row);
        let mut met = 0.0;
        for (m, (violation, beta)) in spare.z.iter().zip(beta).enumerate() {
            if m != own {
                met -= task.sign(row, m) * beta * violation;
            }
        }
        let loss = task.loss(row, &spare.z);
        BlockGap { loss, gap: (loss - met).max(0.0) }
    }

    /// Σ_m α_m times its margin.
    pub(super) fn gained(&self, beta: &[f64]) -> f64 {
        let &Block { task, row, .. } = self;
        let own = task.own(row);
        let others = beta.iter().enumerate().filter(|(m, _)| *m != own);
        others.map(|(m, beta)| -task.sign(row, m) * beta * task.margin(row, m)).sum()
    }

    /// Writes the optimal β. `hint` is a guess of the number from which they follow; returns that number.
    pub(super) fn solve(&self, scores: &[f64], beta: &mut [f64], spare: &mut Spare, hint: f64) -> f64 {
        let &Block { task, row, own: length } = self;
        let own = task.own(row);
        self.violations(scores, &mut spare.z);
        // Without the row's own part.
        task.shift(row, &mut spare.z, length * beta[own]);
        for (m, beta) in beta.iter().enumerate().filter(|(m, _)| *m != own) {
            spare.z[m] -= length * task.sign(row, m) * beta;
        }
        let found = task.solve(row, &mut spare.z, length.max(0.0), hint, &mut spare.more);
        let mut sum = 0.0;
        for (m, (beta, alpha)) in beta.iter_mut().zip(&spare.z).enumerate().filter(|(m, _)| *m != own) {
            *beta = -task.sign(row, m) * alpha;
            sum -= *beta;
        }
        beta[own] = sum;
        found
    }
}
