//! Oracles written in Python: training, verifying and checking.
//!
//! An oracle comes with its examples as one Python object (`_Calls` of `maxmargin/structured.py`), whose methods take the
//! number of an example, and outputs as bytes. Searches run on the threads of the core, each with the interpreter lock. Of
//! several exceptions, the one of the example with the lowest number is raised, so that the number of threads changes
//! nothing.

use crate::error::OrRaise;
use crate::model::Model;
use crate::{run, settings};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::{Cancel, Event, Observer};
use maxmargin::settings::{Settings, TaskSettings};
use maxmargin::structured::{Encoded, Examples, Features, Oracle};
use maxmargin::train::HeldOut;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// An output in the bytes that Python made of it.
struct Coded(Vec<u8>);

impl Encoded for Coded {
    fn encode(&self, numbers: &mut Vec<u32>) {
        let words = self.0.chunks_exact(4);
        numbers.extend(words.map(|word| word.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))));
    }

    fn decode(numbers: &[u32]) -> Option<Coded> {
        Some(Coded(numbers.iter().flat_map(|number| number.to_le_bytes()).collect()))
    }
}

thread_local! {
    /// The example that this thread works on, for the order of exceptions.
    static EXAMPLE: Cell<usize> = const { Cell::new(0) };
}

/// The weights at which searches are made, as an array, and where the core keeps them.
struct Prepared {
    place: (usize, usize),
    array: Py<PyArray1<f64>>,
}

/// The Python object with the first exception that it raised.
struct Called {
    calls: Py<PyAny>,
    prepared: Mutex<Option<Prepared>>,
    raised: Arc<Mutex<Option<(usize, PyErr)>>>,
}

impl Called {
    /// Calls Python for an example. After an exception, the calls for later examples are left out.
    fn call<T>(&self, example: usize, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        EXAMPLE.set(example);
        let fails = || Error::new(Code::BadOracle, "the oracle raised an exception");
        {
            let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.as_ref().is_some_and(|(first, _)| *first <= example) {
                return Err(fails());
            }
        }
        Python::attach(|py| work(self.calls.bind(py))).map_err(|exception| {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.as_ref().is_none_or(|(first, _)| example < *first) {
                *raised = Some((example, exception));
            }
            fails()
        })
    }

    /// The weights as an array that cannot be written to. It is the same for all searches at the same weights.
    fn weights<'py>(&self, py: Python<'py>, w: &[f64]) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        match &*prepared {
            Some(Prepared { place, array }) if *place == place_of(w) => {
                let array = array.bind(py).clone();
                debug_assert!(array.readonly().as_slice().is_ok_and(|known| known == w), "weights changed silently");
                Ok(array)
            }
            _ => frozen(py, w),
        }
    }

    fn searched(&self, search: &str, x: usize, w: &[f64]) -> Result<Coded> {
        self.call(x, |calls| {
            let found = calls.call_method1(search, (x, self.weights(calls.py(), w)?))?;
            Ok(Coded(found.cast::<PyBytes>()?.as_bytes().to_vec()))
        })
    }
}

fn place_of(w: &[f64]) -> (usize, usize) {
    (w.as_ptr() as usize, w.len())
}

/// A copy of the weights that cannot be written to.
fn frozen<'py>(py: Python<'py>, w: &[f64]) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let array = PyArray1::from_slice(py, w);
    array.getattr("flags")?.setattr("writeable", false)?;
    Ok(array)
}

impl Oracle for Called {
    /// The number of an example.
    type Input = usize;
    type Output = Coded;

    fn joint_feature(&self, x: &usize, y: &Coded, features: &mut Features) -> Result<()> {
        self.call(*x, |calls| {
            let py = calls.py();
            let found = calls.call_method1("joint_feature", (*x, PyBytes::new(py, &y.0)))?;
            type Entries<'py> = (Option<PyReadonlyArray1<'py, i64>>, PyReadonlyArray1<'py, f64>);
            let (places, values): Entries<'_> = found.extract()?;
            match places {
                None => features.add_all(0, values.as_slice()?),
                Some(places) => {
                    let entries = places.as_slice()?.iter().zip(values.as_slice()?);
                    entries.for_each(|(&place, &value)| features.add(place as usize, value));
                }
            }
            Ok(())
        })
    }

    fn loss(&self, truth: &Coded, y: &Coded) -> Result<f64> {
        self.call(EXAMPLE.get(), |calls| {
            let py = calls.py();
            calls.call_method1("loss", (PyBytes::new(py, &truth.0), PyBytes::new(py, &y.0)))?.extract()
        })
    }

    fn most_violated(&self, x: &usize, _: &Coded, w: &[f64]) -> Result<Coded> {
        self.searched("most_violated", *x, w)
    }

    fn most_violated_by_slack(&self, x: &usize, _: &Coded, w: &[f64]) -> Result<Coded> {
        let offered = self.call(*x, |calls| calls.getattr("by_slack")?.is_truthy())?;
        if !offered {
            return Err(Error::new(Code::Unsupported, "the oracle has no method most_violated_by_slack")
                .help("use ⟦rescale=margin⟧"));
        }
        self.searched("most_violated_by_slack", *x, w)
    }

    fn predict(&self, x: &usize, w: &[f64]) -> Result<Coded> {
        self.searched("predict", *x, w)
    }

    fn words(&self, y: &Coded) -> Option<String> {
        self.call(EXAMPLE.get(), |calls| calls.call_method1("words", (PyBytes::new(calls.py(), &y.0),))?.extract()).ok()
    }

