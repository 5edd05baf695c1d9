//! Data sets over numpy arrays, whose memory is shared, and over files.
//!
//! A shared array must not be written to while the core reads it. The Python package makes arrays contiguous and
//! converts them to one of the accepted types; other arrays are refused here.

use crate::dialect::Arguments;
use crate::error::OrRaise;
use crate::run::{job, quietly, sized, unknown};
use maxmargin::data::{
    Buffer, Csr, Dataset as CoreDataset, Dense, Matrix, Names, Outcome, Pairs, Starts, Targets, Value,
};
use maxmargin::error::{Code, Error};
use maxmargin::parallel;
use maxmargin::run::Cancel;
use maxmargin::settings::Task;
use maxmargin::wording::render;
use maxmargin_io::{
    Facts, Format, Gathered, Loaded, ReadOptions, ReadSettings, Reading, Timed, gather, read_sentences, scoring_options,
};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Features with targets, queries, weights and comparisons, in memory or mapped from a file.
///
/// Examples
/// --------
///
///     >>> import numpy as np
///     >>> from maxmargin import Dataset
///     >>> data = Dataset.dense(np.eye(3)).with_targets(np.array([1.0, 0.0, 1.0]))
///     >>> data
///     <maxmargin.Dataset: 3 rows × 3 features, dense, f64>
///     >>> data.targets
///     array([1., 0., 1.])
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct Dataset {
    pub(crate) data: CoreDataset,
    /// What a model stores about how the data were read.
    pub(crate) reading: String,
    /// The findings about the file, if the data come from one.
    pub(crate) facts: Option<Facts>,
}

/// Where the labels of each row start, the labels of all rows, and their names.
type LabelSets<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Vec<String>);

/// The numbers of an array, shared. They are stored as `T` and read as `U`, with the same bits.
fn shared<T: Element, U: Send + Sync + 'static, D: numpy::ndarray::Dimension>(
    name: &str,
    array: &Bound<'_, numpy::PyArray<T, D>>,
) -> PyResult<Buffer<U>> {
    const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
    let start = array.data();
    if !array.is_c_contiguous() || !start.is_aligned() {
        return Err(PyTypeError::new_err(format!("{name} must be a C-contiguous, aligned array")));
    }
    let owner: Arc<Py<PyAny>> = Arc::new(array.clone().into_any().unbind());
    // SAFETY: the array is contiguous and aligned, has that many elements, and its owner keeps it alive. The caller
    // must ensure that it is not written to. `U` has the size and alignment of `T` and accepts any bits: the types used
    // here are numbers.
    Ok(unsafe { Buffer::from_raw(start.cast_const().cast::<U>(), array.len(), owner) })
}

/// The error for an array of the wrong type.
fn wrong_type(name: &str, array: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let found = array.getattr("dtype").map_or_else(|_| array.get_type().to_string(), |dtype| dtype.to_string());
    let dimensions = array.getattr("ndim").map_or_else(|_| String::new(), |count| format!(" with ndim {count}"));
    PyTypeError::new_err(format!("{name} must be {wanted}, and is of {found}{dimensions}"))
}

/// A one-dimensional array of numbers of one type.
pub(crate) fn numbers<T: Element + Sync + 'static>(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Buffer<T>> {
    let array = array
        .cast::<PyArray1<T>>()
        .map_err(|_| wrong_type(name, array, &format!("a one-dimensional array of {}", std::any::type_name::<T>())))?;
    shared(name, array)
}

fn dense<T: Value + Element>(array: &Bound<'_, PyArray2<T>>, checked: bool) -> PyResult<Dense<T>> {
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    let values = shared("X", array)?;
    if !checked {
        all_finite(array.py(), "X", &values)?;
    }
    Dense::new(values, rows, columns).or_raise()
}

fn sparse<T: Value + Element>(
    starts: Starts,
    indices: Buffer<u32>,
    values: &Bound<'_, PyArray1<T>>,
    columns: usize,
    checked: bool,
) -> PyResult<Csr<u32, T>> {
    let py = values.py();
    let values: Buffer<T> = shared("X.data", values)?;
    if !checked {
        all_finite(py, "X.data", &values)?;
    }
    sized(py, values.len() as u64, 0, |_| Csr::new(starts, indices, values, columns))
}

