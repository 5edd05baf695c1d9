//! Metrics over predicted classes: accuracy, error, precision, recall and the F1 family, for any number of classes.

use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric, Needs};
use crate::error::Result;
use std::borrow::Cow;

/// True and predicted classes of weighted rows.
pub(super) struct Classes<'a> {
    metric: &'a Metric,
    truth: Cow<'a, [u32]>,
    predicted: Cow<'a, [u32]>,
    weights: Option<&'a [f64]>,
    count: usize,
    positive: usize,
}

/// Weights of the rows of one class.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) right: f64,
    pub(super) truth: f64,
    pub(super) predicted: f64,
}

impl Tally {
    pub(super) fn precision(self) -> f64 {
        ratio(self.right, self.predicted)
    }

    pub(super) fn recall(self) -> f64 {
        ratio(self.right, self.truth)
    }

    pub(super) fn f1(self) -> f64 {
        ratio(2.0 * self.right, self.truth + self.predicted)
    }
}

/// The mean over the classes that occur.
pub(super) fn mean(tallies: &[Tally], value: impl Fn(Tally) -> f64) -> f64 {
    let mut sum = 0.0;
    let mut present = 0usize;
    for tally in tallies.iter().filter(|tally| tally.truth + tally.predicted > 0.0) {
        sum += value(*tally);
        present += 1;
    }
    sum / present as f64
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl<'a> Classes<'a> {
    pub(super) fn new(metric: &'a Metric, judged: &Judged<'a>) -> Result<Classes<'a>> {
        let (truth, count) = judged.needed_classes(metric)?;
        let predicted = judged.needed_predictions(metric)?;
        let positive = match metric.needs() {
            Needs::BinaryPredictions => judged.needed_positive(metric)? as usize,
            _ => 0,
        };
        let (truth, predicted) = (Cow::Borrowed(truth), Cow::Borrowed(predicted));
        Ok(Classes { metric, truth, predicted, weights: judged.weights, count, positive })
    }

    /// The same for codes that the caller has already prepared, without a positive class.
    pub(super) fn of(
        metric: &'a Metric,
        truth: Vec<u32>,
        predicted: Vec<u32>,
        weights: Option<&'a [f64]>,
        count: usize,
    ) -> Classes<'a> {
        Classes { metric, truth: truth.into(), predicted: predicted.into(), weights, count, positive: 0 }
    }

    fn tallies(&self, times: Option<&[u32]>) -> Vec<Tally> {
        let mut tallies = vec![Tally::default(); self.count];
        for (row, (&truth, &predicted)) in self.truth.iter().zip(&*self.predicted).enumerate() {
            let weight = weight_of(row, self.weights, times);
            tallies[truth as usize].truth += weight;
            tallies[predicted as usize].predicted += weight;
            if truth == predicted {
                tallies[truth as usize].right += weight;
            }
        }
        tallies
    }
}

impl RowMetric for Classes<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let tallies = self.tallies(times);
        let all: f64 = tallies.iter().map(|tally| tally.truth).sum();
        let right: f64 = tallies.iter().map(|tally| tally.right).sum();
        if all <= 0.0 {
            return None;
        }
        Some(match self.metric {
            Metric::Error => 1.0 - right / all,
            Metric::Precision => tallies[self.positive].precision(),
            Metric::Recall => tallies[self.positive].recall(),
            Metric::F1 => tallies[self.positive].f1(),
            Metric::F1Macro => mean(&tallies, Tally::f1),
            Metric::PrecisionMacro => mean(&tallies, Tally::precision),
            Metric::RecallMacro => mean(&tallies, Tally::recall),
            // With one class per row, the total of false positives equals the total of false negatives.
            _ => right / all,
        })
    }

    fn notes(&self) -> Vec<String> {
        let binary = self.metric.needs() == Needs::BinaryPredictions;
        let absent = |codes: &[u32]| binary && !codes.iter().any(|&code| code as usize == self.positive);
        let mut notes = Vec::new();
        if absent(&self.truth) && !matches!(self.metric, Metric::Precision) {
            notes.push("no row is of the positive class".to_owned());
        }
        if absent(&self.predicted) && !matches!(self.metric, Metric::Recall) {
            notes.push("no row is predicted to be of the positive class".to_owned());
        }
        notes
    }
}
