//! The exact solution of one block: all dual variables of a row, the others fixed.
//!
//! ```text
//! max over a   Σ_m a_m z_m − ½ q (Σ_m a_m² + (Σ_m a_m)²) − Σ_m cost*(a_m),   a ≥ 0
//! ```
//! z_m is the violation of class m without the row's own part, q the squared length of the row. With A = Σ a the
//! conditions are a_m = (z_m − θ)₊ / q, where θ solves one equation in one unknown:
//!
//! | form | limit | equation |
//! |---|---|---|
//! | largest violation | A ≤ C | Σ (z_m − θ)₊ = min(θ, qC) |
//! | sum of hinges | a_m ≤ C | Σ clip(z_m / q − γ, 0, C) = γ, with a_m the clipped terms and θ = qγ |
//! | sum of squares | none | Σ (z_m − θ)₊ = θ (q + 1/2C) / q, and a_m = (z_m − θ)₊ / (q + 1/2C) |
//!
//! The first and the third are convex and fall with θ, so that Newton's method from the left is monotone and ends after
//! finitely many steps; a step from the right lands on the left. The second is solved by Newton's method within a
//! bracket. No sort is needed (Keerthi, Sundararajan, Chang, Hsieh & Lin, A sequential dual method for large scale
//! multi-class linear SVMs, KDD 2008, sort for the first).

use crate::data::row_loops::for_this_machine;

/// The loss of a row over all its classes, as its dual variables see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockForm {
    /// The largest violation counts.
    Largest,
    /// Every violation counts, with the hinge.
    Sum,
    /// Every violation counts, with the squared hinge.
    Squares,
}

/// Lists of classes are filled up to a multiple of this many, with violations of −∞.
pub(crate) const LANES: usize = 8;

/// The most steps. Newton's method takes two to five; the limit is for values at the ends of double precision.
const MOST_STEPS: usize = 100;

/// Sum of (z − θ)₊, and the number of positive terms.
#[inline(always)]
pub(super) fn above(z: &[f64], theta: f64) -> (f64, f64) {
    let (mut sums, mut counts) = ([0.0; LANES], [0.0; LANES]);
    for z in z.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let over = z[lane] - theta;
            sums[lane] += if over > 0.0 { over } else { 0.0 };
            counts[lane] += if over > 0.0 { 1.0 } else { 0.0 };
        }
    }
    (sums.iter().sum(), counts.iter().sum())
}

/// Sum of clip(z / q − γ, 0, C), and the number of terms strictly between.
#[inline(always)]
fn clipped(z: &[f64], inverse: f64, gamma: f64, limit: f64) -> (f64, f64) {
    let (mut sums, mut counts) = ([0.0; LANES], [0.0; LANES]);
    for z in z.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let value = z[lane] * inverse - gamma;
            sums[lane] += value.max(0.0).min(limit);
            counts[lane] += if value > 0.0 && value < limit { 1.0 } else { 0.0 };
        }
    }
    (sums.iter().sum(), counts.iter().sum())
}

/// The largest number of a list that is filled up; −∞ if there is none.
#[inline(always)]
pub(crate) fn highest(z: &[f64]) -> f64 {
    let mut highest = [f64::NEG_INFINITY; LANES];
    for z in z.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            highest[lane] = if z[lane] > highest[lane] { z[lane] } else { highest[lane] };
        }
    }
    highest.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

for_this_machine! {
    /// Replaces the violations z by the best dual variables, and returns θ. `near` is a guess of θ. The length of `z` is
    /// a multiple of [`LANES`]; classes that do not exist, and the row's own, are −∞.
    pub(crate) fn solve_block[](form: BlockForm, z: &mut [f64], q: f64, cost: f64, near: f64) -> f64 = solve_block_here
}

