//! Stochastic solvers through `train`: how close they come, when they stop, and what they claim.

use crate::made::{Numbers, fit, graded, two_classes};
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Event, Observer, Silent};
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver, Stochastic, Task};
use maxmargin::solve::{EarlyStopping, Sample, Schedule, Stop};
use maxmargin::task::{Intercept, Multiclass};
use maxmargin::train::{HeldOut, Trained, train};
use std::cell::Cell;
use std::ops::ControlFlow;

const SOLVERS: [Solver; 3] = [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos];

fn classifier(loss: Loss, c: f64) -> Settings {
    Settings { loss, regularisation: Regularisation::C(c), ..Settings::new(Task::Classify) }
}

fn ranker(c: f64) -> Settings {
    Settings { regularisation: Regularisation::C(c), ..Settings::new(Task::Rank) }
}

/// Every stochastic solver comes within a factor of the optimum proven by a certified solver, claims no bound, and can
/// be verified.
fn assert_near(data: &Dataset, settings: &Settings, factor: f64) {
    let certified = fit(data, &Settings { tolerance: 1e-4, ..settings.clone() }).model.certificate;
    assert!(certified.converged, "{settings:?}");
    let bound = certified.lower_bound.expect("a bound");
    for solver in SOLVERS {
        let trained = fit(data, &settings.clone().with_solver(solver));
        let reached = &trained.model.certificate;
        assert!(
            reached.objective <= factor * certified.objective,
            "{solver:?} {settings:?}: {reached:?} {certified:?}"
        );
        assert!(reached.objective >= bound, "{solver:?}: below what was proven");
        assert_eq!((reached.lower_bound, reached.converged, reached.passes), (None, false, 20));
        assert_eq!(trained.stop, Stop::Finished);
        let found = trained.model.verify(data).expect("verifies");
        assert_eq!((found.objective, found.lower_bound, found.unproved), (reached.objective, None, None));
        let mut altered = trained.model.clone();
        altered.certificate.objective *= 0.999;
        assert_eq!(altered.verify(data).expect_err("altered").code(), Code::CertificateMismatch);
    }
}

#[test]
fn classifiers_come_within_five_per_cent_of_the_certified_optimum() {
    for dense in [true, false] {
        let data = two_classes(3000, 20, dense, 1);
        for loss in Loss::ALL {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                assert_near(&data, &classifier(loss, 0.01).with_free(intercept), 1.05);
            }
        }
        assert_near(&data, &Settings { scale: Scale::Standard, ..classifier(Loss::Hinge, 0.01) }, 1.05);
        assert_near(&data, &Settings { scale: Scale::UnitRows, ..classifier(Loss::Hinge, 0.1) }, 1.05);
    }
}

/// Rows of four classes in overlapping clouds.
fn four_classes(rows: usize) -> Dataset {
    let mut numbers = Numbers::new(5);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let class = row % 4;
        values.extend((0..8).map(|column| f64::from(u8::from(column % 4 == class)) + 2.0 * (numbers.next() - 0.5)));
        targets.push(class as f64);
    }
    Dataset::new(Matrix::DenseF64(Dense::new(values, rows, 8).unwrap()), Targets::Real(targets.into())).unwrap()
}

