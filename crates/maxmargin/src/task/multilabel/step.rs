//! The exact solution of the block of one row with a set of labels: the passive-aggressive step, and the step of the
//! block dual.
//!
//! ```text
//! max over α, β ≥ 0   Σ_(l∈Y) α_l z_l + Σ_(k∉Y) β_k z_k − ½ q (Σ α_l² + Σ β_k² + (Σ β_k − Σ α_l)²)
//! s.t.                Σ α_l ≤ C,  Σ β_k ≤ C
//! ```
//! Y are the labels of the row, q the squared length of the row, and z the violations without the row's own part: 1 + s_0 −
//! s_l for the labels of the row and 1 + s_k − s_0 for the others, with s_0 the calibration score. With A = Σ α and B = Σ β
//! the solution moves the calibration score by t = q (B − A), which is the one root of
//!
//! ```text
//! t = min(qC, Σ_(k∉Y) (z_k − t)₊) − min(qC, Σ_(l∈Y) (z_l + t)₊)
//! ```
//! whose right side falls with t. Then α_l = (z_l + t − θ)₊ / q with the smallest θ ≥ 0 for which Σ α ≤ C, and β
//! likewise. The root is found by Newton's method within a bracket: the function is a polygon, so that it ends at the root
//! itself. An empty side has no variables. Reference for the loss: Guo & Schuurmans, Adaptive large margin training for
//! multilabel classification, AAAI (2011).
//!
//! **Where no limit holds,** every label of the row gets a score of at least m + 1, and every other one of at most m − 1,
//! where m is the new calibration score: the row is decided rightly, with its margins.

use super::super::row_block::{LANES, above, highest, keep_within, root, scale};

/// The most steps of Newton's method: it takes a few; the limit is for values at the ends of double precision.
const MOST_STEPS: usize = 200;

/// Replaces the violations z by the best dual variables, and returns t. The length of `z` is a multiple of `LANES`;
/// outputs that do not exist, and the calibration score, are −∞. `own` are the labels of the row, in order; `near` is a
/// guess of t, and `spare` a work buffer.
pub(crate) fn solve_sides(z: &mut [f64], own: &[u32], (q, cost): (f64, f64), near: f64, spare: &mut Vec<f64>) -> f64 {
    debug_assert!(z.len().is_multiple_of(LANES));
    if cost == 0.0 {
        z.fill(0.0);
        return 0.0;
    }
    spare.clear();
    for &label in own {
        spare.push(z[label as usize]);
        z[label as usize] = f64::NEG_INFINITY;
    }
    spare.resize(own.len().next_multiple_of(LANES), f64::NEG_INFINITY);
    let shift = if q > 0.0 { shift(z, spare, q * cost, near) } else { 0.0 };
    fill(z, -shift, q, cost);
    fill(spare, shift, q, cost);
    own.iter().zip(&*spare).for_each(|(&label, alpha)| z[label as usize] = *alpha);
    shift
}

/// The best variables of two labels alone: of the row's, with violation a, and of the other, with violation b. A violation
/// of −∞ is that of a side without labels.
pub(crate) fn two_labels(a: f64, b: f64, q: f64, cost: f64) -> (f64, f64) {
    if q == 0.0 {
        let all = |violation: f64| if violation > 0.0 { cost } else { 0.0 };
        return (all(a), all(b));
    }
    // With one of them at a limit, the other is the solution of its own problem.
    let beside = |own: f64, other: f64| ((own / q + other) / 2.0).clamp(0.0, cost);
    let (alpha, beta) = ((2.0 * a + b) / (3.0 * q), (a + 2.0 * b) / (3.0 * q));
    let inside = |value: f64| (0.0..=cost).contains(&value);
    if inside(alpha) && inside(beta) {
        return (alpha, beta);
    }
    let value = |&(alpha, beta): &(f64, f64)| {
        let gain = if alpha > 0.0 { alpha * a } else { 0.0 } + if beta > 0.0 { beta * b } else { 0.0 };
        gain - q * (alpha * alpha + beta * beta - alpha * beta)
    };
    let corners = [0.0, cost].into_iter().flat_map(|limit| [(limit, beside(b, limit)), (beside(a, limit), limit)]);
    corners.fold((0.0, 0.0), |best, next| if value(&next) > value(&best) { next } else { best })
}

