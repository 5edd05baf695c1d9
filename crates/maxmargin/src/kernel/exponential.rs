//! exp over a run of f32 numbers at once, without branches, so that the compiler vectorises it.
//!
//! x = n·ln 2 + r with |r| ≤ ½ ln 2; eʳ by a polynomial of degree 6 (the coefficients of Cephes), 2ⁿ by the exponent's
//! bits. Within 2.5e-7 of the value from −87 on; below, zero.

/// The exponential of one number that is zero or negative, as in kernels of distances.
#[inline(always)]
#[allow(clippy::eq_op)] // x − x is zero, unless x is NaN or infinite
pub(super) fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // 1.5·2²³: adding it rounds to the nearest whole number.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let n = (clamped * LOG2_E + ROUND) - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let mut polynomial = 1.987_569_1e-4;
    polynomial = polynomial * r + 1.398_199_9e-3;
    polynomial = polynomial * r + 8.333_452e-3;
    polynomial = polynomial * r + 4.166_579_6e-2;
    polynomial = polynomial * r + 1.666_666_5e-1;
    polynomial = polynomial * r + 0.5;
    let exponential = polynomial * r * r + r + 1.0;
    let power = f32::from_bits((((n as i32) + 127) << 23) as u32);
    // A NaN stays NaN. Values far below zero give zero.
    if x < -87.0 { 0.0 } else { exponential * power + (x - x) }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn it_agrees_with_the_library_to_the_last_digits() {
        for step in 0..=870_000 {
            let x = -step as f32 * 1e-4;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error < 2.5e-7, "{x}: {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }
}
