//! A polished result is the optimum at any size below the limit; a result that is not polished says so. `weights.rs`
//! tests whether weights equal repetition.

use crate::graded_comparisons::from_grades;
use crate::made::{Numbers, fit, graded};
use crate::optimum::{Row, dense_row, referee};
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Outcome, Pairs, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Event, Observer, Silent};
use maxmargin::settings::{RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::{Stop, Witness, relative_gap};
use maxmargin::task::{Intercept, PairWeight};
use maxmargin::train::{Trained, train};
use std::ops::ControlFlow;

/// Rows of two classes, some of them twice. Small whole numbers put many rows on the same margin.
fn classes(rows: usize, cols: usize, whole: bool, seed: u64) -> (Dataset, Vec<f64>) {
    let mut numbers = Numbers::new(seed);
    let (mut values, mut targets, mut weights): (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
    for row in 0..rows {
        if row > 0 && numbers.next() < 0.2 {
            values.extend_from_within((row - 1) * cols..row * cols);
        } else {
            let value = |number: f64| if whole { (4.0 * number).round() } else { 4.0 * number };
            (0..cols).for_each(|_| values.push(value(numbers.next() - 0.5)));
        }
        let score: f64 = values[row * cols..].iter().sum::<f64>() + 3.0 * (numbers.next() - 0.5);
        targets.push(if score > 0.0 { 1.0 } else { -1.0 });
        weights.push((4.0 * numbers.next()).floor());
    }
    // Both classes have weight.
    for sign in [1.0, -1.0] {
        match targets.iter().position(|target| *target == sign) {
            Some(row) => weights[row] = 1.0,
            None => (targets[0], weights[0]) = (sign, 1.0),
        }
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    (Dataset::new(matrix, Targets::Real(targets.into())).unwrap(), weights)
}

/// Repeats every row as often as its weight says, with its group and target.
fn repeated(data: &Dataset, weights: &[f64]) -> Dataset {
    let times: Vec<usize> = (0..data.rows()).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
    let values: Vec<f64> = times.iter().flat_map(|&row| dense_row(data, row)).collect();
    let targets = data.targets().real().unwrap();
    let targets: Vec<f64> = times.iter().map(|&row| targets[row]).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, times.len(), data.cols()).unwrap());
    let repeated = Dataset::new(matrix, Targets::Real(targets.into())).unwrap();
    let Some(groups) = data.groups() else { return repeated };
    let (mut starts, mut names) = (vec![0u64], Vec::new());
    for (group, range) in groups.ranges().enumerate() {
        let size = range.map(|row| weights[row] as u64).sum::<u64>();
        if size > 0 {
            starts.push(starts[starts.len() - 1] + size);
            names.push(format!("q{group}"));
        }
    }
    let names: Names = names.into_iter().collect();
    repeated.with_groups(Groups::new(starts, names).unwrap()).unwrap()
}

/// The largest difference of scores, as a share of the largest score.
fn apart(one: &Model, other: &Model, data: &Dataset) -> f64 {
    let (one, other) = (one.scores(data).unwrap(), other.scores(data).unwrap());
    let largest = one.iter().fold(0.0f64, |most, score| most.max(score.abs()));
    one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest.max(1e-3)
}

fn gap(trained: &Trained) -> f64 {
    trained.model.certificate.gap().unwrap()
}

fn gaussian() -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.3), ..KernelSettings::default() }
}

#[test]
fn what_is_polished_is_the_referees_optimum() {
    for seed in 1..=6 {
        let (data, weights) = classes(40, 3, seed % 2 == 0, seed);
        let targets = data.targets().real().unwrap().to_vec();
        let data = data.with_weights(weights.clone()).unwrap();
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            for intercept in [Intercept::Free, Intercept::Penalised, Intercept::None] {
                let threshold = |target: f64| if intercept == Intercept::None { 0.0 } else { target };
                let rows: Vec<Row> = (0..data.rows())
                    .filter(|&row| weights[row] > 0.0)
                    .map(|row| Row {
                        features: dense_row(&data, row).iter().map(|x| targets[row] * x).collect(),
                        threshold: threshold(targets[row]),
                        margin: 1.0,
                        cost: 0.7 * weights[row],
                    })
                    .collect();
                let regularisation = Regularisation::C(0.7);
                let settings = Settings { loss, regularisation, ..Settings::new(Task::Classify).with_free(intercept) };
                let (found, optimum) = (fit(&data, &settings).model.certificate, referee(&rows, loss, intercept));
                assert!((found.objective - optimum).abs() <= 1e-7 * optimum, "{} {optimum}", found.objective);
            }
        }
    }
}

#[test]
fn many_rows_on_the_wrong_side_of_their_margins_are_no_hindrance() {
    let (data, weights) = classes(20_000, 5, false, 5);
    let data = data.with_weights(weights).unwrap();
    let mut unpolished = 0;
    for intercept in [Intercept::Free, Intercept::Penalised, Intercept::None] {
        let settings = Settings { loss: Loss::Hinge, ..Settings::new(Task::Classify).with_free(intercept) };
        let trained = fit(&data, &Settings { polish: true, ..settings.clone() });
        assert!(gap(&trained) <= 1e-12, "{intercept:?}: {:e}", gap(&trained));
        trained.model.verify(&data).unwrap();
        // Without being asked, polishing may not take longer than the training did.
        let trained = fit(&data, &settings);
        assert!(gap(&trained) <= 1e-3, "{intercept:?}: {:e}", gap(&trained));
        unpolished += usize::from(gap(&trained) > 1e-9);
    }
    assert!(unpolished > 0);
}

