//! [`CodeDecoder`]: from the scores of the columns of an output code to a score for each class.
//!
//! ```text
//! distance(y) = Σ_j loss(R(y, j) · s_j),     score(y) = −distance(y)
//! ```
//! with R the code and s_j the score of column j. A column that leaves a class out counts loss(0) for it: otherwise
//! classes with many zeros would look close. The class with the smallest distance is predicted, the first of equal ones.
//! Hamming counts ½(1 − R(y, j) sign s_j), that is votes; classes with equal votes are told apart by the hinge loss.
//!
//! **Absent classes.** A class without rows that count is never predicted: its score is below those of all others. In
//! one-vs-one its columns count alike for the classes on their other side.
//!
//! **The bound.** Where a row of class y is predicted wrongly, another class z is as close, and for a loss with
//! (loss(s) + loss(−s))/2 ≥ loss(0) > 0 the two distances add up to at least 2·loss(0)·Δ(y, z). So
//!
//! ```text
//! errors ≤ 1/(ρ·loss(0)) · Σ_i Σ_j loss(R(y_i, j) · s_ij)
//! ```
//! Reference: Allwein, Schapire & Singer, Reducing multiclass to binary, JMLR 1 (2000), theorem 1.

use crate::data::{Labels, OutputCode};
use crate::loss::Loss;
use crate::parallel;
use serde::{Deserialize, Serialize};

/// How the scores of columns are compared with the row of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoding {
    /// Votes: the sign of each column. Equal votes are decided by the hinge loss.
    Hamming,
    /// max(0, 1 − z)
    Hinge,
    /// max(0, 1 − z)²
    SquaredHinge,
    /// ln(1 + e^(−z))
    Logistic,
}

impl Decoding {
    /// All of them.
    pub const ALL: [Decoding; 4] = [Decoding::Hamming, Decoding::Hinge, Decoding::SquaredHinge, Decoding::Logistic];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Decoding::Hamming => "hamming",
            Decoding::Hinge => "hinge",
            Decoding::SquaredHinge => "squared-hinge",
            Decoding::Logistic => "logistic",
        }
    }

    /// By the loss of training.
    pub fn of(loss: Loss) -> Decoding {
        match loss {
            Loss::Hinge => Decoding::Hinge,
            Loss::SquaredHinge => Decoding::SquaredHinge,
            Loss::Logistic => Decoding::Logistic,
        }
    }

    /// The loss at z = R · s.
    pub fn loss(self, z: f64) -> f64 {
        let of = |loss: Loss| loss.value(loss.margin() - z);
        match self {
            // A score of zero counts as positive, as it does for a classifier; whose sign it has is known below.
            Decoding::Hamming if z == 0.0 => 0.5,
            Decoding::Hamming => f64::from(u8::from(z < 0.0)),
            Decoding::Hinge => of(Loss::Hinge),
            Decoding::SquaredHinge => of(Loss::SquaredHinge),
            Decoding::Logistic => of(Loss::Logistic),
        }
    }
}

/// A code with its classes and its decoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CodeDecoder {
    /// The classes, one for each row of the code.
    pub labels: Labels,
    /// The code.
    pub code: OutputCode,
    /// How scores of columns are compared with rows.
    pub decoding: Decoding,
    /// The classes that no row stood for in training, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<u32>,
}

/// The losses of one column for the three entries.
#[derive(Clone, Copy, Default)]
struct Losses {
    plus: f64,
    minus: f64,
    zero: f64,
}

impl Losses {
    fn of(decoding: Decoding, score: f64) -> Losses {
        Losses { plus: decoding.loss(score), minus: decoding.loss(-score), zero: decoding.loss(0.0) }
    }

    fn at(&self, entry: i8) -> f64 {
        match entry {
            1 => self.plus,
            -1 => self.minus,
            _ => self.zero,
        }
    }
}

/// Rows decoded in one job.
const ROWS: usize = 64;

impl CodeDecoder {
    /// Whether code and classes fit together.
    pub(crate) fn is_whole(&self) -> bool {
        let (classes, absent) = (self.labels.len(), &self.absent);
        classes == self.code.classes()
            && self.code.columns() > 0
            && absent.windows(2).all(|two| two[0] < two[1])
            && absent.last().is_none_or(|&class| (class as usize) < classes)
            && classes - absent.len() >= 2
    }

    /// Whether a class had no rows in training.
    pub fn is_absent(&self, class: usize) -> bool {
        u32::try_from(class).is_ok_and(|class| self.absent.binary_search(&class).is_ok())
    }

    /// The smallest distance of two classes that are not absent.
    pub fn separation(&self) -> f64 {
        match &self.code {
            OutputCode::Matrix(matrix) if !self.absent.is_empty() => {
                let present: Vec<usize> = (0..self.labels.len()).filter(|&class| !self.is_absent(class)).collect();
                OutputCode::Matrix(matrix.select(&present)).separation()
            }
            code => code.separation(),
        }
    }

