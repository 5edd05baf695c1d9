//! [`Labellings`]: the labels of all rows of two classes as one output, with the loss 1 − measure over all rows.
//!
//! ```text
//! min  ½‖w‖² + C · max_y [ m · loss(y) + Σ_i ((y_i − truth_i) / 2) · s_i ],   y ∈ {−1, 1}ⁿ,   s = Xw + b
//! ```
//! m is the number of rows for the error rate, twice the number of positives for F1 and the break-even point, and 2k for
//! the precision of the first k. Near the truth a wrong label then costs about one margin, so that C is the weight of a row
//! as for other classifiers: with the error rate as loss this is the sum of the hinge losses of the rows,
//! Σ_i max(0, 1 − truth_i s_i). There is one example of weight m, whose scores count 1/m. b is a shared score, penalised
//! like the weights. For the ROC area the output is an order, and its bracket the mean over pairs of
//! max(0, 1 − (s_i − s_j)) with the number of rows as weight; a constant term changes nothing there, nor for the break-even
//! point.
//!
//! **The precision of the first k** judges k rows labelled positive, while the truth has more positives, or fewer. Of the
//! rows it mislabels, f positives are found, a = |positives| − f missed, and b = k − f are false alarms. Only e = min(a, b)
//! of them are exchanged, and the bracket is
//! ```text
//! loss(y) + (e / m) · (mean score of the false alarms − mean score of the missed positives),   loss(y) = e / k
//! ```
//! The sum is convex in s. It is zero for every y that loses nothing, and at least the loss of the k rows with the highest
//! scores: of those, no false alarm is below a missed positive. With k = |positives| it is that of the break-even point.
//! (The sum over the false alarms with the mean of the missed positives is the surrogate of Kar, Narasimhan & Jain, Surrogate
//! functions for maximizing precision at the top, ICML 2015.)
//!
//! **Search.** F1, the precision of the first k and the break-even point depend on a labelling only through its table: a
//! positives are labelled positive, and b negatives. For given a and b the best are the a positives and the b negatives
//! with the highest scores. For F1, the value is concave in b at each a, so the best b is found by bisection: O(n log n)
//! in all, instead of O(n²) for all tables. The other two fix a + b. Equal scores are taken in the order of the rows.
//!
//! An output is a mask of the rows whose label is wrong, 32 rows a number; for the ROC area it has, for each row, the number
//! of rows of the other class on its wrong side. A sweep of the features is one search and one plane.
//!
//! Reference: Joachims, A support vector method for multivariate performance measures, ICML 2005.

use super::rankings::Lists;
use super::{Plane, Scores, Structure, not_an_output};
use crate::data::{Classes, Dataset, Subset, counts};
use crate::error::{Code, Error, Result};
use crate::parallel::Spare;
use crate::suggest::nearest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;

/// A measure of the labels or scores of all rows that a classifier of two classes optimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassMeasure {
    /// The harmonic mean of precision and recall.
    F1,
    /// The precision where as many rows are labelled positive as are: the break-even point of precision and recall.
    BreakEven,
    /// The share of positives among the k rows with the highest scores.
    PrecisionAt(NonZeroUsize),
    /// The area under the ROC curve.
    Auc,
    /// The share of wrong labels.
    Error,
}

impl fmt::Display for ClassMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassMeasure::F1 => f.write_str("f1"),
            ClassMeasure::BreakEven => f.write_str("prbep"),
            ClassMeasure::PrecisionAt(k) => write!(f, "p@{k}"),
            ClassMeasure::Auc => f.write_str("auc"),
            ClassMeasure::Error => f.write_str("error"),
        }
    }
}

impl FromStr for ClassMeasure {
    type Err = Error;

    fn from_str(text: &str) -> Result<ClassMeasure> {
        let name = text.trim().to_ascii_lowercase();
        Ok(match name.as_str() {
            "f1" => ClassMeasure::F1,
            "prbep" => ClassMeasure::BreakEven,
            "auc" => ClassMeasure::Auc,
            "error" => ClassMeasure::Error,
            name => match name.strip_prefix("p@").map(str::parse::<NonZeroUsize>) {
                Some(Ok(k)) => ClassMeasure::PrecisionAt(k),
                Some(Err(_)) => {
                    return Err(Error::new(Code::BadSetting, format!("⟦optimize={text}⟧ names no number of rows"))
                        .help("give a whole number from 1, such as p@100"));
                }
                None => {
                    let similar = nearest(name, ["f1", "prbep", "p@100", "auc", "error"]);
                    let guess = similar.map_or(String::new(), |similar| format!("did you mean `{similar}`? "));
                    return Err(Error::new(Code::BadSetting, format!("⟦optimize⟧ of a classifier takes no `{text}`"))
                        .help(format!("{guess}use one of f1, prbep, p@K, auc and error")));
                }
            },
        })
    }
}