    fn prepare(&self, w: &[f64]) -> Result<()> {
        self.call(0, |calls| {
            let array = frozen(calls.py(), w)?.unbind();
            *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Prepared { place: place_of(w), array });
            Ok(())
        })
    }
}

/// Examples as Python gives them.
#[derive(FromPyObject)]
pub(crate) struct Given {
    calls: Py<PyAny>,
    outputs: Vec<Vec<u8>>,
    dimension: usize,
    weights: Option<Vec<f64>>,
    /// The right outputs of further inputs, which are numbered after those of the examples.
    held_out: Vec<Vec<u8>>,
}

impl Given {
    /// Runs a job over the examples. An exception of the oracle is raised as it is, also by a job that goes on without it.
    fn job<T: Send>(
        self,
        py: Python<'_>,
        threads: usize,
        callback: Option<&Py<PyAny>>,
        work: impl FnOnce(&Examples<Called>, &mut dyn Observer, &Cancel) -> Result<T> + Send,
    ) -> PyResult<T> {
        let Given { calls, outputs, dimension, weights, held_out: _ } = self;
        let raised: Arc<Mutex<Option<(usize, PyErr)>>> = Arc::default();
        let interrupt = calls.clone_ref(py);
        let oracle = Called { calls, prepared: Mutex::default(), raised: Arc::clone(&raised) };
        let outcome = run::interruptible(py, (threads, callback), &interrupt, |observer, cancel| {
            let inputs = (0..outputs.len()).collect();
            let examples = Examples::new(oracle, dimension, inputs, outputs.into_iter().map(Coded).collect())?;
            let examples = match weights {
                Some(weights) => examples.with_weights(weights)?,
                None => examples,
            };
            work(&examples, observer, cancel)
        });
        let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        // After Ctrl-C or an exception of the callback, the one in the oracle is only the way to end it.
        let stopped = interrupt.bind(py).getattr("stopped")?.is_truthy()?;
        match (outcome, raised) {
            (_, Some((_, exception))) if !stopped => Err(exception),
            (outcome, _) => outcome,
        }
    }
}

/// Counts the searches of a run.
struct Counting<'a> {
    inner: &'a mut dyn Observer,
    calls: u64,
    seconds: f64,
}

impl Observer for Counting<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::Searches { calls, seconds, .. } = event {
            (self.calls, self.seconds) = (*calls, *seconds);
        }
        self.inner.report(event)
    }
}

/// The settings, with the name of the oracle.
fn named(text: &str, name: &str) -> Result<Settings> {
    let mut settings = settings::parse(text)?;
    if let TaskSettings::Own(own) = &mut settings.task {
        own.name = name.to_string();
    }
    Ok(settings)
}

/// Train a model of an oracle and its examples, from another one if it is given. Returns the model, the number of searches
/// and the seconds they took.
#[pyfunction]
#[pyo3(signature = (given, settings, name, threads = 1, callback = None, start = None))]
pub(crate) fn train_oracle(
    py: Python<'_>,
    mut given: Given,
    settings: &str,
    name: &str,
    threads: usize,
    callback: Option<Py<PyAny>>,
    start: Option<&Model>,
) -> PyResult<(Model, u64, f64)> {
    let settings = named(settings, name).or_raise()?;
    let start = start.map(|start| &start.model);
    let held_out: Vec<Coded> = std::mem::take(&mut given.held_out).into_iter().map(Coded).collect();
    let (trained, calls, seconds) = given.job(py, threads, callback.as_ref(), |examples, observer, cancel| {
        let start = start.map(|model| model.start_for(examples.data(), &settings)).transpose()?;
        let inputs: Vec<usize> = (examples.len()..).take(held_out.len()).collect();
        let measure = |model: &maxmargin::model::Model| {
            let loss = examples.mean_loss(model.scorer.weights()?, &inputs, &held_out);
            // The exception is raised in the end.
            loss.inspect_err(|_| cancel.abandon()).ok()
        };
        let held_out = HeldOut { measure: &measure, higher_is_better: false };
        let held_out = (!inputs.is_empty()).then_some(held_out);
        let mut counting = Counting { inner: observer, calls: 0, seconds: 0.0 };
        let trained = examples.train_from(&settings, start.as_ref(), held_out, &mut counting, cancel)?;
        Ok((trained, counting.calls, counting.seconds))
    })?;
    Ok((Model::without_reading(trained), calls, seconds))
}

/// Recompute objective, lower bound and gap of a model of an oracle. Raises an error if they do not hold.
#[pyfunction]
#[pyo3(signature = (given, model, threads = 1))]
pub(crate) fn verify_oracle(
    py: Python<'_>,
    given: Given,
    model: &Model,
    threads: usize,
) -> PyResult<(f64, Option<f64>, Option<f64>)> {
    let found = given.job(py, threads, None, |examples, _, cancel| examples.verify(&model.model, cancel))?;
    Ok((found.objective, found.lower_bound, found.gap()))
}

/// What is wrong with an oracle, or None.
#[pyfunction]
pub(crate) fn check_oracle(py: Python<'_>, given: Given) -> PyResult<Option<String>> {
    given.job(py, 1, None, |examples, _, _| match maxmargin::testing::check_oracle(examples) {
        Ok(()) => Ok(None),
        Err(_) if examples.oracle().raised.lock().is_ok_and(|raised| raised.is_some()) => {
            Err(Error::new(Code::BadOracle, "the oracle raised an exception"))
        }
        Err(wrong) => Ok(Some(wrong)),
    })
}
