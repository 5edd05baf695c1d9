//! Metrics of label sets: each row has any number of labels, and a score for every known one.
//!
//! With Y the labels of a row, K the number of labels, and a label predicted if its score is above zero:
//!
//! - `hamming-loss`: the share of the K labels that are wrongly predicted or wrongly left out.
//! - `subset-accuracy`: 1 if the predicted set is Y, else 0.
//! - `one-error`: 1 if the label with the highest score is not in Y, else 0; of equal highest scores, the share that is not.
//! - `coverage`: how many labels one has to take from the top until all of Y are among them, those with equal scores too.
//! - `ranking-loss`: the share of the pairs of a label in Y and one outside whose first score is not above the second.
//! - `label-ranking-average-precision`: the mean over Y of the share of Y among the labels with at least its score.
//!
//! Each is the mean over rows, by their weights. Of a row without labels, and of one with all of them, nothing can be
//! ordered: its ranking loss is 0 and its average precision 1, as in scikit-learn. Rows without labels have coverage 0, and
//! no one-error. `f1-micro` and `f1-macro` add up the labels of all rows, as for classes.

use super::classes::{Tally, mean};
use super::judged::mismatch;
use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::data::LabelSets;
use crate::error::Result;
use crate::parallel;
use crate::wording::counted;

/// Rows that one job takes.
const RUN: usize = 256;

/// A mean over rows.
pub(super) struct MeanOfSets<'a> {
    /// The value of each row; none if the metric is not defined on it.
    values: Vec<Option<f64>>,
    weights: Option<&'a [f64]>,
    notes: Vec<String>,
}

impl<'a> MeanOfSets<'a> {
    pub(super) fn new(metric: &Metric, judged: &Judged<'a>) -> Result<MeanOfSets<'a>> {
        let (sets, labels) = judged.needed_sets(metric)?;
        let scores = judged.needed_class_scores(metric)?;
        let values = parallel::collect(sets.len(), RUN, |row| {
            of_row(metric, sets.row(row), &scores[row * labels..(row + 1) * labels])
        });
        let left_out = values.iter().filter(|value| value.is_none()).count() as u64;
        if left_out == values.len() as u64 {
            return Err(mismatch(format!("{metric} cannot be computed: no row has a label that the model knows"))
                .help("evaluate on rows with labels that the model was trained on"));
        }
        let rows = counted(left_out, "row without labels is", "rows without labels are");
        let note = (left_out > 0).then(|| format!("{rows} left out of {metric}"));
        Ok(MeanOfSets { values, weights: judged.weights, notes: note.into_iter().collect() })
    }
}

impl RowMetric for MeanOfSets<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for (row, value) in self.values.iter().enumerate() {
            if let Some(value) = value {
                let weight = weight_of(row, self.weights, times);
                sum += weight * value;
                all += weight;
            }
        }
        (all > 0.0).then(|| sum / all)
    }

    fn counted(&self) -> Option<usize> {
        Some(self.values.iter().flatten().count())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The metric of one row.
fn of_row(metric: &Metric, own: &[u32], scores: &[f64]) -> Option<f64> {
    let labels = scores.len();
    let is_own = |label: usize| own.binary_search(&(label as u32)).is_ok();
    let wrong = || (0..labels).filter(|&label| (scores[label] > 0.0) != is_own(label)).count();
    Some(match metric {
        Metric::HammingLoss => wrong() as f64 / labels as f64,
        Metric::SubsetAccuracy => f64::from(u8::from(wrong() == 0)),
        Metric::OneError if own.is_empty() => return None,
        Metric::OneError => {
            let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let best = (0..labels).filter(|&label| scores[label] == highest);
            let (mut all, mut missed) = (0.0, 0.0);
            best.for_each(|label| {
                all += 1.0;
                missed += f64::from(u8::from(!is_own(label)));
            });
            missed / all
        }
        Metric::Coverage => {
            let lowest = own.iter().map(|&label| scores[label as usize]).fold(f64::INFINITY, f64::min);
            scores.iter().filter(|&&score| score >= lowest).count() as f64
        }
        _ if own.is_empty() || own.len() == labels => f64::from(u8::from(*metric != Metric::RankingLoss)),
        _ => {
            // Both kinds of scores in order, so that each label is counted by a walk over them.
            let (mut mine, mut others): (Vec<f64>, Vec<f64>) = (Vec::with_capacity(own.len()), Vec::new());
            scores
                .iter()
                .enumerate()
                .for_each(|(label, &score)| if is_own(label) { mine.push(score) } else { others.push(score) });
            mine.sort_unstable_by(|a, b| b.total_cmp(a));
            others.sort_unstable_by(|a, b| b.total_cmp(a));
            let (mut wrong, mut precision) = (0.0, 0.0);
            for &score in &mine {
                let above = others.partition_point(|&other| other >= score) as f64;
                let right = mine.partition_point(|&other| other >= score) as f64;
                wrong += above;
                precision += right / (right + above);
            }
            match metric {
                Metric::RankingLoss => wrong / (mine.len() * others.len()) as f64,
                _ => precision / mine.len() as f64,
            }
        }
    })
}

/// F1 over the labels of all rows.
pub(super) struct F1OfSets<'a> {
    metric: &'a Metric,
    sets: &'a LabelSets,
    labels: usize,
    /// The predicted labels of each row.
    predicted: Vec<Vec<u32>>,
    weights: Option<&'a [f64]>,
}

