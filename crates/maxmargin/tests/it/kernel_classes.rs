//! Several classes through kernels and feature maps: against definitions, an independent solver, files and threads.

use crate::classes::{INTERCEPTS, assert_close, numbered, objective, referee, settings, task, worded};
use crate::made::fit;
use maxmargin::certificate::{ClassDual, Witness};
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Compaction, Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver, Task};
use maxmargin::task::{Intercept, JointForm, Multiclass};

const FORMS: [(Multiclass, JointForm); 2] =
    [(Multiclass::Joint, JointForm::Largest), (Multiclass::WestonWatkins, JointForm::Sum)];

fn through(kind: KernelKind, gamma: Option<f64>) -> KernelSettings {
    KernelSettings { kind, gamma, ..KernelSettings::default() }
}

fn gaussian(gamma: f64) -> KernelSettings {
    through(KernelKind::Gaussian, Some(gamma))
}

/// Kernel values between all rows, as features.
fn tabled(data: &Dataset, kernel: impl Fn(&[f64], &[f64]) -> f64) -> Dataset {
    let rows: Vec<Vec<f64>> = (0..data.rows())
        .map(|row| {
            let mut values = vec![0.0; data.cols()];
            data.matrix().each_in_row(row, |column, value| values[column] = value);
            values
        })
        .collect();
    let values: Vec<f64> = rows.iter().flat_map(|a| rows.iter().map(|b| kernel(a, b)).collect::<Vec<_>>()).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, rows.len(), rows.len()).unwrap());
    data.clone().with_matrix(matrix).unwrap()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Σ_i β_im k(x_i, x) + b_m, from the stored vectors.
fn scores_by_definition(model: &Model, data: &Dataset, gamma: f64) -> Vec<f64> {
    let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
    let row = |matrix: &Matrix, row: usize| {
        let mut values = vec![0.0; matrix.cols()];
        matrix.each_in_row(row, |column, value| values[column] = value);
        values
    };
    let mut scores = Vec::new();
    for at in 0..data.rows() {
        let x = row(data.matrix(), at);
        let mut own = expansion.intercepts.clone();
        own.resize(expansion.outputs, 0.0);
        for (vector, coefficients) in expansion.coefficients.chunks(expansion.outputs).enumerate() {
            let z = row(&expansion.vectors, vector);
            let square: f64 = x.iter().zip(&z).map(|(x, z)| (x - z) * (x - z)).sum();
            own.iter_mut().zip(coefficients).for_each(|(own, beta)| *own += beta * (-gamma * square).exp());
        }
        scores.extend(own);
    }
    scores
}

#[test]
fn the_linear_kernel_reaches_the_referees_optimum() {
    let data = numbered(40, 3, 4, 4);
    for (multiclass, form) in FORMS {
        for intercept in INTERCEPTS {
            let wanted = settings(task(multiclass, intercept), Loss::Hinge);
            let optimum = referee(&data, form, Loss::Hinge, intercept);
            // A table of products is the linear kernel too.
            let smo = Settings { solver: Solver::Smo, tolerance: 5e-7, ..wanted.clone() };
            let table = Settings { kernel: through(KernelKind::Precomputed, None), tolerance: 5e-7, ..wanted };
            let table_data = tabled(&data, product);
            for (data, wanted) in [(&data, smo), (&table_data, table)] {
                let context = format!("{multiclass:?}, {intercept:?}, {:?}", wanted.kernel.kind);
                let model = fit(data, &wanted).model;
                assert!(model.certificate.converged, "{context}");
                assert_close(objective(&model), optimum, 1e-6, &context);
                let bound = model.certificate.lower_bound.expect("a bound");
                assert!(bound <= optimum * (1.0 + 1e-8), "{context}: {bound} is above {optimum}");
                let found = model.verify(data).unwrap();
                assert_close(found.lower_bound.unwrap(), bound, 1e-9, &context);
            }
        }
    }
}

