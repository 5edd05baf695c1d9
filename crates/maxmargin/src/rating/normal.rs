//! The normal distribution, accurate in its tails: density, Mills' ratio, and quantiles.
//!
//! Mills' ratio M(x) = Q(x)/φ(x), with Q(x) = 1 − Φ(x), has moderate size even where Q and φ underflow. For x ≥ 1.5 it
//! is Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + …)))). For smaller x, Q(x) = ½ − φ(x)·(x + x³/3 +
//! x⁵/(3·5) + …), a sum without cancellation. For negative x, Q(x) = 1 − Q(−x).

use std::f64::consts::TAU;

/// The continued fraction is used from this value on.
const FRACTION_FROM: f64 = 1.5;
/// Number of its terms. The remainder is of the order exp(−2x√(2·terms)).
const TERMS: u32 = 100;

/// φ(x).
pub(super) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / TAU.sqrt()
}

/// Mills' ratio (1 − Φ(x))/φ(x); infinite if x is far below zero.
pub(super) fn mills(x: f64) -> f64 {
    if x >= FRACTION_FROM {
        let tail = (1..=TERMS).rev().fold(x, |tail, term| x + f64::from(term) / tail);
        1.0 / tail
    } else {
        upper_tail(x) / density(x)
    }
}

/// 1 − Φ(x).
pub(super) fn upper_tail(x: f64) -> f64 {
    if x >= FRACTION_FROM {
        density(x) * mills(x)
    } else if x >= 0.0 {
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term > sum * f64::EPSILON * 0.25 {
            odd += 2.0;
            term *= x * x / odd;
            sum += term;
        }
        0.5 - density(x) * sum
    } else {
        1.0 - upper_tail(-x)
    }
}

/// The x ≥ 0 with Q(x) = `tail`, for a tail above 1e-300 and at most ½.
pub(crate) fn quantile_of_upper_tail(tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    // Bisection ends at neighbouring doubles, because Q decreases everywhere.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if upper_tail(middle) > tail { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_have_their_known_values() {
        // Accurate to the last digits of a double.
        for (x, tail) in [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (1.96, 0.024_997_895_148_220_435),
            (3.0, 1.349_898_031_630_094_6e-3),
            (6.0, 9.865_876_450_376_98e-10),
            (10.0, 7.619_853_024_160_527e-24),
        ] {
            assert!((upper_tail(x) / tail - 1.0).abs() < 1e-13, "{x}: {}", upper_tail(x));
            assert!((upper_tail(-x) - (1.0 - tail)).abs() < 1e-15);
        }
    }

    #[test]
    fn both_ways_to_the_ratio_meet() {
        let below = mills(FRACTION_FROM - 1e-12);
        assert!((below / mills(FRACTION_FROM) - 1.0).abs() < 1e-11);
        // Its slope is x·M(x) − 1.
        for x in [-3.0, -0.5, 0.7, 1.4, 2.0, 8.0] {
            let slope = (mills(x + 1e-5) - mills(x - 1e-5)) / 2e-5;
            assert!((slope - (x * mills(x) - 1.0)).abs() < 1e-6 * mills(x).max(1.0), "{x}");
        }
        assert!((mills(1e8) * 1e8 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn quantiles_undo_tails() {
        assert!((quantile_of_upper_tail(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!(quantile_of_upper_tail(0.5).abs() < 1e-15);
        for tail in [0.3, 1e-6, 1e-100] {
            assert!((upper_tail(quantile_of_upper_tail(tail)) / tail - 1.0).abs() < 1e-9);
        }
    }
}
