//! Users' own kernels: values in a file, and functions in Rust.

use crate::kernels::{row, value};
use crate::made::{fit, graded, two_classes};
use crate::pairs::compared;
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{CustomKernel, KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Regularisation, Settings, Task};
use maxmargin::train::train;

fn gaussian() -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.4), ..KernelSettings::default() }
}

/// The same data with kernel values as features. If `numbered`, the first column holds row numbers.
fn as_values(data: &Dataset, numbered: bool) -> Dataset {
    let rows: Vec<Vec<f64>> = (0..data.rows()).map(|at| row(data, at)).collect();
    let mut values = Vec::new();
    for (at, x) in rows.iter().enumerate() {
        values.extend(numbered.then_some((at + 1) as f64));
        values.extend(rows.iter().map(|z| value(&gaussian(), x, z)));
    }
    let matrix = Dense::new(values, rows.len(), rows.len() + usize::from(numbered)).unwrap();
    data.clone().with_matrix(Matrix::DenseF64(matrix)).unwrap()
}

#[test]
fn kernel_values_from_a_file_give_the_model_of_the_kernel_itself() {
    let precomputed = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    let classify = Settings { tolerance: 1e-6, max_passes: 100_000, ..Settings::new(Task::Classify) };
    let pairs = Settings { loss: Loss::Hinge, ..Settings::new(Task::Rank) };
    let one_class = Settings { regularisation: Regularisation::Nu(0.2), ..Settings::new(Task::OneClass) };
    for (data, settings) in [
        (two_classes(80, 4, true, 3), classify.clone()),
        (two_classes(80, 4, false, 3), Settings { regularisation: Regularisation::Nu(0.5), ..classify.clone() }),
        (compared(25, 3, 60, 4), Settings { tolerance: 1e-6, max_passes: 100_000, ..pairs }),
        (graded(8, 6, 3, 3, 5), Settings { tolerance: 1e-7, ..Settings::new(Task::Rank) }),
        (two_classes(60, 3, true, 9), Settings { tolerance: 1e-6, ..one_class }),
    ] {
        let direct = fit(&data, &Settings { kernel: gaussian(), ..settings.clone() }).model;
        for numbered in [false, true] {
            let table = as_values(&data, numbered);
            let model = fit(&table, &Settings { kernel: precomputed.clone(), ..settings.clone() }).model;
            let (one, other) = (direct.certificate.objective, model.certificate.objective);
            assert!((one - other).abs() <= 3e-6 * one, "{settings:?}: {one} {other}");
            for (one, other) in direct.scores(&data).unwrap().iter().zip(model.scores(&table).unwrap()) {
                assert!((one - other).abs() < 5e-3, "{settings:?}: {one} {other}");
            }
            let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert!(again.verify(&table).expect("verifies").lower_bound.is_some());
            let mut changed = again;
            let Scorer::Linear { weights, .. } = &mut changed.scorer else { panic!("a number a column") };
            let counts = weights.iter().rposition(|weight| *weight != 0.0).unwrap();
            weights[counts] *= 1.5;
            assert_eq!(changed.verify(&table).expect_err("another model").code(), Code::CertificateMismatch);
        }
    }
}

#[test]
fn what_is_no_square_of_kernel_values_is_refused() {
    let data = two_classes(12, 3, true, 3);
    let good = as_values(&data, false);
    let precomputed = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    let settings = Settings { kernel: precomputed, ..Settings::new(Task::Classify) };
    let refused = |data: &Dataset, settings: &Settings| {
        let error = train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("no kernel values");
        assert_eq!(error.code(), Code::BadSetting);
        error.message().to_string()
    };
    assert!(refused(&data, &settings).contains("12 rows with 3 columns"));
    let values = |change: &dyn Fn(usize, usize, f64) -> f64, numbered: bool| {
        let table = as_values(&data, numbered);
        let cols = table.cols();
        let changed =
            (0..12).flat_map(|at| row(&table, at).into_iter().enumerate().map(move |(c, v)| change(at, c, v)));
        let matrix = Matrix::DenseF64(Dense::new(changed.collect::<Vec<_>>(), 12, cols).unwrap());
        Dataset::new(matrix, Targets::Real(data.targets().real().unwrap().to_vec().into())).unwrap()
    };
    let crooked = values(&|r, c, v| if (r, c) == (3, 7) { v + 0.1 } else { v }, false);
    assert!(refused(&crooked, &settings).contains("rows 4 and 8"));
    let misnumbered = values(&|r, c, v| if (r, c) == (5, 0) { 9.0 } else { v }, true);
    assert!(refused(&misnumbered, &settings).contains("row 6 has 9"));
    assert!(refused(&good, &Settings { scale: Scale::Standard, ..settings }).contains("scaled"));
}

#[test]
fn values_that_no_rows_could_have_prove_nothing() {
    let data = two_classes(40, 3, true, 3);
    let table = as_values(&data, false);
    let turned: Vec<f64> = (0..40).flat_map(|at| row(&table, at)).map(|value| -value).collect();
    let turned = data.clone().with_matrix(Matrix::DenseF64(Dense::new(turned, 40, 40).unwrap())).unwrap();
    let precomputed = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    let settings = Settings { kernel: precomputed, max_passes: 1000, ..Settings::new(Task::Classify) };
    assert!(fit(&table, &settings).model.certificate.lower_bound.is_some());
    let trained = fit(&turned, &settings);
    assert!(trained.model.certificate.lower_bound.is_none() && !trained.model.certificate.converged);
}

#[test]
fn a_function_in_rust_is_a_kernel_like_any_other() {
    let own = CustomKernel::new("mine", |x: &[f64], z: &[f64]| {
        (-0.4 * x.iter().zip(z).map(|(x, z)| (x - z) * (x - z)).sum::<f64>()).exp()
    });
    for dense in [true, false] {
        let data = two_classes(70, 4, dense, 3);
        let base = Settings { tolerance: 1e-6, max_passes: 100_000, ..Settings::new(Task::Classify) };
        let built_in = fit(&data, &Settings { kernel: gaussian(), ..base.clone() }).model;
        let model = fit(&data, &Settings { kernel: KernelSettings::custom(own.clone()), ..base }).model;
        let (one, other) = (built_in.certificate.objective, model.certificate.objective);
        assert!((one - other).abs() <= 2e-6 * one, "{one} {other}");
        model.verify(&data).expect("verifies");
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        for error in [loaded.scores(&data).map(drop), loaded.verify(&data).map(drop)] {
            let error = error.expect_err("no function");
            assert_eq!(error.code(), Code::BadSetting);
            assert!(error.message().contains("`mine`"), "{error}");
        }
        let other = CustomKernel::new("other", |_: &[f64], _: &[f64]| 1.0);
        assert_eq!(loaded.clone().with_kernel(other).expect_err("another").code(), Code::BadSetting);
        let again = loaded.with_kernel(own.clone()).unwrap();
        assert_eq!(again.scores(&data).unwrap(), model.scores(&data).unwrap());
        again.verify(&data).expect("verifies");
    }
}
