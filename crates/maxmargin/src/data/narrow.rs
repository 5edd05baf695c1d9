//! Scores of all rows in half the room, for those who only want to know where something lies.

use super::Design;
use rayon::prelude::*;

/// Neighbouring rows whose scores have a scale in common.
pub(crate) const STRETCH: usize = 4096;

/// Writes numbers as shares of a power of two next to the largest of them, and returns that.
pub(crate) fn narrow(numbers: &[f64], shares: &mut [f32]) -> f64 {
    const EXPONENT: u64 = 0x7ff << 52;
    let largest = numbers.iter().fold(0.0, |largest: f64, number| largest.max(number.abs()));
    let scale = f64::from_bits(largest.to_bits() & EXPONENT).max(f64::MIN_POSITIVE);
    shares.iter_mut().zip(numbers).for_each(|(share, number)| *share = (number / scale) as f32);
    scale
}

/// Scores to 24 digits of the largest in their stretch, however large or small that is.
pub(crate) struct NarrowScores {
    shares: Vec<f32>,
    scales: Vec<f64>,
}

impl NarrowScores {
    /// Those of all rows, in parallel.
    pub(crate) fn new(design: &Design, weights: &[f64]) -> NarrowScores {
        let folded = design.fold(weights);
        let mut shares = vec![0.0; design.rows()];
        let stretches = shares.par_chunks_mut(STRETCH).enumerate();
        let scales = stretches.map_init(Vec::new, |scores, (stretch, shares)| {
            let rows = stretch * STRETCH..stretch * STRETCH + shares.len();
            scores.resize(shares.len(), 0.0);
            design.scores(rows.clone(), &folded, scores);
            design.passed(rows);
            narrow(scores, shares)
        });
        let scales = scales.collect();
        NarrowScores { shares, scales }
    }

    /// That of a row.
    #[inline]
    pub(crate) fn of(&self, row: usize) -> f64 {
        self.scales[row / STRETCH] * f64::from(self.shares[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_their_scale_are_the_numbers_again() {
        for size in [f64::MIN_POSITIVE, 1e-300, 1e-40, 1.0, 3.9e38, 1e300, f64::MAX / 4.0] {
            let numbers: Vec<f64> = (-50..=50).map(|i| f64::from(i) * 0.037 * size).collect();
            let mut shares = vec![0.0; numbers.len()];
            let scale = narrow(&numbers, &mut shares);
            for (number, share) in numbers.iter().zip(shares) {
                let again = scale * f64::from(share);
                assert!((again - number).abs() <= 2.0 * size * f64::from(f32::EPSILON), "{number} became {again}");
            }
        }
    }

    #[test]
    fn nothing_but_zeros_stay_zeros_and_what_is_no_number_stays_none() {
        let mut shares = [1.0; 3];
        assert!(narrow(&[0.0, -0.0, 0.0], &mut shares) > 0.0);
        assert_eq!(shares, [0.0; 3]);
        let scale = narrow(&[1.0, f64::NAN, -2.0], &mut shares);
        assert!((scale * f64::from(shares[1])).is_nan());
    }
}
