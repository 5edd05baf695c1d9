//! Kernels learned one row at a time: LaSVM compared with the exact solver, stochastic steps compared with the optimum
//! and within their budget. Also files, errors and hostile data.

use crate::kernels::hostile;
use crate::made::{fit, graded, two_classes};
use crate::pairs::compared;
use maxmargin::data::Scale;
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::{Cancel, Event, Observer, Silent};
use maxmargin::settings::{Regularisation, Settings, Solver, Stochastic, Task};
use maxmargin::solve::{EarlyStopping, Schedule, Stop};
use maxmargin::task::Intercept;
use maxmargin::train::train;
use std::ops::ControlFlow;

fn gaussian(gamma: f64, budget: Option<u32>) -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(gamma), budget, ..KernelSettings::default() }
}

fn by(solver: Solver, task: Task, kernel: KernelSettings) -> Settings {
    Settings { kernel, ..Settings::new(task).with_solver(solver) }
}

fn vectors(model: &Model) -> usize {
    let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
    assert_eq!(expansion.vectors.rows(), expansion.coefficients.len());
    expansion.coefficients.len()
}

#[test]
fn lasvm_with_passes_enough_ends_where_the_exact_solver_does() {
    let polynomial = KernelSettings { kind: KernelKind::Polynomial, coef0: Some(1.0), ..KernelSettings::default() };
    for kernel in [gaussian(0.3, None), polynomial, KernelSettings::default()] {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let mut cases = vec![(Task::Rank, Intercept::None, compared(20, 3, 60, 4))];
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                cases.push((Task::Classify, intercept, two_classes(120, 4, intercept != Intercept::Free, 3)));
            }
            for (task, intercept, data) in cases {
                let with = |solver, max_passes, tolerance| Settings {
                    loss,
                    max_passes,
                    tolerance,
                    regularisation: Regularisation::C(2.0),
                    ..by(solver, task, kernel.clone()).with_free(intercept)
                };
                let exact = fit(&data, &with(Solver::Smo, 100_000, 1e-8)).model.certificate;
                let what = format!("{kernel:?} {loss:?} {task:?} {intercept:?}");
                let tight = fit(&data, &with(Solver::Lasvm, 200, 1e-7)).model;
                let objective = tight.certificate.objective;
                assert!((objective - exact.objective).abs() <= 1e-6 * exact.objective, "{what}: {objective} {exact:?}");
                assert!(tight.certificate.converged, "{what}: {:?}", tight.certificate);
                tight.verify(&data).unwrap_or_else(|error| panic!("{what}: {error}"));
                // One pass comes close, and states how close.
                let quick = fit(&data, &with(Solver::Lasvm, 1, 1e-3));
                let certificate = &quick.model.certificate;
                let (objective, bound) = (certificate.objective, certificate.lower_bound.unwrap());
                assert!(bound <= exact.objective * (1.0 + 1e-7) && objective >= bound, "{what}: {certificate:?}");
                assert!(objective <= 1.2 * exact.objective, "{what}: {objective} {exact:?}");
                assert_eq!(certificate.converged, certificate.gap().unwrap() <= 1e-3, "{what}");
                assert_eq!(quick.stop == Stop::Converged, certificate.converged, "{what}");
                assert_eq!(certificate.passes, 1);
                quick.model.verify(&data).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
    }
}

#[test]
fn stochastic_steps_come_near_the_optimum_and_a_budget_that_is_never_reached_changes_nothing() {
    for dense in [true, false] {
        let data = two_classes(300, 4, dense, 3);
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            for solver in [Solver::Sgd, Solver::Pegasos] {
                let with = |solver, budget, max_passes| Settings {
                    loss,
                    max_passes,
                    regularisation: Regularisation::C(0.5),
                    ..by(solver, Task::Classify, gaussian(0.2, budget))
                };
                let exact = fit(&data, &with(Solver::Smo, None, 100_000)).model.certificate.objective;
                let free = fit(&data, &with(solver, None, 60));
                let objective = free.model.certificate.objective;
                assert!(
                    objective >= exact * 0.999 && objective < 1.06 * exact,
                    "{loss:?} {solver:?} {objective} {exact}"
                );
                assert_eq!((free.stop, free.model.certificate.lower_bound), (Stop::Finished, None));
                let merging = free.merging.expect("said");
                assert_eq!((merging.merged, merging.removed, merging.lost), (0, 0, 0.0));
                free.model.verify(&data).expect("verifies");
                let wide = fit(&data, &with(solver, Some(300), 60)).model;
                assert_eq!(free.model.scores(&data).unwrap(), wide.scores(&data).unwrap());
                let narrow = fit(&data, &with(solver, Some(20), 60));
                assert!(vectors(&narrow.model) <= 20);
                let merging = narrow.merging.expect("said");
                assert!(merging.merged > 0 && merging.lost > 0.0 && merging.length > 0.0, "{merging:?}");
                let objective = narrow.model.certificate.objective;
                assert!(objective < 1.5 * exact, "{loss:?} {solver:?} {objective} {exact}");
                narrow.model.verify(&data).expect("verifies");
            }
        }
    }
}

