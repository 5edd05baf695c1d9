//! Comparisons by grades: the same optimum as with the same pairs listed, with a proof, and an error if there is none.

use crate::hard_margin::refused;
use crate::made::{Numbers, fit};
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Outcome, Pairs, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::settings::{Choice, Chosen, CompareSettings, Regularisation, Settings, Solver, Task};
use maxmargin::task::Intercept;

/// Graded rows in queries of eight, and the same rows with all pairs within queries listed.
fn graded_and_listed(queries: usize, seed: u64) -> (Dataset, Dataset) {
    let (cols, size) = (4, 8);
    let rows = queries * size;
    let mut numbers = Numbers::new(seed);
    let values: Vec<f64> = (0..rows * cols).map(|_| 2.0 * numbers.next() - 1.0).collect();
    let grades: Vec<f64> = (0..rows)
        .map(|row| {
            let score: f64 = values[row * cols..][..cols].iter().zip([2.0, -1.0, 0.5, 0.0]).map(|(v, w)| v * w).sum();
            (score + 0.6 * numbers.next()).clamp(-1.4, 1.4).round()
        })
        .collect();
    let matrix = || Matrix::DenseF64(Dense::new(values.clone(), rows, cols).unwrap());
    let (mut left, mut right, mut outcomes) = (vec![], vec![], vec![]);
    for a in 0..rows {
        for b in a + 1..(a / size + 1) * size {
            left.push(a as u32);
            right.push(b as u32);
            outcomes.push(Outcome::of_sign((grades[b] - grades[a]).clamp(-1.0, 1.0) as i8));
        }
    }
    let pairs = Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap();
    let listed = Dataset::new(matrix(), Targets::Absent).unwrap().with_pairs(pairs).unwrap();
    let starts: Vec<u64> = (0..=queries as u64).map(|query| query * size as u64).collect();
    let names: Vec<String> = (0..queries).map(|query| query.to_string()).collect();
    let groups = Groups::new(starts, names.iter().map(String::as_str).collect()).unwrap();
    let graded = Dataset::new(matrix(), Targets::Real(grades.into())).unwrap().with_groups(groups).unwrap();
    (graded, listed)
}

fn settings(loss: Loss, solver: Solver, tolerance: f64) -> Settings {
    Settings {
        loss,
        solver,
        tolerance,
        regularisation: Regularisation::C(0.3),
        max_passes: 100_000,
        ..Settings::new(Task::Compare)
    }
}

/// The same settings, learning from all pairs of graded rows.
pub(crate) fn from_grades(settings: Settings) -> Settings {
    let task = settings.comparison().unwrap().clone();
    Settings { task: CompareSettings { ties_from_grades: true, ..task }.into(), ..settings }
}

#[test]
fn grades_give_the_optimum_of_the_same_pairs_listed() {
    let (graded, listed) = graded_and_listed(12, 5);
    for (loss, solver, tolerance, within) in [
        (Loss::SquaredHinge, Solver::Newton, 1e-12, 1e-9),
        (Loss::Hinge, Solver::Newton, 1e-7, 1e-6),
        (Loss::SquaredHinge, Solver::CuttingPlane, 1e-7, 1e-6),
        (Loss::Hinge, Solver::CuttingPlane, 1e-7, 1e-6),
    ] {
        for intercept in [Intercept::Free, Intercept::Penalised] {
            let by_pairs = settings(loss, solver, tolerance).with_free(intercept);
            let by_grades = from_grades(by_pairs.clone());
            let (found, expected) = (fit(&graded, &by_grades), fit(&listed, &by_pairs));
            let what = format!("{} by {} with {intercept:?}", loss.name(), solver.name());
            let (here, there) = (&found.model.certificate, &expected.model.certificate);
            assert!(here.converged, "{what}: gap {:?}", here.gap());
            assert_eq!((here.constraints, here.c), (there.constraints, there.c), "{what}");
            assert!((here.lambda - there.lambda).abs() <= 1e-12 * there.lambda, "{what}");
            let apart = (here.objective - there.objective).abs();
            assert!(apart <= within * there.objective, "{what}: {} and {}", here.objective, there.objective);
            assert!(here.lower_bound.unwrap() <= there.objective * (1.0 + 1e-12), "{what}");
            if loss == Loss::SquaredHinge && solver == Solver::Newton {
                let thresholds = [&found, &expected].map(|found| found.model.decoder.threshold().unwrap());
                assert!((thresholds[0] - thresholds[1]).abs() <= 1e-6, "{what}: {thresholds:?}");
            }
            let verified = found.model.verify(&graded).unwrap();
            assert!(verified.gap().unwrap() <= tolerance + 1e-9, "{what}: {verified:?}");
        }
    }
}

#[test]
fn a_bound_holds_long_before_the_optimum_is_reached() {
    let (graded, _) = graded_and_listed(12, 9);
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        let settings = |max_passes| Settings {
            max_passes,
            ..from_grades(settings(loss, Solver::Newton, if loss == Loss::Hinge { 1e-7 } else { 1e-11 }))
        };
        let optimum = fit(&graded, &settings(1000)).model.certificate.objective;
        let mut looked_at = 0;
        for passes in 0..6 {
            let certificate = fit_or_none(&graded, &settings(passes));
            let Some((objective, bound)) = certificate else { continue };
            assert!(bound <= optimum * (1.0 + 1e-9), "{loss:?} after {passes}: {bound} above {optimum}");
            assert!(objective >= optimum * (1.0 - 1e-6));
            looked_at += 1;
        }
        assert!(looked_at >= 3, "{loss:?}: {looked_at}");
    }
}

/// Objective and bound, if the threshold is already above zero.
fn fit_or_none(data: &Dataset, settings: &Settings) -> Option<(f64, f64)> {
    let trained =
        maxmargin::train::train(data, settings, None, &mut maxmargin::run::Silent, &maxmargin::run::Cancel::new());
    let certificate = trained.ok()?.model.certificate;
    Some((certificate.objective, certificate.lower_bound.unwrap()))
}

#[test]
fn what_grades_cannot_do_is_refused_with_a_remedy() {
    let (graded, listed) = graded_and_listed(3, 2);
    let usual = from_grades(settings(Loss::Hinge, Solver::Auto, 1e-3));
    let kernel = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
    for settings in [
        Settings { kernel, ..usual.clone() },
        Settings { loss: Loss::Logistic, ..usual.clone() },
        Settings { solver: Solver::DualCoordinateDescent, ..usual.clone() },
        usual.clone().with_solver(Solver::Sgd),
    ] {
        let error = refused(&graded, &settings);
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
    assert_eq!(refused(&listed, &usual).code(), Code::BadSetting);
    let chosen = Chosen::from([("ties-from-grades".to_string(), Choice::Switch(true))]);
    let error = Settings::named(Task::Rank, &chosen).expect_err("rankers know no ties");
    assert_eq!(error.code(), Code::BadSetting);
    assert!(error.remedy().is_some(), "{error}");
    // The cost is so low that no score is worth it, and the threshold falls below zero.
    let cheap = Settings { regularisation: Regularisation::C(1e-6), ..usual };
    assert_eq!(refused(&graded, &cheap).code(), Code::NoThreshold);
}
