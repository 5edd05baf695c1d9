//! Settings as JSON: the names and values of model files, laid over the defaults of their task.

use crate::error::OrRaise;
use maxmargin::error::{Code, Error, Result};
use maxmargin::settings::{Method, Settings, Solver, Task};
use pyo3::prelude::*;
use serde_json::Value;

/// The settings that an object of JSON stands for.
pub(crate) fn parse(text: &str) -> Result<Settings> {
    let bad = |error: serde_json::Error| Error::new(Code::BadSetting, error.to_string());
    let given: Value = serde_json::from_str(text).map_err(bad)?;
    let part = |name: &str| given.get(name).cloned().unwrap_or(Value::Null);
    let task: Task = serde_json::from_value(part("task")).map_err(bad)?;
    let mut settings = Settings::new(task);
    if let Some(method) = serde_json::from_value::<Option<Method>>(part("method")).map_err(bad)? {
        settings = settings.with_method(method);
    }
    if let Some(solver) = serde_json::from_value::<Option<Solver>>(part("solver")).map_err(bad)? {
        settings = settings.with_solver(solver);
    }
    let mut whole = serde_json::to_value(&settings).map_err(bad)?;
    lay_over(&mut whole, given);
    let cache = whole.get_mut("kernel").and_then(Value::as_object_mut).and_then(|kernel| kernel.remove("cache"));
    let mut settings: Settings = serde_json::from_value(whole).map_err(bad)?;
    // It is no part of a model, and not in its files.
    settings.kernel.cache = cache.and_then(|bytes| bytes.as_u64());
    settings.validate()?;
    Ok(settings)
}

/// Objects are merged, all else is replaced.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        // C, lambda and nu are one or the other.
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                match below.get_mut(&name) {
                    Some(known) if name != "regularisation" && name != "class-weight" => lay_over(known, value),
                    _ => drop(below.insert(name, value)),
                }
            }
        }
        (below, above) => *below = above,
    }
}

/// All settings as a model keeps them.
#[pyfunction]
pub(crate) fn resolved(settings: &str) -> PyResult<String> {
    let settings = parse(settings).or_raise()?;
    serde_json::to_string(&settings).map_err(|error| Error::new(Code::Internal, error.to_string())).or_raise()
}
