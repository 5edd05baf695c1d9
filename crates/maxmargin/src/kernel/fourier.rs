//! Random Fourier features for the Gaussian kernel.
//!
//! ```text
//! φ(x) = √(2/D) · (cos ω_1·x, …, cos ω_{D/2}·x, sin ω_1·x, …, sin ω_{D/2}·x),   ω ~ N(0, 2γ I)
//! ```
//! so that φ(x)·φ(z) = (2/D) Σ cos ω·(x − z), whose mean is exp(−γ‖x − z‖²) (Rahimi and Recht, Random features for
//! large-scale kernel machines, NIPS 2007). With pairs of cosine and sine every row has length 1 exactly, and for this
//! kernel the variance, (1 + k(2Δ) − 2k(Δ)²)/D, is nowhere above that of D cosines with random phases, (1 + k(2Δ)/2 −
//! k(Δ)²)/D (Sutherland and Schneider, On the error of random Fourier features, UAI 2015).
//!
//! The error falls like 1/√D. The map does not depend on the data, so a model keeps only the seed. Cost per row: D/2
//! products of length d and as many cosines and sines. Frequencies take d · D/2 numbers.

use super::waves::waves;
use crate::data::Design;
use crate::parallel;
use crate::random::Random;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use std::ops::Range;
use std::sync::OnceLock;

/// The stream of random numbers for this use of the seed.
const FREQUENCIES: u64 = 0x666f_7572;

/// The maximum number of values in the frequencies: 2 GiB.
const MOST_NUMBERS: usize = 1 << 28;

#[derive(Debug)]
pub(super) struct Fourier {
    gamma: f64,
    cols: usize,
    /// D/2
    count: usize,
    seed: u64,
    /// One row per column of the data, with one number per frequency.
    frequencies: OnceLock<Vec<f64>>,
}

impl Fourier {
    /// A map of rows with `cols` columns to `features` features, an even number. None if there would be too many
    /// frequencies.
    pub(super) fn new(gamma: f64, cols: usize, features: usize, seed: u64) -> Option<Fourier> {
        let count = features / 2;
        let fits = count > 0 && cols.saturating_mul(count) <= MOST_NUMBERS;
        fits.then(|| Fourier { gamma, cols, count, seed, frequencies: OnceLock::new() })
    }

    pub(super) fn gamma(&self) -> f64 {
        self.gamma
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn features(&self) -> usize {
        2 * self.count
    }

    fn frequencies(&self) -> &[f64] {
        if let Some(frequencies) = self.frequencies.get() {
            return frequencies;
        }
        let deviation = (2.0 * self.gamma).sqrt();
        let mut values = vec![0.0; self.cols * self.count];
        // One random stream per column, so the result does not depend on the thread.
        parallel::chunks(&mut values, self.count, |column, values| {
            let mut random = Random::new(self.seed, FREQUENCIES, column as u64);
            values.iter_mut().for_each(|value| *value = deviation * random.normal());
        });
        // Computed before the cell is locked: a thread that waits for others here may enter again. Two threads compute
        // the same values.
        self.frequencies.get_or_init(|| values)
    }

    /// Computes the frequencies if they are missing.
    pub(super) fn make_ready(&self) {
        self.frequencies();
    }

    /// The same. Returns how many numbers a row needs as work space.
    pub(super) fn prepare(&self, design: &Design) -> usize {
        self.make_ready();
        if has_entries(design) { 0 } else { self.cols }
    }

    /// Features of a range of rows, row by row.
    pub(super) fn map(&self, design: &Design, rows: Range<usize>, out: &mut [f32]) {
        let (frequencies, count, cols) = (self.frequencies(), self.count, self.cols);
        let mut angles = vec![0.0; rows.len() * count];
        if has_entries(design) {
            let mut entries = Vec::new();
            for (row, angles) in rows.zip(angles.chunks_exact_mut(count)) {
                design.scaled_entries(row, &mut entries);
                for &(column, value) in &entries {
                    let frequencies = &frequencies[column * count..(column + 1) * count];
                    angles.iter_mut().zip(frequencies).for_each(|(angle, frequency)| *angle += value * frequency);
                }
            }
        } else if cols > 0 {
            let mut values = vec![0.0; rows.len() * cols];
            let height = rows.len();
            rows.zip(values.chunks_exact_mut(cols)).for_each(|(row, values)| design.fill_scaled_row(row, values));
            matmul(
                MatMut::from_row_major_slice_mut(&mut angles, height, count),
                Accum::Replace,
                MatRef::from_row_major_slice(&values, height, cols),
                MatRef::from_row_major_slice(frequencies, cols, count),
                1.0,
                Par::Seq,
            );
        }
        let scale = (1.0 / count as f64).sqrt();
        for (angles, out) in angles.chunks_exact(count).zip(out.chunks_exact_mut(2 * count)) {
            let (cosines, sines) = out.split_at_mut(count);
            waves(angles, scale, cosines, sines);
        }
    }
}

/// Whether rows are stored as sparse entries.
fn has_entries(design: &Design) -> bool {
    design.shift().is_none() && !design.matrix().is_dense()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Scaling};