/// Number of features that are checked at a time for being finite.
const LOOKED_AT: usize = 1 << 16;

/// Returns an error if a feature is not finite.
fn all_finite<T: Value>(py: Python<'_>, name: &str, values: &[T]) -> PyResult<()> {
    let found = sized(py, values.len() as u64, 0, |cancel| {
        // There is no early exit within a chunk, so that one instruction checks many values.
        let is_bad = |chunk: &[T]| chunk.iter().fold(false, |bad, value| bad | !value.wide().is_finite());
        let chunks: Vec<&[T]> = values.chunks(LOOKED_AT).collect();
        let bad = parallel::find_first(chunks.len(), |chunk| {
            (cancel.is_raised() || is_bad(chunks[chunk])).then_some(chunks[chunk])
        });
        cancel.check()?;
        Ok(bad.and_then(|chunk| chunk.iter().map(|value| value.wide()).find(|value| !value.is_finite())))
    })?;
    match found {
        Some(value) if value.is_nan() => Err(PyValueError::new_err(format!("{name} contains NaN"))),
        Some(_) => Err(PyValueError::new_err(format!("{name} contains infinity"))),
        None => Ok(()),
    }
}

/// Returns an error if a weight is negative or not finite.
fn all_weights(weights: &[f64]) -> PyResult<()> {
    match weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
        Some(weight) => Err(PyValueError::new_err(format!(
            "sample_weight holds {weight}, and must be finite numbers that are not negative"
        ))),
        None => Ok(()),
    }
}

/// Returns an error if the number of values is wrong.
fn one_each(name: &str, found: usize, wanted: usize, what: &str) -> PyResult<()> {
    if found == wanted {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name} has {found} values, and there are {wanted} {what}")))
}

/// Returns an error if a position is out of range.
fn all_below(name: &str, positions: impl IntoIterator<Item = usize>, end: usize) -> PyResult<()> {
    match positions.into_iter().find(|&position| position >= end) {
        Some(position) => Err(PyValueError::new_err(format!("{name} holds {position}, and must be below {end}"))),
        None => Ok(()),
    }
}

/// Positions of 32 bits as `usize`.
fn wide(positions: &[u32]) -> impl Iterator<Item = usize> {
    positions.iter().map(|&position| position as usize)
}

fn task_of(name: &str) -> PyResult<Task> {
    let names = Task::ALL.map(Task::name);
    Task::ALL.into_iter().find(|task| task.name() == name).ok_or_else(|| unknown("task", name, &names))
}

fn names_of(names: Vec<String>) -> Names {
    names.iter().map(String::as_str).collect()
}

impl Dataset {
    fn of_arrays(data: CoreDataset) -> PyResult<Dataset> {
        let double = matches!(data.matrix(), Matrix::DenseF64(_) | Matrix::Csr16F64(_) | Matrix::Csr32F64(_));
        let reading = Reading::of_arrays(data.feature_names().is_some(), double).to_text().or_raise()?;
        Ok(Dataset { data, reading, facts: None })
    }

    fn of_matrix(matrix: Matrix) -> PyResult<Dataset> {
        Dataset::of_arrays(CoreDataset::new(matrix, Targets::Absent).or_raise()?)
    }

    /// The same features with other additional data. The information about how a file was read stays valid.
    fn changed(&self, change: impl FnOnce(CoreDataset) -> maxmargin::Result<CoreDataset>) -> PyResult<Dataset> {
        let data = change(self.data.clone()).or_raise()?;
        match &self.facts {
            Some(facts) => Ok(Dataset { data, reading: self.reading.clone(), facts: Some(facts.clone()) }),
            None => Dataset::of_arrays(data),
        }
    }

    /// Returns an error if a mapped file has changed since it was opened.
    pub(crate) fn unchanged(&self) -> maxmargin::Result<()> {
        self.facts.as_ref().map_or(Ok(()), |facts| facts.stamps.check())
    }

