//! Probabilities of a classifier or of ratings, fitted on scores of rows that a model did not learn from.
//!
//! The rows are split into folds that keep the shares of classes and whole groups. A model without each fold scores the
//! rows of that fold, and one calibration is fitted on all these scores. It belongs to the model of all rows. Cost: as
//! many trainings as there are folds, each on a copy of its rows.
//!
//! A class that only one fold has is unknown to the model without this fold: its rows are left out, and the other rows
//! of this fold have no score for it. If the other folds hold a single class, or only classes that cost nothing in place
//! of each other, the fold is left out.
//!
//! What is fitted depends on the decoder ([`Decoder::coupling`]): the one score of two classes, a score for each class,
//! or with one-vs-one a score for each pair of classes. Other output codes have the scores of classes that they are
//! decoded to. Ratings have the distance of the score from each cut. In a model without some rank, one cut stands between
//! its neighbours, and counts as that above the lower one.

use super::{HeldOut, Training};
use crate::certificate::{Calibration, Coupling, Decoder, Scored};
use crate::data::{Dataset, Labels, column_of_pair, complement, folds};
use crate::error::{Code, Error, Result};
use crate::kernel::KernelKind;
use crate::model::Model;
use crate::run::{Cancel, Silent};
use crate::settings::{ClassifySettings, OrdinalSettings, Settings, TaskSettings};
use crate::task::{ClassWeight, WeightAs};

/// Number of folds, or fewer if there are fewer rows or groups.
const FOLDS: usize = 5;

/// Refuses calibration where no fold can be held out.
pub(super) fn check(data: &Dataset, settings: &Settings) -> Result<()> {
    let refused = |why: &str, help: &str| Err(Error::new(Code::Unsupported, why.to_string()).help(help.to_string()));
    if settings.probability().is_none() {
        return Ok(());
    }
    if settings.kernel.kind == KernelKind::Precomputed {
        return refused(
            "a precomputed kernel has a column for every row, so no rows can be held out for ⟦probability⟧",
            "leave ⟦probability⟧ out, or use a kernel of the features",
        );
    }
    if data.matrix().is_limited() {
        return refused(
            "⟦probability⟧ copies the rows of each fold, and the features do not fit into the memory budget",
            "leave ⟦probability⟧ or ⟦memory⟧ out, or use ⟦loss=logistic⟧, which has probabilities of its own",
        );
    }
    Ok(())
}

/// The calibration of a model, if its settings ask for one.
pub(super) fn calibration(
    training: &Training<'_>,
    model: &Model,
    held_out: Option<HeldOut<'_>>,
    cancel: &Cancel,
) -> Result<Option<Calibration>> {
    let (data, settings) = (training.data, training.settings);
    let Some(method) = settings.probability() else { return Ok(None) };
    let unfit = || Error::new(Code::Internal, "a classifier has no scores to fit probabilities to");
    let coupling = model.decoder.coupling().ok_or_else(unfit)?;
    let (codes, classes): (Vec<u32>, usize) = match (&model.decoder, labels_of(&model.decoder)) {
        (Decoder::Sign(two), _) => {
            let signs = two.signs(data.targets())?;
            (signs.into_iter().map(|sign| u32::from(sign > 0)).collect(), 2)
        }
        (_, Some(labels)) => (labels.codes(data.targets())?, labels.len()),
        (_, None) => return Err(unfit()),
    };
    let units = data.groups().map_or(data.rows(), |groups| groups.len());
    let parts = folds(data, FOLDS.min(units), settings.seed)?;
    let outputs = coupling.outputs(classes);
    let mut scores = vec![f64::NAN; codes.len() * outputs];
    let mut left_out = vec![false; codes.len()];
    for held in &parts {
        let part = data.subset(&complement(held, data.rows()))?;
        let mut known = vec![false; classes];
        for row in complement(held, data.rows()) {
            if data.weights().is_none_or(|weights| weights[row] > 0.0) {
                known[codes[row] as usize] = true;
            }
        }
        for &row in held {
            left_out[row] = !known[codes[row] as usize];
        }
        let several = known.iter().filter(|known| **known).count() > 1;
        let task = if several { plain(settings, &part, coupling)? } else { None };
        let Some(task) = task else {
            held.iter().for_each(|&row| left_out[row] = true);
            continue;
        };
        let settings = Settings { task, ..settings.clone() };
        let fold = Training { data: &part, settings: &settings, start: None, held_out, ..*training };
        let found = fold.run(&mut Silent, cancel)?.model;
        let own = found.scores_until(&data.subset(held)?, cancel)?;
        let own = found.decoder.to_calibrate(&own);
        let places = match (labels_of(&model.decoder), labels_of(&found.decoder)) {
            (Some(all), Some(some)) => places(coupling, all, some),
            _ => vec![0],
        };
        for (row, own) in held.iter().zip(own.chunks_exact(places.len())) {
            places.iter().zip(own).for_each(|(place, score)| scores[row * outputs + place] = *score);
        }
    }
    let kept: Vec<usize> = (0..codes.len()).filter(|&row| !left_out[row]).collect();
    if kept.is_empty() {
        let message = "no row has a score of a model that knows its class, so there is nothing to calibrate on";
        return Err(
            Error::new(Code::TooFewToSplit, message).help("give more rows of each class, or leave ⟦probability⟧ out")
        );
    }
    let scores: Vec<f64> = kept.iter().flat_map(|row| &scores[row * outputs..(row + 1) * outputs]).copied().collect();
    let own: Vec<u32> = kept.iter().map(|&row| codes[row]).collect();
    // A margin says nothing about how much a row counts, unless it is zero.
    let importance = |weight: f64| match settings.task.weight_as() {
        WeightAs::Margin => f64::from(u8::from(weight > 0.0)),
        WeightAs::Slack | WeightAs::Copies => weight,
    };
    let of_kept = |weights: &[f64]| kept.iter().map(|&row| importance(weights[row])).collect();
    let weights: Option<Vec<f64>> = data.weights().map(of_kept);
    let scored = Scored { scores: &scores, codes: &own, weights: weights.as_deref(), classes };
    let found = Calibration::fit(method, coupling, scored)?;
    Ok(Some(Calibration { folds: parts.len(), left_out: (codes.len() - kept.len()) as u64, ..found }))
}

