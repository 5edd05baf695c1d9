//! Click logs: lists to learn from, and propensities.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::run::job;
use maxmargin::clicks::{
    Against, ClickLog as CoreLog, Curve, Estimator, Keyed, LogBuilder, Propensity, Rule, estimate, learning_lists,
    learning_pairs,
};
use maxmargin::error::{Code, Error};
use maxmargin_io::{ReadOptions, read_clicks};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A log of clicks.
#[pyclass(frozen, module = "maxmargin._core")]
pub(crate) struct ClickLog {
    log: CoreLog,
    notes: Vec<String>,
}

/// A position, its propensity with the ends of an interval, and how often something was shown and clicked there.
type Place = (u32, Option<f64>, Option<(f64, f64)>, u64, u64);

/// The choice of a name.
fn named<T: Copy>(argument: &str, name: &str, all: &[T], name_of: impl Fn(T) -> &'static str) -> PyResult<T> {
    all.iter().copied().find(|known| name_of(*known) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| name_of(*known)).collect();
        PyValueError::new_err(format!("{argument} is {name:?}, and must be one of {}", names.join(", ")))
    })
}

#[pymethods]
impl ClickLog {
    /// The log of events given as columns.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        names: (Vec<String>, Vec<String>, Vec<String>),
        positions: Vec<Option<i64>>,
        clicked: Vec<bool>,
        propensities: Option<Vec<f64>>,
    ) -> PyResult<ClickLog> {
        let (queries, sessions, items) = names;
        let log = job(py, 1, None, |_, _| {
            let mut builder = LogBuilder::default();
            for (at, &clicked) in clicked.iter().enumerate() {
                let in_row = |error: Error| {
                    let message = format!("{} in event {at}", error.raw_message());
                    Error::new(error.code(), message).help(error.raw_remedy().unwrap_or_default())
                };
                let position = positions[at].map(u64::try_from).transpose().map_err(|_| {
                    Error::new(Code::BadClickLog, format!("the position of event {at} is negative"))
                        .help("give the place of each result in its list, from 1")
                })?;
                let propensity = propensities.as_ref().map(|values| values[at]).filter(|value| !value.is_nan());
                let ids = [queries[at].as_bytes(), sessions[at].as_bytes(), items[at].as_bytes()];
                builder.push(ids, position, clicked, propensity).map_err(|bad| in_row(bad.error()))?;
            }
            builder.finish()
        })?;
        Ok(ClickLog { log, notes: Vec::new() })
    }

    /// The log of one or more files.
    #[staticmethod]
    fn read(py: Python<'_>, files: Vec<String>) -> PyResult<ClickLog> {
        let loaded = job(py, 1, None, |_, cancel| {
            read_clicks(&files, &ReadOptions { cancel: cancel.clone(), ..ReadOptions::default() })
        })?;
        Ok(ClickLog { log: loaded.log, notes: loaded.notes })
    }

    /// What a reader found.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Whether a click has a propensity of its own.
    #[getter]
    fn has_propensities(&self) -> bool {
        self.log.has_propensities()
    }

    /// The propensity of each position by a power law.
    fn power(&self, eta: f64) -> PyResult<Vec<Option<f64>>> {
        Ok(Curve::power(eta, self.log.positions()).or_raise()?.values)
    }

    /// The estimated propensity of each position, and the curve to learn with.
    #[pyo3(signature = (method, features = None, items = None))]
    fn estimate(
        &self,
        py: Python<'_>,
        method: &str,
        features: Option<&Dataset>,
        items: Option<Vec<String>>,
    ) -> PyResult<(Vec<Place>, Vec<Option<f64>>)> {
        let estimator = named("method", method, &Estimator::ALL, Estimator::name)?;
        job(py, 0, None, |_, cancel| {
            let data = features.map(|features| with_items(features, items)).transpose()?;
            let keyed = data.as_ref().map(Keyed::new).transpose()?;
            let found = estimate(&self.log, estimator, keyed.as_ref(), cancel)?;
            let places = found.positions.iter();
            let places =
                places.map(|place| (place.position, place.value, place.interval, place.shown, place.clicks)).collect();
            let curve = found.curve().map(|(curve, _)| curve.values).unwrap_or_default();
            Ok((places, curve))
        })
    }

    /// Lists of features with the weights of clicks as targets. Without a curve, the log gives the propensities.
    #[pyo3(signature = (features, items, curve, clip, against))]
    fn lists(
        &self,
        py: Python<'_>,
        features: &Dataset,
        items: Option<Vec<String>>,
        curve: Option<Vec<Option<f64>>>,
        clip: Option<f64>,
        against: &str,
    ) -> PyResult<Dataset> {
        let against: Against = named("against", against, &Against::ALL, Against::name)?;
        let propensity = curve.map_or(Propensity::Log, |values| Propensity::Curve(Curve { values }));
        let data = job(py, 0, None, |_, _| {
            let data = with_items(features, items)?;
            Ok(learning_lists(&self.log, &Keyed::new(&data)?, &propensity, clip, against)?.data)
        })?;
        Ok(Dataset { data, reading: features.reading.clone(), facts: None })
    }

    /// Features with the preferences of a rule as pairs.
    #[pyo3(signature = (features, items, rule, keep_order))]
    fn pairs(
        &self,
        py: Python<'_>,
        features: &Dataset,
        items: Option<Vec<String>>,
        rule: &str,
        keep_order: f64,
    ) -> PyResult<Dataset> {
        let rule: Rule = named("preferences", rule, &Rule::ALL, Rule::name)?;
        let data = job(py, 0, None, |_, _| {
            let data = with_items(features, items)?;
            Ok(learning_pairs(&self.log, &Keyed::new(&data)?, rule, keep_order)?.data)
        })?;
        Ok(Dataset { data, reading: features.reading.clone(), facts: None })
    }
}

/// The features with the name of the item of each row, given in the order of the rows as they came.
fn with_items(features: &Dataset, items: Option<Vec<String>>) -> maxmargin::Result<maxmargin::data::Dataset> {
    let data = features.data.clone();
    let Some(items) = items else { return Ok(data) };
    let names = (0..data.rows()).map(|row| items.get(data.input_row(row)).map_or("", String::as_str)).collect();
    data.with_row_ids(names)
}
