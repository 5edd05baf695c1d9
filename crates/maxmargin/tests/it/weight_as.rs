//! The three uses of weights: a factor of the slack, the margin, a number of copies.

use crate::made::{Numbers, fit, graded, two_classes};
use crate::optimum::{Row, assert_certified, dense_row, logistic_referee, referee};
use maxmargin::data::{Dataset, Outcome, Pairs, Targets};
use maxmargin::error::{Code, Error};
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{
    ClassifySettings, CompareSettings, Method, OrdinalForm, OrdinalSettings, RankSettings, Regularisation, Settings,
    Solver, Task, TaskSettings,
};
use maxmargin::task::{Binary, ClassWeight, Classes, Intercept, Multiclass, Ordinal, WeightAs};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::train::train;

const C: f64 = 0.5;

/// Rows of two classes with weights 0, 1, 2 and 3.
fn weighed(rows: usize, cols: usize, seed: u64) -> Dataset {
    let weights: Vec<f64> = (0..rows).map(|row| (row % 4) as f64).collect();
    two_classes(rows, cols, true, seed).with_weights(weights).unwrap()
}

/// Items with weighted pairs, some of them ties.
fn compared(seed: u64) -> Dataset {
    let items = two_classes(30, 3, true, seed);
    let mut numbers = Numbers::new(seed);
    let (mut left, mut right, mut outcomes, mut weights) = (vec![], vec![], vec![], vec![]);
    while left.len() < 70 {
        let mut draw = || (numbers.next() * 30.0) as u32;
        let (a, b) = (draw(), draw());
        if a != b {
            let gap = dense_row(&items, a as usize)[0] - dense_row(&items, b as usize)[0];
            outcomes.push(match gap {
                gap if gap.abs() < 0.3 => Outcome::Tie,
                gap if gap > 0.0 => Outcome::Left,
                _ => Outcome::Right,
            });
            left.push(a);
            right.push(b);
            weights.push((left.len() % 4) as f64);
        }
    }
    let pairs = Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap().with_weights(weights).unwrap();
    items.with_pairs(pairs).unwrap()
}

/// The same settings with another use of weights.
fn using(settings: &Settings, way: WeightAs) -> Settings {
    let mut settings = settings.clone();
    match &mut settings.task {
        TaskSettings::Classify(task) => task.weight_as = way,
        TaskSettings::Ordinal(task) => task.weight_as = way,
        TaskSettings::Rank(task) => task.weight_as = way,
        TaskSettings::Compare(task) => task.weight_as = way,
        _ => panic!("weights have one use there"),
    }
    settings
}

fn refused(data: &Dataset, settings: &Settings) -> Error {
    train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("refused")
}

/// Checks that copies have the optimum of slack and that their model is saved, loaded and verified. Returns it.
fn copies_are_slack(data: &Dataset, settings: &Settings) -> Model {
    let context = format!("{settings:?}");
    let slack = fit(data, &using(settings, WeightAs::Slack)).model;
    let copies = fit(data, &using(settings, WeightAs::Copies)).model;
    let (one, other) = (slack.certificate.objective, copies.certificate.objective);
    assert!((one - other).abs() <= 1e-6 * one, "{one} {other} {context}");
    let (lambda, copied) = (slack.certificate.lambda, copies.certificate.lambda);
    assert!((lambda - copied).abs() <= 1e-12 * lambda, "{context}");
    assert_eq!(slack.certificate.data_hash, copies.certificate.data_hash);
    assert_eq!(slack.certificate.rows, copies.certificate.rows);
    let loaded = Model::from_bytes(&copies.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.settings.task, using(settings, WeightAs::Copies).task);
    loaded.verify(data).unwrap_or_else(|error| panic!("{error} {context}"));
    copies
}

fn settings(task: impl Into<TaskSettings>, loss: Loss) -> Settings {
    Settings { loss, regularisation: Regularisation::C(C), tolerance: 1e-8, ..Settings::of(task) }
}

fn gaussian() -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.4), ..KernelSettings::default() }
}

