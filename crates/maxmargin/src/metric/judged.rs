//! [`Judged`]: the input of a metric, and [`Evaluation`]: its result.

use super::{Metric, Needs, TagNames};
use crate::data::{Groups, LabelSets, Pairs};
use crate::error::{Code, Error, Result};
use serde::Serialize;
use std::borrow::Cow;

/// The true value of each row.
#[derive(Clone, Copy, Debug)]
pub enum Truth<'a> {
    /// A grade or a real value. If exactly two values occur, binary metrics take the larger one as positive.
    Values(&'a [f64]),
    /// A class, as a code below `count`.
    Classes {
        /// The class of each row.
        codes: &'a [u32],
        /// Number of classes.
        count: usize,
        /// The positive class. With two classes, the default is the class with code 1.
        positive: Option<u32>,
    },
    /// Any number of labels.
    Sets {
        /// The labels of each row.
        sets: &'a LabelSets,
        /// Number of labels, each of which has a score.
        count: usize,
    },
    /// Which of two rows is better, for some of them.
    Pairs {
        /// The comparisons.
        pairs: &'a Pairs,
        /// Number of rows.
        rows: usize,
        /// The largest difference of scores that is predicted as a tie, if a threshold predicts ties.
        threshold: Option<f64>,
        /// The threshold of the likelihood, if it is a different one.
        likelihood: Option<f64>,
    },
}

/// Rows with their true values and a model's predictions for them.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The true values.
    pub truth: Truth<'a>,
    /// A score for each row: higher means better, or more positive, or is the estimate itself.
    pub scores: Option<&'a [f64]>,
    /// The scores of each row for all known classes, next to each other.
    pub class_scores: Option<&'a [f64]>,
    /// The probabilities of each row for all known classes, next to each other.
    pub probabilities: Option<&'a [f64]>,
    /// Number of classes that the model knows, if it is not all of them: codes from this number on are those of other
    /// classes.
    pub known: Option<usize>,
    /// The predicted class of each row.
    pub predictions: Option<&'a [u32]>,
    /// Which rows belong to one query. Rows of one query are in line order.
    pub groups: Option<&'a Groups>,
    /// How much each row counts, in metrics over rows.
    pub weights: Option<&'a [f64]>,
    /// The names of tags, if rows are those of sequences.
    pub tags: Option<TagNames<'a>>,
}

impl<'a> Judged<'a> {
    /// Rows of queries with grades.
    pub fn ranking(scores: &'a [f64], grades: &'a [f64], groups: &'a Groups) -> Judged<'a> {
        Judged { groups: Some(groups), ..Judged::reals(scores, grades) }
    }

    /// Rows with real targets, which the scores estimate.
    pub fn reals(scores: &'a [f64], targets: &'a [f64]) -> Judged<'a> {
        Judged { scores: Some(scores), ..Judged::of(Truth::Values(targets)) }
    }

    fn of(truth: Truth<'a>) -> Judged<'a> {
        Judged {
            truth,
            scores: None,
            class_scores: None,
            probabilities: None,
            known: None,
            predictions: None,
            groups: None,
            weights: None,
            tags: None,
        }
    }

    /// Rows with explicit pairs that state which row is better.
    pub fn pairs(scores: &'a [f64], pairs: &'a Pairs) -> Judged<'a> {
        let truth = Truth::Pairs { pairs, rows: scores.len(), threshold: None, likelihood: None };
        Judged { scores: Some(scores), ..Judged::of(truth) }
    }

