//! Comparisons learned one after the other: updates per second over pairs in memory. Prints the best of several runs.
//! No test depends on it.
#![allow(clippy::print_stdout, clippy::expect_used)]

use maxmargin::data::{Csr, Dataset, Dense, Matrix, Outcome, Pairs, Targets};
use maxmargin::online::ComparisonLearner;
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use std::time::Instant;

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Pairs of neighbouring rows, whose outcomes follow from hidden weights, a threshold and noise.
fn compared(matrix: Matrix, numbers: &mut Numbers) -> Dataset {
    let truth: Vec<f64> = (0..matrix.cols()).map(|_| numbers.next() - 0.5).collect();
    let mut scores = vec![0.0; matrix.rows()];
    matrix.scores(0..matrix.rows(), &truth, &mut scores);
    let spread = (scores.iter().map(|score| score * score).sum::<f64>() / scores.len() as f64).sqrt();
    let outcomes: Vec<Outcome> = scores
        .chunks(2)
        .map(|sides| {
            let z = (sides[1] - sides[0]) / spread + 0.5 * (numbers.next() - 0.5);
            Outcome::of_sign(i8::from(z > 0.5) - i8::from(z < -0.5))
        })
        .collect();
    let left: Vec<u32> = (0..outcomes.len() as u32).map(|pair| 2 * pair).collect();
    let right: Vec<u32> = left.iter().map(|row| row + 1).collect();
    let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("pairs");
    Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("data")
}

fn measure(name: &str, data: &Dataset) {
    let pairs = data.pairs().expect("pairs").len();
    for (solver, regularisation) in [
        (Solver::PassiveAggressive, Regularisation::C(0.1)),
        (Solver::Sgd, Regularisation::Lambda(1e-4)),
        (Solver::AveragedSgd, Regularisation::Lambda(1e-4)),
    ] {
        let settings = Settings { regularisation, ..Settings::new(Task::Compare).with_solver(solver) };
        let (mut least, mut error) = (f64::INFINITY, 0.0);
        for _ in 0..5 {
            let mut learner = ComparisonLearner::new(&settings).expect("settings");
            let start = Instant::now();
            learner.learn(data, 0..pairs).expect("finite");
            least = least.min(start.elapsed().as_secs_f64());
            error = learner.progress().error().expect("pairs");
        }
        println!(
            "{name}, {}: {:.2} million updates a second, {:.0} ns each, progressive error {error:.3}",
            solver.name(),
            1e-6 * pairs as f64 / least,
            1e9 * least / pairs as f64
        );
    }
}

fn main() {
    let mut numbers = Numbers(7);
    for cols in [4, 16, 64] {
        let rows = 16_000_000 / cols;
        let values: Vec<f32> = (0..rows * cols).map(|_| numbers.next() as f32 - 0.5).collect();
        let matrix = Matrix::DenseF32(Dense::new(values, rows, cols).expect("rows"));
        measure(&format!("{cols} dense features, f32"), &compared(matrix, &mut numbers));
    }
    let (rows, entries, cols) = (60_000, 150, 47_000);
    let (mut starts, mut indices, mut values) = (vec![0u64], Vec::new(), Vec::new());
    for _ in 0..rows {
        // Features with low numbers are in many rows, like common words.
        let mut row: Vec<u16> = (0..entries).map(|_| (cols as f64 * numbers.next().powi(3)) as u16).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| numbers.next() as f32 / 12.0));
        indices.extend(row);
        starts.push(indices.len() as u64);
    }
    let mean = indices.len() / rows;
    let matrix = Matrix::Csr16F32(Csr::new(starts, indices, values, cols).expect("rows"));
    measure(&format!("{mean} non-zeros a side of {cols}"), &compared(matrix, &mut numbers));
    let (items, pairs) = (10_000, 2_000_000);
    let ones = Csr::new(
        (0..=items as u64).collect::<Vec<_>>(),
        (0..items as u16).collect::<Vec<_>>(),
        vec![1.0f32; items],
        items,
    );
    let pick = |numbers: &mut Numbers| (items as f64 * numbers.next()) as u32;
    let sides: Vec<(u32, u32)> =
        (0..pairs).map(|_| (pick(&mut numbers), pick(&mut numbers))).filter(|pair| pair.0 != pair.1).collect();
    let outcomes: Vec<Outcome> = sides
        .iter()
        .map(|&(left, right)| {
            let z = (f64::from(right) - f64::from(left)) / items as f64 + 0.4 * (numbers.next() - 0.5);
            Outcome::of_sign(i8::from(z > 0.2) - i8::from(z < -0.2))
        })
        .collect();
    let (left, right): (Vec<u32>, Vec<u32>) = sides.into_iter().unzip();
    let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("pairs");
    let data = Dataset::new(Matrix::Csr16F32(ones.expect("items")), Targets::Absent);
    measure("10,000 items without features", &data.and_then(|data| data.with_pairs(pairs)).expect("data"));
}
