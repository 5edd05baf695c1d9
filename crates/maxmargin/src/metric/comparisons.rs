//! Metrics over comparisons: pairs with outcomes left, tie and right, predicted by a threshold on differences of
//! scores.
//!
//! With z the score of the right row minus that of the left one and τ the threshold, the prediction is right if z > τ,
//! left if z < −τ, and a tie otherwise. Accuracy, error and F1 are those of the three outcomes. `auc` varies τ: a tie
//! predicted as decided is a false positive. A decided pair is a true positive only if its sign is also right, so a
//! wrong sign is a false negative at every τ. `log-loss` is the mean of −ln P with the probabilities of the logistic
//! loss, P(right) = σ(z − τ), P(left) = σ(−z − τ). Resampling draws pairs, or their groups.

use super::classes::Classes;
use super::judged::{mismatch, single_class};
use super::pairs::ListedPairs;
use super::roc::Roc;
use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric, Needs};
use crate::data::{Outcome, Pairs, outcome_of, score_differences};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::task::Barrier;

/// The weight of the pairs for each true and predicted outcome. Rows are the true outcomes, in the order of
/// [`Outcome::ALL`].
pub fn confusion(scores: &[f64], pairs: &Pairs, threshold: f64) -> [[f64; 3]; 3] {
    let mut table = [[0.0; 3]; 3];
    for (pair, difference) in score_differences(scores, pairs).into_iter().enumerate() {
        let (truth, predicted) = (pairs.outcome(pair), outcome_of(difference, threshold));
        table[code(truth) as usize][code(predicted) as usize] += pairs.weight(pair);
    }
    table
}

/// The position of an outcome in [`Outcome::ALL`].
fn code(outcome: Outcome) -> u32 {
    (1 + outcome.sign()) as u32
}

/// Scores for a varying threshold, and whether each pair is decided. The score is the absolute difference of a pair's
/// rows, or lower than every other score if the sign is wrong.
pub fn decided_scores(differences: &[f64], pairs: &Pairs) -> (Vec<f64>, Vec<bool>) {
    let each = differences.iter().enumerate().map(|(pair, &difference)| {
        let sign = f64::from(pairs.outcome(pair).sign());
        (if sign * difference > 0.0 || sign == 0.0 { difference.abs() } else { -1.0 }, sign != 0.0)
    });
    each.unzip()
}

/// A metric over pairs whose outcomes are predicted by a threshold.
pub(super) fn prepare<'a>(
    metric: &'a Metric,
    scores: &'a [f64],
    pairs: &'a Pairs,
    threshold: f64,
    likelihood: f64,
) -> Result<Box<dyn RowMetric + 'a>> {
    if (0..pairs.len()).all(|pair| pairs.weight(pair) == 0.0) {
        return Err(Error::new(Code::NoPairs, format!("{metric} cannot be computed: no pair has a weight above zero"))
            .help("give at least one pair with a weight above zero"));
    }
    let differences = score_differences(scores, pairs);
    let inner: Box<dyn RowMetric + 'a> = match metric.needs() {
        _ if *metric == Metric::PairAccuracy => return Ok(Box::new(ListedPairs::new(metric, scores, pairs)?)),
        Needs::Predictions => {
            let truth = (0..pairs.len()).map(|pair| code(pairs.outcome(pair))).collect();
            let predicted = differences.iter().map(|&difference| code(outcome_of(difference, threshold))).collect();
            Box::new(Classes::of(metric, truth, predicted, pairs.weights(), Outcome::ALL.len()))
        }
        Needs::BinaryScores if *metric != Metric::LogLoss => {
            let (scores, decided) = decided_scores(&differences, pairs);
            let roc = Roc::of(metric, &scores, &decided, pairs.weights());
            // This also covers the case that all pairs of one kind have weight 0.
            if roc.value(None).is_none() {
                return Err(single_class(metric).help("evaluate on pairs of which some are ties and some decided"));
            }
            Box::new(roc)
        }
        Needs::BinaryScores => Box::new(LogLoss::of_pairs(&differences, pairs, likelihood)?),
        _ => {
            return Err(mismatch(format!("{metric} needs targets, and these are comparisons"))
                .help("comparisons are measured by error, accuracy, f1-macro, auc, log-loss and pair-accuracy"));
        }
    };
    Ok(Box::new(OverPairs { inner, pairs }))
}

