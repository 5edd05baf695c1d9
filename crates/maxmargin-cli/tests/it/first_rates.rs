//! The first rate that is found is near the best one, on real data.
//!
//! `MAXMARGIN_SEEDS=100 cargo test --release --workspace -- --nocapture first_rates` measures it at many seeds.

use crate::real_data::data;
use maxmargin::data::{Dataset, Targets};
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver};
use maxmargin::stream::learner;
use maxmargin::task::Intercept;
use maxmargin::train::train;
use maxmargin_io::{ReadOptions, read};
use std::io::Write as _;

const LAMBDA: f64 = 1e-4;

/// The rates to compare with.
fn rates() -> impl Iterator<Item = f64> {
    (-12..=0).map(|power: i32| f64::from(power).exp2())
}

fn seeds() -> u64 {
    std::env::var("MAXMARGIN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

fn a9a() -> Option<Dataset> {
    let file = data("a9a/a9a.gz")?;
    Some(read(&file, &ReadOptions::default()).expect("readable").data)
}

fn settings(solver: Solver, loss: Loss) -> Settings {
    let task = ClassifySettings { intercept: Intercept::Free, ..ClassifySettings::default() };
    let settings = Settings { loss, regularisation: Regularisation::Lambda(LAMBDA), ..Settings::of(task) };
    settings.with_solver(solver)
}

/// The mean form of the objective at the optimum.
fn optimum(data: &Dataset, loss: Loss) -> Result<f64> {
    let settings = Settings { tolerance: 1e-7, ..settings(Solver::Auto, loss) };
    Ok(train(data, &settings, None, &mut Silent, &Cancel::new())?.model.certificate.objective * LAMBDA)
}

/// Prints what was found at every seed, and checks the worst ratio. `excess` is that of a seed and a rate, which is found
/// if none is given.
fn compare(name: &str, mut excess: impl FnMut(u64, Option<f64>) -> f64) {
    let mut ratios = Vec::new();
    for seed in 0..seeds() {
        let best = rates().map(|rate| excess(seed, Some(rate))).fold(f64::INFINITY, f64::min);
        ratios.push((excess(seed, None) / best, best));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (worst, middle) = (ratios[ratios.len() - 1], ratios[ratios.len() / 2]);
    let above = ratios.iter().filter(|(ratio, _)| *ratio > 2.0).count();
    let said = writeln!(
        std::io::stderr(),
        "{name}: {} seeds, the cost above the optimum beside that of the best rate: median {:.2}, worst {:.2}, {above} above 2",
        ratios.len(),
        middle.0,
        worst.0,
    );
    said.expect("standard error");
    assert!(worst.0 <= 2.0, "{name}: {ratios:?}");
}

#[test]
fn the_first_rate_of_a_batch_run_is_near_the_best() {
    let Some(data) = a9a() else { return };
    for loss in [Loss::Hinge, Loss::Logistic] {
        let optimum = optimum(&data, loss).expect("trains");
        for solver in [Solver::Sgd, Solver::AveragedSgd] {
            for passes in [2, 20] {
                compare(&format!("batch, {}, {}, {passes} passes", solver.name(), loss.name()), |seed, rate| {
                    let mut settings = Settings { max_passes: passes, seed, ..settings(solver, loss) };
                    settings.stochastic.rate = rate;
                    match train(&data, &settings, None, &mut Silent, &Cancel::new()) {
                        Ok(trained) => trained.model.certificate.objective * LAMBDA / optimum - 1.0,
                        Err(_) => f64::INFINITY,
                    }
                });
            }
        }
    }
}

/// The rows in random order.
fn shuffle(rows: usize, seed: u64) -> Vec<usize> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut order: Vec<usize> = (0..rows).collect();
    for place in (1..rows).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(place, (state >> 33) as usize % (place + 1));
    }
    order
}

/// The mean form of the objective of a model of two classes.
fn objective(data: &Dataset, (weights, constant): (&[f64], f64), positive: f64, loss: Loss) -> f64 {
    let Targets::Real(targets) = data.targets() else { panic!("numbers are expected") };
    let mut scores = vec![0.0; data.rows()];
    data.matrix().scores(0..data.rows(), weights, &mut scores);
    let losses = scores.iter().zip(targets.iter()).map(|(score, target)| {
        let sign = if *target == positive { 1.0 } else { -1.0 };
        loss.value(loss.margin() - sign * (score + constant))
    });
    0.5 * LAMBDA * weights.iter().map(|w| w * w).sum::<f64>() + losses.sum::<f64>() / data.rows() as f64
}

#[test]
fn the_first_rate_of_a_stream_is_near_the_best() {
    let Some(data) = a9a() else { return };
    for loss in [Loss::Hinge, Loss::Logistic] {
        let optimum = optimum(&data, loss).expect("trains");
        for solver in [Solver::Sgd, Solver::AveragedSgd] {
            let mut shuffled: Option<(u64, Dataset)> = None;
            compare(&format!("stream, {}, {}, one pass", solver.name(), loss.name()), |seed, rate| {
                if shuffled.as_ref().is_none_or(|(own, _)| *own != seed) {
                    shuffled = Some((seed, data.select(&shuffle(data.rows(), seed)).expect("rows")));
                }
                let Some((_, rows)) = &shuffled else { return f64::INFINITY };
                let mut settings = Settings { max_passes: 1, ..settings(solver, loss) };
                settings.stochastic.rate = rate;
                let mut learner = learner(&settings, None).expect("settings");
                if learner.learn(rows, 0..rows.rows()).is_err() {
                    return f64::INFINITY;
                }
                let model = learner.model(&settings, None, None).expect("a model");
                let plain = model.plain_linear().expect("linear");
                let point = (&plain.weights[..], plain.intercept.unwrap_or(0.0));
                objective(rows, point, 1.0, loss) / optimum - 1.0
            });
        }
    }
}
