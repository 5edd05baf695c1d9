//! [`Predictions`]: what a model predicts for rows or pairs. Scores become predictions only in this file.

use super::Decoder;
use crate::data::{Classes, Labels, Outcome, Pairs};
use crate::parallel;
use crate::wording::one_field;
use std::fmt::Write;
use std::ops::Range;

/// What a model predicts for the rows of a data set, or for its pairs if the model compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictions {
    /// The score of each row. If a row has several scores, they are stored next to each other.
    Scores {
        /// The scores.
        scores: Vec<f64>,
        /// Number of scores per row.
        outputs: usize,
    },
    /// The label and the score of each row.
    Labels {
        /// The scores.
        scores: Vec<f64>,
        /// The label of a negative and of a positive score; zero counts as positive.
        classes: Classes,
    },
    /// The class of each row, given the scores of all classes.
    Classes {
        /// The scores of each row, one per class.
        scores: Vec<f64>,
        /// The labels of the classes.
        labels: Labels,
    },
    /// The rank and the score of each row.
    Ranks {
        /// The scores.
        scores: Vec<f64>,
        /// The cuts between neighbouring ranks, in order.
        cuts: Vec<f64>,
        /// The ranks.
        ranks: Labels,
    },
    /// The outcome of each pair.
    Outcomes(Vec<Compared>),
}

/// What a model predicts for a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Which row is better.
    pub outcome: Outcome,
    /// The score of the left row.
    pub left: f64,
    /// The score of the right row.
    pub right: f64,
    /// How much the difference of the scores would have to change to change the outcome.
    pub margin: f64,
}

/// Lines that one job writes.
const PIECE: usize = 4096;

impl Decoder {
    /// Turns scores of rows into predictions, given the number of scores per row. If the model compares and there are
    /// pairs, the predictions are for the pairs.
    pub fn predictions(&self, scores: Vec<f64>, outputs: usize, pairs: Option<&Pairs>) -> Predictions {
        match (self, pairs) {
            (Decoder::Sign(classes) | Decoder::Border(classes), _) => {
                Predictions::Labels { scores, classes: classes.clone() }
            }
            (Decoder::Largest(labels), _) => Predictions::Classes { scores, labels: labels.clone() },
            (Decoder::Code(decoder), _) => {
                Predictions::Classes { scores: decoder.class_scores(&scores), labels: decoder.labels.clone() }
            }
            (Decoder::Cuts { cuts, ranks }, _) => {
                Predictions::Ranks { scores, cuts: cuts.clone(), ranks: ranks.clone() }
            }
            (Decoder::Compare { .. } | Decoder::Likelihood { .. }, Some(pairs)) => self.outcomes(&scores, pairs),
            (Decoder::Rank | Decoder::Score { .. } | Decoder::Compare { .. } | Decoder::Likelihood { .. }, _) => {
                Predictions::Scores { scores, outputs }
            }
        }
    }

    /// Turns scores of rows into predictions for pairs of these rows.
    pub fn outcomes(&self, scores: &[f64], pairs: &Pairs) -> Predictions {
        let sides = pairs.left().iter().zip(pairs.right());
        let compared = sides.map(|(&left, &right)| self.compared(scores[left as usize], scores[right as usize]));
        Predictions::Outcomes(compared.collect())
    }

    /// Turns the two scores of a pair into its prediction.
    pub fn compared(&self, left: f64, right: f64) -> Compared {
        // Equal scores are the border if there is no threshold or if ties are never predicted.
        let width = self.tie_width().unwrap_or(0.0);
        let outcome = crate::data::outcome_of(right - left, width);
        Compared { outcome, left, right, margin: ((right - left).abs() - width.max(0.0)).abs() }
    }
}

