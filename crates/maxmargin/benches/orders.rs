//! The search for the most violated order of one long list, beside sorting the same scores. Prints the shortest of
//! several times. No test depends on it.
#![allow(clippy::print_stdout, clippy::expect_used)]

use maxmargin::data::{Dataset, Dense, Groups, Matrix, Targets};
use maxmargin::structured::{OrderScore, Plane, Rankings, Scores, Structure};
use rayon::ThreadPoolBuilder;
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

/// The shortest of several times, in milliseconds.
fn shortest(mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        1e3 * start.elapsed().as_secs_f64()
    };
    (0..10).map(|_| time(&mut work)).fold(f64::INFINITY, f64::min)
}

fn measure(rows: usize, relevant: f64) {
    let grades: Vec<f64> = numbers(rows, 1).iter().map(|number| f64::from(u8::from(*number < relevant))).collect();
    let noise = numbers(rows, 7);
    let scores: Vec<f64> = grades.iter().zip(&noise).map(|(grade, noise)| 0.3 * grade + noise).collect();
    let matrix = Matrix::DenseF32(Dense::new(vec![0.0f32; rows], rows, 1).expect("a column"));
    let data = Dataset::new(matrix, Targets::Real(grades.into())).and_then(|data| data.with_groups(Groups::one(rows)));
    let data = data.expect("valid");
    let sort = shortest(|| {
        let mut sorted: Vec<(f64, u32)> = scores.iter().copied().zip(0..).collect();
        sorted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        assert!(sorted[0].0 >= sorted[rows - 1].0);
    });
    println!("{rows} scores, {:.1} % relevant: sorting takes {sort:.1} ms", 100.0 * relevant);
    for measure in ["map", "ndcg", "ndcg@10", "mrr", "auc"] {
        let orders = Rankings::on(&data, measure.parse().expect("known"), OrderScore::Mean, None).expect("two grades");
        let (mut output, mut plane) = (Vec::new(), Plane::default());
        let at = Scores { rows: &scores, shared: &[] };
        let search = shortest(|| orders.most_violated(0, at, &mut output).expect("found"));
        let with_plane = shortest(|| orders.plane(0, &output, &mut plane).expect("an order"));
        println!("   {measure:<8} {search:>7.1} ms, {:.2} times as long; its plane {with_plane:.1} ms", search / sort);
    }
}

fn main() {
    // Sorting and searching use one thread each.
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        for relevant in [0.001, 0.1, 0.5] {
            measure(1_000_000, relevant);
        }
    });
}
