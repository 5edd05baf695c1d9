//! [`Decoder`]: from scores to answers.

use super::{CodeDecoder, Coupling, Grammar};
use crate::data::{Classes, Labels, Outcome, OutputCode, outcome_of};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a score means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The sign tells the class; zero counts as positive.
    Sign(Classes),
    /// The sign tells on which side of a border a row lies; every label but the positive one belongs to the other side.
    Border(Classes),
    /// Each class has a score, and the largest tells the class; the first of equal ones.
    Largest(Labels),
    /// Each column of an output code has a score, and the class with the closest row is predicted.
    Code(CodeDecoder),
    /// Each label has a score, and all labels above a border are predicted.
    Sets {
        /// The labels.
        labels: Labels,
        /// Whether the border is a score of its own, the last one of each row. Otherwise it is zero.
        calibrated: bool,
    },
    /// The rank whose number is the number of cuts that the score reaches.
    Cuts {
        /// The cuts between neighbouring ranks, in order.
        cuts: Vec<f64>,
        /// The ranks, in order. They are numbers.
        ranks: Labels,
    },
    /// Each tag has a score, and the best sequence of tags is predicted for the rows of a group.
    Sequence {
        /// The tags.
        tags: Labels,
        /// The weights that belong to no feature: the bias of each tag, its weight as the first and as the last one, and
        /// the weight of each transition, by the tag before and the tag after it.
        shared: Vec<f64>,
    },
    /// The rows of a group are the words of a sentence, and the best tree of a grammar is predicted.
    Tree {
        /// The grammar.
        grammar: Box<Grammar>,
        /// The weights that belong to no feature: those of rules, tops and lengths, see [`Grammar::shared_name`].
        shared: Vec<f64>,
    },
    /// Higher is better.
    Rank,
    /// The score itself is the prediction. This is for the user's own tasks, which may also have free scalars.
    Score {
        /// The free scalars other than constant terms.
        free: Vec<f64>,
    },
    /// The row with the higher score is better. It is a tie if the two scores differ by no more than a threshold.
    Compare {
        /// The threshold.
        threshold: f64,
    },
    /// The most probable of three outcomes. Scores are log-odds: P(right) = σ(z − τ), P(left) = σ(−z − τ), where z is
    /// the difference of the two scores.
    Likelihood {
        /// τ
        threshold: f64,
    },
}

impl Decoder {
    /// The two labels, if scores stand for labels.
    pub fn classes(&self) -> Option<&Classes> {
        match self {
            Decoder::Sign(classes) | Decoder::Border(classes) => Some(classes),
            Decoder::Largest(_)
            | Decoder::Code(_)
            | Decoder::Sets { .. }
            | Decoder::Cuts { .. }
            | Decoder::Sequence { .. }
            | Decoder::Tree { .. }
            | Decoder::Rank
            | Decoder::Score { .. }
            | Decoder::Compare { .. }
            | Decoder::Likelihood { .. } => None,
        }
    }

    /// The labels, if predictions have a score for each class.
    pub fn labels(&self) -> Option<&Labels> {
        match self {
            Decoder::Largest(labels) | Decoder::Code(CodeDecoder { labels, .. }) => Some(labels),
            _ => None,
        }
    }

    /// The labels that sets are made of, and whether rows have a calibration score.
    pub fn label_sets(&self) -> Option<(&Labels, bool)> {
        match self {
            Decoder::Sets { labels, calibrated } => Some((labels, *calibrated)),
            _ => None,
        }
    }

    /// The scores of labels, above or below zero, given those of the model.
    pub fn label_scores(&self, scores: Vec<f64>) -> Vec<f64> {
        match self {
            Decoder::Sets { labels, calibrated: true } => {
                let mut own = Vec::with_capacity(scores.len() / (labels.len() + 1) * labels.len());
                for scores in scores.chunks_exact(labels.len() + 1) {
                    own.extend(scores[..labels.len()].iter().map(|score| score - scores[labels.len()]));
                }
                own
            }
            _ => scores,
        }
    }

    /// The cuts and the ranks of ratings.
    pub fn cuts(&self) -> Option<(&[f64], &Labels)> {
        match self {
            Decoder::Cuts { cuts, ranks } => Some((cuts, ranks)),
            _ => None,
        }
    }

    /// The tags of sequences.
    pub fn tags(&self) -> Option<&Labels> {
        match self {
            Decoder::Sequence { tags, .. } => Some(tags),
            _ => None,
        }
    }

    /// The grammar of trees.
    pub fn grammar(&self) -> Option<&Grammar> {
        match self {
            Decoder::Tree { grammar, .. } => Some(grammar),
            _ => None,
        }
    }

    /// Whether the rows of a group are decoded together: they are a sequence or a sentence.
    pub fn takes_groups(&self) -> bool {
        matches!(self, Decoder::Sequence { .. } | Decoder::Tree { .. })
    }

