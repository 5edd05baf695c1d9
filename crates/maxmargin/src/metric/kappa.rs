//! Cohen's kappa with quadratic weights, for classes in an order.
//!
//! ```text
//! 1 − Σ_ij O_ij (i − j)² / Σ_ij E_ij (i − j)²,   E_ij = (Σ_m O_im) (Σ_m O_mj) / Σ O
//! ```
//! O_ij is the weight of the rows of true class i and predicted class j. Both sums need only one pass over the rows:
//! that of E is Σ_i T_i i² + Σ_j P_j j² − 2 (Σ_i T_i i) (Σ_j P_j j) / Σ O with the two margins T and P.

use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::error::Result;

/// True and predicted positions of weighted rows.
pub(super) struct Kappa<'a> {
    rows: Vec<usize>,
    truth: &'a [u32],
    predicted: &'a [u32],
    weights: Option<&'a [f64]>,
    notes: Vec<String>,
}

impl<'a> Kappa<'a> {
    pub(super) fn new(metric: &Metric, judged: &Judged<'a>) -> Result<Kappa<'a>> {
        let (truth, _) = judged.needed_classes(metric)?;
        let predicted = judged.needed_predictions(metric)?;
        let (rows, notes) = judged.known_rows(metric)?;
        Ok(Kappa { rows, truth, predicted, weights: judged.weights, notes })
    }
}

impl RowMetric for Kappa<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut all, mut apart, mut sums, mut squares) = (0.0, 0.0, [0.0; 2], 0.0);
        for &row in &self.rows {
            let weight = weight_of(row, self.weights, times);
            let (truth, predicted) = (f64::from(self.truth[row]), f64::from(self.predicted[row]));
            all += weight;
            apart += weight * (truth - predicted) * (truth - predicted);
            sums[0] += weight * truth;
            sums[1] += weight * predicted;
            squares += weight * (truth * truth + predicted * predicted);
        }
        if apart == 0.0 {
            // Also where all rows are of one class, for which chance expects no difference either.
            return (all > 0.0).then_some(1.0);
        }
        let expected = squares - 2.0 * sums[0] * sums[1] / all;
        (expected > 0.0).then(|| 1.0 - apart / expected)
    }

    fn counted(&self) -> Option<usize> {
        Some(self.rows.len())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