#[test]
fn graded_rows_are_ranked_through_a_kernel_by_their_own_measure() {
    let data = graded(20, 12, 4, 3, 5);
    let (targets, groups) = (data.targets().real().unwrap(), data.groups().unwrap());
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for budget in [None, Some(15)] {
            let settings = Settings {
                loss,
                regularisation: Regularisation::C(0.02),
                ..by(Solver::Sgd, Task::Rank, gaussian(0.1, budget))
            };
            let trained = fit(&data, &settings);
            let model = &trained.model;
            assert_eq!(trained.stop, Stop::Finished);
            let Scorer::Expansion(expansion) = &model.scorer else { panic!("support vectors") };
            let row = |at: usize| {
                let mut values = vec![0.0; data.cols()];
                expansion.vectors.each_in_row(at, |column, value| values[column] = value);
                values
            };
            let count = vectors(model);
            let mut sum = 0.0;
            for (i, j) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))) {
                let distance: f64 = row(i).iter().zip(row(j)).map(|(x, z)| (x - z) * (x - z)).sum();
                sum += 0.5 * expansion.coefficients[i] * expansion.coefficients[j] * (-0.1 * distance).exp();
            }
            let scores = model.scores(&data).unwrap();
            for range in groups.ranges() {
                for (i, j) in range.clone().flat_map(|i| range.clone().map(move |j| (i, j))) {
                    if targets[i] > targets[j] {
                        sum += 0.02 * loss.value(1.0 - (scores[i] - scores[j]));
                    }
                }
            }
            let objective = model.certificate.objective;
            assert!((objective - sum).abs() < 1e-6 * sum, "{loss:?} {budget:?}: {objective} {sum}");
            assert!(objective < 0.9 * 0.02 * model.certificate.constraints as f64, "{objective}");
            model.verify(&data).expect("verifies");
            assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap().scores(&data).unwrap(), scores);
        }
    }
}

#[test]
fn merged_vectors_survive_the_file_and_a_changed_one_is_refused() {
    for dense in [true, false] {
        for scale in [Scale::None, Scale::Standard, Scale::UnitRows] {
            let data = two_classes(150, 5, dense, 8);
            let settings = Settings { scale, ..by(Solver::Sgd, Task::Classify, gaussian(0.3, Some(9))) };
            let model = fit(&data, &settings).model;
            let bytes = model.to_bytes().unwrap();
            let again = Model::from_bytes(&bytes).unwrap();
            assert_eq!(again.to_bytes().unwrap(), bytes);
            assert_eq!(model.scores(&data).unwrap(), again.scores(&data).unwrap());
            assert_eq!(again.settings.kernel.budget, Some(9));
            again.verify(&data).expect("verifies");
            let mut changed = again.clone();
            let Scorer::Expansion(expansion) = &mut changed.scorer else { panic!("support vectors") };
            expansion.coefficients[0] *= 1.5;
            assert_eq!(changed.verify(&data).expect_err("another model").code(), Code::CertificateMismatch);
        }
    }
}

#[test]
fn threads_change_no_bit_of_what_is_learned_online() {
    let rows = two_classes(900, 6, false, 2);
    // More rows than are stored in double precision.
    let many = two_classes(4500, 3, true, 4);
    for (solver, budget) in [(Solver::Lasvm, None), (Solver::Sgd, Some(40)), (Solver::Pegasos, None)] {
        for data in [&rows, &many] {
            let settings = Settings { max_passes: 1, ..by(solver, Task::Classify, gaussian(0.5, budget)) };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let model = fit(data, &settings).model;
                    model.verify(data).expect("verifies");
                    model.to_bytes().unwrap()
                })
            };
            let alone = run(1);
            assert!(alone == run(2) && alone == run(8), "{solver:?}");
        }
    }
}

#[test]
fn a_small_cache_of_kernel_rows_changes_no_bit_of_lasvm() {
    for data in [two_classes(400, 4, true, 3), two_classes(400, 4, false, 3)] {
        let with = |cache| Settings {
            max_passes: 2,
            ..by(Solver::Lasvm, Task::Classify, KernelSettings { cache, ..gaussian(0.5, None) })
        };
        let (roomy, tight) = (fit(&data, &with(None)), fit(&data, &with(Some(2000))));
        assert!(roomy.model.to_bytes().unwrap() == tight.model.to_bytes().unwrap());
        assert!(tight.kernel_rows.unwrap().1 > roomy.kernel_rows.unwrap().1);
    }
}

