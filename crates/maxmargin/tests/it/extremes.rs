//! Features, weights and costs of any magnitude: training ends in a model that verifies, or in an error. It never panics,
//! and never states a number that is not finite.

use crate::graded_comparisons::from_grades;
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Outcome, Pairs, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use maxmargin::train::train;

const ROWS: usize = 8;

/// Eight rows of two features, the first of them of the given size.
fn matrix(size: f64, narrow: bool) -> Matrix {
    let base = [0.3, -5.5, 11.5, -7.9, 3.0, 0.2, -3.0, 1.0, 5.0, 0.4, 0.1, 0.9, -0.7, 2.0, 1.3, -0.2];
    let values = base.iter().enumerate().map(|(at, value)| if at % 2 == 0 { value * size } else { *value });
    match narrow {
        true => Matrix::DenseF32(Dense::new(values.map(|value| value as f32).collect::<Vec<_>>(), ROWS, 2).unwrap()),
        false => Matrix::DenseF64(Dense::new(values.collect::<Vec<_>>(), ROWS, 2).unwrap()),
    }
}

/// The same rows for each task: classified, graded in two queries, compared in pairs.
fn data(task: Task, grades: bool, size: f64, narrow: bool) -> Dataset {
    let rows = |targets: Vec<f64>| Dataset::new(matrix(size, narrow), Targets::Real(targets.into())).unwrap();
    let graded = || {
        let names: Names = ["a", "b"].into_iter().collect();
        let targets = vec![0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 2.0, 1.0];
        rows(targets).with_groups(Groups::new(vec![0, 4, 8], names).unwrap()).unwrap()
    };
    match task {
        Task::Rank => graded(),
        Task::Compare if grades => graded(),
        Task::Compare => {
            let outcomes = [1, -1, 0, 1, 0, -1, 1, 0].map(Outcome::of_sign);
            let pairs = Pairs::new(vec![0u32, 1, 2, 3, 4, 5, 6, 7], vec![1u32, 2, 3, 4, 5, 6, 7, 0]).unwrap();
            let pairs = pairs.with_outcomes(outcomes.to_vec()).unwrap();
            Dataset::new(matrix(size, narrow), Targets::Absent).unwrap().with_pairs(pairs).unwrap()
        }
        _ => rows(vec![-1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0]),
    }
}

/// Trains, and verifies what comes of it.
fn check(data: &Dataset, settings: &Settings, context: &str) -> u32 {
    match train(data, settings, None, &mut Silent, &Cancel::new()) {
        Ok(trained) => {
            let certificate = &trained.model.certificate;
            assert!(certificate.objective.is_finite(), "{context}");
            assert!(certificate.lower_bound.is_none_or(f64::is_finite), "{context}");
            if let Err(error) = trained.model.verify(data) {
                panic!("{context}: {error}; {certificate:?}");
            }
            1
        }
        Err(error) => {
            assert_ne!(error.code(), Code::Internal, "{context}: {error}");
            0
        }
    }
}

#[test]
fn every_task_and_linear_solver_bears_every_magnitude() {
    let sizes = [1e-300, 1e-150, 1e-40, 1e-9, 1.0, 1e9, 1e40, 1e80, 1e150, 1e300];
    let costs = [1e-300, 1e-90, 1e-9, 1.0, 1e9, 1e90, 1e300];
    let mut models = 0;
    for (task, grades) in [(Task::Classify, false), (Task::Rank, false), (Task::Compare, false), (Task::Compare, true)]
    {
        for solver in Solver::ALL.into_iter().filter(|solver| !matches!(solver, Solver::Smo | Solver::Lasvm)) {
            for loss in Loss::ALL {
                for scale in [Scale::None, Scale::Standard] {
                    for size in sizes {
                        for c in costs {
                            let usual = Settings { loss, scale, ..Settings::new(task).with_solver(solver) };
                            let usual = Settings { regularisation: Regularisation::C(c), max_passes: 30, ..usual };
                            let settings = if grades { from_grades(usual) } else { usual };
                            let context =
                                format!("{} {grades} {solver:?} {loss:?} {scale:?} {size:e} {c:e}", task.name());
                            models += check(&data(task, grades, size, false), &settings, &context);
                        }
                    }
                }
            }
        }
    }
    assert!(models > 1000, "{models} models");
}

#[test]
fn kernel_models_verify_at_every_cost_however_they_are_scaled() {
    let mut models = 0;
    for kind in [KernelKind::Linear, KernelKind::Gaussian, KernelKind::Polynomial] {
        for scale in [Scale::None, Scale::Standard, Scale::MaxAbs, Scale::MinMax, Scale::UnitRows] {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                for size in [1e-9, 1.0, 1e5, 1e15] {
                    for c in [1e-9, 1.0, 100.0, 1000.0, 1e6, 1e12] {
                        for (task, narrow) in [(Task::Classify, true), (Task::Classify, false), (Task::Compare, true)] {
                            let kernel = KernelSettings { kind, ..KernelSettings::default() };
                            let settings =
                                Settings { loss, scale, kernel, ..Settings::new(task).with_solver(Solver::Smo) };
                            let settings =
                                Settings { regularisation: Regularisation::C(c), max_passes: 200, ..settings };
                            let context =
                                format!("{} {kind:?} {scale:?} {loss:?} {size:e} {c:e} {narrow}", task.name());
                            models += check(&data(task, false, size, narrow), &settings, &context);
                        }
                    }
                }
            }
        }
    }
    assert!(models > 300, "{models} models");
}

