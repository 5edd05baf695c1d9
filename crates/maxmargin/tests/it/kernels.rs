//! Kernels: the optimum over kernel values equals that of an independent solver, and the linear kernel equals linear
//! weights. Also files and hostile data.

use crate::made::{fit, two_classes};
use crate::pairs::compared;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, ZeroConeT};
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{Kernel, KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use maxmargin::task::Intercept;
use maxmargin::train::train;

pub(crate) fn row(data: &Dataset, row: usize) -> Vec<f64> {
    let mut values = vec![0.0; data.cols()];
    data.matrix().each_in_row(row, |column, value| values[column] = value);
    values
}

/// The kernels by their definitions.
pub(crate) fn value(settings: &KernelSettings, x: &[f64], z: &[f64]) -> f64 {
    let product: f64 = x.iter().zip(z).map(|(x, z)| x * z).sum();
    let (gamma, coef0) = (settings.gamma.unwrap_or(0.0), settings.coef0.unwrap_or(0.0));
    let distance = |part: fn(f64, f64) -> f64| x.iter().zip(z).map(|(&x, &z)| part(x, z)).sum::<f64>();
    match settings.kind {
        KernelKind::Linear => product,
        KernelKind::Polynomial => (gamma * product + coef0).powi(settings.degree.unwrap_or(3) as i32),
        KernelKind::Gaussian => (-gamma * distance(|x, z| (x - z) * (x - z))).exp(),
        KernelKind::Sigmoid => (gamma * product + coef0).tanh(),
        KernelKind::ChiSquared => {
            (-gamma * distance(|x, z| if x + z > 0.0 { (x - z) * (x - z) / (x + z) } else { 0.0 })).exp()
        }
        KernelKind::Intersection => distance(f64::min),
        KernelKind::Precomputed | KernelKind::Custom => f64::NAN,
    }
}

/// A constraint of the referee: coefficients by row, threshold, cost.
pub(crate) type Block = (Vec<(usize, f64)>, f64, f64);

/// The optimum of the dual over written-out kernel values between blocks, all with margin 1.
fn referee(blocks: &[Block], kernel: &dyn Fn(usize, usize) -> f64, loss: Loss, intercept: Intercept) -> f64 {
    let balanced: Vec<(Vec<f64>, f64)> = match intercept {
        Intercept::Free => vec![(blocks.iter().map(|block| block.1).collect(), 0.0)],
        _ => Vec::new(),
    };
    -program(blocks, kernel, loss, intercept, 1.0, &balanced)
}

/// min ½αᵀQα − margin·Σα over the box, with the given weighted sums fixed.
pub(crate) fn program(
    blocks: &[Block],
    kernel: &dyn Fn(usize, usize) -> f64,
    loss: Loss,
    intercept: Intercept,
    margin: f64,
    sums: &[(Vec<f64>, f64)],
) -> f64 {
    let count = blocks.len();
    let between = |i: usize, j: usize| -> f64 {
        let mut sum = if intercept == Intercept::Penalised { blocks[i].1 * blocks[j].1 } else { 0.0 };
        for &(a, x) in &blocks[i].0 {
            for &(b, z) in &blocks[j].0 {
                sum += x * z * kernel(a, b);
            }
        }
        sum + if i == j && loss == Loss::SquaredHinge { 0.5 / blocks[i].2 } else { 0.0 }
    };
    let (mut i, mut j, mut v) = (vec![], vec![], vec![]);
    for row in 0..count {
        for column in row..count {
            i.push(row);
            j.push(column);
            v.push(between(row, column) + if row == column { 1e-13 } else { 0.0 });
        }
    }
    let quadratic = CscMatrix::new_from_triplets(count, count, i, j, v);
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let equalities = sums.len();
    for (row, (coefficients, sum)) in sums.iter().enumerate() {
        for (at, &coefficient) in coefficients.iter().enumerate() {
            i.push(row);
            j.push(at);
            v.push(coefficient);
        }
        right.push(*sum);
    }
    let upper = if loss == Loss::Hinge { count } else { 0 };
    for at in 0..count {
        i.push(equalities + at);
        j.push(at);
        v.push(-1.0);
        right.push(0.0);
    }
    for (at, block) in blocks.iter().enumerate().take(upper) {
        i.push(equalities + count + at);
        j.push(at);
        v.push(1.0);
        right.push(block.2);
    }
    let constraints = CscMatrix::new_from_triplets(equalities + count + upper, count, i, j, v);
    let cones = [ZeroConeT(equalities), NonnegativeConeT(count + upper)];
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-10)
        .tol_gap_rel(1e-10)
        .tol_feas(1e-10)
        .build()
        .unwrap();
    let linear = vec![-margin; count];
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

/// Kernel values are f32, so seven digits are the most that can be expected.
fn assert_solved(data: &Dataset, settings: &Settings, optimum: f64) {
    const ROUNDING: f64 = 1e-6;
    let trained = fit(data, settings);
    let certificate = &trained.model.certificate;
    let bound = certificate.lower_bound.expect("a bound");
    let context = format!("{settings:?}: {certificate:?}, optimum {optimum}");
    assert!(certificate.converged, "{context}");
    assert!(bound <= optimum * (1.0 + ROUNDING), "a bound above the optimum: {context}");
    assert!((certificate.objective - optimum).abs() <= (settings.tolerance + ROUNDING) * optimum, "{context}");
    let found = trained.model.verify(data).expect("verifies");
    assert!((found.objective - certificate.objective).abs() <= ROUNDING * certificate.objective, "{context}");
    assert!(found.lower_bound.expect("a bound") >= bound * (1.0 - ROUNDING), "{context}");
}

fn kernels() -> Vec<KernelSettings> {
    let with = |kind, gamma, degree, coef0| KernelSettings { kind, gamma, degree, coef0, ..KernelSettings::default() };
    vec![
        with(KernelKind::Gaussian, Some(0.3), None, None),
        with(KernelKind::Polynomial, Some(0.1), Some(2), Some(1.0)),
        with(KernelKind::Linear, None, None, None),
        with(KernelKind::ChiSquared, Some(0.4), None, None),
        with(KernelKind::Intersection, None, None, None),
    ]
}

/// Rows without negative values, for histogram kernels.
fn positive(data: &Dataset) -> Dataset {
    let values: Vec<f64> = (0..data.rows()).flat_map(|at| row(data, at)).map(f64::abs).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, data.rows(), data.cols()).unwrap());
    Dataset::new(matrix, Targets::Real(data.targets().real().unwrap().to_vec().into())).unwrap()
}

