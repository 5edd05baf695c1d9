//! The Nyström map: kernel values with a few rows, the landmarks, transformed so that inner products are kernel values.
//!
//! ```text
//! K = L Lᵀ,  K_ab = k(z_a, z_b) over landmarks z;   φ(x) = L⁻¹ k(x),  k(x)_a = k(z_a, x);   φ(x)·φ(y) = k(x)ᵀ K⁻¹ k(y)
//! ```
//! which is k(x, y) where one of both lies in the span of the landmarks, and its projection otherwise (Williams and
//! Seeger, Using the Nyström method to speed up kernel machines, NIPS 2000).
//!
//! **Landmarks** are distinct rows drawn with equal probability. A Cholesky factorisation handles them in their order.
//! A landmark is dropped if less than 1e-8 of its own k(z, z) is left after those before it (a copy, a mixture, or the
//! effect of an indefinite kernel). Then K of the others is factored again, until all stay. No jitter is added: kernel
//! values with the remaining landmarks are exact. For scores, weights w of the map fold into L⁻ᵀw, one number per
//! landmark.
//!
//! Everything is f64 until a feature is stored. Cost: m³/3 for the factor, and for a row m kernel values and m² for the
//! triangular solve. Landmarks are not chosen by how much they explain.

use super::{Kernel, Points, Terms};
use crate::data::{Design, Matrix, Scaling};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::Random;
use crate::run::Cancel;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

/// The stream of random numbers for this use of the seed.
const LANDMARKS: u64 = 0x6e79_7374;

/// A landmark with less than this share left after the others adds nothing new in double precision.
const DEPENDENT: f64 = 1e-8;

#[derive(Debug)]
pub(super) struct Nystrom {
    kernel: Kernel,
    /// The landmarks after scaling.
    landmarks: Matrix,
    ready: OnceLock<Ready>,
}

#[derive(Debug)]
struct Ready {
    points: Points,
    ids: Vec<usize>,
    /// L
    factor: Mat<f64>,
}

impl Nystrom {
    /// Draws `count` rows, or takes all, and keeps those that are independent of the others.
    pub(super) fn drawn(kernel: Kernel, design: &Design, count: usize, seed: u64, cancel: &Cancel) -> Result<Nystrom> {
        let drawn = draw(design.rows(), count, seed);
        let mut landmarks = design.copied(&drawn)?;
        // If any were dropped, factor again, exactly as a loaded model does. The rounding then differs, so a landmark
        // that barely stayed may have to go. One that stays by little is not tested again.
        let mut least = DEPENDENT;
        loop {
            let Factored { kept, .. } = factor(&kernel, &points_of(&landmarks, &kernel)?, least, cancel)?;
            if kept.is_empty() {
                return Err(Error::new(Code::BadSetting, "no row has a positive kernel value with itself")
                    .help("use ⟦kernel=gaussian⟧, or other parameters for this kernel"));
            }
            if kept.len() == landmarks.rows() {
                break;
            }
            landmarks = landmarks.select(&kept);
            least = 0.01 * DEPENDENT;
        }
        let made = Nystrom { kernel, landmarks, ready: OnceLock::new() };
        made.ready(cancel)?;
        Ok(made)
    }

    /// A map from stored landmarks.
    pub(super) fn stored(kernel: Kernel, landmarks: Matrix) -> Nystrom {
        Nystrom { kernel, landmarks, ready: OnceLock::new() }
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(super) fn landmarks(&self) -> &Matrix {
        &self.landmarks
    }

    fn ready(&self, cancel: &Cancel) -> Result<&Ready> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let points = points_of(&self.landmarks, &self.kernel)?;
        let Factored { kept, factor } = factor(&self.kernel, &points, 0.0, cancel)?;
        if kept.len() != points.rows() {
            return Err(Error::new(Code::DamagedModel, "the landmarks of the model depend on each other")
                .help("train it again"));
        }
        Ok(self.ready.get_or_init(|| Ready { points, ids: kept, factor }))
    }

