//! Comparisons with ties: every solver reaches the referee's optimum, and swapping the sides does not change a model.

use crate::hard_margin::refused;
use crate::made::{Numbers, fit};
use crate::optimum::{Row, assert_certified, referee, scaled_rows};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use maxmargin::data::{Csr, Dataset, Dense, Matrix, Outcome, Pairs, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::Decoder;
use maxmargin::settings::{Method, Regularisation, Settings, Solver, Task};
use maxmargin::solve::Witness;
use maxmargin::task::Intercept;

/// Items with features, and pairs that mostly follow a hidden score, with ties if it differs little. Weights are 1, 2
/// or 3.
pub(crate) fn with_ties(items: usize, cols: usize, pairs: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let values: Vec<f64> = (0..items * cols).map(|_| 2.0 * numbers.next() - 1.0).collect();
    let score = |row: usize| -> f64 {
        values[row * cols..(row + 1) * cols].iter().enumerate().map(|(at, v)| v * (1.0 + at as f64)).sum()
    };
    let (mut left, mut right, mut outcomes, mut weights) = (vec![], vec![], vec![], vec![]);
    while left.len() < pairs {
        let pick = |number: f64| (number * items as f64) as usize;
        let (a, b) = (pick(numbers.next()), pick(numbers.next()));
        if a == b {
            continue;
        }
        left.push(a as u32);
        right.push(b as u32);
        let difference = score(b) - score(a) + numbers.next() - 0.5;
        outcomes.push(Outcome::of_sign(if difference.abs() < 1.0 { 0 } else { difference.signum() as i8 }));
        weights.push((numbers.next() * 3.0).floor() + 1.0);
    }
    let pairs = Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap().with_weights(weights).unwrap();
    let matrix = Matrix::DenseF64(Dense::new(values, items, cols).unwrap());
    Dataset::new(matrix, Targets::Absent).unwrap().with_pairs(pairs).unwrap()
}

/// The constraints by definition: y·z − τ ≥ 1 for a decided pair, τ ± z ≥ 1 for a tie; without τ for `rank2`.
fn rows_of(data: &Dataset, scale: Scale, c: f64, method: Method) -> Vec<Row> {
    let rows = scaled_rows(data, scale);
    let pairs = data.pairs().unwrap();
    let mut constraints = Vec::new();
    for pair in 0..pairs.len() {
        let (left, right) = (pairs.left()[pair] as usize, pairs.right()[pair] as usize);
        let mut push = |sign: f64, threshold: f64, times: f64| {
            constraints.push(Row {
                features: rows[right].iter().zip(&rows[left]).map(|(r, l)| sign * (r - l)).collect(),
                threshold,
                margin: 1.0,
                cost: c * times * pairs.weight(pair),
            })
        };
        match (f64::from(pairs.outcome(pair).sign()), method) {
            (0.0, Method::Rank) => {}
            (0.0, Method::Rank2) => [1.0, -1.0].into_iter().for_each(|sign| push(sign, 0.0, 1.0)),
            (0.0, _) => [1.0, -1.0].into_iter().for_each(|sign| push(sign, 1.0, 1.0)),
            (sign, Method::Rank) => push(sign, 0.0, 1.0),
            (sign, Method::Rank2) => push(sign, 0.0, 2.0),
            (sign, _) => push(sign, -1.0, 1.0),
        }
    }
    constraints
}

fn settings(loss: Loss, solver: Solver, c: f64, tolerance: f64) -> Settings {
    Settings {
        loss,
        solver,
        tolerance,
        regularisation: Regularisation::C(c),
        max_passes: 200_000,
        ..Settings::new(Task::Compare)
    }
}

#[test]
fn comparisons_reach_the_referees_optimum_with_every_loss_solver_and_scaling() {
    // First more pairs than items, then so few pairs that they are learned as differences.
    reach_the_referees_optimum(&with_ties(30, 4, 120, 5));
    reach_the_referees_optimum(&with_ties(150, 4, 110, 5));
}

fn reach_the_referees_optimum(data: &Dataset) {
    for scale in [Scale::None, Scale::Standard] {
        for intercept in [Intercept::Free, Intercept::Penalised] {
            let rows = rows_of(data, scale, 0.7, Method::Compare);
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                let optimum = referee(&rows, loss, intercept);
                for solver in [
                    Solver::DualCoordinateDescent,
                    Solver::Newton,
                    Solver::CuttingPlane,
                    Solver::InteriorPoint,
                    Solver::Smo,
                ] {
                    if (solver, intercept) == (Solver::Smo, Intercept::Penalised) {
                        continue;
                    }
                    let settings = Settings { scale, ..settings(loss, solver, 0.7, 1e-6).with_free(intercept) };
                    assert_certified(data, &settings, optimum);
                }
            }
        }
    }
}

