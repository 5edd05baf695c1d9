//! Cross-validation over a list of settings.
//!
//! ```text
//! for each setting θ:   quality(θ) = mean over folds k of metric(model of θ learned without fold k, rows of fold k)
//! ```
//! Folds keep groups whole and preserve the shares of classes. A fold is the shared matrix, in which held-out rows have
//! cost zero, so no feature is copied. Scaling, class weights and lambda are those of the training rows of the fold.
//! Explicit pairs are held out instead of rows, over all items: then scaling is that of all items, and lambda that of
//! the training pairs. If a feature map approximates a kernel, all rows are mapped once: then scaling, γ and landmarks
//! are those of all rows. Every fit stops at the relative gap of its settings, as any other does.
//!
//! **Paths.** A sequence of settings that differ only in C is fitted in the given order, each fit with a warm start
//! from the one before (Chu et al., Warm start for parameter selection of linear classifiers, KDD 2015). The folds of
//! one setting run in parallel on the current thread pool, and results are gathered in fold order: the number of
//! threads does not change them.
//!
//! With a kernel, folds run one after the other over shared kernel rows. A setting that is clearly worse is dropped
//! after half of the folds or more: it keeps the values of those, and cannot win ([`super::kernel_path`]).
//!
//! Cost: settings × folds fits, each of a few passes if the next solution is near. It does not search: only the listed
//! settings are tried.

use super::choice::{Race, is_better, same_path};
use super::fold::{Fit, Fold, FoldTrainer};
use super::kernel_path::KernelPath;
use super::warm_start::{carried, pooled};
use crate::data::{Dataset, Design, Scaling, folds};
use crate::error::{Code, Error, Result};
use crate::metric::Metric;
use crate::parallel;
use crate::run::{Cancel, Event, Observer};
use crate::settings::{Method, Settings, Solver};
use crate::solve::{Problem, Start};
use crate::train::{BuiltIn, HeldOut, Posed, Poses, Trained, Training, check_features, choose_solver, seen};
use std::sync::Arc;
use std::time::Instant;

/// How settings are compared.
#[derive(Clone, Debug)]
pub struct CrossValidation {
    /// How many folds there are, 2 or more.
    pub folds: usize,
    /// Seeds the folds.
    pub seed: u64,
    /// The metrics on held-out rows; the first decides, and the next ones if it is equal.
    pub metrics: Vec<Metric>,
}

/// A metric over the folds.
#[derive(Clone, Debug, PartialEq)]
pub struct OverFolds {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean: the deviation between folds over the root of their number.
    pub standard_error: f64,
    /// The value on each fold.
    pub folds: Vec<f64>,
}

