//! Probabilities of the classes: from a calibration, or from a loss whose scores are log-odds.

use super::{Decoder, Model};
use crate::certificate::of_cuts;
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::Cancel;
use crate::settings::{Settings, TaskSettings};
use crate::task::{Multiclass, OrdinalForm};

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
            (None, Some(outputs)) => Ok(of_odds(scores, outputs, &self.decoder)),
            (None, None) => Err(Error::new(Code::Internal, "a model without probabilities passed the check")),
        }
    }

    /// Refuses models without probabilities.
    pub fn check_probabilities(&self) -> Result<()> {
        if self.has_probabilities() {
            return Ok(());
        }
        Err(Error::new(Code::Unsupported, "the scores of this model are no probabilities, and none were fitted").help(
            "train a classifier, or ratings of the implicit form, with ⟦loss=logistic⟧, or any classifier and ratings \
                 with ⟦probability=platt⟧ or ⟦probability=isotonic⟧",
        ))
    }
}

/// Number of scores of a row, if the scores of a classifier are log-odds, or their distances from the cuts of ratings. With
/// the explicit form, a row tells its two neighbouring cuts alone, so that there they are none.
pub(super) fn own(settings: &Settings, decoder: &Decoder) -> Option<usize> {
    if settings.loss != Loss::Logistic {
        return None;
    }
    let task = match &settings.task {
        TaskSettings::Classify(task) => task,
        TaskSettings::Ordinal(task) => return (task.form == OrdinalForm::Implicit).then_some(1),
        _ => return None,
    };
    match decoder {
        Decoder::Sign(_) => Some(1),
        Decoder::Largest(labels) if task.multiclass(settings.loss) == Multiclass::Joint => Some(labels.len()),
        _ => None,
    }
}

/// The probabilities of scores that are log-odds: one score a row, that of the second of two classes, or one for each
/// class, whose differences are log-odds. Of ratings, the distance from a cut is the log-odds of a rank above it.
pub(super) fn of_odds(scores: &[f64], outputs: usize, decoder: &Decoder) -> Vec<f64> {
    if let Some((cuts, _)) = decoder.cuts() {
        let of_row = |score: f64| of_cuts(cuts.iter().map(move |cut| softened(score - cut, 0.0)));
        return scores.iter().flat_map(|&score| of_row(score)).collect();
    }
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
    use crate::data::Labels;

    #[test]
    fn log_odds_become_probabilities() {
        let of_odds = |scores: &[f64], outputs: usize| of_odds(scores, outputs, &Decoder::Rank);
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

    #[test]
    fn distances_from_cuts_are_log_odds_of_higher_ranks() {
        let ranks = Labels::new(["1", "2", "4"].map(String::from).to_vec());
        let decoder = Decoder::Cuts { cuts: vec![-1.0, 0.5], ranks };
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        let found = of_odds(&[0.3, -2.0], 1, &decoder);
        for (own, score) in found.chunks(3).zip([0.3f64, -2.0]) {
            let expected = [1.0 - sigma(score + 1.0), sigma(score + 1.0) - sigma(score - 0.5), sigma(score - 0.5)];
            assert!(own.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{own:?} {expected:?}");
        }
    }
}