impl Serialize for ClassMeasure {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClassMeasure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<ClassMeasure, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// All rows of two classes, or some of them, as one example.
#[derive(Debug)]
pub struct Labellings {
    measure: ClassMeasure,
    /// 1 and −1 for the classes, and 0 for rows that are left out.
    signs: Vec<i8>,
    positives: usize,
    negatives: usize,
    constant: bool,
    spare: Spare<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    scores: Vec<f64>,
    lists: Lists,
    wrong: Vec<u32>,
    expected: Vec<u32>,
}

/// Rows in one number of a mask.
const BITS: usize = 32;

impl Labellings {
    /// The rows of two classes, or those in the subset. `constant` says whether a constant is added to all scores.
    pub fn on(
        data: &Dataset,
        classes: &Classes,
        measure: ClassMeasure,
        constant: bool,
        subset: Option<&Subset>,
    ) -> Result<Labellings> {
        let mut signs = classes.signs(data.targets())?;
        signs.iter_mut().enumerate().filter(|(row, _)| !counts(subset, *row)).for_each(|(_, sign)| *sign = 0);
        if let Some(weights) = data.weights()
            && let Some(row) = (0..signs.len()).find(|&row| signs[row] != 0 && weights[row] != 1.0)
        {
            let message =
                format!("{} has the weight {}, and `{measure}` counts rows", data.row_name(row), weights[row]);
            return Err(Error::new(Code::BadWeight, message).help("give no weights, or leave ⟦optimize⟧ out"));
        }
        let number = |wanted: i8| signs.iter().filter(|sign| **sign == wanted).count();
        let (positives, negatives) = (number(1), number(-1));
        if positives == 0 || negatives == 0 {
            let label = if positives == 0 { &classes.positive } else { &classes.negative };
            return Err(Error::new(Code::SingleClass, format!("no row of class `{label}` is left to learn from"))
                .help("a classifier needs rows of two classes"));
        }
        if let ClassMeasure::PrecisionAt(k) = measure
            && k.get() >= positives + negatives
        {
            let message = format!("`{measure}` is the same for all orders of {} rows", positives + negatives);
            return Err(Error::new(Code::BadSetting, message).help("give a smaller number of rows"));
        }
        Ok(Labellings { measure, signs, positives, negatives, constant, spare: Spare::default() })
    }

    /// The weight m, see the top of the file.
    fn rows_at_stake(&self) -> f64 {
        match self.measure {
            ClassMeasure::F1 | ClassMeasure::BreakEven => 2.0 * self.positives as f64,
            ClassMeasure::PrecisionAt(k) => 2.0 * k.get() as f64,
            ClassMeasure::Auc | ClassMeasure::Error => (self.positives + self.negatives) as f64,
        }
    }

    /// 1/m: what the score of a wrong label counts.
    fn share(&self) -> f64 {
        1.0 / self.rows_at_stake()
    }

    fn pairs(&self) -> f64 {
        self.positives as f64 * self.negatives as f64
    }

    /// The loss of a table: so many positives and negatives are labelled positive.
    fn loss(&self, found: usize, false_alarms: usize) -> f64 {
        let (found, false_alarms, positives) = (found as f64, false_alarms as f64, self.positives as f64);
        match self.measure {
            ClassMeasure::F1 => (positives - found + false_alarms) / (found + false_alarms + positives),
            ClassMeasure::BreakEven => (positives - found) / positives,
            ClassMeasure::PrecisionAt(k) => ((k.get() as f64).min(positives) - found) / k.get() as f64,
            ClassMeasure::Auc | ClassMeasure::Error => (positives - found + false_alarms) * self.share(),
        }
    }

    /// How many rows are labelled positive, if the measure fixes that.
    fn labelled(&self) -> Option<usize> {
        match self.measure {
            ClassMeasure::BreakEven => Some(self.positives),
            ClassMeasure::PrecisionAt(k) => Some(k.get()),
            ClassMeasure::F1 | ClassMeasure::Auc | ClassMeasure::Error => None,
        }
    }