    /// The same with a threshold: scores that differ by no more than this predict a tie.
    pub fn comparisons(scores: &'a [f64], pairs: &'a Pairs, threshold: f64) -> Judged<'a> {
        let truth = Truth::Pairs { pairs, rows: scores.len(), threshold: Some(threshold), likelihood: None };
        Judged { truth, ..Judged::pairs(scores, pairs) }
    }

    /// The same with the threshold of the likelihood, if it differs from the threshold that predicts ties.
    pub fn with_likelihood(mut self, threshold: f64) -> Judged<'a> {
        if let Truth::Pairs { likelihood, .. } = &mut self.truth {
            *likelihood = Some(threshold);
        }
        self
    }

    /// Rows of `count` classes, each with a predicted class. Codes are below `count`.
    pub fn classes(codes: &'a [u32], count: usize, predictions: &'a [u32]) -> Judged<'a> {
        Judged { predictions: Some(predictions), ..Judged::of(Truth::Classes { codes, count, positive: None }) }
    }

    /// Rows with sets of labels, and the score of each row for each of `count` labels.
    pub fn sets(sets: &'a LabelSets, count: usize, scores: &'a [f64]) -> Judged<'a> {
        Judged { class_scores: Some(scores), ..Judged::of(Truth::Sets { sets, count }) }
    }

    /// Says that the rows of each group are a sequence, and what their tags are called.
    pub fn with_tags(self, tags: TagNames<'a>, groups: &'a Groups) -> Judged<'a> {
        Judged { tags: Some(tags), groups: Some(groups), ..self }
    }

    /// Adds the scores of each row for all known classes.
    pub fn with_class_scores(self, scores: &'a [f64]) -> Judged<'a> {
        Judged { class_scores: Some(scores), ..self }
    }

    /// Adds the probabilities of each row for all known classes.
    pub fn with_probabilities(self, probabilities: &'a [f64]) -> Judged<'a> {
        Judged { probabilities: Some(probabilities), ..self }
    }

    /// Says how many classes the model knows.
    pub fn with_known(self, classes: usize) -> Judged<'a> {
        Judged { known: Some(classes), ..self }
    }

    /// Number of classes that the model knows.
    pub(super) fn known_classes(&self) -> usize {
        match self.truth {
            Truth::Classes { count, .. } => self.known.unwrap_or(count).min(count),
            Truth::Sets { count, .. } => count,
            _ => 0,
        }
    }

    /// Whether the targets are classes that are compared by their order, over all rows.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.truth, Truth::Classes { .. }) && (self.groups.is_none() || self.known_classes() > 2)
    }

    /// The rows of classes that the model knows, or an error if there are none, and a note about the others.
    pub(super) fn known_rows(&self, metric: &Metric) -> Result<(Vec<usize>, Vec<String>)> {
        let (codes, _) = self.needed_classes(metric)?;
        let known = self.known_classes() as u32;
        let rows: Vec<usize> = (0..codes.len()).filter(|&row| codes[row] < known).collect();
        let weight = |row: &usize| self.weights.is_none_or(|weights| weights[*row] > 0.0);
        if !rows.iter().any(weight) {
            let message = format!("{metric} cannot be computed: the model knows the class of no row");
            return Err(mismatch(message).help("evaluate on rows of the classes that the model was trained on"));
        }
        let others = (codes.len() - rows.len()) as u64;
        let verb = if others == 1 {
            "row of a class that the model does not know is"
        } else {
            "rows of classes that the model does not know are"
        };
        let note = (others > 0).then(|| format!("{} {verb} left out of {metric}", crate::wording::count(others)));
        Ok((rows, note.into_iter().collect()))
    }

    /// Adds the score of the positive class.
    pub fn with_scores(self, scores: &'a [f64]) -> Judged<'a> {
        Judged { scores: Some(scores), ..self }
    }

    /// Names the positive class. It has no effect on numeric targets.
    pub fn with_positive(self, code: u32) -> Judged<'a> {
        match self.truth {
            Truth::Values(_) | Truth::Pairs { .. } | Truth::Sets { .. } => self,
            Truth::Classes { codes, count, .. } => {
                Judged { truth: Truth::Classes { codes, count, positive: Some(code) }, ..self }
            }
        }
    }

    /// Adds a weight for each row, if there are any.
    pub fn with_weights(self, weights: Option<&'a [f64]>) -> Judged<'a> {
        Judged { weights, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self.truth {
            Truth::Values(values) => values.len(),
            Truth::Classes { codes, .. } => codes.len(),
            Truth::Sets { sets, .. } => sets.len(),
            Truth::Pairs { rows, .. } => rows,
        }
    }

    /// Checks once what every metric relies on: equal lengths, finite targets, scores that are numbers, codes in range,
    /// usable weights. The accessors below check whether the metric has what it needs.
    pub(super) fn check(&self, metric: &Metric) -> Result<()> {
        let rows = self.rows();
        if rows == 0 {
            return Err(Error::new(Code::NoRows, format!("there are no rows to compute {metric} on")));
        }
        let lengths = [
            ("scores", self.scores.map(<[f64]>::len)),
            ("predictions", self.predictions.map(<[u32]>::len)),
            ("weights", self.weights.map(<[f64]>::len)),
            ("grouped rows", self.groups.map(Groups::rows)),
            ("tags", self.tags.map(|tags| tags.truth.len())),
        ];
        for (what, length) in lengths {
            if let Some(length) = length.filter(|&length| length != rows) {
                return Err(Error::new(Code::Internal, format!("{length} {what} for {rows} targets")));
            }
        }
        if let Some(row) = self.scores.and_then(|scores| scores.iter().position(|score| score.is_nan())) {
            return Err(mismatch(format!("{metric} cannot be computed: the score of row {} is not a number", row + 1))
                .help("look for features far outside the range of the training data, and train again"));
        }
        self.check_classes(metric)?;
        if let Some(TagNames { truth, names }) = self.tags {
            let codes = truth.iter().chain(self.predictions.unwrap_or_default());
            if codes.max().is_some_and(|&code| code as usize >= names.len()) {
                return Err(Error::new(Code::Internal, format!("a tag is not below {}", names.len())));
            }
        }
        match self.truth {
            Truth::Values(values) => {
                if let Some(row) = values.iter().position(|value| !value.is_finite()) {
                    let message =
                        format!("{metric} cannot be computed: the target of row {} is {}", row + 1, values[row]);
                    return Err(mismatch(message).help("give every row a finite target"));
                }
            }
            Truth::Classes { codes, count, positive } => {
                let known = |codes: &[u32]| codes.iter().all(|&code| (code as usize) < count);
                let positive = positive.as_slice();
                if !known(codes) || !known(self.predictions.unwrap_or_default()) || !known(positive) {
                    return Err(Error::new(Code::Internal, format!("a class code is not below {count}")));
                }
            }
            Truth::Sets { sets, count } => {
                if sets.iter().flatten().any(|&label| label as usize >= count) {
                    return Err(Error::new(Code::Internal, format!("a label is not below {count}")));
                }
            }
            Truth::Pairs { pairs, rows, .. } => {
                if pairs.rows() > rows {
                    return Err(Error::new(Code::Internal, format!("a pair names a row that is not below {rows}")));
                }
            }
        }
        self.check_weights(metric)
    }

    /// Checks numbers that each class has.
    fn check_classes(&self, metric: &Metric) -> Result<()> {
        let known = self.known_classes();
        for numbers in [self.class_scores, self.probabilities].into_iter().flatten() {
            if numbers.len() != self.rows() * known {
                let message = format!("{} numbers for {} targets of {known} classes", numbers.len(), self.rows());
                return Err(Error::new(Code::Internal, message));
            }
            if let Some(at) = numbers.iter().position(|number| number.is_nan()) {
                let row = at / known.max(1) + 1;
                return Err(mismatch(format!("{metric} cannot be computed: a score of row {row} is not a number"))
                    .help("look for features far outside the range of the training data, and train again"));
            }
        }
        Ok(())
    }

    fn check_weights(&self, metric: &Metric) -> Result<()> {
        let Some(weights) = self.weights.filter(|_| metric.honours_weights()) else {
            return Ok(());
        };
        if let Some(row) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            let message = format!("the weight of row {} is {}", row + 1, weights[row]);
            return Err(Error::new(Code::BadWeight, message).help("weights are finite numbers of zero or more"));
        }
        if weights.iter().all(|&weight| weight == 0.0) {
            let message = format!("{metric} cannot be computed: every row has weight 0");
            return Err(Error::new(Code::BadWeight, message).help("give at least one row a weight above zero"));
        }
        Ok(())
    }

    pub(super) fn needed_scores(&self, metric: &Metric) -> Result<&'a [f64]> {
        if let Truth::Sets { .. } = self.truth {
            return Err(sets_only(metric));
        }
        self.scores.ok_or_else(|| {
            mismatch(format!("{metric} needs one score a row, and there are only predicted classes"))
                .help(alternatives(Needs::Predictions))
        })
    }

    pub(super) fn needed_class_scores(&self, metric: &Metric) -> Result<&'a [f64]> {
        self.class_scores.ok_or_else(|| {
            mismatch(format!("{metric} needs a score for each class, and there is none"))
                .help(alternatives(Needs::Predictions))
        })
    }

    pub(super) fn needed_probabilities(&self, metric: &Metric) -> Result<&'a [f64]> {
        if let Truth::Sets { .. } = self.truth {
            return Err(sets_only(metric));
        }
        self.probabilities.ok_or_else(|| {
            mismatch(format!("{metric} needs the probability of each class, and there are none"))
                .help("train with ⟦loss=logistic⟧, or choose another metric")
        })
    }

    pub(super) fn needed_groups(&self, metric: &Metric) -> Result<&'a Groups> {
        self.groups.ok_or_else(|| {
            Error::new(Code::NoGroups, format!("{metric} is a mean over queries, and the rows have no query ids")).help(
                "give each row its query id (`qid:` or ⟦group⟧), or choose a metric over rows such as auc or rmse",
            )
        })
    }

    pub(super) fn needed_predictions(&self, metric: &Metric) -> Result<&'a [u32]> {
        if let Truth::Sets { .. } = self.truth {
            return Err(sets_only(metric));
        }
        self.predictions.ok_or_else(|| {
            mismatch(format!("{metric} needs a predicted class for each row, and there are only scores"))
                .help(alternatives(if self.groups.is_some() { Needs::Groups } else { Needs::Reals }))
        })
    }

    pub(super) fn needed_classes(&self, metric: &Metric) -> Result<(&'a [u32], usize)> {
        match self.truth {
            Truth::Classes { codes, count, .. } => Ok((codes, count)),
            Truth::Sets { .. } => Err(sets_only(metric)),
            Truth::Pairs { .. } => Err(pairs_only(metric)),
            Truth::Values(_) => Err(mismatch(format!("{metric} compares classes, and the targets are numbers"))
                .help(alternatives(if self.groups.is_some() { Needs::Groups } else { Needs::Reals }))),
        }
    }

    pub(super) fn needed_reals(&self, metric: &Metric) -> Result<&'a [f64]> {
        match self.truth {
            Truth::Values(values) => Ok(values),
            Truth::Sets { .. } => Err(sets_only(metric)),
            Truth::Pairs { .. } => Err(pairs_only(metric)),
            Truth::Classes { .. } => Err(mismatch(format!("{metric} needs numeric targets, and these are classes"))
                .help(alternatives(Needs::Predictions))),
        }
    }

    /// The targets as grades: numbers are unchanged, the positive class is 1 and every other class is 0.
    pub(super) fn needed_grades(&self, metric: &Metric) -> Result<Cow<'a, [f64]>> {
        match self.truth {
            Truth::Values(values) => Ok(Cow::Borrowed(values)),
            Truth::Sets { .. } => Err(sets_only(metric)),
            Truth::Pairs { .. } => Err(pairs_only(metric)),
            Truth::Classes { codes, .. } => {
                let positive = self.needed_positive(metric)?;
                Ok(codes.iter().map(|&code| f64::from(u8::from(code == positive))).collect())
            }
        }
    }

    /// The labels of each row, and the number of labels.
    pub(super) fn needed_sets(&self, metric: &Metric) -> Result<(&'a LabelSets, usize)> {
        match self.truth {
            Truth::Sets { sets, count } => Ok((sets, count)),
            _ => Err(mismatch(format!("{metric} is for sets of labels, and these rows have one target each"))
                .help("use it with models of `multilabel`, or choose another metric")),
        }
    }

    /// The code of the positive class.
    pub(super) fn needed_positive(&self, metric: &Metric) -> Result<u32> {
        let (_, count) = self.needed_classes(metric)?;
        match self.truth {
            Truth::Classes { positive: Some(positive), .. } => Ok(positive),
            _ if count == 2 => Ok(1),
            _ if count < 2 => Err(single_class(metric)),
            _ => Err(Error::new(Code::TooManyClasses, format!("{metric} is for two classes, and there are {count}"))
                .help(alternatives(Needs::Predictions))),
        }
    }

    /// Whether each row is positive.
    pub(super) fn needed_labels(&self, metric: &Metric) -> Result<Vec<bool>> {
        let values = match self.truth {
            Truth::Classes { codes, .. } => {
                let positive = self.needed_positive(metric)?;
                return Ok(codes.iter().map(|&code| code == positive).collect());
            }
            Truth::Pairs { .. } => return Err(pairs_only(metric)),
            Truth::Sets { .. } => return Err(sets_only(metric)),
            Truth::Values(values) => values,
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if let Some(other) = values.iter().find(|&&value| value != least && value != greatest) {
            return Err(mismatch(format!(
                "{metric} needs targets of two values, and there are {least}, {other} and {greatest}"
            ))
            .help("for more than two grades choose pair-accuracy, kendall-tau or ndcg"));
        }
        if least == greatest {
            return Err(single_class(metric));
        }
        Ok(values.iter().map(|&value| value == greatest).collect())
    }
}

