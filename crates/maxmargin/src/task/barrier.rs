//! [`Barrier`]: φ(b) = −ln(1 − e^(−2b)), which keeps the threshold for ties above zero with logistic loss.
//!
//! Its conjugate at W·φ has a closed form: sup_b p·b − W·φ(b) is finite for p ≤ 0, and is attained where e^(2b) = 1 +
//! 2W/|p|.

/// Value and derivatives at one threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Barrier {
    pub(crate) value: f64,
    pub(crate) slope: f64,
    pub(crate) curvature: f64,
}

impl Barrier {
    /// The barrier at a threshold; infinite at zero and below.
    #[inline]
    pub(crate) fn at(threshold: f64) -> Barrier {
        if threshold.is_nan() || threshold <= 0.0 {
            return Barrier { value: f64::INFINITY, slope: f64::NEG_INFINITY, curvature: 0.0 };
        }
        let fall = (-2.0 * threshold).exp();
        let rest = -(-2.0 * threshold).exp_m1();
        let slope = -2.0 * fall / rest;
        Barrier { value: -rest.ln(), slope, curvature: -2.0 * slope / rest }
    }

    /// The maximum of pull·b − weight·φ(b) over b > 0, for a pull of at most zero.
    pub(crate) fn conjugate(weight: f64, pull: f64) -> f64 {
        let pull = -pull;
        // Below this the value is zero up to rounding, and the ratio would overflow.
        if pull <= weight * 1e-300 {
            return 0.0;
        }
        let threshold = 0.5 * (2.0 * weight / pull).ln_1p();
        -pull * threshold - weight * (pull / (2.0 * weight)).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_the_values() {
        for threshold in [0.01, 0.3, 1.0, 4.0] {
            let step = 1e-6 * threshold;
            let (here, above, below) =
                (Barrier::at(threshold), Barrier::at(threshold + step), Barrier::at(threshold - step));
            assert!(((above.value - below.value) / (2.0 * step) - here.slope).abs() <= 1e-7 * here.slope.abs());
            assert!(((above.slope - below.slope) / (2.0 * step) - here.curvature).abs() <= 1e-6 * here.curvature);
        }
        assert_eq!(Barrier::at(0.0).value, f64::INFINITY);
    }

    #[test]
    fn the_conjugate_is_the_largest_difference() {
        for (weight, pull) in [(1.0, -0.5), (3.0, -7.0), (0.2, -1e-3)] {
            let largest = (1..400_000)
                .map(|at| f64::from(at) * 1e-4)
                .map(|b| pull * b - weight * Barrier::at(b).value)
                .fold(f64::NEG_INFINITY, f64::max);
            let found = Barrier::conjugate(weight, pull);
            assert!(found >= largest && found - largest < 1e-6, "{weight} {pull}: {found} {largest}");
        }
        assert_eq!(Barrier::conjugate(1.0, 0.0), 0.0);
    }
}
