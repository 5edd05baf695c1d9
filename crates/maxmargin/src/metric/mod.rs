//! Metrics: how good scores or predictions are. They see scores, targets and groups, never features.
//!
//! A [`Metric`] is parsed from a name such as `ndcg@10:letor`, states what it [`needs`](Metric::needs), and turns a
//! [`Judged`] set of rows into an [`Evaluation`]. Every metric costs O(n log n) at most, and its value does not
//! depend on the number of threads.
//!
//! # Variants of the list metrics
//!
//! `ndcg`, `mean-ndcg`, `map` and `p@K` are computed in different ways by different programs, so each takes a
//! [`Variant`]:
//!
//! | variant | gain | discount at position p | relevant (map, p@K) | equal scores | a list shorter than K |
//! |---|---|---|---|---|---|
//! | `standard` | 2^grade − 1 | 1 / log2(1 + p) | grade ≥ 1 | the mean over all orders of the tied rows | counts as it is |
//! | `letor` | 2^grade − 1 | 1, 1, then 1 / log2(p) | grade ≥ 1 | line order | adds 0 to NDCG@K |
//! | `mslr` | 2^grade − 1 | 1, 1, then 1 / log2(p) | grade ≥ 2 | line order | adds 0 to NDCG@K |
//! | `trec` | grade | 1 / log2(1 + p) | grade ≥ 1 | reverse line order | counts as it is |
//! | `sklearn` | grade | 1 / log2(1 + p) | grade ≥ 1 | averaged (map: one threshold for the tied rows) | counts as it is |
//!
//! The default is `standard`: the gain and discount that XGBoost, LightGBM, RankLib and search engines use, so that the
//! values can be compared with theirs. The `letor` rule exists for the published LETOR tables. As a default it would
//! mislead: a query with nine documents scores 0 at NDCG@10, even if it is ranked perfectly. `standard` averages over
//! ties because line order rewards files that are sorted by grade: a model that scores everything 0 would be perfect on
//! them. Without ties, `standard` equals those programs up to rounding. trec_eval breaks ties by document id,
//! descending; rows have no ids here, so `trec` takes the later line first.
//!
//! In all variants, a grade below zero has gain 0, P@K divides by K, and a query without any relevant row counts as 0.
//! The [`Evaluation`] notes how many such queries there were.
//!
//! # The other list metrics
//!
//! - `mrr`, `mrr@K`: one over the position of the first relevant row (grade ≥ 1), or 0 if the first K rows hold none.
//!   For equal scores it is the mean over all orders.
//! - `err`, `err@K`: expected reciprocal rank (Chapelle et al. 2009) with stopping probability (2^grade − 1) /
//!   2^highest, where `highest` is the highest grade in the evaluated data. Equal scores are in line order.
//! - `kendall-tau`: tau-b between scores and targets within a query. A query whose targets are all equal is skipped; a
//!   query whose scores are all equal counts as 0.
//! - `pair-accuracy`: among the pairs in a query with different targets, the fraction that the scores put in the right
//!   order; equal scores count half. Queries without such a pair are skipped. With explicit pairs, it is the share of
//!   their total weight in the right order, and resampling draws pairs or their groups.
//!
//! All list metrics are means over queries and ignore row weights.
//!
//! # Row metrics
//!
//! `accuracy`, `error`, `precision`, `recall`, `f1`, `f1-micro`, `f1-macro`, `auc`, `average-precision`, `log-loss`,
//! `mae` and `rmse` use row weights. `comparisons.rs` describes the metrics of comparisons. In `auc`, equal scores
//! count half; in `average-precision`, tied rows share one threshold. A precision, recall or F1 is 0 if
//! its denominator is. `f1-macro`, `precision-macro` and `recall-macro` average over the classes that occur among the
//! true or predicted classes.
//!
//! # Sequences
//!
//! `token-accuracy` is `accuracy` over the rows of sequences; `sequence-accuracy` counts the sequences all of whose tags
//! are right; `spans.rs` describes `span-f1`. Resampling draws whole sequences for the last two.
//!
//! # Label sets
//!
//! `sets.rs` describes the metrics of label sets. `f1-micro` and `f1-macro` take label sets, too: a label of a row counts
//! like a row of a class.
//!
//! # Trees
//!
//! `brackets.rs` describes `labelled-precision`, `labelled-recall`, `labelled-f1`, `exact-match` and `tag-accuracy`.
//! Resampling draws sentences.
//!
//! # Several classes
//!
//! - `auc`, `average-precision`: of each class against the rest, by the score of that class; the mean over the classes
//!   that have rows inside and outside. `auc-weighted` weighs the classes by their rows.
//! - `top-accuracy@K`: the right class has one of the K largest scores. Of e classes with the same score of which only
//!   t fit into the first K, each is there with probability t/e.
//! - `qwk`: kappa with quadratic weights, 1 − Σ O_ij (i − j)² / Σ E_ij (i − j)². O counts the rows of true class i
//!   and predicted class j, E is what its two margins make by chance, and i and j are positions in the order of the
//!   labels.
//! - `kendall-tau` of several classes, or of classes without groups: tau-b over all rows between positions in the order of the labels and the
//!   score, or the predicted position where each class has a score of its own.
//! - `log-loss`: from the probabilities of all classes. `calibration-error`: ten bins of equal width by the probability
//!   of the predicted class; the mean distance of a bin's mean probability from its share of right predictions.
//!
//! A row of a class that the model does not know is predicted wrongly, is outside every class in `auc`, and is left
//! out, with a note, where it has no position or no probability.