/// The classes of a model that has several of them, or its ranks.
fn labels_of(decoder: &Decoder) -> Option<&Labels> {
    decoder.labels().or(decoder.cuts().map(|(_, ranks)| ranks))
}

/// Where the scores of a model that knows some of the classes stand among those of all classes, in the same order.
fn places(coupling: Coupling, all: &Labels, some: &Labels) -> Vec<usize> {
    let by_label = all.places();
    let known: Vec<usize> = some.names().iter().filter_map(|name| by_label.of(name)).collect();
    match coupling {
        // The cut above each rank but the last.
        Coupling::Cuts => return known[..known.len().saturating_sub(1)].to_vec(),
        Coupling::Complement | Coupling::Normalised => return known,
        Coupling::Pairs => {}
    }
    let with_later = |(at, &first): (usize, &usize)| {
        known[at + 1..].iter().map(move |&second| column_of_pair(all.len(), first, second)).collect::<Vec<_>>()
    };
    known.iter().enumerate().flat_map(with_later).collect()
}

/// The settings of the task for a fold: without a calibration of its own, with the same kinds of scores even if only
/// two classes are left, and with the weights and costs of the classes that are left. None if these cost nothing.
fn plain(settings: &Settings, part: &Dataset, coupling: Coupling) -> Result<Option<TaskSettings>> {
    let kept = |weights: &ClassWeight| -> Result<ClassWeight> {
        let mut weights = weights.clone();
        if let ClassWeight::ByLabel(weights) = &mut weights {
            let labels = Labels::find(part.targets())?;
            let places = labels.places();
            weights.retain(|label, _| places.of(label).is_some());
        }
        Ok(weights)
    };
    match &settings.task {
        TaskSettings::Classify(task) => {
            let mut task = ClassifySettings { probability: None, ..task.clone() };
            if coupling != Coupling::Complement {
                task.multiclass = Some(task.multiclass(settings.loss));
                task.class_weight = kept(&task.class_weight)?;
                if let Some(costs) = &task.cost_matrix {
                    let Some(among) = costs.among(&Labels::find(part.targets())?) else { return Ok(None) };
                    task.cost_matrix = Some(among);
                }
            }
            Ok(Some(task.into()))
        }
        TaskSettings::Ordinal(task) => {
            let class_weight = kept(&task.class_weight)?;
            Ok(Some(OrdinalSettings { probability: None, class_weight, ..task.clone() }.into()))
        }
        _ => Ok(None),
    }
}
