//! Compares steps with minima found by search and long runs with plain loops, and checks the bound on mistakes.

use super::comparison::{ComparisonLearner, Rule, loss_and_slopes};
use crate::data::{Dataset, Dense, Matrix, Outcome, Pairs, Targets};
use crate::error::Code;
use crate::loss::Loss;
use crate::random::Random;
use proptest::prelude::*;

/// Pairs of neighbouring rows, left then right.
fn side_by_side(rows: &[Vec<f64>], outcomes: &[i8], weights: Option<&[f64]>) -> Dataset {
    let cols = rows.first().map_or(0, Vec::len);
    let matrix = Dense::new(rows.concat(), rows.len(), cols).expect("rows");
    let left: Vec<u32> = (0..outcomes.len() as u32).map(|pair| 2 * pair).collect();
    let right: Vec<u32> = left.iter().map(|row| row + 1).collect();
    let outcomes: Vec<Outcome> = outcomes.iter().map(|&sign| Outcome::of_sign(sign)).collect();
    let mut pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("pairs");
    if let Some(weights) = weights {
        pairs = pairs.with_weights(weights.to_vec()).expect("weights");
    }
    Dataset::new(Matrix::DenseF64(matrix), Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("data")
}

/// A stream from hidden weights, with noise; about half of the pairs are ties.
fn stream(pairs: usize, cols: usize, seed: u64) -> Dataset {
    let mut random = Random::new(seed, 1, 0);
    let truth: Vec<f64> = (0..cols).map(|_| random.normal()).collect();
    let rows: Vec<Vec<f64>> = (0..2 * pairs).map(|_| (0..cols).map(|_| random.normal()).collect()).collect();
    let outcomes: Vec<i8> = rows
        .chunks(2)
        .map(|sides| {
            let z: f64 = truth.iter().zip(sides[1].iter().zip(&sides[0])).map(|(w, (r, l))| w * (r - l)).sum();
            let z = z + 0.3 * random.normal();
            i8::from(z > 1.2) - i8::from(z < -1.2)
        })
        .collect();
    let weights: Vec<f64> = (0..pairs).map(|pair| [1.0, 0.5, 2.0, 0.0][pair % 4]).collect();
    side_by_side(&rows, &outcomes, Some(&weights))
}

fn learned(rule: Rule, data: &Dataset) -> ComparisonLearner {
    let mut learner = ComparisonLearner::start(rule, Vec::new(), rule.least_threshold().max(0.5));
    learner.learn(data, 0..data.pairs().expect("pairs").len()).expect("finite");
    learner
}

/// The minimum of a convex function between two points.
fn least(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> (f64, f64) {
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if of(a) <= of(b) { high = b } else { low = a }
    }
    let at = (low + high) / 2.0;
    (at, of(at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// The minimum lies on w_t + b·d, since any other part of w only adds to its length: so the search has two
    /// variables.
    #[test]
    fn a_passive_aggressive_step_is_the_least_of_its_objective(
        w in prop::collection::vec(-3.0..3.0f64, 3),
        left in prop::collection::vec(-2.0..2.0f64, 3),
        right in prop::collection::vec(-2.0..2.0f64, 3),
        tau in prop_oneof![Just(1.0), 1.0..4.0f64],
        sign in -1..=1i8,
        c in 0.05..4.0f64,
        kappa in 0.05..4.0f64,
        weight in 0.25..3.0f64,
        squared in any::<bool>(),
    ) {
        let d: Vec<f64> = right.iter().zip(&left).map(|(r, l)| r - l).collect();
        let (z, square): (f64, f64) =
            (d.iter().zip(&w).map(|(d, w)| d * w).sum(), d.iter().map(|d| d * d).sum());
        let objective = |b: f64, to: f64| {
            let z = z + b * square;
            let loss = if sign == 0 { 1.0 - to + z.abs() } else { 1.0 + to - f64::from(sign) * z }.max(0.0);
            let slack = if squared { loss * loss } else { loss };
            0.5 * b * b * square + (to - tau) * (to - tau) / (2.0 * kappa) + c * weight * slack
        };
        let best_b = |to: f64| least(-40.0, 40.0, |b| objective(b, to));
        let (_, expected) = least(1.0, 40.0, |to| best_b(to).1);

        let rule = Rule::PassiveAggressive { c, kappa, squared };
        let mut learner = ComparisonLearner::start(rule, w.clone(), tau);
        learner.learn(&side_by_side(&[left, right], &[sign], Some(&[weight])), 0..1).expect("finite");
        let moved: Vec<f64> = learner.weights().iter().zip(&w).map(|(after, before)| after - before).collect();
        let b = if square > 0.0 { moved.iter().zip(&d).map(|(m, d)| m * d).sum::<f64>() / square } else { 0.0 };
        for (moved, d) in moved.iter().zip(&d) {
            prop_assert!((moved - b * d).abs() < 1e-9);
        }
        prop_assert!(learner.threshold() >= 1.0);
        let reached = objective(b, learner.threshold());
        prop_assert!(reached <= expected + 1e-9 * (1.0 + expected), "{reached} {expected}");
    }

    #[test]
    fn mistakes_stay_below_the_bound_of_any_weights_and_threshold(
        seed in 0..1000u64,
        c in 0.05..3.0f64,
        kappa in 0.1..3.0f64,
        scale in 0.2..4.0f64,
        against in 1.0..5.0f64,
    ) {
        let (pairs, cols) = (300, 4);
        let mut random = Random::new(seed, 2, 0);
        let truth: Vec<f64> = (0..cols).map(|_| scale * random.normal()).collect();
        let rows: Vec<Vec<f64>> = (0..2 * pairs).map(|_| (0..cols).map(|_| random.normal()).collect()).collect();
        let difference = |pair: usize| -> Vec<f64> {
            (0..cols).map(|column| rows[2 * pair + 1][column] - rows[2 * pair][column]).collect()
        };
        let z = |pair: usize| -> f64 { difference(pair).iter().zip(&truth).map(|(d, w)| d * w).sum() };
        let outcomes: Vec<i8> = (0..pairs)
            .map(|pair| {
                let z = z(pair) + random.normal();
                i8::from(z > against) - i8::from(z < -against)
            })
            .collect();
        let rule = Rule::PassiveAggressive { c, kappa, squared: false };
        let mut learner = ComparisonLearner::start(rule, Vec::new(), 1.0);
        learner.learn(&side_by_side(&rows, &outcomes, None), 0..pairs).expect("finite");
        let mistakes = learner.progress().error().expect("pairs") * pairs as f64;
        let losses: f64 = (0..pairs)
            .map(|pair| match outcomes[pair] {
                0 => (1.0 - against + z(pair).abs()).max(0.0),
                sign => (1.0 + against - f64::from(sign) * z(pair)).max(0.0),
            })
            .sum();
        let radius = (0..pairs).map(|pair| difference(pair).iter().map(|d| d * d).sum()).fold(0.0, f64::max);
        let length: f64 = truth.iter().map(|w| w * w).sum();
        let bound = (radius + kappa).max(1.0 / c) * (length + (against - 1.0).powi(2) / kappa + 2.0 * c * losses);
        prop_assert!(mistakes <= bound + 1e-9, "{mistakes} {bound}");
    }

    #[test]
    fn slopes_are_those_of_the_loss(sign in -1..=1i8, z in -3.0..3.0f64, tau in 0.05..3.0f64) {
        for loss in Loss::ALL {
            let (value, by_z, by_tau) = loss_and_slopes(loss, sign, z, tau);
            let of = |z: f64, tau: f64| -> f64 {
                let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
                let hinge = |v: f64| if loss == Loss::SquaredHinge { v.max(0.0).powi(2) } else { v.max(0.0) };
                match (loss, sign) {
                    (Loss::Logistic, 0) => -(sigmoid(tau - z) - sigmoid(-tau - z)).ln(),
                    (Loss::Logistic, sign) => -sigmoid(f64::from(sign) * z - tau).ln(),
                    (_, 0) => hinge(1.0 - tau + z) + hinge(1.0 - tau - z),
                    (_, sign) => hinge(1.0 + tau - f64::from(sign) * z),
                }
            };
            prop_assert!((value - of(z, tau)).abs() < 1e-9);
            let h = 1e-6;
            let kink = |violation: f64| loss == Loss::Hinge && violation.abs() < 1e-4;
            if kink(1.0 + tau - z.abs()) || kink(1.0 - tau + z.abs()) || kink(1.0 - tau - z.abs()) || kink(1.0 + tau + z.abs()) {
                continue;
            }
            prop_assert!((by_z - (of(z + h, tau) - of(z - h, tau)) / (2.0 * h)).abs() < 1e-4);
            prop_assert!((by_tau - (of(z, tau + h) - of(z, tau - h)) / (2.0 * h)).abs() < 1e-3 * (1.0 + by_tau.abs()));
        }
    }
}

#[test]
fn gradient_steps_are_those_of_weights_that_are_shrunk_one_by_one() {
    let data = stream(4000, 5, 8);
    for loss in Loss::ALL {
        for averaged in [false, true] {
            // With a large λ the divisor exceeds its limit and is multiplied out many times.
            let (lambda, rate) = (0.2, 0.05);
            let learner = learned(Rule::Gradient { lambda, rate, loss, averaged }, &data);
            let pairs = data.pairs().expect("pairs");
            let (mut w, mut tau, mut t) = (vec![0.0; 5], 0.5, 0.0);
            let (mut mean, mut mean_tau, mut losses, mut wrong) = (vec![0.0; 5], 0.5, 0.0, 0.0);
            for pair in 0..pairs.len() {
                let weight = pairs.weight(pair);
                let mut d = vec![0.0; 5];
                data.matrix().each_in_row(2 * pair + 1, |column, value| d[column] += value);
                data.matrix().each_in_row(2 * pair, |column, value| d[column] -= value);
                let dot = |w: &[f64]| -> f64 { w.iter().zip(&d).map(|(w, d)| w * d).sum() };
                let (seen, threshold) = if averaged { (dot(&mean), mean_tau) } else { (dot(&w), tau) };
                let outcome = if seen > threshold {
                    1
                } else if seen < -threshold {
                    -1
                } else {
                    0
                };
                let sign = pairs.outcome(pair).sign();
                wrong += f64::from(u8::from(outcome != sign));
                t += 1.0;
                if weight == 0.0 {
                    continue;
                }
                let eta = rate / (1.0 + lambda * rate * t);
                let (value, by_z, by_tau) = loss_and_slopes(loss, sign, dot(&w), tau);
                losses += weight * value;
                for (w, d) in w.iter_mut().zip(&d) {
                    *w = *w * (1.0 - eta * lambda) - eta * weight * by_z * d;
                }
                tau = (tau - 0.01 * eta * weight * by_tau).max(0.01);
                let share = 4.0 / (t + 3.0);
                mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share * (w - *mean));
                mean_tau += share * (tau - mean_tau);
            }
            let (expected, threshold) = if averaged { (&mean, mean_tau) } else { (&w, tau) };
            for (got, expected) in learner.weights().iter().zip(expected) {
                assert!((got - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{loss:?} {got} {expected}");
            }
            assert!((learner.threshold() - threshold).abs() < 1e-9);
            assert!((learner.state.loss - losses).abs() < 1e-6 * losses);
            assert_eq!(learner.progress().error(), Some(wrong / t));
        }
    }
}

#[test]
fn a_stream_cut_anywhere_leads_to_the_same_state() {
    let data = stream(500, 4, 5);
    for rule in [
        Rule::PassiveAggressive { c: 0.5, kappa: 1.0, squared: false },
        Rule::PassiveAggressive { c: 0.5, kappa: 1.0, squared: true },
        Rule::Gradient { lambda: 1e-3, rate: 0.1, loss: Loss::Hinge, averaged: false },
        Rule::Gradient { lambda: 1e-3, rate: 0.1, loss: Loss::Logistic, averaged: true },
    ] {
        let whole = learned(rule, &data);
        let mut parts = ComparisonLearner::start(rule, Vec::new(), rule.least_threshold().max(0.5));
        for range in [0..1, 1..1, 1..130, 130..499, 499..500] {
            parts = ComparisonLearner::go_on(rule, parts.state.clone());
            parts.learn(&data, range).expect("finite");
        }
        assert_eq!(whole.state, parts.state, "{rule:?}");
    }
}

#[test]
fn sides_that_change_places_change_nothing_but_signs() {
    let data = stream(300, 3, 2);
    let pairs = data.pairs().expect("pairs");
    let turned: Vec<Outcome> = (0..300).map(|pair| Outcome::of_sign(-pairs.outcome(pair).sign())).collect();
    let other = Pairs::new(pairs.right().to_vec(), pairs.left().to_vec())
        .and_then(|other| other.with_outcomes(turned))
        .and_then(|other| other.with_weights(pairs.weights().expect("weights").to_vec()))
        .expect("pairs");
    let other = Dataset::new(data.matrix().clone(), Targets::Absent).and_then(|data| data.with_pairs(other));
    let rule = Rule::PassiveAggressive { c: 0.5, kappa: 1.0, squared: false };
    let (here, there) = (learned(rule, &data), learned(rule, &other.expect("data")));
    assert_eq!(here.weights(), there.weights());
    assert_eq!(here.threshold(), there.threshold());
}

#[test]
fn every_rule_learns_from_a_stream() {
    let data = stream(20_000, 5, 77);
    for rule in [
        Rule::PassiveAggressive { c: 0.1, kappa: 1.0, squared: false },
        Rule::PassiveAggressive { c: 0.1, kappa: 1.0, squared: true },
        Rule::Gradient { lambda: 1e-5, rate: 0.1, loss: Loss::Hinge, averaged: false },
        // The slope of the squared hinge grows with its argument, so it needs shorter steps.
        Rule::Gradient { lambda: 1e-5, rate: 0.01, loss: Loss::SquaredHinge, averaged: true },
        Rule::Gradient { lambda: 1e-5, rate: 0.1, loss: Loss::Logistic, averaged: true },
    ] {
        let learner = learned(rule, &data);
        let (error, auc) = (learner.progress().recent_error().expect("pairs"), learner.progress().auc().expect("both"));
        assert!(error < 0.15 && auc.area > 0.93 && auc.resolution < 0.01, "{rule:?} {error} {auc:?}");
    }
}

#[test]
fn a_stream_of_one_kind_of_outcome_is_learned_from() {
    let rows: Vec<Vec<f64>> = (0..400).map(|row| vec![f64::from(row % 7), f64::from(row % 5)]).collect();
    for rule in [
        Rule::PassiveAggressive { c: 1.0, kappa: 1.0, squared: false },
        Rule::Gradient { lambda: 1e-4, rate: 0.01, loss: Loss::Hinge, averaged: true },
        Rule::Gradient { lambda: 1e-4, rate: 0.01, loss: Loss::Logistic, averaged: false },
    ] {
        for sign in [0, 1] {
            let learner = learned(rule, &side_by_side(&rows, &[sign; 200], None));
            assert_eq!(learner.progress().auc(), None);
            assert_eq!(learner.progress().ties(), if sign == 0 { 200 } else { 0 });
            assert!(learner.threshold() >= rule.least_threshold());
            if sign == 0 {
                assert!(learner.weights().iter().all(|&w| w == 0.0), "ties alone leave the weights at zero");
            }
        }
    }
}

#[test]
fn equal_rows_move_the_threshold_alone() {
    let rule = Rule::PassiveAggressive { c: 0.5, kappa: 1.0, squared: false };
    let mut learner = ComparisonLearner::start(rule, vec![1.0, 2.0], 3.0);
    learner.learn(&side_by_side(&[vec![4.0, 4.0], vec![4.0, 4.0]], &[1], None), 0..1).expect("finite");
    assert_eq!(learner.weights(), [1.0, 2.0]);
    assert_eq!(learner.threshold(), 2.5);
}

#[test]
fn numbers_that_overflow_are_an_error() {
    let rows = vec![vec![0.0], vec![1e300], vec![0.0], vec![-1e300], vec![1e300], vec![-1e300]];
    let data = side_by_side(&rows, &[1, 1, 0], None);
    let rule = Rule::Gradient { lambda: 1e-4, rate: 1e10, loss: Loss::SquaredHinge, averaged: false };
    let mut learner = ComparisonLearner::start(rule, Vec::new(), 1.0);
    assert_eq!(learner.learn(&data, 0..3).expect_err("overflow").code(), Code::Overflow);
}