    /// Whether it is based on arrays, which have all columns, and not on a file.
    pub(crate) fn is_of_arrays(&self) -> bool {
        self.facts.is_none()
    }

    /// Refuses to add values to rows that were reordered by queries, because they would go to the wrong rows.
    fn as_given(&self, name: &str) -> PyResult<()> {
        match self.data.input_order() {
            None => Ok(()),
            Some(_) => Err(PyValueError::new_err(format!(
                "{name} must be added before qid, which moves the rows of a query together"
            ))),
        }
    }

    /// One number per row, in the order in which the rows were given.
    pub(crate) fn in_given_order<'py, T: Element + Clone>(
        &self,
        py: Python<'py>,
        stored: Vec<T>,
    ) -> Bound<'py, PyArray1<T>> {
        self.data.to_input_order(stored).into_pyarray(py)
    }
}

#[pymethods]
impl Dataset {
    /// Rows of a C-contiguous array of f32 or f64, shared. Set `checked` if all values are known to be finite.
    #[staticmethod]
    #[pyo3(signature = (array, *, checked = false))]
    fn dense(array: &Bound<'_, PyAny>, checked: bool) -> PyResult<Dataset> {
        if let Ok(array) = array.cast::<PyArray2<f32>>() {
            return Dataset::of_matrix(Matrix::DenseF32(dense(array, checked)?));
        }
        if let Ok(array) = array.cast::<PyArray2<f64>>() {
            return Dataset::of_matrix(Matrix::DenseF64(dense(array, checked)?));
        }
        Err(wrong_type("X", array, "a two-dimensional array of float32 or float64"))
    }

    /// Compressed sparse rows, shared: 32-bit indices, starts of 32 or 64 bits. Set `checked` if all values are known
    /// to be finite.
    #[staticmethod]
    #[pyo3(signature = (starts, indices, values, columns, *, checked = false))]
    fn sparse(
        starts: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        columns: usize,
        checked: bool,
    ) -> PyResult<Dataset> {
        // Negative numbers are read as very large ones here, and are refused as such.
        let starts = match starts.cast::<PyArray1<i32>>() {
            Ok(starts) => Starts::Narrow(shared("X.indptr", starts)?),
            Err(_) => {
                let starts =
                    starts.cast::<PyArray1<i64>>().map_err(|_| wrong_type("X.indptr", starts, "int32 or int64"))?;
                Starts::Wide(shared("X.indptr", starts)?)
            }
        };
        let indices: Buffer<u32> = shared(
            "X.indices",
            indices.cast::<PyArray1<i32>>().map_err(|_| wrong_type("X.indices", indices, "int32"))?,
        )?;
        let matrix = if let Ok(values) = values.cast::<PyArray1<f32>>() {
            Matrix::Csr32F32(sparse(starts, indices, values, columns, checked)?)
        } else {
            let values = values
                .cast::<PyArray1<f64>>()
                .map_err(|_| wrong_type("X.data", values, "a one-dimensional array of float32 or float64"))?;
            Matrix::Csr32F64(sparse(starts, indices, values, columns, checked)?)
        };
        Dataset::of_matrix(matrix)
    }

    /// The same data with a number for each row.
    fn with_targets(&self, py: Python<'_>, targets: &Bound<'_, PyAny>) -> PyResult<Dataset> {
        let targets = numbers::<f64>("y", targets)?;
        one_each("y", targets.len(), self.data.rows(), "rows")?;
        all_finite(py, "y", &targets)?;
        self.as_given("y")?;
        self.changed(|data| data.with_targets(Targets::Real(targets)))
    }

    /// The same data with a label for each row, as a position in the sorted names.
    fn with_labels(&self, codes: &Bound<'_, PyAny>, names: Vec<String>) -> PyResult<Dataset> {
        let codes = numbers::<u32>("y", codes)?;
        one_each("y", codes.len(), self.data.rows(), "rows")?;
        all_below("y", wide(&codes), names.len())?;
        if !names.is_sorted_by(|one, next| one.as_bytes() < next.as_bytes()) {
            return Err(PyValueError::new_err(
                "names must be distinct and in sorted order: codes are positions among them",
            ));
        }
        self.as_given("y")?;
        self.changed(|data| data.with_targets(Targets::Labels { names: names_of(names), codes }))
    }