impl OverFolds {
    /// Mean and standard error of the values on the folds.
    pub fn new(folds: Vec<f64>) -> OverFolds {
        let count = folds.len() as f64;
        let mean = folds.iter().sum::<f64>() / count;
        let squares: f64 = folds.iter().map(|value| (value - mean).powi(2)).sum();
        // With a single fold, the variation between folds is unknown.
        let standard_error = if folds.len() > 1 { (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
        OverFolds { mean, standard_error, folds }
    }
}

/// One setting and its results.
#[derive(Clone, Debug)]
pub struct Row {
    /// The settings that were tried.
    pub settings: Settings,
    /// The weight of the sum of losses, for all rows.
    pub c: f64,
    /// The same in the mean form, for all rows.
    pub lambda: f64,
    /// The metrics, in the given order.
    pub metrics: Vec<OverFolds>,
    /// The largest relative gap of the folds, if all have one.
    pub gap: Option<f64>,
    /// Passes made, over all folds.
    pub passes: u64,
    /// Seconds taken, from the start of the first fold to the end of the last.
    pub seconds: f64,
    /// Whether every fold converged.
    pub converged: bool,
    /// Whether some fold of a comparison learned no threshold for ties, or only constant scores: such a setting is
    /// chosen only if there is no other.
    pub without_threshold: bool,
}

/// The result of cross-validation.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The metrics; the first decided.
    pub metrics: Vec<Metric>,
    /// How many rows each fold held out, or pairs if the data are pairs.
    pub fold_rows: Vec<usize>,
    /// One row per setting, in the given order.
    pub rows: Vec<Row>,
    /// The row with the best mean. Ties are decided by the best mean of the next metric, then by the smallest C.
    pub best: usize,
    /// A warm start from the folds of the best row.
    pub(super) start: Start,
}

impl CrossValidation {
    /// Fits and judges every setting on every fold. Each row is reported as [`Event::Setting`] when it is done.
    pub fn run(
        &self,
        data: &Dataset,
        candidates: &[Settings],
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Tuned> {
        let held_out = || folds(data, self.folds, self.seed).map_err(fewer_folds);
        self.run_over(&BuiltIn, data, held_out, candidates, observer, cancel)
    }

    /// The same with given parts: each list of rows, or of pairs if the data are pairs, is held out in turn.
    pub fn run_on(
        &self,
        data: &Dataset,
        parts: Vec<Vec<usize>>,
        candidates: &[Settings],
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Tuned> {
        self.run_over(&BuiltIn, data, || Ok(parts), candidates, observer, cancel)
    }

    /// The same for your own task.
    pub fn run_own(
        &self,
        poses: &dyn Poses,
        data: &Dataset,
        candidates: &[Settings],
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Tuned> {
        let held_out = || folds(data, self.folds, self.seed).map_err(fewer_folds);
        self.run_over(poses, data, held_out, candidates, observer, cancel)
    }

    fn run_over(
        &self,
        poses: &dyn Poses,
        data: &Dataset,
        held_out: impl FnOnce() -> Result<Vec<Vec<usize>>>,
        candidates: &[Settings],
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Tuned> {
        if self.metrics.is_empty() || candidates.is_empty() {
            return Err(Error::new(Code::BadSetting, "nothing to compare: there is no metric, or no setting")
                .help("name at least one metric and one setting"));
        }
        candidates.iter().try_for_each(Settings::validate)?;
        if candidates.iter().any(|settings| settings.regularisation.is_nu()) {
            return Err(Error::new(Code::Unsupported, "⟦nu⟧ determines C, so there is nothing to tune")
                .help("train once for each value, with ⟦holdout⟧ to measure it"));
        }
        if let Some(settings) = candidates.iter().find(|settings| settings.is_rating()) {
            let message =
                format!("`{}` is a rating method, and cannot be tuned", settings.method().map_or("", Method::name));
            return Err(Error::new(Code::Unsupported, message).help("train once, with ⟦holdout⟧ to measure it"));
        }
        check_features(data.cols())?;
        data.matrix().check(0..data.rows())?;
        cancel.check()?;
        // Errors of the data as a whole are reported as in training.
        let mut whole = Posed::new(poses, data, &candidates[0])?;
        let shape = whole.problem.shape();
        let decoder = whole.task().decoder(&vec![1.0; shape.free.max(1)]);
        if shape.outputs != decoder.outputs() {
            let message = format!("rows of this task have {} scores, and metrics judge one score a row", shape.outputs);
            return Err(Error::new(Code::MetricMismatch, message)
                .help("train once for each setting, and judge the predictions yourself"));
        }
        let folds = Fold::all(data, held_out()?)?;
        folds.iter().try_for_each(|fold| fold.check(&decoder, &candidates[0], &self.metrics))?;

        let higher: Vec<bool> = self.metrics.iter().map(Metric::higher_is_better).collect();
        let mut rows: Vec<Row> = Vec::with_capacity(candidates.len());
        let mut best: Option<(usize, Start)> = None;
        'search: for path in candidates.chunk_by(same_path) {
            whole = match &folds[..] {
                // Data for validation alone are never learned from, and count in no total.
                [only] => only.posed(poses, data, &path[0])?,
                _ => Posed::new(poses, data, &path[0])?,
            };
            let mut learners = Learners::new(&folds, poses, data, &path[0], cancel)?;
            for settings in path {
                let start = Instant::now();
                let race = Race {
                    best: best.as_ref().map(|(best, _)| &rows[*best]),
                    higher_is_better: self.metrics[0].higher_is_better(),
                };
                let fits = learners.fit(settings, &self.metrics, &race, cancel)?;
                whole.set_regularisation(settings.regularisation);
                rows.push(row(settings, &whole, &fits, self.metrics.len(), start.elapsed().as_secs_f64()));
                let row = &rows[rows.len() - 1];
                if best.as_ref().is_none_or(|(best, _)| is_better(row, &rows[*best], &higher)) {
                    best = Some((rows.len() - 1, learners.start(&*whole.problem)));
                }
                let event = Event::Setting {
                    c: row.c,
                    gamma: row.settings.kernel.gamma,
                    quality: row.metrics[0].mean,
                    seconds: row.seconds,
                    done: rows.len(),
                    total: candidates.len(),
                };
                // When the observer asks to stop, the result is the best row so far.
                if observer.report(&event).is_break() {
                    break 'search;
                }
            }
        }
        let (best, start) =
            best.ok_or_else(|| Error::new(Code::Internal, "no setting was compared with the others"))?;
        let fold_rows = folds.iter().map(|fold| fold.size).collect();
        Ok(Tuned { metrics: self.metrics.clone(), fold_rows, rows, best, start })
    }
}

/// The folds along a path.
enum Learners<'a> {
    /// Each with its own weights, all at the same time.
    Weights(Vec<FoldTrainer<'a>>),
    /// One after the other, over shared kernel rows.
    Kernel(Box<KernelPath<'a>>),
}

impl<'a> Learners<'a> {
    fn new(
        folds: &'a [Fold],
        poses: &dyn Poses,
        data: &Dataset,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Result<Learners<'a>> {
        if settings.expands() && (settings.solver.is_stochastic() || settings.solver == Solver::Lasvm) {
            return Err(Error::new(Code::Unsupported, "kernels are tuned only with the exact solver")
                .help("leave ⟦solver⟧ out, or train once for each value, with ⟦holdout⟧ to measure it"));
        }
        // An unsupported combination is reported without naming a fold.
        if !settings.is_own() {
            choose_solver(settings, data.shape())?;
        }
        if !settings.expands() {
            return Ok(Learners::Weights(learners(folds, poses, data, settings, cancel)?));
        }
        let shared = shared_design(data, settings, cancel)?;
        Ok(Learners::Kernel(Box::new(KernelPath::new(folds, poses, data, settings, shared.as_ref(), cancel)?)))
    }

    fn fit(&mut self, settings: &Settings, metrics: &[Metric], race: &Race<'_>, cancel: &Cancel) -> Result<Vec<Fit>> {
        match self {
            Learners::Weights(learners) => {
                let learners = learners.iter_mut().collect();
                let fit = |_, learner: &mut FoldTrainer<'_>| learner.fit(settings, metrics, None, cancel);
                parallel::map_each(learners, fit).into_iter().collect()
            }
            Learners::Kernel(path) => path.fit(settings, metrics, race, cancel),
        }
    }

    /// The last solutions of the folds, as a warm start for all rows.
    fn start(&self, whole: &dyn Problem) -> Start {
        match self {
            Learners::Weights(learners) => {
                // A fold without a class may have fewer columns of a code.
                let outputs = whole.shape().outputs;
                if learners.iter().any(|learner| learner.posed.problem.shape().outputs != outputs) {
                    return Start::default();
                }
                let starts: Vec<Start> = learners.iter().filter_map(FoldTrainer::spread_start).collect();
                let mut start = pooled(starts.iter());
                // Over all pairs some may be merged.
                start.dual = start.dual.filter(|dual| dual.len() == whole.shape().blocks);
                start
            }
            Learners::Kernel(path) => path.start(),
        }
    }
}

/// The folds at the start of a path over weights.
pub(super) fn learners<'a>(
    folds: &'a [Fold],
    poses: &dyn Poses,
    data: &Dataset,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Vec<FoldTrainer<'a>>> {
    let shared = shared_design(data, settings, cancel)?;
    let new = |fold: usize| FoldTrainer::new(&folds[fold], poses, data, settings, shared.as_ref(), cancel);
    parallel::map(folds.len(), new).into_iter().collect()
}

/// The view of the features, if it is the same for all folds.
fn shared_design(data: &Dataset, settings: &Settings, cancel: &Cancel) -> Result<Option<Arc<Design>>> {
    let scaling = Scaling::fit(settings.scale, data, cancel)?;
    // If pairs are held out, all folds train on the same rows.
    let by_rows = data.pairs().is_none();
    if settings.kernel.approximate.is_some() {
        // Mapped once for all folds: scaling and landmarks are those of all rows and do not depend on targets.
        let design = scaling.apply(data.matrix(), data.groups())?;
        return Ok(seen(data, &design, settings, cancel)?.map(|seen| Arc::new(seen.design)));
    }
    if scaling.is_learned() && by_rows {
        return Ok(None);
    }
    Ok(Some(Arc::new(scaling.apply(data.matrix(), data.groups())?)))
}

fn row(settings: &Settings, whole: &Posed, fits: &[Fit], metrics: usize, seconds: f64) -> Row {
    let summary = |metric: usize| OverFolds::new(fits.iter().map(|fit| fit.values[metric]).collect());
    Row {
        settings: settings.clone(),
        c: whole.c,
        lambda: whole.lambda,
        metrics: (0..metrics).map(summary).collect(),
        gap: fits.iter().map(Fit::gap).try_fold(0.0, |worst: f64, gap| Some(worst.max(gap?))),
        passes: fits.iter().map(|fit| fit.passes).sum(),
        seconds,
        converged: fits.iter().all(|fit| fit.converged),
        without_threshold: fits.iter().any(|fit| fit.without_threshold),
    }
}

fn fewer_folds(error: Error) -> Error {
    if error.code() == Code::TooFewToSplit { error.help("ask for fewer folds with ⟦folds⟧") } else { error }
}

impl Tuned {
    /// Trains on all rows with the settings of a row, with a warm start from the folds.
    pub fn refit(
        &self,
        row: usize,
        data: &Dataset,
        held_out: Option<HeldOut<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Trained> {
        self.refit_own(&BuiltIn, row, data, held_out, observer, cancel)
    }

    /// The same for a task of your own.
    pub fn refit_own(
        &self,
        poses: &dyn Poses,
        row: usize,
        data: &Dataset,
        held_out: Option<HeldOut<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Trained> {
        let start = carried(self.start.clone(), self.rows[row].c / self.rows[self.best].c);
        // A single part gives no warm start for all rows, and folds with other columns give none either.
        let some = self.rows[row].settings.expands() || !start.weights.is_empty();
        let start = Some(&start).filter(|_| some && self.fold_rows.len() > 1);
        Training { poses, data, settings: &self.rows[row].settings, start, held_out, polishes: true }
            .run(observer, cancel)
    }
}