#[test]
fn kernel_models_of_several_classes_score_verify_and_do_not_depend_on_threads() {
    let data = worded(&numbered(700, 5, 4, 6));
    for (multiclass, _) in FORMS {
        for intercept in INTERCEPTS {
            let context = format!("{multiclass:?}, {intercept:?}");
            let wanted = settings(task(multiclass, intercept), Loss::Hinge);
            let wanted = Settings { kernel: gaussian(0.4), tolerance: 1e-4, ..wanted };
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &wanted).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2), "{context}");
            let (made, loaded) = (fit(&data, &wanted).model, Model::from_bytes(&one).unwrap());
            assert_eq!(made.scores(&data).unwrap(), loaded.scores(&data).unwrap(), "{context}");
            assert_eq!(loaded.to_bytes().unwrap(), one);
            assert_eq!(loaded.scorer.outputs(), 4);
            assert!(made.certificate.converged && made.certificate.gap().unwrap() <= 1e-4, "{context}");
            loaded.verify(&data).unwrap();
            let expected = scores_by_definition(&loaded, &data, 0.4);
            let found = loaded.scores(&data).unwrap();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{context}");
            let accuracy = Answers::new(&loaded, &data).unwrap().evaluate(&Metric::Accuracy).unwrap().value;
            assert!(accuracy > 0.75, "{context}: {accuracy}");
            // A larger variable, or one of a row's own class, proves nothing.
            let Some(Witness::Classes(dual)) = &loaded.witness else { panic!("a dual point") };
            let changed = |change: &dyn Fn(&mut ClassDual)| {
                let mut dual = dual.clone();
                change(&mut dual);
                Model { witness: Some(Witness::Classes(dual)), ..loaded.clone() }.verify(&data).unwrap_err().code()
            };
            assert_eq!(changed(&|dual| dual.values[0] = 1.0), Code::CertificateMismatch);
            assert_eq!(changed(&|dual| dual.values[0] *= -1.0), Code::CertificateMismatch);
            assert_eq!(changed(&|dual| dual.classes[0] = 4), Code::CertificateMismatch);
            // Rows of the model are rows of the data.
            let rows = loaded.support_rows(&data).unwrap().expect("training rows");
            assert_eq!(rows.len() * 4, loaded.support_coefficients().unwrap().len());
        }
    }
}

#[test]
fn the_compacted_model_of_several_classes_is_as_near_as_it_says() {
    let data = numbered(300, 4, 3, 8);
    let wanted = Settings { kernel: gaussian(0.5), tolerance: 1e-4, ..Settings::new(Task::Classify) };
    let model = fit(&data, &wanted).model;
    let whole = model.scores(&data).unwrap();
    let mut last = f64::INFINITY;
    for vectors in [5, 20, 60] {
        let small = model.compact(Compaction { vectors, distance: 0.0 }, &Cancel::new()).unwrap();
        let distance = small.compacted.clone().unwrap().distance;
        let scores = small.scores(&data).unwrap();
        assert!(distance < last && scores.len() == whole.len());
        assert!(whole.iter().zip(&scores).all(|(a, b)| (a - b).abs() <= distance + 1e-9), "{vectors} {distance}");
        last = distance;
    }
}

#[test]
fn feature_maps_serve_several_classes() {
    let data = worded(&numbered(400, 5, 4, 3));
    for (multiclass, loss) in [
        (Multiclass::Joint, Loss::Hinge),
        (Multiclass::WestonWatkins, Loss::SquaredHinge),
        (Multiclass::Joint, Loss::Logistic),
    ] {
        for approximation in ["nystrom:60", "fourier:80"] {
            for intercept in [Intercept::Free, Intercept::None] {
                let context = format!("{multiclass:?}, {loss:?}, {approximation}, {intercept:?}");
                let approximate = Some(approximation.parse().unwrap());
                let kernel = KernelSettings { approximate, ..gaussian(0.4) };
                let wanted = settings(task(multiclass, intercept), loss);
                let wanted = Settings { kernel, tolerance: 1e-3, scale: Scale::Standard, ..wanted };
                let model = fit(&data, &wanted).model;
                assert!(model.certificate.converged, "{context}");
                let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!(model.scores(&data).unwrap(), loaded.scores(&data).unwrap(), "{context}");
                loaded.verify(&data).unwrap();
                // Each score is that of a model with the weights of its class alone.
                let Scorer::Mapped(mapped) = &model.scorer else { panic!("a mapped model") };
                assert_eq!((mapped.outputs, mapped.weights.len()), (4, mapped.map.features() * 4));
                let all = model.scores(&data).unwrap();
                for class in 0..4 {
                    let mut single = mapped.clone();
                    single.weights = mapped.weights.iter().skip(class).step_by(4).copied().collect();
                    single.outputs = 1;
                    single.intercepts = mapped.intercepts.get(class).copied().into_iter().collect();
                    let single = Model { scorer: Scorer::Mapped(single), ..model.clone() };
                    let own = single.scores(&data).unwrap();
                    assert!(own.iter().zip(all.iter().skip(class).step_by(4)).all(|(a, b)| (a - b).abs() < 1e-9));
                }
            }
        }
    }
}

