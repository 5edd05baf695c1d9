//! Training: makes a problem from data, runs the planned solver, and builds the model.

mod approximate;
mod calibrated;
mod clock;
mod early_stopping;
mod own_outputs;
mod partition;
mod posed;
mod ratings;
mod resume;
mod thresholds;
mod verify;

pub use crate::data::check_features;
pub use approximate::{ApproximationLoss, Compared, approximation_loss};
pub(crate) use approximate::{Seen, seen};
pub use partition::{Partition, Summary, Tally};
pub(crate) use posed::Posed;
pub use posed::{BuiltIn, Poses};
pub(crate) use thresholds::{decoder_by_scores, lacks_threshold};
pub use verify::Verification;

use crate::certificate::{Certificate, Decoder, Mapped, Scorer, Witness};
use crate::data::{Dataset, Design, Scaling, Shape};
use crate::error::{Code, Error, Result};
use crate::kernel::KernelKind;
use crate::model::Model;
use crate::run::{Cancel, Event, Observer, Silent, interrupted};
use crate::settings::{Method, Regularisation, Settings};
use crate::solve::{Measure, Merging, Read, Referee, Run, Solution, Start, Stated, Stop, TracePoint, plan};
use crate::wish::{EarlyStopping, Intercept, Solver};
use clock::Clock;
use std::ops::ControlFlow;
use std::sync::Arc;
use thresholds::thresholded;

/// A model, and how it was trained.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// The solver that `auto` chose, or that the settings name.
    pub solver: Solver,
    /// Why training stopped.
    pub stop: Stop,
    /// The first rate of a stochastic solver that has one: the rate from the settings, or the one found on a sample.
    pub first_rate: Option<f64>,
    /// What was read for the model, if it was judged more often than once a pass.
    pub read: Option<Read>,
    /// Kernel rows requested, and how many of these were computed, if there is a kernel.
    pub kernel_rows: Option<(u64, u64)>,
    /// What a budget of support vectors cost, for stochastic steps with a kernel.
    pub merging: Option<Merging>,
    /// Whether it is proven that equal scores are as good as any, within the tolerance.
    pub learned_nothing: bool,
    /// The history, one entry per pass.
    pub trace: Vec<TracePoint>,
}

/// Judges a model on held-out data while it is trained.
#[derive(Clone, Copy)]
pub struct HeldOut<'a> {
    /// The measure, or none if it cannot be computed.
    pub measure: &'a dyn Fn(&Model) -> Option<f64>,
    /// Whether more is better: early stopping needs to know.
    pub higher_is_better: bool,
}

/// Beyond this size of coefficients, the rounding of kernel values is visible in sums over them.
const LARGE_COEFFICIENT: f64 = 30.0;

/// Scores are sums whose rounding costs about this much a constraint, times C.
const SCORE_ROUNDING: f64 = 1e-15;

/// An error below this share of the objective does not matter to `verify`.
const NEGLIGIBLE: f64 = 1e-9;

/// Trains a model. The solvers run on the current thread pool; the number of threads does not change the result.
pub fn train(
    data: &Dataset,
    settings: &Settings,
    held_out: Option<HeldOut<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    train_from(data, settings, None, held_out, observer, cancel)
}

/// Trains a model with a warm start: the solution of a neighbouring problem over the same rows and features. The start
/// affects the time, but not what is proven.
pub fn train_from(
    data: &Dataset,
    settings: &Settings,
    start: Option<&Start>,
    held_out: Option<HeldOut<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    Training { poses: &BuiltIn, data, settings, start, held_out, polishes: true }.run(observer, cancel)
}

/// Trains a model on a resample, from the solution of the whole. It is not polished: resamples differ by much more.
pub(crate) fn train_resample(
    data: &Dataset,
    settings: &Settings,
    start: Option<&Start>,
    cancel: &Cancel,
) -> Result<Trained> {
    Training { poses: &BuiltIn, data, settings, start, held_out: None, polishes: false }.run(&mut Silent, cancel)
}

