//! [`GradientRule`]: stochastic gradient steps on rows of two classes.
//!
//! ```text
//! min  λ/2·‖w‖² [+ λ/2·b²] + mean of c · loss(m − y·(w·x + b))
//! w ← (1 − ηλ)·w + η · mean of c · loss'(violation) · y · x        over the rows of a batch, c their weights
//! ```
//! All violations of a batch are those before the step. The bracketed term applies to a penalised constant term, which
//! moves like a weight. A free one takes steps of 0.01·min(η, 1). [`Descent`] says how long steps are and how points are
//! averaged.
//!
//! A step costs O(entries of its rows). Nothing is random, and it proves no bound.

use super::descent::Descent;
use super::linear::LinearPoint;
use super::state::OnlineState;
use super::two_classes::{Batch, TwoClassRule};
use crate::data::Rows;
use crate::error::Result;
use crate::settings::Settings;

/// See the top of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientRule {
    descent: Descent,
}

impl GradientRule {
    /// The rule of these settings, or an error that explains why they cannot learn from a stream.
    pub(super) fn of(settings: &Settings) -> Result<GradientRule> {
        Ok(GradientRule { descent: Descent::of(settings)? })
    }
}

impl TwoClassRule for GradientRule {
    fn batch(&self) -> usize {
        self.descent.batch()
    }

    fn is_averaged(&self) -> bool {
        self.descent.is_averaged()
    }

    fn descent(&self) -> Option<&Descent> {
        Some(&self.descent)
    }

    fn descent_mut(&mut self) -> Option<&mut Descent> {
        Some(&mut self.descent)
    }

    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, batch: &Batch<'_>, step: u64, point: &mut LinearPoint) -> f64 {
        let (descent, loss) = (&self.descent, self.descent.loss());
        let rate = descent.rate(step);
        point.shrink(descent.shrinking(rate));
        let (each, margin) = (1.0 / batch.len() as f64, loss.margin());
        let mut losses = 0.0;
        for place in 0..batch.len() {
            let (row, sign, weight) = (batch.start + place, batch.signs[place], batch.weights[place]);
            let violation = margin - sign * batch.scores[place];
            losses += weight * loss.value(violation);
            let pull = weight * sign * loss.derivative(violation);
            if pull != 0.0 {
                let rate =
                    if descent.is_limited() { descent.limited(rate, rows.squared_norm(row), weight) } else { rate };
                point.add(rows, row, each * rate * pull);
                point.move_constant(0, each * point.constant_rate(rate) * pull);
            }
        }
        if let Some(share) = descent.share(step) {
            point.include(share);
        }
        losses
    }

    fn put(&self, state: &mut OnlineState) {
        self.descent.put(state);
    }

    fn take(&mut self, state: &OnlineState, step: u64) -> Option<()> {
        self.descent.take(state, step)
    }
}
