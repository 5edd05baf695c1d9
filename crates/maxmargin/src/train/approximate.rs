//! Kernels approximated by feature maps: the mapped rows for linear solvers, and the loss of accuracy.

use super::{BuiltIn, Posed, choose_solver, constant_terms};
use crate::data::{Dataset, Design, Scaling, hold_out, holdout};
use crate::error::{Code, Error, Result};
use crate::kernel::{FeatureMap, Kernel, KernelSettings, Points};
use crate::metric::Metric;
use crate::model::{Answers, Mapped, Model, Scorer};
use crate::random::Random;
use crate::run::{Cancel, Silent};
use crate::settings::{Regularisation, Settings, Solver};
use crate::solve::{Run, check_values, plan};
use crate::wording::counted;
use std::sync::Arc;

/// Rows after the feature map, as linear solvers see them.
pub(crate) struct Seen {
    pub(crate) map: Arc<FeatureMap>,
    /// Mapped features; targets, groups, weights and pairs are unchanged.
    pub(crate) data: Dataset,
    pub(crate) design: Design,
}

/// Maps scaled rows, if the settings have a feature map.
pub(crate) fn seen(data: &Dataset, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Option<Seen>> {
    let Some(approximation) = settings.kernel.approximate else { return Ok(None) };
    let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
    check_values(&kernel, design)?;
    let map = FeatureMap::fit(kernel, approximation, design, settings.seed, cancel)?;
    let matrix = map.map(design, cancel)?;
    let design = Scaling::default().apply(&matrix, None)?;
    Ok(Some(Seen { map: Arc::new(map), data: data.clone().with_matrix(matrix)?, design }))
}

/// What a feature map loses compared with its kernel, measured on a sample of the training rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ApproximationLoss {
    /// The root mean square of k(x, z) − φ(x)·φ(z) over 1,000 random pairs of rows; none for a single row.
    pub kernel_error: Option<f64>,
    /// The exact kernel and the map, trained on one sample and judged on another, or the reason why they were not
    /// compared. The reason may hold references: see [`crate::wording::render`].
    pub compared: std::result::Result<Compared, String>,
}

/// The exact kernel and its map, trained on one sample and judged on another.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The metric.
    pub metric: Metric,
    /// Its value for the model with the exact kernel.
    pub exact: f64,
    /// Its value for the model of mapped rows.
    pub approximate: f64,
    /// Rows or pairs learned from.
    pub learned: usize,
    /// Rows or pairs judged on.
    pub judged: usize,
}

/// Pairs of rows whose kernel values are compared.
const KERNEL_PAIRS: usize = 1000;

/// The maximum and the minimum number of rows or pairs, each to train on and to judge on.
const MOST_SAMPLED: usize = 2000;
const LEAST_SAMPLED: usize = 100;

/// The comparison need not be exact to the last digit: it stops at this tolerance or at the limit of passes.
const TOLERANCE: f64 = 1e-3;
const EXACT_PASSES: u64 = 2000;
const MAPPED_PASSES: u64 = 200;

/// The streams of random numbers for these uses of the seed.
const PAIRS: u64 = 0x6c6f_7373;
const SAMPLE: u64 = 0x736d_706c;

/// Measures what the feature map of a model loses, on samples of its training data. This takes a second or two, for any
/// number of rows. The map is that of the model; both ways use its scaling, loss and C. None for a model without a map.
pub fn approximation_loss(model: &Model, data: &Dataset, cancel: &Cancel) -> Result<Option<ApproximationLoss>> {
    let Scorer::Mapped(Mapped { map, .. }) = &model.scorer else { return Ok(None) };
    data.matrix().check(0..data.rows())?;
    let kernel_error = kernel_error(model, map, data, cancel)?;
    let compared = match compare(model, map, data, cancel) {
        Ok(compared) => Ok(compared),
        Err(error) if error.code() == Code::Interrupted => return Err(error),
        Err(error) => Err(error.raw_message().to_string()),
    };
    Ok(Some(ApproximationLoss { kernel_error, compared }))
}

fn kernel_error(model: &Model, map: &FeatureMap, data: &Dataset, cancel: &Cancel) -> Result<Option<f64>> {
    let rows = data.rows() as u64;
    if rows < 2 {
        return Ok(None);
    }
    let mut random = Random::new(model.settings.seed, PAIRS, 0);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..KERNEL_PAIRS {
        let row = random.below(rows);
        one.push(row as usize);
        other.push(((row + 1 + random.below(rows - 1)) % rows) as usize);
    }
    let whole = model.scaling.apply(data.matrix(), data.groups())?;
    let plain = Scaling::default();
    let (one, other) = (plain.apply(&whole.copied(&one)?, None)?, plain.apply(&whole.copied(&other)?, None)?);
    let kernel = map.kernel();
    let points = Points::in_double(&one, &kernel);
    let met = points.like(&other, cancel);
    let (mapped_one, mapped_other) = (map.map(&one, cancel)?, map.map(&other, cancel)?);
    let mut squares = 0.0;
    for pair in 0..KERNEL_PAIRS {
        let mut value = [0.0];
        met.fill_columns(&kernel, &points, &[pair], pair..pair + 1, &mut [&mut value]);
        let mut features = vec![0.0; map.features()];
        mapped_one.each_in_row(pair, |column, value| features[column] = value);
        let mut product = [0.0];
        mapped_other.scores(pair..pair + 1, &features, &mut product);
        squares += (value[0] - product[0]).powi(2);
    }
    Ok(Some((squares / KERNEL_PAIRS as f64).sqrt()))
}