/// The root t.
#[inline(always)]
fn shift(others: &[f64], own: &[f64], limit: f64, near: f64) -> f64 {
    // The left side less the right side, its slope, and the size of its terms.
    let at = |t: f64| {
        let ((down, others), (up, own)) = (above(others, t), above(own, -t));
        let (down, others) = if down < limit { (down, others) } else { (limit, 0.0) };
        let (up, own) = if up < limit { (up, own) } else { (limit, 0.0) };
        (t - down + up, 1.0 + others + own, t.abs() + down + up)
    };
    let (first, ..) = at(0.0);
    if first == 0.0 || first.is_nan() {
        return 0.0;
    }
    // The slope is at least 1. The far end may be the root itself, and the ends of the bracket are never tried again.
    let far = -1.001 * first;
    let (mut low, mut high) = if first > 0.0 { (far, 0.0) } else { (0.0, far) };
    let mut t = if near > low && near < high { near } else { 0.5 * (low + high) };
    for _ in 0..MOST_STEPS {
        let (value, slope, size) = at(t);
        if value.abs() <= 0.5 * f64::EPSILON * size {
            break;
        }
        if value > 0.0 {
            high = t;
        } else {
            low = t;
        }
        let newton = t - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if next == t {
            break;
        }
        t = next;
    }
    t
}

