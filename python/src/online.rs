//! Learning from a stream of comparisons.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::run::sized;
use crate::settings;
use maxmargin::online::ComparisonLearner;
use maxmargin::settings::Settings;
use maxmargin_io::Reading;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Learner that trains on one pair after the other.
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct Learner {
    settings: Settings,
    learner: Mutex<ComparisonLearner>,
    /// Whether a call of `learn` is running.
    busy: AtomicBool,
}

/// Number of pairs between two checks for a cancel.
const RUN: usize = 4096;

impl Learner {
    fn learner(&self) -> MutexGuard<'_, ComparisonLearner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Learner {
    #[new]
    #[pyo3(signature = (settings, model = None))]
    fn new(settings: &str, model: Option<&Model>) -> PyResult<Learner> {
        let settings = settings::parse_streamed(settings).or_raise()?;
        let learner = match model {
            Some(model) => ComparisonLearner::from_model(&model.model, &settings),
            None => ComparisonLearner::new(&settings),
        };
        Ok(Learner { settings, learner: Mutex::new(learner.or_raise()?), busy: AtomicBool::new(false) })
    }

    /// Train on all comparisons of the data, in order. After an error, the state is that before the call.
    fn learn(&self, py: Python<'_>, data: &Dataset) -> PyResult<()> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(PyRuntimeError::new_err("another thread is already learning: use one thread at a time"));
        }
        // The learner is copied first, so that an error leaves the earlier state.
        let steps = 4 * data.data.matrix().entries() + data.data.cols() as u64;
        let next = sized(py, steps, 1, |cancel| {
            let mut next = self.learner().clone();
            let pairs = data.data.pairs().map_or(0, |pairs| pairs.len());
            for start in (0..pairs).step_by(RUN) {
                cancel.check()?;
                next.learn(&data.data, start..(start + RUN).min(pairs))?;
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

    /// Weights for prediction.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.learner().weights().into_pyarray(py)
    }

    /// Threshold for prediction.
    #[getter]
    fn threshold(&self) -> f64 {
        self.learner().threshold()
    }

    /// Number of pairs used so far.
    #[getter]
    fn pairs(&self) -> u64 {
        self.learner().progress().pairs()
    }

    /// Share of pairs predicted wrongly before they were used for training: of all, and of the most recent ones.
    #[getter]
    fn errors(&self) -> (Option<f64>, Option<f64>) {
        let learner = self.learner();
        (learner.progress().error(), learner.progress().recent_error())
    }
}
