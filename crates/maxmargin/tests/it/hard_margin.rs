//! The hard margin: weights that reach every margin and are proven to be the smallest, or the proof that there are
//! none.

use crate::made::{Numbers, fit, two_classes};
use crate::optimum::scaled_rows;
use maxmargin::data::{Dataset, Dense, Matrix, Pairs, Scale, Targets};
use maxmargin::error::{Code, Error};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::Witness;
use maxmargin::task::{ClassWeight, Intercept, WeightAs};
use maxmargin::train::train;
use proptest::prelude::*;

fn points(rows: &[&[f64]], targets: &[f64]) -> Dataset {
    let values: Vec<f64> = rows.iter().flat_map(|row| row.iter().copied()).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, rows.len(), rows[0].len()).unwrap());
    Dataset::new(matrix, Targets::Real(targets.to_vec().into())).unwrap()
}

fn hard(task: Task) -> Settings {
    Settings { solver: Solver::QuadraticProgram, loss: Loss::Hinge, tolerance: 1e-8, ..Settings::new(task) }
}

pub(crate) fn refused(data: &Dataset, settings: &Settings) -> Error {
    train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("not separable")
}

fn parts(model: &Model) -> (&[f64], Option<f64>) {
    let (weights, intercept) = (model.scorer.weights().expect("weights"), &model.scorer.intercept());
    (weights, *intercept)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-7
}

#[test]
fn examples_solved_by_hand() {
    // The classes are 2 apart along the first axis; the second axis carries no information.
    let data = points(&[&[2.0, 0.0], &[3.0, 5.0], &[0.0, 0.0], &[-1.0, 4.0]], &[1.0, 1.0, -1.0, -1.0]);
    let model = fit(&data, &hard(Task::Classify)).model;
    let (weights, intercept) = parts(&model);
    assert!(close(weights[0], 1.0) && close(weights[1], 0.0) && close(intercept.unwrap(), -1.0), "{weights:?}");
    assert!(close(model.certificate.objective, 0.5));
    assert_eq!((model.certificate.c, model.certificate.lambda), (0.0, 0.0));
    // 3w + b ≥ 1 and −w − b ≥ 1: w = 1, b = −2.
    let data = points(&[&[3.0], &[1.0]], &[1.0, -1.0]);
    let penalised = hard(Task::Classify).with_free(Intercept::Penalised);
    let model = fit(&data, &penalised).model;
    assert!(close(model.certificate.objective, 2.5), "{:?}", model.certificate);
    // Without an intercept, zero separates the classes.
    let data = points(&[&[4.0], &[-2.0]], &[1.0, -1.0]);
    let model = fit(&data, &hard(Task::Classify).with_free(Intercept::None)).model;
    assert!(close(model.certificate.objective, 0.125), "{:?}", model.certificate);
    // Items at 0, 1 and 3, each better than the one before: differences 1 and 2.
    let items = points(&[&[0.0], &[1.0], &[3.0]], &[0.0; 3]);
    let pairs = Pairs::new(vec![2, 1], vec![1, 0]).unwrap().with_weights(vec![5.0, 1.0]).unwrap();
    let data = items.with_pairs(pairs).unwrap();
    assert!(close(fit(&data, &hard(Task::Rank)).model.certificate.objective, 0.5));
    // A margin of 5 over a difference of 2 needs larger weights than a margin of 1 over 1.
    let task = RankSettings { weight_as: WeightAs::Margin, ..Default::default() };
    let weighed = Settings { task: task.into(), ..hard(Task::Rank) };
    assert!(close(fit(&data, &weighed).model.certificate.objective, 3.125));
}

