//! [`best_threshold`]: how far apart two scores must be for one item to count as better than the other.
//!
//! With z = r(right) − r(left), the prediction is `right` if z > τ, `left` if z < −τ, and `tie` otherwise. The scores
//! are given, for example by a ranker that never saw a tie or by a rating system. Only τ is chosen:
//!
//! ```text
//! min over τ ≥ 0   Σ_p weight_p · [answer_p(τ) ≠ outcome_p] / Σ_p weight_p
//! ```
//!
//! The sum changes only where τ passes some |z_p|. Sorting the |z_p| and trying them in order finds the exact minimum
//! in O(n log n). If several thresholds have the same error, the lowest range of them is used, and within it
//!
//! - 0, if no higher threshold is better: only z = 0 is then a tie;
//! - the midpoint between the largest |z| that becomes a tie and the next one;
//! - the largest |z| itself, if everything becomes a tie.

use crate::data::Outcome;
use crate::data::outcome_of;

/// A threshold for ties, and its error on the pairs that it was chosen on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// τ, zero or more and finite.
    pub value: f64,
    /// The weighted zero-one error on the given pairs, from 0 to 1; 0 if their total weight is 0.
    pub error: f64,
}

/// The threshold on |r(right) − r(left)| with the lowest zero-one error on the given pairs. Two items are a tie if they
/// differ by no more than the threshold.
///
/// `differences` holds r(right) − r(left) of each pair. Without weights, every pair has weight 1. A NaN difference is a
/// tie under every threshold, an infinite difference under none.
///
/// ```
/// use maxmargin::data::Outcome::{Left, Right, Tie};
/// use maxmargin::rating::best_threshold;
///
/// let found = best_threshold(&[-3.0, 0.5, 1.0, 2.0], &[Left, Tie, Tie, Right], None);
/// assert_eq!((found.value, found.error), (1.5, 0.0));
/// ```
///
/// # Panics
///
/// If the slices differ in length.
pub fn best_threshold(differences: &[f64], outcomes: &[Outcome], weights: Option<&[f64]>) -> Threshold {
    debug_assert_eq!(differences.len(), outcomes.len(), "one outcome a difference");
    debug_assert!(weights.is_none_or(|weights| weights.len() == outcomes.len()), "one weight a difference");
    let weight = |pair: usize| weights.map_or(1.0, |weights| weights[pair]);
    // How the error changes when a pair is predicted as a tie instead of by its sign.
    let added = |pair: usize| {
        let decided = Outcome::of_sign(if differences[pair] > 0.0 { 1 } else { -1 });
        if outcomes[pair] == Outcome::Tie {
            -weight(pair)
        } else if outcomes[pair] == decided {
            weight(pair)
        } else {
            0.0
        }
    };
    // A pair of weight 0 must not affect the midpoint either.
    let counts = |pair: &usize| differences[*pair].is_finite() && weight(*pair) > 0.0;
    let mut order: Vec<usize> = (0..differences.len()).filter(counts).collect();
    let size = |pair: usize| differences[pair].abs();
    // Pairs of equal size are sorted by number, so that the sums do not depend on the sort.
    order.sort_unstable_by(|&a, &b| size(a).total_cmp(&size(b)).then(a.cmp(&b)));
    // Differences of 0 are ties under every threshold.
    let mut next = order.partition_point(|&pair| size(pair) == 0.0);
    let (mut value, mut least, mut error) = (0.0, 0.0, 0.0);
    while next < order.len() {
        let reached = size(order[next]);
        while next < order.len() && size(order[next]) == reached {
            error += added(order[next]);
            next += 1;
        }
        if error < least {
            least = error;
            value = order.get(next).map_or(reached, |&pair| between(reached, size(pair)));
        }
    }
    let (mut wrong, mut total) = (0.0, 0.0);
    for (pair, (&difference, &outcome)) in differences.iter().zip(outcomes).enumerate() {
        total += weight(pair);
        if outcome_of(difference, value) != outcome {
            wrong += weight(pair);
        }
    }
    Threshold { value, error: if total > 0.0 { wrong / total } else { 0.0 } }
}

