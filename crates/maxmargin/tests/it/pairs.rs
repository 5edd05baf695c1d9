//! Ranking by explicit pairs: the same optimum as equivalent formulations, and a valid certificate.

use crate::made::{Numbers, fit, graded};
use crate::optimum::{Row, assert_certified, logistic_referee, referee, scaled_rows};
use maxmargin::data::{Dataset, Dense, Matrix, Outcome, PairCounts, Pairs, Scale, Shape, Targets, hold_out};
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::settings::{RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::Witness;
use maxmargin::task::{Intercept, WeightAs};
use maxmargin::train::choose_solver;

/// Items with features, and pairs that mostly follow a hidden score; weights 0, 1, 2 or 3.
pub(crate) fn compared(items: usize, cols: usize, pairs: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let values: Vec<f64> = (0..items * cols).map(|at| numbers.next() * (1.0 + (at % cols) as f64)).collect();
    let score = |row: usize| values[row * cols..(row + 1) * cols].iter().sum::<f64>();
    let (mut left, mut right, mut outcomes, mut weights) = (vec![], vec![], vec![], vec![]);
    while left.len() < pairs {
        let pick = |number: f64| (number * items as f64) as usize;
        let (a, b) = (pick(numbers.next()), pick(numbers.next()));
        if a == b {
            continue;
        }
        left.push(a as u32);
        right.push(b as u32);
        let better = score(a) + 2.0 * (numbers.next() - 0.5) > score(b);
        outcomes.push(if better { Outcome::Left } else { Outcome::Right });
        weights.push((numbers.next() * 4.0).floor());
    }
    let pairs = Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap().with_weights(weights).unwrap();
    let matrix = Matrix::DenseF64(Dense::new(values, items, cols).unwrap());
    Dataset::new(matrix, Targets::Absent).unwrap().with_pairs(pairs).unwrap()
}

/// The constraints by definition.
fn rows_of(data: &Dataset, scale: Scale, c: f64, way: WeightAs) -> Vec<Row> {
    let rows = scaled_rows(data, scale);
    let pairs = data.pairs().unwrap();
    (0..pairs.len())
        .filter(|&pair| pairs.weight(pair) > 0.0)
        .map(|pair| {
            let (better, worse) = pairs.ordered(pair);
            let weight = pairs.weight(pair);
            Row {
                features: rows[better].iter().zip(&rows[worse]).map(|(a, b)| a - b).collect(),
                threshold: 0.0,
                margin: if way == WeightAs::Margin { weight } else { 1.0 },
                cost: if way == WeightAs::Margin { c } else { c * weight },
            }
        })
        .collect()
}

fn settings(loss: Loss, solver: Solver, c: f64, tolerance: f64) -> Settings {
    Settings {
        loss,
        solver,
        tolerance,
        regularisation: Regularisation::C(c),
        max_passes: 200_000,
        ..Settings::new(Task::Rank)
    }
}

#[test]
fn all_pairs_of_graded_groups_give_the_optimum_of_the_ranker_over_groups() {
    let data = graded(6, 9, 5, 4, 11);
    let targets = data.targets().real().unwrap();
    let (mut better, mut worse) = (vec![], vec![]);
    for range in data.groups().unwrap().ranges() {
        for i in range.clone() {
            for j in range.clone().filter(|&j| targets[i] > targets[j]) {
                better.push(i as u32);
                worse.push(j as u32);
            }
        }
    }
    let listed = data.clone().with_pairs(Pairs::new(better, worse).unwrap()).unwrap();
    for c in [0.01, 2.0] {
        let by_groups = fit(&data, &settings(Loss::SquaredHinge, Solver::Newton, c, 1e-12)).model;
        for (solver, tolerance) in [(Solver::Newton, 1e-12), (Solver::DualCoordinateDescent, 1e-10)] {
            let by_pairs = fit(&listed, &settings(Loss::SquaredHinge, solver, c, tolerance)).model;
            let (ours, theirs) = (&by_pairs.certificate, &by_groups.certificate);
            assert!((ours.objective - theirs.objective).abs() <= 1e-9 * theirs.objective, "{ours:?} {theirs:?}");
            assert_eq!((ours.constraints, ours.lambda), (theirs.constraints, theirs.lambda));
        }
    }
}

#[test]
fn pairs_reach_the_referees_optimum_with_every_loss_solver_and_scaling() {
    let data = compared(30, 4, 120, 5);
    for scale in [Scale::None, Scale::Standard, Scale::UnitRows] {
        let rows = rows_of(&data, scale, 0.7, WeightAs::Slack);
        for loss in Loss::ALL {
            let optimum = match loss {
                Loss::Logistic => logistic_referee(&rows, Intercept::None),
                _ => referee(&rows, loss, Intercept::None),
            };
            for solver in [Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint] {
                if (loss, solver) == (Loss::Logistic, Solver::InteriorPoint) {
                    continue;
                }
                assert_certified(&data, &Settings { scale, ..settings(loss, solver, 0.7, 1e-6) }, optimum);
            }
        }
    }
}

#[test]
fn a_weight_can_be_the_margin() {
    let data = compared(25, 3, 80, 8);
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        let optimum = referee(&rows_of(&data, Scale::None, 0.3, WeightAs::Margin), loss, Intercept::None);
        // Scaling margins and weights by s gives the same problem, with its value times s² if the loss is; the hinge
        // needs C·s.
        for s in [1e-8, 1.0, 1e4] {
            let pairs = data.pairs().unwrap();
            let weights: Vec<f64> = (0..pairs.len()).map(|pair| s * pairs.weight(pair)).collect();
            let scaled = data.clone().with_pairs(pairs.clone().with_weights(weights).unwrap()).unwrap();
            let c = if loss == Loss::Hinge { 0.3 * s } else { 0.3 };
            for solver in [
                Solver::Auto,
                Solver::DualCoordinateDescent,
                Solver::Newton,
                Solver::CuttingPlane,
                Solver::InteriorPoint,
            ] {
                let task = RankSettings { weight_as: WeightAs::Margin, ..Default::default() };
                let settings = Settings { task: task.into(), ..settings(loss, solver, c, 1e-6) };
                assert_certified(&scaled, &settings, optimum * s * s);
            }
        }
    }
}

