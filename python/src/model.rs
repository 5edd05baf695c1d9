//! Models: predictions, certificates and files.

use crate::data::Dataset;
use crate::error::OrRaise;
use crate::run::{job, quietly, sized};
use maxmargin::data::{Labels, bracketed};
use maxmargin::error::{Code, Error};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model as CoreModel, Predictions, Scorer};
use maxmargin::run::Cancel;
use maxmargin::settings::{ClassifySettings, Solver, TaskSettings};
use maxmargin::solve::{Stop, Witness};
use maxmargin::task::Multiclass;
use maxmargin::train::Trained;
use maxmargin::wording::significant;
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::path::PathBuf;

/// A trained model.
///
/// Examples
/// --------
///
///     >>> from maxmargin import Model, SVMClassifier
///     >>> model = SVMClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).model_
///     >>> model.task, model.n_features, model.converged
///     ('classify', 1, True)
///     >>> Model.from_bytes(model.to_bytes()).objective == model.objective
///     True
#[pyclass(frozen, module = "maxmargin")]
pub(crate) struct Model {
    pub(crate) model: CoreModel,
    /// How the training ended, if this process trained it.
    stop: Option<Stop>,
    learned_nothing: bool,
    /// Pass, objective, bound and seconds.
    trace: Vec<(u64, f64, Option<f64>, f64)>,
}

/// A margin at least this close to 1 counts as reached.
const REACHED: f64 = 1e-9;

/// The positions of stored rows in the order in which they were given.
fn in_given_order(data: &maxmargin::data::Dataset, rows: Vec<usize>) -> Vec<i64> {
    let stored = data.to_input_order((0..data.rows()).collect());
    let mut given = vec![0; stored.len()];
    stored.into_iter().enumerate().for_each(|(position, row)| given[row] = position as i64);
    rows.into_iter().map(|row| given[row]).collect()
}

fn positions(taken: impl Iterator<Item = bool>) -> Vec<i64> {
    taken.enumerate().filter(|(_, taken)| *taken).map(|(position, _)| position as i64).collect()
}

/// Whether all classes are told apart in one problem.
fn one_problem(settings: &ClassifySettings) -> bool {
    matches!(settings.multiclass, None | Some(Multiclass::Joint | Multiclass::WestonWatkins))
}

/// Some numbers for each row as a table, with the rows in the order in which they were given.
fn table<'py>(
    py: Python<'py>,
    data: &Dataset,
    stored: &[f64],
    columns: usize,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let rows = data.data.to_input_order(stored.chunks_exact(columns).collect());
    Ok(PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), columns])?.to_dyn().clone())
}

impl Model {
    pub(crate) fn trained(trained: Trained, data: &Dataset) -> PyResult<Model> {
        data.unchanged().or_raise()?;
        let mut trained = Model::without_reading(trained);
        trained.model.reading = Some(data.reading.clone());
        Ok(trained)
    }

    /// A trained model whose data were not read from tables or arrays.
    pub(crate) fn without_reading(trained: Trained) -> Model {
        let Trained { model, stop, trace, learned_nothing, .. } = trained;
        let trace = trace.iter().map(|point| (point.pass, point.objective, point.lower_bound, point.seconds)).collect();
        Model { model, stop: Some(stop), learned_nothing, trace }
    }

