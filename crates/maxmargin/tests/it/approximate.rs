//! Feature maps in place of kernels: every linear task and solver can learn from them, and with all rows as landmarks
//! they equal the kernel. Also files, threads and hostile data.

use crate::made::{Numbers, fit, graded, two_classes};
use crate::pairs::compared;
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{Approximation, KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::memory::{check_mapped, within};
use maxmargin::model::{Mapped, Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use maxmargin::solve::EarlyStopping;
use maxmargin::train::{approximation_loss, choose_solver, train};

fn mapped(kind: KernelKind, gamma: Option<f64>, approximation: &str) -> KernelSettings {
    let approximate = Some(approximation.parse::<Approximation>().unwrap());
    KernelSettings { kind, gamma, approximate, ..KernelSettings::default() }
}

fn gaussian(approximation: &str) -> KernelSettings {
    mapped(KernelKind::Gaussian, Some(0.1), approximation)
}

fn features(model: &Model) -> usize {
    let Scorer::Mapped(Mapped { map, weights, .. }) = &model.scorer else { panic!("a mapped model") };
    assert_eq!(map.features(), weights.len());
    map.features()
}

#[test]
fn with_all_rows_as_landmarks_the_optimum_is_that_of_the_kernel() {
    for dense in [true, false] {
        let (classes, pairs) = (two_classes(150, 4, dense, 3), compared(40, 4, 150, 5));
        for (data, task) in [(&classes, Task::Classify), (&pairs, Task::Rank)] {
            for (kind, gamma) in [(KernelKind::Gaussian, Some(0.3)), (KernelKind::Polynomial, Some(0.1))] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    let kernel = KernelSettings { kind, gamma, ..KernelSettings::default() };
                    let exact = Settings { loss, kernel, tolerance: 1e-6, scale: Scale::MaxAbs, ..Settings::new(task) };
                    let kernel = mapped(kind, gamma, "nystrom:1000");
                    let near = Settings { kernel, ..exact.clone() };
                    let exact = Settings { max_passes: 100_000, ..exact };
                    let (exact, near) = (fit(data, &exact).model, fit(data, &near).model);
                    assert!(exact.certificate.converged && near.certificate.converged, "{loss:?} {kind:?}");
                    let (a, b) = (exact.certificate.objective, near.certificate.objective);
                    assert!((a - b).abs() <= 1e-5 * a, "{loss:?} {kind:?}: {a} {b}");
                    assert!(features(&near) <= data.rows());
                    let scores = exact.scores(data).unwrap().into_iter().zip(near.scores(data).unwrap());
                    scores.for_each(|(a, b)| assert!((a - b).abs() < 0.02, "{loss:?} {kind:?}: {a} {b}"));
                }
            }
        }
    }
}