#[test]
fn a_hinge_over_more_sparse_items_than_an_exact_hessian_takes_is_left_to_dual_coordinate_descent() {
    let chosen = |loss: Loss, rows: usize, density: f64| {
        let compared = Some(PairCounts { rows, pairs: 2 * rows });
        let shape = Shape { rows, features: 100, density, compared };
        choose_solver(&Settings { loss, ..Settings::new(Task::Rank) }, shape).unwrap()
    };
    assert_eq!(chosen(Loss::Hinge, 1_000, 0.05), Solver::Newton);
    assert_eq!(chosen(Loss::Hinge, 100_000, 0.05), Solver::DualCoordinateDescent);
    assert_eq!(chosen(Loss::Hinge, 100_000, 1.0), Solver::Newton);
    assert_eq!(chosen(Loss::SquaredHinge, 100_000, 0.05), Solver::Newton);
}

#[test]
fn copies_count_like_slack_weights_and_like_pairs_listed_again() {
    let data = compared(20, 3, 60, 2);
    let pairs = data.pairs().unwrap();
    let (mut better, mut worse) = (vec![], vec![]);
    for pair in 0..pairs.len() {
        for _ in 0..pairs.weight(pair) as usize {
            better.push(pairs.ordered(pair).0 as u32);
            worse.push(pairs.ordered(pair).1 as u32);
        }
    }
    let again = data.clone().with_pairs(Pairs::new(better, worse).unwrap()).unwrap();
    for (loss, tolerance) in [(Loss::SquaredHinge, 1e-10), (Loss::Hinge, 1e-8)] {
        let slack = settings(loss, Solver::Auto, 0.5, tolerance);
        let task = RankSettings { weight_as: WeightAs::Copies, ..Default::default() };
        let copies = Settings { task: task.into(), ..slack.clone() };
        let (slack_model, copied, listed) =
            (fit(&data, &slack).model, fit(&data, &copies).model, fit(&again, &slack).model);
        // The problem is identical, so the steps are identical.
        assert_eq!(slack_model.scorer.weights(), copied.scorer.weights());
        assert_eq!(slack_model.certificate.lambda, listed.certificate.lambda);
        assert_eq!(copied.certificate.constraints, listed.certificate.constraints);
        let (a, b) = (copied.certificate.objective, listed.certificate.objective);
        assert!((a - b).abs() <= 2.0 * tolerance * b, "{a} {b}");
    }
}

