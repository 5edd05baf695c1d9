//! Long jobs: the core works on its own threads while the calling thread handles signals and calls back. Short jobs run
//! directly in the calling thread.

#[cfg(target_os = "linux")]
use crate::allocator::free_later;
use crate::error::exception;
use maxmargin::error::{Code, Error};
use maxmargin::run::{Cancel, Event, Observer};
use maxmargin::solve::relative_gap;
use maxmargin::wording::significant;
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::any::Any;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The time between two checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// On other systems, blocks are freed by the system's allocator.
#[cfg(not(target_os = "linux"))]
fn free_later() {}

/// Progress after a pass over the data, as given to a callback.
///
/// Examples
/// --------
///
///     >>> from maxmargin import SVMClassifier
///     >>> seen = []
///     >>> classifier = SVMClassifier(callback=lambda progress: seen.append(progress.iteration))
///     >>> _ = classifier.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
///     >>> len(seen) > 1 and seen == sorted(set(seen))
///     True
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct Progress {
    /// Number of passes so far.
    #[pyo3(get)]
    iteration: u64,
    /// The objective of the best model so far.
    #[pyo3(get)]
    objective: f64,
    /// The best lower bound so far.
    #[pyo3(get)]
    lower_bound: Option<f64>,
    /// (objective − lower bound) / objective.
    #[pyo3(get)]
    gap: Option<f64>,
    /// The measure of held-out data, if there are any.
    #[pyo3(get)]
    held_out: Option<f64>,
    weights: Vec<f64>,
}

#[pymethods]
impl Progress {
    /// The weights of that model.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.weights)
    }

    fn __repr__(&self) -> String {
        let gap = self.gap.map_or("None".to_string(), |gap| significant(gap, 3));
        format!("Progress(iteration={}, objective={}, gap={gap})", self.iteration, significant(self.objective, 6))
    }
}

/// Result of a tried setting, as given to a callback.
///
/// Examples
/// --------
///
///     >>> import numpy as np
///     >>> from maxmargin import SVMClassifier, tune
///     >>> X = np.random.default_rng(0).normal(size=(200, 3))
///     >>> told = lambda tried: print(tried.done, "of", tried.total, "C", tried.c)
///     >>> _ = tune(SVMClassifier(), X, X[:, 0] > 0, C=[0.1, 1.0], cv=2, callback=told)
///     1 of 2 C 0.1
///     2 of 2 C 1.0
#[pyclass(frozen, get_all, module = "maxmargin")]
pub(crate) struct Tried {
    /// Number of settings tried so far.
    done: usize,
    /// Total number of settings.
    total: usize,
    /// The weight of the loss.
    c: f64,
    /// The mean of the first metric over the folds.
    mean: f64,
}

#[pymethods]
impl Tried {
    fn __repr__(&self) -> String {
        let (c, mean) = (significant(self.c, 6), significant(self.mean, 6));
        format!("Tried(done={}, total={}, c={c}, mean={mean})", self.done, self.total)
    }
}

/// Messages from the job to the thread that may call Python.
enum Message {
    Progress(Progress),
    Tried(Tried),
}

/// Sends events and waits for the answer of the callback, so that a stop takes effect after exactly that pass.
struct Relay {
    events: Sender<Message>,
    answers: Receiver<bool>,
}

