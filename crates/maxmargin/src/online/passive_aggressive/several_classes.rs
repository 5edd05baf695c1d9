//! [`class_step`]: the exact passive-aggressive step for several classes, each with its own weights.
//!
//! ```text
//! min  ½‖W − W_t‖² + C·ξ     s.t.  ξ ≥ 1 + w_k·x − w_y·x for every k ≠ y,  ξ ≥ 0
//! ```
//! (Crammer and Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2001, as a step
//! from W_t.) With s the scores and q = ‖x‖², w_y += τ·x and w_k −= α_k·x with τ = Σ α_k. The conditions of the optimum
//! are α_k = (s_k − θ)₊/q and, as long as τ ≤ C, θ = s_y + qτ − 1: a class that moves is then exactly 1 below y. So θ is
//! the root of Σ_k (s_k − θ)₊ = θ + 1 − s_y, or of Σ_k (s_k − θ)₊ = qC if that τ is above C. PA-II has
//! θ = s_y − 1 + τ(q + 1/2C). Both sums are convex and fall with θ, so Newton's method from the left is monotone and ends
//! after finitely many steps, without a sort. Cost: O(classes · entries of the row).

use crate::wish::Variant;

/// The most steps of Newton's method. It takes two to five; the limit is for values at the ends of double precision.
const MOST_STEPS: usize = 100;

/// Replaces the scores by the multiples of x that are added to the weights of the classes. `q` is ‖x‖², `c` is C times the
/// weight of the row. Returns whether any weight changes. A row of zeros changes nothing.
pub(crate) fn class_step(scores: &mut [f64], own: usize, q: f64, c: f64, variant: Variant) -> bool {
    let mine = scores[own];
    scores[own] = f64::NEG_INFINITY;
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let violation = 1.0 + top - mine;
    if violation.is_nan() || violation <= 0.0 || q == 0.0 {
        scores.fill(0.0);
        return false;
    }
    let (most, soft) = match variant {
        Variant::Pa => (f64::INFINITY, 0.0),
        Variant::PaI => (c, 0.0),
        Variant::PaIi => (f64::INFINITY, 0.5 / c),
    };
    // Σ (s_k − θ)₊ = slope · (θ + 1 − s_y), which is q·τ.
    let slope = q / (q + soft);
    let mut theta = root(scores, top, |theta| (slope * (theta + 1.0 - mine), slope));
    if (theta + 1.0 - mine) * slope > q * most {
        theta = root(scores, top, |_| (q * most, 0.0));
    }
    let mut total = 0.0;
    for score in scores.iter_mut() {
        let alpha = ((*score - theta) / q).max(0.0);
        total += alpha;
        *score = -alpha;
    }
    scores[own] = total;
    true
}

/// The root of Σ (s − θ)₊ = right(θ), where `right` gives a value and a slope, does not fall, and is above zero at `top`.
fn root(scores: &[f64], top: f64, right: impl Fn(f64) -> (f64, f64)) -> f64 {
    // One step from the top lands on the left of the root, or on it.
    let (value, slope) = right(top);
    let mut theta = top - value / (1.0 + slope);
    for _ in 0..MOST_STEPS {
        let (mut sum, mut count) = (0.0, 0.0);
        for score in scores {
            if *score > theta {
                sum += score - theta;
                count += 1.0;
            }
        }
        let (value, slope) = right(theta);
        let next = theta + (sum - value) / (count + slope);
        if next <= theta || next.is_nan() {
            break;
        }
        theta = next;
    }
    theta
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The value of the primal after w_k += steps_k · x.
    fn primal(scores: &[f64], steps: &[f64], own: usize, (q, c): (f64, f64), variant: Variant) -> f64 {
        let moved: Vec<f64> = scores.iter().zip(steps).map(|(score, step)| score + q * step).collect();
        let others = (0..scores.len()).filter(|&k| k != own).map(|k| 1.0 + moved[k] - moved[own]);
        let slack = others.fold(0.0, f64::max);
        let cost = match variant {
            Variant::Pa => 0.0,
            Variant::PaI => c * slack,
            Variant::PaIi => c * slack * slack,
        };
        0.5 * q * steps.iter().map(|step| step * step).sum::<f64>() + cost
    }

    /// The value of the dual at these steps.
    fn dual(scores: &[f64], steps: &[f64], own: usize, (q, c): (f64, f64), variant: Variant) -> f64 {
        let others = (0..scores.len()).filter(|&k| k != own);
        let product: f64 = others.map(|k| -steps[k] * (1.0 + scores[k] - scores[own])).sum();
        let soft = if variant == Variant::PaIi { 0.5 / c } else { 0.0 };
        let squares: f64 = steps.iter().map(|step| step * step).sum();
        product - 0.5 * q * squares - 0.5 * soft * steps[own] * steps[own]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn the_primal_equals_the_dual_after_a_step(
            scores in prop::collection::vec(-3.0..3.0f64, 2..8),
            own in 0..8usize,
            q in 0.05..6.0f64,
            c in 0.02..5.0f64,
            variant in prop_oneof![Just(Variant::Pa), Just(Variant::PaI), Just(Variant::PaIi)],
        ) {
            let own = own % scores.len();
            let mut steps = scores.clone();
            class_step(&mut steps, own, q, c, variant);
            prop_assert!(steps.iter().sum::<f64>().abs() < 1e-10);
            prop_assert!((0..steps.len()).all(|k| k == own || steps[k] <= 0.0));
            let reached = primal(&scores, &steps, own, (q, c), variant);
            // Primal and dual only meet at the optimum.
            let bound = dual(&scores, &steps, own, (q, c), variant);
            prop_assert!((reached - bound).abs() < 1e-10 * (1.0 + reached), "{reached} {bound}");
            if variant == Variant::PaI {
                prop_assert!(steps[own] <= c + 1e-12);
            }
            if variant == Variant::Pa {
                let after: Vec<f64> = scores.iter().zip(&steps).map(|(score, step)| score + q * step).collect();
                prop_assert!((0..after.len()).all(|k| k == own || after[own] - after[k] > 1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn rows_of_zeros_change_nothing() {
        for variant in Variant::ALL {
            let mut scores = [0.0, 0.0, 0.0];
            assert!(!class_step(&mut scores, 1, 0.0, 2.0, variant));
            assert_eq!(scores, [0.0; 3]);
        }
    }
}