#[test]
fn polishing_is_reported_and_its_time_counts() {
    struct Seen {
        polishing: bool,
        passes_after: Vec<(u64, f64)>,
    }
    impl Observer for Seen {
        fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
            match event {
                Event::Polishing => self.polishing = true,
                Event::Pass { pass, objective, lower_bound, .. } if self.polishing => {
                    self.passes_after.push((*pass, relative_gap(*objective, lower_bound.expect("a bound"))));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let (data, _) = classes(300, 5, false, 3);
    for (kernel, solver) in [
        (KernelSettings::default(), Solver::Auto),
        (KernelSettings::default(), Solver::DualCoordinateDescent),
        (KernelSettings::default(), Solver::CuttingPlane),
        (gaussian(), Solver::Auto),
    ] {
        let settings = Settings { polish: true, kernel, solver, ..Settings::new(Task::Classify) };
        let mut seen = Seen { polishing: false, passes_after: Vec::new() };
        let trained = train(&data, &settings, None, &mut seen, &Cancel::new()).unwrap();
        let [(pass, reported)] = seen.passes_after[..] else { panic!("{solver:?}: {:?}", seen.passes_after) };
        assert!(reported <= 1e-12 && gap(&trained) <= 1e-12, "{solver:?}: {reported:e}");
        let [.., before, last] = &trained.trace[..] else { panic!("a trace") };
        assert!(last.pass == pass && last.seconds > before.seconds, "{solver:?}: {before:?} {last:?}");
        trained.model.verify(&data).unwrap();
    }
}

#[test]
fn polishing_where_there_is_nothing_to_polish_is_refused() {
    let (data, _) = classes(40, 3, false, 3);
    let own = Settings { polish: true, ..Settings::new(Task::Classify) };
    let nu = Settings { regularisation: Regularisation::Nu(0.3), loss: Loss::Hinge, ..own.clone() };
    for settings in [own.clone().with_solver(Solver::Sgd), own.with_solver(Solver::QuadraticProgram), nu] {
        let error = train(&data, &settings, None, &mut Silent, &Cancel::new()).expect_err("nothing to polish");
        assert_eq!(error.code(), Code::BadSetting);
    }
    let lists = graded(3, 8, 2, 3, 1);
    let settings = Settings { polish: true, loss: Loss::Hinge, ..Settings::new(Task::Rank) };
    let error = train(&lists, &settings, None, &mut Silent, &Cancel::new()).expect_err("one dual variable per pair");
    assert_eq!(error.code(), Code::BadSetting);
}

#[test]
fn a_solver_that_was_chosen_stops_at_its_tolerance() {
    let (data, _) = classes(200, 4, false, 3);
    let polished = Settings { loss: Loss::Hinge, ..Settings::new(Task::Classify) };
    let chosen = Settings { solver: Solver::Newton, ..polished.clone() };
    let (polished, chosen) = (fit(&data, &polished), fit(&data, &chosen));
    assert!(gap(&polished) <= 1e-12 && gap(&chosen) > 1e-9, "{:e} {:e}", gap(&polished), gap(&chosen));
}

#[test]
fn who_asks_for_an_end_once_the_tolerance_is_reached_has_what_was_found_by_then() {
    struct Ending<'a>(&'a Cancel, f64);
    impl Observer for Ending<'_> {
        fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
            if let Event::Pass { objective, lower_bound: Some(bound), .. } = event
                && relative_gap(*objective, *bound) <= self.1
            {
                self.0.raise();
            }
            ControlFlow::Continue(())
        }
    }
    let (data, _) = classes(200, 4, false, 3);
    for (loss, kernel) in [
        (Loss::Hinge, KernelSettings::default()),
        (Loss::Logistic, KernelSettings::default()),
        (Loss::Hinge, gaussian()),
    ] {
        let settings = Settings { loss, kernel, ..Settings::new(Task::Classify) };
        let cancel = Cancel::new();
        let trained = train(&data, &settings, None, &mut Ending(&cancel, settings.tolerance), &cancel).unwrap();
        assert_eq!(trained.stop, Stop::Converged);
        assert!(gap(&trained) > 1e-12 && gap(&trained) <= settings.tolerance, "{:e}", gap(&trained));
        trained.model.verify(&data).unwrap();
    }
}

/// Graded rows with weights: some are zero, one group has no weight at all, and one has no pair left.
fn weighed(seed: u64) -> (Dataset, Vec<f64>) {
    let data = graded(8, 9, 3, 3, seed);
    let mut numbers = Numbers::new(seed + 100);
    let mut weights: Vec<f64> = (0..data.rows()).map(|_| (4.0 * numbers.next()).floor()).collect();
    weights[..9].fill(0.0);
    let targets = data.targets().real().unwrap();
    let top = targets[9..18].iter().fold(0.0f64, |most, target| most.max(*target));
    for row in 9..18 {
        weights[row] = if targets[row] == top { 2.0 } else { 0.0 };
    }
    (data, weights)
}

