//! Metrics over pairs: Kendall's tau-b and the fraction of pairs in the right order, of one list or of listed pairs.
//!
//! Pairs are counted by merge sort (Knight 1966) in O(n log n): with the rows sorted by target and then by score,
//! the discordant pairs are the strict inversions of the scores.

use super::Metric;
use super::lists::List;
use super::rows::RowMetric;
use crate::data::{self, Outcome};
use crate::error::{Code, Error, Result};
use std::cmp::Ordering;

/// Numbers of pairs of a list. They do not overflow for lists of fewer than 2^32 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pairs {
    /// Pairs with different targets and scores in the same order.
    concordant: u64,
    /// Pairs with different targets and scores in the opposite order.
    discordant: u64,
    /// Pairs with different targets and equal scores.
    tied_scores: u64,
    /// Pairs with equal targets and different scores.
    tied_targets: u64,
}

impl Pairs {
    fn count(list: List<'_>) -> Pairs {
        let mut rows: Vec<(f64, f64)> = list.grades.iter().copied().zip(list.scores.iter().copied()).collect();
        rows.sort_unstable_by(|a, b| compare(a.0, b.0).then(compare(a.1, b.1)));
        let equal_targets = tied(&rows, |a, b| a.0 == b.0);
        let equal_both = tied(&rows, |a, b| a == b);
        let mut scores: Vec<f64> = rows.iter().map(|row| row.1).collect();
        let discordant = sort_counting_inversions(&mut scores);
        let equal_scores = tied(&scores, |a, b| a == b);
        let tied_scores = equal_scores - equal_both;
        let all = choose_two(list.len());
        Pairs {
            concordant: all - equal_targets - tied_scores - discordant,
            discordant,
            tied_scores,
            tied_targets: equal_targets - equal_both,
        }
    }

    fn with_different_targets(&self) -> u64 {
        self.concordant + self.discordant + self.tied_scores
    }
}

/// Tau-b: concordant minus discordant pairs, divided by the geometric mean of the pairs untied in targets and in
/// scores. `None` if all targets are equal, 0 if all scores are equal.
pub(super) fn kendall_tau(list: List<'_>) -> Option<f64> {
    let pairs = Pairs::count(list);
    let by_target = pairs.with_different_targets();
    let by_score = pairs.concordant + pairs.discordant + pairs.tied_targets;
    if by_target == 0 {
        return None;
    }
    if by_score == 0 {
        return Some(0.0);
    }
    let difference = pairs.concordant as f64 - pairs.discordant as f64;
    Some((difference / (by_target as f64).sqrt() / (by_score as f64).sqrt()).clamp(-1.0, 1.0))
}

/// Among the pairs with different targets, the fraction in the right order; ties count half. `None` without pairs.
pub(super) fn pair_accuracy(list: List<'_>) -> Option<f64> {
    let pairs = Pairs::count(list);
    let all = pairs.with_different_targets();
    (all > 0).then(|| (pairs.concordant as f64 + 0.5 * pairs.tied_scores as f64) / all as f64)
}

/// Explicit pairs, each in the right order, in the wrong order, or with equal scores. Pairs that are ties do not count.
pub(super) struct ListedPairs<'a> {
    pairs: &'a data::Pairs,
    right: Vec<f64>,
}

impl<'a> ListedPairs<'a> {
    pub(super) fn new(metric: &Metric, scores: &[f64], pairs: &'a data::Pairs) -> Result<ListedPairs<'a>> {
        let says_nothing = |pair: usize| pairs.weight(pair) == 0.0 || pairs.outcome(pair) == Outcome::Tie;
        if (0..pairs.len()).all(says_nothing) {
            return Err(Error::new(
                Code::NoPairs,
                format!("{metric} cannot be computed: no decided pair has a weight above zero"),
            )
            .help("give at least one pair with a weight above zero in which one row is better"));
        }
        let right = (0..pairs.len())
            .map(|pair| {
                let (better, worse) = pairs.ordered(pair);
                match compare(scores[better], scores[worse]) {
                    Ordering::Greater => 1.0,
                    Ordering::Equal => 0.5,
                    Ordering::Less => 0.0,
                }
            })
            .collect();
        Ok(ListedPairs { pairs, right })
    }
}

impl RowMetric for ListedPairs<'_> {
    /// Whole groups are drawn, because the answers of one person are correlated.
    fn units(&self) -> Option<usize> {
        Some(self.pairs.groups().map_or(self.pairs.len(), |(_, names)| names.len()))
    }

    fn counted(&self) -> Option<usize> {
        Some(self.pairs.len() - self.pairs.ties())
    }

    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let groups = self.pairs.groups().map(|(codes, _)| codes);
        let (mut right, mut total) = (0.0, 0.0);
        for (pair, &share) in self.right.iter().enumerate() {
            let unit = groups.map_or(pair, |codes| codes[pair] as usize);
            if self.pairs.outcome(pair) == Outcome::Tie {
                continue;
            }
            let weight = self.pairs.weight(pair) * times.map_or(1.0, |times| f64::from(times[unit]));
            right += weight * share;
            total += weight;
        }
        (total > 0.0).then(|| right / total)
    }
}

fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn choose_two(count: usize) -> u64 {
    let count = count as u64;
    count * count.saturating_sub(1) / 2
}

/// The number of tied pairs. Tied rows must be next to each other.
fn tied<T>(sorted: &[T], same: impl FnMut(&T, &T) -> bool) -> u64 {
    sorted.chunk_by(same).map(|run| choose_two(run.len())).sum()
}

/// Sorts the values, and counts the pairs that were in strictly decreasing order.
fn sort_counting_inversions(values: &mut Vec<f64>) -> u64 {
    let mut inversions = 0;
    let mut merged = vec![0.0; values.len()];
    let mut width = 1;
    while width < values.len() {
        for start in (0..values.len()).step_by(2 * width) {
            let middle = (start + width).min(values.len());
            let end = (start + 2 * width).min(values.len());
            let (mut left, mut right) = (start, middle);
            for slot in &mut merged[start..end] {
                if left < middle && (right == end || values[left] <= values[right]) {
                    *slot = values[left];
                    left += 1;
                } else {
                    *slot = values[right];
                    inversions += (middle - left) as u64;
                    right += 1;
                }
            }
        }
        std::mem::swap(values, &mut merged);
        width *= 2;
    }
    inversions
}

#[cfg(test)]
mod tests {
    use super::super::{Judged, Metric};
    use crate::data::{Outcome, Pairs};
    use crate::error::Code;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn listed_pairs_are_counted_by_definition(
            scores in prop::collection::vec(-2..3i32, 6),
            list in prop::collection::vec((0..6usize, 1..6usize, 0..4u8, any::<bool>()), 1..30),
        ) {
            let scores: Vec<f64> = scores.into_iter().map(f64::from).collect();
            let (mut left, mut right, mut outcomes, mut weights) = (vec![], vec![], vec![], vec![]);
            let (mut good, mut total) = (0.0, 0.0);
            for (a, step, weight, left_is_better) in list {
                let b = (a + step) % 6;
                let weight = f64::from(weight);
                left.push(a as u32);
                right.push(b as u32);
                outcomes.push(if left_is_better { Outcome::Left } else { Outcome::Right });
                weights.push(weight);
                let (better, worse) = if left_is_better { (scores[a], scores[b]) } else { (scores[b], scores[a]) };
                total += weight;
                if better > worse {
                    good += weight;
                } else if better == worse {
                    good += weight / 2.0;
                }
            }
            let count = left.len();
            let pairs = Pairs::new(left, right).expect("valid").with_outcomes(outcomes).expect("valid");
            let pairs = pairs.with_weights(weights).expect("valid");
            let judged = Judged::pairs(&scores, &pairs);
            match Metric::PairAccuracy.evaluate(&judged) {
                Ok(evaluation) => {
                    prop_assert!((evaluation.value - good / total).abs() < 1e-12);
                    prop_assert_eq!(evaluation.counted, count);
                }
                Err(error) => prop_assert!(total == 0.0 && error.code() == Code::NoPairs, "{}", error),
            }
        }
    }

    #[test]
    fn groups_of_pairs_are_drawn_whole() {
        // Two judges: the scores always agree with one and never with the other. A resample holds none, half or all of
        // the good pairs.
        let scores = [1.0, 0.0];
        let better: Vec<u32> = (0..200).map(|pair| u32::from(pair >= 100)).collect();
        let worse: Vec<u32> = better.iter().map(|row| 1 - row).collect();
        let plain = Pairs::new(better, worse).expect("valid");
        let judges: Vec<u32> = (0..200).map(|pair| u32::from(pair >= 100)).collect();
        let grouped = plain.clone().with_groups(judges, ["ann", "ben"].into_iter().collect()).expect("valid");
        let interval = |pairs: &Pairs| {
            let drawn = Metric::PairAccuracy.bootstrap(&Judged::pairs(&scores, pairs), 400, 3);
            drawn.expect("defined").expect("enough to draw from")
        };
        let (by_pair, by_judge) = (interval(&plain), interval(&grouped));
        assert_eq!((by_judge.low, by_judge.high), (0.0, 1.0));
        assert!((0.35..0.65).contains(&by_pair.low) && (0.35..0.65).contains(&by_pair.high), "{by_pair:?}");
    }

    #[test]
    fn metrics_over_targets_do_not_take_pairs() {
        let pairs = Pairs::new(vec![0], vec![1]).expect("valid");
        for name in ["rmse", "auc", "accuracy"] {
            let error = Metric::parse(name).expect("known").evaluate(&Judged::pairs(&[1.0, 0.0], &pairs));
            assert_eq!(error.expect_err("no targets").code(), Code::MetricMismatch, "{name}");
        }
    }
}