impl<'a> F1OfSets<'a> {
    pub(super) fn new(metric: &'a Metric, judged: &Judged<'a>) -> Result<F1OfSets<'a>> {
        let (sets, labels) = judged.needed_sets(metric)?;
        let scores = judged.needed_class_scores(metric)?;
        let predicted = parallel::map(sets.len(), |row| {
            (0..labels as u32).filter(|&label| scores[row * labels + label as usize] > 0.0).collect()
        });
        Ok(F1OfSets { metric, sets, labels, predicted, weights: judged.weights })
    }
}

impl RowMetric for F1OfSets<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let mut tallies = vec![Tally::default(); self.labels];
        for (row, (own, predicted)) in self.sets.iter().zip(&self.predicted).enumerate() {
            let weight = weight_of(row, self.weights, times);
            own.iter().for_each(|&label| tallies[label as usize].truth += weight);
            for &label in predicted {
                let tally = &mut tallies[label as usize];
                tally.predicted += weight;
                tally.right += if own.binary_search(&label).is_ok() { weight } else { 0.0 };
            }
        }
        if *self.metric == Metric::F1Macro {
            return Some(mean(&tallies, Tally::f1)).filter(|value| !value.is_nan());
        }
        let all = tallies.iter().fold(Tally::default(), |sum, tally| Tally {
            right: sum.right + tally.right,
            truth: sum.truth + tally.truth,
            predicted: sum.predicted + tally.predicted,
        });
        (all.truth + all.predicted > 0.0).then(|| all.f1())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::random::Random;

    const LABELS: usize = 5;

    /// Sets and scores, many of them equal.
    fn case(random: &mut Random) -> (Vec<Vec<usize>>, Vec<f64>) {
        let rows = 1 + random.below(6) as usize;
        let chance = [0.0, 0.3, 0.6, 1.0];
        let sets = (0..rows).map(|_| {
            let chance = chance[random.below(4) as usize];
            (0..LABELS).filter(|_| random.uniform() < chance).collect()
        });
        let sets = sets.collect();
        let scores = (0..rows * LABELS).map(|_| (2.0 * random.normal()).round() / 2.0).collect();
        (sets, scores)
    }

    fn label_sets(sets: &[Vec<usize>]) -> LabelSets {
        let (mut starts, mut codes) = (vec![0], Vec::new());
        for own in sets {
            codes.extend(own.iter().map(|&label| label as u32));
            starts.push(codes.len() as u64);
        }
        LabelSets::from_parts(starts, codes)
    }

    /// The metric of one row, by its definition.
    fn by_definition(metric: &Metric, own: &[usize], scores: &[f64]) -> Option<f64> {
        let has = |label: usize| own.contains(&label);
        let pairs = || own.iter().flat_map(|&a| (0..LABELS).filter(|&b| !has(b)).map(move |b| (a, b)));
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        Some(match metric {
            Metric::HammingLoss => {
                mean((0..LABELS).map(|label| f64::from(u8::from(has(label) != (scores[label] > 0.0)))).collect())
            }
            Metric::SubsetAccuracy => {
                let predicted: Vec<usize> = (0..LABELS).filter(|&label| scores[label] > 0.0).collect();
                f64::from(u8::from(predicted == own))
            }
            Metric::OneError if own.is_empty() => return None,
            Metric::OneError => {
                let best = |label: &usize| scores.iter().all(|score| *score <= scores[*label]);
                mean((0..LABELS).filter(best).map(|label| f64::from(u8::from(!has(label)))).collect())
            }
            Metric::Coverage => {
                // The fewest labels from the top, equal ones together, that hold all of the row's.
                let above = |a: usize| (0..LABELS).filter(|&b| scores[b] >= scores[a]).count();
                own.iter().map(|&a| above(a)).max().unwrap_or(0) as f64
            }
            Metric::RankingLoss => match pairs().count() {
                0 => 0.0,
                count => pairs().filter(|&(a, b)| scores[a] <= scores[b]).count() as f64 / count as f64,
            },
            _ if pairs().count() == 0 => 1.0,
            _ => {
                let precision = |&a: &usize| {
                    let above: Vec<usize> = (0..LABELS).filter(|&b| scores[b] >= scores[a]).collect();
                    above.iter().filter(|&&b| has(b)).count() as f64 / above.len() as f64
                };
                mean(own.iter().map(precision).collect())
            }
        })
    }

    const OF_ROWS: [Metric; 6] = [
        Metric::HammingLoss,
        Metric::SubsetAccuracy,
        Metric::OneError,
        Metric::Coverage,
        Metric::RankingLoss,
        Metric::LabelRankingAveragePrecision,
    ];

    #[test]
    fn means_over_rows_are_those_of_the_definitions() {
        let mut random = Random::new(5, 9, 0);
        for _ in 0..3000 {
            let (sets, scores) = case(&mut random);
            let weights: Vec<f64> = sets.iter().map(|_| random.uniform()).collect();
            let found = label_sets(&sets);
            for metric in &OF_ROWS {
                let judged = Judged::sets(&found, LABELS, &scores).with_weights(Some(&weights));
                let rows = sets.iter().zip(scores.chunks(LABELS)).zip(&weights);
                let (mut sum, mut all) = (0.0, 0.0);
                for ((own, scores), weight) in rows {
                    if let Some(value) = by_definition(metric, own, scores) {
                        sum += weight * value;
                        all += weight;
                    }
                }
                match metric.evaluate(&judged) {
                    Ok(found) => assert!((found.value - sum / all).abs() < 1e-12, "{metric} {sets:?} {scores:?}"),
                    Err(error) => assert!(all == 0.0 && error.code() == Code::MetricMismatch, "{metric}"),
                }
            }
        }
    }

    #[test]
    fn f1_counts_labels_of_rows() {
        let mut random = Random::new(6, 9, 0);
        for _ in 0..2000 {
            let (sets, scores) = case(&mut random);
            let found = label_sets(&sets);
            let judged = Judged::sets(&found, LABELS, &scores);
            let count = |label: usize| {
                let (mut right, mut both) = (0.0, 0.0);
                for (own, scores) in sets.iter().zip(scores.chunks(LABELS)) {
                    let (has, predicted) = (own.contains(&label), scores[label] > 0.0);
                    right += f64::from(u8::from(has && predicted));
                    both += f64::from(u8::from(has)) + f64::from(u8::from(predicted));
                }
                (right, both)
            };
            let counts: Vec<(f64, f64)> = (0..LABELS).map(count).collect();
            let present: Vec<f64> =
                counts.iter().filter(|(_, both)| *both > 0.0).map(|(right, both)| 2.0 * right / both).collect();
            let (right, both) = counts.iter().fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
            if present.is_empty() {
                assert!(Metric::F1Macro.evaluate(&judged).is_err() && Metric::F1Micro.evaluate(&judged).is_err());
                continue;
            }
            let macro_f1 = present.iter().sum::<f64>() / present.len() as f64;
            assert!((Metric::F1Macro.evaluate(&judged).expect("defined").value - macro_f1).abs() < 1e-12);
            assert!((Metric::F1Micro.evaluate(&judged).expect("defined").value - 2.0 * right / both).abs() < 1e-12);
        }
    }

    #[test]
    fn an_interval_holds_the_value_and_other_metrics_are_refused() {
        let mut random = Random::new(7, 9, 0);
        let sets: Vec<Vec<usize>> = (0..200).map(|row| vec![row % LABELS]).collect();
        let scores: Vec<f64> = (0..200 * LABELS).map(|_| random.normal()).collect();
        let found = label_sets(&sets);
        let judged = Judged::sets(&found, LABELS, &scores);
        for metric in OF_ROWS.iter().chain(&[Metric::F1Micro, Metric::F1Macro]) {
            let value = metric.evaluate(&judged).expect("defined").value;
            let interval = metric.bootstrap(&judged, 200, 1).expect("defined").expect("rows");
            assert!(interval.low <= value && value <= interval.high, "{metric}");
        }
        for name in ["accuracy", "auc", "map", "rmse", "qwk", "log-loss", "f1", "top-accuracy@2"] {
            let metric = Metric::parse(name).expect("known");
            assert!(metric.evaluate(&judged).is_err(), "{name}");
        }
        let codes = [0, 1];
        let classes = Judged::classes(&codes, 2, &codes);
        assert_eq!(Metric::RankingLoss.evaluate(&classes).expect_err("one class").code(), Code::MetricMismatch);
    }
}