/// Trains a model of your own task.
pub fn train_own(
    poses: &dyn Poses,
    data: &Dataset,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    train_own_from(poses, data, settings, None, None, observer, cancel)
}

/// Trains a model of your own task as [`train_from`] does.
pub fn train_own_from(
    poses: &dyn Poses,
    data: &Dataset,
    settings: &Settings,
    start: Option<&Start>,
    held_out: Option<HeldOut<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    Training { poses, data, settings, start, held_out, polishes: true }.run(observer, cancel)
}

/// The solver for data of this shape, or an error if the combination of task, loss and solver is not supported. It may
/// also be called before any data are read, with an unknown shape.
pub fn choose_solver(settings: &Settings, shape: Shape) -> Result<Solver> {
    plan(settings.abilities(shape.compared.is_some()), settings, shape)
}

/// Whether these settings give a sum over support vectors instead of weights.
pub fn expands(settings: &Settings) -> bool {
    settings.expands()
}

/// The data with copies of rows or pairs instead of weights, where the settings want these. Precomputed kernel values
/// have a column for every row, so that there a row stands for its copies by its cost.
pub(crate) fn copies(data: &Dataset, settings: &Settings) -> Result<Option<Dataset>> {
    match settings.kernel.kind {
        KernelKind::Precomputed if data.pairs().is_none() => Ok(None),
        _ => settings.task.weight_as().copied(data),
    }
}

/// One training run.
pub(crate) struct Training<'a> {
    pub(crate) poses: &'a dyn Poses,
    pub(crate) data: &'a Dataset,
    pub(crate) settings: &'a Settings,
    pub(crate) start: Option<&'a Start>,
    pub(crate) held_out: Option<HeldOut<'a>>,
    /// Whether the solution may be polished to the last digits.
    pub(crate) polishes: bool,
}