#[test]
fn classifiers_reach_the_optimum_over_written_out_kernel_values() {
    for dense in [true, false] {
        let mixed = two_classes(60, 4, dense, 3);
        for kernel in kernels() {
            let histogram = matches!(kernel.kind, KernelKind::ChiSquared | KernelKind::Intersection);
            let data = if histogram { positive(&mixed) } else { mixed.clone() };
            let rows: Vec<Vec<f64>> = (0..data.rows()).map(|at| row(&data, at)).collect();
            let signs = data.targets().real().unwrap();
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    let c = 2.0;
                    let blocks: Vec<_> = signs
                        .iter()
                        .enumerate()
                        .map(|(at, &sign)| (vec![(at, sign)], if intercept == Intercept::None { 0.0 } else { sign }, c))
                        .collect();
                    let optimum = referee(&blocks, &|a, b| value(&kernel, &rows[a], &rows[b]), loss, intercept);
                    let settings = Settings {
                        loss,
                        solver: Solver::Smo,
                        kernel: kernel.clone(),
                        regularisation: Regularisation::C(c),
                        tolerance: 1e-6,
                        max_passes: 100_000,
                        ..Settings::new(Task::Classify).with_free(intercept)
                    };
                    assert_solved(&data, &settings, optimum);
                }
            }
        }
    }
}