#[test]
fn kernels_are_tuned_on_several_classes() {
    let data = worded(&numbered(160, 3, 4, 9));
    let at = |c: f64| Settings {
        regularisation: Regularisation::C(c),
        kernel: gaussian(0.5),
        tolerance: 1e-6,
        max_passes: 100_000,
        ..Settings::new(Task::Classify)
    };
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::Accuracy] };
    let tuned = validation.run(&data, &[at(1e-3), at(1.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(tuned.rows.iter().all(|row| row.converged));
    // A fold is what training without its rows gives.
    for (fold, held_out) in maxmargin::data::folds(&data, 4, 1).unwrap().iter().enumerate() {
        let kept: Vec<usize> = (0..data.rows()).filter(|row| !held_out.contains(row)).collect();
        let (learned, judged) = (data.subset(&kept).unwrap(), data.subset(held_out).unwrap());
        let model = fit(&learned, &at(1.0)).model;
        let expected = Answers::new(&model, &judged).unwrap().evaluate(&Metric::Accuracy).unwrap().value;
        assert!((tuned.rows[1].metrics[0].folds[fold] - expected).abs() < 1e-9);
    }
    let refitted = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).unwrap().model;
    assert_close(objective(&refitted), objective(&fit(&data, &at(1.0)).model), 1e-5, "refitted");
}

#[test]
fn a_class_with_one_row_and_equal_rows_of_two_classes_are_learned_from() {
    let values = vec![0.0, 0.0, 0.1, 0.0, 0.0, 0.1, 3.0, 3.0, 3.1, 3.0, 3.0, 3.0, 9.0, -9.0];
    let matrix = Matrix::DenseF64(Dense::new(values, 7, 2).unwrap());
    let targets = Targets::Real(vec![1.0, 1.0, 1.0, 2.0, 2.0, 5.0, 7.0].into());
    let data = Dataset::new(matrix, targets).unwrap();
    for (multiclass, _) in FORMS {
        for intercept in INTERCEPTS {
            let wanted = settings(task(multiclass, intercept), Loss::Hinge);
            let wanted =
                Settings { kernel: gaussian(0.2), regularisation: Regularisation::C(100.0), tolerance: 1e-6, ..wanted };
            let model = fit(&data, &wanted).model;
            let context = format!("{multiclass:?}, {intercept:?}");
            assert!(model.certificate.converged, "{context}");
            model.verify(&data).unwrap();
            let accuracy = Answers::new(&model, &data).unwrap().evaluate(&Metric::Accuracy).unwrap().value;
            assert!(accuracy > 0.8, "{context}: {accuracy}");
        }
    }
}

/// Some of the rows, with targets of two classes.
fn two_of(data: &Dataset, rows: &[usize], positive: impl Fn(usize) -> bool) -> Dataset {
    let targets: Vec<f64> = rows.iter().map(|&row| if positive(row % 4) { 1.0 } else { -1.0 }).collect();
    data.subset(rows).unwrap().with_targets(Targets::Real(targets.into())).unwrap()
}

#[test]
fn columns_through_a_kernel_are_independent_binary_models_over_shared_vectors() {
    let data = numbered(320, 4, 4, 12);
    for intercept in INTERCEPTS {
        for multiclass in [Multiclass::OneVsRest, Multiclass::OneVsOne] {
            let context = format!("{multiclass:?}, {intercept:?}");
            let wanted = Settings {
                kernel: gaussian(0.4),
                max_passes: 100_000,
                ..settings(task(multiclass, intercept), Loss::Hinge)
            };
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &wanted).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2), "{context}");
            let model = Model::from_bytes(&one).unwrap();
            assert!(model.certificate.converged, "{context}");
            let found = model.verify(&data).unwrap();
            assert!(found.lower_bound.unwrap() <= found.objective);
            let scores = model.scores(&data).unwrap();
            let expected = scores_by_definition(&model, &data, 0.4);
            assert!(scores.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{context}");
            let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
            assert!(expansion.count() <= data.rows(), "a vector is stored once");
            let accuracy = Answers::new(&model, &data).unwrap().evaluate(&Metric::Accuracy).unwrap().value;
            assert!(accuracy > 0.75, "{context}: {accuracy}");
            // The same columns, each by itself.
            let all: Vec<usize> = (0..320).collect();
            let mut parts = Vec::new();
            for a in 0..4 {
                if multiclass == Multiclass::OneVsRest {
                    parts.push(two_of(&data, &all, |class| class == a));
                    continue;
                }
                for b in a + 1..4 {
                    let rows: Vec<usize> = all.iter().copied().filter(|row| [a, b].contains(&(row % 4))).collect();
                    parts.push(two_of(&data, &rows, |class| class == b));
                }
            }
            let alone = ClassifySettings { intercept, ..ClassifySettings::default() };
            let alone = Settings { kernel: wanted.kernel.clone(), max_passes: 100_000, ..settings(alone, Loss::Hinge) };
            let models: Vec<Model> = parts.iter().map(|part| fit(part, &alone).model).collect();
            assert_eq!(models.len(), model.scorer.outputs());
            assert_close(models.iter().map(objective).sum(), objective(&model), 2e-7, &context);
            if multiclass == Multiclass::OneVsRest {
                for (class, alone) in models.iter().enumerate() {
                    let own = alone.scores(&data).unwrap();
                    let column = scores.iter().skip(class).step_by(4);
                    assert!(own.iter().zip(column).all(|(a, b)| (a - b).abs() < 1e-3), "{context}, class {class}");
                }
            }
        }
    }
}