impl Training<'_> {
    pub(crate) fn run(&self, observer: &mut dyn Observer, cancel: &Cancel) -> Result<Trained> {
        let &Training { poses, data: given, settings, start, .. } = self;
        settings.validate()?;
        let data = given;
        if data.rows() == 0 {
            return Err(
                Error::new(Code::NoRows, "there are no rows to learn from").help("give data with at least two rows")
            );
        }
        check_features(data.cols())?;
        data.matrix().check(0..data.rows())?;
        cancel.check()?;
        calibrated::check(data, settings)?;
        if settings.is_rating() {
            return ratings::train(data, settings, observer, cancel);
        }
        // Report an unsupported combination before the data are read.
        if !settings.is_own() {
            choose_solver(settings, data.shape())?;
        }
        let copies = copies(given, settings)?;
        let data = copies.as_ref().unwrap_or(given);
        // As for rows with weights, whose number is not counted there either.
        let scaling = Scaling::fit(settings.scale, given, cancel)?;
        let design = scaling.apply(data.matrix(), data.groups())?;
        cancel.check()?;
        let mut posed = Posed::new(poses, data, settings)?;
        posed.check_range()?;
        posed.check_outputs()?;
        let solver = plan(posed.problem.abilities(), settings, data.shape())?;
        // The input of linear solvers: the features, or mapped features. Scaling stays that of the rows.
        let mapped = seen(data, &design, settings, cancel)?;
        let design = mapped.as_ref().map_or(&design, |seen| &seen.design);
        if start.is_some_and(|start| !posed.takes(start, design.cols(), settings.expands())) {
            return Err(Error::new(Code::BadSetting, "the start is not a point of this problem")
                .help("start from a solution over the same rows and features"));
        }
        let mut clock = Clock::new(observer, settings);
        let run = Run {
            data,
            design,
            settings,
            solver,
            start,
            for_model: true,
            polishes: self.polishes,
            machine: None,
            referee: None,
            observer: &mut clock,
            cancel,
        };
        let (solver, mut solution) = Training { data, ..*self }.solved(&posed, mapped.as_ref(), &scaling, run)?;
        // A user who interrupts the run after the limit still interrupts it.
        solution.stop = if cancel.is_raised() { solution.stop } else { clock.reason(solution.stop) };
        cancel.check_wanted()?;
        if settings.regularisation.is_nu() {
            let margin = solution.kernel.as_ref().and_then(|kernel| kernel.common_margin);
            let margin = margin.filter(|margin| *margin > 0.0).ok_or_else(|| {
                Error::new(Code::NuTooSmall, "training ended before a margin above zero was found")
                    .help("try a larger ⟦nu⟧, or more ⟦max-passes⟧")
            })?;
            posed.set_regularisation(Regularisation::C(posed.c / margin));
            posed.check_range()?;
        }
        let (kernel_rows, merging) =
            solution.kernel.as_mut().map_or((None, None), |kernel| (kernel.rows, kernel.merging.take()));
        let (first_rate, read, trace) = (solution.first_rate, solution.read, std::mem::take(&mut solution.trace));
        let mut assembly = Assembly::new(&posed, given, settings, &scaling, mapped.as_ref());
        // A witness with numbers for each row has them for each copy.
        let copied = copies.as_ref().filter(|copies| copies.pairs().is_none()).map(|copies| copies.rows() as u64);
        assembly.certificate.blocks = assembly.certificate.blocks.or(copied);
        let (stop, model) = assembly.model(solution, solver, design, given.hash()?)?;
        cancel.check_wanted()?;
        let mut model = match thresholded(model, &posed, given) {
            // After a cancel it is too early to tell whether anything can be learned.
            Err(error) if stop == Stop::Cancelled && error.code() == Code::NoThreshold => return Err(interrupted()),
            model => model?,
        };
        // A model that was interrupted is kept without probabilities.
        if stop != Stop::Cancelled {
            model.calibration = calibrated::calibration(self, &model, self.held_out, cancel)?;
        }
        let Certificate { objective, lower_bound, .. } = model.certificate;
        let learned_nothing = stop != Stop::Cancelled && posed.learned_nothing(settings, objective, lower_bound);
        Ok(Trained { model, solver, stop, first_rate, read, kernel_rows, merging, learned_nothing, trace })
    }

    /// Solves the problem while held-out data are judged. Returns the solution with the solver that found it.
    fn solved(
        &self,
        posed: &Posed,
        mapped: Option<&Seen>,
        scaling: &Scaling,
        mut run: Run<'_>,
    ) -> Result<(Solver, Solution)> {
        let &Training { poses, data, settings, held_out, .. } = self;
        if settings.expands() {
            let solution = posed.problem.solve(&mut run)?;
            return Ok((run.solver, solution));
        }
        let assembly = Assembly::new(posed, data, settings, scaling, mapped);
        let judge = held_out.map(|held_out| {
            let assembly = &assembly;
            let measure = move |weights: &[f64], thresholds: &[f64]| {
                let model = assembly.passing(weights, thresholds);
                // A threshold chosen after the scores is computed again; a learned threshold is taken as it is so far.
                let model = match settings.method() {
                    None | Some(Method::Compare) => model,
                    Some(_) => thresholded(model, posed, data).ok()?,
                };
                (held_out.measure)(&model)
            };
            (measure, held_out.higher_is_better)
        });
        let judged = run.solver.is_stochastic() || posed.problem.abilities().structured;
        if judged && settings.stochastic.early_stopping != EarlyStopping::None {
            let referee = judge
                .as_ref()
                .map(|(measure, higher_is_better)| Referee { measure, higher_is_better: *higher_is_better });
            let (data, scaling) = match mapped {
                Some(seen) => (&seen.data, &Scaling::default()),
                None => (data, scaling),
            };
            let solution = early_stopping::solve(poses, posed, (data, scaling), referee, &mut run)?;
            return Ok((run.solver, solution));
        }
        let held_out = judge.as_ref().map(|(measure, _)| measure as Measure<'_>);
        let mut watching = Watching { inner: &mut *run.observer, held_out };
        let mut run = Run { observer: &mut watching, machine: None, ..run };
        let solution = posed.problem.solve(&mut run)?;
        Ok((run.solver, solution))
    }
}

