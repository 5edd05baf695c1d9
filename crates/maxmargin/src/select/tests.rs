//! A fold over the shared matrix is the same problem as one over copied rows, and a path the same as cold fits.

use super::cross_validation::learners;
use super::fold::{Fit, Fold};
use super::*;
use crate::data::{Csr, Dataset, Dense, Groups, Matrix, Pairs, Scale, Targets, complement, folds};
use crate::error::Code;
use crate::loss::Loss;
use crate::metric::Metric;
use crate::model::Answers;
use crate::random::Random;
use crate::run::{Cancel, Silent};
use crate::settings::{ClassifySettings, RankSettings, Regularisation, Settings, Solver, Task};
use crate::task::{Binary, ClassWeight, Classes, Independent, Intercept, PairWeight};
use crate::train::{BuiltIn, choose_solver, train};

/// Rows of two overlapping classes, a third of them positive, or of graded queries of six.
pub(super) fn data(task: Task, dense: bool, weighted: bool) -> Dataset {
    const ROWS: usize = 72;
    const COLS: usize = 5;
    let mut random = Random::new(7, 0x7465_7374, 0);
    let (mut starts, mut indices, mut sparse) = (vec![0u64], Vec::new(), Vec::new());
    let (mut values, mut scores) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let mut score = 0.0;
        for column in 0..COLS {
            let present = dense || random.uniform() < 0.7;
            let value =
                if present { (column + 1) as f64 * (random.uniform() + 0.4 * (column % 2) as f64) } else { 0.0 };
            score += [1.0, -1.0, 0.5, 0.2, -0.3][column] * value / (column + 1) as f64 + 0.3 * random.normal() / 2.0;
            values.push(value);
            if value != 0.0 {
                indices.push(column as u16);
                sparse.push(value);
            }
        }
        starts.push(indices.len() as u64);
        scores.push(score);
    }
    let mut sorted = scores.clone();
    sorted.sort_by(f64::total_cmp);
    let target = |score: &f64| match task {
        Task::Rank | Task::Compare => (2.0 * score).round().clamp(-1.0, 2.0),
        _ if *score > sorted[2 * ROWS / 3] => 1.0,
        _ => -1.0,
    };
    let targets: Vec<f64> = scores.iter().map(target).collect();
    let matrix = if dense {
        Matrix::DenseF64(Dense::new(values, ROWS, COLS).expect("valid"))
    } else {
        Matrix::Csr16F64(Csr::new(starts, indices, sparse, COLS).expect("valid"))
    };
    let mut data = Dataset::new(matrix, Targets::Real(targets.into())).expect("valid");
    if weighted {
        data = data.with_weights((0..ROWS).map(|_| random.below(4) as f64 / 2.0).collect::<Vec<_>>()).expect("valid");
    }
    if task == Task::Rank {
        let starts: Vec<u64> = (0..=ROWS / 6).map(|group| 6 * group as u64).collect();
        let names = (0..ROWS / 6).map(|group| format!("q{group}")).collect();
        data = data.with_groups(Groups::new(starts, names).expect("valid")).expect("valid");
    }
    data
}

pub(super) fn metrics(task: Task) -> Vec<Metric> {
    match task {
        Task::Rank | Task::Compare => vec![Metric::PairAccuracy, Metric::parse("ndcg@3").expect("known")],
        _ => vec![Metric::Accuracy, Metric::Auc, Metric::F1],
    }
}

/// All options of a classifier, and every scaling of a ranker.
fn all_settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for loss in Loss::ALL {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
                for class_weight in [ClassWeight::Equal, ClassWeight::Balanced] {
                    for solver in [Solver::DualCoordinateDescent, Solver::Newton, Solver::InteriorPoint] {
                        if (loss, solver) == (Loss::Logistic, Solver::InteriorPoint) {
                            continue;
                        }
                        let class_weight = class_weight.clone();
                        let task = ClassifySettings { intercept, class_weight, ..Default::default() };
                        all.push(Settings { loss, scale, solver, ..Settings::of(task) });
                    }
                }
            }
        }
    }
    for scale in Scale::ALL {
        for pair_weight in PairWeight::ALL {
            let regularisation = Regularisation::C(0.05);
            let task = RankSettings { pair_weight, ..Default::default() };
            all.push(Settings { scale, regularisation, ..Settings::of(task) });
        }
    }
    all
}

