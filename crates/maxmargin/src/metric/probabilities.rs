//! How far probabilities can be trusted: bins of rows by the probability of the predicted class, each with its share of
//! right predictions.

use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::error::Result;

/// Number of bins of [`Metric::CalibrationError`].
const BINS: usize = 10;

/// Rows of similar probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// The weight of its rows.
    pub weight: f64,
    /// Their mean probability.
    pub probability: f64,
    /// The share of them for which it came true.
    pub share: f64,
}

/// Rows in bins of equal width by their probability, each with the mean of the probabilities and the share of rows for
/// which it came true. Bins without rows are left out.
pub fn reliability_curve(probabilities: &[f64], came_true: &[bool], weights: Option<&[f64]>, bins: usize) -> Vec<Bin> {
    binned(probabilities, came_true, bins, |row| weight_of(row, weights, None))
}

fn binned(probabilities: &[f64], came_true: &[bool], bins: usize, weight: impl Fn(usize) -> f64) -> Vec<Bin> {
    let mut found = vec![Bin::default(); bins.max(1)];
    for (row, (&probability, &came_true)) in probabilities.iter().zip(came_true).enumerate() {
        let at = ((probability * found.len() as f64) as usize).min(found.len() - 1);
        let (bin, weight) = (&mut found[at], weight(row));
        bin.weight += weight;
        bin.probability += weight * probability;
        bin.share += if came_true { weight } else { 0.0 };
    }
    found.retain(|bin| bin.weight > 0.0);
    for bin in &mut found {
        bin.probability /= bin.weight;
        bin.share /= bin.weight;
    }
    found
}

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