fn compare(model: &Model, map: &Arc<FeatureMap>, data: &Dataset, cancel: &Cancel) -> Result<Compared> {
    let certificate = &model.certificate;
    if model.settings.is_hard_margin() {
        return Err(Error::new(Code::Unsupported, "a hard margin is not learned through an exact kernel"));
    }
    // The same objective per row, with kernel values.
    let exact_settings = Settings {
        solver: Solver::Auto,
        kernel: exact(&model.settings.kernel, &map.kernel()),
        regularisation: Regularisation::C(certificate.c),
        stochastic: Default::default(),
        tolerance: model.settings.tolerance.max(TOLERANCE),
        max_passes: EXACT_PASSES,
        ..model.settings.clone()
    };
    choose_solver(&exact_settings, data.shape())?;
    let mapped_settings = Settings {
        regularisation: Regularisation::C(certificate.c),
        tolerance: exact_settings.tolerance,
        max_passes: model.settings.max_passes.min(MAPPED_PASSES),
        ..model.settings.clone()
    };
    let (learned, judged) = samples(data, model.settings.seed)?;
    cancel.check()?;

    let plain = Scaling::default();
    let design = |data: &Dataset| model.scaling.apply(data.matrix(), data.groups());
    let (learned_design, judged_design) = (design(&learned)?, design(&judged)?);
    let mapped = |design: &Design| plain.apply(&map.map(design, cancel)?, None);
    let (learned_mapped, judged_mapped) = (mapped(&learned_design)?, mapped(&judged_design)?);
    let posed = Posed::new(&BuiltIn, &learned, &mapped_settings)?;
    posed.check_range()?;
    // What the problem offers is known only now: two classes have one score, several may have one each.
    let solver = plan(posed.problem.abilities(), &mapped_settings, learned.shape())?;
    let metric = match (model.decoder.classes(), model.decoder.labels()) {
        (None, None) => Metric::PairAccuracy,
        _ => Metric::Accuracy,
    };
    let value = |mut scores: Vec<f64>, constants: &[f64]| {
        for scores in scores.chunks_exact_mut(constants.len().max(1)) {
            scores.iter_mut().zip(constants).for_each(|(score, constant)| *score += constant);
        }
        Answers::of_scores(scores, &model.decoder, &judged)?.evaluate(&metric).map(|found| found.value)
    };
    let mut run = Run {
        data: &learned,
        design: &learned_mapped,
        settings: &mapped_settings,
        solver,
        start: None,
        for_model: false,
        polishes: false,
        machine: None,
        referee: None,
        observer: &mut Silent,
        cancel,
    };
    let solution = posed.problem.solve(&mut run)?;
    cancel.check()?;
    let all: Vec<usize> = (0..judged_mapped.rows()).collect();
    let scores = judged_mapped.scores_of(&all, &solution.weights, posed.problem.shape().outputs);
    let approximate = value(scores, &constant_terms(&posed, &solution.thresholds))?;
    let posed = Posed::new(&BuiltIn, &learned, &exact_settings)?;
    let solver = plan(posed.problem.abilities(), &exact_settings, learned.shape())?;
    let mut run = Run {
        design: &learned_design,
        settings: &exact_settings,
        solver,
        for_model: true,
        polishes: true,
        observer: &mut Silent,
        machine: None,
        ..run
    };
    let found = posed.problem.solve(&mut run)?;
    let scorer = found.kernel.and_then(|kernel| kernel.scorer);
    let scorer = scorer.ok_or_else(|| Error::new(Code::Internal, "the exact kernel made no support vectors"))?;
    cancel.check()?;
    let exact = value(scorer.scores(&judged_design, &scorer.ready(&judged_design)?, cancel)?, &[])?;
    let size = |data: &Dataset| data.pairs().map_or(data.rows(), |pairs| pairs.len());
    Ok(Compared { metric, exact, approximate, learned: size(&learned), judged: size(&judged) })
}

/// The exact kernel, with the parameters found on all rows.
fn exact(settings: &KernelSettings, kernel: &Kernel) -> KernelSettings {
    KernelSettings { gamma: kernel.gamma(), approximate: None, ..settings.clone() }
}

/// Two samples of the rows (whole groups) or pairs: one to train on, and one to judge on.
fn samples(data: &Dataset, seed: u64) -> Result<(Dataset, Dataset)> {
    let (size, one, many) = match data.pairs() {
        Some(pairs) => (pairs.len(), "pair", "pairs"),
        None => (data.rows(), "row", "rows"),
    };
    if size < 2 * LEAST_SAMPLED {
        let few = counted(size as u64, one, many);
        return Err(Error::new(Code::TooFewToSplit, format!("{few} are too few to compare with the exact kernel")));
    }
    let seed = seed ^ SAMPLE;
    let share = 2.0 * MOST_SAMPLED as f64 / size as f64;
    let sample = match data.pairs() {
        _ if share >= 1.0 => data.clone(),
        None => data.subset(&holdout(data, share, seed)?.1)?,
        Some(_) => hold_out(data, share, seed)?.1,
    };
    let sample = match sample.pairs() {
        None => sample,
        Some(pairs) => {
            // Rows that no pair of the sample uses need not be mapped.
            let mut compared: Vec<usize> = pairs.left().iter().chain(pairs.right()).map(|&row| row as usize).collect();
            compared.sort_unstable();
            compared.dedup();
            sample.subset(&compared)?
        }
    };
    hold_out(&sample, 0.5, seed.wrapping_add(1))
}