/// The constant terms of the scores of a row: one for each, or none.
pub(crate) fn constant_terms(posed: &Posed, free: &[f64]) -> Vec<f64> {
    match free {
        _ if !posed.task().adds_free() => Vec::new(),
        // One constant for all scores of a row.
        [shared] => vec![*shared; posed.problem.shape().outputs],
        own => own.to_vec(),
    }
}

/// The parts of a model. Models are put together only here.
pub(crate) struct Assembly<'a> {
    posed: Option<&'a Posed>,
    settings: &'a Settings,
    scaling: &'a Scaling,
    mapped: Option<&'a Seen>,
    data: &'a Dataset,
    /// The parts of the certificate that are known before the solution.
    certificate: Certificate,
}

impl<'a> Assembly<'a> {
    fn new(
        posed: &'a Posed,
        data: &'a Dataset,
        settings: &'a Settings,
        scaling: &'a Scaling,
        mapped: Option<&'a Seen>,
    ) -> Assembly<'a> {
        let mut certificate = Certificate {
            constraints: posed.task().constraints(),
            ties: posed.task().ties(),
            c: posed.c,
            lambda: posed.lambda,
            ..Certificate::of(data)
        };
        let blocks = posed.problem.shape().blocks as u64;
        certificate.blocks = Some(blocks).filter(|blocks| *blocks > 0 && *blocks != certificate.blocks());
        Assembly { posed: Some(posed), settings, scaling, mapped, data, certificate }
    }

    /// The same for ratings, which are weights of items, without an optimisation problem.
    pub(crate) fn rated(
        data: &'a Dataset,
        settings: &'a Settings,
        scaling: &'a Scaling,
        certificate: Certificate,
    ) -> Assembly<'a> {
        Assembly { posed: None, settings, scaling, mapped: None, data, certificate }
    }

    /// The model made of ratings.
    pub(crate) fn rating(self, solution: Solution, solver: Option<Solver>, decoder: Decoder) -> Result<Model> {
        let Solution { weights, objective, lower_bound, passes, stop, .. } = solution;
        let certificate = Certificate {
            objective,
            lower_bound,
            data_hash: self.data.hash()?,
            converged: stop == Stop::Converged,
            passes,
            solver,
            ..self.certificate.clone()
        };
        Ok(self.whole(Scorer::linear(weights, None), decoder, certificate, None))
    }

    /// A model of weights.
    fn linear(&self, weights: Vec<f64>, thresholds: &[f64]) -> Scorer {
        let outputs = self.posed.map_or(1, |posed| posed.problem.shape().outputs);
        let intercepts = self.posed.map_or(Vec::new(), |posed| constant_terms(posed, thresholds));
        match self.mapped {
            Some(Seen { map, .. }) => Scorer::Mapped(Mapped { map: Arc::clone(map), weights, outputs, intercepts }),
            None => Scorer::Linear { weights, outputs, intercepts },
        }
    }

    /// A model during training, to be judged.
    fn passing(&self, weights: &[f64], thresholds: &[f64]) -> Model {
        let scorer = self.linear(weights.to_vec(), thresholds);
        self.whole(scorer, self.decoder(thresholds), self.certificate.clone(), None)
    }

    fn decoder(&self, thresholds: &[f64]) -> Decoder {
        self.posed.map_or(Decoder::Rank, |posed| posed.task().decoder(thresholds))
    }

    fn whole(&self, scorer: Scorer, decoder: Decoder, certificate: Certificate, witness: Option<Witness>) -> Model {
        let mut settings = self.settings.clone();
        // The size of the cache is not a property of the model.
        settings.kernel.cache = None;
        Model {
            settings,
            scorer,
            decoder,
            scaling: self.scaling.clone(),
            feature_names: self.data.feature_names().cloned(),
            certificate,
            witness,
            reading: None,
            version: env!("CARGO_PKG_VERSION").to_string(),
            compacted: None,
            calibration: None,
            online: None,
        }
    }

    /// The model made of a solution, and why the solver stopped.
    fn model(self, solution: Solution, solver: Solver, design: &Design, data_hash: u64) -> Result<(Stop, Model)> {
        let Solution {
            weights, mut thresholds, mut objective, mut lower_bound, witness, passes, mut stop, kernel, ..
        } = solution;
        // What adds nothing to the loss is left out of free scalars. Penalised ones have this mean at the optimum.
        let shifts = self.posed.is_some_and(|posed| posed.task().shifts()) && self.settings.free() == Intercept::Free;
        if shifts {
            let mean = thresholds.iter().sum::<f64>() / thresholds.len().max(1) as f64;
            thresholds.iter_mut().for_each(|threshold| *threshold -= mean);
        }
        let witness = (witness != Witness::Weights).then_some(witness);
        let definite = kernel.as_ref().is_some_and(|kernel| kernel.definite);
        let scorer = match kernel.and_then(|kernel| kernel.scorer) {
            Some(scorer) => scorer,
            None => self.linear(weights, &thresholds),
        };
        let rounded = definite
            && self.posed.is_some_and(|posed| {
                scorer.numbers().iter().any(|number| number.abs() > LARGE_COEFFICIENT)
                    || posed.c * self.certificate.constraints as f64 * SCORE_ROUNDING > NEGLIGIBLE * objective
            });
        let shifted = shifts && scorer.weights().is_some();
        if let (true, Some(posed)) = (rounded || shifted, self.posed) {
            // The stated values are those that `verify` computes. After a cancel, the caller still waits for them.
            let stated = Stated {
                scorer: &scorer,
                free: &thresholds,
                witness: witness.as_ref(),
                claims: lower_bound.is_some(),
                by_weights: shifted && witness.is_none() && lower_bound.is_some(),
            };
            let found = posed.problem.certify(&stated, design, self.settings, &Cancel::new())?;
            objective = found.objective;
            lower_bound = found.lower_bound.filter(|_| lower_bound.is_some());
            let gap = lower_bound.map(|bound| crate::certificate::relative_gap(objective, bound));
            let within = gap.is_some_and(|gap| gap <= self.settings.tolerance);
            stop = if stop == Stop::Converged && !within { Stop::Stalled } else { stop };
        }
        // At the optimum, rounding may put the bound above the objective.
        let lower_bound = lower_bound.map(|bound| if bound > objective { objective } else { bound });
        let certificate = Certificate {
            objective,
            lower_bound,
            data_hash,
            converged: stop == Stop::Converged,
            passes,
            solver: Some(solver),
            ..self.certificate.clone()
        };
        let decoder = self.decoder(&thresholds);
        Ok((stop, self.whole(scorer, decoder, certificate, witness)))
    }
}