    /// The same data with a set of labels for each row: where those of each row start, and positions in the names, which
    /// increase within a row.
    fn with_label_sets(
        &self,
        starts: &Bound<'_, PyAny>,
        codes: &Bound<'_, PyAny>,
        names: Vec<String>,
    ) -> PyResult<Dataset> {
        let (starts, codes) = (numbers::<u64>("starts", starts)?, numbers::<u32>("codes", codes)?);
        one_each("y", starts.len().saturating_sub(1), self.data.rows(), "rows")?;
        all_below("y", wide(&codes), names.len())?;
        let whole = starts.first() == Some(&0) && starts.last() == Some(&(codes.len() as u64)) && starts.is_sorted();
        let rising =
            |bounds: &[u64]| codes[bounds[0] as usize..bounds[1] as usize].is_sorted_by(|one, next| one < next);
        if !whole || !starts.windows(2).all(rising) {
            return Err(PyValueError::new_err("y does not fit together: labels must increase within a row"));
        }
        self.as_given("y")?;
        self.changed(|data| data.with_targets(Targets::Sets { names: names_of(names), starts, codes }))
    }

    /// The same data with a weight for each row.
    fn with_weights(&self, weights: &Bound<'_, PyAny>) -> PyResult<Dataset> {
        let weights = numbers::<f64>("sample_weight", weights)?;
        one_each("sample_weight", weights.len(), self.data.rows(), "rows")?;
        all_weights(&weights)?;
        self.as_given("sample_weight")?;
        self.changed(|data| data.with_weights(weights))
    }

    /// The same data with the query of each row, as a position in the names. Rows of a query are moved together.
    fn with_groups(&self, py: Python<'_>, codes: &Bound<'_, PyAny>, names: Vec<String>) -> PyResult<Dataset> {
        let codes = numbers::<u32>("qid", codes)?;
        one_each("qid", codes.len(), self.data.rows(), "rows")?;
        all_below("qid", wide(&codes), names.len())?;
        self.as_given("qid")?;
        let steps = self.data.matrix().entries();
        let data = sized(py, steps, 0, |_| self.data.clone().with_group_keys(&codes, names_of(names)))?;
        self.changed(|_| Ok(data))
    }

    /// The same data with comparisons of two rows. Outcomes are -1 (left is better), 0 (a tie) or 1.
    #[pyo3(signature = (left, right, outcomes, weights = None))]
    fn with_pairs(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        outcomes: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Dataset> {
        let (left, right) = (numbers::<u32>("left", left)?, numbers::<u32>("right", right)?);
        let outcomes: Vec<Outcome> =
            numbers::<i8>("y", outcomes)?.iter().map(|&sign| Outcome::of_sign(sign.signum())).collect();
        let weights = weights.map(|weights| numbers::<f64>("sample_weight", weights)).transpose()?;
        one_each("right", right.len(), left.len(), "pairs")?;
        one_each("y", outcomes.len(), left.len(), "pairs")?;
        if let Some(weights) = &weights {
            one_each("sample_weight", weights.len(), left.len(), "pairs")?;
            all_weights(weights)?;
        }
        all_below("left", wide(&left), self.data.rows())?;
        all_below("right", wide(&right), self.data.rows())?;
        self.as_given("pairs")?;
        self.changed(|data| {
            let pairs = Pairs::new(left, right)?.with_outcomes(outcomes)?;
            let pairs = match weights {
                Some(weights) => pairs.with_weights(weights)?,
                None => pairs,
            };
            data.with_pairs(pairs)
        })
    }

    /// The same data with a name for each column.
    fn with_feature_names(&self, names: Vec<String>) -> PyResult<Dataset> {
        one_each("names", names.len(), self.data.cols(), "columns")?;
        self.changed(|data| data.with_feature_names(names_of(names)))
    }

    /// Number of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.data.rows(), self.data.cols())
    }

