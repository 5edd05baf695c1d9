//! Cosine and sine of many f64 numbers at once, without branches, so that the compiler vectorises them.
//!
//! x = n·π/2 + r with |r| ≤ π/4, with π/2 in three parts. Both series of r go to the power 11, and n determines which
//! of them is which, and the sign. Within 2e-10 of the value up to |x| = 10⁶; larger angles use the library.

use crate::data::row_loops::for_this_machine;

for_this_machine! {
    /// cosines_i = scale · cos(angles_i), and sines alike.
    pub(super) fn waves[](angles: &[f64], scale: f64, cosines: &mut [f32], sines: &mut [f32]) -> () = waves_plainly
}

/// Beyond this the rounding of the parts of π/2 would be visible.
const FAR: f64 = 1e6;

#[inline(always)]
fn waves_plainly(angles: &[f64], scale: f64, cosines: &mut [f32], sines: &mut [f32]) {
    let mut near = true;
    for angle in angles {
        near &= angle.abs() <= FAR;
    }
    let both = angles.iter().zip(cosines).zip(sines);
    if near {
        for ((&angle, cosine), sine) in both {
            let (c, s) = cosine_and_sine(angle);
            (*cosine, *sine) = ((scale * c) as f32, (scale * s) as f32);
        }
    } else {
        for ((angle, cosine), sine) in both {
            let (s, c) = angle.sin_cos();
            (*cosine, *sine) = ((scale * c) as f32, (scale * s) as f32);
        }
    }
}

#[inline(always)]
fn cosine_and_sine(x: f64) -> (f64, f64) {
    // 1.5·2⁵²: adding it rounds to the nearest whole number, whose last bits are then those of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // π/2 in parts of 33 bits, so that n times each of the first two is exact.
    const FIRST: f64 = f64::from_bits(0x3FF9_21FB_5440_0000);
    const SECOND: f64 = f64::from_bits(0x3DD0_B461_1A60_0000);
    const THIRD: f64 = f64::from_bits(0x3BA3_198A_2E03_7073);
    let rounded = x * std::f64::consts::FRAC_2_PI + ROUND;
    let quarter = rounded.to_bits();
    let n = rounded - ROUND;
    let r = ((x - n * FIRST) - n * SECOND) - n * THIRD;
    let square = r * r;
    let mut even = -1.0 / 3_628_800.0;
    for term in [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0] {
        even = even * square + term;
    }
    let mut odd = -1.0 / 39_916_800.0;
    for term in [1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0] {
        odd = odd * square + term;
    }
    odd *= r;
    let swapped = quarter & 1 == 1;
    let (cosine, sine) = if swapped { (odd, even) } else { (even, odd) };
    // Cosines are negative in the second and third quarter, sines in the third and fourth.
    let cosine_sign = ((quarter.wrapping_add(1) & 2) >> 1) << 63;
    let sine_sign = ((quarter & 2) >> 1) << 63;
    (f64::from_bits(cosine.to_bits() ^ cosine_sign), f64::from_bits(sine.to_bits() ^ sine_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_library() {
        let near = (-400_000..400_000).map(|step| f64::from(step) * 1.234_5e-3);
        let far = (0..200_000).map(|step| f64::from(step) * 4.999_9);
        for x in near.chain(far) {
            let (cosine, sine) = cosine_and_sine(x);
            assert!((cosine - x.cos()).abs() < 2e-10, "cos {x}: {cosine}");
            assert!((sine - x.sin()).abs() < 2e-10, "sin {x}: {sine}");
        }
    }

    #[test]
    fn large_angles_and_nan_use_the_library() {
        let angles = [1e18, -3.7e200, 0.5];
        let (mut cosines, mut sines) = ([0f32; 3], [0f32; 3]);
        waves(&angles, 2.0, &mut cosines, &mut sines);
        for (at, angle) in angles.iter().enumerate() {
            assert_eq!((cosines[at], sines[at]), ((2.0 * angle.cos()) as f32, (2.0 * angle.sin()) as f32));
        }
        waves(&[f64::NAN, 1.0, 2.0], 1.0, &mut cosines, &mut sines);
        assert!(cosines[0].is_nan() && sines[0].is_nan() && cosines[1].is_finite());
    }
}
