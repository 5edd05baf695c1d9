//! Data and costs near the limits of floating-point numbers: the stated results are correct.

use crate::made::{graded, two_classes};
use crate::optimum::dense_row;
use crate::pairs::compared;
use maxmargin::data::{Dataset, Dense, Matrix};
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::Stop;
use maxmargin::task::{Intercept, WeightAs};
use maxmargin::train::{choose_solver, train};

const COLUMNS: usize = 5;

/// The same rows with features that cause numerical trouble.
fn hardened(data: &Dataset) -> Vec<(&'static str, Dataset)> {
    let rows: Vec<Vec<f64>> = (0..data.rows()).map(|row| dense_row(data, row)).collect();
    let with = |change: &dyn Fn(usize, &mut Vec<f64>)| {
        let mut changed = rows.clone();
        changed.iter_mut().enumerate().for_each(|(row, values)| change(row, values));
        let cols = changed[0].len();
        let matrix = Matrix::DenseF64(Dense::new(changed.concat(), rows.len(), cols).unwrap());
        let mut made = Dataset::new(matrix, data.targets().clone()).unwrap();
        if let Some(groups) = data.groups() {
            made = made.with_groups(groups.clone()).unwrap();
        }
        if let Some(weights) = data.weights() {
            made = made.with_weights(weights.to_vec()).unwrap();
        }
        if let Some(pairs) = data.pairs() {
            made = made.with_pairs(pairs.clone()).unwrap();
        }
        made
    };
    vec![
        ("uneven columns", with(&|_, values| (0..COLUMNS).for_each(|at| values[at] *= 10f64.powi(3 * at as i32 - 4)))),
        ("constant columns", with(&|_, values| values.extend([1.0, 1e6, 0.0]))),
        ("no columns", with(&|_, values| values.clear())),
        ("columns twice", with(&|_, values| values.extend_from_within(..))),
        ("a value of 1e12", with(&|row, values| values[0] = if row == 7 { 1e12 } else { values[0] })),
        ("a column of 1e12", with(&|_, values| values[0] *= 1e12)),
        (
            "rows of zeros",
            with(&|row, values| values.iter_mut().for_each(|value| *value *= f64::from(u8::from(row % 3 != 0)))),
        ),
    ]
}

/// Trains with every solver for the problem, and checks what each states against the others.
fn assert_honest(name: &str, data: &Dataset, settings: &Settings) {
    let (mut least, mut most_proven) = (f64::INFINITY, 0.0f64);
    for solver in [Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint] {
        let settings = Settings { solver, ..settings.clone() };
        if choose_solver(&settings, data.shape()).is_err() {
            continue;
        }
        let (Settings { loss, regularisation, .. }, intercept) = (&settings, settings.free());
        let context = format!("{name}, {loss:?}, {intercept:?}, {regularisation:?}, {solver:?}");
        let trained = match train(data, &settings, None, &mut Silent, &Cancel::new()) {
            Ok(trained) => trained,
            Err(error) => {
                assert_eq!(error.code(), Code::Overflow, "{context}: {error}");
                continue;
            }
        };
        let certificate = &trained.model.certificate;
        let context = format!("{context}: {:?} {certificate:?}", trained.stop);
        let (objective, bound) = (certificate.objective, certificate.lower_bound.expect("a bound"));
        assert!(objective.is_finite() && bound.is_finite() && bound >= 0.0, "{context}");
        assert!(bound <= objective * (1.0 + 1e-9), "{context}");
        let scores = trained.model.scores(data).unwrap();
        assert!(scores.iter().all(|score| score.is_finite()), "{context}");
        assert_eq!(certificate.converged, trained.stop == Stop::Converged, "{context}");
        if certificate.converged {
            assert!(certificate.gap().unwrap() <= settings.tolerance, "{context}");
        } else {
            assert!(matches!(trained.stop, Stop::PassLimit | Stop::Stalled), "{context}");
        }
        trained.model.verify(data).unwrap_or_else(|error| panic!("{context}: {error}"));
        (least, most_proven) = (least.min(objective), most_proven.max(bound));
    }
    assert!(most_proven <= least * (1.0 + 1e-7), "{name}, {settings:?}: {most_proven:e} proven, {least:e} reached");
}

const COSTS: [f64; 5] = [1e-8, 1e-4, 1.0, 1e4, 1e8];

#[test]
fn classifiers_of_hard_data_say_what_they_reached() {
    for (name, data) in hardened(&two_classes(60, COLUMNS, true, 3)) {
        for loss in Loss::ALL {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                for c in COSTS {
                    let regularisation = Regularisation::C(c);
                    assert_honest(
                        name,
                        &data,
                        &Settings { loss, regularisation, ..Settings::new(Task::Classify).with_free(intercept) },
                    );
                }
            }
        }
    }
}

/// Weights of 0, 1, 2 and 1000.
fn weighted(data: Dataset) -> Dataset {
    let weights: Vec<f64> = (0..data.rows()).map(|row| [0.0, 1.0, 2.0, 1000.0][row * 5 % 4]).collect();
    data.with_weights(weights).unwrap()
}

#[test]
fn weighted_rows_of_hard_data_say_what_they_reached() {
    let classes = weighted(two_classes(60, COLUMNS, true, 3));
    let queries = weighted(graded(6, 10, COLUMNS, 3, 3));
    for (task, data) in [(Task::Classify, classes), (Task::Rank, queries)] {
        for (name, data) in hardened(&data) {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                for c in COSTS {
                    assert_honest(
                        name,
                        &data,
                        &Settings { loss, regularisation: Regularisation::C(c), ..Settings::new(task) },
                    );
                }
            }
        }
    }
}

#[test]
fn pairs_of_hard_items_say_what_they_reached() {
    for (name, data) in hardened(&compared(30, COLUMNS, 80, 3)) {
        for loss in Loss::ALL {
            for weight_as in [WeightAs::Slack, WeightAs::Margin] {
                if loss == Loss::Logistic && weight_as == WeightAs::Margin {
                    continue;
                }
                for c in COSTS {
                    let regularisation = Regularisation::C(c);
                    let task = RankSettings { weight_as, ..Default::default() };
                    assert_honest(name, &data, &Settings { loss, regularisation, ..Settings::of(task) });
                }
            }
        }
    }
}

#[test]
fn rankers_of_hard_data_say_what_they_reached() {
    for (name, data) in hardened(&graded(6, 10, COLUMNS, 3, 3)) {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            for c in COSTS {
                assert_honest(
                    name,
                    &data,
                    &Settings { loss, regularisation: Regularisation::C(c), ..Settings::new(Task::Rank) },
                );
            }
        }
    }
}