#[test]
fn copies_of_rows_have_the_optimum_of_slack_and_margins_another() {
    let data = weighed(60, 3, 5);
    for loss in Loss::ALL {
        for kernel in [KernelSettings::default(), gaussian()] {
            if loss == Loss::Logistic && kernel.is_exact() {
                continue;
            }
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                let task = ClassifySettings { intercept, ..Default::default() };
                let settings = Settings { kernel: kernel.clone(), ..settings(task, loss) };
                let copies = copies_are_slack(&data, &settings);
                // 15 rows each of weight 1, 2 and 3.
                assert_eq!(copies.certificate.constraints, 90);
                if loss != Loss::Logistic {
                    let margins = fit(&data, &using(&settings, WeightAs::Margin)).model;
                    let (one, other) = (margins.certificate.objective, copies.certificate.objective);
                    assert!((one - other).abs() > 1e-2 * one, "{one} {other}");
                    assert_eq!(margins.certificate.constraints, 45);
                    Model::from_bytes(&margins.to_bytes().unwrap()).unwrap().verify(&data).unwrap();
                }
            }
        }
    }
    let forms = [
        (Multiclass::Joint, Loss::Hinge),
        (Multiclass::WestonWatkins, Loss::SquaredHinge),
        (Multiclass::OneVsRest, Loss::Hinge),
    ];
    for (multiclass, loss) in forms {
        let task = ClassifySettings { multiclass: Some(multiclass), ..Default::default() };
        let settings = Settings { tolerance: 1e-7, ..settings(task, loss) };
        let copies = copies_are_slack(&data, &settings);
        let margins = fit(&data, &using(&settings, WeightAs::Margin)).model;
        let (one, other) = (margins.certificate.objective, copies.certificate.objective);
        assert!((one - other).abs() > 1e-2 * one, "{one} {other}");
        margins.verify(&data).unwrap();
    }
}

/// Rows of up to four ranks with weights 0, 1, 2 and 3.
fn rated(rows: usize, seed: u64) -> Dataset {
    let data = weighed(rows, 3, seed);
    let mut numbers = Numbers::new(seed + 1);
    let rank = |row: usize| (dense_row(&data, row)[0] + 1.5 * numbers.next()).floor().clamp(-1.0, 2.0);
    let ranks: Vec<f64> = (0..rows).map(rank).collect();
    data.with_targets(Targets::Real(ranks.into())).unwrap()
}

#[test]
fn copies_of_rated_rows_have_the_optimum_of_slack() {
    let data = rated(60, 5);
    for form in OrdinalForm::ALL {
        for loss in Loss::ALL {
            for kernel in [KernelSettings::default(), gaussian()] {
                if loss == Loss::Logistic && kernel.is_exact() {
                    continue;
                }
                let task = OrdinalSettings { form, ..Default::default() };
                copies_are_slack(&data, &Settings { kernel, ..settings(task, loss) });
            }
        }
    }
}

/// The objective of ratings by its definition.
fn by_definition(data: &Dataset, form: OrdinalForm, loss: Loss, point: (&[f64], &[f64]), way: WeightAs) -> f64 {
    let (weights, cuts) = point;
    let mut sum = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
    let targets = data.targets().real().unwrap();
    let mut ranks = targets.to_vec();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    for (row, target) in targets.iter().enumerate() {
        let rank = ranks.iter().position(|rank| rank == target).unwrap();
        let weight = data.weights().unwrap()[row];
        let (margin, cost) = match way {
            WeightAs::Margin => (weight, if weight > 0.0 { C } else { 0.0 }),
            _ => (1.0, C * weight),
        };
        let score: f64 = dense_row(data, row).iter().zip(weights).map(|(x, w)| x * w).sum();
        for (cut, value) in cuts.iter().enumerate() {
            if form == OrdinalForm::Implicit || cut == rank || cut + 1 == rank {
                let side = if rank > cut { 1.0 } else { -1.0 };
                sum += cost * loss.value(margin - side * (score - value));
            }
        }
    }
    sum
}

