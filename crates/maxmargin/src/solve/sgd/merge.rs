//! Merges two vectors of a Gaussian expansion into one, with the smallest loss.
//!
//! ```text
//! min over h, α_z   ‖α_a φ(a) + α_b φ(b) − α_z φ(z)‖²,   z = h·a + (1 − h)·b
//! ```
//! For the Gaussian kernel k(a, z) = κ^((1−h)²) and k(b, z) = κ^(h²) with κ = k(a, b). So the best coefficient is α_z =
//! α_a κ^((1−h)²) + α_b κ^(h²), and the loss is ‖α_a φ(a) + α_b φ(b)‖² − α_z². With coefficients of one sign and m =
//! α_a / (α_a + α_b) both h and the loss, divided by (α_a + α_b)², depend on m and κ alone: they are looked up in a
//! table with linear interpolation, instead of a search each time (Wang, Crammer & Vucetic, Breaking the curse of
//! kernelization, JMLR 13, 2012; Glasmachers & Qaadan, Speeding up budgeted stochastic gradient descent SVM training
//! with precomputed golden section search, 2018).
//!
//! The vector with the smaller coefficient is called a: m ≤ ½, and then z is nearer to b: h ≤ ½.

use crate::parallel;
use std::sync::OnceLock;

/// Steps of the table along m and along κ.
const STEPS: usize = 400;

/// h and the loss at one point of the table.
pub(super) type Entry = [f32; 2];

/// The result of merging two vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Merged {
    /// The share h of the first vector, a, in z.
    pub(super) share: f64,
    /// α_z, of the sign of both.
    pub(super) coefficient: f64,
    /// ‖α_a φ(a) + α_b φ(b) − α_z φ(z)‖²
    pub(super) loss: f64,
}

/// α_z if both coefficients add up to 1.
fn kept(m: f64, kappa: f64, h: f64) -> f64 {
    m * power(kappa, (1.0 - h) * (1.0 - h)) + (1.0 - m) * power(kappa, h * h)
}

/// κ^e for κ from 0 to 1; 0⁰ is 1.
fn power(kappa: f64, exponent: f64) -> f64 {
    if exponent == 0.0 { 1.0 } else { (exponent * kappa.ln()).exp() }
}

/// ‖m φ(a) + (1 − m) φ(b)‖² − α_z²
fn lost(m: f64, kappa: f64, kept: f64) -> f64 {
    let square = m * m + (1.0 - m) * (1.0 - m) + 2.0 * m * (1.0 - m) * kappa;
    (square - kept * kept).max(0.0)
}

/// The h with the largest α_z, by golden section.
fn searched(m: f64, kappa: f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    if kappa == 1.0 {
        // If both vectors are the same, any z loses nothing. This is the limit of h there.
        return m;
    }
    let (mut low, mut high) = (0.0, 0.5);
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (left, right) = inner(low, high);
    let (mut at_left, mut at_right) = (kept(m, kappa, left), kept(m, kappa, right));
    // After these steps the interval is smaller than the precision to which a maximum can be found.
    for _ in 0..40 {
        if at_left < at_right {
            (low, at_left) = (inner(low, high).0, at_right);
            at_right = kept(m, kappa, inner(low, high).1);
        } else {
            (high, at_right) = (inner(low, high).1, at_left);
            at_left = kept(m, kappa, inner(low, high).0);
        }
    }
    // For vectors without overlap the best is the heavier one, which the search would miss.
    let found = 0.5 * (low + high);
    if kept(m, kappa, found) > kept(m, kappa, 0.0) { found } else { 0.0 }
}

/// One row for each m from 0 to ½, κ from 0 to 1 along it.
pub(super) fn table() -> &'static [Entry] {
    static TABLE: OnceLock<Vec<Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let entry = |at: usize| {
            let m = 0.5 * (at / (STEPS + 1)) as f64 / STEPS as f64;
            let kappa = (at % (STEPS + 1)) as f64 / STEPS as f64;
            let h = searched(m, kappa);
            [h as f32, lost(m, kappa, kept(m, kappa, h)) as f32]
        };
        parallel::collect((STEPS + 1) * (STEPS + 1), STEPS + 1, entry)
    })
}

