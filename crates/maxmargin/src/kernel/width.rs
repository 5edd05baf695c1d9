//! The numbers of a kernel that the user left open: the median heuristic.
//!
//! γ = 1 / median of ‖x − z‖² over random pairs of rows for the Gaussian kernel, and likewise for chi-squared distances; for
//! kernels of inner products 1 / median of ‖x‖², so that a typical product is 1.

use super::{Kernel, KernelKind, KernelSettings};
use crate::data::Design;
use crate::random::Random;

/// This use of the seed.
const PAIRS: u64 = 0x6b77_6400;

/// Pairs looked at.
const SAMPLE: usize = 1000;

const USUAL_DEGREE: u32 = 3;

impl Kernel {
    /// The kernel with all its numbers for these rows.
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
    let (rows, cols) = (design.rows() as u64, design.cols());
    let mut row = || {
        let mut values = vec![0.0; cols];
        design.fill_scaled_row(random.below(rows) as usize, &mut values);
        values
    };
    let mut sizes: Vec<f64> = (0..SAMPLE)
        .map(|_| match kind {
            KernelKind::Gaussian => row().iter().zip(&row()).map(|(x, z)| (x - z) * (x - z)).sum::<f64>(),
            KernelKind::ChiSquared => {
                let part = |(x, z): (&f64, &f64)| if x + z > 0.0 { (x - z) * (x - z) / (x + z) } else { 0.0 };
                row().iter().zip(&row()).map(part).sum::<f64>()
            }
            _ => row().iter().map(|x| x * x).sum::<f64>(),
        })
        .filter(|size| size.is_finite() && *size > 0.0)
        .collect();
    sizes.sort_unstable_by(f64::total_cmp);
    // Where all rows are the same any γ will do.
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(1.0);
    let gamma = 1.0 / median;
    if gamma.is_finite() && gamma > 0.0 { gamma } else { 1.0 }
}
