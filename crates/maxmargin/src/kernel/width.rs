//! Default parameters of a kernel: the median heuristic.
//!
//! γ = 1 / median of ‖x − z‖² over random pairs of rows for the Gaussian kernel, and likewise for chi-squared
//! distances; for kernels of inner products 1 / median of ‖x‖², so that a typical product is 1.

use super::{Kernel, KernelKind, KernelSettings};
use crate::data::Design;
use crate::random::Random;

/// The stream of random numbers for this use of the seed.
const PAIRS: u64 = 0x6b77_6400;

/// Pairs in the sample.
const SAMPLE: usize = 1000;

const USUAL_DEGREE: u32 = 3;

impl Kernel {
    /// The kernel with all its parameters for these rows.
    pub(crate) fn resolved(settings: &KernelSettings, design: &Design, seed: u64) -> Kernel {
        let gamma = || settings.gamma.unwrap_or_else(|| typical_gamma(settings.kind, design, seed));
        let coef0 = settings.coef0.unwrap_or(0.0);
        match settings.kind {
            KernelKind::Linear => Kernel::Linear,
            KernelKind::Polynomial => {
                Kernel::Polynomial { gamma: gamma(), coef0, degree: settings.degree.unwrap_or(USUAL_DEGREE) }
            }
            KernelKind::Gaussian => Kernel::Gaussian { gamma: gamma() },
            KernelKind::Sigmoid => Kernel::Sigmoid { gamma: gamma(), coef0 },
            KernelKind::ChiSquared => Kernel::ChiSquared { gamma: gamma() },
            KernelKind::Intersection => Kernel::Intersection,
            KernelKind::Precomputed => Kernel::Precomputed,
            KernelKind::Custom => settings.custom.clone().map_or(Kernel::Linear, Kernel::Custom),
        }
    }
}

/// γ by the median of a sample.
pub(crate) fn typical_gamma(kind: KernelKind, design: &Design, seed: u64) -> f64 {
    let mut random = Random::new(seed, PAIRS, 0);
    let rows = design.rows() as u64;
    let (mut one, mut other, mut dense) = (Vec::new(), Vec::new(), Vec::new());
    let mut draw = |entries: &mut Vec<(usize, f64)>| {
        let row = random.below(rows) as usize;
        if design.shift().is_none() {
            return design.scaled_entries(row, entries);
        }
        // A shifted row has an entry in every column.
        dense.clear();
        dense.resize(design.cols(), 0.0);
        design.fill_scaled_row(row, &mut dense);
        entries.clear();
        entries.extend(dense.iter().copied().enumerate());
    };
    let mut sizes: Vec<f64> = (0..SAMPLE)
        .map(|_| {
            draw(&mut one);
            if !matches!(kind, KernelKind::Gaussian | KernelKind::ChiSquared) {
                return one.iter().map(|(_, x)| x * x).sum();
            }
            draw(&mut other);
            sum_over_both(&one, &other, |x, z| match kind {
                KernelKind::ChiSquared if x + z > 0.0 => (x - z) * (x - z) / (x + z),
                KernelKind::ChiSquared => 0.0,
                _ => (x - z) * (x - z),
            })
        })
        .filter(|size| size.is_finite() && *size > 0.0)
        .collect();
    sizes.sort_unstable_by(f64::total_cmp);
    // If all rows are the same, any γ will do.
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(1.0);
    let gamma = 1.0 / median;
    if gamma.is_finite() && gamma > 0.0 { gamma } else { 1.0 }
}

/// A sum over the columns in which at least one of two rows has an entry.
fn sum_over_both(one: &[(usize, f64)], other: &[(usize, f64)], part: impl Fn(f64, f64) -> f64) -> f64 {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut sum = 0.0;
    loop {
        let column = match (one.peek(), other.peek()) {
            (Some(x), Some(z)) => x.0.min(z.0),
            (Some(entry), None) | (None, Some(entry)) => entry.0,
            (None, None) => return sum,
        };
        let x = one.next_if(|entry| entry.0 == column).map_or(0.0, |entry| entry.1);
        let z = other.next_if(|entry| entry.0 == column).map_or(0.0, |entry| entry.1);
        sum += part(x, z);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_either_row_count_once() {
        let one = [(0, 1.0), (3, 2.0), (7, -1.0)];
        let other = [(3, 5.0), (4, 2.0), (7, -1.0), (9, 3.0)];
        let distance = |a: &[(usize, f64)], b: &[(usize, f64)]| sum_over_both(a, b, |x, z| (x - z) * (x - z));
        assert_eq!(distance(&one, &other), 1.0 + 9.0 + 4.0 + 0.0 + 9.0);
        assert_eq!(distance(&other, &one), 23.0);
        assert_eq!((distance(&one, &[]), distance(&[], &[])), (6.0, 0.0));
    }
}