    /// How the features are stored.
    #[getter]
    fn layout(&self) -> &'static str {
        self.data.matrix().layout()
    }

    /// Size of the features in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.data.matrix().bytes()
    }

    /// Names of the columns, or None.
    #[getter]
    fn feature_names(&self) -> Option<Vec<String>> {
        self.data.feature_names().map(|names| names.iter().map(|name| name.into_owned()).collect())
    }

    /// Ids of the rows, or None.
    #[getter]
    fn row_ids(&self) -> Option<Vec<String>> {
        let ids: Option<Vec<String>> = self.data.row_ids().map(|ids| ids.iter().map(|id| id.into_owned()).collect());
        ids.map(|ids| self.data.to_input_order(ids))
    }

    /// Number of queries, or None.
    #[getter]
    fn n_queries(&self) -> Option<usize> {
        self.data.groups().map(maxmargin::data::Groups::len)
    }

    /// Number of comparisons, or None.
    #[getter]
    fn n_pairs(&self) -> Option<usize> {
        self.data.pairs().map(Pairs::len)
    }

    /// Target of each row: numbers, labels, or None.
    #[getter]
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.data.targets() {
            Targets::Real(targets) => Some(self.in_given_order(py, targets.to_vec()).into_any()),
            Targets::Labels { names, codes } => {
                let labels: Vec<String> = codes.iter().map(|&code| names.get(code as usize).into_owned()).collect();
                Some(self.data.to_input_order(labels).into_pyobject(py)?.into_any())
            }
            Targets::Absent | Targets::Sets { .. } => None,
        })
    }

    /// Sets of labels in the given order: where those of each row start, positions in the names, and the names; or None.
    #[getter]
    fn label_sets<'py>(&self, py: Python<'py>) -> Option<LabelSets<'py>> {
        let Targets::Sets { names, starts, codes } = self.data.targets() else { return None };
        let own: Vec<&[u32]> = starts.windows(2).map(|two| &codes[two[0] as usize..two[1] as usize]).collect();
        let own = self.data.to_input_order(own);
        let ends = own.iter().scan(0, |end, own| {
            *end += own.len() as u64;
            Some(*end)
        });
        let starts: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let names = names.iter().map(|name| name.into_owned()).collect();
        Some((starts.into_pyarray(py), own.concat().into_pyarray(py), names))
    }

    /// Query of each row as a position in the list of queries, or None.
    #[getter]
    fn qid<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
        self.data.groups().map(|groups| {
            let codes = groups.ranges().enumerate().flat_map(|(group, rows)| rows.map(move |_| group as u32)).collect();
            self.in_given_order(py, codes)
        })
    }

    /// Weight of each row, or None.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.data.weights().map(|weights| self.in_given_order(py, weights.to_vec()))
    }

    /// The comparisons: left rows, right rows, outcomes.
    #[getter]
    #[allow(clippy::type_complexity)] // a tuple of arrays is what numpy users unpack
    fn pairs<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i8>>)> {
        self.data.pairs().map(|pairs| {
            let signs: Vec<i8> = (0..pairs.len()).map(|pair| pairs.outcome(pair).sign()).collect();
            (pairs.left().to_vec().into_pyarray(py), pairs.right().to_vec().into_pyarray(py), signs.into_pyarray(py))
        })
    }

    /// Weighted variance of all feature values, zeros included.
    fn variance(&self, py: Python<'_>) -> PyResult<f64> {
        sized(py, self.data.matrix().entries(), 0, |cancel| self.data.variance(cancel))
    }

    /// Hash over all values. Certificates contain it.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<u64> {
        sized(py, self.data.matrix().entries(), 0, |_| self.data.hash())
    }

    /// What the reader found in the file, in short phrases.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.facts.as_ref().map_or_else(Vec::new, |facts| {
            facts.notes.iter().map(|note| render(note, &Arguments { reading: true }).into_owned()).collect()
        })
    }

    /// Save the data. The extension decides the format (.mmd is the cache).
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        let file = path.display().to_string();
        let loaded = Loaded { data: self.data.clone(), facts: self.facts.clone().unwrap_or_default() };
        job(py, 0, None, |_, cancel| {
            let format = maxmargin_io::output_format(&file, None)?;
            maxmargin_io::write(&loaded, &file, format, cancel)
        })
    }

    fn __len__(&self) -> usize {
        self.data.rows()
    }

    fn __repr__(&self) -> String {
        let mut parts = vec![format!("{} rows × {} features, {}", self.data.rows(), self.data.cols(), self.layout())];
        parts.extend(self.n_queries().map(|queries| format!("{queries} queries")));
        parts.extend(self.n_pairs().map(|pairs| format!("{pairs} pairs")));
        parts.extend(self.data.weights().map(|_| "weighted".to_string()));
        format!("<maxmargin.Dataset: {}>", parts.join(", "))
    }
}