/// Two classes with a gap between them.
fn apart(rows: usize, cols: usize, seed: u64) -> Dataset {
    let data = two_classes(rows, cols, true, seed);
    let mut numbers = Numbers::new(seed + 1);
    let direction: Vec<f64> = (0..cols).map(|_| numbers.next() - 0.5).collect();
    let mut values = Vec::new();
    let targets = data.targets().real().unwrap().to_vec();
    for (row, &target) in targets.iter().enumerate() {
        let mut features = vec![0.0; cols];
        data.matrix().each_in_row(row, |column, value| features[column] = value);
        let score: f64 = features.iter().zip(&direction).map(|(x, w)| x * w).sum();
        let norm: f64 = direction.iter().map(|w| w * w).sum();
        // Points closer than ±0.2 are moved outwards along the direction.
        let wanted = target * (0.2 + 0.3 * numbers.next());
        let step = if score * target < 0.2 { (wanted - score) / norm } else { 0.0 };
        values.extend(features.iter().zip(&direction).map(|(x, w)| x + step * w));
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

#[test]
fn a_soft_margin_of_large_cost_comes_to_the_same_whatever_the_scaling() {
    let data = apart(90, 4, 3);
    for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::UnitRows] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let settings = Settings { scale, ..hard(Task::Classify).with_free(intercept) };
            let trained = train(&data, &settings, None, &mut Silent, &Cancel::new());
            let model = match trained {
                Ok(trained) => trained.model,
                // Shifted or normalised rows need an intercept.
                Err(error) => {
                    assert!(error.code() == Code::NotSeparable && intercept == Intercept::None, "{error}");
                    continue;
                }
            };
            // If the cost is above the largest dual variable, violating a margin gains nothing.
            let Some(Witness::Dual(alpha)) = &model.witness else { panic!("no dual point") };
            let largest = alpha.iter().copied().fold(0.0, f64::max);
            let soft = Settings {
                scale,
                regularisation: Regularisation::C(2.0 * largest),
                tolerance: 1e-6,
                max_passes: 1_000_000,
                ..Settings::new(Task::Classify).with_free(intercept)
            };
            let soft = fit(&data, &soft).model.certificate;
            let hard = &model.certificate;
            assert!(soft.converged && hard.converged);
            assert!(
                (soft.objective - hard.objective).abs() <= 1e-5 * hard.objective,
                "{scale:?} {intercept:?} {soft:?} {hard:?}"
            );
            // Every margin is reached exactly, not only nearly.
            let (weights, b) = parts(&model);
            let rows = scaled_rows(&data, scale);
            for (row, target) in rows.iter().zip(data.targets().real().unwrap()) {
                let score: f64 = row.iter().zip(weights).map(|(x, w)| x * w).sum();
                assert!(target * (score + b.unwrap_or(0.0)) >= 1.0 - 1e-12);
            }
            let found = Model::from_bytes(&model.to_bytes().unwrap()).unwrap().verify(&data).expect("verifies");
            assert!(found.gap().unwrap() <= 1e-8);
        }
    }
}

#[test]
fn more_constraints_than_a_round_takes_are_added_as_they_are_missed() {
    let data = apart(9000, 5, 7);
    let trained = fit(&data, &hard(Task::Classify));
    assert!(trained.model.certificate.passes > 1, "one round saw it all");
    assert!(trained.model.certificate.converged);
    let found = trained.model.verify(&data).expect("verifies");
    assert!(found.gap().unwrap() <= 1e-8);
}

#[test]
fn what_is_not_separable_is_proved_by_few_and_named() {
    let square = points(&[&[0.0, 0.0], &[1.0, 1.0], &[0.0, 1.0], &[1.0, 0.0]], &[1.0, 1.0, -1.0, -1.0]);
    let error = refused(&square, &hard(Task::Classify));
    assert_eq!((error.code(), error.code().exit_code()), (Code::NotSeparable, 2));
    assert!(error.message().contains("4 rows prove it") && error.message().contains("row 1"), "{error}");
    assert!(error.remedy().unwrap().contains("soft margin"));
    let error = refused(&two_classes(400, 3, true, 5), &hard(Task::Classify));
    let count: usize =
        error.message().split("; ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!((2..=5).contains(&count), "three features and an intercept need five rows at most: {error}");
    let items = points(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 0.0], &[3.0, 3.0]], &[0.0; 4]);
    let ranked =
        |better: Vec<u32>, worse: Vec<u32>| items.clone().with_pairs(Pairs::new(better, worse).unwrap()).unwrap();
    let error = refused(&ranked(vec![3, 0, 1], vec![0, 1, 0]), &hard(Task::Rank));
    assert!(error.message().contains("2 pairs") && error.message().contains("row 1 over row 2"), "{error}");
    let error = refused(&ranked(vec![3, 0], vec![0, 2]), &hard(Task::Rank));
    assert!(error.message().contains("because both have the same features"), "{error}");
    // A pair of weight zero is left out.
    let pairs = Pairs::new(vec![3, 0], vec![0, 2]).unwrap().with_weights(vec![1.0, 0.0]).unwrap();
    fit(&items.with_pairs(pairs).unwrap(), &hard(Task::Rank));
}

