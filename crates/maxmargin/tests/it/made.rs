//! Small data sets for tests, and a function to train on them.

use maxmargin::data::{Csr, Dataset, Dense, Groups, Matrix, Names, Targets};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::Settings;
use maxmargin::train::{Trained, train};

/// A repeatable stream of numbers in [0, 1).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Two overlapping classes; sparse if `dense` is false. Columns have different scales and are not centred.
pub(crate) fn two_classes(rows: usize, cols: usize, dense: bool, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let truth: Vec<f64> = (0..cols).map(|_| numbers.next() - 0.5).collect();
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut score = 0.5 * numbers.next();
        for (column, truth) in truth.iter().enumerate() {
            let present = dense || numbers.next() < 0.3;
            let value =
                if present { (numbers.next() + 0.3 * (column % 3) as f64) * (1.0 + (column % 4) as f64) } else { 0.0 };
            score += truth * value / (1.0 + (column % 4) as f64);
            values.push(value);
        }
        targets.push(score);
    }
    let mut sorted = targets.clone();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted[rows * 3 / 5];
    targets.iter_mut().for_each(|score| *score = if *score > cut { 1.0 } else { -1.0 });
    let matrix = if dense {
        Matrix::DenseF64(Dense::new(values, rows, cols).unwrap())
    } else {
        let (mut starts, mut indices, mut kept) = (vec![0u64], Vec::new(), Vec::new());
        for row in values.chunks(cols) {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                indices.push(column as u16);
                kept.push(value as f32);
            }
            starts.push(indices.len() as u64);
        }
        Matrix::Csr16F32(Csr::new(starts, indices, kept, cols).unwrap())
    };
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

/// Graded groups with `levels` distinct grades, or with real-valued targets if `levels` is 0.
pub(crate) fn graded(groups: usize, size: usize, cols: usize, levels: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let truth: Vec<f64> = (0..cols).map(|_| numbers.next() - 0.5).collect();
    let rows = groups * size;
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> = (0..cols).map(|_| numbers.next() * 2.0).collect();
        let score = row.iter().zip(&truth).map(|(x, w)| x * w).sum::<f64>() + 0.6 * (numbers.next() - 0.5);
        targets.push(if levels == 0 {
            score
        } else {
            ((score + 1.5) / 3.0 * levels as f64).floor().clamp(0.0, levels as f64 - 1.0)
        });
        values.extend(row);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    let starts: Vec<u64> = (0..=groups).map(|group| (group * size) as u64).collect();
    let names: Names = (0..groups).map(|group| format!("q{group}")).collect();
    Dataset::new(matrix, Targets::Real(targets.into()))
        .unwrap()
        .with_groups(Groups::new(starts, names).unwrap())
        .unwrap()
}

pub(crate) fn fit(data: &Dataset, settings: &Settings) -> Trained {
    train(data, settings, None, &mut Silent, &Cancel::new()).unwrap()
}
