//! What the row metrics share: a value from weights, and resampling by changing the weights.

use super::bootstrap::{Interval, interval};
use super::brackets::Brackets;
use super::classes::Classes;
use super::comparisons;
use super::deviation::Deviation;
use super::judged::mismatch;
use super::kappa::Kappa;
use super::one_against_rest::OneAgainstRest;
use super::pairs::ListedPairs;
use super::probabilities::CalibrationError;
use super::roc::{FirstRows, Roc};
use super::sets::{F1OfSets, MeanOfSets};
use super::spans::BySequence;
use super::top::TopAccuracy;
use super::{Evaluation, Judged, Metric, Needs, Truth};
use crate::error::{Code, Error, Result};

/// A row metric with everything prepared that does not depend on the weight of each row.
pub(super) trait RowMetric: Sync {
    /// The value with row `i` counted `times[i]` times, or once each; `None` if it is not defined. The rows may be
    /// numbered differently from the data, because resampling treats all rows alike.
    fn value(&self, times: Option<&[u32]>) -> Option<f64>;

    /// The number of units that resampling draws, if these are not the rows.
    fn units(&self) -> Option<usize> {
        None
    }

    /// The number of units that the value covers, if these are not the rows.
    fn counted(&self) -> Option<usize> {
        None
    }

    /// Notes for the reader of the value.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How much a row counts.
#[inline]
pub(super) fn weight_of(row: usize, weights: Option<&[f64]>, times: Option<&[u32]>) -> f64 {
    weights.map_or(1.0, |weights| weights[row]) * times.map_or(1.0, |times| f64::from(times[row]))
}

fn prepare<'a>(metric: &'a Metric, judged: &Judged<'a>) -> Result<Box<dyn RowMetric + 'a>> {
    match judged.truth {
        Truth::Pairs { pairs, threshold: Some(threshold), likelihood, .. } => {
            let likelihood = likelihood.unwrap_or(threshold);
            return comparisons::prepare(metric, judged.needed_scores(metric)?, pairs, threshold, likelihood);
        }
        Truth::Pairs { pairs, threshold: None, .. } if metric.is_over_pairs(judged) => {
            return Ok(Box::new(ListedPairs::new(metric, judged.needed_scores(metric)?, pairs)?));
        }
        _ if metric.is_over_rows(judged) => return Ok(Box::new(FirstRows::new(metric, judged)?)),
        Truth::Sets { .. } if matches!(metric, Metric::F1Micro | Metric::F1Macro) => {
            return Ok(Box::new(F1OfSets::new(metric, judged)?));
        }
        _ => {}
    }
    Ok(match metric.needs() {
        Needs::Sets => Box::new(MeanOfSets::new(metric, judged)?),
        Needs::Predictions if *metric == Metric::QuadraticKappa => Box::new(Kappa::new(metric, judged)?),
        Needs::Predictions | Needs::BinaryPredictions => Box::new(Classes::new(metric, judged)?),
        Needs::ClassScores => Box::new(TopAccuracy::new(metric, judged)?),
        Needs::Probabilities => Box::new(CalibrationError::new(metric, judged)?),
        Needs::BinaryScores if *metric == Metric::BreakEven => Box::new(FirstRows::new(metric, judged)?),
        Needs::BinaryScores if *metric == Metric::LogLoss && judged.probabilities.is_some() => {
            Box::new(comparisons::LogLoss::of_probabilities(metric, judged)?)
        }
        Needs::BinaryScores if judged.scores.is_none() && judged.class_scores.is_some() => {
            Box::new(OneAgainstRest::new(metric, judged)?)
        }
        Needs::BinaryScores if *metric == Metric::LogLoss => {
            let (scores, labels) = (judged.needed_scores(metric)?, judged.needed_labels(metric)?);
            Box::new(comparisons::LogLoss::of_rows(scores, &labels, judged.weights))
        }
        Needs::BinaryScores => Box::new(Roc::new(metric, judged)?),
        Needs::Reals => Box::new(Deviation::new(metric, judged)?),
        Needs::Tags => Box::new(BySequence::new(metric, judged)?),
        Needs::Trees => Box::new(Brackets::new(metric, judged)?),
        Needs::Groups => return Err(Error::new(Code::Internal, format!("{metric} is not a metric over rows"))),
    })
}

/// Computes a row metric.
pub(super) fn evaluate(metric: &Metric, judged: &Judged<'_>) -> Result<Evaluation> {
    let prepared = prepare(metric, judged)?;
    let value = prepared.value(None).ok_or_else(|| match judged.truth {
        Truth::Sets { .. } => mismatch(format!("{metric} cannot be computed: no label occurs, and none is predicted"))
            .help("evaluate on rows with labels"),
        _ => Error::new(Code::Internal, format!("{metric} is not defined on data that passed the checks")),
    })?;
    let counted = prepared.counted().unwrap_or(judged.rows());
    Ok(Evaluation { value, per_query: None, counted, skipped: 0, notes: prepared.notes() })
}

/// The bootstrap interval of a row metric.
pub(super) fn bootstrap(metric: &Metric, judged: &Judged<'_>, resamples: usize, seed: u64) -> Result<Option<Interval>> {
    let prepared = prepare(metric, judged)?;
    let rows = prepared.units().unwrap_or(judged.rows());
    if rows < 2 {
        return Ok(None);
    }
    Ok(interval(resamples, seed, |random| {
        let mut times = vec![0u32; rows];
        for _ in 0..rows {
            times[random.below(rows as u64) as usize] += 1;
        }
        prepared.value(Some(&times))
    }))
}