#[test]
fn hostile_kernels_and_rows_end_with_a_stated_outcome() {
    let (sets, kernels) = hostile();
    for kernel in kernels {
        for data in &sets {
            for c in [1e-6, 1.0, 1e6] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    for (solver, budget) in
                        [(Solver::Lasvm, None), (Solver::Sgd, None), (Solver::Sgd, Some(1)), (Solver::Pegasos, Some(5))]
                    {
                        let settings = Settings {
                            loss,
                            max_passes: 3,
                            regularisation: Regularisation::C(c),
                            ..by(solver, Task::Classify, KernelSettings { budget, ..kernel.clone() })
                        };
                        let what = format!("{solver:?} {budget:?} {kernel:?} C {c} {loss:?}");
                        match train(data, &settings, None, &mut Silent, &Cancel::new()) {
                            Ok(trained) => {
                                let certificate = &trained.model.certificate;
                                assert!(certificate.objective.is_finite(), "{what}");
                                let scores = trained.model.scores(data).unwrap();
                                assert!(scores.iter().all(|score| score.is_finite()), "{what}");
                                assert!(budget.is_none_or(|most| vectors(&trained.model) <= most as usize), "{what}");
                                let definite = kernel.kind != KernelKind::Sigmoid;
                                let bound = certificate.lower_bound.unwrap_or(0.0);
                                assert!(!definite || bound <= certificate.objective * (1.0 + 1e-6), "{what}");
                            }
                            Err(error) => assert_eq!(error.code(), Code::Overflow, "{what}: {error:?}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_before_any_work() {
    let data = two_classes(20, 3, true, 1);
    let refused = |settings: Settings| {
        let error = train(&data, &settings, None, &mut Silent, &Cancel::new()).expect_err("refused");
        assert!(error.remedy().is_some(), "{error}");
        error.code()
    };
    let classify = |solver, kernel| by(solver, Task::Classify, kernel);
    for settings in [
        classify(Solver::AveragedSgd, gaussian(1.0, None)),
        classify(Solver::Sgd, gaussian(1.0, Some(0))),
        classify(Solver::Smo, gaussian(1.0, Some(5))),
        classify(Solver::Lasvm, gaussian(1.0, Some(5))),
        classify(Solver::Auto, gaussian(1.0, Some(5))),
        classify(Solver::Sgd, KernelSettings { budget: Some(5), ..KernelSettings::default() }),
        Settings { max_passes: 0, ..classify(Solver::Lasvm, gaussian(1.0, None)) },
        Settings {
            stochastic: Stochastic { project: true, ..Stochastic::default() },
            ..classify(Solver::Sgd, gaussian(1.0, None))
        },
        Settings {
            stochastic: Stochastic { early_stopping: EarlyStopping::Validation, ..Stochastic::default() },
            ..classify(Solver::Sgd, gaussian(1.0, None))
        },
        Settings {
            stochastic: Stochastic { schedule: Some(Schedule::Constant), ..Stochastic::default() },
            ..classify(Solver::Sgd, gaussian(1.0, None))
        },
    ] {
        assert_eq!(refused(settings.clone()), Code::BadSetting, "{settings:?}");
    }
    let logistic = Settings { loss: Loss::Logistic, ..classify(Solver::Lasvm, gaussian(1.0, None)) };
    assert_eq!(refused(logistic), Code::Unsupported);
    let ranking = graded(4, 5, 3, 3, 1);
    let settings = by(Solver::Lasvm, Task::Rank, gaussian(1.0, None));
    let error = train(&ranking, &settings, None, &mut Silent, &Cancel::new()).expect_err("graded");
    assert_eq!(error.code(), Code::Unsupported);
}

/// Cancels the job at the first report of a pass.
struct Ending;

impl Observer for Ending {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn who_asks_for_an_end_gets_the_passes_made_or_nothing_before_the_first() {
    let data = two_classes(200, 3, true, 1);
    for (solver, budget) in [(Solver::Lasvm, None), (Solver::Sgd, Some(10))] {
        let settings = Settings { tolerance: 0.0, max_passes: 50, ..by(solver, Task::Classify, gaussian(0.5, budget)) };
        let cancel = Cancel::new();
        cancel.raise();
        let error = train(&data, &settings, None, &mut Silent, &cancel).expect_err("raised");
        assert_eq!(error.code(), Code::Interrupted);
        let trained = train(&data, &settings, None, &mut Ending, &Cancel::new()).expect("one pass");
        assert_eq!((trained.stop, trained.model.certificate.passes), (Stop::Cancelled, 1));
        trained.model.verify(&data).expect("verifies");
    }
}