#[test]
fn the_margin_of_a_rated_row_is_its_weight_at_every_cut() {
    let data = rated(80, 8);
    for form in OrdinalForm::ALL {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let context = format!("{form:?} {loss:?}");
            let wanted = settings(OrdinalSettings { form, ..Default::default() }, loss);
            let wanted = using(&Settings { tolerance: 1e-7, ..wanted }, WeightAs::Margin);
            let model = fit(&data, &wanted).model;
            assert!(model.certificate.converged, "{context}");
            let (weights, cuts) = (model.scorer.weights().unwrap(), model.decoder.cuts().unwrap().0);
            let value =
                |weights: &[f64], cuts: &[f64]| by_definition(&data, form, loss, (weights, cuts), WeightAs::Margin);
            let found = model.certificate.objective;
            assert!((value(weights, cuts) - found).abs() <= 1e-9 * found, "{context}");
            let bound = model.certificate.lower_bound.unwrap();
            assert!(found - bound <= 1e-7 * found, "{context}: {found} {bound}");
            // No step in any direction is better.
            let mut numbers = Numbers::new(3);
            for step in [1e-1, 1e-2, 1e-3] {
                for _ in 0..50 {
                    let mut moved =
                        |all: &[f64]| all.iter().map(|x| x + step * (numbers.next() - 0.5)).collect::<Vec<f64>>();
                    let (weights, mut cuts) = (moved(weights), moved(cuts));
                    cuts.sort_by(f64::total_cmp);
                    assert!(value(&weights, &cuts) >= bound, "{context}");
                }
            }
            let slack = fit(&data, &using(&wanted, WeightAs::Slack)).model;
            let cuts = slack.decoder.cuts().unwrap().0;
            let twin = by_definition(&data, form, loss, (slack.scorer.weights().unwrap(), cuts), WeightAs::Slack);
            let other = slack.certificate.objective;
            assert!((twin - other).abs() <= 1e-9 * other, "{context}");
            assert!((found - other).abs() > 1e-2 * found, "{context}: {found} {other}");
            Model::from_bytes(&model.to_bytes().unwrap()).unwrap().verify(&data).unwrap();
            // Through a kernel that is linear in effect, by the dual.
            let linear = KernelSettings { kind: KernelKind::Polynomial, degree: Some(1), ..KernelSettings::default() };
            let linear = KernelSettings { gamma: Some(1.0), coef0: Some(0.0), ..linear };
            let expanded = fit(&data, &Settings { kernel: linear, ..wanted.clone() }).model;
            let through = expanded.certificate.objective;
            assert!((through - found).abs() <= 1e-6 * found, "{context}: {found} {through}");
            expanded.verify(&data).unwrap();
        }
    }
}

#[test]
fn margins_of_rated_rows_conform() {
    let data = two_classes(1101, 2, true, 3);
    let ranks: Vec<f64> = (0..1101).map(|row| (row * 7 % 4) as f64).collect();
    let data = data.with_targets(Targets::Real(ranks.into())).unwrap();
    let mut numbers = Numbers::new(4);
    let margins: Vec<f64> = (0..1101).map(|_| 3.0 * numbers.next()).collect();
    let scores: Vec<f64> = (0..1101).map(|_| 4.0 * numbers.next() - 2.0).collect();
    for form in OrdinalForm::ALL {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let task = Ordinal::on(&data, form, &ClassWeight::Balanced, loss, None).unwrap().with_cost(0.7);
            let task = task.with_margins(Some(margins.clone().into()));
            let free = [-0.4, 0.3, 1.1];
            check_objective(&task, &scores, &free).unwrap();
            check_curvature(&task, &scores, &free).unwrap();
            if loss == Loss::Hinge {
                check_rounding(&task, 0.4, &scores, &free).unwrap();
            }
        }
    }
}

#[test]
fn copies_of_pairs_have_the_optimum_of_slack() {
    let data = compared(3);
    for loss in Loss::ALL {
        for kernel in [KernelSettings::default(), gaussian()] {
            if loss == Loss::Logistic && kernel.is_exact() {
                continue;
            }
            for task in [
                TaskSettings::Rank(RankSettings::default()),
                TaskSettings::Compare(CompareSettings::default()),
                TaskSettings::Compare(CompareSettings { method: Method::Rank2, ..Default::default() }),
            ] {
                let settings = Settings { kernel: kernel.clone(), ..settings(task, loss) };
                let copies = copies_are_slack(&data, &settings);
                if let Some(taken) = copies.support_pairs(data.pairs().unwrap()) {
                    let pairs = data.pairs().unwrap();
                    assert!((0..pairs.len()).all(|pair| !taken[pair] || pairs.weight(pair) > 0.0));
                    assert!(taken.iter().any(|taken| *taken));
                }
            }
        }
    }
}

#[test]
fn graded_rows_are_copied_within_their_groups() {
    let data = graded(5, 7, 3, 3, 4);
    let weights: Vec<f64> = (0..35).map(|row| if row / 7 == 2 { 0.0 } else { (row % 3) as f64 }).collect();
    let data = data.with_weights(weights).unwrap();
    copies_are_slack(&data, &settings(RankSettings::default(), Loss::SquaredHinge));
    let error = refused(&data, &using(&settings(RankSettings::default(), Loss::Hinge), WeightAs::Margin));
    assert_eq!(error.code(), Code::BadSetting);
    assert!(error.message().contains("graded") && error.message().contains("two rows"), "{error}");
    let grades = CompareSettings { ties_from_grades: true, ..Default::default() };
    let error = refused(&data, &using(&settings(grades, Loss::Hinge), WeightAs::Margin));
    assert!(error.message().contains("graded"), "{error}");
}

