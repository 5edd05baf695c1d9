//! Nu instead of C: results match an independent solver, the properties of ν hold, and impossible ν are refused.

use crate::kernels::{Block, program, row, value};
use crate::made::{fit, two_classes};
use crate::pairs::compared;
use maxmargin::data::{Dataset, Dense, Matrix, Pairs, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Regularisation, Settings, Task};
use maxmargin::task::Intercept;
use maxmargin::train::train;

fn gaussian() -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.3), ..KernelSettings::default() }
}

fn settings(task: Task, nu: f64) -> Settings {
    Settings {
        loss: Loss::Hinge,
        kernel: gaussian(),
        regularisation: Regularisation::Nu(nu),
        tolerance: 1e-6,
        max_passes: 100_000,
        ..Settings::new(task)
    }
}

/// Checks a model against the ν problem solved by the referee, and checks the properties of ν. `blocks` have weights as
/// costs.
fn assert_solved(data: &Dataset, settings: &Settings, blocks: &[Block]) -> Model {
    const ROUNDING: f64 = 2e-6;
    let Regularisation::Nu(nu) = settings.regularisation else { panic!("a share") };
    let rows: Vec<Vec<f64>> = (0..data.rows()).map(|at| row(data, at)).collect();
    let total: f64 = blocks.iter().map(|block| block.2).sum();
    let shares: Vec<Block> = blocks.iter().map(|(rows, t, w)| (rows.clone(), *t, w / (nu * total))).collect();
    let mut sums = vec![(vec![1.0; blocks.len()], 1.0)];
    if settings.free() == Intercept::Free {
        sums.push((blocks.iter().map(|block| block.1).collect(), 0.0));
    }
    let kernel = |a: usize, b: usize| value(&settings.kernel, &rows[a], &rows[b]);
    // ½‖θ‖² at the optimum.
    let optimum = program(&shares, &kernel, Loss::Hinge, settings.free(), 0.0, &sums);
    let model = fit(data, settings).model;
    let certificate = &model.certificate;
    let context = format!("{settings:?} {certificate:?}");
    assert!(certificate.converged, "{context}");
    let found = model.verify(data).expect("verifies");
    assert!(found.lower_bound.is_some(), "{context}");
    // With costs: u = θ/ρ with C = 1/(ρ ν n), and ½‖u‖² = Σα − D.
    let margin = 1.0 / (certificate.c * nu * total);
    let bound = certificate.lower_bound.expect("a bound");
    let half_square = (1.0 / margin - bound) * margin * margin;
    assert!((half_square - optimum).abs() <= 20.0 * ROUNDING * margin, "{half_square} {optimum} {context}");
    // At most a share ν violates the margin, and at least a share ν are support vectors.
    let scores = model.scores(data).expect("scores");
    let missed: f64 = blocks
        .iter()
        .map(|(parts, _, weight)| {
            let score: f64 = parts.iter().map(|&(at, a)| a * scores[at]).sum();
            let score = if settings.task.task() == Task::OneClass { score + 1.0 } else { score };
            if score < 1.0 - 1e-3 { *weight } else { 0.0 }
        })
        .sum();
    assert!(missed <= nu * total * (1.0 + 1e-9), "{missed} of {total}: {context}");
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap().scores(data).unwrap(), scores);
    model
}

#[test]
fn classifiers_of_a_share_reach_the_optimum() {
    let data = two_classes(70, 4, true, 3);
    let signs = data.targets().real().unwrap();
    for nu in [0.15, 0.4, 0.7] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let t = |sign: f64| if intercept == Intercept::None { 0.0 } else { sign };
            let blocks: Vec<Block> =
                signs.iter().enumerate().map(|(at, &sign)| (vec![(at, sign)], t(sign), 1.0)).collect();
            assert_solved(&data, &settings(Task::Classify, nu).with_free(intercept), &blocks);
        }
    }
}

