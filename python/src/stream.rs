//! Learning from a stream of rows of classes.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::run::sized;
use crate::settings;
use maxmargin::online::ClassificationLearner;
use maxmargin::settings::Settings;
use maxmargin_io::Reading;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Learner that trains on rows of classes, one after the other.
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct RowLearner {
    settings: Settings,
    learner: Mutex<ClassificationLearner>,
    /// Whether a call of `learn` is running.
    busy: AtomicBool,
}

/// Number of rows between two checks for a cancel.
const RUN: usize = 4096;

impl RowLearner {
    fn learner(&self) -> MutexGuard<'_, ClassificationLearner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RowLearner {
    #[new]
    #[pyo3(signature = (settings, model = None))]
    fn new(settings: &str, model: Option<&Model>) -> PyResult<RowLearner> {
        let settings = settings::parse_streamed(settings).or_raise()?;
        let learner = match model {
            Some(model) => ClassificationLearner::from_model(&model.model, &settings),
            None => ClassificationLearner::new(&settings),
        };
        Ok(RowLearner { settings, learner: Mutex::new(learner.or_raise()?), busy: AtomicBool::new(false) })
    }

    /// Train on all rows of the data, in order. After an error, the state is that before the call.
    fn learn(&self, py: Python<'_>, data: &Dataset) -> PyResult<()> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(PyRuntimeError::new_err("another thread is already learning: use one thread at a time"));
        }
        // The learner is copied first, so that an error leaves the earlier state.
        let steps = 4 * data.data.matrix().entries() + data.data.cols() as u64;
        let next = sized(py, steps, 1, |cancel| {
            let mut next = self.learner().clone();
            let rows = data.data.rows();
            let run = RUN.max(next.wanted()).next_multiple_of(next.batch().max(1));
            for start in (0..rows).step_by(run) {
                cancel.check()?;
                next.learn(&data.data, start..(start + run).min(rows))?;
            }
            Ok(next)
        });
        let learned = next.map(|next| *self.learner() = next);
        self.busy.store(false, Ordering::Release);
        learned
    }

    /// The model so far.
    #[pyo3(signature = (feature_names = None))]
    fn model(&self, feature_names: Option<Vec<String>>) -> PyResult<Model> {
        let reading = Reading::of_arrays(feature_names.is_some(), false).to_text().or_raise()?;
        let names = feature_names.map(|names| names.iter().map(String::as_str).collect());
        self.learner().model(&self.settings, names, Some(reading)).map(Model::of).or_raise()
    }

    /// Number of rows used so far.
    #[getter]
    fn seen(&self) -> u64 {
        self.learner().seen()
    }

    /// Sum of the losses of rows before they were used for training, and sum of their weights.
    #[getter]
    fn totals(&self) -> (f64, f64) {
        let progress = self.learner().progress();
        (progress.loss, progress.weight)
    }

    /// How well rows were predicted before they were used for training: the value of each metric by its name.
    #[getter]
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.learner().progress();
        let found = PyDict::new(py);
        for metric in &progress.metrics {
            found.set_item(metric.name, metric.all)?;
        }
        if let Some(aggression) = progress.aggression {
            found.set_item("mistakes", aggression.mistakes)?;
            found.set_item("mistake-bound", aggression.bound)?;
        }
        Ok(found)
    }
}