#[test]
fn weights_that_miss_a_margin_are_not_believed() {
    let data = apart(60, 3, 3);
    let mut model = fit(&data, &hard(Task::Classify)).model;
    let Scorer::Linear { weights, .. } = &mut model.scorer else { panic!("weights") };
    weights.iter_mut().for_each(|w| *w *= 0.999);
    let error = model.verify(&data).expect_err("short of the margin");
    assert_eq!(error.code(), Code::CertificateMismatch);
    assert!(error.message().contains("missed by"), "{error}");
}

#[test]
fn graded_groups_have_no_hard_margin_and_costs_no_meaning() {
    let data = crate::made::graded(3, 5, 2, 3, 1);
    assert_eq!(refused(&data, &hard(Task::Rank)).code(), Code::Unsupported);
    let task = ClassifySettings { class_weight: ClassWeight::Balanced, ..Default::default() };
    let weighed = Settings { task: task.into(), ..hard(Task::Classify) };
    assert_eq!(refused(&apart(20, 2, 3), &weighed).code(), Code::BadSetting);
}

#[test]
fn a_raised_flag_ends_it_with_nothing() {
    let cancel = Cancel::new();
    cancel.raise();
    let error = train(&apart(60, 3, 3), &hard(Task::Classify), None, &mut Silent, &cancel).expect_err("cancelled");
    assert_eq!(error.code(), Code::Interrupted);
}

#[test]
fn a_program_too_large_for_the_machine_is_refused_before_it_swaps() {
    let (rows, cols) = (8000, 4000);
    let values: Vec<f32> = (0..rows * cols).map(|at| (at * 7919 % 1013) as f32).collect();
    let targets: Vec<f64> = (0..rows).map(|row| f64::from(row as u8 % 2)).collect();
    let matrix = Matrix::DenseF32(Dense::new(values, rows, cols).unwrap());
    let data = Dataset::new(matrix, Targets::Real(targets.into())).unwrap();
    let start = std::time::Instant::now();
    let result = train(&data, &hard(Task::Classify), None, &mut Silent, &Cancel::new());
    let Err(error) = result else { panic!("solved in {:?}", start.elapsed()) };
    assert_eq!(error.code(), Code::BadSetting);
    assert!(error.message().contains("too large"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn on_a_line_the_verdict_is_whether_the_classes_overlap(
        list in prop::collection::vec((-20..20i32, any::<bool>()), 2..12),
    ) {
        let rows: Vec<[f64; 1]> = list.iter().map(|point| [f64::from(point.0)]).collect();
        let targets: Vec<f64> = list.iter().map(|point| if point.1 { 1.0 } else { -1.0 }).collect();
        prop_assume!(targets.contains(&1.0) && targets.contains(&-1.0));
        let data = points(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>(), &targets);
        let of = |class: f64| rows.iter().zip(&targets).filter(move |(_, t)| **t == class).map(|(row, _)| row[0]);
        let low = |class| of(class).fold(f64::INFINITY, f64::min);
        let high = |class| of(class).fold(f64::NEG_INFINITY, f64::max);
        let room = (low(1.0) - high(-1.0)).max(low(-1.0) - high(1.0));
        match train(&data, &hard(Task::Classify), None, &mut Silent, &Cancel::new()) {
            Ok(trained) => {
                prop_assert!(room > 0.0);
                // w = 2 / room
                prop_assert!((trained.model.certificate.objective - 2.0 / (room * room)).abs() < 1e-6);
            }
            Err(error) => {
                prop_assert!(room <= 0.0, "{}", error);
                prop_assert_eq!(error.code(), Code::NotSeparable);
            }
        }
    }
}
