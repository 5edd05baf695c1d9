//! [`Steps`]: the probability as a function of the score that never falls.
//!
//! ```text
//! min Σ_i u_i (p_i − y_i)²,   s_i ≤ s_j ⇒ p_i ≤ p_j,   y_i = 1 for a positive row, 0 for a negative one
//! ```
//! u_i is the weight of row i. Rows with equal scores are one point. Neighbouring blocks are pooled into their weighted
//! mean as long as one is not below the next (pool adjacent violators), which gives the optimum in O(n) after sorting.
//! Between the last score of a block and the first of the next the probability is a line, and beyond all scores it is
//! that of the end. Probabilities keep a distance of 1 / (N + 2) from 0 and 1, with the total weight N, because N rows
//! cannot show more than that.
//!
//! Reference: Zadrozny & Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD
//! (2002).

use super::Sample;
use serde::{Deserialize, Serialize};

/// Points of the function, joined by lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Scores, ascending.
    pub scores: Vec<f64>,
    /// The probability at each of them, never falling.
    pub probabilities: Vec<f64>,
}

/// Rows with one probability.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: f64,
    last: f64,
    weight: f64,
    /// The weight of the positive ones.
    positive: f64,
}

impl Block {
    fn share(&self) -> f64 {
        self.positive / self.weight
    }
}

impl Steps {
    /// The probability at a score.
    pub fn probability(&self, score: f64) -> f64 {
        let above = self.scores.partition_point(|&at| at <= score);
        match above.checked_sub(1) {
            None => self.probabilities[0],
            Some(last) if above == self.scores.len() => self.probabilities[last],
            Some(below) => {
                let (from, to) = (self.scores[below], self.scores[above]);
                let part = if to - from > 0.0 { (score - from) / (to - from) } else { 0.0 };
                let (low, high) = (self.probabilities[below], self.probabilities[above]);
                // Written so that rounding never makes it fall.
                (low + (high - low) * part).min(high)
            }
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        !self.scores.is_empty()
            && self.scores.len() == self.probabilities.len()
            && self.scores.iter().all(|score| score.is_finite())
            && self.scores.is_sorted()
            && self.probabilities.is_sorted()
            && self.probabilities.iter().all(|share| (0.0..=1.0).contains(share))
    }

    /// The function with the smallest squared error.
    pub(crate) fn fit(sample: &Sample) -> Steps {
        let [negatives, positives] = sample.totals();
        let least = 1.0 / (negatives + positives + 2.0);
        let mut found = Steps { scores: Vec::new(), probabilities: Vec::new() };
        for block in pooled(sample) {
            let share = block.share().clamp(least, 1.0 - least);
            for score in [block.first, block.last] {
                if found.scores.last() != Some(&score) {
                    found.scores.push(score);
                    found.probabilities.push(share);
                }
            }
        }
        if found.scores.is_empty() {
            found = Steps { scores: vec![0.0], probabilities: vec![0.5] };
        }
        found
    }
}

/// The blocks of equal probability, ascending.
fn pooled(sample: &Sample) -> Vec<Block> {
    let mut order: Vec<usize> = (0..sample.numbers.len()).collect();
    order.sort_by(|&a, &b| sample.numbers[a].total_cmp(&sample.numbers[b]));
    let mut blocks: Vec<Block> = Vec::new();
    for row in order {
        // Adding zero makes −0 the same score as 0.
        let (number, weight) = (sample.numbers[row] + 0.0, sample.weights[row]);
        let positive = if sample.positive[row] { weight } else { 0.0 };
        match blocks.last_mut().filter(|last| last.first == number) {
            Some(last) => {
                last.weight += weight;
                last.positive += positive;
            }
            None => blocks.push(Block { first: number, last: number, weight, positive }),
        }
    }
    let mut found: Vec<Block> = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        while let Some(before) = found.pop_if(|before| before.share() >= block.share()) {
            block = Block {
                first: before.first,
                last: block.last,
                weight: before.weight + block.weight,
                positive: before.positive + block.positive,
            };
        }
        found.push(block);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(rows: &[(i32, bool, i32)]) -> Sample {
        let mut sample = Sample::default();
        rows.iter().for_each(|row| sample.push(row.0.into(), row.1, row.2.into()));
        sample
    }

    /// max over starts up to the score of the min over ends from it of the mean between the two.
    fn by_definition(rows: &[(i32, bool, i32)], at: i32) -> f64 {
        let mut scores: Vec<i32> = rows.iter().map(|row| row.0).collect();
        scores.sort_unstable();
        let mean = |from: i32, to: i32| {
            let inside = || rows.iter().filter(move |row| (from..=to).contains(&row.0));
            let weight: i32 = inside().map(|row| row.2).sum();
            let positive: i32 = inside().filter(|row| row.1).map(|row| row.2).sum();
            f64::from(positive) / f64::from(weight)
        };
        let ends =
            |from: i32| scores.iter().filter(|&&to| to >= at).map(|&to| mean(from, to)).fold(f64::INFINITY, f64::min);
        scores.iter().filter(|&&from| from <= at).map(|&from| ends(from)).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pooling_gives_the_minimax_means(
            rows in prop::collection::vec((-6..6i32, any::<bool>(), 1..4i32), 1..25),
        ) {
            let sample = sample(&rows);
            let found = Steps::fit(&sample);
            prop_assert!(found.is_valid());
            let total: i32 = rows.iter().map(|row| row.2).sum();
            let least = 1.0 / (f64::from(total) + 2.0);
            for row in &rows {
                let twin = by_definition(&rows, row.0).clamp(least, 1.0 - least);
                let value = found.probability(row.0.into());
                prop_assert!((value - twin).abs() < 1e-12, "{value} {twin} at {} of {found:?}", row.0);
            }
            let mut last = 0.0;
            for step in -80..=80 {
                let value = found.probability(f64::from(step) / 10.0);
                prop_assert!(value >= last);
                last = value;
            }
        }
    }

    #[test]
    fn between_blocks_is_a_line() {
        let found = Steps::fit(&sample(&[(0, false, 1), (1, true, 1), (1, false, 1), (3, true, 1)]));
        assert_eq!(found.scores, [0.0, 1.0, 3.0]);
        assert!((found.probability(1.0) - 0.5).abs() < 1e-15);
        let end = 1.0 - 1.0 / 6.0;
        assert!((found.probability(2.0) - (0.5 + end) / 2.0).abs() < 1e-15);
        assert_eq!((found.probability(-5.0), found.probability(9.0)), (1.0 / 6.0, end));
        assert_eq!(Steps::fit(&Sample::default()).probability(3.0), 0.5);
    }
}
