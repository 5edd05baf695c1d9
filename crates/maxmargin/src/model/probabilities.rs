//! Probabilities of the classes: from a calibration, or from a loss whose scores are log-odds.

use super::{Decoder, Model};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::Cancel;
use crate::settings::{Settings, TaskSettings};
use crate::task::Multiclass;

impl Model {
    /// Whether it has a probability for each class.
    pub fn has_probabilities(&self) -> bool {
        self.calibration.is_some() || own(&self.settings, &self.decoder).is_some()
    }

    /// The probabilities of all classes for each row in stored order, next to each other, in the order of
    /// [`Decoder::class_names`]: those of a fitted calibration, or those of the logistic loss.
    pub fn probabilities(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.probabilities_until(data, &Cancel::new())
    }

    /// The same, or an error after a cancel.
    pub fn probabilities_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Vec<f64>> {
        self.check_probabilities()?;
        self.probabilities_of(&self.scores_until(data, cancel)?)
    }

    /// The same, for rows whose scores are known.
    pub fn probabilities_of(&self, scores: &[f64]) -> Result<Vec<f64>> {
        self.check_probabilities()?;
        match (&self.calibration, own(&self.settings, &self.decoder)) {
            (Some(calibration), _) => Ok(calibration.probabilities(&self.decoder.to_calibrate(scores))),
            (None, Some(classes)) => Ok(of_odds(scores, classes)),
            (None, None) => Err(Error::new(Code::Internal, "a model without probabilities passed the check")),
        }
    }

    /// Refuses models without probabilities.
    pub fn check_probabilities(&self) -> Result<()> {
        if self.has_probabilities() {
            return Ok(());
        }
        Err(Error::new(Code::Unsupported, "the scores of this model are no probabilities, and none were fitted")
            .help("train a classifier with ⟦probability=platt⟧ or ⟦probability=isotonic⟧, or with ⟦loss=logistic⟧"))
    }
}

/// Number of scores of a row, if the scores of a classifier are log-odds.
pub(super) fn own(settings: &Settings, decoder: &Decoder) -> Option<usize> {
    let TaskSettings::Classify(task) = &settings.task else { return None };
    match decoder {
        _ if settings.loss != Loss::Logistic => None,
        Decoder::Sign(_) => Some(1),
        Decoder::Largest(labels) if task.multiclass(settings.loss) == Multiclass::Joint => Some(labels.len()),
        _ => None,
    }
}

/// The probabilities of scores that are log-odds: one score a row, that of the second of two classes, or one for each
/// class, whose differences are log-odds.
pub(super) fn of_odds(scores: &[f64], outputs: usize) -> Vec<f64> {
    if outputs == 1 {
        return scores.iter().flat_map(|&score| [softened(0.0, score), softened(score, 0.0)]).collect();
    }
    let mut probabilities = scores.to_vec();
    for row in probabilities.chunks_mut(outputs.max(1)) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|score| *score = (*score - largest).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|share| *share /= sum);
    }
    probabilities
}

/// e^own / (e^own + e^other), without overflow.
fn softened(own: f64, other: f64) -> f64 {
    let largest = own.max(other);
    let (own, other) = ((own - largest).exp(), (other - largest).exp());
    own / (own + other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_odds_become_probabilities() {
        for score in [-900.0, -3.0, 0.0, 0.5, 40.0, 900.0] {
            let found = of_odds(&[score], 1);
            assert!((found[0] + found[1] - 1.0).abs() < 1e-15, "{found:?}");
            // One score is the difference of two.
            assert_eq!(found, of_odds(&[0.0, score], 2));
        }
        let found = of_odds(&[1.0, 2.0, 3.0, 800.0, 0.0, 0.0], 3);
        let sum: f64 = [1.0, 2.0, 3.0f64].iter().map(|score| score.exp()).sum();
        assert!((found[1] - 2.0f64.exp() / sum).abs() < 1e-15 && found[3] == 1.0);
    }
}
