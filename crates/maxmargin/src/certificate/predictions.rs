//! [`Predictions`]: what a model predicts for rows or pairs. Scores become predictions only in this file.

use super::{Chain, Decoder, Grammar};
use crate::data::{Classes, Dataset, Groups, Labels, Outcome, Pairs};
use crate::parallel;
use crate::wording::one_field;
use std::collections::HashMap;
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
    /// The set of labels of each row, given the scores of all labels.
    Sets {
        /// The scores of each row, one per label. Labels with a score above zero are predicted.
        scores: Vec<f64>,
        /// The labels.
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
    /// The tag of each row of a sequence.
    Tags {
        /// The scores of each row, one per tag.
        scores: Vec<f64>,
        /// The predicted tag of each row.
        codes: Vec<u32>,
        /// The tags.
        tags: Labels,
    },
    /// The tree of each sentence, as a piece for each row, such as `(S(NP(DT*)`.
    Trees {
        /// The scores of each row.
        scores: Vec<f64>,
        /// Number of scores per row.
        outputs: usize,
        /// The piece of each row.
        codes: Vec<u32>,
        /// The pieces that occur.
        pieces: Labels,
        /// Number of sentences without a tree of the grammar, which have a flat tree instead.
        unparsed: usize,
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
    /// pairs, the predictions are for the pairs. Tags are predicted for the rows of each group together; without groups
    /// all rows are one sequence.
    pub fn predictions(
        &self,
        scores: Vec<f64>,
        outputs: usize,
        pairs: Option<&Pairs>,
        groups: Option<&Groups>,
    ) -> Predictions {
        match (self, pairs) {
            (Decoder::Sequence { tags, shared }, _) => {
                let codes = best_tags(&scores, (tags.len(), shared), groups);
                Predictions::Tags { scores, codes, tags: tags.clone() }
            }
            (Decoder::Tree { grammar, shared }, _) => best_trees(scores, (grammar, shared), groups),
            (Decoder::Sign(classes) | Decoder::Border(classes), _) => {
                Predictions::Labels { scores, classes: classes.clone() }
            }
            (Decoder::Largest(labels), _) => Predictions::Classes { scores, labels: labels.clone() },
            (Decoder::Code(decoder), _) => {
                Predictions::Classes { scores: decoder.class_scores(&scores), labels: decoder.labels.clone() }
            }
            (Decoder::Sets { labels, .. }, _) => {
                Predictions::Sets { scores: self.label_scores(scores), labels: labels.clone() }
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

/// Sequences that one job decodes.
const SEQUENCES: usize = 64;

/// The tag of each row.
fn best_tags(scores: &[f64], (tags, shared): (usize, &[f64]), groups: Option<&Groups>) -> Vec<u32> {
    let chain = Chain { tags };
    let Some(groups) = groups else {
        let mut best = Vec::new();
        chain.best(scores, shared, None, &mut best);
        return best;
    };
    let parts = parallel::map(groups.len().div_ceil(SEQUENCES), |job| {
        let (mut best, mut all) = (Vec::new(), Vec::new());
        for group in job * SEQUENCES..((job + 1) * SEQUENCES).min(groups.len()) {
            let rows = groups.range(group);
            chain.best(&scores[rows.start * tags..rows.end * tags], shared, None, &mut best);
            all.extend_from_slice(&best);
        }
        all
    });
    parts.concat()
}

/// The tree of each group.
fn best_trees(scores: Vec<f64>, (grammar, shared): (&Grammar, &[f64]), groups: Option<&Groups>) -> Predictions {
    let outputs = grammar.outputs();
    let one = Groups::one(scores.len() / outputs);
    let groups = groups.unwrap_or(&one);
    let parsed = parallel::map(groups.len(), |group| {
        let rows = groups.range(group);
        let (tree, parsed) = grammar.parse(&scores[rows.start * outputs..rows.end * outputs], shared);
        (tree.pieces(), parsed)
    });
    let unparsed = parsed.iter().filter(|(_, parsed)| !parsed).count();
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let codes = parsed.into_iter().flat_map(|(pieces, _)| pieces).map(|piece| {
        *known.entry(piece).or_insert_with_key(|piece| {
            names.push(piece.clone());
            names.len() as u32 - 1
        })
    });
    let codes = codes.collect();
    Predictions::Trees { scores, outputs, codes, pieces: Labels::new(names), unparsed }
}

impl Predictions {
    /// The same in the order of the input, given the data in stored order. Pairs are in that order already.
    pub fn to_input_order(self, data: &Dataset) -> Predictions {
        let ordered = |scores: Vec<f64>| data.to_input_order(scores);
        match self {
            Predictions::Scores { scores, outputs } => Predictions::Scores { scores: ordered(scores), outputs },
            Predictions::Labels { scores, classes } => Predictions::Labels { scores: ordered(scores), classes },
            Predictions::Classes { scores, labels } => Predictions::Classes { scores: ordered(scores), labels },
            Predictions::Sets { scores, labels } => Predictions::Sets { scores: ordered(scores), labels },
            Predictions::Ranks { scores, cuts, ranks } => Predictions::Ranks { scores: ordered(scores), cuts, ranks },
            Predictions::Tags { scores, codes, tags } => {
                Predictions::Tags { scores: ordered(scores), codes: data.to_input_order(codes), tags }
            }
            Predictions::Trees { scores, outputs, codes, pieces, unparsed } => Predictions::Trees {
                scores: ordered(scores),
                outputs,
                codes: data.to_input_order(codes),
                pieces,
                unparsed,
            },
            Predictions::Outcomes(compared) => Predictions::Outcomes(compared),
        }
    }

    /// Number of rows or pairs.
    pub fn len(&self) -> usize {
        match self {
            Predictions::Scores { scores, outputs } => scores.len() / outputs.max(&1),
            Predictions::Labels { scores, .. } | Predictions::Ranks { scores, .. } => scores.len(),
            Predictions::Classes { scores, labels } | Predictions::Sets { scores, labels } => {
                scores.len() / labels.len().max(1)
            }
            Predictions::Tags { codes, .. } | Predictions::Trees { codes, .. } => codes.len(),
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
            | Predictions::Tags { scores, .. }
            | Predictions::Sets { scores, .. }
            | Predictions::Trees { scores, .. }
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
            Predictions::Classes { labels, .. }
            | Predictions::Ranks { ranks: labels, .. }
            | Predictions::Tags { tags: labels, .. }
            | Predictions::Trees { pieces: labels, .. } => self.class(row).map(|class| labels.name(class)),
            _ => None,
        }
    }

    /// The predicted class of a row, if each class has a score: the first with the largest one. For ratings, the number
    /// of the predicted rank: the number of cuts that the score reaches. For sequences, the number of the predicted tag, and
    /// for trees that of the piece.
    pub fn class(&self, row: usize) -> Option<usize> {
        match self {
            Predictions::Classes { scores, labels } => {
                let own = &scores[row * labels.len()..(row + 1) * labels.len()];
                let larger = |best: usize, class: usize| if own[class] > own[best] { class } else { best };
                (0..own.len()).reduce(larger)
            }
            Predictions::Ranks { scores, cuts, .. } => Some(cuts.partition_point(|cut| *cut <= scores[row])),
            Predictions::Tags { codes, .. } | Predictions::Trees { codes, .. } => Some(codes[row] as usize),
            _ => None,
        }
    }

    /// The predicted labels of a row, by place, those with the highest scores first, if sets are predicted.
    pub fn set(&self, row: usize) -> Option<Vec<usize>> {
        let Predictions::Sets { scores, labels } = self else { return None };
        let own = &scores[row * labels.len()..(row + 1) * labels.len()];
        let mut set: Vec<usize> = (0..own.len()).filter(|&label| own[label] > 0.0).collect();
        set.sort_by(|&a, &b| own[b].total_cmp(&own[a]));
        Some(set)
    }

    /// The names of the predicted labels of a row, best first, as they are written.
    pub fn set_names(&self, row: usize) -> Option<Vec<String>> {
        let Predictions::Sets { labels, .. } = self else { return None };
        Some(self.set(row)?.into_iter().map(|label| one_field(labels.name(label))).collect())
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
    /// or rank and its score; the labels of a set and their scores, both separated by commas, best first; the tag; or the outcome, the two scores and the margin.
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
                Predictions::Sets { scores, labels } => {
                    let set = self.set(at).unwrap_or_default();
                    let names = self.set_names(at).unwrap_or_default();
                    let own: Vec<_> = set.iter().map(|label| scores[at * labels.len() + label].to_string()).collect();
                    writeln!(out, "{}\t{}", names.join(","), own.join(","))
                }
                Predictions::Ranks { scores, ranks, .. } => {
                    let rank = self.class(at).unwrap_or_default();
                    writeln!(out, "{}\t{}", ranks.name(rank), scores[at])
                }
                Predictions::Tags { codes, tags: names, .. } | Predictions::Trees { codes, pieces: names, .. } => {
                    writeln!(out, "{}", one_field(names.name(codes[at] as usize)))
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
        assert_eq!(lines(Decoder::Rank.predictions(vec![1.5, -0.25], 1, None, None)), "1.5\n-0.25\n");
        let several = Decoder::Score { free: Vec::new() }.predictions(vec![1.0, 2.0, 3.0, 4.0], 2, None, None);
        assert_eq!((several.len(), lines(several).as_str()), (2, "1\t2\n3\t4\n"));
        let classes = Classes { negative: "ham".to_string(), positive: "a\tb".to_string() };
        let labels = Decoder::Sign(classes).predictions(vec![0.0, -1.0], 1, None, None);
        assert_eq!(labels.label(0), Some("a\tb"));
        assert_eq!(lines(labels).lines().nth(1), Some("ham\t-1"));
        // The second tag wins alone; from one to the other costs more than it gains.
        let shared = [[0.0; 6].to_vec(), vec![0.0, -9.0, -9.0, 0.0]].concat();
        let sequence = Decoder::Sequence { tags: Labels::new(vec!["B".to_string(), "I".to_string()]), shared };
        let groups = Groups::new(vec![0, 2, 3], ["a", "b"].into_iter().collect()).expect("rising");
        let tags = |groups| sequence.predictions(vec![3.0, 0.0, 0.0, 1.0, 0.0, 1.0], 2, None, groups);
        assert_eq!((lines(tags(Some(&groups))), lines(tags(None))), ("B\nB\nI\n".to_string(), "B\nB\nB\n".to_string()));
        let sets = |calibrated| Decoder::Sets {
            labels: Labels::new(["a", "b", "c"].map(str::to_string).to_vec()),
            calibrated,
        };
        let scores = [2.0, 5.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.5].to_vec();
        assert_eq!(lines(sets(true).predictions(scores, 4, None, None)), "b,a\t4,1\n\t\n");
        let alone = sets(false).predictions(vec![0.0, -1.0, 0.25], 3, None, None);
        assert_eq!((alone.len(), alone.set(0), lines(alone)), (1, Some(vec![2]), "c\t0.25\n".to_string()));
        let decoder = Decoder::Compare { threshold: 1.0 };
        let outcomes = [(0.0, 3.0), (0.0, 0.5), (2.0, 0.5)].map(|(left, right)| decoder.compared(left, right));
        assert_eq!(
            lines(Predictions::Outcomes(outcomes.to_vec())),
            "right\t0\t3\t2\ntie\t0\t0.5\t0.5\nleft\t2\t0.5\t0.5\n"
        );
    }
}
