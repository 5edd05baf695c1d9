//! [`Answers`]: a model's predictions for rows with known targets, in the form that metrics take.

use super::probabilities::{of_odds, own};
use super::{Decoder, Model};
use crate::certificate::{CodeDecoder, Predictions};
use crate::data::{Dataset, LabelSets, Labels};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::metric::{ClassTable, Evaluation, Judged, Metric, Needs, TagNames, with_true_pieces};
use crate::settings::{Method, Settings};
use crate::structured::{sequences_of, trees_of};
use std::borrow::Cow;
use std::collections::HashMap;

/// Scores of the rows of a data set and, for classifiers, the true and the predicted classes.
#[derive(Clone, Debug)]
pub struct Answers<'a> {
    data: &'a Dataset,
    decoder: Decoder,
    /// The score of each row, or its scores for all classes, next to each other.
    pub scores: Vec<f64>,
    /// The true class of each row; empty for rankers. A label that the model does not know has the code after the last
    /// class.
    pub codes: Vec<u32>,
    /// Number of classes, with that of unknown labels.
    classes: usize,
    /// Number of rows with a label that the model does not know.
    pub unknown: usize,
    predictions: Option<Vec<u32>>,
    /// The value of the predicted rank of each row, for ratings.
    ranked: Option<Vec<f64>>,
    /// The largest difference of scores that is predicted as a tie, and the threshold of a comparison.
    thresholds: Option<(f64, f64)>,
    /// Whether scores are log-odds, as those of the logistic loss are.
    probable: bool,
    /// The predicted class of each row as a number, if each class has a score and all labels are numbers.
    values: Option<Vec<f64>>,
    /// The probabilities of each row for all classes, if the model has probabilities.
    probabilities: Option<Vec<f64>>,
    /// Whether the probabilities were fitted.
    calibrated: bool,
    /// The true labels of each row, if sets are predicted.
    sets: Option<LabelSets>,
    /// The true tags of sequences and the names of all tags, those that the model does not know last. For trees, the
    /// pieces of the true trees and the names of all pieces.
    tags: Option<(Vec<u32>, Vec<String>)>,
}

