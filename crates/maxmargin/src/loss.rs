//! Scalar margin losses: a function of the violation `v = margin − score`, its derivative and its conjugate.
//!
//! | loss | value | derivative | dual cost at α for weight C |
//! |---|---|---|---|
//! | hinge | max(0, v) | 1 where v > 0 | 0 ≤ α ≤ C |
//! | squared hinge | max(0, v)² | 2·max(0, v) | α ≥ 0, costs α²/(4C) |
//! | logistic | ln(1 + eᵛ) | 1/(1 + e⁻ᵛ) | 0 ≤ α ≤ C, costs C·(a ln a + (1−a) ln(1−a)), a = α/C |
//!
//! The margin is 1, or 0 for the logistic loss, which is the negative log-likelihood of the two classes.

use serde::{Deserialize, Serialize};

/// What a violated margin costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// max(0, v)
    Hinge,
    /// max(0, v)²
    SquaredHinge,
    /// ln(1 + eᵛ)
    Logistic,
}

impl Loss {
    /// All losses.
    pub const ALL: [Loss; 3] = [Loss::Hinge, Loss::SquaredHinge, Loss::Logistic];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Hinge => "hinge",
            Loss::SquaredHinge => "squared-hinge",
            Loss::Logistic => "logistic",
        }
    }

    /// The margin from which violations are measured.
    #[inline]
    pub fn margin(self) -> f64 {
        match self {
            Loss::Hinge | Loss::SquaredHinge => 1.0,
            Loss::Logistic => 0.0,
        }
    }

    /// The loss of a violation.
    #[inline]
    pub fn value(self, violation: f64) -> f64 {
        match self {
            Loss::Hinge => positive(violation),
            Loss::SquaredHinge => positive(violation) * positive(violation),
            Loss::Logistic => positive(violation) + (-violation.abs()).exp().ln_1p(),
        }
    }

    /// A subgradient with respect to the violation.
    #[inline]
    pub fn derivative(self, violation: f64) -> f64 {
        match self {
            Loss::Hinge => f64::from(u8::from(violation > 0.0)),
            Loss::SquaredHinge => 2.0 * positive(violation),
            Loss::Logistic => sigmoid(violation),
        }
    }

    /// The second derivative, if it exists.
    #[inline]
    pub fn curvature(self, violation: f64) -> f64 {
        match self {
            Loss::Hinge => 0.0,
            Loss::SquaredHinge => 2.0 * f64::from(u8::from(violation > 0.0)),
            Loss::Logistic => sigmoid(violation) * sigmoid(-violation),
        }
    }

    /// Whether the derivative is continuous, as Newton's method needs.
    pub fn is_smooth(self) -> bool {
        self != Loss::Hinge
    }

    /// The largest value of a dual variable for a loss with weight `cost`.
    #[inline]
    pub fn dual_limit(self, cost: f64) -> f64 {
        match self {
            Loss::Hinge | Loss::Logistic => cost,
            Loss::SquaredHinge => f64::INFINITY,
        }
    }

    /// `cost · conjugate(alpha / cost)`: the cost of a feasible dual variable.
    #[inline]
    pub fn dual_cost(self, alpha: f64, cost: f64) -> f64 {
        match self {
            Loss::Hinge => 0.0,
            Loss::SquaredHinge if alpha == 0.0 => 0.0,
            // Divide before multiplying. Otherwise a tiny square would underflow to zero, and the cost with it.
            Loss::SquaredHinge => alpha * (alpha / (4.0 * cost)),
            Loss::Logistic if cost == 0.0 => 0.0,
            Loss::Logistic => {
                let entropy = |share: f64| if share > 0.0 { share * share.ln() } else { 0.0 };
                let share = alpha / cost;
                cost * (entropy(share) + entropy(1.0 - share))
            }
        }
    }
}

/// A loss in the form that batch solvers use: unchanged, or the hinge with its kink smoothed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Curve {
    /// The loss itself.
    Sharp(Loss),
    /// (max(0, v)² − max(0, v − δ)²) / 2δ for the width δ.
    Rounded(f64),
}