/// Fits one setting on every fold, from scratch.
fn cold(data: &Dataset, parts: &[Fold], settings: &Settings) -> Vec<(Fit, u64, f64)> {
    let cancel = Cancel::new();
    learners(parts, &BuiltIn, data, settings, &cancel)
        .expect("ready")
        .iter_mut()
        .map(|learner| {
            let fit = learner.fit(settings, &metrics(settings.task.task()), None, &cancel).expect("fits");
            (fit, learner.posed.task().constraints(), learner.posed.lambda)
        })
        .collect()
}

fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.abs().max(other.abs())
}

#[test]
fn a_fold_reaches_the_optimum_of_a_copy_of_its_rows() {
    for (number, settings) in all_settings().into_iter().enumerate() {
        // Both layouts, with and without weights, in turn; both forms of the regularisation too.
        let data = data(settings.task.task(), number % 2 == 0, number / 2 % 2 == 0);
        let regularisation = if number % 3 == 0 { Regularisation::Lambda(0.02) } else { settings.regularisation };
        // With a rounded hinge, the rounding of the scores stops the solver earlier.
        let rounded =
            settings.task.task() == Task::Classify && settings.loss == Loss::Hinge && settings.solver == Solver::Newton;
        let tolerance = if rounded { 1e-6 } else { 1e-10 };
        let settings = Settings { regularisation, tolerance, max_passes: 200_000, ..settings };
        let held_out = folds(&data, 3, 5).expect("enough rows");
        let parts = Fold::all(&data, held_out.clone()).expect("folds");
        for ((fit, constraints, lambda), held_out) in cold(&data, &parts, &settings).iter().zip(&held_out) {
            let copy = data.subset(&complement(held_out, data.rows())).expect("rows");
            let model = train(&copy, &settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
            let certificate = &model.certificate;
            let what = format!("{settings:?}: {fit:?} against {certificate:?}");
            assert!(fit.converged && certificate.converged, "{what}");
            assert!(close(fit.objective, certificate.objective, 10.0 * tolerance), "{what}");
            assert!(
                close(fit.lower_bound.expect("a bound"), certificate.lower_bound.expect("a bound"), 10.0 * tolerance),
                "{what}"
            );
            assert_eq!(*constraints, certificate.constraints, "{what}");
            assert!(close(*lambda, certificate.lambda, 1e-12), "{what}");
            let judged = data.subset(held_out).expect("rows");
            let answers = Answers::new(&model, &judged).expect("scores");
            for (value, metric) in fit.values.iter().zip(metrics(settings.task.task())) {
                assert!(close(*value, answers.evaluate(&metric).expect("a value").value, 1e-12), "{metric} of {what}");
            }
        }
    }
}

#[test]
fn a_fold_is_solved_by_what_suits_the_rows_learned_from() {
    // A third held out leaves as many rows as features.
    let (rows, features, cancel) = (900, 600, Cancel::new());
    let dense = Dense::new(vec![1.0f32; rows * features], rows, features).expect("a matrix");
    let labels: Vec<f64> = (0..rows).map(|row| if row % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let data = Dataset::new(Matrix::DenseF32(dense), Targets::Real(labels.into())).expect("data");
    let settings = Settings { loss: Loss::Hinge, ..Settings::new(Task::Classify) };
    assert_eq!(choose_solver(&settings, data.shape()).expect("a solver"), Solver::InteriorPoint);
    let held_out = folds(&data, 3, 5).expect("enough rows");
    let parts = Fold::all(&data, held_out.clone()).expect("folds");
    let ready = learners(&parts, &BuiltIn, &data, &settings, &cancel).expect("ready");
    for (learner, held_out) in ready.iter().zip(&held_out) {
        let copy = data.subset(&complement(held_out, rows)).expect("rows");
        assert_eq!(learner.solver, choose_solver(&settings, copy.shape()).expect("a solver"));
        assert_eq!(learner.solver, Solver::DualCoordinateDescent);
    }
}

#[test]
fn a_path_ends_where_cold_fits_end_within_the_gap() {
    let mut all: Vec<Settings> = all_settings().into_iter().step_by(3).collect();
    // Solvers that would take long to find the last digits.
    all.push(Settings { loss: Loss::Hinge, ..Settings::new(Task::Rank) });
    all.push(Settings { solver: Solver::CuttingPlane, ..Settings::new(Task::Rank) });
    all.push(Settings { solver: Solver::CuttingPlane, ..Settings::new(Task::Classify) });
    for (number, settings) in all.into_iter().enumerate() {
        let data = data(settings.task.task(), number % 2 == 1, number / 2 % 2 == 1);
        let settings = Settings { tolerance: 1e-4, max_passes: 100_000, ..settings };
        let parts = Fold::all(&data, folds(&data, 3, 1).expect("enough rows")).expect("folds");
        let cancel = Cancel::new();
        let mut path = learners(&parts, &BuiltIn, &data, &settings, &cancel).expect("ready");
        // Up, and down again: a path may go either way.
        for c in [0.01, 0.1, 1.0, 10.0, 0.5] {
            let settings = Settings { regularisation: Regularisation::C(c), ..settings.clone() };
            for (learner, (cold, ..)) in path.iter_mut().zip(cold(&data, &parts, &settings)) {
                let warm = learner.fit(&settings, &metrics(settings.task.task()), None, &cancel).expect("fits");
                let what = format!("{settings:?}: {warm:?} against {cold:?}");
                assert!(warm.converged && warm.gap().expect("a gap") <= 1e-4, "{what}");
                // Each bound holds for the optimum, which both are near.
                assert!(warm.lower_bound.expect("a bound") <= cold.objective * (1.0 + 1e-12), "{what}");
                assert!(cold.lower_bound.expect("a bound") <= warm.objective * (1.0 + 1e-12), "{what}");
            }
        }
    }
}

#[test]
fn a_path_takes_fewer_passes_than_cold_fits() {
    for settings in [
        Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) },
        Settings { scale: Scale::Standard, solver: Solver::DualCoordinateDescent, ..Settings::new(Task::Classify) },
        Settings { loss: Loss::Logistic, solver: Solver::Newton, ..Settings::new(Task::Classify) },
        Settings::new(Task::Rank),
    ] {
        let data = data(settings.task.task(), true, false);
        let grid: Grid = "1e-3:1e2:16".parse().expect("a grid");
        let candidates = grid.candidates(&settings);
        let run = |candidates: &[Settings]| -> u64 {
            let validation = CrossValidation { folds: 3, seed: 0, metrics: metrics(settings.task.task()) };
            let tuned = validation.run(&data, candidates, &mut Silent, &Cancel::new()).expect("tunes");
            tuned.rows.iter().map(|row| row.passes).sum()
        };
        let warm = run(&candidates);
        let cold: u64 = candidates.iter().map(|settings| run(std::slice::from_ref(settings))).sum();
        assert!(4 * warm < 3 * cold, "{warm} against {cold}: {settings:?}");
    }
}

