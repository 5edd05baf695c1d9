//! Scores in half the memory, for uses where an approximate value is enough.

use super::Design;
use super::scale::{Folded, STRETCH};
use crate::parallel;
use std::ops::Range;

/// The range of the scores of neighbouring rows: each score is `middle + unit · share`. The middle holds what all
/// scores have in common, so that the digits of a share hold only the differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    middle: f64,
    unit: f64,
}

impl Span {
    /// Writes numbers as shares and returns their span.
    fn of(numbers: &[f64], shares: &mut [f32]) -> Span {
        const EXPONENT: u64 = 0x7ff << 52;
        let finite = numbers.iter().filter(|number| number.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &number| (low.min(number), high.max(number)));
        let middle = if low <= high { 0.5 * low + 0.5 * high } else { 0.0 };
        // The unit is a power of two near the largest deviation. Multiplying by it does not round.
        let largest = (high - middle).max(middle - low).max(0.0);
        let unit = f64::from_bits(largest.to_bits() & EXPONENT).max(f64::MIN_POSITIVE);
        shares.iter_mut().zip(numbers).for_each(|(share, number)| *share = ((number - middle) / unit) as f32);
        Span { middle, unit }
    }

    #[inline(always)]
    pub(crate) fn number(&self, share: f32) -> f64 {
        self.middle + self.unit * f64::from(share)
    }

    /// Σ factor · number
    pub(crate) fn weighted_sum(&self, shares: &[f32], factors: &[f64]) -> f64 {
        let (mut plain, mut shared) = (0.0, 0.0);
        for (&share, factor) in shares.iter().zip(factors) {
            plain += factor;
            shared += factor * f64::from(share);
        }
        self.middle * plain + self.unit * shared
    }
}

/// Writes the scores of a run of rows as shares, and adds one span for each [`STRETCH`] of rows. A pass does not need
/// the rows again. `parallel` says whether there are enough rows to make several threads worthwhile.
pub(crate) fn narrow_scores(
    design: &Design,
    rows: Range<usize>,
    folded: &Folded,
    shares: &mut [f32],
    parallel: bool,
    spans: &mut Vec<Span>,
) {
    let outputs = folded.outputs();
    let span = |scores: &mut Vec<f64>, stretch: usize, shares: &mut [f32]| {
        let start = rows.start + stretch * STRETCH;
        let rows = start..start + shares.len() / outputs;
        scores.resize(shares.len(), 0.0);
        design.scores(rows.clone(), folded, scores);
        design.passed(rows);
        Span::of(scores, shares)
    };
    if parallel {
        let stretches = shares.chunks_mut(STRETCH * outputs).collect();
        spans.extend(parallel::map_each(stretches, |stretch, shares| span(&mut Vec::new(), stretch, shares)));
    } else {
        let mut scores = Vec::new();
        let stretches = shares.chunks_mut(STRETCH * outputs).enumerate();
        spans.extend(stretches.map(|(stretch, shares)| span(&mut scores, stretch, shares)));
    }
}

/// The scores of all rows, each with 24 binary digits relative to the span of its stretch.
pub(crate) struct NarrowScores {
    shares: Vec<f32>,
    spans: Vec<Span>,
}

impl NarrowScores {
    pub(crate) fn new(design: &Design, weights: &[f64]) -> NarrowScores {
        let (mut shares, mut spans) = (vec![0.0; design.rows()], Vec::new());
        narrow_scores(design, 0..design.rows(), &design.fold(weights), &mut shares, true, &mut spans);
        NarrowScores { shares, spans }
    }

    /// The score of a row.
    #[inline]
    pub(crate) fn of(&self, row: usize) -> f64 {
        self.spans[row / STRETCH].number(self.shares[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Scale, Scaling};
    use crate::random::Random;
    use crate::run::Cancel;

    #[test]
    fn numbers_are_what_they_were_but_for_their_last_digits() {
        for (offset, size) in [
            (0.0, f64::MIN_POSITIVE),
            (0.0, 1e-300),
            (0.0, 1.0),
            (1e9, 1.0),
            (-7e15, 1e3),
            (0.0, 3.9e38),
            (0.0, 1e300),
            (1e300, 1e290),
            (0.0, f64::MAX / 2.0),
        ] {
            let numbers: Vec<f64> = (-50..=50).map(|i| offset + f64::from(i) / 50.0 * size).collect();
            let factors: Vec<f64> = (0..numbers.len()).map(|i| 1e-9 * (i % 7) as f64).collect();
            let mut shares = vec![0.0; numbers.len()];
            let span = Span::of(&numbers, &mut shares);
            let allowed = 2.0 * size * f64::from(f32::EPSILON) + 4.0 * f64::EPSILON * offset.abs();
            for (number, &share) in numbers.iter().zip(&shares) {
                let again = span.number(share);
                assert!((again - number).abs() <= allowed, "{number} became {again}");
            }
            let sum: f64 = numbers.iter().zip(&factors).map(|(number, factor)| number * factor).sum();
            let found = span.weighted_sum(&shares, &factors);
            let total: f64 = factors.iter().sum();
            let rounding = 1e-14 * total * (offset.abs() + size);
            assert!((found - sum).abs() <= total * allowed + rounding, "{found} {sum}");
        }
    }

    #[test]
    fn what_is_not_finite_stays_so_and_leaves_its_neighbours_alone() {
        let numbers = [1.0, f64::NAN, -2.0, f64::INFINITY, f64::NEG_INFINITY, 0.0];
        let mut shares = [0.0; 6];
        let span = Span::of(&numbers, &mut shares);
        let again = shares.map(|share| span.number(share));
        assert!(again[1].is_nan());
        assert_eq!(
            [again[0], again[2], again[3], again[4], again[5]],
            [1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, 0.0]
        );
        assert!(Span::of(&[f64::NAN; 2], &mut shares).number(shares[0]).is_nan());
        assert_eq!(Span::of(&[0.0, -0.0], &mut shares).number(shares[0]), 0.0);
    }

    #[test]
    fn scores_of_all_rows_are_near_those_in_double_precision_at_any_number_of_threads() {
        let (rows, cols) = (2 * STRETCH + 77, 3);
        let mut random = Random::new(4, 0, 0);
        let values: Vec<f64> = (0..rows * cols).map(|at| 1e6 * (at % cols) as f64 + random.normal()).collect();
        let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).expect("rows of one length"));
        for scale in [Scale::None, Scale::Standard] {
            let data = crate::data::Dataset::new(matrix.clone(), crate::data::Targets::Absent).expect("valid");
            let design =
                Scaling::fit(scale, &data, &Cancel::new()).expect("fits").apply(&matrix, None).expect("scaled");
            let weights = [0.3, -0.2, 0.15];
            let exact = design.all_scores(&weights);
            let spread = exact.iter().fold(0.0, |most: f64, score| most.max((score - exact[0]).abs()));
            let made = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
                pool.install(|| NarrowScores::new(&design, &weights))
            };
            let (one, eight) = (made(1), made(8));
            for (row, exact) in exact.iter().enumerate() {
                assert!((one.of(row) - exact).abs() <= 2e-7 * spread + 1e-9, "{row}: {} {exact}", one.of(row));
                assert_eq!(one.of(row), eight.of(row));
            }
        }
    }
}