#[test]
fn pairs_of_a_share_reach_the_optimum_over_differences() {
    let data = compared(20, 3, 60, 4);
    let pairs = data.pairs().unwrap();
    let blocks: Vec<Block> = (0..pairs.len())
        .map(|pair| {
            let (better, worse) = pairs.ordered(pair);
            (vec![(better, 1.0), (worse, -1.0)], 0.0, pairs.weight(pair))
        })
        .collect();
    for nu in [0.3, 0.8] {
        assert_solved(&data, &settings(Task::Rank, nu), &blocks);
    }
}

#[test]
fn one_class_reaches_the_optimum_and_leaves_its_share_outside() {
    let data = two_classes(90, 3, false, 5);
    let blocks: Vec<Block> = (0..data.rows()).map(|at| (vec![(at, 1.0)], 0.0, 1.0)).collect();
    for nu in [0.05, 0.1, 0.5, 1.0] {
        let model = assert_solved(&data, &settings(Task::OneClass, nu), &blocks);
        let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
        assert!(expansion.coefficients.len() as f64 >= nu * data.rows() as f64 - 1e-9);
    }
    // Also with the linear kernel: a plane that keeps rows away from zero.
    let apart: Vec<f64> = (0..60).map(|at| 2.0 + f64::from(at % 7)).collect();
    let data = Dataset::new(Matrix::DenseF64(Dense::new(apart, 20, 3).unwrap()), Targets::Absent).unwrap();
    let blocks: Vec<Block> = (0..20).map(|at| (vec![(at, 1.0)], 0.0, 1.0)).collect();
    let linear = Settings { kernel: KernelSettings::default(), ..settings(Task::OneClass, 0.2) };
    assert_solved(&data, &linear, &blocks);
}

#[test]
fn a_share_that_leaves_no_margin_is_reported() {
    // Each preference and its opposite: half of them must violate any margin.
    let rows = two_classes(10, 3, true, 1);
    let (mut better, mut worse) = (Vec::new(), Vec::new());
    for at in 0..5u32 {
        better.extend([at, at + 5]);
        worse.extend([at + 5, at]);
    }
    let data = rows.with_pairs(Pairs::new(better, worse).unwrap()).unwrap();
    let refused = |data: &Dataset, settings: &Settings| {
        train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("no margin").code()
    };
    assert_eq!(refused(&data, &settings(Task::Rank, 0.3)), Code::NuTooSmall);
    let linear = Settings { kernel: KernelSettings::default(), ..settings(Task::Rank, 0.3) };
    assert_eq!(refused(&data, &linear), Code::NuTooSmall);
    // Rows on both sides of zero, so that no plane can separate them from it.
    let around = Matrix::DenseF64(Dense::new(vec![1.0, -1.0, 0.5, -0.5], 4, 1).unwrap());
    let around = Dataset::new(around, Targets::Absent).unwrap();
    let linear = Settings { kernel: KernelSettings::default(), ..settings(Task::OneClass, 0.2) };
    assert_eq!(refused(&around, &linear), Code::NuTooSmall);
}

#[test]
fn a_share_beyond_what_the_smaller_class_can_bear_is_refused() {
    let data = two_classes(40, 3, true, 2);
    let targets: Vec<f64> = (0..40).map(|at| if at < 4 { 1.0 } else { -1.0 }).collect();
    let data = Dataset::new(data.matrix().clone(), Targets::Real(targets.into())).unwrap();
    let run = |nu: f64| train(&data, &settings(Task::Classify, nu), None, &mut Silent, &Cancel::new()).map(drop);
    assert!(run(0.2).is_ok(), "exactly twice the share of the smaller class");
    assert_eq!(run(0.21).expect_err("too large").code(), Code::BadSetting);
    for nu in [0.0, -0.1, 1.1, f64::NAN] {
        assert_eq!(run(nu).expect_err("no share").code(), Code::BadSetting);
    }
}

#[test]
fn threads_change_no_bit_of_a_share() {
    let data = two_classes(900, 6, false, 2);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = Settings { tolerance: 1e-3, ..settings(Task::Classify, 0.3) };
        pool.install(|| fit(&data, &settings).model.to_bytes().unwrap())
    };
    let alone = run(1);
    assert!(alone == run(2) && alone == run(8));
}