#[inline(always)]
fn solve_block_here(form: BlockForm, z: &mut [f64], q: f64, cost: f64, near: f64) -> f64 {
    debug_assert!(z.len().is_multiple_of(LANES));
    let top = highest(z);
    if top <= 0.0 || top.is_nan() || cost == 0.0 {
        z.fill(0.0);
        return 0.0;
    }
    if q == 0.0 {
        return at_zero_length(form, z, cost, top);
    }
    match form {
        BlockForm::Largest => {
            let limit = q * cost;
            let slope = |theta: f64| if theta < limit { (theta, 1.0) } else { (limit, 0.0) };
            let is_top = z.iter().position(|&z| z == top);
            let theta = root(z, top, limit, near, slope);
            scale(z, theta, 1.0 / q);
            keep_within(z, cost, is_top);
            theta
        }
        BlockForm::Squares => {
            let own = q + 0.5 / cost;
            let steep = own / q;
            let theta = root(z, top, f64::INFINITY, near, |theta| (steep * theta, steep));
            scale(z, theta, 1.0 / own);
            theta
        }
        BlockForm::Sum => {
            let inverse = 1.0 / q;
            let gamma = bracketed(z, inverse, cost, near * inverse, top * inverse);
            z.iter_mut().for_each(|z| *z = (*z * inverse - gamma).max(0.0).min(cost));
            q * gamma
        }
    }
}

#[inline(always)]
pub(super) fn scale(z: &mut [f64], theta: f64, factor: f64) {
    z.iter_mut().for_each(|z| *z = if *z > theta { (*z - theta) * factor } else { 0.0 });
}

/// Takes off what rounding put above the limit: with a small q·C, θ is so near to the largest violation that their
/// difference has few digits. If it has none, the class with the largest violation gets all of C.
#[inline(always)]
pub(super) fn keep_within(a: &mut [f64], limit: f64, top: Option<usize>) {
    let mut sums = [0.0; LANES];
    for a in a.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] += a[lane];
        }
    }
    let sum: f64 = sums.iter().sum();
    if sum > limit {
        let share = limit / sum * (1.0 - f64::EPSILON);
        a.iter_mut().for_each(|a| *a *= share);
    } else if sum == 0.0
        && let Some(top) = top
    {
        a[top] = limit;
    }
}

/// The root of Σ (z − θ)₊ = right(θ), where the right side rises, and is concave. It returns its value and its slope.
#[inline(always)]
pub(super) fn root(z: &[f64], top: f64, limit: f64, near: f64, right: impl Fn(f64) -> (f64, f64)) -> f64 {
    // Left of the root: there the left side is at least qC.
    let left = if limit.is_finite() { (top - limit).max(0.0) } else { 0.0 };
    let mut theta = if near > left && near < top { near } else { left };
    // Whether the point is known to be left of the root.
    let mut is_left = theta == left;
    for _ in 0..MOST_STEPS {
        let (sum, count) = above(z, theta);
        let (value, slope) = right(theta);
        let step = (sum - value) / (count + slope);
        if is_left && step <= 0.0 {
            break;
        }
        let next = (theta + step).max(left);
        if next == theta {
            break;
        }
        (theta, is_left) = (next, true);
    }
    theta
}

/// The root of Σ clip(z / q − γ, 0, C) = γ.
#[inline(always)]
fn bracketed(z: &[f64], inverse: f64, limit: f64, near: f64, top: f64) -> f64 {
    let (mut low, mut high) = (0.0, top);
    let mut gamma = if near > low && near < high { near } else { 0.5 * top };
    for _ in 0..MOST_STEPS {
        let (sum, count) = clipped(z, inverse, gamma, limit);
        let over = sum - gamma;
        if over > 0.0 {
            low = gamma;
        } else if over < 0.0 {
            high = gamma;
        } else {
            break;
        }
        let step = gamma + over / (1.0 + count);
        let next = if step > low && step < high { step } else { 0.5 * (low + high) };
        if (next - gamma).abs() <= 1e-16 * gamma || high - low <= 1e-16 * high {
            break;
        }
        gamma = next;
    }
    gamma
}