    /// Numbers of all scores, those of one score after those of another: shape (k, n), or (n,) for one score.
    fn by_output<'py>(&self, py: Python<'py>, numbers: &[f64]) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let outputs = self.model.scorer.outputs();
        if outputs == 1 {
            return Ok(numbers.to_vec().into_pyarray(py).to_dyn().clone());
        }
        let of = |output: usize| numbers.iter().skip(output).step_by(outputs).copied();
        let rows: Vec<f64> = (0..outputs).flat_map(of).collect();
        Ok(PyArray1::from_vec(py, rows).reshape([outputs, numbers.len() / outputs])?.to_dyn().clone())
    }

    /// Approximate number of steps for scoring the data.
    fn steps(&self, data: &Dataset) -> u64 {
        let (rows, columns) = (data.data.rows() as u64 + 1, data.data.cols() as u64);
        match &self.model.scorer {
            Scorer::Linear { .. } => data.data.matrix().entries() + columns,
            Scorer::Expansion(expansion) => rows * columns * expansion.count() as u64,
            Scorer::Mapped(_) => u64::MAX,
        }
    }

    /// Refuses data whose columns are not those of the model: by name if both have names, by number if all columns are
    /// given.
    fn check_columns(&self, data: &Dataset) -> maxmargin::Result<()> {
        let (features, columns) = (self.model.features(), data.data.cols());
        let named = data.data.feature_names();
        if let (Some(own), Some(found)) = (&self.model.feature_names, named) {
            let differs = own.iter().zip(found.iter()).find(|(own, found)| own != found);
            if let Some((own, found)) = differs {
                let message = format!("the model was trained with feature `{own}` where the data have `{found}`");
                return Err(Error::new(Code::FeatureNames, message)
                    .help("give the columns that it was trained with, in the same order"));
            }
        }
        if columns != features && (named.is_some() || data.is_of_arrays()) && data.data.matrix().is_dense() {
            let message = format!("the data have {columns} columns, and the model was trained with {features}");
            return Err(Error::new(Code::FeatureNames, message)
                .help("give the columns that it was trained with, in the same order"));
        }
        Ok(())
    }

    /// The rows that a classifier's loss touches: those that just reach or violate the margin, or all of them.
    fn violating(&self, data: &Dataset, cancel: &Cancel) -> maxmargin::Result<Option<Vec<i64>>> {
        let TaskSettings::Classify(settings) = &self.model.settings.task else { return Ok(None) };
        let margins: Vec<f64> = match (self.model.decoder.classes(), self.model.decoder.labels()) {
            (Some(classes), _) => {
                let (scores, signs) =
                    (self.model.scores_until(&data.data, cancel)?, classes.signs(data.data.targets())?);
                scores.iter().zip(signs).map(|(score, sign)| f64::from(sign) * score).collect()
            }
            // In one problem over all classes, a row's margin is to the best of the other classes.
            (None, Some(labels)) if one_problem(settings) => {
                let (scores, codes) =
                    (self.model.scores_until(&data.data, cancel)?, labels.codes(data.data.targets())?);
                let margin = |(own, code): (&[f64], u32)| {
                    let others = own.iter().enumerate().filter(|(class, _)| *class != code as usize);
                    own[code as usize] - others.map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max)
                };
                scores.chunks_exact(labels.len()).zip(codes).map(margin).collect()
            }
            _ => return Ok(None),
        };
        let counts = |row: usize| data.data.weights().is_none_or(|weights| weights[row] > 0.0);
        let all = self.model.settings.loss == Loss::Logistic;
        let reached = |row: usize| all || margins[row] <= 1.0 + REACHED;
        let taken: Vec<bool> = (0..margins.len()).map(|row| counts(row) && reached(row)).collect();
        Ok(Some(positions(data.data.to_input_order(taken).into_iter())))
    }

    /// Number of scores of a row.
    fn outputs(&self) -> usize {
        let labels = self.model.decoder.labels().or(self.model.decoder.label_sets().map(|(labels, _)| labels));
        labels.map_or(self.model.scorer.outputs(), Labels::len)
    }

    pub(crate) fn of(model: CoreModel) -> Model {
        Model { model, stop: None, learned_nothing: false, trace: Vec::new() }
    }
}

