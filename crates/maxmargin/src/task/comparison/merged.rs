//! [`Merged`]: equal pairs as one.

use crate::data::{Outcome, Pairs};
use crate::task::WeightAs;
use std::sync::Arc;

/// Pairs no two of which are equal, in the order in which they were first given.
pub(super) struct Merged {
    pub(super) pairs: Pairs,
    /// How many of the given pairs with a weight above zero each stands for.
    pub(super) counts: Arc<[u32]>,
}

impl Merged {
    /// Merges decided pairs with the same better and worse row, and ties of the same two rows. If weights are margins,
    /// these must be equal too. Returns none if no two pairs are equal.
    pub(super) fn of(pairs: &Pairs, weight_as: WeightAs) -> Option<Merged> {
        let number = merged_numbers(pairs, weight_as);
        let merged = number.iter().max().map_or(0, |last| last + 1);
        if merged == pairs.len() {
            return None;
        }
        // Numbers rise where a pair is the first of its kind.
        let mut kept: Vec<usize> = Vec::with_capacity(merged);
        for (pair, &at) in number.iter().enumerate() {
            if at == kept.len() {
                kept.push(pair);
            }
        }
        let mut counts = vec![0u32; kept.len()];
        let mut weights = vec![0.0; kept.len()];
        for (pair, &at) in number.iter().enumerate() {
            let weight = pairs.weight(pair);
            counts[at] += u32::from(weight > 0.0);
            match weight_as {
                WeightAs::Slack | WeightAs::Copies => weights[at] += weight,
                WeightAs::Margin => weights[at] = weight,
            }
        }
        // A sum may overflow. Then the pairs stay apart, and the total weight is refused.
        let pairs = pairs.select(&kept).with_weights(weights).ok()?;
        Some(Merged { pairs, counts: counts.into() })
    }
}

/// The number of the merged pair that stands for each pair.
pub(crate) fn merged_numbers(pairs: &Pairs, weight_as: WeightAs) -> Vec<usize> {
    let first = first_equals(pairs, weight_as == WeightAs::Margin);
    let mut place = vec![0; pairs.len()];
    let kept = (0..pairs.len()).filter(|&pair| first[pair] as usize == pair);
    kept.enumerate().for_each(|(at, pair)| place[pair] = at);
    first.into_iter().map(|first| place[first as usize]).collect()
}

/// For each pair, the first one that is equal to it.
fn first_equals(pairs: &Pairs, by_weight: bool) -> Vec<u32> {
    let sides = |pair: usize| {
        let (row, against) = pairs.ordered(pair);
        match pairs.outcome(pair) {
            Outcome::Tie => (row.min(against), row.max(against)),
            Outcome::Left | Outcome::Right => (row, against),
        }
    };
    let rest = |pair: usize| {
        let weight = if by_weight { pairs.weight(pair).to_bits() } else { 0 };
        (sides(pair).1, pairs.outcome(pair) == Outcome::Tie, weight)
    };
    // Pairs sorted by their first row, then by the rest.
    let mut ends = vec![0usize; pairs.rows() + 1];
    (0..pairs.len()).for_each(|pair| ends[sides(pair).0 + 1] += 1);
    for row in 1..ends.len() {
        ends[row] += ends[row - 1];
    }
    let mut order = vec![0u32; pairs.len()];
    for pair in 0..pairs.len() {
        let end = &mut ends[sides(pair).0];
        order[*end] = pair as u32;
        *end += 1;
    }
    let mut first = vec![0u32; pairs.len()];
    let mut start = 0;
    for &end in &ends[..pairs.rows()] {
        let of_row = &mut order[start..end];
        of_row.sort_unstable_by_key(|&pair| (rest(pair as usize), pair));
        for equal in of_row.chunk_by(|&a, &b| rest(a as usize) == rest(b as usize)) {
            equal.iter().for_each(|&pair| first[pair as usize] = equal[0]);
        }
        start = end;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_pairs_become_one_with_the_sum_of_their_weights(
            list in prop::collection::vec((0..5u32, 1..5u32, 0..3usize, 0..3u8), 1..60),
            way in prop::sample::select(WeightAs::ALL.to_vec()),
        ) {
            let (left, right): (Vec<u32>, Vec<u32>) =
                list.iter().map(|&(row, step, _, _)| (row, (row + step) % 5)).unzip();
            let outcomes: Vec<Outcome> = list.iter().map(|pair| Outcome::ALL[pair.2]).collect();
            let weights: Vec<f64> = list.iter().map(|pair| f64::from(pair.3)).collect();
            let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes));
            let pairs = pairs.and_then(|pairs| pairs.with_weights(weights)).expect("valid");
            let key = |pairs: &Pairs, pair: usize| {
                let (row, against) = pairs.ordered(pair);
                let tie = pairs.outcome(pair) == Outcome::Tie;
                let (row, against) = if tie { (row.min(against), row.max(against)) } else { (row, against) };
                (row, against, tie, if way == WeightAs::Margin { pairs.weight(pair) as u32 } else { 0 })
            };
            // Brute force: every pair looks for an equal one before it.
            let mut expected: Vec<(_, f64, u32)> = Vec::new();
            for pair in 0..pairs.len() {
                let (key, weight) = (key(&pairs, pair), pairs.weight(pair));
                let counts = u32::from(weight > 0.0);
                match expected.iter_mut().find(|(other, _, _)| *other == key) {
                    Some((_, sum, count)) => {
                        *sum = if way == WeightAs::Margin { weight } else { *sum + weight };
                        *count += counts;
                    }
                    None => expected.push((key, weight, counts)),
                }
            }
            match Merged::of(&pairs, way) {
                None => prop_assert_eq!(expected.len(), pairs.len()),
                Some(Merged { pairs: merged, counts }) => {
                    let found: Vec<_> = (0..merged.len())
                        .map(|pair| (key(&merged, pair), merged.weight(pair), counts[pair]))
                        .collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
