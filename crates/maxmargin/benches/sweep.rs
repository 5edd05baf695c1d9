//! The ranking sweep alone: value and slopes of one long list of distinct targets, and of many graded queries. Prints
//! the shortest of several times. No test depends on it.
#![allow(clippy::print_stdout, clippy::expect_used)]

use maxmargin::data::{Dataset, Dense, Groups, Matrix, Targets};
use maxmargin::loss::Loss;
use maxmargin::run::Cancel;
use maxmargin::task::{Objective, PairWeight, Place, Ranking, Slopes};
use std::time::Instant;

/// Numbers that look random, the same in every run.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| next()).collect()
}

fn measure(name: &str, targets: Vec<f64>, groups: Groups) {
    let rows = targets.len();
    let scores: Vec<f64> = targets.iter().zip(numbers(rows, 7)).map(|(y, noise)| 0.3 * y + 2.0 * noise).collect();
    let matrix = Matrix::DenseF32(Dense::new(vec![0.0f32; rows], rows, 1).expect("a column"));
    let data = Dataset::new(matrix, Targets::Real(targets.into())).and_then(|data| data.with_groups(groups));
    let task = Ranking::new(&data.expect("valid"), Loss::SquaredHinge, PairWeight::Equal, 1.0).expect("pairs");
    let mut memos: Vec<_> = (0..task.parts()).map(|_| Default::default()).collect();
    let (mut slope, cancel) = (vec![0.0; rows], Cancel::new());
    let mut least = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for (part, memo) in memos.iter_mut().enumerate() {
            let rows = task.rows(part);
            let at = Place { part, scores: &scores[rows.clone()], thresholds: &[], cancel: &cancel };
            let slopes = Slopes { scores: &mut slope[rows], thresholds: &mut [] };
            task.evaluate(&at, slopes, memo).expect("a value");
        }
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{name}: {:.1} ms for value and slopes over {} pairs, {:.1} ns a row",
        1e3 * least,
        task.pairs(),
        1e9 * least / rows as f64
    );
}

fn main() {
    let rows = 500_000;
    measure("one list of 500,000 distinct targets, two threads within", numbers(rows, 1), Groups::one(rows));
    let (queries, documents) = (10_000, 120);
    let grades: Vec<f64> = numbers(queries * documents, 2).into_iter().map(|x| (5.0 * x * x).floor()).collect();
    let starts = (0..=queries as u64).map(|query| query * documents as u64).collect::<Vec<_>>();
    let names = (0..queries).map(|query| query.to_string()).collect();
    measure(
        "10,000 queries of 120 documents in 5 grades, one thread",
        grades,
        Groups::new(starts, names).expect("groups"),
    );
}
