//! The extension module `maxmargin._core`: the core's types and functions for Python, with one file per module of the
//! core, and the allocator.
//!
//! It contains no logic of its own. Arrays are shared, not copied. The interpreter lock is released while the core
//! works. Errors and panics become exceptions.

#[cfg(target_os = "linux")]
mod allocator;
mod clicks;
mod data;
mod dialect;
mod error;
mod items;
mod metric;
mod model;
mod online;
mod run;
mod select;
mod settings;
mod stream;
mod structured;
mod train;

use pyo3::prelude::*;
use std::ffi::OsString;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: allocator::Returning = allocator::Returning;

/// Run the command line and return its exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| maxmargin_cli::run(arguments))
}

#[pymodule]
#[pyo3(name = "_core")]
fn core_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MaxmarginError", py.get_type::<error::MaxmarginError>())?;
    module.add_class::<clicks::ClickLog>()?;
    module.add_class::<data::Dataset>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<online::Learner>()?;
    module.add_class::<run::Progress>()?;
    module.add_class::<run::Tried>()?;
    module.add_class::<stream::RowLearner>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(data::load, module)?)?;
    module.add_function(wrap_pyfunction!(data::sentences, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::_in_words, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::_names, module)?)?;
    module.add_function(wrap_pyfunction!(items::ranks, module)?)?;
    module.add_function(wrap_pyfunction!(items::resampled, module)?)?;
    module.add_function(wrap_pyfunction!(metric::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(run::_panic, module)?)?;
    module.add_function(wrap_pyfunction!(select::tune, module)?)?;
    module.add_function(wrap_pyfunction!(structured::check_oracle, module)?)?;
    module.add_function(wrap_pyfunction!(structured::train_oracle, module)?)?;
    module.add_function(wrap_pyfunction!(structured::verify_oracle, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    Ok(())
}