    /// How much the score of a missed positive counts, and that of a false alarm, in units of 1/m.
    fn counting(&self, missed: usize, alarms: usize) -> (f64, f64) {
        match self.measure {
            ClassMeasure::PrecisionAt(_) => {
                let exchanged = missed.min(alarms) as f64;
                (exchanged / missed.max(1) as f64, exchanged / alarms.max(1) as f64)
            }
            _ => (1.0, 1.0),
        }
    }

    /// The table with the largest value, and whether that is above zero, the value of the truth.
    fn best_table(&self, lists: &Lists) -> Option<(usize, usize)> {
        let (high, low) = (&lists.relevant_sums, &lists.other_sums);
        let (positives, negatives, share) = (self.positives, self.negatives, self.share());
        let value = |found: usize, alarms: usize| {
            let (of_missed, of_alarms) = self.counting(positives - found, alarms);
            self.loss(found, alarms) + share * (of_alarms * low[alarms] - of_missed * (high[positives] - high[found]))
        };
        let (mut best, mut highest) = (None, 0.0);
        let mut try_table = |found: usize, alarms: usize| {
            let value = value(found, alarms);
            if value > highest {
                (best, highest) = (Some((found, alarms)), value);
            }
        };
        match self.labelled() {
            Some(labelled) => {
                let least = labelled.saturating_sub(negatives);
                (least..=labelled.min(positives)).for_each(|found| try_table(found, labelled - found));
            }
            None => (0..=positives).for_each(|found| {
                // With each further false alarm the loss grows by less, and the score as well.
                let grows = |alarms: &usize| {
                    let step = self.loss(found, alarms + 1) - self.loss(found, *alarms);
                    step + share * lists.others[*alarms] > 0.0
                };
                try_table(found, first_without(negatives, grows));
            }),
        }
        best
    }
}

/// The first number below `end` for which a condition that never becomes true again fails, or `end`.
fn first_without(end: usize, holds: impl Fn(&usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(&middle) { low = middle + 1 } else { high = middle }
    }
    low
}

impl Structure for Labellings {
    fn examples(&self) -> usize {
        1
    }

    fn rows(&self, _: usize) -> Range<usize> {
        0..self.signs.len()
    }

    fn shared(&self) -> usize {
        usize::from(self.constant)
    }

    fn weight(&self, _: usize) -> f64 {
        self.rows_at_stake()
    }

    fn most_violated(&self, _: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        output.clear();
        let constant = at.shared.first().copied().unwrap_or(0.0);
        if self.measure == ClassMeasure::Error {
            output.resize(self.signs.len().div_ceil(BITS), 0);
            for (row, (sign, score)) in self.signs.iter().zip(at.rows).enumerate() {
                let wrong = *sign != 0 && f64::from(*sign) * (score + constant) < 1.0;
                output[row / BITS] |= u32::from(wrong) << (row % BITS);
            }
            return Ok(());
        }
        self.spare.lend(|Buffers { scores, lists, .. }| {
            scores.clear();
            scores.extend(at.rows.iter().map(|score| score + constant));
            lists.sort_some(scores, |place| self.signs[place as usize] != 0);
            lists.split(|place| self.signs[place as usize] > 0);
            if self.measure == ClassMeasure::Auc {
                output.resize(self.signs.len(), 0);
                lists.area(1.0 / self.pairs(), 1.0 / self.pairs());
                return lists.write(output);
            }
            output.resize(self.signs.len().div_ceil(BITS), 0);
            if let Some((found, alarms)) = self.best_table(lists) {
                for place in lists.relevant_places[found..].iter().chain(&lists.other_places[..alarms]) {
                    output[*place as usize / BITS] |= 1 << (*place as usize % BITS);
                }
            }
        });
        Ok(())
    }

