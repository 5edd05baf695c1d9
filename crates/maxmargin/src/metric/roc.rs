//! Metrics over a varying threshold on scores: the area under the ROC curve, average precision, and the curve itself.

use super::judged::single_class;
use super::order::by_decreasing_score;
use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::error::Result;

/// Weighted rows by decreasing score.
pub(super) struct Roc {
    area: bool,
    positive: Vec<bool>,
    weights: Option<Vec<f64>>,
    /// The row number of each in the data.
    order: Vec<usize>,
    /// Where each run of equal scores ends.
    ends: Vec<usize>,
}

impl Roc {
    pub(super) fn new(metric: &Metric, judged: &Judged<'_>) -> Result<Roc> {
        let labels = judged.needed_labels(metric)?;
        let scores = judged.needed_scores(metric)?;
        let roc = Roc::of(metric, scores, &labels, judged.weights);
        // This also covers the case that all rows of a class have weight 0.
        if roc.value(None).is_none() {
            return Err(single_class(metric));
        }
        Ok(roc)
    }

    /// The curve of rows that are positive or negative.
    pub(super) fn of(metric: &Metric, scores: &[f64], positive: &[bool], weights: Option<&[f64]>) -> Roc {
        let (order, ends) = thresholds(scores);
        Roc {
            area: matches!(metric, Metric::Auc | Metric::AucWeighted),
            positive: order.iter().map(|&row| positive[row]).collect(),
            weights: weights.map(|weights| order.iter().map(|&row| weights[row]).collect()),
            order,
            ends,
        }
    }
}

/// The rows by decreasing score, and where each run of equal scores ends.
fn thresholds(scores: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let order = by_decreasing_score(scores, false);
    let differs = |end: &usize| *end == order.len() || scores[order[*end]] != scores[order[*end - 1]];
    let ends = (1..=order.len()).filter(differs).collect();
    (order, ends)
}

impl RowMetric for Roc {
    /// AUC = P(score of a positive row > score of a negative one) + ½ P(equal). Average precision = Σ over thresholds
    /// of the gain in recall times the precision. Both divide at the end, and both need both classes: without
    /// negatives, average precision is always 1.
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        self.value_and_positives(times).map(|(value, _)| value)
    }
}

impl Roc {
    /// The value, and the weight of the positive rows.
    pub(super) fn value_and_positives(&self, times: Option<&[u32]>) -> Option<(f64, f64)> {
        let weights = self.weights.as_deref();
        let (mut positives, mut negatives, mut sum) = (0.0, 0.0, 0.0);
        let mut start = 0;
        for &end in &self.ends {
            let (mut tied_positives, mut tied_negatives) = (0.0, 0.0);
            for row in start..end {
                let times = times.map_or(1.0, |times| f64::from(times[self.order[row]]));
                let weight = times * weight_of(row, weights, None);
                if self.positive[row] {
                    tied_positives += weight;
                } else {
                    tied_negatives += weight;
                }
            }
            if self.area {
                sum += tied_negatives * (positives + 0.5 * tied_positives);
            }
            positives += tied_positives;
            negatives += tied_negatives;
            if !self.area && tied_positives > 0.0 {
                sum += tied_positives * positives / (positives + negatives);
            }
            start = end;
        }
        let whole = if self.area { positives * negatives } else { positives };
        (positives > 0.0 && negatives > 0.0).then(|| (sum / whole, positives))
    }
}

/// Precision among the rows with the highest scores: of K rows, or of as many as are positive. Of equal scores at the end,
/// each row counts as likely as the others.
pub(super) struct FirstRows {
    cutoff: Option<f64>,
    rows: Roc,
}

impl FirstRows {
    pub(super) fn new(metric: &Metric, judged: &Judged<'_>) -> Result<FirstRows> {
        let cutoff = metric.cutoff().map(|cutoff| cutoff.get() as f64);
        Ok(FirstRows { cutoff, rows: Roc::new(metric, judged)? })
    }
}

impl RowMetric for FirstRows {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let Roc { positive, weights, order, ends, .. } = &self.rows;
        let weight =
            |row: usize| weight_of(row, weights.as_deref(), None) * times.map_or(1.0, |t| f64::from(t[order[row]]));
        let positives: f64 = (0..order.len()).filter(|&row| positive[row]).map(weight).sum();
        let wanted = self.cutoff.unwrap_or(positives);
        let (mut taken, mut found, mut start) = (0.0, 0.0, 0);
        for &end in ends {
            let all: f64 = (start..end).map(weight).sum();
            let own: f64 = (start..end).filter(|&row| positive[row]).map(weight).sum();
            let share = if all > 0.0 { ((wanted - taken) / all).clamp(0.0, 1.0) } else { 0.0 };
            (taken, found, start) = (taken + all, found + share * own, end);
            if taken >= wanted {
                break;
            }
        }
        (wanted > 0.0).then(|| found / wanted)
    }
}

/// The ROC curve as (false positive rate, true positive rate), from (0, 0) to (1, 1). It has one point for each
/// distinct score, thinned evenly along the curve to `max_points` (at least 2). It is empty if it is not defined: a
/// class without rows, different lengths, or a score that is not a number.
pub fn roc_curve(scores: &[f64], positive: &[bool], max_points: usize) -> Vec<(f64, f64)> {
    let positives = positive.iter().filter(|&&positive| positive).count();
    let negatives = positive.len() - positives;
    let defined = scores.len() == positive.len() && positives > 0 && negatives > 0;
    if !defined || scores.iter().any(|score| score.is_nan()) {
        return Vec::new();
    }
    let (order, ends) = thresholds(scores);
    let steps = max_points.max(2) - 1;
    let keep_all = ends.len() <= steps;
    let mut curve = vec![(0.0, 0.0)];
    let mut step = 0;
    let (mut start, mut true_positives) = (0, 0);
    for &end in &ends {
        true_positives += order[start..end].iter().filter(|&&row| positive[row]).count();
        start = end;
        let point = ((end - true_positives) as f64 / negatives as f64, true_positives as f64 / positives as f64);
        // The two rates sum to 2 at the end, which is the last step.
        let reached = ((point.0 + point.1) / 2.0 * steps as f64).floor() as usize;
        if end == order.len() {
            curve.push((1.0, 1.0));
        } else if keep_all || (reached > step && reached < steps) {
            curve.push(point);
            step = reached;
        }
    }
    curve
}