#[test]
fn kernel_solvers_bear_extreme_magnitudes() {
    let mut models = 0;
    for (task, solver) in [(Task::Classify, Solver::Smo), (Task::Classify, Solver::Lasvm), (Task::Compare, Solver::Smo)]
    {
        for kind in [KernelKind::Linear, KernelKind::Gaussian, KernelKind::Polynomial] {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                for size in [1e-300, 1e-9, 1.0, 1e80, 1e300] {
                    for c in [1e-300, 1.0, 1e9, 1e300] {
                        let kernel = KernelSettings { kind, ..KernelSettings::default() };
                        let settings = Settings { loss, kernel, ..Settings::new(task).with_solver(solver) };
                        let settings = Settings { regularisation: Regularisation::C(c), max_passes: 30, ..settings };
                        let context = format!("{} {solver:?} {kind:?} {loss:?} {size:e} {c:e}", task.name());
                        models += check(&data(task, false, size, false), &settings, &context);
                    }
                }
            }
        }
    }
    assert!(models > 50, "{models} models");
}

/// The rows of [`matrix`] with all features multiplied by a factor, dense or sparse.
fn multiplied(factor: f64, dense: bool, targets: Vec<f64>) -> Dataset {
    let mut rows = vec![Vec::new(); ROWS];
    let plain = matrix(1.0, false);
    rows.iter_mut().enumerate().for_each(|(row, entries)| {
        plain.each_in_row(row, |column, value| entries.push((column, value * factor)));
    });
    // A sparse row with an absent entry is shifted differently.
    rows[3].pop();
    let matrix = match dense {
        false => Matrix::from_rows(&rows, 2).unwrap(),
        true => {
            let value = |row: usize, column| rows[row].iter().find(|entry| entry.0 == column).map_or(0.0, |e| e.1);
            let values: Vec<f64> = (0..2 * ROWS).map(|at| value(at / 2, at % 2)).collect();
            Matrix::DenseF64(Dense::new(values, ROWS, 2).unwrap())
        }
    };
    let names: Names = ["a", "b"].into_iter().collect();
    let data = Dataset::new(matrix, Targets::Real(targets.into())).unwrap();
    data.with_groups(Groups::new(vec![0, 4, 8], names).unwrap()).unwrap()
}

#[test]
fn scaling_makes_features_of_any_size_the_same() {
    // A power of two changes no digit, so that scaled features, models and certificates must be the same, bit for bit.
    let powers = [-1015, -700, -520, -400, 400, 520, 700, 1015];
    let kernel = |kind| KernelSettings { kind, ..KernelSettings::default() };
    for (task, solver, kind) in [
        (Task::Classify, Solver::DualCoordinateDescent, KernelKind::Linear),
        (Task::Classify, Solver::Newton, KernelKind::Linear),
        (Task::Classify, Solver::Smo, KernelKind::Gaussian),
        (Task::Rank, Solver::Newton, KernelKind::Linear),
    ] {
        let targets = match task {
            Task::Rank => vec![0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 2.0, 1.0],
            _ => vec![-1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0],
        };
        for scale in [Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows, Scale::MinMaxPerQuery] {
            for dense in [true, false] {
                let settings = Settings { scale, kernel: kernel(kind), ..Settings::new(task).with_solver(solver) };
                let trained = |factor: f64| {
                    let data = multiplied(factor, dense, targets.clone());
                    let trained = train(&data, &settings, None, &mut Silent, &Cancel::new()).unwrap();
                    trained.model.verify(&data).unwrap();
                    let certificate = trained.model.certificate.clone();
                    (trained.model.scores(&data).unwrap(), certificate.objective, certificate.lower_bound)
                };
                let usual = trained(1.0);
                assert!(usual.0.iter().any(|score| *score != usual.0[0]), "the scores say something");
                for power in powers {
                    let context = format!("{} {solver:?} {scale:?} dense {dense} 2^{power}", task.name());
                    assert_eq!(trained(2f64.powi(power)), usual, "{context}");
                }
            }
        }
    }
}

#[test]
fn scaling_covers_the_whole_range_of_doubles() {
    // The range of the column, and the sum for its mean, are not finite.
    let values = vec![1.7e308, -1.7e308, 1.6e308, -1.5e308, 1.7e308, -1.6e308, 1.5e308, -1.7e308];
    let targets = vec![1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let names: Names = ["a", "b"].into_iter().collect();
    let data = Dataset::new(Matrix::DenseF64(Dense::new(values, ROWS, 1).unwrap()), Targets::Real(targets.into()))
        .and_then(|data| data.with_groups(Groups::new(vec![0, 4, 8], names)?))
        .unwrap();
    for scale in Scale::ALL.into_iter().filter(|&scale| scale != Scale::None) {
        for solver in [Solver::DualCoordinateDescent, Solver::Newton] {
            let settings = Settings { scale, ..Settings::new(Task::Classify).with_solver(solver) };
            let settings = Settings { regularisation: Regularisation::C(10.0), ..settings };
            let trained = train(&data, &settings, None, &mut Silent, &Cancel::new()).unwrap();
            let scores = trained.model.scores(&data).unwrap();
            let right = scores.iter().enumerate().all(|(row, score)| (*score > 0.0) == (row % 2 == 0));
            assert!(right, "{scale:?} {solver:?} {scores:?}");
            trained.model.verify(&data).unwrap();
        }
    }
}