    /// The labels that are predicted, in the order of their codes: the negative one first, if there are two.
    pub fn class_names(&self) -> Option<Vec<String>> {
        match self {
            Decoder::Sign(classes) => Some(vec![classes.negative.clone(), classes.positive.clone()]),
            Decoder::Sets { labels, .. }
            | Decoder::Cuts { ranks: labels, .. }
            | Decoder::Sequence { tags: labels, .. } => Some(labels.names().to_vec()),
            _ => self.labels().map(|labels| labels.names().to_vec()),
        }
    }

    /// Number of scores of a row before they are decoded, unless it is a user's own task, which says it itself.
    pub fn outputs(&self) -> usize {
        match self {
            Decoder::Code(decoder) => decoder.code.columns(),
            Decoder::Sequence { tags, .. } => tags.len(),
            Decoder::Sets { labels, calibrated } => labels.len() + usize::from(*calibrated),
            Decoder::Tree { grammar, .. } => grammar.outputs(),
            _ => self.labels().map_or(1, Labels::len),
        }
    }

    /// How probabilities of classes are fitted to these scores, if they can be. One-vs-one has a score for each pair of
    /// classes; of other codes, the decoded scores of the classes are taken.
    pub fn coupling(&self) -> Option<Coupling> {
        match self {
            Decoder::Sign(_) => Some(Coupling::Complement),
            Decoder::Code(CodeDecoder { code: OutputCode::OneVsOne { .. }, .. }) => Some(Coupling::Pairs),
            Decoder::Largest(_) | Decoder::Code(_) => Some(Coupling::Normalised),
            Decoder::Cuts { .. } => Some(Coupling::Cuts),
            _ => None,
        }
    }

    /// The scores that a calibration takes, given those of the model.
    pub(crate) fn to_calibrate<'a>(&self, scores: &'a [f64]) -> Cow<'a, [f64]> {
        match self {
            Decoder::Code(decoder) if self.coupling() == Some(Coupling::Normalised) => {
                Cow::Owned(decoder.class_scores(scores))
            }
            Decoder::Cuts { cuts, .. } => {
                Cow::Owned(scores.iter().flat_map(|score| cuts.iter().map(move |cut| score - cut)).collect())
            }
            _ => Cow::Borrowed(scores),
        }
    }

    /// The largest difference of two scores that is predicted as a tie, if there are ties. It is the threshold itself
    /// or, for probabilities, the largest difference at which a tie is the most probable outcome. P(tie) ≥ P(right) at
    /// z ≥ 0 means e^z ≤ e^τ − 2e^(−τ), which needs τ > ln 2. For smaller τ a tie is never the most probable outcome,
    /// and the width is −∞.
    pub fn tie_width(&self) -> Option<f64> {
        match self {
            Decoder::Likelihood { threshold } => {
                // ln(e^τ − 2e^(−τ)), written so that it also works when e^τ overflows.
                let likely = *threshold > std::f64::consts::LN_2;
                Some(if likely { threshold + (-2.0 * (-2.0 * threshold).exp()).ln_1p() } else { f64::NEG_INFINITY })
            }
            _ => self.threshold(),
        }
    }

    /// The threshold of a comparison, if there is one.
    pub fn threshold(&self) -> Option<f64> {
        match self {
            Decoder::Compare { threshold } | Decoder::Likelihood { threshold } => Some(*threshold),
            Decoder::Sign(_)
            | Decoder::Border(_)
            | Decoder::Largest(_)
            | Decoder::Code(_)
            | Decoder::Sets { .. }
            | Decoder::Cuts { .. }
            | Decoder::Sequence { .. }
            | Decoder::Tree { .. }
            | Decoder::Rank
            | Decoder::Score { .. } => None,
        }
    }

    /// Which of two scored rows is better, if the scores are for comparison. Swapping the rows swaps the outcome.
    pub fn outcome(&self, left: f64, right: f64) -> Option<Outcome> {
        self.tie_width().map(|width| outcome_of(right - left, width))
    }

    /// The label of a score, if scores stand for labels.
    pub fn label(&self, score: f64) -> Option<&str> {
        self.classes().map(|classes| if score >= 0.0 { classes.positive.as_str() } else { classes.negative.as_str() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_probable_outcome_is_said() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        for threshold in [0.2, 0.69, 0.7, 1.0, 2.5, 8.0] {
            let decoder = Decoder::Likelihood { threshold };
            for step in -400..=400 {
                let z = f64::from(step) * 0.025 + 0.0013;
                let outcomes = [
                    (Outcome::Right, sigmoid(z - threshold)),
                    (Outcome::Left, sigmoid(-z - threshold)),
                    (Outcome::Tie, sigmoid(threshold - z) - sigmoid(-threshold - z)),
                ];
                let (likeliest, _) = outcomes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("three");
                assert_eq!(decoder.outcome(1.0, 1.0 + z), Some(likeliest), "{threshold} {z}");
            }
        }
    }
}