/// Replaces the violations of a side by its variables, once the calibration score moves by −`shift` against it.
#[inline(always)]
fn fill(z: &mut [f64], shift: f64, q: f64, cost: f64) {
    let top = highest(z) + shift;
    if top.is_nan() || top <= 0.0 {
        z.fill(0.0);
        return;
    }
    let worst = z.iter().position(|&z| z + shift == top);
    if q == 0.0 {
        z.fill(0.0);
        worst.into_iter().for_each(|worst| z[worst] = cost);
        return;
    }
    z.iter_mut().for_each(|z| *z += shift);
    let limit = q * cost;
    // Σ (z − θ)₊ = qC, if the sum is larger at θ = 0.
    let theta = if above(z, 0.0).0 > limit { root(z, top, limit, f64::NAN, |_| (limit, 0.0)) } else { 0.0 };
    scale(z, theta, 1.0 / q);
    keep_within(z, cost, worst.filter(|_| theta > 0.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A row with a set of labels, and its violations.
    struct Case {
        own: Vec<u32>,
        z: Vec<f64>,
        q: f64,
        cost: f64,
    }

    fn case(number: u64) -> Case {
        let mut random = Random::new(29, 4, number);
        let labels = 1 + random.below(9) as usize;
        let chance = [0.0, 0.3, 0.5, 1.0][random.below(4) as usize];
        let own = (0..labels as u32).filter(|_| random.uniform() < chance).collect();
        let size = (2.0 * random.normal()).exp();
        // Whole numbers in every other case, so that many violations are equal.
        let round = |value: f64| if number.is_multiple_of(2) { value.round() } else { value };
        let z = (0..labels).map(|_| 1.0 + round(size * random.normal())).collect();
        Case { own, z, q: (2.0 * random.normal()).exp(), cost: (2.0 * random.normal()).exp() }
    }

    impl Case {
        fn solved(&self, near: f64) -> Vec<f64> {
            let mut z = self.z.clone();
            z.push(f64::NEG_INFINITY);
            z.resize(z.len().next_multiple_of(LANES), f64::NEG_INFINITY);
            solve_sides(&mut z, &self.own, (self.q, self.cost), near, &mut Vec::new());
            assert!(z[self.z.len()..].iter().all(|&rest| rest == 0.0));
            z.truncate(self.z.len());
            z
        }

        fn has(&self, label: usize) -> bool {
            self.own.contains(&(label as u32))
        }

        /// The sums of the variables of the labels of the row, and of the others.
        fn sums(&self, a: &[f64]) -> (f64, f64) {
            let of = |own: bool| (0..a.len()).filter(|&m| self.has(m) == own).map(|m| a[m]).sum();
            (of(true), of(false))
        }

        fn value(&self, a: &[f64]) -> f64 {
            let (up, down) = self.sums(a);
            let squares: f64 = a.iter().map(|a| a * a).sum();
            let gain: f64 = self.z.iter().zip(a).map(|(z, a)| z * a).sum();
            gain - 0.5 * self.q * (squares + (down - up) * (down - up))
        }

        /// The loss at the scores that the variables lead to, less what the dual value has: the duality gap.
        fn gap(&self, a: &[f64]) -> f64 {
            let (up, down) = self.sums(a);
            let (mut worst, mut met) = ([0.0f64; 2], 0.0);
            for (m, (z, a)) in self.z.iter().zip(a).enumerate() {
                let moved = if self.has(m) { down - up } else { up - down };
                let violation = z - self.q * a + self.q * moved;
                let side = usize::from(self.has(m));
                worst[side] = worst[side].max(violation);
                met += a * violation;
            }
            self.cost * (worst[0] + worst[1]) - met
        }
    }

    #[test]
    fn a_step_has_no_duality_gap_from_any_guess() {
        for number in 0..5000 {
            let case = case(number);
            for near in [0.0, 0.4, -3.0, 1e9, f64::NAN] {
                let a = case.solved(near);
                let (up, down) = case.sums(&a);
                let most = case.cost * (1.0 + 1e-14);
                assert!(a.iter().all(|&a| a >= 0.0) && up <= most && down <= most, "{number} {near}");
                let size =
                    1.0 + case.value(&a).abs() + case.cost * case.z.iter().fold(0.0f64, |most, z| most.max(z.abs()));
                assert!(case.gap(&a).abs() <= 1e-11 * size, "{number} {near}: {:e} {size}", case.gap(&a));
            }
        }
    }

    #[test]
    fn no_other_variables_within_the_limits_are_better() {
        let mut random = Random::new(3, 1, 4);
        for number in 0..1000 {
            let case = case(number);
            let best = case.value(&case.solved(0.0));
            for _ in 0..30 {
                let mut a: Vec<f64> = (0..case.z.len()).map(|_| case.cost * random.uniform()).collect();
                let (up, down) = case.sums(&a);
                for (m, a) in a.iter_mut().enumerate() {
                    let sum = if case.has(m) { up } else { down };
                    *a *= (case.cost / sum.max(1e-300)).min(1.0) * random.uniform();
                }
                assert!(case.value(&a) <= best + 1e-12 * (1.0 + best.abs()), "{number}");
            }
        }
    }

    #[test]
    fn two_labels_are_the_best_of_their_problem() {
        let mut random = Random::new(8, 8, 0);
        for _ in 0..5000 {
            let (a, b) = (1.0 + 3.0 * random.normal(), 1.0 + 3.0 * random.normal());
            let (q, cost) = ((2.0 * random.normal()).exp(), (2.0 * random.normal()).exp());
            let value = |alpha: f64, beta: f64| alpha * a + beta * b - q * (alpha * alpha + beta * beta - alpha * beta);
            let (alpha, beta) = two_labels(a, b, q, cost);
            assert!((0.0..=cost).contains(&alpha) && (0.0..=cost).contains(&beta));
            // The exact step over one label on each side is the same.
            let mut z = vec![f64::NEG_INFINITY; LANES];
            (z[0], z[1]) = (a, b);
            solve_sides(&mut z, &[0], (q, cost), 0.0, &mut Vec::new());
            let (found, exact) = (value(alpha, beta), value(z[0], z[1]));
            assert!((found - exact).abs() <= 1e-10 * (1.0 + exact.abs()), "{a} {b} {q} {cost}: {found} {exact}");
        }
        assert_eq!(two_labels(f64::NEG_INFINITY, 2.0, 1.0, 0.5), (0.0, 0.5));
        assert_eq!(two_labels(-1.0, 2.0, 0.0, 0.5), (0.0, 0.5));
    }

    /// Theorem 8, with its margins.
    #[test]
    fn after_a_step_that_no_limit_stops_every_label_of_the_row_is_above_every_other() {
        let mut seen = 0;
        for number in 0..5000 {
            let case = case(number);
            let a = case.solved(0.0);
            let (up, down) = case.sums(&a);
            let inside = case.cost * (1.0 - 1e-9);
            if up >= inside || down >= inside {
                continue;
            }
            seen += 1;
            // Scores before, with a calibration score of zero, and after.
            let middle = case.q * (down - up);
            for (m, (z, a)) in case.z.iter().zip(&a).enumerate() {
                let small = 1e-12 * (1.0 + z.abs() + middle.abs());
                match case.has(m) {
                    true => assert!(1.0 - z + case.q * a >= middle + 1.0 - small, "{number}"),
                    false => assert!(z - 1.0 - case.q * a <= middle - 1.0 + small, "{number}"),
                }
            }
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn rows_without_length_take_all_they_may() {
        let case = Case { own: vec![0, 2], z: vec![0.5, -0.5, 2.0, 1.0, 1.0], q: 0.0, cost: 3.0 };
        assert_eq!(case.solved(0.0), [0.0, 0.0, 3.0, 3.0, 0.0]);
    }
}