impl Predictions {
    /// Number of rows or pairs.
    pub fn len(&self) -> usize {
        match self {
            Predictions::Scores { scores, outputs } => scores.len() / outputs.max(&1),
            Predictions::Labels { scores, .. } | Predictions::Ranks { scores, .. } => scores.len(),
            Predictions::Classes { scores, labels } => scores.len() / labels.len().max(1),
            Predictions::Outcomes(compared) => compared.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of each row, or its scores next to each other; `None` for pairs, which have two scores.
    pub fn scores(&self) -> Option<&[f64]> {
        match self {
            Predictions::Scores { scores, .. }
            | Predictions::Labels { scores, .. }
            | Predictions::Ranks { scores, .. }
            | Predictions::Classes { scores, .. } => Some(scores),
            Predictions::Outcomes(_) => None,
        }
    }

    /// Whether the predicted label of each row is the positive one, if there are labels.
    pub fn positives(&self) -> Option<impl Iterator<Item = bool> + '_> {
        match self {
            Predictions::Labels { scores, .. } => Some(scores.iter().map(|&score| score >= 0.0)),
            _ => None,
        }
    }

    /// The predicted label of a row, if there are labels.
    pub fn label(&self, row: usize) -> Option<&str> {
        match self {
            Predictions::Labels { scores, classes } if scores[row] >= 0.0 => Some(&classes.positive),
            Predictions::Labels { classes, .. } => Some(&classes.negative),
            Predictions::Classes { labels, .. } | Predictions::Ranks { ranks: labels, .. } => {
                self.class(row).map(|class| labels.name(class))
            }
            _ => None,
        }
    }

    /// The predicted class of a row, if each class has a score: the first with the largest one. For ratings, the number
    /// of the predicted rank: the number of cuts that the score reaches.
    pub fn class(&self, row: usize) -> Option<usize> {
        match self {
            Predictions::Classes { scores, labels } => {
                let own = &scores[row * labels.len()..(row + 1) * labels.len()];
                let larger = |best: usize, class: usize| if own[class] > own[best] { class } else { best };
                (0..own.len()).reduce(larger)
            }
            Predictions::Ranks { scores, cuts, .. } => Some(cuts.partition_point(|cut| *cut <= scores[row])),
            _ => None,
        }
    }

    /// All lines as text, in pieces that are made on all threads.
    pub fn lines(&self) -> Vec<String> {
        parallel::map(self.len().div_ceil(PIECE), |piece| {
            let range = piece * PIECE..((piece + 1) * PIECE).min(self.len());
            let mut text = String::with_capacity(32 * range.len());
            self.write(range, &mut text);
            text
        })
    }

    /// Writes one line for each prediction in the range, with fields separated by tabs: the score or scores; the label
    /// or rank and its score; or the outcome, the two scores and the margin.
    pub fn write(&self, range: Range<usize>, out: &mut String) {
        for at in range {
            let written = match self {
                Predictions::Scores { scores, outputs } => {
                    for (output, score) in scores[at * outputs..(at + 1) * outputs].iter().enumerate() {
                        let _ = write!(out, "{}{score}", if output > 0 { "\t" } else { "" });
                    }
                    writeln!(out)
                }
                Predictions::Labels { scores, .. } => {
                    let label = one_field(self.label(at).unwrap_or_default());
                    writeln!(out, "{label}\t{}", scores[at])
                }
                Predictions::Classes { scores, labels } => {
                    let class = self.class(at).unwrap_or_default();
                    writeln!(out, "{}\t{}", one_field(labels.name(class)), scores[at * labels.len() + class])
                }
                Predictions::Ranks { scores, ranks, .. } => {
                    let rank = self.class(at).unwrap_or_default();
                    writeln!(out, "{}\t{}", ranks.name(rank), scores[at])
                }
                Predictions::Outcomes(compared) => {
                    let Compared { outcome, left, right, margin } = compared[at];
                    writeln!(out, "{}\t{left}\t{right}\t{margin}", outcome.name())
                }
            };
            // Writing to a string never fails.
            debug_assert!(written.is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_line() {
        let lines = |predictions: Predictions| {
            let mut text = String::new();
            predictions.write(0..predictions.len(), &mut text);
            text
        };
        assert_eq!(lines(Decoder::Rank.predictions(vec![1.5, -0.25], 1, None)), "1.5\n-0.25\n");
        let several = Decoder::Score { free: Vec::new() }.predictions(vec![1.0, 2.0, 3.0, 4.0], 2, None);
        assert_eq!((several.len(), lines(several).as_str()), (2, "1\t2\n3\t4\n"));
        let classes = Classes { negative: "ham".to_string(), positive: "a\tb".to_string() };
        let labels = Decoder::Sign(classes).predictions(vec![0.0, -1.0], 1, None);
        assert_eq!(labels.label(0), Some("a\tb"));
        assert_eq!(lines(labels).lines().nth(1), Some("ham\t-1"));
        let decoder = Decoder::Compare { threshold: 1.0 };
        let outcomes = [(0.0, 3.0), (0.0, 0.5), (2.0, 0.5)].map(|(left, right)| decoder.compared(left, right));
        assert_eq!(
            lines(Predictions::Outcomes(outcomes.to_vec())),
            "right\t0\t3\t2\ntie\t0\t0.5\t0.5\nleft\t2\t0.5\t0.5\n"
        );
    }
}