/// The same data in f32, dense or sparse.
fn in_single_precision(data: &Dataset, sparse: bool) -> Dataset {
    let rows: Vec<Vec<(usize, f64)>> = (0..data.rows())
        .map(|row| {
            let mut entries = Vec::new();
            data.matrix().each_in_row(row, |column, value| entries.push((column, f64::from(value as f32))));
            entries.retain(|entry| !sparse || entry.1.abs() > 0.5);
            entries
        })
        .collect();
    let matrix = match sparse {
        true => {
            let starts: Vec<u64> = std::iter::once(0)
                .chain(rows.iter().scan(0, |end, row| {
                    *end += row.len() as u64;
                    Some(*end)
                }))
                .collect();
            let indices: Vec<u16> = rows.iter().flatten().map(|entry| entry.0 as u16).collect();
            let values: Vec<f32> = rows.iter().flatten().map(|entry| entry.1 as f32).collect();
            Matrix::Csr16F32(Csr::new(starts, indices, values, data.cols()).unwrap())
        }
        false => {
            let values: Vec<f32> = rows.iter().flatten().map(|entry| entry.1 as f32).collect();
            Matrix::DenseF32(Dense::new(values, data.rows(), data.cols()).unwrap())
        }
    };
    data.clone().with_matrix(matrix).unwrap()
}

