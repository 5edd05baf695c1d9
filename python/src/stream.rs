//! Learning from a stream of rows of classes, or of pairs to rank.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::run::sized;
use crate::settings;
use maxmargin::error::Result;
use maxmargin::online::{ClassificationLearner, RankingLearner};
use maxmargin::settings::{Settings, Task};
use maxmargin::stream::Learner as _;
use maxmargin_io::Reading;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The learner of a task.
#[derive(Clone)]
enum Own {
    Classes(Box<ClassificationLearner>),
    Order(Box<RankingLearner>),
}

/// Calls a method of whichever learner it is.
macro_rules! with_own {
    ($own:expr, $learner:ident => $body:expr) => {
        match $own {
            Own::Classes($learner) => $body,
            Own::Order($learner) => $body,
        }
    };
}

impl Own {
    fn new(settings: &Settings, model: Option<&maxmargin::model::Model>) -> Result<Own> {
        match (settings.task.task() == Task::Rank, model) {
            (true, None) => RankingLearner::new(settings).map(|learner| Own::Order(Box::new(learner))),
            (true, Some(model)) => {
                RankingLearner::from_model(model, settings).map(|learner| Own::Order(Box::new(learner)))
            }
            (false, None) => ClassificationLearner::new(settings).map(|learner| Own::Classes(Box::new(learner))),
            (false, Some(model)) => {
                ClassificationLearner::from_model(model, settings).map(|learner| Own::Classes(Box::new(learner)))
            }
        }
    }
}

/// Learner that trains on rows of classes, or on pairs to rank, one after the other.
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct RowLearner {
    settings: Settings,
    learner: Mutex<Own>,
    /// Whether a call of `learn` is running.
    busy: AtomicBool,
}

/// Number of examples between two checks for a cancel.
const RUN: usize = 4096;

impl RowLearner {
    fn learner(&self) -> MutexGuard<'_, Own> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RowLearner {
    #[new]
    #[pyo3(signature = (settings, model = None))]
    fn new(settings: &str, model: Option<&Model>) -> PyResult<RowLearner> {
        let settings = settings::parse_streamed(settings).or_raise()?;
        let learner = Own::new(&settings, model.map(|model| &model.model)).or_raise()?;
        Ok(RowLearner { settings, learner: Mutex::new(learner), busy: AtomicBool::new(false) })
    }

    /// Train on all rows or pairs of the data, in order. After an error, the state is that before the call.
    fn learn(&self, py: Python<'_>, data: &Dataset) -> PyResult<()> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(PyRuntimeError::new_err("another thread is already learning: use one thread at a time"));
        }
        // The learner is copied first, so that an error leaves the earlier state.
        let steps = 4 * data.data.matrix().entries() + data.data.cols() as u64;
        let next = sized(py, steps, 1, |cancel| {
            let mut next = self.learner().clone();
            with_own!(&mut next, learner => {
                let examples = learner.examples(&data.data);
                let run = RUN.max(learner.wanted()).next_multiple_of(learner.batch().max(1));
                for start in (0..examples).step_by(run) {
                    cancel.check()?;
                    learner.learn(&data.data, start..(start + run).min(examples))?;
                }
            });
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
        with_own!(&*self.learner(), learner => learner.model(&self.settings, names, Some(reading)))
            .map(Model::of)
            .or_raise()
    }

    /// Number of rows or pairs used so far.
    #[getter]
    fn seen(&self) -> u64 {
        with_own!(&*self.learner(), learner => learner.seen())
    }

    /// Sum of the losses of rows before they were used for training, and sum of their weights.
    #[getter]
    fn totals(&self) -> (f64, f64) {
        let progress = with_own!(&*self.learner(), learner => learner.progress());
        (progress.loss, progress.weight)
    }

    /// How well rows were predicted before they were used for training: the value of each metric by its name.
    #[getter]
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = with_own!(&*self.learner(), learner => learner.progress());
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
