//! [`cut_step`]: the exact passive-aggressive step for a row with a rank: one score, and a cut between each two neighbouring
//! ranks.
//!
//! ```text
//! min  ½‖w − w_t‖² + ½ Σ_k (b_k − b_tk)² + C Σ_k ξ_k   (or ξ_k²)     s.t.  t_k (w·x − b_k) ≥ 1 − ξ_k,  ξ ≥ 0
//! ```
//! t_k is +1 if the rank of the row is above cut k, else −1. With a ≥ 0 the dual variables, w = w_t + m·x with m = Σ t_k a_k,
//! and b_k = b_tk − t_k a_k. With ℓ_k the violations before the step and q = ‖x‖², the conditions of the optimum are
//!
//! ```text
//! a_k = min(C, (ℓ_k − t_k q m)₊)                 hinge
//! a_k = (ℓ_k − t_k q m)₊ / (1 + 1/2C)            squared hinge
//! ```
//! so that m is the one root of m = Σ t_k a_k(m), whose right side is a polygon that does not rise. It is found by Newton's
//! method within a bracket.
//!
//! **Cuts stay in order.** Of two cuts below the rank, the higher one falls by more, but by no more than their distance;
//! of two above it, the lower one rises by more, likewise; and cuts on both sides of the rank move apart. With all cuts in
//! the problem, no constraint for the order is needed. (Crammer and Singer, Pranking with ranking, NIPS 2001, prove the
//! same of their perceptron.)

/// The most steps of Newton's method. It takes a few; the limit is for values at the ends of double precision.
const MOST_STEPS: usize = 200;

/// Replaces the violations of all cuts by their dual variables a, and returns m. The first `above` cuts are below the rank
/// of the row. `cost` is C times the weight of the row.
pub(crate) fn cut_step(violations: &mut [f64], above: usize, q: f64, (cost, squared): (f64, bool)) -> f64 {
    let sign = |k: usize| if k < above { 1.0 } else { -1.0 };
    let (most, soft) = if squared { (f64::INFINITY, 1.0 + 0.5 / cost) } else { (cost, 1.0) };
    let variable = |violation: f64, k: usize, m: f64| ((violation - sign(k) * q * m).max(0.0) / soft).min(most);
    // m less the right side, its slope, and the size of its terms.
    let at = |m: f64| {
        let (mut value, mut slope, mut size) = (m, 1.0, m.abs());
        for (k, &violation) in violations.iter().enumerate() {
            let a = variable(violation, k, m);
            value -= sign(k) * a;
            size += a;
            slope += if a > 0.0 && a < most { q / soft } else { 0.0 };
        }
        (value, slope, size)
    };
    let m = root(at);
    for (k, violation) in violations.iter_mut().enumerate() {
        *violation = variable(*violation, k, m);
    }
    m
}

/// The root of a rising polygon whose slope is at least 1. `at` gives value, slope and the size of the terms.
fn root(at: impl Fn(f64) -> (f64, f64, f64)) -> f64 {
    let (first, ..) = at(0.0);
    if first == 0.0 || !first.is_finite() {
        return 0.0;
    }
    // The far end may be the root itself, and the ends of the bracket are never tried again.
    let far = -1.001 * first;
    let (mut low, mut high) = if first > 0.0 { (far, 0.0) } else { (0.0, far) };
    let mut m = 0.5 * (low + high);
    for _ in 0..MOST_STEPS {
        let (value, slope, size) = at(m);
        if value.abs() <= 0.5 * f64::EPSILON * size {
            break;
        }
        if value > 0.0 {
            high = m;
        } else {
            low = m;
        }
        let newton = m - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if next == m {
            break;
        }
        m = next;
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_step_has_no_duality_gap_and_keeps_cuts_in_order() {
        let mut random = Random::new(41, 3, 0);
        for number in 0..4000 {
            let cuts = 1 + random.below(7) as usize;
            let mut b: Vec<f64> = (0..cuts).map(|_| 2.0 * random.normal()).collect();
            b.sort_by(f64::total_cmp);
            let above = random.below(cuts as u64 + 1) as usize;
            let sign = |k: usize| if k < above { 1.0 } else { -1.0 };
            let score = 3.0 * random.normal();
            let q = if number % 10 == 0 { 0.0 } else { (1.5 * random.normal()).exp() };
            let (cost, squared) = ((2.0 * random.normal()).exp(), number % 2 == 1);
            let before: Vec<f64> = (0..cuts).map(|k| 1.0 - sign(k) * (score - b[k])).collect();
            let mut a = before.clone();
            let m = cut_step(&mut a, above, q, (cost, squared));
            let sum: f64 = a.iter().enumerate().map(|(k, a)| sign(k) * a).sum();
            assert!((m - sum).abs() <= 1e-12 * (1.0 + m.abs()), "{number}");
            let moved: Vec<f64> = b.iter().enumerate().map(|(k, b)| b - sign(k) * a[k]).collect();
            assert!(moved.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12), "{number}: {b:?} {moved:?}");
            let squares: f64 = a.iter().map(|a| a * a).sum();
            let after = |k: usize| (1.0 - sign(k) * (score + q * m - moved[k])).max(0.0);
            let loss = |v: f64| if squared { v * v } else { v };
            let primal = 0.5 * (q * m * m + squares) + cost * (0..cuts).map(|k| loss(after(k))).sum::<f64>();
            let gain: f64 = before.iter().zip(&a).map(|(violation, a)| violation * a).sum();
            let soft = if squared { 0.25 / cost * squares } else { 0.0 };
            let dual = gain - 0.5 * (q * m * m + squares) - soft;
            assert!((primal - dual).abs() <= 1e-10 * (1.0 + primal), "{number}: {primal} {dual}");
            assert!(a.iter().all(|&a| a >= 0.0 && (squared || a <= cost)), "{number}");
        }
    }
}