    fn design(rows: usize, cols: usize, sparse: bool) -> Design {
        let mut random = Random::new(9, 0, 0);
        let values: Vec<f64> =
            (0..rows * cols).map(|_| if random.chance(0.5) { random.normal() } else { 0.0 }).collect();
        let matrix = if sparse {
            let entries = |row: &[f64]| row.iter().copied().enumerate().filter(|entry| entry.1 != 0.0).collect();
            let lists: Vec<Vec<(usize, f64)>> = values.chunks(cols).map(entries).collect();
            Matrix::from_rows(&lists, cols).expect("valid")
        } else {
            Matrix::DenseF64(Dense::new(values, rows, cols).expect("valid"))
        };
        assert_eq!(matrix.is_dense(), !sparse);
        Scaling::default().apply(&matrix, None).expect("valid")
    }

    fn kernel_error(features: usize, seed: u64) -> f64 {
        let (rows, cols, gamma) = (60, 8, 0.15);
        let design = design(rows, cols, false);
        let map = Fourier::new(gamma, cols, features, seed).expect("small");
        let mut mapped = vec![0f32; rows * features];
        map.map(&design, 0..rows, &mut mapped);
        let row = |at: usize| {
            let mut values = vec![0.0; cols];
            design.fill_scaled_row(at, &mut values);
            values
        };
        let mut squares = 0.0;
        for x in 0..rows {
            for z in 0..rows {
                let distance: f64 = row(x).iter().zip(row(z)).map(|(x, z)| (x - z) * (x - z)).sum();
                let (a, b) = (&mapped[x * features..(x + 1) * features], &mapped[z * features..(z + 1) * features]);
                let product: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum();
                if x == z {
                    assert!((product - 1.0).abs() < 1e-5, "{product}");
                }
                squares += (product - (-gamma * distance).exp()).powi(2);
            }
        }
        (squares / (rows * rows) as f64).sqrt()
    }

    #[test]
    fn the_error_of_the_kernel_falls_like_one_over_the_root_of_the_features() {
        let mean = |features: usize| (0..8).map(|seed| kernel_error(features, seed)).sum::<f64>() / 8.0;
        let (few, many) = (mean(64), mean(64 * 16));
        assert!(few < 0.2 && (few / many - 4.0).abs() < 1.0, "{few} {many}");
    }

    #[test]
    fn sparse_and_dense_rows_map_alike() {
        let (dense, sparse) = (design(20, 6, false), design(20, 6, true));
        let map = Fourier::new(0.3, 6, 10, 1).expect("small");
        let (mut a, mut b) = (vec![0f32; 200], vec![0f32; 200]);
        map.map(&dense, 0..20, &mut a);
        map.map(&sparse, 0..20, &mut b);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }

    #[test]
    fn too_many_frequencies_are_refused_before_any_is_made() {
        assert!(Fourier::new(1.0, 1 << 27, 1 << 17, 0).is_none());
    }
}