/// A metric with one row per pair. Resampling draws whole groups, if there are any, because the answers of one person
/// are correlated.
struct OverPairs<'a> {
    inner: Box<dyn RowMetric + 'a>,
    pairs: &'a Pairs,
}

impl RowMetric for OverPairs<'_> {
    fn units(&self) -> Option<usize> {
        Some(self.pairs.groups().map_or(self.pairs.len(), |(_, names)| names.len()))
    }

    fn counted(&self) -> Option<usize> {
        Some(self.pairs.len())
    }

    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        match (times, self.pairs.groups()) {
            (Some(times), Some((codes, _))) => {
                let each: Vec<u32> = codes.iter().map(|&code| times[code as usize]).collect();
                self.inner.value(Some(&each))
            }
            (times, _) => self.inner.value(times),
        }
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}

/// The mean of −ln P.
pub(super) struct LogLoss<'a> {
    losses: Vec<f64>,
    weights: Option<&'a [f64]>,
    /// Which of all rows have a loss, if not all have.
    rows: Option<Vec<usize>>,
    notes: Vec<String>,
}

impl<'a> LogLoss<'a> {
    fn of_pairs(differences: &[f64], pairs: &'a Pairs, threshold: f64) -> Result<LogLoss<'a>> {
        if pairs.ties() > 0 && threshold <= 0.0 {
            return Err(mismatch(format!(
                "log-loss cannot be computed: with a threshold of {threshold} a tie has no probability"
            ))
            .help("train with ⟦loss=logistic⟧, or choose error"));
        }
        let loss = |violation: f64| Loss::Logistic.value(violation);
        let losses = differences.iter().enumerate().map(|(pair, &difference)| match pairs.outcome(pair) {
            Outcome::Tie => loss(difference - threshold) + loss(-difference - threshold) + Barrier::at(threshold).value,
            decided => loss(threshold - f64::from(decided.sign()) * difference),
        });
        Ok(LogLoss { losses: losses.collect(), weights: pairs.weights(), rows: None, notes: Vec::new() })
    }

    /// The log-loss of rows with two classes whose scores are log-odds.
    pub(super) fn of_rows(scores: &[f64], positive: &[bool], weights: Option<&'a [f64]>) -> LogLoss<'a> {
        let each = scores.iter().zip(positive);
        let losses = each.map(|(&score, &positive)| Loss::Logistic.value(if positive { -score } else { score }));
        LogLoss { losses: losses.collect(), weights, rows: None, notes: Vec::new() }
    }

    /// The log-loss of rows given the probabilities of all classes. A probability of 0 counts as the smallest positive
    /// number, so that no single row makes the loss infinite.
    pub(super) fn of_probabilities(metric: &Metric, judged: &Judged<'a>) -> Result<LogLoss<'a>> {
        let probabilities = judged.needed_probabilities(metric)?;
        let (codes, _) = judged.needed_classes(metric)?;
        let (rows, notes) = judged.known_rows(metric)?;
        let classes = judged.known_classes();
        let own = |&row: &usize| probabilities[row * classes + codes[row] as usize];
        let losses = rows.iter().map(|row| -own(row).max(f64::MIN_POSITIVE).ln()).collect();
        Ok(LogLoss { losses, weights: judged.weights, rows: (rows.len() < codes.len()).then_some(rows), notes })
    }
}

impl RowMetric for LogLoss<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, loss) in self.losses.iter().enumerate() {
            let row = self.rows.as_ref().map_or(row, |rows| rows[row]);
            let weight = weight_of(row, self.weights, times);
            sum += weight * loss;
            total += weight;
        }
        (total > 0.0).then(|| sum / total)
    }

