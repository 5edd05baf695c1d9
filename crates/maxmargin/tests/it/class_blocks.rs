//! The block dual of joint problems: layouts, scalings, two lanes, many classes, and starts.

use crate::made::{Numbers, fit};
use maxmargin::data::{Csr, Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver};
use maxmargin::task::{ClassWeight, Intercept, Multiclass};

/// Rows of classes with overlapping centres, of which sparse ones store a share of the features.
fn rows(count: usize, cols: usize, classes: usize, dense: bool, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let centres: Vec<f64> = (0..classes * cols).map(|_| numbers.next()).collect();
    let (mut starts, mut indices, mut values, mut targets) = (vec![0u64], Vec::new(), Vec::new(), Vec::new());
    for row in 0..count {
        let class = (row * 7 + row / 13) % classes;
        for column in 0..cols {
            if dense || numbers.next() < 0.3 {
                indices.push(column as u32);
                values.push(centres[class * cols + column] + 0.8 * (numbers.next() - 0.5) + 0.3);
            }
        }
        starts.push(values.len() as u64);
        targets.push(class as f64);
    }
    let matrix = match dense {
        true => Matrix::DenseF64(Dense::new(values, count, cols).unwrap()),
        false => Matrix::Csr32F64(Csr::new(starts, indices, values, cols).unwrap()),
    };
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

fn settings(multiclass: Multiclass, intercept: Intercept, loss: Loss, c: f64) -> Settings {
    let task = ClassifySettings { intercept, multiclass: Some(multiclass), ..ClassifySettings::default() };
    let settings = Settings { loss, regularisation: Regularisation::C(c), ..Settings::of(task) };
    settings.with_solver(Solver::DualCoordinateDescent)
}

const FORMS: [(Multiclass, Loss); 3] = [
    (Multiclass::Joint, Loss::Hinge),
    (Multiclass::WestonWatkins, Loss::Hinge),
    (Multiclass::WestonWatkins, Loss::SquaredHinge),
];

#[track_caller]
fn check(model: &Model, data: &Dataset, context: &str) {
    let found = model.verify(data).unwrap();
    let certificate = &model.certificate;
    assert!(certificate.converged, "{context}: gap {:?}", certificate.gap());
    assert_eq!(Some(found.objective), Some(certificate.objective), "{context}");
    assert_eq!(found.lower_bound, certificate.lower_bound, "{context}");
}

#[test]
fn newtons_method_agrees_for_every_layout_scaling_and_intercept() {
    for dense in [true, false] {
        let data = rows(300, 6, 5, dense, 3);
        for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                for (multiclass, loss) in FORMS {
                    let context = format!("{dense}, {scale:?}, {intercept:?}, {multiclass:?}, {loss:?}");
                    let wanted = settings(multiclass, intercept, loss, 0.2);
                    let wanted = Settings { scale, tolerance: 1e-5, ..wanted };
                    let blocks = fit(&data, &wanted).model;
                    check(&blocks, &data, &context);
                    let newton = Settings { tolerance: 1e-5, ..wanted.with_solver(Solver::Newton) };
                    let newton = fit(&data, &newton).model.certificate;
                    let (one, other) = (blocks.certificate.objective, newton.objective);
                    assert!((one - other).abs() <= 2.1e-5 * other, "{context}: {one} is not {other}");
                }
            }
        }
    }
}

#[test]
fn two_lanes_and_any_number_of_threads_give_the_same_bytes() {
    // Enough products for two lanes.
    let data = rows(12_000, 60, 12, false, 5);
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        for (multiclass, loss) in FORMS {
            let wanted = settings(multiclass, intercept, loss, 0.05);
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &wanted).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2) && one == bytes(5), "{intercept:?}, {multiclass:?}, {loss:?}");
            check(&Model::from_bytes(&one).unwrap(), &data, &format!("{intercept:?}, {multiclass:?}, {loss:?}"));
        }
    }
}