/// The midpoint of two sizes, always below the larger one despite rounding.
fn between(low: f64, high: f64) -> f64 {
    let middle = low + (high - low) / 2.0;
    if middle < high { middle } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Left, Right, Tie};
    use proptest::prelude::*;

    fn wrong(differences: &[f64], outcomes: &[Outcome], weights: &[f64], threshold: f64) -> f64 {
        let each = differences.iter().zip(outcomes).zip(weights);
        each.filter(|((difference, outcome), _)| outcome_of(**difference, threshold) != **outcome)
            .map(|(_, weight)| weight)
            .sum()
    }

    #[test]
    fn a_pair_that_weighs_nothing_is_as_good_as_none() {
        let found = best_threshold(&[1.0, 2.0, 4.0], &[Tie, Tie, Right], Some(&[1.0, 0.0, 1.0]));
        assert_eq!(found, best_threshold(&[1.0, 4.0], &[Tie, Right], None));
    }

    #[test]
    fn ties_that_lie_together_are_cut_off_halfway() {
        let found = best_threshold(&[-5.0, -1.0, 0.0, 2.0, 4.0], &[Left, Tie, Tie, Tie, Right], None);
        assert_eq!(found, Threshold { value: 3.0, error: 0.0 });
    }

    #[test]
    fn without_ties_the_threshold_is_zero() {
        let found = best_threshold(&[-5.0, 1.0, 2.0], &[Left, Right, Left], None);
        assert_eq!(found, Threshold { value: 0.0, error: 1.0 / 3.0 });
        assert_eq!(best_threshold(&[], &[], None), Threshold { value: 0.0, error: 0.0 });
    }

    #[test]
    fn where_all_is_a_tie_the_largest_difference_is_one() {
        let found = best_threshold(&[-5.0, 1.0], &[Tie, Tie], None);
        assert_eq!(found, Threshold { value: 5.0, error: 0.0 });
    }

    #[test]
    fn the_lowest_of_equally_good_thresholds_is_taken() {
        // 0 and 2.5 make one error each.
        let found = best_threshold(&[1.0, 2.0, 3.0], &[Right, Tie, Right], None);
        assert_eq!(found, Threshold { value: 0.0, error: 1.0 / 3.0 });
        // A tie of weight 2 outweighs the other error.
        let found = best_threshold(&[1.0, 2.0, 3.0], &[Right, Tie, Right], Some(&[1.0, 2.0, 1.0]));
        assert_eq!(found, Threshold { value: 2.5, error: 0.25 });
    }

    #[test]
    fn a_wrong_side_costs_as_much_as_a_tie() {
        let found = best_threshold(&[1.0, -2.0, 9.0], &[Left, Tie, Right], None);
        assert_eq!(found, Threshold { value: 5.5, error: 1.0 / 3.0 });
    }

    #[test]
    fn neighbours_without_a_number_between_them_are_told_apart() {
        let (low, high) = (1.0, 1.0 + f64::EPSILON);
        let found = best_threshold(&[low, high], &[Tie, Right], None);
        assert_eq!(found, Threshold { value: low, error: 0.0 });
        let found = best_threshold(&[f64::MAX / 1.5, f64::MAX], &[Tie, Right], None);
        assert!(found.value.is_finite() && found.error == 0.0);
    }

    #[test]
    fn what_is_not_a_number_is_a_tie_and_infinity_never_is() {
        let found = best_threshold(&[f64::NAN, f64::INFINITY, 1.0], &[Tie, Right, Tie], None);
        assert_eq!(found, Threshold { value: 1.0, error: 0.0 });
    }

    proptest! {
        #[test]
        fn no_other_threshold_is_better(
            pairs in prop::collection::vec((-6..=6i32, 0..3usize, 0..4u8), 0..30),
            unit in prop::sample::select(vec![1.0, 0.1, 1e-300, 1e300]),
        ) {
            let differences: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0) * unit).collect();
            let outcomes: Vec<Outcome> = pairs.iter().map(|pair| Outcome::ALL[pair.1]).collect();
            let weights: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.2)).collect();
            let found = best_threshold(&differences, &outcomes, Some(&weights));
            // All thresholds that can give different results: 0, each size, and one between any two.
            let mut sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).chain([0.0]).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            let middles: Vec<f64> = sizes.windows(2).map(|two| two[0] + (two[1] - two[0]) / 2.0).collect();
            let least = sizes.iter().chain(&middles)
                .map(|&threshold| wrong(&differences, &outcomes, &weights, threshold))
                .fold(f64::INFINITY, f64::min);
            prop_assert_eq!(wrong(&differences, &outcomes, &weights, found.value), least);
            let total: f64 = weights.iter().sum();
            prop_assert_eq!(found.error, if total > 0.0 { least / total } else { 0.0 });
            // No threshold below the start of its range is as good. The range starts at the size of a pair with
            // positive weight.
            let weighing = differences.iter().zip(&weights).filter(|pair| *pair.1 > 0.0).map(|pair| pair.0.abs());
            let start = weighing.filter(|&size| size <= found.value).fold(0.0, f64::max);
            for &below in sizes.iter().chain(&middles).filter(|&&threshold| threshold < start) {
                prop_assert!(wrong(&differences, &outcomes, &weights, below) > least);
            }
        }

        #[test]
        fn swapping_the_sides_changes_nothing(
            pairs in prop::collection::vec((-6..=6i32, 0..3usize), 0..30),
        ) {
            let differences: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0)).collect();
            let outcomes: Vec<Outcome> = pairs.iter().map(|pair| Outcome::ALL[pair.1]).collect();
            let swapped: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            let answers: Vec<Outcome> = outcomes.iter().map(|outcome| Outcome::of_sign(-outcome.sign())).collect();
            prop_assert_eq!(best_threshold(&differences, &outcomes, None), best_threshold(&swapped, &answers, None));
        }
    }
}