#[test]
fn pooled_dual_variables_balance_and_keep_their_bounds() {
    let data = data(Task::Classify, true, true);
    let solver = Solver::DualCoordinateDescent;
    let settings = Settings { tolerance: 1e-6, max_passes: 100_000, solver, ..Settings::new(Task::Classify) };
    let validation = CrossValidation { folds: 4, seed: 3, metrics: metrics(Task::Classify) };
    let tuned = validation.run(&data, std::slice::from_ref(&settings), &mut Silent, &Cancel::new()).expect("tunes");
    let dual = tuned.start.dual.as_ref().expect("dual variables");
    let classes = Classes::find(data.targets(), None).expect("two classes");
    let task = Binary::on(&data, &classes, &ClassWeight::Equal, settings.loss, true, None).expect("a classifier");
    let (mut net, mut total) = (0.0, 0.0);
    for (block, &alpha) in dual.iter().enumerate() {
        let constraint = task.constraint(block);
        let limit = settings.loss.dual_limit(constraint.cost);
        assert!(alpha >= 0.0 && alpha <= limit * (1.0 + 1e-12), "{alpha} of {limit}");
        let pull: f64 = alpha * constraint.threshold;
        (net, total) = (net + pull, total + pull.abs());
    }
    assert_eq!(dual.len(), task.blocks());
    assert!(total > 0.0 && net.abs() < 1e-12 * total, "{net:e} of {total}");
    assert!(dual.iter().any(|&alpha| alpha > 0.0));
    // The start is so near that few passes are left to a moderate gap. The passes are summed over several orders of
    // visits: one order alone shows little, and the last digits take long from any start.
    let (mut cold, mut warm) = (0, 0);
    for seed in 0..8 {
        let settings = Settings { seed, tolerance: 1e-2, ..settings.clone() };
        let tuned = validation.run(&data, std::slice::from_ref(&settings), &mut Silent, &Cancel::new()).expect("tunes");
        let trained = train(&data, &settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
        let refitted = tuned.refit(0, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
        cold += trained.certificate.passes;
        warm += refitted.certificate.passes;
        assert!(refitted.verify(&data).is_ok());
    }
    assert!(2 * warm < cold, "{warm} against {cold}");
}

/// Pairs of the rows of [`data`] by their targets, some with another weight, in groups of five.
pub(super) fn compared(grouped: bool) -> Dataset {
    let rows = data(Task::Classify, true, false);
    let targets: Vec<f64> = rows.targets().real().expect("numbers").to_vec();
    let mut random = Random::new(3, 0x7465_7374, 1);
    let (mut better, mut worse) = (Vec::new(), Vec::new());
    while better.len() < 90 {
        let (a, b) = (random.below(72) as usize, random.below(72) as usize);
        if targets[a] > targets[b] {
            better.push(a as u32);
            worse.push(b as u32);
        }
    }
    let mut pairs = Pairs::new(better, worse).expect("valid");
    pairs = pairs.with_weights((0..90).map(|pair| f64::from(pair % 4)).collect::<Vec<_>>()).expect("valid");
    if grouped {
        let names = (0..18).map(|group| format!("judge {group}")).collect();
        pairs = pairs.with_groups((0..90u32).map(|pair| pair % 18).collect::<Vec<_>>(), names).expect("valid");
    }
    rows.with_pairs(pairs).expect("valid")
}

#[test]
fn held_out_pairs_give_the_same_results_as_separate_data_sets() {
    for (number, settings) in [
        Settings { loss: Loss::Hinge, ..Settings::new(Task::Rank) },
        Settings { loss: Loss::Logistic, scale: Scale::Standard, ..Settings::new(Task::Rank) },
        Settings { scale: Scale::MinMax, ..Settings::new(Task::Rank) },
        Settings { solver: Solver::DualCoordinateDescent, ..Settings::new(Task::Rank) },
    ]
    .into_iter()
    .enumerate()
    {
        let data = compared(number % 2 == 0);
        let settings = Settings { tolerance: 1e-8, max_passes: 200_000, ..settings };
        let validation = CrossValidation { folds: 4, seed: 2, metrics: vec![Metric::PairAccuracy] };
        let path: Vec<Settings> = [0.1, 1.0]
            .map(|c| Settings { regularisation: Regularisation::C(c), ..settings.clone() })
            .into_iter()
            .collect();
        let tuned = validation.run(&data, &path, &mut Silent, &Cancel::new()).expect("tunes");
        let held_out = folds(&data, 4, 2).expect("enough pairs");
        assert_eq!(tuned.fold_rows, held_out.iter().map(Vec::len).collect::<Vec<_>>());
        let pairs = data.pairs().expect("pairs");
        for (settings, row) in path.iter().zip(&tuned.rows) {
            for (held_out, value) in held_out.iter().zip(&row.metrics[0].folds) {
                let kept = complement(held_out, pairs.len());
                let part = |listed: &[usize]| data.clone().with_pairs(pairs.select(listed)).expect("valid");
                let model = train(&part(&kept), settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
                let judged = part(held_out);
                let expected = Answers::new(&model, &judged).expect("scores").evaluate(&Metric::PairAccuracy);
                assert!(close(*value, expected.expect("a value").value, 1e-12), "{settings:?}");
            }
        }
        // The final model starts from the folds, and reaches the same optimum as any other.
        let cold = train(&data, &path[1], None, &mut Silent, &Cancel::new()).expect("trains").model.certificate;
        let warm = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
        assert!(warm.certificate.converged && close(warm.certificate.objective, cold.objective, 1e-7), "{settings:?}");
        assert!(warm.verify(&data).is_ok());
        if let Some(dual) = &tuned.start.dual {
            assert_eq!(dual.len(), pairs.len());
            assert!(dual.iter().any(|&alpha| alpha > 0.0));
        }
    }
}

#[test]
fn folds_of_pairs_keep_their_groups_whole_and_hold_out_each_pair_once() {
    for grouped in [false, true] {
        let data = compared(grouped);
        let held_out = folds(&data, 4, 9).expect("enough pairs");
        let mut all: Vec<usize> = held_out.concat();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<_>>());
        if grouped {
            let fold_of = |pair: usize| held_out.iter().position(|fold| fold.contains(&pair));
            assert!((18..90).all(|pair| fold_of(pair) == fold_of(pair % 18)));
            assert_eq!(folds(&data, 19, 9).expect_err("18 groups").code(), Code::TooFewToSplit);
        }
    }
}

#[test]
fn settings_may_differ_in_more_than_c() {
    let data = data(Task::Classify, false, false);
    let grid: Grid = "0.1,1".parse().expect("a grid");
    let mut candidates = grid.candidates(&Settings::new(Task::Classify));
    candidates.extend(grid.candidates(&Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) }));
    let validation = CrossValidation { folds: 3, seed: 0, metrics: metrics(Task::Classify) };
    let run =
        |candidates: &[Settings]| validation.run(&data, candidates, &mut Silent, &Cancel::new()).expect("tunes").rows;
    let together = run(&candidates);
    let apart: Vec<Row> = candidates.chunks(2).flat_map(run).collect();
    assert_eq!(together.len(), 4);
    for (a, b) in together.iter().zip(&apart) {
        assert_eq!((a.c, &a.metrics, a.passes), (b.c, &b.metrics, b.passes));
    }
    assert_ne!(together[1].metrics, together[3].metrics);
}

