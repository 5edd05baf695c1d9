//! The block of one row in the terms of coefficients β: β_m = −α_m for the other classes, β_y = Σ α_m.

use crate::solve::class_blocks::{BlockForm, LANES, form_of, solve_block};
use crate::task::Joint;

/// One row of a joint problem.
pub(super) struct Block<'a> {
    pub(super) task: &'a Joint,
    pub(super) row: usize,
    /// k(x, x), with the constant.
    pub(super) own: f64,
}

/// The value of a block and its part of the duality gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockGap {
    /// The loss, with its cost.
    pub(super) loss: f64,
    /// The part of the duality gap that belongs to the row. Never negative.
    pub(super) gap: f64,
}

impl Block<'_> {
    /// The loss and the gap. `beta` holds β.
    pub(super) fn gap(&self, scores: &[f64], beta: &[f64]) -> BlockGap {
        let &Block { task, row, .. } = self;
        let (class, cost) = (task.class(row), task.cost(row));
        if cost == 0.0 {
            return BlockGap::default();
        }
        // Σ α_m v_m = −Σ β_m v_m
        let (mut worst, mut sum, mut met) = (0.0f64, 0.0, 0.0);
        for (m, (score, beta)) in scores.iter().zip(beta).enumerate() {
            if m != class {
                let violation = task.margin(row, m) + score - scores[class];
                worst = worst.max(violation);
                sum += violation.max(0.0);
                met -= beta * violation;
            }
        }
        let loss = cost * if form_of(task) == Some(BlockForm::Largest) { worst } else { sum };
        BlockGap { loss, gap: (loss - met).max(0.0) }
    }

    /// Σ_m α_m times its margin.
    pub(super) fn gained(&self, beta: &[f64]) -> f64 {
        let &Block { task, row, .. } = self;
        match task.equal_margin(row) {
            Some(margin) => margin * beta[task.class(row)],
            None => beta.iter().enumerate().map(|(m, beta)| -beta * task.margin(row, m)).sum(),
        }
    }

    /// Writes the optimal β. `hint` is a guess of θ; returns θ.
    pub(super) fn solve(&self, scores: &[f64], beta: &mut [f64], z: &mut Vec<f64>, hint: f64) -> f64 {
        let &Block { task, row, own } = self;
        let class = task.class(row);
        let sum = beta[class];
        z.clear();
        z.extend(scores.iter().enumerate().map(|(m, score)| match m == class {
            true => f64::NEG_INFINITY,
            false => task.margin(row, m) + score - scores[class] + own * (sum - beta[m]),
        }));
        z.resize(scores.len().next_multiple_of(LANES), f64::NEG_INFINITY);
        let form = form_of(task).unwrap_or(BlockForm::Sum);
        let theta = solve_block(form, z, own.max(0.0), task.cost(row), hint);
        beta.iter_mut().zip(&*z).for_each(|(beta, alpha)| *beta = -alpha);
        beta[class] = z.iter().sum();
        theta
    }
}