/// Whether the bound of each result confirms the objective of the other, within the stated gaps.
fn same_optimum(one: &Trained, other: &Trained) -> bool {
    let (a, b) = (&one.model.certificate, &other.model.certificate);
    (a.objective - b.objective).abs() <= (gap(one) + gap(other) + 1e-12) * a.objective.max(b.objective)
        && gap(one).max(gap(other)) <= 1e-6
}

/// All pairs of rows of one group, each weighted by the product of its row weights.
fn listed_pairs(data: &Dataset, weights: &[f64]) -> Dataset {
    let targets = data.targets().real().unwrap();
    let (mut left, mut right, mut outcomes, mut costs) = (vec![], vec![], vec![], vec![]);
    for group in data.groups().unwrap().ranges() {
        for a in group.clone() {
            for b in a + 1..group.end {
                left.push(a as u32);
                right.push(b as u32);
                outcomes.push(match targets[a].total_cmp(&targets[b]) {
                    std::cmp::Ordering::Greater => Outcome::Left,
                    std::cmp::Ordering::Less => Outcome::Right,
                    std::cmp::Ordering::Equal => Outcome::Tie,
                });
                costs.push(weights[a] * weights[b]);
            }
        }
    }
    let pairs = Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap().with_weights(costs).unwrap();
    Dataset::new(data.matrix().clone(), Targets::Absent).unwrap().with_pairs(pairs).unwrap()
}

#[test]
fn pairs_of_weighted_graded_rows_weigh_the_product_and_a_weight_of_zero_is_no_row() {
    for seed in 1..=5 {
        let (data, weights) = weighed(seed);
        let weighted = data.clone().with_weights(weights.clone()).unwrap();
        let listed = listed_pairs(&data, &weights);
        let zero_or_one: Vec<f64> = weights.iter().map(|weight| weight.min(1.0)).collect();
        let (some, rest) = (data.clone().with_weights(zero_or_one.clone()).unwrap(), repeated(&data, &zero_or_one));
        for intercept in [Intercept::Free, Intercept::Penalised] {
            let loss = Loss::SquaredHinge;
            let by_pairs = Settings { loss, ..Settings::new(Task::Compare).with_free(intercept) };
            let by_grades = from_grades(by_pairs.clone());
            for (one, other, settings) in [(&weighted, &listed, &by_pairs), (&some, &rest, &by_grades)] {
                let (one, other) = (fit(one, &by_grades), fit(other, settings));
                let context = format!("{seed} {intercept:?} {:e} {:e}", gap(&one), gap(&other));
                let apart = apart(&one.model, &other.model, &data);
                assert!(apart <= 1e-9, "{context}: {apart:e}");
                let [a, b] = [&one, &other].map(|trained| trained.model.decoder.threshold().unwrap());
                assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{context}: {a} {b}");
                assert!(same_optimum(&one, &other), "{context}");
            }
        }
    }
}

#[test]
fn rows_that_all_weigh_nothing_are_refused() {
    let data = graded(3, 5, 3, 3, 1);
    let rows = data.rows();
    let data = data.with_weights(vec![0.0; rows]).unwrap();
    for settings in [
        Settings::new(Task::Rank),
        Settings { kernel: gaussian(), ..Settings::new(Task::Rank) },
        Settings::of(RankSettings { pair_weight: PairWeight::PerQuery, ..Default::default() }),
        from_grades(Settings { loss: Loss::SquaredHinge, ..Settings::new(Task::Compare) }),
    ] {
        let error = train(&data, &settings, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert_eq!(error.code(), Code::BadWeight, "{error}");
    }
}

#[test]
fn rankers_at_extreme_costs_reach_fine_tolerances() {
    let mut by_planes = 0;
    for seed in 1..9 {
        // Grades that do not depend on the features.
        let grades: Vec<f64> = (0..60).map(|row| f64::from((row * 7 + row / 10) % 3)).collect();
        let data = graded(6, 10, 20, 0, seed).with_targets(Targets::Real(grades.into())).unwrap();
        for tolerance in [1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
            let settings = Settings {
                loss: Loss::Hinge,
                tolerance,
                regularisation: Regularisation::C(1e4),
                ..Settings::new(Task::Rank)
            };
            let trained = fit(&data, &settings);
            let gap = trained.model.certificate.gap().unwrap();
            assert!(trained.stop == Stop::Converged && gap <= tolerance, "seed {seed}, {tolerance:e}: {gap:e}");
            let found = trained.model.verify(&data).unwrap();
            assert!(found.unproved.is_none() && found.gap().unwrap() <= 1.01 * tolerance, "seed {seed}, {tolerance:e}");
            by_planes += usize::from(matches!(trained.model.witness, Some(Witness::Cuts(_))));
        }
    }
    assert!(by_planes > 0, "no hinge that could be rounded off no further");
}