#[pymethods]
impl Model {
    /// Read a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
        let file = path.display().to_string();
        quietly(py, |_| maxmargin_io::load_model(&file)).map(Model::of)
    }

    /// Read a model from the content of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, content: &[u8]) -> PyResult<Model> {
        sized(py, content.len() as u64, 1, |_| CoreModel::from_bytes(content)).map(Model::of)
    }

    /// Save a model file, completely or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let file = path.display().to_string();
        quietly(py, |_| maxmargin_io::save_model(&self.model, &file)).map(drop)
    }

    /// The content of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = quietly(py, |_| self.model.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The same model without the proof of the lower bound, which saves space.
    fn without_witness(&self) -> Model {
        Model::of(CoreModel { witness: None, ..self.model.clone() })
    }

    /// Pickles and copies hold the content of a model file.
    fn __reduce__<'py>(slf: &Bound<'py, Model>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        Ok((py.get_type::<Model>().getattr("from_bytes")?, (slf.get().to_bytes(py)?,)))
    }

    /// Score of each row, in the given order; shape (rows, k) if a row has k scores.
    #[pyo3(signature = (data, threads = 0))]
    fn scores<'py>(&self, py: Python<'py>, data: &Dataset, threads: usize) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.check_columns(data).or_raise()?;
        let scores = sized(py, self.steps(data), threads, |cancel| match self.model.decoder.labels() {
            // Scores of classes, whatever they are made of.
            Some(_) => match self.model.predict_until(&data.data, cancel)? {
                Predictions::Classes { scores, .. } => Ok(scores),
                _ => Err(Error::new(Code::Internal, "classes were asked for, and something else was predicted")),
            },
            // Those of labels, above or below the border.
            None => Ok(self.model.decoder.label_scores(self.model.scores_until(&data.data, cancel)?)),
        })?;
        data.unchanged().or_raise()?;
        match self.outputs() {
            1 => Ok(data.in_given_order(py, scores).to_dyn().clone()),
            outputs => table(py, data, &scores, outputs),
        }
    }

    /// Probability of each class for each row, in the given order: the negative and the positive class, or all classes
    /// in order; shape (rows, k).
    #[pyo3(signature = (data, threads = 0))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.check_columns(data).or_raise()?;
        let found = sized(py, self.steps(data), threads, |cancel| self.model.probabilities_until(&data.data, cancel))?;
        data.unchanged().or_raise()?;
        table(py, data, &found, self.model.decoder.class_names().map_or(1, |names| names.len()))
    }

    /// Predicted outcome of each comparison in the data: -1 (left is better), 0 (a tie) or 1.
    fn outcomes<'py>(&self, py: Python<'py>, data: &Dataset) -> PyResult<Bound<'py, PyArray1<i8>>> {
        self.check_columns(data).or_raise()?;
        let outcomes = sized(py, self.steps(data), 1, |cancel| {
            if data.data.pairs().is_none() {
                return Err(
                    Error::new(Code::NoPairs, "the data hold no pairs").help("give pairs of a left and a right row")
                );
            }
            match self.model.predict_until(&data.data, cancel)? {
                Predictions::Outcomes(compared) => {
                    Ok(compared.iter().map(|compared| compared.outcome.sign()).collect::<Vec<i8>>())
                }
                _ => Err(Error::new(Code::Unsupported, "the model does not compare: its task is another one")
                    .help("use a model of the task `compare`")),
            }
        })?;
        data.unchanged().or_raise()?;
        Ok(outcomes.into_pyarray(py))
    }

    /// Predicted tag of each row of sequences, as a position among the classes.
    #[pyo3(signature = (data, threads = 0))]
    fn tags<'py>(&self, py: Python<'py>, data: &Dataset, threads: usize) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.check_columns(data).or_raise()?;
        let codes =
            sized(py, self.steps(data), threads, |cancel| match self.model.predict_until(&data.data, cancel)? {
                Predictions::Tags { codes, .. } => Ok(codes),
                _ => Err(Error::new(Code::Unsupported, "the model tags no sequences: its task is another one")
                    .help("use a model of the task `sequence`")),
            })?;
        data.unchanged().or_raise()?;
        Ok(data.in_given_order(py, codes))
    }

    /// Predicted tree of each sentence, as a text in one line.
    #[pyo3(signature = (data, threads = 0))]
    fn trees(&self, py: Python<'_>, data: &Dataset, threads: usize) -> PyResult<Vec<String>> {
        let words = data.facts.as_ref().and_then(|facts| facts.words.clone());
        sized(py, self.steps(data), threads, |cancel| {
            let (Some(words), Some(groups)) = (&words, data.data.groups()) else {
                return Err(Error::new(Code::Unsupported, "the data hold no sentences").help("give sentences"));
            };
            let Predictions::Trees { codes, pieces, .. } = self.model.predict_until(&data.data, cancel)? else {
                return Err(Error::new(Code::Unsupported, "the model parses no sentences: its task is another one")
                    .help("use a model of the task `tree`"));
            };
            let line = |rows: std::ops::Range<usize>| {
                let own: Vec<_> = rows.clone().map(|row| words.get(row)).collect();
                let names = rows.map(|row| pieces.name(codes[row] as usize));
                bracketed(names.zip(own.iter().map(|word| word.as_ref())))
            };
            Ok(groups.ranges().map(line).collect())
        })
    }

    /// Value of a metric of the predictions for data with targets.
    #[pyo3(signature = (data, metric, threads = 0))]
    fn measure(&self, py: Python<'_>, data: &Dataset, metric: &str, threads: usize) -> PyResult<f64> {
        sized(py, self.steps(data), threads, |_| {
            let metric = Metric::parse(metric)?;
            Ok(Answers::new(&self.model, &data.data)?.evaluate(&metric)?.value)
        })
    }

    /// Weights that belong to no feature: of sequences bias, first, last and transitions; of trees those of rules, tops and
    /// lengths; else None.
    #[getter]
    fn shared<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        match &self.model.decoder {
            Decoder::Sequence { shared, .. } | Decoder::Tree { shared, .. } => Some(shared.clone().into_pyarray(py)),
            _ => None,
        }
    }

    /// Recompute objective, lower bound and gap from the training data. Raises an error if they do not hold.
    fn verify(&self, py: Python<'_>, data: &Dataset) -> PyResult<(f64, Option<f64>, Option<f64>)> {
        let found = job(py, 0, None, |_, cancel| self.model.verify_until(&data.data, cancel))?;
        data.unchanged().or_raise()?;
        Ok((found.objective, found.lower_bound, found.gap()))
    }

    /// Name of the task.
    #[getter]
    fn task(&self) -> &'static str {
        self.model.settings.task.name()
    }

    /// The settings, as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        serde_json::to_string(&self.model.settings)
            .map_err(|error| Error::new(Code::Internal, error.to_string()))
            .or_raise()
    }

    /// Weights of the (scaled) features, or None; shape (k, features) if a row has k scores.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        // Weights of kernel values are coefficients of rows.
        let weights = self.model.scorer.weights().filter(|_| !self.model.has_kernel_columns());
        let Some(weights) = weights else { return Ok(None) };
        self.by_output(py, weights).map(Some)
    }

    /// Constant terms, one for each score of a row, or an empty array.
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.scorer.intercepts().into_pyarray(py)
    }

    /// Coefficients of the support vectors, or None without a kernel; shape (k, vectors) if a row has k scores.
    #[getter]
    fn dual_coef<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        self.model.support_coefficients().map(|coefficients| self.by_output(py, &coefficients)).transpose()
    }

    /// Positions of the training rows or pairs that are part of the solution: those with a dual variable above zero,
    /// the vectors of a kernel model in the order of their coefficients or, if the weights prove the bound of a
    /// classifier, those that just reach or violate the margin.
    #[pyo3(signature = (data, threads = 0))]
    fn support<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        threads: usize,
    ) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let rows = job(py, threads, None, |_, cancel| match (&self.model.witness, data.data.pairs()) {
            (Some(Witness::Dual(_)), Some(pairs)) => {
                Ok(self.model.support_pairs(pairs).map(|taken| positions(taken.into_iter())))
            }
            (Some(Witness::Dual(dual)), None) if dual.len() == data.data.rows() && !self.model.has_kernel_columns() => {
                let taken: Vec<bool> = dual.iter().map(|&dual| dual > 0.0).collect();
                Ok(Some(positions(data.data.to_input_order(taken).into_iter())))
            }
            (_, None) if self.model.support_coefficients().is_some() => {
                let rows = self.model.support_rows(&data.data)?;
                Ok(rows.map(|rows| in_given_order(&data.data, rows)))
            }
            (_, None) => self.violating(data, cancel),
            _ => Ok(None),
        })?;
        Ok(rows.map(|rows| rows.into_pyarray(py)))
    }

    /// γ of the kernel, given or estimated, or None.
    #[getter]
    fn gamma(&self) -> Option<f64> {
        match &self.model.scorer {
            Scorer::Expansion(expansion) => expansion.kernel.gamma(),
            Scorer::Linear { .. } if self.model.has_kernel_columns() => None,
            Scorer::Linear { .. } | Scorer::Mapped(_) => self.model.settings.kernel.gamma,
        }
    }

    /// The constant term.
    #[getter]
    fn intercept(&self) -> Option<f64> {
        self.model.scorer.intercept()
    }

    /// Largest difference of scores that is predicted as a tie, or None if ties are not predicted.
    #[getter]
    fn tie_width(&self) -> Option<f64> {
        self.model.decoder.tie_width()
    }

    /// Threshold learned together with the scores.
    #[getter]
    fn threshold(&self) -> Option<f64> {
        self.model.decoder.threshold()
    }

    /// Cuts between neighbouring ranks, in order, or None if it predicts no ratings.
    #[getter]
    fn cuts<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.decoder.cuts().map(|(cuts, _)| cuts.to_vec().into_pyarray(py))
    }

    /// The labels of a negative and a positive score, or of all classes in the order of their scores.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let sets = self.model.decoder.label_sets().map(|(labels, _)| labels);
        let names: Vec<&str> =
            match (self.model.decoder.classes(), self.model.decoder.labels().or(self.model.decoder.tags()).or(sets)) {
                (Some(classes), _) => vec![&classes.negative, &classes.positive],
                (None, Some(labels)) => labels.names().iter().map(String::as_str).collect(),
                (None, None) => return Ok(None),
            };
        PyTuple::new(py, names).map(Some)
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.model.features()
    }

    /// Names of the features, or None.
    #[getter]
    fn feature_names(&self) -> Option<Vec<String>> {
        self.model.feature_names.as_ref().map(|names| names.iter().map(|name| name.into_owned()).collect())
    }

    /// Objective of the model.
    #[getter]
    fn objective(&self) -> f64 {
        self.model.certificate.objective
    }

    /// Proven lower bound on the optimum, or None if the method gives none.
    #[getter]
    fn lower_bound(&self) -> Option<f64> {
        self.model.certificate.lower_bound
    }

    /// (objective − lower bound) / objective.
    #[getter]
    fn gap(&self) -> Option<f64> {
        self.model.certificate.gap()
    }

    /// Whether the gap reached the tolerance.
    #[getter]
    fn converged(&self) -> bool {
        self.model.certificate.converged
    }

    /// Number of passes.
    #[getter]
    fn passes(&self) -> u64 {
        self.model.certificate.passes
    }

    /// Number of margin constraints.
    #[getter]
    fn constraints(&self) -> u64 {
        self.model.certificate.constraints
    }

    /// Weight of the sum of losses, given or found.
    #[getter]
    fn c(&self) -> f64 {
        self.model.certificate.c
    }

    /// The hash of the training data.
    #[getter]
    fn data_hash(&self) -> u64 {
        self.model.certificate.data_hash
    }

    /// The solver that trained it, or None if the file does not name it.
    #[getter]
    fn solver(&self) -> Option<&'static str> {
        self.model.certificate.solver.map(Solver::name)
    }

    /// Whether it is proven that equal scores are as good as any, within the tolerance; only after training.
    #[getter]
    fn learned_nothing(&self) -> bool {
        self.learned_nothing
    }

    /// Whether training stopped because no step improved the objective, at the limit of double precision.
    #[getter]
    fn stalled(&self) -> bool {
        matches!(self.stop, Some(Stop::Stalled))
    }

    /// Whether a stopping rule or the user ended training before the tolerance was reached.
    #[getter]
    fn stopped_early(&self) -> bool {
        matches!(self.stop, Some(Stop::Cancelled | Stop::TimeLimit))
    }

    /// Whether the solver made the given number of passes and proves no bound.
    #[getter]
    fn finished(&self) -> bool {
        matches!(self.stop, Some(Stop::Finished | Stop::EarlyStopped | Stop::NoGain))
    }

    /// Whether training ended without a bound because the kernel may not be positive definite.
    #[getter]
    fn unproven(&self) -> bool {
        matches!(self.stop, Some(Stop::Finished)) && !self.model.settings.solver.is_stochastic()
    }

    /// Pass, objective, lower bound and seconds of each pass.
    #[getter]
    fn trace(&self) -> Vec<(u64, f64, Option<f64>, f64)> {
        self.trace.clone()
    }

    /// Confusion matrix (rows: true left, tie, right; columns: predicted) of predictions made before each pair was
    /// used, if the model was trained on a stream.
    #[getter]
    fn confusion(&self) -> Option<Vec<Vec<u64>>> {
        self.model.compared().map(|progress| progress.confusion().iter().map(|row| row.to_vec()).collect())
    }

    fn _repr_html_(&self) -> String {
        let certificate = &self.model.certificate;
        let number = |value: Option<f64>| value.map_or("none".to_string(), |value| significant(value, 6));
        let lines = [
            ("task", self.task().to_string()),
            ("features", self.n_features().to_string()),
            ("constraints", certificate.constraints.to_string()),
            ("C", significant(certificate.c, 6)),
            ("objective", number(Some(certificate.objective))),
            ("lower bound", number(certificate.lower_bound)),
            ("relative gap", number(certificate.gap())),
            ("converged", if certificate.converged { "yes" } else { "no" }.to_string()),
            ("passes", certificate.passes.to_string()),
        ];
        let body: String =
            lines.iter().map(|(name, value)| format!("<tr><th>{name}</th><td>{value}</td></tr>")).collect();
        format!("<table><caption>maxmargin.Model</caption>{body}</table>")
    }

    fn __repr__(&self) -> String {
        let model = &self.model;
        let gap = model.certificate.gap().map_or("no bound".to_string(), |gap| format!("gap {}", significant(gap, 2)));
        format!(
            "<maxmargin.Model: {}, {} features, objective {}, {gap}>",
            model.settings.task.name(),
            model.features(),
            significant(model.certificate.objective, 6)
        )
    }
}