    /// Computes the factor if it is missing, and returns how many numbers a row needs as work space.
    pub(super) fn prepare(&self, cancel: &Cancel) -> Result<usize> {
        let points = &self.ready(cancel)?.points;
        Ok(if points.is_sparse() { 0 } else { self.landmarks.cols() })
    }

    /// Features of a range of rows, row by row.
    pub(super) fn map(&self, design: &Design, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let Ready { points, ids, factor } = self.ready(&Cancel::new())?;
        let (count, width) = (rows.len(), ids.len());
        let met = points.like_run(design, rows, &Cancel::new());
        let mut values = vec![0.0; width * count];
        let mut outs: Vec<&mut [f64]> = values.chunks_exact_mut(count.max(1)).collect();
        met.fill_columns(&self.kernel, points, ids, 0..count, &mut outs);
        let block = MatMut::from_row_major_slice_mut(&mut values, width, count);
        solve_lower_triangular_in_place(factor.as_ref(), block, Par::Seq);
        for (at, feature) in values.chunks_exact(count.max(1)).enumerate() {
            feature.iter().enumerate().for_each(|(row, value)| out[row * width + at] = *value as f32);
        }
        Ok(())
    }

    /// The coefficients of each landmark in the scores, from weights of the map.
    pub(super) fn fold(&self, weights: &[f64], outputs: usize) -> Result<Vec<f64>> {
        let factor = self.ready(&Cancel::new())?.factor.transpose();
        let rows = weights.len() / outputs.max(1);
        let mut folded = vec![0.0; weights.len()];
        for output in 0..outputs {
            let mut own: Vec<f64> = weights.iter().skip(output).step_by(outputs).copied().collect();
            let column = MatMut::from_column_major_slice_mut(&mut own, rows, 1);
            solve_upper_triangular_in_place(factor, column, Par::Seq);
            folded.iter_mut().skip(output).step_by(outputs).zip(own).for_each(|(folded, own)| *folded = own);
        }
        Ok(folded)
    }

    /// Scores of all rows, from folded weights.
    pub(super) fn scores(&self, folded: &[f64], outputs: usize, design: &Design, cancel: &Cancel) -> Result<Vec<f64>> {
        let Ready { points, ids, .. } = self.ready(cancel)?;
        let terms = Terms { ids, coefficients: folded, outputs };
        Ok(terms.scores(&self.kernel, points, &points.like(design, cancel), cancel))
    }
}

fn points_of(landmarks: &Matrix, kernel: &Kernel) -> Result<Points> {
    let design = Scaling::default().apply(landmarks, None)?;
    Ok(Points::in_double(&design, kernel))
}