#[test]
fn several_classes_in_one_problem_come_within_five_per_cent_of_the_certified_optimum() {
    let data = four_classes(1200);
    let forms = [
        (Multiclass::Joint, Loss::Hinge),
        (Multiclass::Joint, Loss::Logistic),
        (Multiclass::WestonWatkins, Loss::Hinge),
        (Multiclass::WestonWatkins, Loss::SquaredHinge),
    ];
    for (form, loss) in forms {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            for scale in [Scale::None, Scale::Standard] {
                let task = ClassifySettings { multiclass: Some(form), intercept, ..ClassifySettings::default() };
                let c = Regularisation::C(0.01);
                let settings = Settings { loss, scale, regularisation: c, ..Settings::of(task) };
                let certified = fit(&data, &Settings { tolerance: 1e-4, ..settings.clone() }).model.certificate;
                for solver in SOLVERS {
                    let trained = fit(&data, &settings.clone().with_solver(solver));
                    let reached = trained.model.certificate.objective;
                    let best = certified.objective;
                    assert!(reached <= 1.05 * best, "{solver:?} {settings:?}: {reached} {best}");
                    assert!(reached >= certified.lower_bound.unwrap(), "{solver:?}: below what was proven");
                    let found = trained.model.verify(&data).expect("verifies");
                    assert!((found.objective - reached).abs() <= 1e-9 * reached && found.lower_bound.is_none());
                    let mut altered = trained.model.clone();
                    altered.certificate.objective *= 0.999;
                    assert_eq!(altered.verify(&data).expect_err("altered").code(), Code::CertificateMismatch);
                }
            }
        }
    }
}

#[test]
fn a_step_of_several_classes_moves_the_right_class_and_the_worst_one() {
    const RATE: f64 = 0.1;
    // One row of each of three classes, and one step each: the first by the definition, from zero.
    let rows = Matrix::DenseF64(Dense::new(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 3, 2).unwrap());
    let data = Dataset::new(rows, Targets::Real(vec![1.0, 2.0, 3.0].into())).unwrap();
    let task = ClassifySettings {
        multiclass: Some(Multiclass::Joint),
        intercept: Intercept::None,
        ..ClassifySettings::default()
    };
    let stochastic = Stochastic { rate: Some(RATE), schedule: Some(Schedule::Constant), ..Stochastic::default() };
    let settings = Settings { regularisation: Regularisation::C(1.0), stochastic, ..Settings::of(task) };
    // A stochastic solver brings its own number of passes.
    let settings = Settings { max_passes: 1, ..settings.with_solver(Solver::Sgd) };
    let model = fit(&data, &settings).model;
    let found = model.scorer.weights().unwrap();
    // Every order of the three rows, by hand: w ← (1 − η/3)·w, then η·x to the right class and −η·x to the worst.
    let x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let mut any = false;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut w = [[0.0f64; 3]; 2];
        for row in order {
            let score = |class: usize| (0..2).map(|k| w[k][class] * x[row][k]).sum::<f64>();
            let others = (0..3).filter(|&class| class != row);
            let worst = others.fold(None, |best: Option<usize>, class| match best {
                Some(best) if score(best) >= score(class) => Some(best),
                _ => Some(class),
            });
            let worst = worst.unwrap();
            let violated = 1.0 + score(worst) - score(row) > 0.0;
            for k in 0..2 {
                w[k].iter_mut().for_each(|w| *w *= 1.0 - RATE / 3.0);
                if violated {
                    w[k][row] += RATE * x[row][k];
                    w[k][worst] -= RATE * x[row][k];
                }
            }
        }
        let flat = w.concat();
        any |= flat.iter().zip(found).all(|(a, b)| (a - b).abs() < 1e-12);
    }
    assert!(any, "{found:?}");
}

#[test]
fn rankers_come_within_five_per_cent_of_the_certified_optimum() {
    assert_near(&graded(60, 30, 10, 5, 3), &ranker(1e-3), 1.05);
    assert_near(&graded(60, 30, 10, 5, 3), &Settings { scale: Scale::Standard, ..ranker(1e-3) }, 1.05);
    assert_near(&graded(1, 1500, 10, 0, 4), &ranker(1e-5), 1.05);
}

