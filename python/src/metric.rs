//! Metrics over arrays.

use crate::data::numbers;
use crate::error::OrRaise;
use crate::run::sized;
use maxmargin::data::{Groups, Names};
use maxmargin::metric::{Judged, Metric};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Compute a metric by name. With `predictions`, these and the truth are codes of `classes` classes.
#[pyfunction]
#[pyo3(signature = (name, truth, scores = None, groups = None, weights = None, predictions = None, classes = 2))]
#[allow(clippy::too_many_arguments)] // one for each thing a metric may look at
pub(crate) fn evaluate(
    py: Python<'_>,
    name: &str,
    truth: &Bound<'_, PyAny>,
    scores: Option<&Bound<'_, PyAny>>,
    groups: Option<&Bound<'_, PyAny>>,
    weights: Option<&Bound<'_, PyAny>>,
    predictions: Option<&Bound<'_, PyAny>>,
    classes: usize,
) -> PyResult<f64> {
    let metric = Metric::parse(name).or_raise()?;
    let scores = scores.map(|scores| numbers::<f64>("y_score", scores)).transpose()?;
    let groups = groups.map(|groups| numbers::<u32>("qid", groups)).transpose()?;
    let weights = weights.map(|weights| numbers::<f64>("sample_weight", weights)).transpose()?;
    let predictions = predictions.map(|predictions| numbers::<u32>("y_pred", predictions)).transpose()?;
    let codes = predictions.as_ref().map(|_| numbers::<u32>("y_true", truth)).transpose()?;
    let values = if predictions.is_none() { Some(numbers::<f64>("y_true", truth)?) } else { None };
    let rows = codes.as_ref().map_or(values.as_ref().map_or(0, |values| values.len()), |codes| codes.len());
    let lengths = [
        ("y_score", scores.as_ref().map(|scores| scores.len())),
        ("qid", groups.as_ref().map(|groups| groups.len())),
        ("sample_weight", weights.as_ref().map(|weights| weights.len())),
        ("y_pred", predictions.as_ref().map(|predictions| predictions.len())),
    ];
    for (argument, length) in lengths {
        if length.is_some_and(|length| length != rows) {
            return Err(PyValueError::new_err(format!(
                "{argument} has {} values, and y_true has {rows}",
                length.unwrap_or(0)
            )));
        }
    }
    // The rows are sorted, more than once.
    sized(py, 64 * rows as u64, 1, |cancel| {
        // Rows of a query must be next to each other.
        let grouped = groups.as_ref().map(|keys| {
            let count = keys.iter().max().map_or(0, |&most| most as usize + 1);
            let names: Names =
                (0..count).map(|group| group.to_string()).collect::<Vec<_>>().iter().map(String::as_str).collect();
            Groups::from_keys(keys, names)
        });
        let (groups, order) = match grouped.transpose()? {
            Some((groups, order)) => (Some(groups), order),
            None => (None, None),
        };
        cancel.check()?;
        let moved = |numbers: &[f64]| match &order {
            Some(order) => order.iter().map(|&row| numbers[row]).collect(),
            None => numbers.to_vec(),
        };
        let moved_codes = |codes: &[u32]| match &order {
            Some(order) => order.iter().map(|&row| codes[row]).collect(),
            None => codes.to_vec(),
        };
        let (scores, weights) = (scores.as_deref().map(&moved), weights.as_deref().map(&moved));
        let (values, codes) = (values.as_deref().map(&moved), codes.as_deref().map(&moved_codes));
        let predictions = predictions.as_deref().map(&moved_codes);
        cancel.check()?;
        let (empty, none) = (Vec::new(), Vec::new());
        let judged = match (&codes, &predictions) {
            (Some(codes), Some(predictions)) => Judged::classes(codes, classes, predictions),
            _ => Judged::reals(scores.as_deref().unwrap_or(&empty), values.as_deref().unwrap_or(&none)),
        };
        let judged = Judged { groups: groups.as_ref(), ..judged.with_weights(weights.as_deref()) };
        let judged = match &scores {
            Some(scores) => judged.with_scores(scores),
            None => judged,
        };
        Ok(metric.evaluate(&judged)?.value)
    })
}