/// Read data in the same way as the command. The format is detected by content and name.
#[pyfunction]
#[pyo3(signature = (path, task, items = None, settings = "{}"))]
pub(crate) fn load(
    py: Python<'_>,
    path: std::path::PathBuf,
    task: &str,
    items: Option<std::path::PathBuf>,
    settings: &str,
) -> PyResult<Dataset> {
    let task = task_of(task)?;
    let (file, items) = (path.display().to_string(), items.map(|items| items.display().to_string()));
    let settings: ReadSettings = serde_json::from_str(settings)
        .map_err(|error| {
            Error::new(Code::BadSetting, format!("the settings for reading the data are not valid: {error}"))
        })
        .or_raise()?;
    let gathered = quietly(py, |cancel: &Cancel| {
        let options = settings.options(None, cancel)?;
        gather(&file, items.as_deref(), &options, settings.one_group, task.profile().input)
    })?;
    let reading = gathered.reading(settings, None).to_text().or_raise()?;
    let facts = gathered.features().loaded.facts.clone();
    Ok(Dataset { data: gathered.timed.loaded.data, reading, facts: Some(facts) })
}

/// Read trees or, for a model, sentences; one in each text. The error names the text as a line of X.
#[pyfunction]
#[pyo3(signature = (texts, model, settings))]
pub(crate) fn sentences(
    py: Python<'_>,
    texts: Vec<String>,
    model: Option<&crate::model::Model>,
    settings: &str,
) -> PyResult<Dataset> {
    let settings: ReadSettings = serde_json::from_str(settings)
        .map_err(|error| {
            Error::new(Code::BadSetting, format!("the settings for reading the data are not valid: {error}"))
        })
        .or_raise()?;
    // Of trees the reader says so, with the place.
    if model.is_some() && texts.iter().any(|text| text.trim().is_empty()) {
        return Err(PyValueError::new_err("X holds an empty sentence: leave it out"));
    }
    let (gathered, settings) = quietly(py, |cancel: &Cancel| {
        let options = match model {
            Some(model) => ReadOptions {
                max_words: None,
                ..scoring_options(&model.model, &settings, Some(Format::Trees), cancel)?.0
            },
            None => settings.options(Some(Format::Trees), cancel)?,
        };
        let loaded = read_sentences("X", &texts.join("\n"), &options)?;
        Ok((Gathered { timed: Timed { loaded, seconds: 0.0 }, items: None }, settings))
    })?;
    let reading = gathered.reading(settings, None).to_text().or_raise()?;
    let facts = gathered.timed.loaded.facts;
    let left_out: u64 = facts.blank_lines.iter().flat_map(|gaps| gaps.iter()).map(|&gap| u64::from(gap)).sum();
    let found = gathered.timed.loaded.data.groups().map_or(0, maxmargin::data::Groups::len) as u64 + left_out;
    if found != texts.len() as u64 {
        let message = format!("X has {} texts, and the number of sentences in them is {found}", texts.len());
        return Err(PyValueError::new_err(format!("{message}: give one in each")));
    }
    Ok(Dataset { data: gathered.timed.loaded.data, reading, facts: Some(facts) })
}