#[test]
fn explicit_pairs_reach_the_optimum_over_differences() {
    let data = compared(20, 3, 60, 4);
    let rows: Vec<Vec<f64>> = (0..data.rows()).map(|at| row(&data, at)).collect();
    let pairs = data.pairs().unwrap();
    for kernel in kernels().into_iter().take(3) {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let c = 0.7;
            let blocks: Vec<_> = (0..pairs.len())
                .filter(|&pair| pairs.weight(pair) > 0.0)
                .map(|pair| {
                    let (better, worse) = pairs.ordered(pair);
                    (vec![(better, 1.0), (worse, -1.0)], 0.0, c * pairs.weight(pair))
                })
                .collect();
            let optimum = referee(&blocks, &|a, b| value(&kernel, &rows[a], &rows[b]), loss, Intercept::None);
            let settings = Settings {
                loss,
                solver: Solver::Smo,
                kernel: kernel.clone(),
                regularisation: Regularisation::C(c),
                tolerance: 1e-6,
                max_passes: 100_000,
                ..Settings::new(Task::Rank)
            };
            assert_solved(&data, &settings, optimum);
        }
    }
}

#[test]
fn the_linear_kernel_scores_like_weights() {
    let data = two_classes(200, 6, true, 5);
    let by_weights = fit(&data, &Settings { tolerance: 1e-6, ..Settings::new(Task::Classify) }).model;
    let settings =
        Settings { tolerance: 1e-6, solver: Solver::Smo, max_passes: 100_000, ..Settings::new(Task::Classify) };
    let by_kernel = fit(&data, &settings).model;
    let (one, other) = (by_weights.certificate.objective, by_kernel.certificate.objective);
    assert!((one - other).abs() <= 2e-6 * one, "{one} {other}");
    for (one, other) in by_weights.scores(&data).unwrap().iter().zip(by_kernel.scores(&data).unwrap()) {
        assert!((one - other).abs() < 2e-2, "{one} {other}");
    }
}

#[test]
fn a_kernel_model_survives_its_file_and_a_changed_one_is_refused() {
    for dense in [true, false] {
        let data = two_classes(150, 5, dense, 8);
        for scale in [Scale::None, Scale::Standard, Scale::UnitRows] {
            let kernel = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
            let settings = Settings { scale, kernel, ..Settings::new(Task::Classify) };
            let model = fit(&data, &settings).model;
            let bytes = model.to_bytes().unwrap();
            let again = Model::from_bytes(&bytes).unwrap();
            assert_eq!(again.to_bytes().unwrap(), bytes);
            assert_eq!(model.scores(&data).unwrap(), again.scores(&data).unwrap());
            again.verify(&data).expect("verifies");
            let mut changed = again.clone();
            let Scorer::Expansion(expansion) = &mut changed.scorer else { panic!("support vectors") };
            expansion.coefficients[0] *= 1.5;
            assert_eq!(changed.verify(&data).expect_err("another model").code(), Code::CertificateMismatch);
        }
    }
}

#[test]
fn threads_and_the_cache_change_no_bit() {
    let data = two_classes(1500, 6, false, 2);
    let run = |threads: usize, cache: Option<u64>| {
        let kernel =
            KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), cache, ..KernelSettings::default() };
        let settings = Settings { kernel, ..Settings::new(Task::Classify) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&data, &settings).model.to_bytes().unwrap())
    };
    let alone = run(1, None);
    assert!(alone == run(2, None) && alone == run(8, None));
    // A cache of one byte holds only what a round needs.
    assert!(alone == run(2, Some(1)));
}

/// Two classes, and the same rows twice with opposite labels; and kernels that suit neither.
pub(crate) fn hostile() -> ([Dataset; 2], [KernelSettings; 5]) {
    let clean = two_classes(80, 3, true, 6);
    let twice: Vec<f64> = (0..160).flat_map(|at| row(&clean, at / 2)).collect();
    let labels: Vec<f64> = (0..160).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let matrix = Matrix::DenseF64(Dense::new(twice, 160, 3).unwrap());
    let contradictory = Dataset::new(matrix, Targets::Real(labels.into())).unwrap();
    let with = |kind, gamma, coef0| KernelSettings { kind, gamma, coef0, ..KernelSettings::default() };
    let kernels = [
        with(KernelKind::Sigmoid, Some(5.0), Some(-3.0)),
        with(KernelKind::Gaussian, Some(1e9), None),
        with(KernelKind::Gaussian, Some(1e-9), None),
        with(KernelKind::Polynomial, Some(10.0), Some(1.0)),
        with(KernelKind::Gaussian, None, None),
    ];
    ([clean, contradictory], kernels)
}