impl Observer for Relay {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let message = match event {
            Event::Pass { pass, objective, lower_bound, weights, held_out, .. } => Message::Progress(Progress {
                iteration: *pass,
                objective: *objective,
                held_out: *held_out,
                lower_bound: *lower_bound,
                gap: lower_bound.map(|bound| relative_gap(*objective, bound)),
                weights: weights.to_vec(),
            }),
            Event::Setting { c, quality, done, total, .. } => {
                Message::Tried(Tried { done: *done, total: *total, c: *c, mean: *quality })
            }
            _ => return ControlFlow::Continue(()),
        };
        let stop = self.events.send(message).is_err() || self.answers.recv().unwrap_or(true);
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Receives events that are not used. It keeps the channel open as long as the job runs.
struct Quiet(#[allow(dead_code)] Sender<Message>);

impl Observer for Quiet {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs a job on this many threads; 0 means all threads of the machine. Ctrl-C and exceptions of the callback end it.
/// If the callback returns true, the job stops with what it has.
pub(crate) fn job<T: Send>(
    py: Python<'_>,
    threads: usize,
    callback: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn Observer, &Cancel) -> maxmargin::Result<T> + Send,
) -> PyResult<T> {
    watched(py, threads, callback, &|| {}, work)
}

/// The same for a job that calls Python: the method `interrupt` of the given object ends calls that run while the job is
/// abandoned.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    (threads, callback): (usize, Option<&Py<PyAny>>),
    calls: &Py<PyAny>,
    work: impl FnOnce(&mut dyn Observer, &Cancel) -> maxmargin::Result<T> + Send,
) -> PyResult<T> {
    let interrupt = || {
        // There is no one to tell about an exception: another one is already on its way.
        let _ = Python::attach(|py| calls.call_method0(py, "interrupt"));
    };
    watched(py, threads, callback, &interrupt, work)
}

/// The same with an action for when the job is abandoned.
fn watched<T: Send>(
    py: Python<'_>,
    threads: usize,
    callback: Option<&Py<PyAny>>,
    interrupt: &(dyn Fn() + Sync),
    work: impl FnOnce(&mut dyn Observer, &Cancel) -> maxmargin::Result<T> + Send,
) -> PyResult<T> {
    let cancel = Cancel::new();
    let (events_in, events) = channel();
    let (answers_in, answers) = channel();
    let wanted = callback.is_some();
    let outcome = py.detach(move || {
        let cancel = &cancel;
        std::thread::scope(move |scope| {
            let worker = scope.spawn(move || {
                // More threads than cores would only wait for each other.
                let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
                let pool = ThreadPoolBuilder::new().num_threads(threads.min(cores)).build().map_err(|error| {
                    Error::new(Code::Internal, format!("the threads could not be started: {error}"))
                })?;
                let mut observer: Box<dyn Observer + Send> =
                    if wanted { Box::new(Relay { events: events_in, answers }) } else { Box::new(Quiet(events_in)) };
                pool.install(|| work(&mut *observer, cancel))
            });
            let mut raised: Option<PyErr> = None;
            // A cancelled call does not wait for memory to be released.
            let mut freeing_later = None;
            let mut give_up = || {
                freeing_later.get_or_insert_with(free_later);
                cancel.abandon();
                interrupt();
            };
            loop {
                match events.recv_timeout(LOOK) {
                    Ok(message) => {
                        let answer = if raised.is_some() { Ok(true) } else { ask(callback, message) };
                        let stop = answer.unwrap_or_else(|exception| {
                            raised.get_or_insert(exception);
                            give_up();
                            true
                        });
                        // If the job has already ended, the answer is not received.
                        let _ = answers_in.send(stop);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let (None, Err(exception)) = (&raised, Python::attach(|py| py.check_signals())) {
                            raised = Some(exception);
                            give_up();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            let outcome = worker.join();
            match raised {
                Some(exception) => {
                    // Dropped while blocks are freed later, because the job may have ended with a complete result.
                    drop(outcome);
                    Err(exception)
                }
                None => Ok(outcome),
            }
        })
    });
    outcome.and_then(answered)
}

/// The result of a job, or the exception for its error or panic.
fn answered<T>(outcome: std::thread::Result<maxmargin::Result<T>>) -> PyResult<T> {
    match outcome {
        Ok(result) => result.map_err(|error| exception(&error)),
        Err(panic) => Err(internal(&*panic)),
    }
}

/// The same on one thread, for jobs that report nothing.
pub(crate) fn quietly<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> maxmargin::Result<T> + Send,
) -> PyResult<T> {
    job(py, 1, None, |_, cancel| work(cancel))
}

/// A job with up to this many steps of about a nanosecond is short. Starting threads takes about as long, and ten times
/// as long if other programs keep all cores busy.
const BRIEF: u64 = 1 << 18;

thread_local! {
    /// The calling thread as a pool of one thread. `None` if it belongs to another pool.
    static ALONE: Option<ThreadPool> = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
}

/// Runs a job of about this many steps that reports nothing. A short job runs directly.
pub(crate) fn sized<T: Send>(
    py: Python<'_>,
    steps: u64,
    threads: usize,
    work: impl FnOnce(&Cancel) -> maxmargin::Result<T> + Send,
) -> PyResult<T> {
    if steps > BRIEF || ALONE.with(Option::is_none) {
        return job(py, threads, None, |_, cancel| work(cancel));
    }
    let alone = || catch_unwind(AssertUnwindSafe(|| work(&Cancel::new())));
    answered(py.detach(|| {
        ALONE.with(|pool| match pool {
            Some(pool) => pool.install(alone),
            None => alone(),
        })
    }))
}

fn ask(callback: Option<&Py<PyAny>>, message: Message) -> PyResult<bool> {
    let Some(callback) = callback else { return Ok(false) };
    Python::attach(|py| {
        py.check_signals()?;
        let answer = match message {
            Message::Progress(progress) => callback.call1(py, (progress,))?,
            Message::Tried(tried) => callback.call1(py, (tried,))?,
        };
        answer.bind(py).is_truthy()
    })
}

/// The exception for a panic of the core.
fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("{}: a defect of maxmargin, please report it: {said}", Code::Internal))
}

/// Panic within the core, for the test that this becomes an ordinary exception.
#[pyfunction]
pub(crate) fn _panic(py: Python<'_>) -> PyResult<()> {
    #[allow(clippy::panic)] // that is what is asked for
    quietly(py, |_| panic!("asked to"))
}

/// The exception for a value that is not one of the known ones.
pub(crate) fn unknown(name: &str, value: &str, known: &[&str]) -> PyErr {
    PyValueError::new_err(format!("{name} is '{value}', and must be one of {}", known.join(", ")))
}