#[test]
fn a_model_of_pairs_survives_its_file_and_knows_its_pairs() {
    let data = compared(20, 3, 60, 4);
    let model = fit(&data, &settings(Loss::Hinge, Solver::DualCoordinateDescent, 0.5, 1e-4)).model;
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    // Equal pairs are one block.
    let pairs = data.pairs().expect("pairs");
    let blocks: std::collections::BTreeSet<_> = (0..60).map(|pair| pairs.ordered(pair)).collect();
    assert!(matches!(&again.witness, Some(Witness::Dual(alpha)) if alpha.len() == blocks.len()));
    again.verify(&data).expect("verifies");
    let mut order: Vec<usize> = (0..60).collect();
    order.swap(0, 1);
    let other = data.clone().with_pairs(data.pairs().unwrap().select(&order)).unwrap();
    assert_eq!(again.verify(&other).expect_err("other pairs").code(), Code::OtherData);
    let mut altered = again.clone();
    let Some(Witness::Dual(alpha)) = &mut altered.witness else { panic!("no dual point") };
    alpha.iter_mut().for_each(|alpha| *alpha += 1e9);
    assert_eq!(altered.verify(&data).expect_err("outside").code(), Code::CertificateMismatch);
}

#[test]
fn threads_do_not_change_a_bit_of_a_model_of_pairs() {
    let data = compared(3000, 6, 20_000, 6);
    for loss in Loss::ALL {
        let settings = settings(loss, Solver::Auto, 0.01, 1e-5);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fit(&data, &settings).model.to_bytes().unwrap())
        };
        assert!(run(1) == run(3), "{loss:?}");
    }
}

#[test]
fn pairs_are_held_out_with_their_groups_whole_and_items_stay() {
    let data = compared(20, 3, 60, 4);
    let codes: Vec<u32> = (0..60).map(|pair| pair % 7).collect();
    let names = (0..7).map(|group| format!("judge {group}")).collect();
    let grouped = data.pairs().unwrap().clone().with_groups(codes, names).unwrap();
    for (data, by_group) in [(data.clone().with_pairs(grouped).unwrap(), true), (data, false)] {
        let (kept, held) = hold_out(&data, 0.3, 5).unwrap();
        assert_eq!((kept.rows(), held.rows()), (20, 20));
        let (kept, held) = (kept.pairs().unwrap(), held.pairs().unwrap());
        assert_eq!(kept.len() + held.len(), 60);
        assert!((12..=24).contains(&held.len()), "{}", held.len());
        if by_group {
            let named = |pairs: &Pairs| -> Vec<String> {
                pairs.groups().unwrap().1.iter().map(|name| name.into_owned()).collect()
            };
            let (kept, held) = (named(kept), named(held));
            assert_eq!(kept.len() + held.len(), 7);
            assert!(kept.iter().all(|name| !held.contains(name)));
        }
    }
}

#[test]
fn rows_taken_out_take_their_pairs_along() {
    let data = compared(10, 2, 40, 9);
    let subset = data.subset(&[7, 2, 5]).unwrap();
    let (whole, part) = (data.pairs().unwrap(), subset.pairs().unwrap());
    let places = [7usize, 2, 5];
    let expected: Vec<(usize, usize)> = (0..whole.len())
        .map(|pair| whole.ordered(pair))
        .filter(|(a, b)| places.contains(a) && places.contains(b))
        .collect();
    let found: Vec<(usize, usize)> =
        (0..part.len()).map(|pair| part.ordered(pair)).map(|(a, b)| (places[a], places[b])).collect();
    assert_eq!(found, expected);
    assert!(!found.is_empty());
}