#[test]
fn every_linear_task_and_solver_learns_from_mapped_rows() {
    let sets = [
        (Task::Classify, two_classes(300, 5, true, 3)),
        (Task::Classify, two_classes(300, 12, false, 4)),
        (Task::Rank, graded(20, 12, 5, 3, 3)),
        (Task::Rank, compared(40, 5, 200, 3)),
    ];
    let mut count = 0;
    for (task, data) in &sets {
        for approximation in ["nystrom:40", "fourier:60"] {
            for loss in Loss::ALL {
                for solver in Solver::ALL {
                    let settings = Settings {
                        loss,
                        kernel: gaussian(approximation),
                        regularisation: Regularisation::C(0.1),
                        scale: Scale::Standard,
                        max_passes: if solver.is_stochastic() { 5 } else { 3000 },
                        solver,
                        ..Settings::new(*task)
                    };
                    let linear = Settings { kernel: KernelSettings::default(), ..settings.clone() };
                    let context = format!("{task:?} {approximation} {loss:?} {solver:?}");
                    if matches!(solver, Solver::Smo | Solver::Lasvm | Solver::LinearProgram) {
                        assert_eq!(settings.validate().unwrap_err().code(), Code::BadSetting, "{context}");
                        continue;
                    }
                    // Whatever can be learned from features can be learned from mapped features.
                    if let Err(error) = choose_solver(&linear, data.shape()) {
                        let refused = train(data, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
                        assert_eq!(refused.to_string(), error.to_string(), "{context}");
                        continue;
                    }
                    let trained = match train(data, &settings, None, &mut Silent, &Cancel::new()) {
                        Err(error) if matches!(error.code(), Code::NotSeparable | Code::Undecided) => continue,
                        trained => trained.unwrap(),
                    };
                    count += 1;
                    let model = &trained.model;
                    assert!(model.certificate.converged || solver.is_stochastic(), "{context}: {:?}", trained.stop);
                    assert!(features(model) <= if approximation == "nystrom:40" { 40 } else { 60 });
                    assert_eq!((model.features(), model.certificate.data_hash), (data.cols(), data.hash().unwrap()));
                    let bytes = model.to_bytes().unwrap();
                    let read = Model::from_bytes(&bytes).unwrap();
                    assert!(read.to_bytes().unwrap() == bytes, "{context}");
                    assert_eq!(read.scores(data).unwrap(), model.scores(data).unwrap(), "{context}");
                    assert!(model.scores(data).unwrap().iter().all(|score| score.is_finite()), "{context}");
                    let found = read.verify(data).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_eq!(found.lower_bound.is_some(), !solver.is_stochastic(), "{context}");
                }
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_kernel_takes_landmarks() {
    let classes = two_classes(200, 5, true, 3);
    for kind in KernelKind::ALL {
        let kernel = mapped(kind, None, "nystrom:30");
        let settings = Settings { kernel, scale: Scale::MinMax, ..Settings::new(Task::Classify) };
        if kind == KernelKind::Linear {
            let error = settings.validate().unwrap_err();
            assert!(error.remedy().unwrap().contains("`kernel = \"gaussian\"`"), "{error}");
            continue;
        }
        if kind == KernelKind::Precomputed {
            assert!(Settings { scale: Scale::None, ..settings }.validate().is_err());
            continue;
        }
        let model = fit(&classes, &settings).model;
        assert!(model.certificate.converged, "{kind:?}");
        model.verify(&classes).unwrap();
    }
    let kernel = mapped(KernelKind::ChiSquared, None, "nystrom:30");
    let settings = Settings { kernel, scale: Scale::Standard, ..Settings::new(Task::Classify) };
    let error = train(&classes, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("negative"), "{error}");
}

#[test]
fn stochastic_solvers_stop_early_by_samples_of_mapped_rows() {
    let data = two_classes(5000, 4, true, 3);
    let mut settings =
        Settings { kernel: gaussian("nystrom:20"), ..Settings::new(Task::Classify) }.with_solver(Solver::AveragedSgd);
    settings.stochastic.early_stopping = EarlyStopping::Subsamples;
    let model = fit(&data, &settings).model;
    assert!(features(&model) <= 20 && model.verify(&data).is_ok());
}

#[test]
fn threads_change_no_byte_of_a_mapped_model_or_a_tuning() {
    let (classes, groups) = (two_classes(1500, 20, false, 1), graded(60, 15, 12, 4, 2));
    for (data, task) in [(&classes, Task::Classify), (&groups, Task::Rank)] {
        for approximation in ["nystrom:150", "fourier:100"] {
            let settings =
                Settings { kernel: mapped(KernelKind::Gaussian, None, approximation), ..Settings::new(task) };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let model = fit(data, &settings).model;
                    let loss = approximation_loss(&model, data, &Cancel::new()).unwrap();
                    let grid: Grid = "1e-2,1e-1".parse().unwrap();
                    let metric = if task == Task::Rank { "ndcg@5" } else { "auc" };
                    let validation = CrossValidation { folds: 3, seed: 9, metrics: vec![metric.parse().unwrap()] };
                    let candidates = grid.candidates(&settings);
                    let tuned = validation.run(data, &candidates, &mut Silent, &Cancel::new()).unwrap();
                    let refitted = tuned.refit(tuned.best, data, None, &mut Silent, &Cancel::new()).unwrap().model;
                    let rows: Vec<_> = tuned.rows.into_iter().map(|row| (row.c, row.metrics)).collect();
                    (model.to_bytes().unwrap(), loss, rows, refitted.to_bytes().unwrap())
                })
            };
            let one = run(1);
            assert!(one == run(2) && one == run(8), "{settings:?}");
        }
    }
}

/// Two rings. No plane separates them, but a Gaussian kernel does.
fn rings(rows: usize) -> Dataset {
    let mut numbers = Numbers::new(3);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let (angle, radius) = (6.3 * numbers.next(), if row % 2 == 0 { 1.0 } else { 2.0 } + 0.3 * numbers.next());
        values.extend([radius * angle.cos(), radius * angle.sin()]);
        targets.push(if row % 2 == 0 { 1.0 } else { -1.0 });
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 2).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

#[test]
fn folds_of_a_tuning_are_judged_by_mapped_rows() {
    let data = rings(400);
    let accuracy = |kernel: KernelSettings| {
        let settings = Settings { kernel, scale: Scale::Standard, ..Settings::new(Task::Classify) };
        let grid: Grid = "0.1,1,10".parse().unwrap();
        let validation = CrossValidation { folds: 4, seed: 1, metrics: vec!["accuracy".parse().unwrap()] };
        let tuned = validation.run(&data, &grid.candidates(&settings), &mut Silent, &Cancel::new()).unwrap();
        tuned.rows[tuned.best].metrics[0].mean
    };
    assert!(accuracy(KernelSettings::default()) < 0.7);
    assert!(accuracy(mapped(KernelKind::Gaussian, None, "nystrom:50")) > 0.97);
    assert!(accuracy(mapped(KernelKind::Gaussian, None, "fourier:200")) > 0.97);
}

#[test]
fn what_is_lost_is_measured_and_falls_with_the_size_of_the_map() {
    let classes = rings(1500);
    let settings = |approximation: &str| Settings {
        kernel: mapped(KernelKind::Gaussian, Some(0.5), approximation),
        scale: Scale::Standard,
        regularisation: Regularisation::C(10.0),
        ..Settings::new(Task::Classify)
    };
    let loss = |data: &Dataset, settings: &Settings| {
        approximation_loss(&fit(data, settings).model, data, &Cancel::new()).unwrap().unwrap()
    };
    for name in ["nystrom", "fourier"] {
        let [few, many] = [2, 400].map(|size| loss(&classes, &settings(&format!("{name}:{size}"))));
        assert!(many.kernel_error.unwrap() < 0.3 * few.kernel_error.unwrap(), "{few:?} {many:?}");
        let (few, many) = (few.compared.unwrap(), many.compared.unwrap());
        assert_eq!((few.exact, few.learned + few.judged), (many.exact, 1500));
        assert!(few.approximate < few.exact && (many.approximate - many.exact).abs() < 0.03, "{few:?} {many:?}");
    }
    let all = loss(&classes, &settings("nystrom:2000"));
    assert!(all.kernel_error.unwrap() < 1e-6, "{all:?}");
    // Pairs and graded queries are compared by pairs. Tasks without an exact kernel and data that are too small are not
    // compared.
    let pairs =
        loss(&compared(200, 4, 900, 3), &Settings { kernel: gaussian("nystrom:30"), ..Settings::new(Task::Rank) });
    let compared_pairs = pairs.compared.unwrap();
    assert_eq!(compared_pairs.learned + compared_pairs.judged, 900);
    assert!(compared_pairs.exact > 0.7 && compared_pairs.approximate > 0.7, "{compared_pairs:?}");
    let rank = Settings { kernel: gaussian("nystrom:30"), ..Settings::new(Task::Rank) };
    let queries = graded(40, 10, 5, 3, 3);
    let by_queries = loss(&queries, &rank).compared.unwrap();
    assert!(by_queries.learned.is_multiple_of(10) && by_queries.learned + by_queries.judged == 400, "{by_queries:?}");
    assert!((by_queries.exact - by_queries.approximate).abs() < 0.1 && by_queries.exact > 0.7, "{by_queries:?}");
    let by_hinge = loss(&queries, &Settings { loss: Loss::Hinge, ..rank });
    assert!(by_hinge.kernel_error.is_some() && by_hinge.compared.is_err(), "{by_hinge:?}");
    let small = loss(&two_classes(100, 4, true, 1), &settings("nystrom:30"));
    assert!(small.compared.unwrap_err().contains("too few"));
    let linear = fit(&classes, &Settings::new(Task::Classify)).model;
    assert_eq!(approximation_loss(&linear, &classes, &Cancel::new()).unwrap(), None);
}

#[test]
fn hostile_data_are_mapped_or_refused() {
    let set = |values: Vec<f64>, cols: usize, targets: Vec<f64>| {
        let matrix = Matrix::DenseF64(Dense::new(values, targets.len(), cols).unwrap());
        Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
    };
    let signs = |rows: usize| (0..rows).map(|row| if row % 2 == 0 { 1.0 } else { -1.0 }).collect::<Vec<f64>>();
    let learn = |data: &Dataset, approximation: &str, gamma: Option<f64>| {
        let kernel = mapped(KernelKind::Gaussian, gamma, approximation);
        train(data, &Settings { kernel, ..Settings::new(Task::Classify) }, None, &mut Silent, &Cancel::new())
    };
    // Copies of one row are one landmark. Data without features also have one landmark.
    for data in [set(vec![2.5; 40], 2, signs(20)), set(Vec::new(), 0, signs(20))] {
        assert_eq!(features(&learn(&data, "nystrom:15", None).unwrap().model), 1);
        let model = learn(&data, "fourier:8", None).unwrap().model;
        assert!(model.scores(&data).unwrap().iter().all(|score| score.is_finite()));
        model.verify(&data).unwrap();
    }
    let two = set(vec![0.0, 1.0], 1, signs(2));
    let model = learn(&two, "nystrom:1", None).unwrap().model;
    assert_eq!(features(&model), 1);
    let loss = approximation_loss(&model, &two, &Cancel::new()).unwrap().unwrap();
    assert!(loss.kernel_error.is_some() && loss.compared.is_err());
    let single = set(vec![3.0], 1, vec![1.0]);
    assert_eq!(learn(&single, "nystrom:5", None).unwrap_err().code(), Code::SingleClass);
    // Rows are far apart, so every row is its own landmark. The numbers are huge, and everything stays finite.
    let far = set((0..60).map(|at| f64::from(at) * 1e12).collect(), 1, signs(60));
    for approximation in ["nystrom:100", "fourier:50"] {
        let model = learn(&far, approximation, None).unwrap().model;
        assert!(model.scores(&far).unwrap().iter().all(|score| score.is_finite()));
        let model = learn(&far, approximation, Some(1e-3)).unwrap().model;
        model.verify(&far).unwrap();
    }
    let kernel = KernelSettings { degree: Some(60), ..mapped(KernelKind::Polynomial, Some(1.0), "nystrom:20") };
    let settings = Settings { kernel, ..Settings::new(Task::Classify) };
    let error = train(&far, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::BadSetting, "{error}");
    let zeros = set(vec![0.0; 20], 1, signs(20));
    let kernel = mapped(KernelKind::Polynomial, Some(1.0), "nystrom:20");
    let settings = Settings { kernel, ..Settings::new(Task::Classify) };
    let error = train(&zeros, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::BadSetting, "{error}");
}

#[test]
fn mapped_rows_that_do_not_fit_are_refused_before_they_are_made() {
    let data = two_classes(1000, 4, true, 3);
    let settings = Settings { kernel: gaussian("nystrom:900"), ..Settings::new(Task::Classify) };
    check_mapped(&data, &settings, 1 << 30).unwrap();
    let error = check_mapped(&data, &settings, 4_000_000).unwrap_err();
    assert_eq!(error.code(), Code::MemoryBudget);
    assert!(error.remedy().unwrap().contains("about 500"), "{error:?}");
    let error = within(data.clone(), &settings, 4_000_000, 0).unwrap_err();
    assert!(error.remedy().unwrap().contains("`memory = ") && error.remedy().unwrap().contains("fewer"), "{error:?}");
    within(data, &settings, 1 << 30, 0).unwrap();
}

#[test]
fn altered_model_files_are_refused() {
    let data = two_classes(120, 4, true, 3);
    for approximation in ["nystrom:20", "fourier:20"] {
        let settings = Settings { kernel: gaussian(approximation), ..Settings::new(Task::Classify) };
        let model = fit(&data, &settings).model;
        let alter = |change: &dyn Fn(&mut Model)| {
            let mut changed = model.clone();
            change(&mut changed);
            changed
        };
        let fewer = alter(&|model| {
            let Scorer::Mapped(mapped) = &mut model.scorer else { panic!("mapped") };
            mapped.weights.pop();
        });
        assert!(fewer.to_bytes().is_err());
        let other = alter(&|model| {
            let Scorer::Mapped(mapped) = &mut model.scorer else { panic!("mapped") };
            mapped.weights[0] += 1e-3;
        });
        assert_eq!(other.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
        let seed = alter(&|model| model.settings.seed += 1);
        let read = Model::from_bytes(&seed.to_bytes().unwrap()).unwrap();
        // Landmarks are stored; frequencies follow from the seed.
        assert_eq!(read.verify(&data).is_ok(), approximation == "nystrom:20");
        let unmapped = alter(&|model| model.settings.kernel.approximate = None);
        assert!(unmapped.to_bytes().is_err());
    }
}
