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
//! The default is `standard`: the gain and discount that XGBoost, LightGBM, RankLib and the search engines use, so a
//! number can be laid beside theirs. The `letor` rule is kept for the published LETOR tables, but as a default it
//! would mislead: a query with nine documents scores 0 at NDCG@10 however well it is ranked. Ties are averaged in
//! `standard` because line order rewards files that are sorted by grade: a model that scores everything 0 would be
//! perfect on them. Without ties `standard` equals those programs to rounding. trec_eval breaks ties by document id,
//! descending; rows have no ids here, so `trec` takes the later line first.
//!
//! In all variants a grade below zero has gain 0, P@K divides by K, and a query without any relevant row counts
//! as 0; the [`Evaluation`] notes how many there were.
//!
//! # The other list metrics
//!
//! - `mrr`, `mrr@K`: one over the position of the first relevant row (grade ≥ 1), 0 where none is found in the first
//!   K; equal scores count as the mean over all orders.
//! - `err`, `err@K`: expected reciprocal rank (Chapelle et al. 2009) with stopping probability
//!   (2^grade − 1) / 2^highest, where `highest` is the highest grade in the judged data; equal scores in line order.
//! - `kendall-tau`: tau-b between scores and targets within a query; a query whose targets are all equal is
//!   skipped, one whose scores are all equal counts as 0.
//! - `pair-accuracy`: of the pairs in a query with different targets, the fraction that the scores order rightly,
//!   equal scores counting half; queries without such a pair are skipped. Where the truth is a list of pairs, it is the
//!   share of their weight in the right order, over all of them; resampling draws pairs, or their groups.
//!
//! All list metrics are means over queries and ignore row weights.
//!
//! # Row metrics
//!
//! `accuracy`, `error`, `precision`, `recall`, `f1`, `f1-micro`, `f1-macro`, `auc`, `average-precision`, `log-loss`,
//! `mae` and `rmse` honour row weights. Those of comparisons are described in `comparisons.rs`. In `auc` equal scores count half; in `average-precision` tied rows share one threshold.
//! A precision, recall or F1 without anything to divide by is 0. `f1-macro` averages over the classes that occur
//! among truths or predictions.

mod bootstrap;
mod classes;
mod comparisons;
mod deviation;
mod judged;
mod lists;
mod name;
mod ndcg;
mod order;
mod pairs;
mod reciprocal;
mod relevance;
mod roc;
mod rows;
#[cfg(test)]
mod tests;
mod variant;

pub use crate::data::{outcome_of, score_differences};
pub use bootstrap::Interval;
pub(crate) use bootstrap::quantile;
pub use comparisons::{confusion, decided_scores};
pub use judged::{Evaluation, Judged, Truth};
pub use roc::roc_curve;
pub use variant::Variant;

use crate::error::Result;
use std::num::NonZeroUsize;

/// A measure of quality.
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
    /// F1 from the counts summed over all classes; equals accuracy where each row has one class.
    F1Micro,
    /// The mean over classes of their F1.
    F1Macro,
    /// The area under the receiver operating characteristic.
    Auc,
    /// The mean of minus the logarithm of what the model says is likely to be, its scores taken as logarithms of odds.
    LogLoss,
    /// The area under the precision–recall steps, over all rows.
    AveragePrecision,
    /// Mean average precision over queries.
    Map {
        /// The rule for relevance and ties.
        variant: Variant,
    },
    /// Normalised discounted cumulative gain.
    Ndcg {
        /// How many positions count; all where absent.
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
        /// How many positions count; all where absent.
        cutoff: Option<NonZeroUsize>,
    },
    /// Precision among the first positions.
    PrecisionAt {
        /// How many positions count.
        cutoff: NonZeroUsize,
        /// The rule for relevance and ties.
        variant: Variant,
    },
    /// Expected reciprocal rank.
    ExpectedReciprocalRank {
        /// How many positions count; all where absent.
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
}

