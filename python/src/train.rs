//! Training.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::{run, settings};
use pyo3::prelude::*;

/// Train a model on data; see `maxmargin::train`.
#[pyfunction]
#[pyo3(signature = (data, settings, threads = 0, callback = None))]
pub(crate) fn train(
    py: Python<'_>,
    data: &Dataset,
    settings: &str,
    threads: usize,
    callback: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let settings = settings::parse(settings).or_raise()?;
    let trained = run::job(py, threads, callback.as_ref(), |observer, cancel| {
        maxmargin::train::train(&data.data, &settings, None, observer, cancel)
    })?;
    Model::trained(trained, data)
}
