//! Metrics over differences between score and target: mean absolute and root mean squared deviation.

use super::judged::mismatch;
use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::error::Result;

/// The absolute differences of weighted rows.
pub(super) struct Deviation<'a> {
    squared: bool,
    /// The largest difference; the others are divided by it, so that no square overflows.
    largest: f64,
    relative: Vec<f64>,
    weights: Option<&'a [f64]>,
}

impl<'a> Deviation<'a> {
    pub(super) fn new(metric: &Metric, judged: &Judged<'a>) -> Result<Deviation<'a>> {
        let targets = judged.needed_reals(metric)?;
        let scores = judged.needed_scores(metric)?;
        let mut relative: Vec<f64> = scores.iter().zip(targets).map(|(score, target)| (score - target).abs()).collect();
        let largest = relative.iter().copied().fold(0.0, f64::max);
        if largest.is_infinite() {
            let message = format!("{metric} cannot be computed: a score is infinitely far from its target");
            return Err(mismatch(message).help("look for scores that are infinite or beyond 1e307"));
        }
        if largest > 0.0 {
            relative.iter_mut().for_each(|value| *value /= largest);
        }
        Ok(Deviation { squared: *metric == Metric::Rmse, largest, relative, weights: judged.weights })
    }
}

impl RowMetric for Deviation<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for (row, &value) in self.relative.iter().enumerate() {
            let weight = weight_of(row, self.weights, times);
            sum += weight * if self.squared { value * value } else { value };
            all += weight;
        }
        let mean = sum / all;
        (all > 0.0).then(|| self.largest * if self.squared { mean.sqrt() } else { mean })
    }
}