pub(super) fn mismatch(message: String) -> Error {
    Error::new(Code::MetricMismatch, message)
}

/// The error for a curve over positives and negatives if one of them is missing.
pub(super) fn single_class(metric: &Metric) -> Error {
    Error::new(
        Code::SingleClass,
        format!("{metric} compares positive rows with negative ones, and all rows are of one class"),
    )
    .help("evaluate on data that hold both classes, or choose accuracy")
}

/// The error for a metric over single targets if rows have sets of labels.
fn sets_only(metric: &Metric) -> Error {
    mismatch(format!("{metric} needs one target a row, and these are sets of labels")).help(
        "metrics that fit are label-ranking-average-precision, ranking-loss, f1-micro, f1-macro, hamming-loss and \
         subset-accuracy",
    )
}

/// The error for a metric over targets if there are only pairs.
fn pairs_only(metric: &Metric) -> Error {
    mismatch(format!("{metric} needs targets, and these are pairs of a better and a worse row"))
        .help("pairs are measured by pair-accuracy")
}

fn alternatives(needs: Needs) -> String {
    let names = match needs {
        Needs::Groups => "ndcg@10, map, mrr or pair-accuracy",
        Needs::Reals => "mae, rmse, or auc where targets have two values",
        _ => "accuracy, error, f1-micro or f1-macro",
    };
    format!("metrics that fit are {names}")
}

/// The value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// The value over everything that counted.
    pub value: f64,
    /// For list metrics, the value of each query in order; `None` if the query was skipped.
    pub per_query: Option<Vec<Option<f64>>>,
    /// Number of queries or rows that the value covers.
    pub counted: usize,
    /// Number of queries skipped because the metric is not defined on them.
    pub skipped: usize,
    /// Notes for the reader of the value, one sentence each.
    pub notes: Vec<String>,
}