/// A curve at one violation, see [`Curve::at`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurvePoint {
    pub(crate) value: f64,
    pub(crate) derivative: f64,
    pub(crate) curvature: f64,
    /// What [`crate::task::Roundable::rounding`] sums over constraints: the hinge itself, and δ·h'(v)²/2.
    pub(crate) rounding: [f64; 2],
}

impl Curve {
    /// All values at once. For the smoothed hinge there are no branches.
    #[inline(always)]
    pub(crate) fn at(self, violation: f64) -> CurvePoint {
        match self {
            Curve::Sharp(loss) => CurvePoint {
                value: loss.value(violation),
                derivative: loss.derivative(violation),
                curvature: loss.curvature(violation),
                rounding: [0.0; 2],
            },
            Curve::Rounded(width) => {
                let derivative = (violation / width).clamp(0.0, 1.0);
                let conjugate = 0.5 * width * derivative * derivative;
                let inside = violation > 0.0 && violation < width;
                CurvePoint {
                    value: derivative * violation - conjugate,
                    derivative,
                    curvature: if inside { 1.0 / width } else { 0.0 },
                    rounding: [positive(violation), conjugate],
                }
            }
        }
    }
}

/// max(0, v), but NaN if v is NaN. `f64::max` would return 0, so that an overflow would look like a perfect fit.
#[inline]
fn positive(violation: f64) -> f64 {
    if violation <= 0.0 { 0.0 } else { violation }
}

/// 1/(1 + e⁻ᵛ), without overflow on either side.
#[inline]
fn sigmoid(v: f64) -> f64 {
    let small = (-v.abs()).exp();
    if v > 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_costs_no_zero() {
        assert!(Loss::ALL.iter().all(|loss| loss.value(f64::NAN).is_nan()));
        assert!(Loss::SquaredHinge.derivative(f64::NAN).is_nan());
    }

    #[test]
    fn a_rounded_hinge_lies_below_the_hinge_by_half_its_width_at_most() {
        for width in [0.25, 2.0] {
            let at = |violation: f64| Curve::Rounded(width).at(violation);
            for violation in [-1.5, -0.2, 0.1, 0.3, 1.7, 4.0] {
                let CurvePoint { value, derivative, curvature, rounding: [hinge, conjugate] } = at(violation);
                let (above, below) = (at(violation + 1e-6), at(violation - 1e-6));
                assert!(((above.value - below.value) / 2e-6 - derivative).abs() < 1e-6);
                assert!(((above.derivative - below.derivative) / 2e-6 - curvature).abs() < 1e-6);
                assert_eq!(hinge, Loss::Hinge.value(violation));
                assert!(value <= hinge && hinge <= value + 0.5 * width);
                // The slope of a feasible dual point lies in [0, 1], and its conjugate is that of the parabola.
                assert!((0.0..=1.0).contains(&derivative));
                assert!((conjugate - 0.5 * width * derivative * derivative).abs() < 1e-15);
            }
            assert!(at(f64::NAN).value.is_nan());
        }
    }

    #[test]
    fn derivatives_are_slopes_and_conjugates_are_tight() {
        for loss in Loss::ALL {
            for violation in [-1.5, -0.2, 0.3, 2.0] {
                let slope = (loss.value(violation + 1e-6) - loss.value(violation - 1e-6)) / 2e-6;
                assert!((slope - loss.derivative(violation)).abs() < 1e-6);
                // Fenchel: C·loss(v) = α·v − dual cost at α = C·loss'(v), and no other α does better.
                let cost = 0.7;
                let alpha = cost * loss.derivative(violation);
                let dual = |alpha: f64| alpha * violation - loss.dual_cost(alpha, cost);
                assert!((cost * loss.value(violation) - dual(alpha)).abs() < 1e-12);
                for step in 0..50 {
                    let other = (0.05 * f64::from(step)).min(loss.dual_limit(cost));
                    assert!(dual(other) <= cost * loss.value(violation) + 1e-12);
                }
            }
        }
    }
}