#[test]
fn many_classes_reach_the_bound_that_newtons_method_proves() {
    // 300 classes: rows keep lists of them if the largest violation counts.
    let data = rows(600, 8, 300, false, 8);
    for (multiclass, loss) in FORMS {
        for intercept in [Intercept::None, Intercept::Free] {
            let context = format!("{multiclass:?}, {loss:?}, {intercept:?}");
            let wanted = Settings { tolerance: 1e-3, ..settings(multiclass, intercept, loss, 0.05) };
            let blocks = fit(&data, &wanted).model;
            check(&blocks, &data, &context);
            if intercept == Intercept::None {
                let newton = Settings { max_passes: 6, ..wanted.with_solver(Solver::Newton) };
                let newton = fit(&data, &newton).model.certificate;
                let found = blocks.certificate;
                assert!(newton.objective >= found.lower_bound.unwrap(), "{context}");
                assert!(newton.lower_bound.unwrap() <= found.objective, "{context}");
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_and_length_zero_and_classes_of_one_row_are_borne() {
    let data = rows(200, 4, 6, true, 11);
    let mut values: Vec<f64> = Vec::new();
    (0..200)
        .for_each(|row| data.matrix().each_in_row(row, |_, value| values.push(if row % 9 == 0 { 0.0 } else { value })));
    let targets: Vec<f64> = (0..200).map(|row| if row == 5 { 9.0 } else { (row % 4) as f64 }).collect();
    let data =
        Dataset::new(Matrix::DenseF64(Dense::new(values, 200, 4).unwrap()), Targets::Real(targets.into())).unwrap();
    let weights: Vec<f64> = (0..200).map(|row| (row % 5) as f64 * 0.5 + if row == 5 { 1.0 } else { 0.0 }).collect();
    let data = data.with_weights(weights).unwrap();
    for (multiclass, loss) in FORMS {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let context = format!("{multiclass:?}, {loss:?}, {intercept:?}");
            let mut wanted = Settings { tolerance: 1e-4, ..settings(multiclass, intercept, loss, 2.0) };
            if let maxmargin::settings::TaskSettings::Classify(task) = &mut wanted.task {
                task.class_weight = ClassWeight::Balanced;
            }
            let model = fit(&data, &wanted).model;
            check(&model, &data, &context);
        }
    }
}

#[test]
fn a_path_over_c_starts_from_the_dual_variables_before() {
    let data = rows(600, 8, 5, true, 13);
    let at = |c: f64| settings(Multiclass::Joint, Intercept::Free, Loss::Hinge, c);
    let validation = CrossValidation { folds: 3, seed: 1, metrics: vec!["accuracy".parse().unwrap()] };
    let tuned = validation.run(&data, &[at(0.01), at(0.1), at(1.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(tuned.rows.iter().all(|row| row.converged));
    let refitted = tuned.refit(2, &data, None, &mut Silent, &Cancel::new()).unwrap().model;
    check(&refitted, &data, "refitted");
}

#[test]
fn an_altered_dual_point_is_refused() {
    use maxmargin::error::Code;
    use maxmargin::solve::Witness;
    let data = rows(150, 4, 4, true, 17);
    for intercept in [Intercept::None, Intercept::Free] {
        let model = fit(&data, &settings(Multiclass::Joint, intercept, Loss::Hinge, 0.5)).model;
        let Some(Witness::Classes(dual)) = &model.witness else { panic!("a dual point") };
        let mut forged = model.clone();
        let mut larger = dual.clone();
        larger.values[0] += 1.0;
        forged.witness = Some(Witness::Classes(larger));
        assert_eq!(forged.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
        let mut smaller = dual.clone();
        smaller.values[0] *= 0.5;
        forged.witness = Some(Witness::Classes(smaller));
        // Unbalanced, or a lower bound than the stated one.
        assert!(forged.verify(&data).is_err() || intercept == Intercept::None);
        if intercept == Intercept::None {
            assert!(forged.verify(&data).map_or(true, |found| found.lower_bound != model.certificate.lower_bound));
        }
    }
}

#[test]
fn forged_points_of_sums_are_refused() {
    use maxmargin::error::Code;
    use maxmargin::solve::Witness;
    let data = rows(150, 4, 4, true, 17);
    let model = fit(&data, &settings(Multiclass::WestonWatkins, Intercept::None, Loss::Hinge, 0.5)).model;
    let Some(Witness::Classes(dual)) = &model.witness else { panic!("a dual point") };
    let mut larger = dual.clone();
    larger.values[0] = 0.5 * (1.0 + 1e-6);
    let forged = Model { witness: Some(Witness::Classes(larger)), ..model.clone() };
    assert_eq!(forged.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
    let squares = fit(&data, &settings(Multiclass::WestonWatkins, Intercept::None, Loss::SquaredHinge, 0.5)).model;
    let Some(Witness::Classes(dual)) = &squares.witness else { panic!("a dual point") };
    let mut other = dual.clone();
    other.values.iter_mut().for_each(|value| *value *= 1.5);
    let forged = Model { witness: Some(Witness::Classes(other)), ..squares.clone() };
    assert!(forged.verify(&data).map_or(true, |found| found.lower_bound < squares.certificate.lower_bound));
}

#[test]
fn tiny_costs_and_tiny_features_are_certified() {
    use maxmargin::kernel::{KernelKind, KernelSettings};
    let data = rows(400, 6, 5, true, 23);
    for c in [1e-5, 1e-8, 1e-12] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            for (multiclass, loss) in FORMS {
                let model = fit(&data, &settings(multiclass, intercept, loss, c)).model;
                check(&model, &data, &format!("{c:e}, {intercept:?}, {multiclass:?}, {loss:?}"));
            }
            let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
            let wanted = settings(Multiclass::Joint, intercept, Loss::Hinge, c).with_solver(Solver::Auto);
            let model = fit(&data, &Settings { kernel, ..wanted }).model;
            model.verify(&data).unwrap();
        }
    }
    // Features whose squares vanish beside the cost.
    let mut values: Vec<f64> = Vec::new();
    (0..400).for_each(|row| data.matrix().each_in_row(row, |_, value| values.push(1e-9 * value)));
    let tiny = Dataset::new(Matrix::DenseF64(Dense::new(values, 400, 6).unwrap()), data.targets().clone()).unwrap();
    for intercept in [Intercept::None, Intercept::Penalised] {
        check(&fit(&tiny, &settings(Multiclass::Joint, intercept, Loss::Hinge, 1.0)).model, &tiny, "tiny features");
    }
}

#[test]
fn groups_of_classes_that_hardly_meet_are_balanced() {
    // Four groups of classes, each around its own place; a few rows lie between neighbouring groups.
    let (groups, each, count) = (4, 5, 600);
    let mut numbers = Numbers::new(31);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..count {
        let (group, class) = (row % groups, (row / groups) % each);
        let between = row % 97 == 0;
        for column in 0..groups {
            let near = column == group || (between && column == (group + 1) % groups);
            values.push(if near { 3.0 } else { 0.0 } + 0.1 * (numbers.next() - 0.5));
        }
        values.push(class as f64 * 0.1 + numbers.next());
        targets.push((group * each + class) as f64);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, count, groups + 1).unwrap());
    let data = Dataset::new(matrix, Targets::Real(targets.into())).unwrap();
    for (multiclass, loss) in FORMS {
        for passes in [1, 5, 1000] {
            let wanted = settings(multiclass, Intercept::Free, loss, 1.0);
            let model = fit(&data, &Settings { max_passes: passes, ..wanted }).model;
            model.verify(&data).unwrap_or_else(|error| panic!("{multiclass:?}, {passes} passes: {error}"));
        }
    }
}
