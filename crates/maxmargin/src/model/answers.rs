//! [`Answers`]: a model's predictions for rows with known targets, in the form that metrics take.

use super::{Decoder, Model};
use crate::certificate::{CodeDecoder, Predictions};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::metric::{Evaluation, Judged, Metric, Needs};
use crate::settings::{Method, Settings};

/// Scores of the rows of a data set and, for classifiers, the true and the predicted classes.
#[derive(Clone, Debug)]
pub struct Answers<'a> {
    data: &'a Dataset,
    /// The score of each row, or its scores for all classes, next to each other.
    pub scores: Vec<f64>,
    /// The true class of each row; empty for rankers. A label that the model does not know has the code after the last
    /// class.
    pub codes: Vec<u32>,
    /// Number of classes, with that of unknown labels.
    classes: usize,
    /// Number of rows with a label that the model does not know.
    pub unknown: usize,
    predictions: Option<Vec<u32>>,
    /// The value of the predicted rank of each row, for ratings.
    ranked: Option<Vec<f64>>,
    /// The largest difference of scores that is predicted as a tie, and the threshold of a comparison.
    thresholds: Option<(f64, f64)>,
    /// Whether scores are log-odds, as those of the logistic loss are.
    probable: bool,
}

impl Answers<'_> {
    /// A model's predictions for data.
    pub fn new<'a>(model: &Model, data: &'a Dataset) -> Result<Answers<'a>> {
        Ok(Answers::of_scores(model.scores(data)?, &model.decoder, data)?.trained_with(&model.settings))
    }

    /// The predictions of given scores, row by row in stored order.
    pub fn of_scores<'a>(scores: Vec<f64>, decoder: &Decoder, data: &'a Dataset) -> Result<Answers<'a>> {
        let known = |positives: Vec<bool>| positives.into_iter().map(|positive| Some(u32::from(positive))).collect();
        let (codes, mut classes): (Vec<Option<u32>>, usize) = match decoder {
            Decoder::Border(classes) => (known(classes.positives(data.targets())?), 2),
            Decoder::Sign(classes) => {
                (known(classes.signs(data.targets())?.into_iter().map(|sign| sign > 0).collect()), 2)
            }
            Decoder::Largest(labels) | Decoder::Code(CodeDecoder { labels, .. }) => {
                (labels.known_codes(data.targets())?, labels.len())
            }
            Decoder::Cuts { ranks, .. } => (ranks.known_codes(data.targets())?, ranks.len()),
            _ => (Vec::new(), 0),
        };
        let unknown = codes.iter().filter(|code| code.is_none()).count();
        let codes: Vec<u32> = codes.into_iter().map(|code| code.unwrap_or(classes as u32)).collect();
        classes += usize::from(unknown > 0);
        let answers = decoder.predictions(scores, 1, None);
        let predictions = match (&answers, answers.positives()) {
            (Predictions::Classes { .. } | Predictions::Ranks { .. }, _) => {
                Some((0..answers.len()).filter_map(|row| answers.class(row).map(|class| class as u32)).collect())
            }
            (_, positives) => positives.map(|positives| positives.map(u32::from).collect()),
        };
        let ranked = decoder.cuts().and_then(|(_, ranks)| ranks.values()).map(|values| {
            let codes: &[u32] = predictions.as_deref().unwrap_or_default();
            codes.iter().map(|&code| values[code as usize]).collect()
        });
        let thresholds = decoder.tie_width().zip(decoder.threshold());
        let (Predictions::Scores { scores, .. }
        | Predictions::Labels { scores, .. }
        | Predictions::Classes { scores, .. }
        | Predictions::Ranks { scores, .. }) = answers
        else {
            return Err(Error::new(Code::Internal, "rows were asked for, and pairs were answered"));
        };
        let probable = matches!(decoder, Decoder::Likelihood { .. });
        Ok(Answers { data, scores, codes, classes, unknown, predictions, ranked, thresholds, probable })
    }

    /// The same, given the settings of the model: they tell whether scores are log-odds.
    pub fn trained_with(self, settings: &Settings) -> Self {
        let odds = (self.predictions.is_some() && self.ranked.is_none()) || settings.method() == Some(Method::Compare);
        Answers { probable: self.probable || odds && settings.loss == Loss::Logistic, ..self }
    }

    /// The input of a metric. Metrics over lists need grades: the classes of a classifier become 0 and 1, and weights
    /// are ignored. If there are explicit pairs, pair-accuracy is computed over them.
    pub fn judged(&self, metric: &Metric) -> Result<Judged<'_>> {
        if *metric == Metric::LogLoss && !self.probable {
            let message = "log-loss needs probabilities, and the scores of this model are not log-odds";
            return Err(Error::new(Code::MetricMismatch, message)
                .help("train with ⟦loss=logistic⟧ (comparisons: without another ⟦method⟧), or choose another metric"));
        }
        if let (Some((width, threshold)), Some(pairs)) = (self.thresholds, self.data.pairs()) {
            return Ok(Judged::comparisons(&self.scores, pairs, width).with_likelihood(threshold));
        }
        if let (None, Some(pairs), Metric::PairAccuracy) = (&self.predictions, self.data.pairs(), metric) {
            return Ok(Judged::pairs(&self.scores, pairs));
        }
        let judged = match &self.predictions {
            // Errors are those of the predicted ranks, and orders those of the scores.
            Some(_) if self.ranked.is_some() && metric.needs() != Needs::Predictions => {
                let estimates = self.ranked.as_ref().filter(|_| metric.needs() == Needs::Reals);
                Judged::reals(estimates.unwrap_or(&self.scores), self.data.targets().real()?)
            }
            Some(_) if self.ranked.is_some() => {
                Judged::classes(&self.codes, self.classes, self.predictions.as_deref().unwrap_or_default())
            }
            Some(predictions) => {
                let judged = Judged::classes(&self.codes, self.classes, predictions);
                // With one score per row, it is that of the second class.
                if self.scores.len() == self.codes.len() { judged.with_scores(&self.scores) } else { judged }
            }
            None => Judged::reals(&self.scores, self.data.targets().real()?),
        };
        let weights = self.data.weights().filter(|_| metric.needs() != Needs::Groups);
        Ok(Judged { groups: self.data.groups(), weights, ..judged })
    }

    /// The value of a metric.
    pub fn evaluate(&self, metric: &Metric) -> Result<Evaluation> {
        metric.evaluate(&self.judged(metric)?)
    }
}
