//! How far the probability of the predicted class is from the share of right predictions.

use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::certificate::binned;
use crate::error::Result;

/// Number of bins of [`Metric::CalibrationError`].
const BINS: usize = 10;

/// The mean distance of the probability of the predicted class from the share of right predictions, over bins.
pub(super) struct CalibrationError<'a> {
    probabilities: Vec<f64>,
    right: Vec<bool>,
    weights: Option<&'a [f64]>,
}

impl<'a> CalibrationError<'a> {
    pub(super) fn new(metric: &Metric, judged: &Judged<'a>) -> Result<CalibrationError<'a>> {
        let all = judged.needed_probabilities(metric)?;
        let (codes, _) = judged.needed_classes(metric)?;
        let predicted = judged.needed_predictions(metric)?;
        let classes = judged.known_classes();
        let probabilities = predicted.iter().enumerate().map(|(row, &code)| all[row * classes + code as usize]);
        let right = codes.iter().zip(predicted).map(|(truth, predicted)| truth == predicted).collect();
        Ok(CalibrationError { probabilities: probabilities.collect(), right, weights: judged.weights })
    }
}

impl RowMetric for CalibrationError<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let bins = binned(&self.probabilities, &self.right, BINS, |row| weight_of(row, self.weights, times));
        let all: f64 = bins.iter().map(|bin| bin.weight).sum();
        let apart: f64 = bins.iter().map(|bin| bin.weight * (bin.probability - bin.share).abs()).sum();
        (all > 0.0).then(|| apart / all)
    }
}