impl Metric {
    /// What the metric is computed from.
    pub fn needs(&self) -> Needs {
        match self {
            Metric::Accuracy | Metric::Error | Metric::F1Micro | Metric::F1Macro => Needs::Predictions,
            Metric::Precision | Metric::Recall | Metric::F1 => Needs::BinaryPredictions,
            Metric::Auc | Metric::AveragePrecision | Metric::LogLoss => Needs::BinaryScores,
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

    /// Whether more is better.
    pub fn higher_is_better(&self) -> bool {
        !matches!(self, Metric::Error | Metric::LogLoss | Metric::Mae | Metric::Rmse)
    }

    /// Whether row weights change the value; list metrics ignore them.
    pub fn honours_weights(&self) -> bool {
        self.needs() != Needs::Groups
    }

    /// The variant, for metrics that come in several.
    pub fn variant(&self) -> Option<Variant> {
        match self {
            Metric::Map { variant }
            | Metric::Ndcg { variant, .. }
            | Metric::MeanNdcg { variant }
            | Metric::PrecisionAt { variant, .. } => Some(*variant),
            _ => None,
        }
    }

    /// What is reported for a binary classifier unless asked otherwise.
    pub fn classification_defaults() -> Vec<Metric> {
        vec![Metric::Accuracy, Metric::F1, Metric::Auc, Metric::AveragePrecision]
    }

    /// What is reported for a classifier of more than two classes unless asked otherwise.
    pub fn multiclass_defaults() -> Vec<Metric> {
        vec![Metric::Accuracy, Metric::F1Macro]
    }

    /// What is reported for a ranker unless asked otherwise.
    pub fn ranking_defaults() -> Vec<Metric> {
        let variant = Variant::default();
        vec![
            Metric::Ndcg { cutoff: NonZeroUsize::new(10), variant },
            Metric::Map { variant },
            Metric::Mrr { cutoff: None },
            Metric::PairAccuracy,
        ]
    }

    /// What is reported for a ranker of explicit pairs unless asked otherwise.
    pub fn pair_defaults() -> Vec<Metric> {
        vec![Metric::PairAccuracy]
    }

    /// What is reported for comparisons with ties unless asked otherwise.
    pub fn comparison_defaults() -> Vec<Metric> {
        vec![Metric::Error, Metric::Auc, Metric::PairAccuracy]
    }

    /// Whether the metric is taken over a list of pairs.
    fn is_over_pairs(&self, judged: &Judged<'_>) -> bool {
        match judged.truth {
            Truth::Pairs { threshold, .. } => threshold.is_some() || *self == Metric::PairAccuracy,
            _ => false,
        }
    }

    /// Computes the metric.
    ///
    /// Fails where the data lack what the metric [`needs`](Metric::needs), where a score or target is not a number,
    /// and where the metric is not defined: one class only for `auc`, no pair at all for `pair-accuracy`, no rows.
    pub fn evaluate(&self, judged: &Judged<'_>) -> Result<Evaluation> {
        judged.check(self)?;
        if self.needs() == Needs::Groups && !self.is_over_pairs(judged) {
            return lists::evaluate(self, judged);
        }
        rows::evaluate(self, judged)
    }

    /// A 95 % percentile bootstrap interval: resamples queries for list metrics and rows for the others. `None`
    /// where there are fewer than two to draw from.
    ///
    /// The same seed gives the same interval at any number of threads. One resample of a row metric costs one pass
    /// over the rows.
    pub fn bootstrap(&self, judged: &Judged<'_>, resamples: usize, seed: u64) -> Result<Option<Interval>> {
        if self.needs() == Needs::Groups && !self.is_over_pairs(judged) {
            return Ok(self.evaluate(judged)?.bootstrap(resamples, seed));
        }
        judged.check(self)?;
        rows::bootstrap(self, judged, resamples, seed)
    }
}
