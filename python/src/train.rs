//! Training.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::model::Model;
use crate::{run, settings};
use pyo3::prelude::*;

/// Learns a model from data; see `maxmargin::train`.
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
    if data.data.matrix().bytes() > TRIM_FROM {
        return_freed_memory();
    }
    Model::trained(trained, data)
}

/// Past this size of the features what training freed is given back at once.
const TRIM_FROM: u64 = 16 << 20;

/// Gives back what the allocator keeps of the memory that threads of a job have freed: the threads of the next job may not
/// find it, and it would be taken twice.
fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes no pointer and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