mod bootstrap;
mod brackets;
mod classes;
mod comparisons;
mod deviation;
mod judged;
mod kappa;
mod lists;
mod name;
mod ndcg;
mod one_against_rest;
mod order;
mod pairs;
mod probabilities;
mod reciprocal;
mod relevance;
mod roc;
mod rows;
mod sets;
mod spans;
mod table;
#[cfg(test)]
mod tests;
mod top;

pub use crate::certificate::{Bin, reliability_curve};
pub use crate::data::{outcome_of, score_differences};
pub use crate::structured::Variant;
pub use bootstrap::Interval;
pub(crate) use bootstrap::quantile;
pub(crate) use brackets::with_true_pieces;
pub use comparisons::{confusion, decided_scores};
pub use judged::{Evaluation, Judged, Truth};
pub(crate) use ndcg::ndcg_of_list;
pub use roc::roc_curve;
pub use spans::TagNames;
pub use table::{ByClass, ClassTable, Confused};

use crate::error::Result;
use std::num::NonZeroUsize;

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// The fraction of rows whose predicted class is right.
    Accuracy,
    /// The fraction of rows whose predicted class is wrong.
    Error,
    /// Of the rows predicted positive, the fraction that is positive.
    Precision,
    /// Of the positive rows, the fraction predicted positive.
    Recall,
    /// The harmonic mean of precision and recall of the positive class.
    F1,
    /// F1 from the counts summed over all classes. It equals accuracy if each row has one class.
    F1Micro,
    /// The mean over classes of their F1.
    F1Macro,
    /// The mean over classes of their precision.
    PrecisionMacro,
    /// The mean over classes of their recall.
    RecallMacro,
    /// The fraction of rows whose class has one of the largest scores.
    TopAccuracy {
        /// Number of classes that count.
        cutoff: NonZeroUsize,
    },
    /// Cohen's kappa with quadratic weights.
    QuadraticKappa,
    /// The area under the receiver operating characteristic; with several classes, the mean over them.
    Auc,
    /// The same, with classes weighed by their rows.
    AucWeighted,
    /// The mean of −ln P(true outcome), from probabilities, or with the scores taken as log-odds.
    LogLoss,
    /// How far the probability of the predicted class is from the share of right predictions.
    CalibrationError,
    /// The area under the precision–recall steps, over all rows.
    AveragePrecision,
    /// Precision where as many rows are taken as are positive, over all rows.
    BreakEven,
    /// Mean average precision over queries.
    Map {
        /// The rule for relevance and ties.
        variant: Variant,
    },
    /// Normalised discounted cumulative gain.
    Ndcg {
        /// Number of positions that count; all if absent.
        cutoff: Option<NonZeroUsize>,
        /// The rule for gain, discount and ties.
        variant: Variant,
    },
    /// The mean of NDCG@1, NDCG@2, … up to the length of the list.
    MeanNdcg {
        /// The rule for gain, discount and ties.
        variant: Variant,
    },
    /// Mean reciprocal rank.
    Mrr {
        /// Number of positions that count; all if absent.
        cutoff: Option<NonZeroUsize>,
    },
    /// Precision among the first positions: of each query, or of all rows of two classes.
    PrecisionAt {
        /// Number of positions that count.
        cutoff: NonZeroUsize,
        /// The rule for relevance and ties.
        variant: Variant,
    },
    /// Expected reciprocal rank.
    ExpectedReciprocalRank {
        /// Number of positions that count; all if absent.
        cutoff: Option<NonZeroUsize>,
    },
    /// Kendall's tau-b between scores and targets.
    KendallTau,
    /// The fraction of pairs in the right order.
    PairAccuracy,
    /// The mean absolute difference between score and target.
    Mae,
    /// The root of the mean squared difference between score and target.
    Rmse,
    /// The fraction of rows of sequences whose tag is right.
    TokenAccuracy,
    /// The fraction of sequences all of whose tags are right.
    SequenceAccuracy,
    /// The harmonic mean of precision and recall of the spans that tags such as B-NP and I-NP mark.
    SpanF1,
    /// The share of labels of sets that are predicted wrongly.
    HammingLoss,
    /// The fraction of rows whose predicted set of labels is right.
    SubsetAccuracy,
    /// The fraction of rows whose label with the highest score is not one of theirs.
    OneError,
    /// The mean number of labels, from the top, that hold all labels of a row.
    Coverage,
    /// The share of pairs of a label of the row and another one that are in the wrong order.
    RankingLoss,
    /// The mean over the labels of a row of the precision where the label stands.
    LabelRankingAveragePrecision,
    /// Of the predicted brackets of trees, the fraction that is right.
    LabelledPrecision,
    /// Of the true brackets of trees, the fraction that is predicted.
    LabelledRecall,
    /// The harmonic mean of these two.
    LabelledF1,
    /// The fraction of trees all of whose brackets are right.
    ExactMatch,
    /// The fraction of words of trees whose tag is right.
    TagAccuracy,
}