#[test]
fn impossible_folds_are_refused_by_number() {
    let run = |data: &Dataset, folds: usize, metrics: Vec<Metric>, settings: &Settings| {
        let validation = CrossValidation { folds, seed: 0, metrics };
        validation.run(data, std::slice::from_ref(settings), &mut Silent, &Cancel::new()).map(drop)
    };
    let classify = Settings::new(Task::Classify);
    let rank = Settings::new(Task::Rank);
    let rows = data(Task::Classify, true, false);
    let queries = data(Task::Rank, true, false);
    for (data, settings, folds) in [(&rows, &classify, 73), (&queries, &rank, 13)] {
        let error = run(data, folds, metrics(settings.task.task()), settings).expect_err("too many folds");
        assert_eq!(error.code(), Code::TooFewToSplit);
        assert!(error.remedy().is_some_and(|help| help.contains("`folds`")));
        assert_eq!(run(data, 1, metrics(settings.task.task()), settings).expect_err("one").code(), Code::BadSetting);
    }
    // One positive row: the fold that holds it out has nothing to learn from; AUC has nothing to judge in the others.
    let mut targets = vec![-1.0; 72];
    targets[40] = 1.0;
    let lonely = Dataset::new(rows.matrix().clone(), Targets::Real(targets.into())).expect("valid");
    for metric in [Metric::Accuracy, Metric::Auc] {
        let error = run(&lonely, 3, vec![metric], &classify).expect_err("one class");
        assert_eq!(error.code(), Code::SingleClass);
        assert!(error.message().starts_with("fold "), "{error}");
    }
    assert_eq!(run(&rows, 3, vec![], &classify).expect_err("no metric").code(), Code::BadSetting);
    let cancel = Cancel::new();
    cancel.raise();
    let validation = CrossValidation { folds: 3, seed: 0, metrics: metrics(Task::Classify) };
    let error = validation.run(&rows, &[classify], &mut Silent, &cancel).expect_err("cancelled");
    assert_eq!(error.code(), Code::Interrupted);
}