    /// The scores of the classes for all rows, given those of the columns.
    pub fn class_scores(&self, scores: &[f64]) -> Vec<f64> {
        let (columns, classes) = (self.code.columns(), self.labels.len());
        let rows = scores.len() / columns.max(1);
        let mut decoded = vec![0.0; rows * classes];
        parallel::chunks(&mut decoded, ROWS * classes, |chunk, decoded| {
            let mut losses = vec![Losses::default(); columns];
            let mut own = vec![0.0; classes];
            for (number, out) in decoded.chunks_exact_mut(classes).enumerate() {
                let row = chunk * ROWS + number;
                self.decode(&scores[row * columns..(row + 1) * columns], &mut losses, &mut own, out);
                self.put_absent_last(out);
            }
        });
        decoded
    }

    /// Puts the scores of absent classes below those of all others.
    fn put_absent_last(&self, scores: &mut [f64]) {
        if self.absent.is_empty() {
            return;
        }
        self.absent.iter().for_each(|&class| scores[class as usize] = f64::INFINITY);
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        self.absent.iter().for_each(|&class| scores[class as usize] = lowest - 1.0 - lowest.abs());
    }

    /// The scores of the classes for one row.
    fn decode(&self, scores: &[f64], losses: &mut [Losses], own: &mut [f64], out: &mut [f64]) {
        let fill = |decoding: Decoding, losses: &mut [Losses]| {
            losses.iter_mut().zip(scores).for_each(|(losses, &score)| *losses = Losses::of(decoding, score));
        };
        if self.decoding != Decoding::Hamming {
            fill(self.decoding, losses);
            self.distances(losses, out);
            out.iter_mut().for_each(|distance| *distance = -*distance);
            return;
        }
        fill(Decoding::Hinge, losses);
        self.distances(losses, own);
        losses.iter_mut().zip(scores).for_each(|(losses, &score)| {
            let positive = f64::from(u8::from(score >= 0.0));
            *losses = Losses { plus: 1.0 - positive, minus: positive, zero: 0.5 };
        });
        self.distances(losses, out);
        // Votes differ by at least a half, so that a third decides only between equal ones.
        out.iter_mut().zip(own).for_each(|(out, own)| *out = -(*out + *own / (3.0 * (*own + 1.0))));
    }

    /// The distance of each class, given the losses of the columns.
    fn distances(&self, losses: &[Losses], out: &mut [f64]) {
        match &self.code {
            OutputCode::OneVsRest { .. } => {
                // The sums before and after each class, so that no digits cancel.
                let mut before = 0.0;
                for (out, losses) in out.iter_mut().zip(losses) {
                    *out = before + losses.plus;
                    before += losses.minus;
                }
                let mut after = 0.0;
                for (out, losses) in out.iter_mut().zip(losses).rev() {
                    *out += after;
                    after += losses.minus;
                }
            }
            OutputCode::OneVsOne { classes } => {
                let zero = losses.first().map_or(0.0, |losses| losses.zero);
                out.fill((losses.len() + 1 - *classes) as f64 * zero);
                let mut column = losses.iter();
                for first in 0..*classes {
                    for second in first + 1..*classes {
                        let Some(losses) = column.next() else { return };
                        let alike = !self.absent.is_empty() && (self.is_absent(first) || self.is_absent(second));
                        out[first] += if alike { losses.zero } else { losses.plus };
                        out[second] += if alike { losses.zero } else { losses.minus };
                    }
                }
            }
            OutputCode::Matrix(matrix) => {
                for (class, out) in out.iter_mut().enumerate() {
                    *out = matrix.row(class).iter().zip(losses).map(|(&entry, losses)| losses.at(entry)).sum();
                }
            }
        }
    }