impl Answers<'_> {
    /// A model's predictions for data.
    pub fn new<'a>(model: &Model, data: &'a Dataset) -> Result<Answers<'a>> {
        let scores = model.scores(data)?;
        let fitted = model
            .calibration
            .as_ref()
            .map(|calibration| calibration.probabilities(&model.decoder.to_calibrate(&scores)));
        let answers = Answers::of_scores(scores, &model.decoder, data)?.trained_with(&model.settings);
        Ok(match fitted {
            Some(fitted) => Answers { probabilities: Some(fitted), calibrated: true, ..answers },
            None => answers,
        })
    }

    /// The predictions of given scores, row by row in stored order.
    pub fn of_scores<'a>(scores: Vec<f64>, decoder: &Decoder, data: &'a Dataset) -> Result<Answers<'a>> {
        if decoder.grammar().is_some() {
            return Answers::of_trees(scores, decoder, data);
        }
        let known = |positives: Vec<bool>| positives.into_iter().map(|positive| Some(u32::from(positive))).collect();
        let (codes, mut classes): (Vec<Option<u32>>, usize) = match decoder {
            Decoder::Border(classes) => (known(classes.positives(data.targets())?), 2),
            Decoder::Sign(classes) => {
                (known(classes.signs(data.targets())?.into_iter().map(|sign| sign > 0).collect()), 2)
            }
            Decoder::Largest(labels) | Decoder::Code(CodeDecoder { labels, .. }) => {
                (labels.known_codes(data.targets())?, labels.len())
            }
            Decoder::Cuts { ranks: labels, .. } | Decoder::Sequence { tags: labels, .. } => {
                (labels.known_codes(data.targets())?, labels.len())
            }
            _ => (Vec::new(), 0),
        };
        let unknown = codes.iter().filter(|code| code.is_none()).count();
        let codes: Vec<u32> = codes.into_iter().map(|code| code.unwrap_or(classes as u32)).collect();
        classes += usize::from(unknown > 0);
        let tags = match decoder.tags() {
            Some(known) => {
                sequences_of(data)?;
                Some(all_tags(known, &codes, data))
            }
            None => None,
        };
        let sets = match decoder.label_sets() {
            Some((labels, _)) => Some(LabelSets::of(labels, data.targets())?),
            None => None,
        };
        let answers = decoder.predictions(scores, 1, None, data.groups());
        let predictions = match (&answers, answers.positives()) {
            (Predictions::Classes { .. } | Predictions::Ranks { .. } | Predictions::Tags { .. }, _) => {
                Some((0..answers.len()).filter_map(|row| answers.class(row).map(|class| class as u32)).collect())
            }
            (_, positives) => positives.map(|positives| positives.map(u32::from).collect()),
        };
        let ranked = decoder.cuts().and_then(|(_, ranks)| ranks.values()).map(|values| {
            let codes: &[u32] = predictions.as_deref().unwrap_or_default();
            codes.iter().map(|&code| values[code as usize]).collect()
        });
        let thresholds = decoder.tie_width().zip(decoder.threshold());
        let (Predictions::Scores { scores, .. }
        | Predictions::Labels { scores, .. }
        | Predictions::Classes { scores, .. }
        | Predictions::Ranks { scores, .. }
        | Predictions::Sets { scores, .. }
        | Predictions::Tags { scores, .. }
        | Predictions::Trees { scores, .. }) = answers
        else {
            return Err(Error::new(Code::Internal, "rows were asked for, and pairs were answered"));
        };
        let probable = matches!(decoder, Decoder::Likelihood { .. });
        let numbers = decoder.labels().and_then(|labels| labels.numbers());
        let values = numbers.zip(predictions.as_ref()).map(|(numbers, predictions): (Vec<f64>, &Vec<u32>)| {
            predictions.iter().map(|&class| numbers[class as usize]).collect()
        });
        Ok(Answers {
            data,
            decoder: decoder.clone(),
            scores,
            codes,
            classes,
            unknown,
            predictions,
            ranked,
            thresholds,
            probable,
            values,
            probabilities: None,
            calibrated: false,
            sets,
            tags,
        })
    }

    /// The same for trees: the pieces of predicted and true trees are the classes.
    fn of_trees<'a>(scores: Vec<f64>, decoder: &Decoder, data: &'a Dataset) -> Result<Answers<'a>> {
        let groups = sequences_of(data)?;
        let Predictions::Trees { scores, codes: predictions, pieces, .. } =
            decoder.predictions(scores, decoder.outputs(), None, Some(groups))
        else {
            return Err(Error::new(Code::Internal, "trees were asked for, and something else was predicted"));
        };
        // Says what is wrong with targets that are no trees.
        trees_of(data, None)?;
        let truth = (0..data.rows()).map(|row| Cow::Owned(data.targets().label_of(row)));
        let (codes, names) = with_true_pieces(pieces.names(), truth);
        Ok(Answers {
            data,
            decoder: decoder.clone(),
            scores,
            classes: names.len(),
            unknown: 0,
            predictions: Some(predictions),
            ranked: None,
            thresholds: None,
            probable: false,
            values: None,
            probabilities: None,
            calibrated: false,
            sets: None,
            tags: Some((codes.clone(), names)),
            codes,
        })
    }

    /// True against predicted classes, by weight, if the model predicts classes. If there are rows with labels that the
    /// model does not know, they are a class after the last one.
    pub fn table(&self) -> Option<ClassTable> {
        let predictions = self.predictions.as_ref()?;
        Some(ClassTable::new(&self.codes, predictions, self.data.weights(), self.classes))
    }

    /// The predicted class of each row, if the model predicts classes.
    pub fn predictions(&self) -> Option<&[u32]> {
        self.predictions.as_deref()
    }

    /// How much each row counts, if rows have weights.
    pub fn weights(&self) -> Option<&[f64]> {
        self.data.weights()
    }

    /// The true labels of each row that the model knows, if sets are predicted.
    pub fn sets(&self) -> Option<&LabelSets> {
        self.sets.as_ref()
    }

    /// Number of classes that the model knows.
    pub fn known(&self) -> usize {
        self.classes - usize::from(self.unknown > 0)
    }

    /// Whether each class has a score of its own.
    fn several(&self) -> bool {
        self.predictions.is_some() && self.scores.len() != self.codes.len()
    }

    /// The same, given the settings of the model: they tell whether scores are log-odds.
    pub fn trained_with(self, settings: &Settings) -> Self {
        let odds = self.predictions.is_some() || settings.method() == Some(Method::Compare);
        let probable = self.probable || odds && settings.loss == Loss::Logistic;
        // Scores of several classes and ranks are log-odds only in some forms.
        let outputs = self.scores.len() / self.codes.len().max(1);
        let odds = own(settings, &self.decoder).is_some_and(|own| own == outputs);
        let probabilities = (odds && probable).then(|| of_odds(&self.scores, outputs, &self.decoder));
        let probable = probable && (odds || !(self.several() || self.ranked.is_some()));
        Answers { probable, probabilities, ..self }
    }

    /// Stands in for probabilities that training will fit, to check metrics before.
    pub fn expecting(self, settings: &Settings) -> Self {
        let classes = self.known();
        let fitted = settings.probability().is_some() && self.predictions.is_some() && classes > 0;
        match fitted {
            true => {
                let probabilities = Some(vec![1.0 / classes as f64; self.codes.len() * classes]);
                Answers { probabilities, calibrated: true, ..self }
            }
            false => self,
        }
    }

    /// The probabilities of each row for all classes, if the model has probabilities.
    pub fn probabilities(&self) -> Option<&[f64]> {
        self.probabilities.as_deref()
    }

    /// The input of a metric. Metrics over lists need grades: the classes of a classifier become 0 and 1, and weights
    /// are ignored. If there are explicit pairs, pair-accuracy is computed over them.
    pub fn judged(&self, metric: &Metric) -> Result<Judged<'_>> {
        if *metric == Metric::LogLoss && !self.probable && !self.calibrated {
            let message = "log-loss needs probabilities, and the scores of this model are not log-odds";
            return Err(Error::new(Code::MetricMismatch, message).help(
                "train with ⟦loss=logistic⟧ (comparisons: without another ⟦method⟧; classifiers: or with \
                 ⟦probability=platt⟧), or choose another metric",
            ));
        }
        if let (Some((width, threshold)), Some(pairs)) = (self.thresholds, self.data.pairs()) {
            return Ok(Judged::comparisons(&self.scores, pairs, width).with_likelihood(threshold));
        }
        if let (None, Some(pairs), Metric::PairAccuracy) = (&self.predictions, self.data.pairs(), metric) {
            return Ok(Judged::pairs(&self.scores, pairs));
        }
        if let (Some(sets), Some((labels, _))) = (&self.sets, self.decoder.label_sets()) {
            let weights = self.data.weights().filter(|_| metric.honours_weights());
            let judged = Judged::sets(sets, labels.len(), &self.scores);
            return Ok(Judged { groups: self.data.groups(), weights, ..judged });
        }
        let judged = match &self.predictions {
            Some(predictions) if self.tags.is_some() => {
                let judged = Judged::classes(&self.codes, self.classes, predictions).with_known(self.known());
                match (&self.tags, self.data.groups()) {
                    (Some((truth, names)), Some(groups)) => judged.with_tags(TagNames { truth, names }, groups),
                    _ => judged,
                }
            }
            Some(predictions)
                if self.ranked.is_some()
                    && (*metric == Metric::LogLoss || metric.needs() == Needs::Probabilities)
                    && self.probabilities.is_some() =>
            {
                let judged = Judged::classes(&self.codes, self.classes, predictions).with_known(self.known());
                Judged { probabilities: self.probabilities.as_deref(), ..judged }
            }
            // Errors are those of the predicted ranks, and orders those of the scores.
            Some(_) if self.ranked.is_some() && metric.needs() != Needs::Predictions => {
                let estimates = self.ranked.as_ref().filter(|_| metric.needs() == Needs::Reals);
                Judged::reals(estimates.unwrap_or(&self.scores), self.data.targets().real()?)
            }
            Some(predictions) if self.ranked.is_some() => {
                Judged::classes(&self.codes, self.classes, predictions).with_known(self.known())
            }
            Some(_) if self.several() && metric.needs() == Needs::Reals => {
                let values = self.values.as_ref().ok_or_else(|| {
                    let message = format!("{metric} needs classes that are numbers");
                    Error::new(Code::MetricMismatch, message).help("for classes in an order, qwk is one that fits")
                })?;
                Judged::reals(values, self.data.targets().real()?)
            }
            Some(predictions) => {
                let judged = Judged::classes(&self.codes, self.classes, predictions).with_known(self.known());
                // The log-odds of one score are more exact than the probabilities made of them.
                let exact = *metric == Metric::LogLoss && !self.calibrated && !self.several();
                let probabilities = self.probabilities.as_deref().filter(|_| !exact);
                let judged = Judged { probabilities, ..judged };
                // With one score per row, it is that of the second class.
                match self.several() {
                    true => judged.with_class_scores(&self.scores),
                    false => judged.with_scores(&self.scores),
                }
            }
            None => Judged::reals(&self.scores, self.data.targets().real()?),
        };
        let weights = self.data.weights().filter(|_| metric.honours_weights());
        Ok(Judged { groups: self.data.groups(), weights, ..judged })
    }

    /// The value of a metric.
    pub fn evaluate(&self, metric: &Metric) -> Result<Evaluation> {
        metric.evaluate(&self.judged(metric)?)
    }
}

/// The true tag of each row, and the names of all tags: those of the model, then the others in order of appearance.
fn all_tags(known: &Labels, codes: &[u32], data: &Dataset) -> (Vec<u32>, Vec<String>) {
    let mut names = known.names().to_vec();
    let mut others: HashMap<String, u32> = HashMap::new();
    let truth = codes.iter().enumerate().map(|(row, &code)| {
        if (code as usize) < known.len() {
            return code;
        }
        *others.entry(data.targets().label_of(row)).or_insert_with_key(|label| {
            names.push(label.clone());
            names.len() as u32 - 1
        })
    });
    (truth.collect(), names)
}
