//! The largest of several violations as a loss: with its kink rounded off.
//!
//! Over a width δ, max(0, v_1, v_2, …) becomes
//!
//! ```text
//! max over q   Σ_m (q_m v_m − δ q_m² / 2),   q ≥ 0,   Σ_m q_m ≤ 1        q_m = max(0, v_m − θ) / δ
//! ```
//! with the smallest θ ≥ 0 for which the q add up to at most 1. On the violations with q > 0 the second derivative is the
//! identity over δ, and minus its mean where θ > 0.

/// The value of a loss of several violations, and what its second derivatives need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowPoint {
    pub(super) value: f64,
    /// The sharp hinge, and by how much its dual exceeds that of the rounded one.
    pub(super) rounding: [f64; 2],
    /// θ of the rounded hinge, or the logarithm of the sum of exponentials.
    pub(super) kept: f64,
}

/// The largest violation, rounded over a width. `share` gets every q above zero.
#[inline]
pub(super) fn rounded_largest(
    width: f64,
    others: impl Iterator<Item = usize> + Clone,
    violation: impl Fn(usize) -> f64,
    mut share: impl FnMut(usize, f64),
) -> RowPoint {
    let sharp = others.clone().map(&violation).fold(0.0, f64::max);
    // Σ max(0, v − θ) ≤ δ. The sum is convex and falls with θ, so that Newton's method from the left never overshoots.
    let mut cut = (sharp - width).max(0.0);
    loop {
        let (sum, count) = others
            .clone()
            .map(&violation)
            .filter(|&v| v > cut)
            .fold((0.0, 0.0), |(sum, count), v| (sum + (v - cut), count + 1.0));
        if sum <= width || count == 0.0 {
            break;
        }
        let next = cut + (sum - width) / count;
        if next <= cut {
            break;
        }
        cut = next;
    }
    let mut point = RowPoint { value: 0.0, rounding: [sharp, 0.0], kept: cut };
    if cut == sharp && sharp > 0.0 {
        // The width is below the last digit of the violation, and the hinge is not rounded.
        let first = others.clone().find(|&m| violation(m) == sharp);
        first.into_iter().for_each(|worst| share(worst, 1.0));
        let lost = 0.5 * width;
        return RowPoint { value: sharp - lost, rounding: [sharp, lost], ..point };
    }
    // The shares add up to 1 above θ = 0, also where few digits are left of v − θ, and never to more.
    let sum: f64 = others.clone().map(|m| (violation(m) - cut).max(0.0)).sum();
    let whole = if cut > 0.0 { sum } else { width.max(sum) };
    for m in others {
        let v = violation(m);
        if v > cut {
            let own = (v - cut) / whole;
            share(m, own);
            let lost = 0.5 * width * own * own;
            point.value += own * v - lost;
            point.rounding[1] += lost;
        }
    }
    point
}