/// Adds the held-out metric to the reports of the solver.
struct Watching<'a> {
    inner: &'a mut dyn Observer,
    held_out: Option<Measure<'a>>,
}

impl Observer for Watching<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let mut event = event.clone();
        if let Event::Pass { weights, thresholds, held_out, .. } = &mut event {
            *held_out = self.held_out.as_ref().and_then(|judge| judge(weights, thresholds));
        }
        self.inner.report(&event)
    }
}

/// How unevenly the columns are scaled: the ratio of the largest to the smallest among the columns' largest absolute
/// values in a sample of the rows. It is advice for a user whose training is slow; 1 if there is nothing to compare.
pub fn scale_spread(data: &Dataset, cancel: &Cancel) -> Result<f64> {
    const SAMPLE: usize = 20_000;
    let (matrix, rows) = (data.matrix(), data.rows());
    matrix.check(0..rows)?;
    let mut sizes = vec![0.0f64; data.cols()];
    for row in (0..rows).step_by(rows.div_ceil(SAMPLE).max(1)) {
        cancel.check()?;
        matrix.each_in_row(row, |column, value| sizes[column] = sizes[column].max(value.abs()));
        matrix.residency().passed(row..row + 1);
    }
    let sizes = sizes.iter().filter(|&&size| size > 0.0);
    let (low, high) = sizes.fold((f64::INFINITY, 0.0f64), |(low, high), &size| (low.min(size), high.max(size)));
    Ok(if high > 0.0 { high / low } else { 1.0 })
}
