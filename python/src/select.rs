//! Chooses settings by cross-validation.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::{run, settings};
use maxmargin::metric::Metric;
use maxmargin::select::{CrossValidation, Grid, Tuned};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Cross-validate settings over a grid of C and, if given, of γ, and train on all rows with the best. Returns the
/// model, one dictionary per setting, and the position of the best.
#[pyfunction]
#[pyo3(signature = (data, settings, metrics, folds, seed, costs = None, gammas = None, threads = 0, callback = None))]
#[allow(clippy::too_many_arguments)] // what Python passes by name
pub(crate) fn tune<'py>(
    py: Python<'py>,
    data: &Dataset,
    settings: &str,
    metrics: Vec<String>,
    folds: usize,
    seed: u64,
    costs: Option<Vec<f64>>,
    gammas: Option<Vec<f64>>,
    threads: usize,
    callback: Option<Py<PyAny>>,
) -> PyResult<(Model, Vec<Bound<'py, PyDict>>, usize)> {
    let settings = settings::parse(settings).or_raise()?;
    let metrics = metrics.iter().map(|name| Metric::parse(name)).collect::<maxmargin::Result<Vec<_>>>().or_raise()?;
    let validation = CrossValidation { folds, seed, metrics };
    let (trained, tuned) = run::job(py, threads, callback.as_ref(), |observer, cancel| {
        let costs = match costs {
            Some(costs) => Grid::of(costs)?,
            None => Grid::usual(&data.data, &settings)?,
        };
        let widths = match gammas {
            Some(gammas) => Grid::of(gammas)?.widths(&settings),
            None => vec![settings.clone()],
        };
        let candidates: Vec<_> = widths.iter().flat_map(|settings| costs.candidates(settings)).collect();
        let tuned = validation.run(&data.data, &candidates, observer, cancel)?;
        let trained = tuned.refit(tuned.best, &data.data, None, &mut maxmargin::run::Silent, cancel)?;
        Ok((trained, tuned))
    })?;
    let rows = rows(py, &tuned)?;
    Ok((Model::trained(trained, data)?, rows, tuned.best))
}

fn rows<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let row = |row: &maxmargin::select::Row| {
        let found = PyDict::new(py);
        found.set_item("C", row.c)?;
        found.set_item("gamma", row.settings.kernel.gamma)?;
        for (metric, summary) in tuned.metrics.iter().zip(&row.metrics) {
            found.set_item(format!("mean_{metric}"), summary.mean)?;
            found.set_item(format!("standard_error_{metric}"), summary.standard_error)?;
            found.set_item(format!("folds_{metric}"), summary.folds.clone())?;
        }
        found.set_item("gap", row.gap)?;
        found.set_item("n_iter", row.passes)?;
        found.set_item("seconds", row.seconds)?;
        found.set_item("converged", row.converged)?;
        found.set_item("tells_ties", !row.without_threshold)?;
        Ok(found)
    };
    tuned.rows.iter().map(row).collect()
}