#[test]
fn hinge_loss_on_pairs_is_learned_by_its_own_measure() {
    let data = graded(60, 30, 10, 5, 3);
    let (targets, groups) = (data.targets().real().unwrap(), data.groups().unwrap());
    let by_listed_pairs = |model: &Model| {
        let weights = model.scorer.weights().expect("weights");
        let scores = model.scores(&data).unwrap();
        let mut sum = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        for range in groups.ranges() {
            for (i, j) in range.clone().flat_map(|i| range.clone().map(move |j| (i, j))) {
                if targets[i] > targets[j] {
                    sum += 1e-3 * (1.0 - (scores[i] - scores[j])).max(0.0);
                }
            }
        }
        sum
    };
    // The hinge optimum is not known here. The weights of the squared hinge are a point to improve on.
    let squared = by_listed_pairs(&fit(&data, &ranker(1e-3)).model);
    for solver in SOLVERS {
        let model = fit(&data, &Settings { loss: Loss::Hinge, ..ranker(1e-3) }.with_solver(solver)).model;
        let objective = model.certificate.objective;
        assert!((objective - by_listed_pairs(&model)).abs() <= 1e-9 * objective);
        assert!(objective < squared, "{solver:?}: {objective} {squared}");
        assert_eq!(model.verify(&data).unwrap().lower_bound, None);
    }
}

/// Features of very different sizes: a step that is stable for the large ones has no effect on the small ones.
fn uneven(data: &Dataset) -> Dataset {
    let (rows, cols) = (data.rows(), data.cols());
    let mut values = vec![0.0; rows * cols];
    for (row, values) in values.chunks_mut(cols).enumerate() {
        data.matrix().each_in_row(row, |column, value| values[column] = value * 10f64.powi(column as i32 - 2));
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    let made = Dataset::new(matrix, data.targets().clone()).unwrap();
    data.groups().map_or(made.clone(), |groups| made.with_groups(groups.clone()).unwrap())
}

#[test]
fn no_model_is_worse_than_weights_of_zero_and_zero_is_said_to_be_kept() {
    let mut kept = 0;
    let classes = uneven(&two_classes(400, 12, true, 5));
    let queries = uneven(&graded(30, 20, 12, 4, 5));
    let signs = classes.targets().real().unwrap();
    let positives = signs.iter().filter(|&&sign| sign > 0.0).count() as f64;
    let negatives = signs.len() as f64 - positives;
    for solver in SOLVERS {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                for (task, data) in [(Task::Classify, &classes), (Task::Rank, &queries)] {
                    if task == Task::Rank && intercept != Intercept::None {
                        continue;
                    }
                    let settings = Settings { loss, ..Settings::new(task) }.with_solver(solver).with_free(intercept);
                    let trained = match train_with(data, &settings, None) {
                        Ok(trained) => trained,
                        Err(error) => {
                            assert_eq!(error.code(), Code::Overflow);
                            continue;
                        }
                    };
                    let certificate = &trained.model.certificate;
                    // A free intercept takes its best value: ±1 for the hinge, the mean of the signs for the squared
                    // hinge.
                    let at_zero = match (task, intercept, loss) {
                        (Task::Classify, Intercept::Free, Loss::Hinge) => 2.0 * positives.min(negatives),
                        (Task::Classify, Intercept::Free, _) => 4.0 * positives * negatives / (positives + negatives),
                        _ => certificate.constraints as f64,
                    };
                    assert_eq!(certificate.c, 1.0);
                    assert!(certificate.objective <= at_zero * (1.0 + 1e-12), "{settings:?}: {certificate:?}");
                    let weights = trained.model.scorer.weights().expect("weights");
                    let zero = weights.iter().all(|&w| w == 0.0);
                    assert_eq!(zero, trained.stop == Stop::NoGain, "{settings:?}");
                    kept += usize::from(zero);
                    let found = trained.model.verify(data).expect("verifies");
                    assert!((found.objective - certificate.objective).abs() <= 1e-12 * found.objective);
                }
            }
        }
    }
    assert!(kept > 0, "hard enough to show");
}

/// Cancels the job once a pass is reported.
struct Impatient(Cancel);

impl Observer for Impatient {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        self.0.raise();
        ControlFlow::Continue(())
    }
}