/// Distinct rows, ascending. Every set of rows is equally likely (Floyd's method).
fn draw(rows: usize, count: usize, seed: u64) -> Vec<usize> {
    if count >= rows {
        return (0..rows).collect();
    }
    let mut random = Random::new(seed, LANDMARKS, 0);
    let mut drawn = BTreeSet::new();
    for last in rows - count..rows {
        let row = random.below(last as u64 + 1) as usize;
        if !drawn.insert(row) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

struct Factored {
    /// The landmarks that are kept.
    kept: Vec<usize>,
    /// The lower factor of their kernel matrix.
    factor: Mat<f64>,
}

/// Cholesky factorisation, panel by panel. It leaves out a landmark with at most the share `least` of itself left.
fn factor(kernel: &Kernel, points: &Points, least: f64, cancel: &Cancel) -> Result<Factored> {
    /// Columns eliminated one by one before all others are updated at once.
    const PANEL: usize = 64;
    /// Rows that one thread updates; fixed, so that the number of threads does not change the result.
    const ROWS: usize = 128;
    let count = points.rows();
    let all: Vec<usize> = (0..count).collect();
    let mut values = vec![0.0; count * count];
    points.fill(kernel, points, &all, values.chunks_exact_mut(count.max(1)).collect());
    let own = points.diagonal(kernel);
    own.iter().enumerate().for_each(|(at, &own)| values[at * count + at] = own);
    let mut kept: Vec<usize> = Vec::with_capacity(count);
    for start in (0..count).step_by(PANEL) {
        cancel.check()?;
        let end = (start + PANEL).min(count);
        // Row by row within the panel's columns. The columns kept so far come first, already eliminated.
        let mut stays = [false; PANEL];
        for column in start..end {
            let left = values[column * count + column];
            // A NaN is left out too.
            if !(left > least * own[column] && left > 0.0 && left.is_finite()) {
                continue;
            }
            stays[column - start] = true;
            let root = left.sqrt();
            let pivot: [f64; PANEL] = std::array::from_fn(|at| {
                let row = start + at;
                if row > column && row < end { values[row * count + column] / root } else { 0.0 }
            });
            values[column * count + column] = root;
            parallel::chunks(&mut values[(column + 1) * count..], ROWS * count, |_, rows| {
                for row in rows.chunks_exact_mut(count) {
                    let entry = row[column] / root;
                    row[column] = entry;
                    for (value, pivot) in row[column + 1..end].iter_mut().zip(&pivot[column + 1 - start..]) {
                        *value -= entry * pivot;
                    }
                }
            });
        }
        kept.extend((start..end).filter(|column| stays[column - start]));
        let columns: Vec<usize> = (start..end).filter(|column| stays[column - start]).collect();
        if end == count || columns.is_empty() {
            continue;
        }
        // The panel's columns below it, side by side: all others are updated with them.
        let below: Vec<f64> = (end..count)
            .flat_map(|row| columns.iter().map(move |column| row * count + column))
            .map(|at| values[at])
            .collect();
        let below = MatRef::from_row_major_slice(&below, count - end, columns.len());
        parallel::chunks(&mut values[end * count..], ROWS * count, |chunk, rows| {
            let (first, height) = (chunk * ROWS, rows.len() / count);
            let block = MatMut::from_row_major_slice_mut(rows, height, count);
            // Above the diagonal only the square that crosses it is needed.
            let block = block.subcols_mut(end, first + height);
            let (left, right) = (below.subrows(first, height), below.subrows(0, first + height));
            matmul(block, Accum::Add, left, right.transpose(), -1.0, Par::Seq);
        });
    }
    let factor = Mat::from_fn(kept.len(), kept.len(), |row, column| {
        if column <= row { values[kept[row] * count + kept[column]] } else { 0.0 }
    });
    Ok(Factored { kept, factor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    fn rows(count: usize, cols: usize) -> Vec<f64> {
        let mut random = Random::new(3, 0, 0);
        (0..count * cols).map(|_| random.normal()).collect()
    }

    fn design(values: Vec<f64>, cols: usize) -> Design {
        let matrix = Matrix::DenseF64(Dense::new(values.clone(), values.len() / cols, cols).expect("valid"));
        Scaling::default().apply(&matrix, None).expect("valid")
    }

    const KERNEL: Kernel = Kernel::Gaussian { gamma: 0.2 };

    fn value(x: &[f64], z: &[f64]) -> f64 {
        (-0.2 * x.iter().zip(z).map(|(x, z)| (x - z) * (x - z)).sum::<f64>()).exp()
    }

    #[test]
    fn the_factor_multiplies_out_to_the_kernel_whatever_the_panels() {
        for count in [1, 5, 64, 65, 200, 300] {
            let values = rows(count, 6);
            let points = Points::in_double(&design(values.clone(), 6), &KERNEL);
            let Factored { kept, factor } = factor(&KERNEL, &points, DEPENDENT, &Cancel::new()).expect("factored");
            assert_eq!(kept.len(), count);
            for a in 0..count {
                for b in 0..=a {
                    let product: f64 = (0..=b).map(|at| factor[(a, at)] * factor[(b, at)]).sum();
                    let expected = value(&values[a * 6..a * 6 + 6], &values[b * 6..b * 6 + 6]);
                    assert!((product - expected).abs() < 1e-12, "{count}: {a} {b}: {product} {expected}");
                }
            }
        }
    }

    #[test]
    fn copies_are_dropped_wherever_they_stand() {
        let distinct = rows(90, 5);
        let mut values = distinct.clone();
        // Copies behind, between and in the next panel.
        for copied in [3usize, 3, 50, 89, 0, 7, 7, 7] {
            values.extend_from_slice(&distinct[copied * 5..copied * 5 + 5]);
        }
        values.splice(10..10, distinct[..5].to_vec());
        let map = Nystrom::drawn(KERNEL, &design(values, 5), 1000, 0, &Cancel::new()).expect("drawn");
        assert_eq!(map.landmarks().rows(), 90);
    }

    #[test]
    fn drawn_rows_are_distinct_and_every_row_has_its_chance() {
        let mut counts = vec![0; 20];
        for seed in 0..4000 {
            let drawn = draw(20, 5, seed);
            assert!(drawn.len() == 5 && drawn.is_sorted_by(|a, b| a < b));
            drawn.into_iter().for_each(|row| counts[row] += 1);
        }
        // 1000 each; five standard deviations are 137.
        assert!(counts.iter().all(|count| (863..1137).contains(count)), "{counts:?}");
        assert_eq!(draw(3, 5, 0), [0, 1, 2]);
    }

    /// k(x)ᵀ K⁻¹ k(y) with K⁻¹ by Gauss and Jordan.
    #[test]
    fn inner_products_are_those_of_the_written_out_formula() {
        let values = rows(40, 4);
        let row = |at: usize| &values[at * 4..at * 4 + 4];
        let design = design(values.clone(), 4);
        let map = Nystrom::drawn(KERNEL, &design, 12, 5, &Cancel::new()).expect("drawn");
        let chosen = draw(40, 12, 5);
        let mut table: Vec<Vec<f64>> = (0..12)
            .map(|a| {
                let kernel = (0..12).map(|b| value(row(chosen[a]), row(chosen[b])));
                kernel.chain((0..12).map(|b| f64::from(u8::from(a == b)))).collect()
            })
            .collect();
        for pivot in 0..12 {
            let head = table[pivot][pivot];
            table[pivot].iter_mut().for_each(|value| *value /= head);
            let pivot_row = table[pivot].clone();
            for (_, other) in table.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
                let factor = other[pivot];
                other.iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
        let mut features = vec![0f32; 40 * 12];
        map.map(&design, 0..40, &mut features).expect("mapped");
        let weights: Vec<f64> = (0..12).map(|at| f64::from(at) - 5.0).collect();
        let scores = map.scores(&map.fold(&weights, 1).expect("folded"), 1, &design, &Cancel::new()).expect("scores");
        for (x, &score) in scores.iter().enumerate() {
            let phi = |at: usize| features[at * 12..at * 12 + 12].iter().map(|value| f64::from(*value));
            for y in 0..40 {
                let product: f64 = phi(x).zip(phi(y)).map(|(a, b)| a * b).sum();
                let expected: f64 = (0..12)
                    .flat_map(|a| (0..12).map(move |b| (a, b)))
                    .map(|(a, b)| value(row(x), row(chosen[a])) * table[a][12 + b] * value(row(y), row(chosen[b])))
                    .sum();
                assert!((product - expected).abs() < 1e-6, "{x} {y}: {product} {expected}");
            }
            let expected: f64 = phi(x).zip(&weights).map(|(feature, weight)| feature * weight).sum();
            assert!((score - expected).abs() < 1e-5, "{x}: {score} {expected}");
        }
    }
}