    fn plane(&self, _: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        plane.clear();
        if self.measure == ClassMeasure::Auc {
            return self.plane_of_order(output, plane);
        }
        let refuse = |why: &str| Err(not_an_output(0, why));
        let rows = self.signs.len();
        if output.len() != rows.div_ceil(BITS)
            || (!rows.is_multiple_of(BITS) && output[rows / BITS] >> (rows % BITS) > 0)
        {
            return refuse("a mask has a bit for each row");
        }
        let (mut missed, mut alarms) = (0, 0);
        for (number, &word) in output.iter().enumerate() {
            let mut left = word;
            while left > 0 {
                let row = number * BITS + left.trailing_zeros() as usize;
                left &= left - 1;
                match self.signs[row] {
                    0 => return refuse("a row that is left out has no label"),
                    1 => missed += 1,
                    _ => alarms += 1,
                }
                plane.rows.push((row as u32, -self.share() * f64::from(self.signs[row])));
            }
        }
        if plane.rows.is_empty() {
            return Ok(());
        }
        let found = self.positives - missed;
        if self.labelled().is_some_and(|labelled| found + alarms != labelled) {
            return refuse("the number of positive labels is fixed");
        }
        plane.loss = self.loss(found, alarms);
        let (of_missed, of_alarms) = self.counting(missed, alarms);
        for (_, slope) in &mut plane.rows {
            *slope *= if *slope < 0.0 { of_missed } else { of_alarms };
        }
        plane.rows.retain(|(_, slope)| *slope != 0.0);
        if self.constant && self.labelled().is_none() && alarms != missed {
            plane.shared.push((0, self.share() * (alarms as f64 - missed as f64)));
        }
        Ok(())
    }
}

impl Labellings {
    fn plane_of_order(&self, output: &[u32], plane: &mut Plane) -> Result<()> {
        if output.len() != self.signs.len() {
            return Err(not_an_output(0, "an order has a number for each row"));
        }
        self.spare.lend(|Buffers { wrong, expected, .. }| {
            let side = |place: usize| match self.signs[place] {
                0 => None,
                sign => Some(sign > 0),
            };
            super::rankings::count_wrong(output, (self.positives, self.negatives), side, wrong, expected)
                .map_err(|why| not_an_output(0, why))?;
            let swapped: u64 = wrong.iter().enumerate().map(|(above, times)| above as u64 * u64::from(*times)).sum();
            plane.loss = swapped as f64 / self.pairs();
            let slopes = (0u32..).zip(output).filter(|(_, number)| **number > 0);
            plane.rows.extend(slopes.map(|(place, number)| {
                (place, -f64::from(self.signs[place as usize]) * f64::from(*number) / self.pairs())
            }));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Targets};
    use crate::random::Random;

    const MEASURES: [&str; 7] = ["f1", "prbep", "p@1", "p@3", "p@5", "auc", "error"];

    fn labellings(signs: &[f64], measure: &str, constant: bool) -> Result<Labellings> {
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; signs.len()], signs.len(), 1).expect("whole rows"));
        let data = Dataset::new(matrix, Targets::Real(signs.to_vec().into())).expect("valid");
        let classes = Classes { negative: "-1".to_string(), positive: "1".to_string() };
        // Every seventh row is left out.
        let left: Vec<usize> = (0..signs.len()).filter(|row| row % 7 == 6).collect();
        let subset = Subset::without(&left, signs.len());
        Labellings::on(&data, &classes, measure.parse().expect("known"), constant, Some(&subset))
    }

    /// The loss of labels by the formulas of the measures; `None` if the measure does not allow them.
    fn loss(measure: ClassMeasure, truth: &[f64], labels: &[bool]) -> Option<f64> {
        let count = |wanted: bool, label: bool| {
            truth.iter().zip(labels).filter(|(t, l)| (**t > 0.0) == wanted && **l == label).count() as f64
        };
        let (tp, fp, missed) = (count(true, true), count(false, true), count(true, false));
        let positives = tp + missed;
        match measure {
            ClassMeasure::F1 => Some(if tp == 0.0 { 1.0 } else { 1.0 - 2.0 * tp / (2.0 * tp + fp + missed) }),
            ClassMeasure::BreakEven => (tp + fp == positives).then(|| 1.0 - tp / (tp + fp)),
            ClassMeasure::PrecisionAt(k) => {
                let k = k.get() as f64;
                (tp + fp == k).then(|| (positives.min(k) - tp) / k)
            }
            ClassMeasure::Error => Some((fp + missed) / truth.len() as f64),
            ClassMeasure::Auc => None,
        }
    }

