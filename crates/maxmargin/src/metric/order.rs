//! Sorts rows by decreasing score quickly: scores become integers that sort the same way.

use rayon::slice::ParallelSliceMut;

/// With fewer rows than this, forking costs more than it saves.
const FORK_FROM: usize = 1 << 15;

/// An integer that is smaller for larger scores; 0 and −0 are equal. The score must be a number.
#[inline]
fn descending(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    // Positive numbers sort like their bits. Negative ones sort in reverse and below them.
    if bits >> 63 == 0 { !(bits | 1 << 63) } else { bits }
}

/// The rows by decreasing score. Rows with equal scores are in line order, or in reverse line order if `later_first`.
pub(super) fn by_decreasing_score(scores: &[f64], later_first: bool) -> Vec<usize> {
    let turn = |row: usize| if later_first { scores.len() - 1 - row } else { row };
    let mut keyed: Vec<(u64, usize)> =
        scores.iter().enumerate().map(|(row, &score)| (descending(score), turn(row))).collect();
    // The row is part of the key, so the order is total, and any sort gives the same result, forked or not.
    if keyed.len() < FORK_FROM {
        keyed.sort_unstable();
    } else {
        keyed.par_sort_unstable();
    }
    keyed.into_iter().map(|(_, row)| turn(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fall_as_scores_rise() {
        let rising = [f64::NEG_INFINITY, -1e300, -1.0, -1e-310, 0.0, 1e-310, 0.5, 1.0, 1e300, f64::INFINITY];
        assert!(rising.windows(2).all(|pair| descending(pair[0]) > descending(pair[1])));
        assert_eq!(descending(0.0), descending(-0.0));
    }
}