    fn counted(&self) -> Option<usize> {
        self.rows.as_ref().map(Vec::len)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Judged;
    use super::*;
    use crate::random::Random;

    fn pairs(outcomes: &[Outcome], weights: Option<Vec<f64>>) -> Pairs {
        let count = outcomes.len() as u32;
        let pairs = Pairs::new((0..count).collect::<Vec<_>>(), (count..2 * count).collect::<Vec<_>>()).expect("valid");
        let pairs = pairs.with_outcomes(outcomes.to_vec()).expect("valid");
        weights.map_or(pairs.clone(), |weights| pairs.with_weights(weights).expect("valid"))
    }

    /// The comparison AUC by its definition: tries every threshold and sums trapezoids.
    fn area_by_thresholds(differences: &[f64], pairs: &Pairs) -> f64 {
        let mut thresholds: Vec<f64> = differences.iter().map(|z| z.abs()).collect();
        thresholds.push(f64::INFINITY);
        thresholds.push(-1.0);
        thresholds.sort_by(|a, b| b.total_cmp(a));
        thresholds.dedup();
        let rates = |threshold: f64| {
            let (mut tied, mut wrongly, mut decided, mut found) = (0.0, 0.0, 0.0, 0.0);
            for (pair, z) in differences.iter().enumerate() {
                let (sign, weight) = (f64::from(pairs.outcome(pair).sign()), pairs.weight(pair));
                let taken = z.abs() > threshold;
                if sign == 0.0 {
                    tied += weight;
                    wrongly += if taken { weight } else { 0.0 };
                } else {
                    decided += weight;
                    found += if taken && sign * z > 0.0 { weight } else { 0.0 };
                }
            }
            (wrongly / tied, found / decided)
        };
        let curve: Vec<(f64, f64)> = thresholds.into_iter().map(rates).collect();
        curve.windows(2).map(|step| (step[1].0 - step[0].0) * 0.5 * (step[0].1 + step[1].1)).sum()
    }

    #[test]
    fn metrics_of_comparisons_are_those_of_their_definitions() {
        let mut random = Random::new(3, 1, 0);
        for round in 0..40 {
            let count = 3 + round;
            let outcomes: Vec<Outcome> = (0..count)
                .map(|at| Outcome::of_sign(if at < 3 { at as i8 - 1 } else { random.below(3) as i8 - 1 }))
                .collect();
            let weights = (round % 2 == 0).then(|| (0..count).map(|_| random.below(4) as f64 + 0.5).collect());
            let pairs = pairs(&outcomes, weights);
            // Rounded, so that some differences are equal and some are zero.
            let scores: Vec<f64> = (0..2 * count).map(|_| (random.below(9) as f64 - 4.0) / 2.0).collect();
            let differences = score_differences(&scores, &pairs);
            let judged = Judged::comparisons(&scores, &pairs, 1.0);
            let value = |name: &str| Metric::parse(name).expect("known").evaluate(&judged).expect("defined").value;
            let total: f64 = (0..count).map(|pair| pairs.weight(pair)).sum();
            let wrong: f64 = (0..count)
                .filter(|&pair| {
                    let z = differences[pair];
                    let predicted = if z > 1.0 {
                        1
                    } else if z < -1.0 {
                        -1
                    } else {
                        0
                    };
                    predicted != pairs.outcome(pair).sign()
                })
                .map(|pair| pairs.weight(pair))
                .sum();
            assert!((value("error") - wrong / total).abs() < 1e-12);
            assert!((value("auc") - area_by_thresholds(&differences, &pairs)).abs() < 1e-12);
            let table = confusion(&scores, &pairs, 1.0);
            let off: f64 = (0..3)
                .flat_map(|i| (0..3).filter(move |&j| j != i).map(move |j| (i, j)))
                .map(|(i, j)| table[i][j])
                .sum();
            assert!((off - wrong).abs() < 1e-12);
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let log_loss: f64 = (0..count)
                .map(|pair| {
                    let z = differences[pair];
                    let probability = match pairs.outcome(pair) {
                        Outcome::Right => sigmoid(z - 1.0),
                        Outcome::Left => sigmoid(-z - 1.0),
                        Outcome::Tie => sigmoid(1.0 - z) - sigmoid(-1.0 - z),
                    };
                    -pairs.weight(pair) * probability.ln()
                })
                .sum();
            assert!((value("log-loss") - log_loss / total).abs() < 1e-12);
        }
    }

    #[test]
    fn what_comparisons_do_not_have_is_refused() {
        let ties = pairs(&[Outcome::Tie, Outcome::Tie], None);
        let scores = [0.0, 1.0, 2.0, 3.0];
        let judged = Judged::comparisons(&scores, &ties, 0.5);
        let refused = |name: &str| Metric::parse(name).expect("known").evaluate(&judged).expect_err("refused").code();
        assert_eq!(refused("auc"), Code::SingleClass);
        assert_eq!(refused("ndcg@10"), Code::MetricMismatch);
        assert_eq!(refused("pair-accuracy"), Code::NoPairs);
        assert_eq!(
            Metric::LogLoss.evaluate(&Judged::comparisons(&scores, &ties, 0.0)).expect_err("no probability").code(),
            Code::MetricMismatch
        );
    }
}