#[test]
fn differences_in_single_precision_are_certified_over_the_rows_themselves() {
    for sparse in [false, true] {
        let data = in_single_precision(&with_ties(300, 4, 200, 5), sparse);
        for scale in [Scale::None, Scale::Standard] {
            let rows = rows_of(&data, scale, 0.7, Method::Compare);
            for loss in Loss::ALL {
                for solver in
                    [Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint]
                {
                    if loss == Loss::Logistic && solver != Solver::Newton {
                        continue;
                    }
                    let settings = Settings { scale, ..settings(loss, solver, 0.7, 1e-4) };
                    let model = fit(&data, &settings).model;
                    assert!(model.certificate.converged, "{settings:?} {:?}", model.certificate);
                    model.verify(&data).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
                    if loss != Loss::Logistic {
                        let optimum = referee(&rows, loss, Intercept::Free);
                        let found = model.certificate.objective;
                        assert!((found - optimum).abs() <= 1.1e-4 * optimum, "{settings:?}: {found} {optimum}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_altered_threshold_and_altered_multipliers_are_noticed() {
    let data = with_ties(30, 3, 100, 4);
    for method in [Method::Rank, Method::Rank2] {
        let mut model = fit(&data, &settings(Loss::Hinge, Solver::Auto, 1.0, 1e-4).with_method(method)).model;
        model.verify(&data).unwrap();
        model.decoder = Decoder::Compare { threshold: 0.5 * model.decoder.threshold().unwrap() + 0.01 };
        assert_eq!(model.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
    }
    let mut model = fit(&data, &settings(Loss::Hinge, Solver::LinearProgram, 1.0, 1e-6)).model;
    model.verify(&data).unwrap();
    let Some(Witness::Dual(multipliers)) = &mut model.witness else { panic!("multipliers") };
    multipliers.fill(0.0);
    multipliers[0] = 1.0;
    assert_eq!(model.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
}

#[test]
fn a_tie_of_weight_zero_says_nothing_to_the_likelihood() {
    let data = with_ties(30, 3, 100, 4);
    let pairs = data.pairs().unwrap();
    let tie = (0..pairs.len()).find(|&pair| pairs.outcome(pair) == Outcome::Tie).unwrap();
    let mut weights = pairs.weights().unwrap().to_vec();
    weights[tie] = 0.0;
    let data = data.clone().with_pairs(pairs.clone().with_weights(weights).unwrap()).unwrap();
    let model = fit(&data, &settings(Loss::Logistic, Solver::Auto, 1.0, 1e-6)).model;
    assert!(model.certificate.converged);
}

#[test]
fn ties_ignored_or_taken_both_ways_reach_the_referees_optimum_too() {
    let data = with_ties(30, 4, 120, 6);
    for method in [Method::Rank, Method::Rank2] {
        let rows = rows_of(&data, Scale::None, 0.7, method);
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let optimum = referee(&rows, loss, Intercept::None);
            for solver in [Solver::DualCoordinateDescent, Solver::Newton, Solver::InteriorPoint, Solver::Smo] {
                assert_certified(&data, &settings(loss, solver, 0.7, 1e-6).with_method(method), optimum);
            }
        }
    }
}

#[test]
fn the_logistic_loss_is_the_likelihood_of_three_outcomes() {
    let data = with_ties(40, 3, 200, 7);
    let pairs = data.pairs().unwrap();
    for c in [0.05, 3.0] {
        let model = fit(&data, &settings(Loss::Logistic, Solver::Auto, c, 1e-8)).model;
        let Decoder::Likelihood { threshold } = model.decoder else { panic!("{:?}", model.decoder) };
        let value = |weights: &[f64], threshold: f64| {
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let rows = scaled_rows(&data, Scale::None);
            let score = |row: u32| -> f64 { rows[row as usize].iter().zip(weights).map(|(x, w)| x * w).sum() };
            let loss: f64 = (0..pairs.len())
                .map(|pair| {
                    let z = score(pairs.right()[pair]) - score(pairs.left()[pair]);
                    let likelihood = match pairs.outcome(pair) {
                        Outcome::Right => sigmoid(z - threshold),
                        Outcome::Left => sigmoid(-z - threshold),
                        Outcome::Tie => sigmoid(threshold - z) - sigmoid(-threshold - z),
                    };
                    -pairs.weight(pair) * likelihood.ln()
                })
                .sum();
            0.5 * weights.iter().map(|w| w * w).sum::<f64>() + c * loss
        };
        let weights = model.scorer.weights().unwrap();
        let certificate = &model.certificate;
        assert!((value(weights, threshold) - certificate.objective).abs() <= 1e-10 * certificate.objective);
        assert!(certificate.converged && certificate.gap().unwrap() <= 1e-8, "{certificate:?}");
        // No step in any direction gains more than the bound allows.
        for at in 0..=weights.len() {
            for step in [-1e-3, 1e-3] {
                let mut moved = weights.to_vec();
                let threshold = if at == weights.len() { threshold + step } else { threshold };
                moved.iter_mut().enumerate().filter(|(place, _)| *place == at).for_each(|(_, w)| *w += step);
                assert!(value(&moved, threshold) >= certificate.lower_bound.unwrap());
            }
        }
        model.verify(&data).unwrap();
    }
}

#[test]
fn answers_are_the_same_from_both_sides_and_at_any_scale() {
    let data = with_ties(40, 3, 200, 8);
    let pairs = data.pairs().unwrap();
    let flipped: Vec<Outcome> = (0..pairs.len()).map(|pair| Outcome::of_sign(-pairs.outcome(pair).sign())).collect();
    let flipped = Pairs::new(pairs.right().to_vec(), pairs.left().to_vec())
        .and_then(|flipped_pairs| flipped_pairs.with_outcomes(flipped))
        .and_then(|flipped_pairs| flipped_pairs.with_weights(pairs.weights().unwrap().to_vec()))
        .unwrap();
    let flipped = data.clone().with_pairs(flipped).unwrap();
    let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    for settings in [
        settings(Loss::Hinge, Solver::Auto, 1.0, 1e-9),
        settings(Loss::SquaredHinge, Solver::Auto, 1.0, 1e-9),
        settings(Loss::Logistic, Solver::Auto, 1.0, 1e-9),
        Settings { kernel, ..settings(Loss::Hinge, Solver::Auto, 1.0, 1e-9) },
        settings(Loss::Hinge, Solver::Auto, 1.0, 1e-9).with_method(Method::Rank),
        settings(Loss::Hinge, Solver::Auto, 1.0, 1e-9).with_method(Method::Rank2),
    ] {
        let (model, other) = (fit(&data, &settings).model, fit(&flipped, &settings).model);
        let (scores, others) = (model.scores(&data).unwrap(), other.scores(&data).unwrap());
        let threshold = model.decoder.threshold().unwrap();
        for left in 0..data.rows() {
            for right in 0..data.rows() {
                let outcome = model.decoder.outcome(scores[left], scores[right]).unwrap();
                let back = model.decoder.outcome(scores[right], scores[left]).unwrap();
                assert_eq!(outcome.sign(), -back.sign());
                if let Decoder::Compare { .. } = model.decoder {
                    let larger = Decoder::Compare { threshold: 3.0 * threshold };
                    assert_eq!(larger.outcome(3.0 * scores[left], 3.0 * scores[right]), Some(outcome));
                }
                let (here, there) = (scores[right] - scores[left], others[right] - others[left]);
                assert!((here - there).abs() <= 1e-3 * (1.0 + here.abs()), "{settings:?}: {here} {there}");
            }
        }
    }
}

#[test]
fn what_has_no_threshold_is_refused() {
    let data = with_ties(30, 3, 100, 9);
    let pairs = data.pairs().unwrap();
    let with = |change: &dyn Fn(Outcome) -> Outcome| {
        let outcomes: Vec<Outcome> = (0..pairs.len()).map(|pair| change(pairs.outcome(pair))).collect();
        data.clone().with_pairs(pairs.clone().with_outcomes(outcomes).unwrap()).unwrap()
    };
    let usual = settings(Loss::Hinge, Solver::Auto, 1.0, 1e-6);
    let no_ties = with(&|outcome| if outcome == Outcome::Tie { Outcome::Left } else { outcome });
    assert_eq!(refused(&no_ties, &usual).code(), Code::NoThreshold);
    let only_ties = with(&|_| Outcome::Tie);
    for method in [Method::Compare, Method::Rank, Method::Rank2] {
        assert_eq!(refused(&only_ties, &usual.clone().with_method(method)).code(), Code::NoThreshold);
    }
    // With few ties and a small C, the best weights are nearly zero and the best threshold is negative.
    let few_ties = with(&|outcome| if outcome == Outcome::Tie { Outcome::Right } else { outcome });
    let mut outcomes: Vec<Outcome> = (0..pairs.len()).map(|pair| few_ties.pairs().unwrap().outcome(pair)).collect();
    outcomes[..5].fill(Outcome::Tie);
    let few_ties = data.clone().with_pairs(pairs.clone().with_outcomes(outcomes).unwrap()).unwrap();
    let error = refused(&few_ties, &settings(Loss::Hinge, Solver::Auto, 1e-4, 1e-6));
    assert_eq!(error.code(), Code::NoThreshold, "{error}");
    let model = fit(&few_ties, &settings(Loss::SquaredHinge, Solver::Auto, 1e-4, 1e-6)).model;
    let outcomes = few_ties.pairs().unwrap();
    let scores = model.scores(&few_ties).unwrap();
    assert!(model.decoder.threshold().unwrap() <= 0.0);
    let said = |pair: usize| {
        model.decoder.outcome(scores[outcomes.left()[pair] as usize], scores[outcomes.right()[pair] as usize])
    };
    assert!((0..outcomes.len()).all(|pair| said(pair) != Some(Outcome::Tie)));
    // Random outcomes: the hinge learns nothing, and this is proven.
    let mut numbers = Numbers::new(3);
    let random: Vec<Outcome> = (0..pairs.len()).map(|_| Outcome::of_sign((3.0 * numbers.next()) as i8 - 1)).collect();
    let random = data.clone().with_pairs(pairs.clone().with_outcomes(random).unwrap()).unwrap();
    for solver in [Solver::Newton, Solver::DualCoordinateDescent, Solver::InteriorPoint, Solver::Smo] {
        assert_eq!(refused(&random, &settings(Loss::Hinge, solver, 0.01, 1e-3)).code(), Code::NoThreshold);
    }
    fit(&random, &settings(Loss::SquaredHinge, Solver::Auto, 0.01, 1e-3));
    // All items are equal, so no weights separate them.
    let alike = Matrix::DenseF64(Dense::new(vec![1.0; 90], 30, 3).unwrap());
    let alike = Dataset::new(alike, Targets::Absent).unwrap().with_pairs(pairs.clone()).unwrap();
    assert_eq!(refused(&alike, &usual).code(), Code::NoThreshold);
}

/// Pairs that some weights satisfy: outcomes follow a hidden score, and pairs near the border are left out.
fn separable(items: usize, cols: usize, pairs: usize, seed: u64) -> Dataset {
    let data = with_ties(items, cols, 20 * pairs, seed);
    let (rows, all) = (scaled_rows(&data, Scale::None), data.pairs().unwrap());
    let score = |row: u32| -> f64 { rows[row as usize].iter().enumerate().map(|(at, v)| v * (1.0 + at as f64)).sum() };
    let difference = |pair: usize| score(all.right()[pair]) - score(all.left()[pair]);
    let clear = |pair: &usize| (difference(*pair).abs() - 1.0).abs() > 0.3;
    let kept: Vec<usize> = (0..all.len()).filter(clear).take(pairs).collect();
    let outcome = |&pair: &usize| {
        let z: f64 = difference(pair);
        Outcome::of_sign(if z.abs() < 1.0 { 0 } else { z.signum() as i8 })
    };
    let outcomes: Vec<Outcome> = kept.iter().map(outcome).collect();
    data.clone().with_pairs(all.select(&kept).with_outcomes(outcomes).unwrap()).unwrap()
}

/// μ from the referee: clarabel on max μ, with all constraints listed.
fn margin_by_referee(data: &Dataset) -> f64 {
    let (rows, pairs) = (scaled_rows(data, Scale::None), data.pairs().unwrap());
    let cols = data.cols();
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let mut push = |difference: &[f64], sign: f64, bound: f64| {
        // μ + sign·w·d ≤ bound
        for (column, value) in difference.iter().enumerate() {
            i.push(right.len());
            j.push(column);
            v.push(sign * value);
        }
        i.push(right.len());
        j.push(cols);
        v.push(1.0);
        right.push(bound);
    };
    for pair in 0..pairs.len() {
        let (l, r) = (pairs.left()[pair] as usize, pairs.right()[pair] as usize);
        let difference: Vec<f64> = rows[r].iter().zip(&rows[l]).map(|(r, l)| r - l).collect();
        match f64::from(pairs.outcome(pair).sign()) {
            0.0 => [1.0, -1.0].into_iter().for_each(|sign| push(&difference, sign, 1.0)),
            sign => push(&difference, -sign, -1.0),
        }
    }
    let constraints = CscMatrix::new_from_triplets(right.len(), cols + 1, i, j, v);
    let mut linear = vec![0.0; cols + 1];
    linear[cols] = -1.0;
    let settings =
        DefaultSettingsBuilder::default().verbose(false).tol_gap_rel(1e-11).tol_gap_abs(1e-11).build().unwrap();
    let cones = [NonnegativeConeT(right.len())];
    let mut solver =
        DefaultSolver::new(&CscMatrix::zeros((cols + 1, cols + 1)), &linear, &constraints, &right, &cones, settings)
            .unwrap();
    solver.solve();
    assert_eq!(solver.solution.status, SolverStatus::Solved);
    solver.solution.x[cols]
}

#[test]
fn the_linear_program_finds_the_referees_margin_separable_or_not() {
    for (data, is_separable) in [(separable(40, 3, 150, 1), true), (with_ties(30, 3, 120, 2), false)] {
        let settings = settings(Loss::Hinge, Solver::LinearProgram, 1.0, 1e-7);
        let model = fit(&data, &settings).model;
        let (margin, expected) = (2.0 - model.certificate.objective, margin_by_referee(&data));
        assert!((margin - expected).abs() <= 1e-6, "{margin} {expected}");
        assert_eq!(margin > 0.0, is_separable);
        assert!(model.certificate.converged, "{:?}", model.certificate);
        assert_eq!(model.decoder.threshold(), Some(1.0));
        model.verify(&data).unwrap();
    }
    // More constraints than are handled together.
    let data = separable(200, 3, 9000, 3);
    let model = fit(&data, &settings(Loss::Hinge, Solver::LinearProgram, 1.0, 1e-7)).model;
    assert!((2.0 - model.certificate.objective - margin_by_referee(&data)).abs() <= 1e-6);
}

#[test]
fn the_quadratic_program_gives_a_feasible_point_of_the_linear_one() {
    let data = separable(40, 3, 150, 4);
    let pairs = data.pairs().unwrap();
    let model = fit(&data, &settings(Loss::Hinge, Solver::QuadraticProgram, 1.0, 1e-9)).model;
    let optimum = {
        let rows: Vec<Row> = rows_of(&data, Scale::None, 1e7, Method::Compare);
        referee(&rows, Loss::Hinge, Intercept::Free)
    };
    assert!((model.certificate.objective - optimum).abs() <= 1e-6 * optimum, "{:?} {optimum}", model.certificate);
    // With τ = −β: μ = 1/τ and w = u/τ satisfy the constraints of the linear program, and its margin is no smaller.
    let threshold = model.decoder.threshold().unwrap();
    let scores: Vec<f64> = model.scores(&data).unwrap().iter().map(|score| score / threshold).collect();
    let margin = 1.0 / threshold;
    for pair in 0..pairs.len() {
        let z = scores[pairs.right()[pair] as usize] - scores[pairs.left()[pair] as usize];
        let kept = match f64::from(pairs.outcome(pair).sign()) {
            0.0 => 1.0 - z.abs(),
            sign => sign * z - 1.0,
        };
        assert!(kept >= margin - 1e-9, "{kept} {margin}");
    }
    let largest =
        2.0 - fit(&data, &settings(Loss::Hinge, Solver::LinearProgram, 1.0, 1e-9)).model.certificate.objective;
    assert!(largest >= margin - 1e-9, "{largest} {margin}");
    let error = refused(&with_ties(30, 3, 120, 2), &settings(Loss::Hinge, Solver::QuadraticProgram, 1.0, 1e-9));
    assert_eq!(error.code(), Code::NotSeparable);
}