#[test]
fn the_margin_of_a_row_is_its_weight() {
    let data = weighed(50, 3, 9);
    let targets = data.targets().real().unwrap();
    let rows = |way: WeightAs| -> Vec<Row> {
        let row = |row: usize| {
            let weight = data.weights().unwrap()[row];
            let (margin, cost) = if way == WeightAs::Margin { (weight, C) } else { (1.0, C * weight) };
            let features = dense_row(&data, row).iter().map(|x| x * targets[row]).collect();
            Row { features, threshold: targets[row], margin, cost }
        };
        (0..50).filter(|row| row % 4 != 0).map(row).collect()
    };
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for way in [WeightAs::Margin, WeightAs::Copies] {
            let optimum = referee(&rows(way), loss, Intercept::Free);
            for solver in [Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint] {
                let settings = settings(ClassifySettings::default(), loss).with_solver(solver);
                let settings = Settings { tolerance: 1e-6, max_passes: 200_000, ..settings };
                assert_certified(&data, &using(&settings, way), optimum);
            }
        }
    }
    let optimum = logistic_referee(&rows(WeightAs::Copies), Intercept::Free);
    let logistic = settings(ClassifySettings::default(), Loss::Logistic);
    let found = fit(&data, &using(&logistic, WeightAs::Copies)).model.certificate.objective;
    assert!((found - optimum).abs() <= 1e-5 * optimum, "{found} {optimum}");
}

#[test]
fn margins_of_rows_conform() {
    // More rows than fit into one part, and not a multiple of the lanes.
    let data = two_classes(1101, 2, true, 3);
    let classes = Classes::find(data.targets(), None).unwrap();
    let mut numbers = Numbers::new(4);
    let margins: Vec<f64> = (0..1101).map(|_| 3.0 * numbers.next()).collect();
    let scores: Vec<f64> = (0..1101).map(|_| 4.0 * numbers.next() - 2.0).collect();
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        let task = Binary::new(&data, &classes, &ClassWeight::Balanced, loss, 0.7, true).unwrap();
        let task = task.with_margins(Some(margins.clone().into()));
        check_objective(&task, &scores, &[0.3]).unwrap();
        check_curvature(&task, &scores, &[0.3]).unwrap();
        if loss == Loss::Hinge {
            check_rounding(&task, 0.4, &scores, &[0.3]).unwrap();
        }
    }
}

#[test]
fn stochastic_solvers_draw_each_copy() {
    let data = weighed(80, 3, 6);
    let order: Vec<usize> = (0..80).flat_map(|row| vec![row; row % 4]).collect();
    let listed = two_classes(80, 3, true, 6).subset(&order).unwrap();
    for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos] {
        let plain = settings(ClassifySettings::default(), Loss::Hinge).with_solver(solver);
        let copies = fit(&data, &using(&plain, WeightAs::Copies)).model;
        let (listed, slack) = (fit(&listed, &plain).model, fit(&data, &plain).model);
        assert_eq!(copies.scorer.weights(), listed.scorer.weights());
        assert_ne!(copies.scorer.weights(), slack.scorer.weights());
        copies.verify(&data).unwrap();
    }
}

#[test]
fn what_is_no_number_of_copies_and_what_has_no_margin_is_refused() {
    let rows = two_classes(40, 3, true, 7);
    let classify = settings(ClassifySettings::default(), Loss::Hinge);
    let with = |weight: f64| {
        let weights: Vec<f64> = (0..40).map(|row| if row == 6 { weight } else { 1.0 }).collect();
        rows.clone().with_weights(weights).unwrap()
    };
    for (weight, says) in [(2.5, "the weight 2.5 of row 7"), (5e9, "at most"), (4e9, "at most 8 GB are used")] {
        let error = refused(&with(weight), &using(&classify, WeightAs::Copies));
        assert_eq!(error.code(), Code::BadWeight);
        assert!(error.message().contains(says) && error.remedy().is_some(), "{error}");
    }
    fit(&with(2.5), &using(&classify, WeightAs::Margin));
    for settings in [
        Settings { loss: Loss::Logistic, ..classify.clone() },
        Settings { regularisation: Regularisation::Nu(0.2), ..classify.clone() },
        Settings { loss: Loss::Logistic, ..Settings::new(Task::Rank) },
        Settings { loss: Loss::Logistic, ..Settings::new(Task::Ordinal) },
    ] {
        assert_eq!(refused(&rows, &using(&settings, WeightAs::Margin)).code(), Code::BadSetting);
    }
}