#[test]
fn an_end_that_is_asked_for_keeps_the_last_point_with_a_value() {
    for (data, settings) in
        [(two_classes(3000, 12, true, 5), classifier(Loss::Hinge, 0.01)), (graded(60, 30, 10, 5, 3), ranker(1e-3))]
    {
        let settings = settings.with_solver(Solver::AveragedSgd);
        let cancel = Cancel::new();
        let trained = train(&data, &settings, None, &mut Impatient(cancel.clone()), &cancel).unwrap();
        assert_eq!((trained.stop, trained.trace.len()), (Stop::Cancelled, 1));
        assert_eq!(trained.model.certificate.objective, trained.trace[0].objective);
        trained.model.verify(&data).expect("verifies");
    }
}

#[test]
fn row_weights_count_like_copies() {
    let data = two_classes(1500, 8, true, 6);
    let weights: Vec<f64> = (0..data.rows()).map(|row| (row % 3) as f64).collect();
    let copies: Vec<usize> = (0..data.rows()).flat_map(|row| vec![row; row % 3]).collect();
    let settings = classifier(Loss::Hinge, 0.01).with_solver(Solver::AveragedSgd);
    let weighted = fit(&data.clone().with_weights(weights).unwrap(), &settings).model.certificate;
    let copied = fit(&data.subset(&copies).unwrap(), &settings).model.certificate;
    assert!((weighted.lambda - copied.lambda).abs() <= 1e-12 * copied.lambda);
    assert!((weighted.objective / copied.objective - 1.0).abs() < 0.02, "{weighted:?} {copied:?}");
}

fn train_with(data: &Dataset, settings: &Settings, held_out: Option<HeldOut<'_>>) -> maxmargin::Result<Trained> {
    train(data, settings, held_out, &mut Silent, &Cancel::new())
}

fn stopping(early_stopping: EarlyStopping) -> Settings {
    let settings = classifier(Loss::Hinge, 1.0).with_solver(Solver::Sgd);
    Settings { stochastic: Stochastic { early_stopping, ..Stochastic::default() }, ..settings }
}

#[test]
fn validation_keeps_the_pass_that_was_judged_best() {
    let data = two_classes(500, 8, true, 2);
    let judgements = [0.5, 0.7, 0.9, 0.8, 0.85, 0.6, 0.95];
    for higher_is_better in [true, false] {
        let calls = Cell::new(0);
        let seen = std::cell::RefCell::new(Vec::new());
        let measure = |model: &Model| {
            let value = judgements[calls.get()];
            calls.set(calls.get() + 1);
            seen.borrow_mut().push(format!("{:?}", model.scorer));
            Some(if higher_is_better { value } else { -value })
        };
        let held_out = HeldOut { measure: &measure, higher_is_better };
        let trained = train_with(&data, &stopping(EarlyStopping::Validation), Some(held_out)).unwrap();
        assert_eq!((trained.stop, trained.model.certificate.passes, calls.get()), (Stop::EarlyStopped, 3, 6));
        assert_eq!(format!("{:?}", trained.model.scorer), seen.borrow()[2]);
        trained.model.verify(&data).expect("verifies");
    }
    let error = train_with(&data, &stopping(EarlyStopping::Validation), None).expect_err("nothing is held out");
    assert_eq!(error.code(), Code::BadSetting);
}