/// What a metric is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// Scores, grades and groups.
    Groups,
    /// Scores, and targets of two classes.
    BinaryScores,
    /// Predicted classes, and targets of which one class is the positive one.
    BinaryPredictions,
    /// Predicted classes, and target classes.
    Predictions,
    /// Scores that estimate real targets.
    Reals,
    /// A score for each class, and target classes.
    ClassScores,
    /// The probability of each class, predicted classes, and target classes.
    Probabilities,
    /// Predicted and true tags of the rows of sequences.
    Tags,
    /// A score for each label, and sets of labels.
    Sets,
    /// Predicted and true trees over the words of sentences.
    Trees,
}

impl Metric {
    /// What the metric is computed from.
    pub fn needs(&self) -> Needs {
        match self {
            Metric::Accuracy
            | Metric::Error
            | Metric::F1Micro
            | Metric::F1Macro
            | Metric::PrecisionMacro
            | Metric::RecallMacro
            | Metric::TokenAccuracy
            | Metric::QuadraticKappa => Needs::Predictions,
            Metric::SequenceAccuracy | Metric::SpanF1 => Needs::Tags,
            Metric::HammingLoss
            | Metric::SubsetAccuracy
            | Metric::OneError
            | Metric::Coverage
            | Metric::RankingLoss
            | Metric::LabelRankingAveragePrecision => Needs::Sets,
            Metric::LabelledPrecision
            | Metric::LabelledRecall
            | Metric::LabelledF1
            | Metric::ExactMatch
            | Metric::TagAccuracy => Needs::Trees,
            Metric::TopAccuracy { .. } => Needs::ClassScores,
            Metric::CalibrationError => Needs::Probabilities,
            Metric::Precision | Metric::Recall | Metric::F1 => Needs::BinaryPredictions,
            Metric::Auc | Metric::AucWeighted | Metric::AveragePrecision | Metric::BreakEven | Metric::LogLoss => {
                Needs::BinaryScores
            }
            Metric::Mae | Metric::Rmse => Needs::Reals,
            Metric::Map { .. }
            | Metric::Ndcg { .. }
            | Metric::MeanNdcg { .. }
            | Metric::Mrr { .. }
            | Metric::PrecisionAt { .. }
            | Metric::ExpectedReciprocalRank { .. }
            | Metric::KendallTau
            | Metric::PairAccuracy => Needs::Groups,
        }
    }

    /// Whether a higher value is better.
    pub fn higher_is_better(&self) -> bool {
        let loss = matches!(self, Metric::Error | Metric::LogLoss | Metric::CalibrationError);
        let of_sets = matches!(self, Metric::HammingLoss | Metric::OneError | Metric::Coverage | Metric::RankingLoss);
        !loss && !of_sets && !matches!(self, Metric::Mae | Metric::Rmse)
    }

    /// Whether row weights change the value; metrics over lists and over whole sequences ignore them.
    pub fn honours_weights(&self) -> bool {
        !matches!(self.needs(), Needs::Groups | Needs::Tags | Needs::Trees)
    }

    /// The variant, for metrics that have several.
    pub fn variant(&self) -> Option<Variant> {
        match self {
            Metric::Map { variant }
            | Metric::Ndcg { variant, .. }
            | Metric::MeanNdcg { variant }
            | Metric::PrecisionAt { variant, .. } => Some(*variant),
            _ => None,
        }
    }

