//! Items in the order of their scores.

use crate::data::{Dataset, numbers};
use crate::model::Model;
use crate::run::{job, sized};
use maxmargin::items::{Resampling, resample};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

/// Rank of each item: 1 plus the number of items whose score is higher by more than the threshold.
#[pyfunction]
pub(crate) fn ranks<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    threshold: f64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let scores = numbers::<f64>("scores", scores)?;
    let steps = 16 * scores.len() as u64;
    let ranks = sized(py, steps, 1, |_| Ok(maxmargin::items::ranks(&scores, threshold)))?;
    Ok(ranks.into_iter().map(|rank| rank as i64).collect::<Vec<_>>().into_pyarray(py))
}

/// Lower and upper ends of the 95 % interval of the score of each training item, and ranks that count only items that
/// are significantly better.
#[pyfunction]
#[pyo3(signature = (model, data, resamples, seed = 0, threads = 0))]
#[allow(clippy::type_complexity)] // a tuple of arrays is what numpy users unpack
pub(crate) fn resampled<'py>(
    py: Python<'py>,
    model: &Model,
    data: &Dataset,
    resamples: usize,
    seed: u64,
    threads: usize,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>)> {
    let threshold = model.model.decoder.tie_width().unwrap_or(0.0);
    let (low, high, ranks) = job(py, threads, None, |observer, cancel| {
        let found = resample(&model.model, &data.data, &data.data, Resampling { resamples, seed }, observer, cancel)?;
        let (low, high): (Vec<f64>, Vec<f64>) = (0..data.data.rows()).map(|item| found.interval(item)).unzip();
        Ok((low, high, found.ranks(threshold, cancel)?))
    })?;
    let ranks: Vec<i64> = ranks.into_iter().map(|rank| rank as i64).collect();
    Ok((low.into_pyarray(py), high.into_pyarray(py), ranks.into_pyarray(py)))
}