#[test]
fn subsamples_find_few_passes_where_more_would_only_learn_noise() {
    // Labels that do not depend on the features: whatever a pass learns makes other rows worse.
    let data = two_classes(600, 40, true, 2);
    let mut numbers = crate::made::Numbers::new(3);
    let noise: Vec<f64> = (0..data.rows()).map(|_| if numbers.next() < 0.5 { 1.0 } else { -1.0 }).collect();
    let noise = Dataset::new(data.matrix().clone(), maxmargin::data::Targets::Real(noise.into())).unwrap();
    let settings = stopping(EarlyStopping::Subsamples);
    let trained = train_with(&noise, &settings, None).unwrap();
    let passes = trained.model.certificate.passes;
    assert!((1..20).contains(&passes), "{passes}");
    // Zero weights cost 1 a row: that is what is kept if no pass ends below.
    let (objective, still) = (trained.model.certificate.objective, trained.stop == Stop::NoGain);
    assert!(if still { objective == 600.0 } else { objective < 600.0 }, "{:?} {objective}", trained.stop);
    trained.model.verify(&noise).expect("verifies");
    assert_eq!(trained.model.certificate.rows, 600);
    // The passes are those over all data: the same run with this number of passes gives the same model.
    let plain = Settings { max_passes: passes, stochastic: Stochastic::default(), ..settings };
    let plain = fit(&noise, &plain);
    assert!(plain.model.certificate.objective <= trained.model.certificate.objective);
    let ranked = Settings {
        stochastic: Stochastic { early_stopping: EarlyStopping::Subsamples, ..Stochastic::default() },
        ..ranker(1e-3).with_solver(Solver::AveragedSgd)
    };
    assert!(fit(&graded(60, 30, 10, 5, 3), &ranked).model.certificate.passes >= 1);
}

#[test]
fn threads_change_no_byte_and_seeds_do() {
    let classes = two_classes(3000, 40, false, 1);
    let groups = graded(150, 20, 30, 5, 2);
    let with = |settings: Settings, stochastic: Stochastic| Settings { stochastic, max_passes: 3, ..settings };
    let runs = [
        (&classes, with(classifier(Loss::Hinge, 1.0).with_solver(Solver::Sgd), Stochastic::default())),
        (
            &classes,
            with(
                Settings { scale: Scale::Standard, ..classifier(Loss::Logistic, 1.0).with_solver(Solver::AveragedSgd) },
                Stochastic { batch: 4, schedule: Some(Schedule::InverseSquareRoot), ..Stochastic::default() },
            ),
        ),
        (
            &groups,
            with(
                ranker(0.1).with_solver(Solver::Pegasos),
                Stochastic { project: true, sample: Some(Sample::Queries), ..Stochastic::default() },
            ),
        ),
    ];
    for (data, settings) in runs {
        let bytes = |settings: &Settings, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fit(data, settings).model.to_bytes().unwrap())
        };
        let one = bytes(&settings, 1);
        assert!(one == bytes(&settings, 2) && one == bytes(&settings, 8), "{settings:?}");
        assert!(one != bytes(&Settings { seed: 1, ..settings.clone() }, 1), "{settings:?}");
        let read = Model::from_bytes(&one).unwrap();
        assert_eq!(read.settings, settings);
        read.verify(data).expect("verifies");
    }
}

#[test]
fn settings_that_do_not_fit_a_solver_are_refused() {
    let refused = |settings: Settings, word: &str| {
        let error = settings.validate().expect_err("refused");
        assert_eq!(error.code(), Code::BadSetting);
        assert!(error.to_string().contains(word), "{error}");
    };
    let with =
        |solver: Solver, stochastic: Stochastic| Settings { solver, stochastic, ..Settings::new(Task::Classify) };
    let set = Stochastic::default;
    refused(with(Solver::Auto, Stochastic { batch: 2, ..set() }), "`batch`");
    refused(with(Solver::Newton, Stochastic { project: true, ..set() }), "`project`");
    refused(with(Solver::Pegasos, Stochastic { rate: Some(1.0), ..set() }), "`rate`");
    refused(with(Solver::Pegasos, Stochastic { schedule: Some(Schedule::Constant), ..set() }), "`schedule`");
    refused(with(Solver::Sgd, Stochastic { rate: Some(-1.0), ..set() }), "`rate`");
    refused(with(Solver::Sgd, Stochastic { rate: Some(f64::NAN), ..set() }), "`rate`");
    refused(with(Solver::Sgd, Stochastic { batch: 0, ..set() }), "`batch`");
    refused(with(Solver::Sgd, Stochastic { sample: Some(Sample::Pairs), ..set() }), "`sample`");
    with(Solver::Sgd, Stochastic { rate: Some(0.5), batch: 3, project: true, ..set() }).validate().unwrap();
}
