//! [`Answers`]: a model's predictions for rows with known targets, in the form that metrics take.

use super::{Decoder, Model};
use crate::certificate::Predictions;
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::metric::{Evaluation, Judged, Metric, Needs};

/// Scores of the rows of a data set and, for classifiers, the true and the predicted classes.
#[derive(Clone, Debug)]
pub struct Answers<'a> {
    data: &'a Dataset,
    /// The score of each row.
    pub scores: Vec<f64>,
    /// The true class of each row as 0 or 1; empty for rankers.
    pub codes: Vec<u32>,
    predictions: Option<Vec<u32>>,
    /// The largest difference of scores that is predicted as a tie, and the threshold of a comparison.
    thresholds: Option<(f64, f64)>,
}

impl Answers<'_> {
    /// A model's predictions for data.
    pub fn new<'a>(model: &Model, data: &'a Dataset) -> Result<Answers<'a>> {
        Answers::of_scores(model.scores(data)?, &model.decoder, data)
    }

    /// The predictions of given scores, row by row in stored order.
    pub fn of_scores<'a>(scores: Vec<f64>, decoder: &Decoder, data: &'a Dataset) -> Result<Answers<'a>> {
        let codes = match decoder {
            Decoder::Border(classes) => classes.positives(data.targets())?,
            Decoder::Sign(classes) => classes.signs(data.targets())?.into_iter().map(|sign| sign > 0).collect(),
            _ => Vec::new(),
        };
        let codes = codes.into_iter().map(u32::from).collect();
        let answers = decoder.predictions(scores, 1, None);
        let predictions = answers.positives().map(|positives| positives.map(u32::from).collect());
        let thresholds = decoder.tie_width().zip(decoder.threshold());
        let (Predictions::Scores { scores, .. } | Predictions::Labels { scores, .. }) = answers else {
            return Err(Error::new(Code::Internal, "rows were asked for, and pairs were answered"));
        };
        Ok(Answers { data, scores, codes, predictions, thresholds })
    }

    /// The input of a metric. Metrics over lists need grades: the classes of a classifier become 0 and 1, and weights
    /// are ignored. If there are explicit pairs, pair-accuracy is computed over them.
    pub fn judged(&self, metric: &Metric) -> Result<Judged<'_>> {
        if let (Some((width, threshold)), Some(pairs)) = (self.thresholds, self.data.pairs()) {
            return Ok(Judged::comparisons(&self.scores, pairs, width).with_likelihood(threshold));
        }
        if let (None, Some(pairs), Metric::PairAccuracy) = (&self.predictions, self.data.pairs(), metric) {
            return Ok(Judged::pairs(&self.scores, pairs));
        }
        let judged = match &self.predictions {
            Some(predictions) => Judged::classes(&self.codes, 2, predictions).with_scores(&self.scores),
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