    /// The largest value over all labellings, or over all sets of wrong pairs, which decide one by one for the ROC area.
    fn by_brute_force(measure: ClassMeasure, truth: &[f64], scores: &[f64]) -> f64 {
        let n = truth.len();
        if measure == ClassMeasure::Auc {
            let (mut sum, mut pairs) = (0.0, 0.0);
            for i in (0..n).filter(|&i| truth[i] > 0.0) {
                for j in (0..n).filter(|&j| truth[j] < 0.0) {
                    sum += f64::max(0.0, 1.0 - (scores[i] - scores[j]));
                    pairs += 1.0;
                }
            }
            return sum / pairs;
        }
        let mut highest: f64 = 0.0;
        for mask in 0u32..1 << n {
            let labels: Vec<bool> = (0..n).map(|row| mask >> row & 1 > 0).collect();
            let Some(loss) = loss(measure, truth, &labels) else { continue };
            let labels = &labels;
            let sign = |row: usize| if labels[row] { 1.0 } else { -1.0 };
            let mut below: f64 = (0..n).map(|row| (sign(row) - truth[row]) / 2.0 * scores[row]).sum();
            if let ClassMeasure::PrecisionAt(_) = measure {
                let of = |wanted: f64| (0..n).filter(move |&row| truth[row] == wanted && sign(row) != wanted);
                let mean = |wanted: f64| of(wanted).map(|row| scores[row]).sum::<f64>() / of(wanted).count() as f64;
                let exchanged = of(1.0).count().min(of(-1.0).count());
                below = if exchanged == 0 { 0.0 } else { exchanged as f64 * (mean(-1.0) - mean(1.0)) };
            }
            let positives = truth.iter().filter(|sign| **sign > 0.0).count();
            let counted = match measure {
                ClassMeasure::F1 | ClassMeasure::BreakEven => 2 * positives,
                ClassMeasure::PrecisionAt(k) => 2 * k.get(),
                ClassMeasure::Auc | ClassMeasure::Error => n,
            };
            highest = highest.max(loss + below / counted as f64);
        }
        highest
    }

    #[test]
    fn no_labelling_is_more_violated_than_the_one_found() {
        let mut random = Random::new(19, 1, 0);
        let mut tried = 0;
        for case in 0..4000 {
            let (name, count) = (MEASURES[case % MEASURES.len()], 2 + random.below(8) as usize);
            let signs: Vec<f64> = (0..count).map(|_| if random.chance(0.4) { 1.0 } else { -1.0 }).collect();
            let Ok(task) = labellings(&signs, name, true) else { continue };
            tried += 1;
            let size = [0.3, 1.0, 4.0][random.below(3) as usize];
            let rounded = random.chance(0.3);
            let score = |random: &mut Random| {
                let score = size * random.normal();
                if rounded { (score * 2.0).round() / 2.0 } else { score }
            };
            let scores: Vec<f64> = (0..count).map(|_| score(&mut random)).collect();
            let shared = [random.normal()];
            let at = Scores { rows: &scores, shared: &shared };
            let (mut output, mut plane) = (Vec::new(), Plane::default());
            task.most_violated(0, at, &mut output).expect("found");
            task.plane(0, &output, &mut plane).expect("a labelling");
            let kept: Vec<usize> = (0..count).filter(|row| row % 7 != 6).collect();
            let truth: Vec<f64> = kept.iter().map(|&row| signs[row]).collect();
            let all: Vec<f64> = kept.iter().map(|&row| scores[row] + shared[0]).collect();
            let slow = by_brute_force(name.parse().expect("known"), &truth, &all);
            let found = plane.value(at);
            assert!((found - slow).abs() < 1e-12 * (1.0 + slow), "{name} {signs:?} {all:?}: {found} {slow}");
        }
        assert!(tried > 2500, "{tried}");
    }

    #[test]
    fn the_bracket_of_the_first_rows_is_at_least_their_loss() {
        let mut random = Random::new(31, 1, 0);
        for case in 0..600 {
            let (k, count) = (1 + case % 6, 8 + random.below(8) as usize);
            let signs: Vec<f64> = (0..count).map(|_| if random.chance(0.4) { 1.0 } else { -1.0 }).collect();
            let Ok(task) = labellings(&signs, &format!("p@{k}"), false) else { continue };
            let scores: Vec<f64> = signs.iter().map(|sign| 0.7 * sign + random.normal()).collect();
            let at = Scores { rows: &scores, shared: &[] };
            let (mut output, mut plane) = (Vec::new(), Plane::default());
            task.most_violated(0, at, &mut output).expect("found");
            task.plane(0, &output, &mut plane).expect("a labelling");
            let mut order: Vec<usize> = (0..count).filter(|row| row % 7 != 6).collect();
            let positives = order.iter().filter(|row| signs[**row] > 0.0).count();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            let found = order[..k].iter().filter(|row| signs[**row] > 0.0).count();
            let loss = (positives.min(k) - found) as f64 / k as f64;
            assert!(plane.value(at) >= loss - 1e-12, "{k} {signs:?} {scores:?}");
            // Zero only where the first rows lose nothing.
            let zero = Scores { rows: &vec![1.0; count], shared: &[] };
            task.most_violated(0, zero, &mut output).expect("found");
            task.plane(0, &output, &mut plane).expect("a labelling");
            assert!(plane.value(zero) > 0.0, "equal scores are no solution");
        }
    }