/// A row without length: its violations do not depend on its dual variables.
fn at_zero_length(form: BlockForm, z: &mut [f64], cost: f64, top: f64) -> f64 {
    match form {
        BlockForm::Largest => {
            let worst = z.iter().position(|&z| z == top);
            z.fill(0.0);
            if let Some(worst) = worst {
                z[worst] = cost;
            }
        }
        BlockForm::Sum => z.iter_mut().for_each(|z| *z = if *z > 0.0 { cost } else { 0.0 }),
        BlockForm::Squares => z.iter_mut().for_each(|z| *z = 2.0 * cost * z.max(0.0)),
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn value(form: BlockForm, z: &[f64], a: &[f64], q: f64, cost: f64) -> f64 {
        let sum: f64 = a.iter().sum();
        let squares: f64 = a.iter().map(|a| a * a).sum();
        let own = if form == BlockForm::Squares { squares / (4.0 * cost) } else { 0.0 };
        let gain: f64 = z.iter().zip(a).filter(|(_, a)| **a != 0.0).map(|(z, a)| z * a).sum();
        gain - 0.5 * q * (squares + sum * sum) - own
    }

    /// Coordinate ascent with exact steps, also on pairs of variables, until nothing changes.
    fn slowly(form: BlockForm, z: &[f64], q: f64, cost: f64) -> Vec<f64> {
        let limit = if form == BlockForm::Squares { f64::INFINITY } else { cost };
        let own = if form == BlockForm::Squares { 0.5 / cost } else { 0.0 };
        let mut a = vec![0.0; z.len()];
        for _ in 0..20_000 {
            let mut moved = 0.0f64;
            for m in 0..z.len() {
                let sum: f64 = a.iter().sum();
                let room = if form == BlockForm::Largest { limit - (sum - a[m]) } else { limit };
                let next = (a[m] + (z[m] - q * (a[m] + sum) - own * a[m]) / (2.0 * q + own)).clamp(0.0, room.max(0.0));
                moved = moved.max((next - a[m]).abs());
                a[m] = next;
            }
            if form == BlockForm::Largest {
                for m in 0..z.len() {
                    for n in 0..m {
                        let both = a[m] + a[n];
                        let next = (a[m] + (z[m] - z[n] - q * (a[m] - a[n])) / (2.0 * q)).clamp(0.0, both);
                        moved = moved.max((next - a[m]).abs());
                        (a[m], a[n]) = (next, both - next);
                    }
                }
            }
            if moved < 1e-15 {
                break;
            }
        }
        a
    }

    #[test]
    fn a_block_is_solved_exactly_from_any_guess() {
        let mut random = Random::new(7, 0, 0);
        for case in 0..600 {
            let form = [BlockForm::Largest, BlockForm::Sum, BlockForm::Squares][case % 3];
            let classes = 1 + case % 5;
            let q = (2.0 * random.normal()).exp();
            let cost = (1.5 * random.normal()).exp();
            let given: Vec<f64> = (0..classes).map(|_| 1.0 + 2.0 * random.normal()).collect();
            let expected = slowly(form, &given, q, cost);
            let best = value(form, &given, &expected, q, cost);
            for near in [0.0, 0.3, 1e9, -4.0, given[0]] {
                let mut z = given.clone();
                z.resize(LANES, f64::NEG_INFINITY);
                solve_block(form, &mut z, q, cost, near);
                let found = value(form, &given, &z[..classes], q, cost);
                assert!((found - best).abs() <= 1e-9 * (1.0 + best.abs()), "{form:?} {near}: {found} {best}");
                let sum: f64 = z.iter().sum();
                assert!(z.iter().all(|&a| a >= 0.0) && z[classes..].iter().all(|&a| a == 0.0));
                match form {
                    BlockForm::Largest => assert!(sum <= cost * (1.0 + 1e-12)),
                    BlockForm::Sum => assert!(z.iter().all(|&a| a <= cost)),
                    BlockForm::Squares => {}
                }
            }
        }
    }

    #[test]
    fn rows_without_length_take_all_they_may() {
        let of = |form| {
            let mut z = vec![f64::NEG_INFINITY; LANES];
            z[..3].copy_from_slice(&[0.5, 2.0, -1.0]);
            solve_block(form, &mut z, 0.0, 3.0, 0.0);
            z[..3].to_vec()
        };
        assert_eq!(of(BlockForm::Largest), [0.0, 3.0, 0.0]);
        assert_eq!(of(BlockForm::Sum), [3.0, 3.0, 0.0]);
        assert_eq!(of(BlockForm::Squares), [3.0, 12.0, 0.0]);
    }
}