    /// The distance of a row of scores to the row of its class, in the loss of the decoding.
    pub fn distance(&self, class: usize, scores: &[f64]) -> f64 {
        let loss = |column: usize| {
            let (score, entry) = (scores[column], self.code.entry(class, column));
            match (self.decoding, entry) {
                // A score of zero is a vote for the positive side.
                (Decoding::Hamming, 1 | -1) => f64::from(u8::from((score >= 0.0) != (entry > 0))),
                (decoding, entry) => decoding.loss(f64::from(entry) * score),
            }
        };
        match &self.code {
            OutputCode::OneVsOne { classes } if *classes > 2 => {
                // The columns of other classes count alike.
                let others = (self.code.columns() + 1 - classes) as f64 * self.decoding.loss(0.0);
                let start = |first: usize| first * classes - first * (first + 1) / 2;
                let before = (0..class).map(|first| loss(start(first) + class - first - 1)).sum::<f64>();
                let after = (start(class)..start(class) + classes - class - 1).map(loss).sum::<f64>();
                others + before + after
            }
            _ => (0..scores.len()).map(loss).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CodeChoice;
    use crate::random::Random;

    #[test]
    fn classes_are_scored_as_by_the_formula() {
        let mut random = Random::new(7, 0, 0);
        for classes in [2, 3, 6] {
            let labels = Labels::new((0..classes).map(|class| class.to_string()).collect());
            for name in ["one-vs-rest", "one-vs-one", "random-sparse:9", "exhaustive"] {
                let code = name.parse::<CodeChoice>().expect("a name").build(&labels, 1).expect("a code");
                for decoding in Decoding::ALL {
                    let decoder =
                        CodeDecoder { labels: labels.clone(), code: code.clone(), decoding, absent: Vec::new() };
                    let scores: Vec<f64> = (0..200 * code.columns())
                        .map(|at| if at % 11 == 0 { 0.0 } else { 2.0 * random.normal() })
                        .collect();
                    let decoded = decoder.class_scores(&scores);
                    for (scores, decoded) in scores.chunks(code.columns()).zip(decoded.chunks(classes)) {
                        let distance = |class: usize, loss: &dyn Fn(f64, i8) -> f64| -> f64 {
                            scores.iter().enumerate().map(|(j, &score)| loss(score, code.entry(class, j))).sum()
                        };
                        for (class, found) in decoded.iter().enumerate() {
                            let by_loss = |decoding: Decoding| {
                                distance(class, &|score, entry| decoding.loss(f64::from(entry) * score))
                            };
                            let votes = distance(class, &|score, entry| {
                                let sign = if score >= 0.0 { 1.0 } else { -1.0 };
                                0.5 * (1.0 - f64::from(entry) * sign)
                            });
                            let expected = match decoding {
                                Decoding::Hamming => {
                                    assert!((decoder.distance(class, scores) - votes).abs() < 1e-12);
                                    let hinge = by_loss(Decoding::Hinge);
                                    votes + hinge / (3.0 * (hinge + 1.0))
                                }
                                decoding => {
                                    let expected = by_loss(decoding);
                                    assert!((decoder.distance(class, scores) - expected).abs() < 1e-10);
                                    expected
                                }
                            };
                            assert!((found + expected).abs() < 1e-10, "{name} {decoding:?} {found} {expected}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn absent_classes_come_last_and_decide_nothing() {
        let labels = Labels::new(["a", "b", "c", "d"].map(String::from).to_vec());
        let mut random = Random::new(8, 0, 0);
        for decoding in Decoding::ALL {
            let code = OutputCode::OneVsOne { classes: 4 };
            let whole = CodeDecoder { labels: labels.clone(), code, decoding, absent: vec![1] };
            assert!(whole.is_whole() && whole.is_absent(1) && !whole.is_absent(2));
            let present = Labels::new(["a", "c", "d"].map(String::from).to_vec());
            let code = OutputCode::OneVsOne { classes: 3 };
            let without = CodeDecoder { labels: present, code, decoding, absent: Vec::new() };
            let ordered = |scores: &[f64], classes: &[usize]| {
                let mut order = classes.to_vec();
                order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
                order
            };
            for _ in 0..50 {
                let scores: Vec<f64> = (0..6).map(|_| 3.0 * random.normal()).collect();
                let found = ordered(&whole.class_scores(&scores), &[0, 1, 2, 3]);
                // The columns of a, c and d among each other.
                let alone = without.class_scores(&[scores[1], scores[2], scores[5]]);
                let expected: Vec<usize> = ordered(&alone, &[0, 1, 2]).into_iter().map(|at| [0, 2, 3][at]).collect();
                assert_eq!(found, [&expected[..], &[1]].concat(), "{decoding:?} {scores:?}");
            }
        }
        let code = OutputCode::OneVsOne { classes: 4 };
        for absent in [vec![2, 1], vec![1, 1], vec![4], vec![0, 1, 2]] {
            let decoder = CodeDecoder { labels: labels.clone(), code: code.clone(), decoding: Decoding::Hinge, absent };
            assert!(!decoder.is_whole(), "{:?}", decoder.absent);
        }
    }

    #[test]
    fn equal_votes_are_decided_by_the_hinge_loss_and_then_by_the_order() {
        let labels = Labels::new(["a", "b", "c"].map(String::from).to_vec());
        let code = OutputCode::OneVsOne { classes: 3 };
        let decoder = CodeDecoder { labels, code, decoding: Decoding::Hamming, absent: Vec::new() };
        let best = |scores: [f64; 3]| {
            let scores = decoder.class_scores(&scores);
            (0..3).reduce(|best, class| if scores[class] > scores[best] { class } else { best })
        };
        // a beats b, c beats a, b beats c: one vote each.
        assert_eq!(best([0.9, -0.1, 0.2]), Some(0));
        assert_eq!(best([0.1, -0.2, 0.9]), Some(1));
        assert_eq!(best([0.1, -0.9, 0.1]), Some(2));
        assert_eq!(best([0.5, -0.5, 0.5]), Some(0));
    }
}