    #[test]
    fn long_lists_agree_with_all_tables() {
        let mut random = Random::new(23, 1, 0);
        for _ in 0..20 {
            let signs: Vec<f64> = (0..150).map(|_| if random.chance(0.2) { 1.0 } else { -1.0 }).collect();
            let task = labellings(&signs, "f1", false).expect("two classes");
            let scores: Vec<f64> = signs.iter().map(|sign| sign + 2.0 * random.normal()).collect();
            let at = Scores { rows: &scores, shared: &[] };
            let (mut output, mut plane) = (Vec::new(), Plane::default());
            task.most_violated(0, at, &mut output).expect("found");
            task.plane(0, &output, &mut plane).expect("a labelling");
            let side = |wanted: f64| {
                let of = |row: &usize| row % 7 != 6 && signs[*row] == wanted;
                let mut own: Vec<f64> = (0..150).filter(of).map(|row| scores[row]).collect();
                own.sort_by(|a, b| b.total_cmp(a));
                own
            };
            let (positives, negatives) = (side(1.0), side(-1.0));
            let mut highest: f64 = 0.0;
            for found in 0..=positives.len() {
                for alarms in 0..=negatives.len() {
                    let below = negatives[..alarms].iter().sum::<f64>() - positives[found..].iter().sum::<f64>();
                    highest = highest.max(task.loss(found, alarms) + below * task.share());
                }
            }
            assert!((plane.value(at) - highest).abs() < 1e-12, "{} {highest}", plane.value(at));
        }
    }

    #[test]
    fn masks_that_are_no_labelling_are_refused() {
        let signs = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0];
        let mut plane = Plane::default();
        for (measure, output) in [
            ("f1", &[0u32, 0][..]),
            ("f1", &[1 << 8]),
            ("f1", &[1 << 6]),
            ("prbep", &[1]),
            ("p@2", &[2]),
            ("auc", &[0; 7]),
            ("auc", &[1, 0, 0, 0, 0, 0, 0, 0]),
            ("auc", &[0, 0, 0, 0, 0, 0, 1, 0]),
        ] {
            let task = labellings(&signs, measure, true).expect("two classes");
            assert!(task.plane(0, output, &mut plane).is_err(), "{measure} {output:?}");
        }
        let task = labellings(&signs, "prbep", true).expect("two classes");
        task.plane(0, &[0b11], &mut plane).expect("one wrong label each");
        assert!(plane.shared.is_empty() && (plane.loss - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn rows_with_weights_and_one_class_are_refused() {
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; 3], 3, 1).expect("whole rows"));
        let data = Dataset::new(matrix, Targets::Real(vec![1.0, -1.0, 1.0].into())).expect("valid");
        let classes = Classes { negative: "-1".to_string(), positive: "1".to_string() };
        let on = |data: &Dataset, measure: &str, subset: Option<&Subset>| {
            Labellings::on(data, &classes, measure.parse().expect("known"), false, subset)
                .map(drop)
                .expect_err("refused")
        };
        let weighted = data.clone().with_weights(vec![1.0, 2.0, 1.0]).expect("valid");
        assert_eq!(on(&weighted, "f1", None).code(), Code::BadWeight);
        assert_eq!(on(&data, "f1", Some(&Subset::without(&[1], 3))).code(), Code::SingleClass);
        assert_eq!(on(&data, "p@3", None).code(), Code::BadSetting);
        assert_eq!("fl".parse::<ClassMeasure>().expect_err("unknown").code(), Code::BadSetting);
        assert_eq!("P@10".parse::<ClassMeasure>().expect("known").to_string(), "p@10");
    }
}
