//! How far probabilities can be trusted: bins of rows by probability, each with the share of rows for which it came
//! true.

use serde::{Deserialize, Serialize};

/// Rows of similar probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    binned(probabilities, came_true, bins, |row| weights.map_or(1.0, |weights| weights[row]))
}

pub(crate) fn binned(
    probabilities: &[f64],
    came_true: &[bool],
    bins: usize,
    weight: impl Fn(usize) -> f64,
) -> Vec<Bin> {
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