/// h and loss by linear interpolation in the table.
#[inline]
fn looked_up(table: &[Entry], m: f64, kappa: f64) -> [f64; 2] {
    let (m, kappa) = (2.0 * m * STEPS as f64, kappa * STEPS as f64);
    let (row, column) = ((m as usize).min(STEPS - 1), (kappa as usize).min(STEPS - 1));
    let (down, along) = (m - row as f64, kappa - column as f64);
    let at = row * (STEPS + 1) + column;
    let line = |at: usize, of: usize| {
        let (low, high) = (f64::from(table[at][of]), f64::from(table[at + 1][of]));
        low + along * (high - low)
    };
    std::array::from_fn(|of| {
        let (above, below) = (line(at, of), line(at + STEPS + 1, of));
        above + down * (below - above)
    })
}

/// The approximate loss of merging two vectors, to choose a partner: |a| must be the smaller coefficient, of the same
/// sign.
#[inline]
pub(super) fn about_lost(table: &[Entry], a: f64, b: f64, kappa: f64) -> f64 {
    let sum = a + b;
    sum * sum * looked_up(table, a / sum, kappa.clamp(0.0, 1.0))[1]
}

/// Merges two vectors of the same sign, a with the smaller coefficient. It never loses more than removing a would.
pub(super) fn merged(a: f64, b: f64, kappa: f64) -> Merged {
    let (sum, kappa) = (a + b, kappa.clamp(0.0, 1.0));
    let m = a / sum;
    let found = looked_up(table(), m, kappa)[0].clamp(0.0, 0.5);
    // z = b loses m²(1 − κ²), less than removing a: the table must not do worse.
    let share = if kept(m, kappa, found) >= kept(m, kappa, 0.0) { found } else { 0.0 };
    let kept = kept(m, kappa, share);
    Merged { share, coefficient: sum * kept, loss: sum * sum * lost(m, kappa, kept) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_table_agrees_with_golden_section_and_with_every_h_tried_in_turn() {
        let mut random = Random::new(1, 2, 3);
        for _ in 0..20_000 {
            let (m, kappa) = (0.5 * random.uniform(), random.uniform());
            let best = searched(m, kappa);
            let [h, loss] = looked_up(table(), m, kappa);
            let exact = lost(m, kappa, kept(m, kappa, best));
            assert!((loss - exact).abs() < 2e-5, "m {m} kappa {kappa}: {loss} {exact}");
            // A slightly different h loses hardly more.
            let used = lost(m, kappa, kept(m, kappa, h));
            assert!(used >= exact - 1e-12 && used < exact + 1e-4, "m {m} kappa {kappa}: {used} {exact}");
        }
        for _ in 0..300 {
            let (m, kappa) = (0.5 * random.uniform(), random.uniform());
            let tried = (0..=2000).map(|step| kept(m, kappa, f64::from(step) / 2000.0)).fold(0.0, f64::max);
            assert!(kept(m, kappa, searched(m, kappa)) >= tried - 1e-9, "m {m} kappa {kappa}");
        }
    }

    #[test]
    fn merging_loses_what_the_definition_says_and_never_more_than_leaving_out() {
        let mut random = Random::new(4, 5, 6);
        for _ in 0..5000 {
            let sign = if random.chance(0.5) { 1.0 } else { -1.0 };
            let (one, other) = (random.uniform().powi(6), random.uniform());
            let (a, b) = (sign * one.min(other), sign * one.max(other));
            // On a line, at distance d: k = exp(−d²).
            let d = 3.0 * random.uniform();
            let k = |x: f64, y: f64| (-(x - y) * (x - y)).exp();
            let Merged { share, coefficient, loss } = merged(a, b, k(0.0, d));
            let z = (1.0 - share) * d;
            let square = a * a + b * b + coefficient * coefficient + 2.0 * a * b * k(0.0, d)
                - 2.0 * a * coefficient * k(0.0, z)
                - 2.0 * b * coefficient * k(d, z);
            assert!((square - loss).abs() < 1e-12, "{square} {loss}");
            assert!(loss <= a * a + 1e-15, "{loss} {}", a * a);
            assert!((about_lost(table(), a, b, k(0.0, d)) - loss).abs() < 2e-4 * (a + b) * (a + b));
        }
    }

    #[test]
    fn equal_vectors_and_vectors_without_overlap_merge_exactly() {
        assert_eq!(merged(1.0, 3.0, 1.0).coefficient, 4.0);
        assert_eq!(merged(1.0, 3.0, 1.0).loss, 0.0);
        let apart = merged(-1.0, -3.0, 0.0);
        assert!((apart.coefficient + 3.0).abs() < 1e-12 && (apart.loss - 1.0).abs() < 1e-12, "{apart:?}");
        let even = merged(2.0, 2.0, 0.0);
        assert!((even.coefficient - 2.0).abs() < 1e-12 && (even.loss - 4.0).abs() < 1e-12, "{even:?}");
    }
}