#[test]
fn hostile_kernels_and_rows_end_with_a_stated_outcome() {
    let (sets, kernels) = hostile();
    for kernel in kernels {
        for data in &sets {
            for c in [1e-6, 1.0, 1e6] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    let settings = Settings {
                        kernel: kernel.clone(),
                        loss,
                        regularisation: Regularisation::C(c),
                        max_passes: 2000,
                        ..Settings::new(Task::Classify)
                    };
                    match train(data, &settings, None, &mut Silent, &Cancel::new()) {
                        Ok(trained) => {
                            let certificate = &trained.model.certificate;
                            let what = format!("{kernel:?} C {c} {loss:?}: {certificate:?}");
                            assert!(certificate.objective.is_finite(), "{what}");
                            assert!(
                                trained.model.scores(data).unwrap().iter().all(|score| score.is_finite()),
                                "{what}"
                            );
                            let definite = kernel.kind != KernelKind::Sigmoid;
                            assert_eq!(definite, certificate.lower_bound.is_some(), "{what}");
                            let bound = certificate.lower_bound.unwrap_or(0.0);
                            assert!(!definite || bound <= certificate.objective * (1.0 + 1e-6), "{what}");
                            assert!(!definite || trained.model.verify(data).is_ok(), "{what}");
                        }
                        Err(error) => assert_eq!(error.code(), Code::Overflow, "{kernel:?} C {c} {loss:?}: {error:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_kernel_cannot_do_is_refused_before_any_work() {
    let data = two_classes(20, 3, true, 1);
    let with = |kind, gamma, degree| KernelSettings { kind, gamma, degree, ..KernelSettings::default() };
    let refused =
        |settings: Settings| train(&data, &settings, None, &mut Silent, &Cancel::new()).expect_err("refused").code();
    let base = Settings::new(Task::Classify);
    let gaussian = with(KernelKind::Gaussian, None, None);
    assert_eq!(refused(Settings { kernel: gaussian.clone(), loss: Loss::Logistic, ..base.clone() }), Code::Unsupported);
    assert_eq!(
        refused(Settings { kernel: gaussian.clone(), solver: Solver::DualCoordinateDescent, ..base.clone() }),
        Code::BadSetting
    );
    assert_eq!(
        refused(Settings { kernel: gaussian.clone(), solver: Solver::Newton, ..base.clone() }),
        Code::Unsupported
    );
    assert_eq!(
        refused(Settings { kernel: with(KernelKind::Gaussian, Some(-1.0), None), ..base.clone() }),
        Code::BadSetting
    );
    assert_eq!(
        refused(Settings { kernel: with(KernelKind::Linear, Some(1.0), None), ..base.clone() }),
        Code::BadSetting
    );
    assert_eq!(
        refused(Settings { kernel: with(KernelKind::Polynomial, None, Some(0)), ..base.clone() }),
        Code::BadSetting
    );
    let idle = KernelSettings { cache: Some(1 << 20), ..KernelSettings::default() };
    assert_eq!(refused(Settings { kernel: idle, ..base.clone() }), Code::BadSetting);
    let negative = Matrix::DenseF64(Dense::new(vec![1.0, -1.0], 2, 1).unwrap());
    let negative = Dataset::new(negative, Targets::Real(vec![1.0, -1.0].into())).unwrap();
    let settings = Settings { kernel: with(KernelKind::ChiSquared, None, None), ..base.clone() };
    let error = train(&negative, &settings, None, &mut Silent, &Cancel::new()).expect_err("no histogram");
    assert_eq!(error.code(), Code::BadSetting);
    let ranking = crate::made::graded(4, 5, 3, 3, 1);
    for refused in [
        Settings { kernel: gaussian.clone(), loss: Loss::Hinge, ..Settings::new(Task::Rank) },
        Settings { kernel: gaussian, solver: Solver::Smo, ..Settings::new(Task::Rank) },
        Settings { regularisation: Regularisation::Nu(0.5), loss: Loss::Hinge, ..Settings::new(Task::Rank) },
    ] {
        let error = train(&ranking, &refused, None, &mut Silent, &Cancel::new()).expect_err("graded");
        assert_eq!(error.code(), Code::Unsupported);
    }
}

#[test]
fn graded_rows_reach_the_optimum_over_all_their_pairs() {
    let data = crate::made::graded(5, 7, 3, 4, 2);
    let rows: Vec<Vec<f64>> = (0..data.rows()).map(|at| row(&data, at)).collect();
    let grades = data.targets().real().unwrap();
    for kernel in kernels().into_iter().take(2) {
        for c in [0.05, 2.0, 100.0] {
            let mut blocks: Vec<Block> = Vec::new();
            for group in data.groups().unwrap().ranges() {
                for better in group.clone() {
                    for worse in group.clone().filter(|&worse| grades[better] > grades[worse]) {
                        blocks.push((vec![(better, 1.0), (worse, -1.0)], 0.0, c));
                    }
                }
            }
            let optimum =
                referee(&blocks, &|a, b| value(&kernel, &rows[a], &rows[b]), Loss::SquaredHinge, Intercept::None);
            let settings = Settings {
                kernel: kernel.clone(),
                regularisation: Regularisation::C(c),
                tolerance: 1e-7,
                ..Settings::new(Task::Rank)
            };
            assert_solved(&data, &settings, optimum);
            // Kernel rows that are not cached are computed again, with the same result.
            let poor = KernelSettings { cache: Some(1), ..kernel.clone() };
            assert_solved(&data, &Settings { kernel: poor, ..settings }, optimum);
        }
    }
}

#[test]
fn kernels_that_rank_nothing_end_with_a_reason() {
    let data = crate::made::graded(6, 6, 3, 3, 2);
    let refused = |data: &Dataset, kernel: KernelSettings| {
        let settings = Settings { kernel, ..Settings::new(Task::Rank) };
        train(data, &settings, None, &mut Silent, &Cancel::new()).expect_err("no kernel to rank by").code()
    };
    // Kernel values that overflow.
    let steep = KernelSettings {
        kind: KernelKind::Polynomial,
        gamma: Some(1e9),
        degree: Some(80),
        coef0: Some(1.0),
        ..KernelSettings::default()
    };
    assert_eq!(refused(&data, steep), Code::Overflow);
    // All kernel values of a row with itself are negative.
    let rows = data.rows();
    let values: Vec<f64> = (0..rows * rows).map(|at| if at % (rows + 1) == 0 { -1.0 } else { 0.0 }).collect();
    let negative = data.clone().with_matrix(Matrix::DenseF64(Dense::new(values, rows, rows).unwrap())).unwrap();
    let precomputed = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    assert_eq!(refused(&negative, precomputed), Code::Unsupported);
}

#[test]
fn the_cache_changes_no_bit_of_a_ranking_either() {
    let data = crate::made::graded(130, 10, 4, 3, 5);
    let run = |cache: Option<u64>| {
        let kernel =
            KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), cache, ..KernelSettings::default() };
        fit(&data, &Settings { kernel, ..Settings::new(Task::Rank) }).model.to_bytes().unwrap()
    };
    // Of the 1,300 rows, a cache of one byte keeps 1,024.
    assert!(run(None) == run(Some(1)));
}

#[test]
fn a_model_whose_kernel_is_not_that_of_its_settings_is_no_model() {
    let data = two_classes(60, 4, true, 3);
    let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    let model = fit(&data, &Settings { kernel: kernel.clone(), ..Settings::new(Task::Classify) }).model;
    for other in [Kernel::Gaussian { gamma: 0.6 }, Kernel::Precomputed, Kernel::Linear, Kernel::Intersection] {
        let mut changed = model.clone();
        let Scorer::Expansion(expansion) = &mut changed.scorer else { panic!("support vectors") };
        expansion.kernel = other;
        assert!(changed.to_bytes().is_err());
    }
    let settings = Settings { kernel, ..Settings::new(Task::OneClass) };
    let mut model = fit(&data, &settings).model;
    assert!(model.to_bytes().is_ok());
    let Scorer::Expansion(expansion) = &mut model.scorer else { panic!("support vectors") };
    expansion.intercepts = vec![100.0];
    assert!(model.to_bytes().is_err(), "a border that lets everything in");
}

#[test]
fn a_kernel_that_is_linear_ranks_like_weights() {
    let data = crate::made::graded(30, 12, 5, 3, 7);
    let linear = KernelSettings {
        kind: KernelKind::Polynomial,
        gamma: Some(1.0),
        degree: Some(1),
        coef0: Some(0.0),
        ..KernelSettings::default()
    };
    let base = Settings { tolerance: 1e-6, ..Settings::new(Task::Rank) };
    let by_weights = fit(&data, &base).model;
    let by_kernel = fit(&data, &Settings { kernel: linear, ..base }).model;
    let (one, other) = (by_weights.certificate.objective, by_kernel.certificate.objective);
    assert!((one - other).abs() <= 2e-6 * one, "{one} {other}");
    for (one, other) in by_weights.scores(&data).unwrap().iter().zip(by_kernel.scores(&data).unwrap()) {
        assert!((one - other).abs() < 1e-2, "{one} {other}");
    }
    let again = Model::from_bytes(&by_kernel.to_bytes().unwrap()).unwrap();
    again.verify(&data).expect("verifies");
    let mut changed = again.clone();
    let Scorer::Expansion(expansion) = &mut changed.scorer else { panic!("support vectors") };
    expansion.coefficients[0] *= 1.5;
    assert_eq!(changed.verify(&data).expect_err("another model").code(), Code::CertificateMismatch);
    let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let bytes = |threads: usize| pool(threads).install(|| fit(&data, &by_kernel.settings).model.to_bytes().unwrap());
    assert!(bytes(1) == bytes(2) && bytes(1) == bytes(8));
}

#[test]
fn columns_that_new_rows_lack_count_as_zeros() {
    for dense in [true, false] {
        let data = two_classes(60, 4, dense, 3);
        let padded: Vec<Vec<(usize, f64)>> =
            (0..5).map(|at| row(&data, at).into_iter().take(2).enumerate().collect()).collect();
        let rows = |cols: usize| {
            let values: Vec<f64> =
                padded.iter().flat_map(|row| (0..cols).map(|c| row.get(c).map_or(0.0, |entry| entry.1))).collect();
            let matrix = match dense {
                true => Matrix::DenseF64(Dense::new(values, 5, cols).unwrap()),
                false => Matrix::from_rows(&padded, cols).unwrap(),
            };
            Dataset::new(matrix, Targets::Absent).unwrap()
        };
        for scale in [Scale::None, Scale::Standard, Scale::MaxAbs] {
            let kernel = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
            let model = fit(&data, &Settings { scale, kernel, ..Settings::new(Task::Classify) }).model;
            let (short, whole) = (model.scores(&rows(2)).unwrap(), model.scores(&rows(4)).unwrap());
            for (short, whole) in short.iter().zip(&whole) {
                assert!((short - whole).abs() < 1e-9, "{scale:?} {short} {whole}");
            }
        }
    }
}

#[test]
fn a_model_trained_in_f32_verifies_though_its_few_vectors_predict_in_f64() {
    let data = two_classes(4500, 4, true, 7);
    for kernel in [
        KernelSettings { kind: KernelKind::Polynomial, coef0: Some(1.0), ..KernelSettings::default() },
        KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() },
    ] {
        let settings = Settings {
            kernel,
            regularisation: Regularisation::C(10.0),
            max_passes: 100_000,
            ..Settings::new(Task::Classify)
        };
        let model = fit(&data, &settings).model;
        let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
        assert!(expansion.coefficients.len() < 4096);
        model.verify(&data).expect("verifies");
    }
}

/// Rows of two overlapping classes in four features, of which some occur twice, with both labels.
fn overlapping() -> Dataset {
    let mixed = |row: usize, column: usize| ((row * 31 + column * 17) as f64 * 12.9898).sin() * 1.5;
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..60 {
        let side = if row % 2 == 0 { 1.0 } else { -1.0 };
        match row % 10 {
            // Equal to the row before, which has the other label.
            9 => values.extend_from_within(values.len() - 4..),
            _ => values.extend((0..4).map(|column| mixed(row, column) + 0.4 * side)),
        }
        targets.push(side);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, 60, 4).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

#[test]
fn the_rows_of_all_vectors_are_found_and_rebuild_the_scores() {
    let data = overlapping();
    let targets = data.targets().real().unwrap().to_vec();
    for (kind, loss, solver) in [
        (KernelKind::Sigmoid, Loss::Hinge, Solver::Smo),
        (KernelKind::Gaussian, Loss::Hinge, Solver::Smo),
        (KernelKind::Gaussian, Loss::SquaredHinge, Solver::Lasvm),
        (KernelKind::Gaussian, Loss::Hinge, Solver::Sgd),
    ] {
        let kernel = KernelSettings { kind, gamma: Some(0.5), ..KernelSettings::default() };
        let settings = Settings { loss, kernel: kernel.clone(), ..Settings::new(Task::Classify).with_solver(solver) };
        let model = train(&data, &settings, None, &mut Silent, &Cancel::new()).unwrap().model;
        let (rows, coefficients) = (model.support_rows(&data).unwrap().unwrap(), model.support_coefficients().unwrap());
        assert_eq!(rows.len(), coefficients.len(), "{kind:?} {solver:?}");
        assert!(rows.len() > 5 && rows.iter().zip(&coefficients).all(|(&row, c)| targets[row] * c > 0.0), "{kind:?}");
        for (score, of) in model.scores(&data).unwrap().into_iter().zip(0..) {
            let terms = rows
                .iter()
                .zip(&coefficients)
                .map(|(&vector, c)| c * value(&kernel, &row(&data, of), &row(&data, vector)));
            let rebuilt = terms.sum::<f64>() + model.scorer.intercept().unwrap_or(0.0);
            assert!((score - rebuilt).abs() < 1e-6, "{kind:?} {solver:?}: {score} {rebuilt}");
        }
    }
}

#[test]
fn precomputed_values_have_coefficients_of_rows() {
    let data = overlapping();
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    let values = (0..60 * 60).map(|at| value(&gaussian, &row(&data, at / 60), &row(&data, at % 60)));
    let matrix = Matrix::DenseF64(Dense::new(values.collect::<Vec<_>>(), 60, 60).unwrap());
    let values = Dataset::new(matrix, Targets::Real(data.targets().real().unwrap().to_vec().into())).unwrap();
    let kernel = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    let settings = Settings { kernel, ..Settings::new(Task::Classify) };
    let model = train(&values, &settings, None, &mut Silent, &Cancel::new()).unwrap().model;
    let (rows, coefficients) = (model.support_rows(&values).unwrap().unwrap(), model.support_coefficients().unwrap());
    for (score, of) in model.scores(&values).unwrap().into_iter().zip(0..) {
        let terms = rows.iter().zip(&coefficients).map(|(&vector, c)| c * row(&values, of)[vector]);
        assert!((score - terms.sum::<f64>() - model.scorer.intercept().unwrap()).abs() < 1e-9);
    }
}

#[test]
fn squared_hinge_without_an_optimum_says_so() {
    let data = overlapping();
    let kernel =
        KernelSettings { kind: KernelKind::Sigmoid, gamma: Some(2.0), coef0: Some(-2.0), ..KernelSettings::default() };
    for solver in [Solver::Smo, Solver::Lasvm] {
        let settings = Settings {
            kernel: kernel.clone(),
            loss: Loss::SquaredHinge,
            ..Settings::new(Task::Classify).with_solver(solver)
        };
        let settings = Settings { regularisation: Regularisation::C(100.0), ..settings };
        let error = train(&data, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert_eq!(error.code(), Code::Overflow);
        assert!(error.message().contains("not positive definite"), "{solver:?} {error}");
        assert!(error.remedy().unwrap().contains("hinge"), "{error}");
    }
}

#[test]
fn distances_that_overflow_are_an_error() {
    let rows = |size: f64| {
        let values = [1.0, 3.0, 5.0, 7.0].map(|value| value * size).to_vec();
        let matrix = Matrix::DenseF64(Dense::new(values, 4, 1).unwrap());
        Dataset::new(matrix, Targets::Real(vec![1.0, -1.0, 1.0, -1.0].into())).unwrap()
    };
    let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(1.0), ..KernelSettings::default() };
    let settings = Settings { kernel, regularisation: Regularisation::C(1000.0), ..Settings::new(Task::Classify) };
    let far = train(&rows(1e140), &settings, None, &mut Silent, &Cancel::new()).unwrap().model;
    assert!((far.certificate.objective - 2.0).abs() < 1e-9, "{}", far.certificate.objective);
    let error = train(&rows(1e200), &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::Overflow);
}