    /// The default metrics of a binary classifier.
    pub fn classification_defaults() -> Vec<Metric> {
        vec![Metric::Accuracy, Metric::F1, Metric::Auc, Metric::AveragePrecision]
    }

    /// The default metrics of a classifier with this many classes, each with a score.
    pub fn multiclass_defaults(classes: usize) -> Vec<Metric> {
        // With few classes the right one is nearly always among the first five.
        const MANY: usize = 20;
        let top = NonZeroUsize::new(5).filter(|_| classes >= MANY).map(|cutoff| Metric::TopAccuracy { cutoff });
        [Metric::Accuracy, Metric::F1Macro].into_iter().chain(top).collect()
    }

    /// The default metrics of ratings.
    pub fn ordinal_defaults() -> Vec<Metric> {
        vec![Metric::Mae, Metric::Accuracy, Metric::QuadraticKappa]
    }

    /// The default metrics of sequences. If tags such as B-NP mark spans, these come first.
    pub fn sequence_defaults(tags: &[String]) -> Vec<Metric> {
        let spans = tags.iter().any(|tag| tag.starts_with("B-") || tag.starts_with("I-"));
        let first = spans.then_some(Metric::SpanF1);
        first.into_iter().chain([Metric::TokenAccuracy, Metric::SequenceAccuracy]).collect()
    }

    /// The default metrics of label sets.
    pub fn multilabel_defaults() -> Vec<Metric> {
        vec![
            Metric::LabelRankingAveragePrecision,
            Metric::RankingLoss,
            Metric::F1Micro,
            Metric::HammingLoss,
            Metric::SubsetAccuracy,
        ]
    }

    /// The default metrics of trees.
    pub fn tree_defaults() -> Vec<Metric> {
        vec![
            Metric::LabelledF1,
            Metric::LabelledPrecision,
            Metric::LabelledRecall,
            Metric::ExactMatch,
            Metric::TagAccuracy,
        ]
    }

    /// The default metrics of a ranker.
    pub fn ranking_defaults() -> Vec<Metric> {
        let variant = Variant::default();
        vec![
            Metric::Ndcg { cutoff: NonZeroUsize::new(10), variant },
            Metric::Map { variant },
            Metric::Mrr { cutoff: None },
            Metric::PairAccuracy,
        ]
    }

    /// The default metrics of a ranker trained on explicit pairs.
    pub fn pair_defaults() -> Vec<Metric> {
        vec![Metric::PairAccuracy]
    }

    /// The default metrics of comparisons with ties.
    pub fn comparison_defaults() -> Vec<Metric> {
        vec![Metric::Error, Metric::Auc, Metric::PairAccuracy]
    }

    /// Whether the metric is computed over the rows of two classes, though it is one of queries where there are any.
    fn is_over_rows(&self, judged: &Judged<'_>) -> bool {
        let plain = matches!(self, Metric::PrecisionAt { variant, .. } if *variant == Variant::default());
        plain && judged.groups.is_none() && matches!(judged.truth, Truth::Classes { .. }) && judged.scores.is_some()
    }

    /// Whether the metric is computed over explicit pairs.
    fn is_over_pairs(&self, judged: &Judged<'_>) -> bool {
        match judged.truth {
            Truth::Pairs { threshold, .. } => threshold.is_some() || *self == Metric::PairAccuracy,
            _ => false,
        }
    }

    /// Computes the metric.
    ///
    /// Returns an error if the data lack what the metric [`needs`](Metric::needs), if a score or target is not a
    /// number, or if the metric is not defined: only one class for `auc`, no pair for `pair-accuracy`, no rows.
    pub fn evaluate(&self, judged: &Judged<'_>) -> Result<Evaluation> {
        judged.check(self)?;
        if *self == Metric::KendallTau && judged.is_ordered() {
            return lists::over_all_rows(self, judged);
        }
        if self.needs() == Needs::Groups && !self.is_over_pairs(judged) && !self.is_over_rows(judged) {
            return lists::evaluate(self, judged);
        }
        rows::evaluate(self, judged)
    }

    /// A 95 % percentile bootstrap interval. It resamples queries for list metrics and rows for the others. `None` if
    /// there are fewer than two of them.
    ///
    /// The same seed gives the same interval at any number of threads. One resample of a row metric costs one pass
    /// over the rows.
    pub fn bootstrap(&self, judged: &Judged<'_>, resamples: usize, seed: u64) -> Result<Option<Interval>> {
        if self.needs() == Needs::Groups && !self.is_over_pairs(judged) && !self.is_over_rows(judged) {
            return Ok(self.evaluate(judged)?.bootstrap(resamples, seed));
        }
        judged.check(self)?;
        rows::bootstrap(self, judged, resamples, seed)
    }
}
